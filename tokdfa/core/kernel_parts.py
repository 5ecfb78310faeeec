"""Kernels that are called by kernels: compiled once per kind of argument, and optimised within their callers only.

numba compiles a kernel that another one calls as if Python called it: it optimises it, makes machine code of it and of
two wrappers, links it into the caller and optimises it again there, and so on up to the kernel that Python does call,
whose code is all that ever runs. And it compiles it anew for a literal number, an int32 and an int64. Here a kernel has
two dispatchers. Its own one is for Python. Its *part* is what callers see: a signed integer is an int64 to it, and its
code is left as numba lowers it and by itself, until a kernel that Python calls has all its parts linked in and is
optimised. That halves the time to compile.

Parts are kept on disk, too, as another kernel may need them later.

This leans on numba's private names, those of version 0.68: `CodeLibrary.finalize`, the folding of argument types, what
`CompileResult` is made of. `tests/core/test_kernel_parts.py` says what has to hold.
"""

from __future__ import annotations

import gc
from functools import update_wrapper
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from numba.core import types
from numba.core.codegen import JITCodeLibrary, ll
from numba.core.compiler import Compiler, Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys
from numba.core.typed_passes import NativeLowering

from tokdfa.core.kernel_lowering import NUMBERS, KernelLowering, signatures
from tokdfa.core.locks import cached_property

if TYPE_CHECKING:
    from collections.abc import Callable


class Kernel(CPUDispatcher):  # type: ignore[misc, unused-ignore]
    """The dispatcher that Python calls. To numba it is of the type of its part.

    It is made by its first call, as that takes 0.1 ms, and a first mask calls few of the kernels that it imports: until
    then its class is `UnusedKernel`.
    """

    _options: dict[str, Any]
    #: Makes what keeps code on disk, of a function, and whether it is a part; None if nothing does.
    _store: Callable[[Any, bool], Any] | None

    @cached_property
    def part(self) -> CPUDispatcher:
        """The dispatcher that callers see, made when one is compiled."""
        part = CPUDispatcher(
            _function_of_part(self.py_func), targetoptions=self._options | PART_OPTIONS, pipeline_class=_PartPipeline
        )
        part._compiler.fold_argument_types = _widening(part._compiler.fold_argument_types)
        return _finish(part, self._store, is_part=True)

    @property
    def _numba_type_(self) -> Any:
        return types.Dispatcher(self.part)

    def compile(self, sig: Any) -> Any:
        """Without looking for garbage meanwhile, of which there is little: a tenth of the time."""
        is_collecting = gc.isenabled()
        gc.disable()
        try:
            return super().compile(sig)
        finally:
            if is_collecting:
                gc.enable()


