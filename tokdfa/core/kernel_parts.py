"""Kernels that are called by kernels: compiled once per kind of argument, and optimised within their callers only.

numba compiles a kernel that another one calls as if Python called it: it optimises it, makes machine code of it and of
two wrappers, links it into the caller and optimises it again there, and so on up to the kernel that Python does call,
whose code is all that ever runs. And it compiles it anew for a literal number, an int32 and an int64. Here a kernel has
two dispatchers. Its own one is for Python. Its *part* is what callers see: a signed integer is an int64 to it, and its
code is left as numba lowers it, until a kernel that Python calls has all its parts linked in and is optimised. That
halves the time to compile.

Parts are kept on disk, too, as another kernel may need them later.

This leans on numba's private names, those of version 0.68: `CodeLibrary.finalize`, the folding of argument types, what
`CompileResult` is made of. `tests/test_kernel_parts.py` says what has to hold.
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

from numba.core import types
from numba.core.caching import CompileResultCacheImpl
from numba.core.codegen import JITCodeLibrary, ll
from numba.core.compiler import Compiler, compile_result
from numba.core.registry import CPUDispatcher

if TYPE_CHECKING:
    from collections.abc import Callable


class Kernel(CPUDispatcher):  # type: ignore[misc, unused-ignore]
    """The dispatcher that Python calls. To numba it is of the type of its part."""

    part: CPUDispatcher

    @property
    def _numba_type_(self) -> Any:
        return types.Dispatcher(self.part)


def function_of_part(function: Callable[..., Any]) -> FunctionType:
    """What a part is compiled from: a function of its own, as numba tells functions by identity and by name."""
    part = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    part.__module__, part.__qualname__ = function.__module__, f"{function.__qualname__}.part"
    return part


def attach_part(dispatcher: CPUDispatcher, part: CPUDispatcher) -> None:
    """Let kernels call `part`, compiled with PART_OPTIONS, where they name `dispatcher`."""
    part._compiler.fold_argument_types = _widening(part._compiler.fold_argument_types)
    dispatcher.__class__ = Kernel
    dispatcher.part = part


def _widening(fold: Callable[..., Any]) -> Callable[..., Any]:
    """numba's way of finding the types of arguments, but signed integers of all kinds are int64."""

    def fold_widened(args: Any, kws: Any) -> Any:
        signature, kinds = fold(args, kws)
        return signature, tuple(map(_widened, kinds))

    return fold_widened


def _widened(kind: Any) -> Any:
    plain = kind.literal_type if isinstance(kind, types.Literal) else kind
    return types.int64 if plain in types.signed_domain else plain if plain == types.boolean else kind


class _PartLibrary(JITCodeLibrary):  # type: ignore[misc, unused-ignore]
    """Code to be linked into that of callers: neither optimised as a whole, nor made machine code of."""

    def finalize(self) -> None:
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0  # it has no address

    @property
    def codegen(self) -> Any:
        return _NoEnvironments

    def bitcode(self) -> bytes:
        """What `from_bitcode` makes a library of."""
        return bytes(self._get_module_for_linking().as_bitcode())

    @classmethod
    def from_bitcode(cls, codegen: Any, code: bytes) -> _PartLibrary:
        library = cls(codegen, "part")
        library._final_module = library._shared_module = ll.parse_bitcode(code)
        library._finalized = True
        return library


class _NoEnvironments:
    """In place of the engine that numba tells of the Python objects that code refers to: kernels refer to none."""

    @staticmethod
    def set_env(name: str, environment: Any) -> None:
        pass


class _PartPipeline(Compiler):  # type: ignore[misc, unused-ignore]
    """numba's compiler, which makes a `_PartLibrary`."""

    def __init__(self, typing_context: Any, target_context: Any, library: Any, *rest: Any) -> None:
        super().__init__(typing_context, target_context, _PartLibrary(target_context.codegen(), "part"), *rest)


#: numba's options for the dispatcher of a part, beside those of its kernel.
PART_OPTIONS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _PartPipeline}


class PartCode(CompileResultCacheImpl):  # type: ignore[misc, unused-ignore]
    """How the code of a part is kept on disk."""

    def reduce(self, result: Any) -> Any:
        result.fndesc.typemap = result.fndesc.calltypes = None  # numba does so, too: they may not be picklable
        return (
            result.library.bitcode(),
            result.fndesc,
            result.environment,
            result.signature,
            str(result.type_annotation),
            result.reload_init,
        )

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        code, description, environment, signature, annotation, reload_init = payload
        for load in reload_init:
            load()
        library = _PartLibrary.from_bitcode(target_context.codegen(), code)
        return compile_result(
            typing_context=target_context.typing_context,
            target_context=target_context,
            entry_point=target_context.get_executable(library, description, environment),
            typing_error=None,
            type_annotation=annotation,
            signature=signature,
            library=library,
            call_helper=None,
            environment=environment,
            lifted=(),
            fndesc=description,
            objectmode=False,
            metadata=None,
            reload_init=reload_init,
            referenced_envs=(),
        )