class UnusedKernel(Kernel):
    """A kernel that has not been called. Its dispatcher is made when more is asked of it than what it is made of."""

    def __init__(
        self, function: Callable[..., Any], options: dict[str, Any], store: Callable[[Any, bool], Any] | None
    ) -> None:
        update_wrapper(self, function)
        self.py_func, self._options, self._store = function, options, store

    def _make(self) -> None:
        with global_compiler_lock:
            if type(self) is UnusedKernel:  # and not another thread was here
                CPUDispatcher.__init__(self, self.py_func, targetoptions=self._options, pipeline_class=KernelPipeline)
                _finish(self, self._store, is_part=False).__class__ = Kernel

    def __call__(self, *arguments: Any) -> Any:
        self._make()
        return self(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._make()
        return getattr(self, name)

    def compile(self, sig: Any) -> Any:
        self._make()
        return self.compile(sig)


def _finish(dispatcher: Any, store: Callable[[Any, bool], Any] | None, *, is_part: bool) -> Any:
    """A dispatcher that has just been made, with what is the same for all of ours."""
    dispatcher._compiler._customize_flags = _Flags
    if store is not None:
        dispatcher._cache = store(dispatcher.py_func, is_part)
    return dispatcher


class _Flags(Flags):  # type: ignore[misc, unused-ignore]
    """numba's flags, which it compares whenever it types a call: by asking for one flag after the other."""

    def values(self) -> dict[str, Any]:
        return {**_DEFAULT_FLAGS, **self._values}

    def __hash__(self) -> int:
        return _HASH_OF_FLAGS  # that of all flags, by the way numba makes it


_DEFAULT_FLAGS, _HASH_OF_FLAGS = Flags().values(), hash(Flags())


def _function_of_part(function: Any) -> FunctionType:
    """What a part is compiled from: a function of its own, as numba tells functions by identity and by name."""
    part = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    part.__module__, part.__qualname__ = function.__module__, f"{function.__qualname__}.part"
    return part


def _widening(fold: Callable[..., Any]) -> Callable[..., Any]:
    """numba's way of finding the types of arguments, but signed integers of all kinds are int64."""

    def fold_widened(args: Any, kws: Any) -> Any:
        signature, kinds = fold(args, kws)
        return signature, tuple(map(_widened, kinds))

    return fold_widened


def _widened(kind: Any) -> Any:
    plain = kind.literal_type if isinstance(kind, types.Literal) else kind
    return types.int64 if plain in types.signed_domain else plain if plain == types.boolean else kind


#: What kernels do not have, and numba looks for, one pass over a kernel each: ``with``, functions within functions and
#: comprehensions, messages made when an error is raised, functions that are inlined as source, loops over tuples of
#: several types, expressions of whole arrays that are worth one loop, functions that are inlined as typed source; and
#: what is written for people to look at, or checked to explain an error.
UNUSED_PASSES = frozenset(
    [
        *("WithLift", "InlineClosureLikes", "MakeFunctionToJitFunction", "RewriteDynamicRaises", "InlineInlinables"),
        *("FindLiterallyCalls", "LiteralUnroll", "LiteralPropagationSubPipelinePass", "NopythonRewrites"),
        *("InlineOverloads", "AnnotateTypes", "DumpParforDiagnostics", "NoPythonSupportedFeatureValidation"),
    ]
)


class PartLibrary(JITCodeLibrary):  # type: ignore[misc, unused-ignore]
    """The code of one part, to be linked into that of a kernel: its callees' is not in it, nor is it made machine code
    of. What numba itself has compiled for a kernel, such as ``np.empty``, is one, too.
    """

    _shared_module: Any

    def finalize(self) -> None:
        self._raise_if_finalized()
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == ll.Linkage.external:
                function.linkage = "linkonce_odr"
        self._finalize_dynamic_globals()
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
            self._dynamic_globals += library._dynamic_globals
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """With its callees, for code that is none of ours."""
        self._ensure_finalized()
        if self._shared_module is None:
            self._shared_module = self._final_module.clone()
            _link(self._shared_module, self._linking_libraries)
        return self._shared_module

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0  # it has no address

    @property
    def codegen(self) -> Any:
        return _NoEnvironments

    def bitcode(self) -> list[bytes]:
        """What `from_bitcode` makes a library of: the code of this one and of all that it calls."""
        return [bytes(module.as_bitcode()) for module in _modules_of([self])]

    @classmethod
    def from_bitcode(cls, codegen: Any, code: list[bytes]) -> PartLibrary:
        library, *callees = (_loaded.get(part) or cls._load(codegen, part) for part in code)
        library._linking_libraries = callees
        return library

    @classmethod
    def _load(cls, codegen: Any, code: bytes) -> PartLibrary:
        library = _loaded[code] = cls(codegen, "part")
        library._final_module = ll.parse_bitcode(code)
        library._finalized = True
        return library


#: Parts that were loaded, by their code.
_loaded: dict[bytes, PartLibrary] = {}


def _modules_of(libraries: list[Any]) -> list[Any]:
    """The modules of all that is to be linked together, each once."""
    modules, left, seen = [], libraries[::-1], set()
    while left:
        library = left.pop()
        if library in seen:
            continue
        seen.add(library)
        if isinstance(library, PartLibrary):
            modules.append(library._final_module)
            left += library._linking_libraries[::-1]
        else:
            modules.append(library._get_module_for_linking())
    return modules


def _link(target: Any, libraries: list[Any]) -> None:
    for module in _modules_of(libraries):
        target.link_in(module, preserve=True)


class KernelLibrary(JITCodeLibrary):  # type: ignore[misc, unused-ignore]
    """The code of a kernel that Python calls, with all its parts, optimised once."""

    def finalize(self) -> None:
        self._raise_if_finalized()
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
        _link(self._final_module, self._linking_libraries)
        self._optimize_final_module()
        self._finalize_final_module()

    def _optimize_final_module(self) -> None:
        """Without numba's first pass, by which references end up in one function, as kernels count few."""
        manager, builder = self._codegen._module_pass_manager()
        manager.run(self._final_module, builder)


class _NoEnvironments:
    """In place of the engine that numba tells of the Python objects that code refers to: kernels refer to none."""

    @staticmethod
    def set_env(name: str, environment: Any) -> None:
        pass


class _Typing:
    """numba's typing context, which knows what it has found out about functions of numbers.

    numba tries all its implementations of ``+`` for each ``+`` of each kernel, and words an error for each that does
    not fit.
    """

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, args: Any, kws: Any) -> Any:
        kind = function if isinstance(function, types.Type) else self._context._lookup_global(function)
        if kws or not isinstance(kind, types.Function) or not all(isinstance(arg, NUMBERS) for arg in args):
            return self._context.resolve_function_type(function, args, kws)
        key = (kind, tuple(args))
        signature = signatures.get(key)
        if signature is None:
            signature = self._context.resolve_function_type(function, args, kws)
            if signature is not None:
                signatures[key] = signature
        return signature

    def resolve_value_type_prefer_literal(self, value: Any) -> Any:
        if not isinstance(value, (int, ModuleType, type)):
            return self._context.resolve_value_type_prefer_literal(value)
        key = type(value), value
        if key not in _of_values:
            _of_values[key] = self._context.resolve_value_type_prefer_literal(value)
        return _of_values[key]


#: What `_Typing` has found out about numbers, modules and types: numba's type by type and value.
_of_values: dict[tuple[type, Any], Any] = {}


class KernelPipeline(Compiler):  # type: ignore[misc, unused-ignore]
    """numba's compiler without the passes for what kernels do not do."""

    library_class: type[JITCodeLibrary] = KernelLibrary

    def __init__(self, typing_context: Any, target_context: Any, library: Any, *rest: Any) -> None:
        library = self.library_class(target_context.codegen(), "kernel")
        library.enable_object_caching()
        super().__init__(typing_context, target_context, library, *rest)
        self.state.typingctx = _Typing(typing_context)

    def compile_extra(self, function: Any) -> Any:
        rtsys.initialize(self.state.targetctx)  # a library of its own
        codegen = self.state.targetctx.codegen()
        usual, codegen._library_class = codegen._library_class, PartLibrary
        try:
            return super().compile_extra(function)
        finally:
            codegen._library_class = usual

    def define_pipelines(self) -> list[Any]:
        pipelines: list[Any] = super().define_pipelines()
        for pipeline in pipelines:
            pipeline._ENFORCING = False  # the lifetimes of variables are found out once, before lowering
            pipeline.passes = [
                (KernelLowering, why) if kind is NativeLowering else (kind, why)
                for kind, why in pipeline.passes
                if kind.__name__ not in UNUSED_PASSES
            ]
        return pipelines


class _PartPipeline(KernelPipeline):
    """The same, which makes a `PartLibrary`."""

    library_class = PartLibrary


#: numba's options for a part, beside those of its kernel.
PART_OPTIONS = {"no_cpython_wrapper": True}
