"""Compiled kernels on disk: what they are named by, where they are kept, and how numba asks for them.

The code of a kernel for one combination of argument types is a file. Its name and its folder's say all that the code
depends on: the contents of the kernel's file and of those its callees come from, the numbers and structs built into it,
the settings of numba that change code (`CODE_SETTINGS`), the versions of numba and Python, the processor. So editing
one file recompiles exactly what depends on it, a run with bounds checks never loads code without them, and environments
and checkouts share what is alike, wherever they are. There is no index: processes that write at the same time do not
disturb each other, and to load a kernel is to read a file.

What a kernel calls has a number of the process in its name: code finds code by its name, also in files of several
processes, and numba counts from 1 in each, so that the sorting of one kernel would run in place of another's.

A kernel is looked for in two places. *Prebuilt* code comes with a wheel: a set of files for one system, one version of
Python and one of numba, made for x86-64-v3, which is every x86-64 processor since 2013 or so; it is loaded if this
processor has what that needs, and if nobody asks numba for another one (``NUMBA_CPU_NAME``). Then comes
``$NUMBA_CACHE_DIR``, or ``tokdfa/kernels`` below the user's cache folder, with code that was compiled on this machine.
If that cannot be written to, one warning says so, and a folder of the user's own in the temporary one takes its place;
kernels are never kept beside the sources.

This leans on numba's private names, as `tokdfa.core.kernel_parts` does.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import pickle
import platform
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numba import __version__ as numba_version
from numba import config as numba_config
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import _Cache
from numba.core.codegen import ll
from numba.core.compiler import compile_result
from numba.core.extending import _Intrinsic
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from tokdfa.core import first_use
from tokdfa.core.folders import cache_folder, private_folder
from tokdfa.core.kernel_parts import PartLibrary
from tokdfa.core.stored_file import write_atomically
from tokdfa.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

#: Changes with what `KernelStore` writes into a file.
FORMAT = 3

#: Settings of numba (``NUMBA_...``) that change the code it makes, and their defaults. Read at a kernel's first use.
CODE_SETTINGS: dict[str, Any] = {
    "BOUNDSCHECK": None,
    "DEBUG": 0,
    "DEBUGINFO_DEFAULT": 0,
    "DEBUG_NRT": 0,
    "DISABLE_INTEL_SVML": 0,
    "ENABLE_PROFILING": 0,
    "EXTEND_VARIABLE_LIFETIMES": 0,
    "JIT_COVERAGE": 0,
    "LLVM_REFPRUNE_FLAGS": "all",
    "LLVM_REFPRUNE_PASS": 1,
    "LOOP_VECTORIZE": 1,
    "NRT_STATS": 0,
    "OPT": 3,
    "SLP_VECTORIZE": 0,
}

#: The processor that prebuilt code is made for, as numba tells processors apart, and what one must have to run it.
BASELINE = ("x86_64-unknown-linux-gnu", "x86-64-v3", "")
BASELINE_FEATURES = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2", "xsave")
#: Where the sets are in an installed package.
PREBUILT = Path(__file__).with_name("prebuilt")


def _number_functions_apart() -> None:
    """Let numba count what it compiles from a number that is this process's alone."""
    FunctionIdentity._unique_ids = itertools.count(int.from_bytes(os.urandom(7), "big"))


_number_functions_apart()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_number_functions_apart)


def kernel_folder() -> Path:
    """The folder below which kernels compiled on this machine are kept."""
    return writable_folder() or Path(_wanted_folder())


def writable_folder() -> Path | None:
    """The same, but None if kernels cannot be kept at all."""
    return _writable_folder(_wanted_folder())


def _wanted_folder() -> str:
    return os.environ.get("NUMBA_CACHE_DIR") or str(cache_folder("kernels"))


def prebuilt_name() -> str:
    """The name of the set that would fit this system, Python and numba."""
    system = f"{platform.system()}-{platform.machine()}".lower()
    return f"{system}-{sys.implementation.cache_tag}-numba-{numba_version}"


@cache
def prebuilt_folder() -> Path | None:
    """The set of prebuilt kernels that fits, if there is one."""
    folder = PREBUILT / prebuilt_name()
    if not folder.is_dir() or numba_config.CPU_NAME is not None or numba_config.CPU_FEATURES is not None:
        return None
    features = ll.get_host_cpu_features()
    return folder if all(features.get(feature) for feature in BASELINE_FEATURES) else None


@cache
def _writable_folder(wanted: str) -> Path | None:
    """`wanted`, or with a warning the folder that takes its place; None if kernels cannot be kept at all."""
    try:
        return _try_to_write(Path(wanted))
    except OSError as error:
        reason = error.strerror
    try:
        instead = _try_to_write(private_folder() / "kernels")
        where = f"in {instead} until that is emptied"
    except (OSError, StoreError):
        instead, where = None, "nowhere, and compiled anew by each process"
    _warn(f"compiled kernels cannot be kept in {wanted} ({reason}), and are kept {where}")
    return instead


def _try_to_write(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()
    return folder


@cache
def _warn(trouble: str) -> None:
    """Say it once, whatever the filters of warnings are."""
    warnings.warn(f"{trouble}; set NUMBA_CACHE_DIR to a folder with room", RuntimeWarning, stacklevel=2)


class KernelStore(_Cache):  # type: ignore[misc, unused-ignore]
    """The code of one kernel, or of its part, on disk; what numba calls a cache.

    Trouble with the disk costs the time of compiling, nothing else.
    """

    def __init__(self, function: Callable[..., Any], is_part: bool) -> None:
        self._function, self._is_part, self._is_enabled = function, is_part, True

    @property
    def cache_path(self) -> str:
        return str(kernel_folder() / stamp_of(self._function))

    def enable(self) -> None:
        self._is_enabled = True

    def disable(self) -> None:
        self._is_enabled = False

    def flush(self) -> None:
        pass

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # All that code needs to run; numba would load its implementations of everything, too, which takes as long as
        # to import it. Whatever compiles does so itself.
        rtsys.initialize(target_context)
        if not self._is_enabled:
            return None
        found = self._find(sig, target_context)
        if found is None:
            kept_at = self._kept_at(sig, target_context.codegen())
            begin = first_use.begin_part if self._is_part else first_use.begin_kernel
            if begin(kept_at):  # another process has been at it
                found = self._find(sig, target_context)
        if found is not None:
            self._end(sig, target_context.codegen())
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            if self._is_enabled and not data.library.has_dynamic_globals:
                self._write(sig, data)
        finally:
            self._end(sig, data.codegen)

    def _end(self, sig: Any, codegen: Any) -> None:
        if self._is_part:
            first_use.end_part(self._kept_at(sig, codegen))
        else:
            first_use.end_kernel()

    def _kept_at(self, sig: Any, codegen: Any) -> Path | None:
        root = writable_folder()
        return root and self._path(root, sig, codegen.magic_tuple())

    def _find(self, sig: Any, target_context: Any) -> Any:
        """The code that is kept, prebuilt if there is such, or None."""
        folder = None if self._is_part else prebuilt_folder()
        found = folder and self._read(self._path(folder, sig, BASELINE), target_context)
        if found is None and (root := writable_folder()) is not None:
            found = self._read(self._path(root, sig, target_context.codegen().magic_tuple()), target_context)
        return found

    def _path(self, root: Path, sig: Any, processor: tuple[str, str, str]) -> Path:
        return root / stamp_of(self._function) / self._file_name(sig, processor)

    def _write(self, sig: Any, data: Any) -> None:
        path = self._kept_at(sig, data.codegen)
        if path is None:
            return
        try:
            path.parent.mkdir(exist_ok=True)
            write_atomically(path, self._packed(data))
        except OSError as error:
            _warn(f"compiled kernels cannot be kept in {path.parents[1]} ({error.strerror})")

    def _read(self, path: Path, target_context: Any) -> Any:
        try:
            return self._unpacked(path.read_bytes(), target_context)
        except FileNotFoundError:
            return None
        except Exception as error:  # pickle lets out whatever a damaged file makes it stumble over
            _warn(f"compiled kernels in {path.parent} cannot be read ({type(error).__name__}: {error})")
            return None

    def _file_name(self, sig: Any, processor: tuple[str, str, str]) -> str:
        """Says what it is the code of, for which arguments and which processor."""
        code, cells = self._function.__code__, self._function.__closure__ or ()
        content = code.co_code + (dumps(tuple(cell.cell_contents for cell in cells)) if cells else b"")
        place = (self._function.__qualname__, code.co_firstlineno)
        told = repr(
            (FORMAT, sys.implementation.cache_tag, place, str(sig), processor, hashlib.sha256(content).digest())
        )
        name = self._function.__qualname__.replace("<", "").replace(">", "")
        return f"{name}-{hashlib.sha256(told.encode()).hexdigest()[:24]}.kernel"

    def _packed(self, result: Any) -> bytes:
        """The bytes of a file. Of a part its code is kept as LLVM has it; of a kernel the machine's, and nothing that
        could be linked into others, for which there are parts.

        Raises KeyboardInterrupt for an interrupt that came while LLVM called Python with the machine's code: ctypes,
        by which it does, prints exceptions and goes on, so only that the code is missing tells.
        """
        description, library = result.fndesc, result.library
        description.typemap = description.calltypes = None  # numba does so, too: they may not be picklable
        if not self._is_part and library._compiled_object is None:
            raise KeyboardInterrupt(f"while the code of {description.qualname} was made")
        code = library.bitcode() if self._is_part else library._get_compiled_object()
        return bytes(dumps((code, description, result.environment, result.signature, result.reload_init)))

    def _unpacked(self, content: bytes, target_context: Any) -> Any:
        code, description, environment, signature, reload_init = pickle.loads(content)
        for load in reload_init:
            load()
        codegen = target_context.codegen()
        if self._is_part:
            library = PartLibrary.from_bitcode(codegen, code)
        else:
            library = codegen.create_library(description.qualname)
            library.enable_object_caching()
            library._set_compiled_object(code)
            library._finalize_final_module()
            codegen._engine._defined_symbols |= {description.llvm_func_name, description.llvm_cpython_wrapper_name}
        return compile_result(
            typing_context=target_context.typing_context,
            target_context=target_context,
            entry_point=target_context.get_executable(library, description, environment),
            typing_error=None,
            type_annotation="",
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


_file_stamps: dict[str, str] = {}
#: What structs, parts and elements are in compiled code is said there, and not by kernels.
_BASES = {str(Path(__file__).with_name(name)) for name in ("kernel_struct.py", "kernel_parts.py", "kernel_lowering.py")}


@cache
def changed_at(path: str) -> int | None:
    """When a file was changed last, in nanoseconds, as of the first call; None if there is none. Kernels call it when
    they are imported.
    """
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


def _file_stamp(path: str) -> str:
    if path not in _file_stamps:
        content = Path(path).read_bytes()
        if os.stat(path).st_mtime_ns != changed_at(path):  # what runs is not what the file says now
            content += f"as of {changed_at(path)}".encode()
        _file_stamps[path] = hashlib.sha256(content).hexdigest()[:16]
    return _file_stamps[path]


for _base in _BASES:
    changed_at(_base)


def stamp_of(function: Callable[..., Any]) -> str:
    """A name made of the contents of `function`'s file and of those whose kernels it can call, however indirectly.

    Which kernels its own names stand for is in it, too, as they may be bound otherwise than its file says
    (`tokdfa.vocabulary.walker.specialise`); and so are the numbers and structs that these files know, as kernels have
    them built in and they may come from any file.
    """
    own = function.__code__.co_filename
    files, built_in = set(_BASES), set[str]()
    _gather(function.__globals__, set(), files, built_in)
    called = [(name, value.py_func) for name, value in function.__globals__.items() if isinstance(value, CPUDispatcher)]
    bound = sorted(f"{name}={callee.__module__}.{callee.__qualname__}" for name, callee in called)
    stamps = [_file_stamp(own), *sorted(map(_file_stamp, files - {own}))]
    parts = [function.__module__, numba_version, *stamps, *bound, *sorted(built_in), *_unusual_settings()]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:24]


def _unusual_settings() -> list[str]:
    """numba's settings that change code and are not at their defaults."""
    found = {name: getattr(numba_config, name, usual) for name, usual in CODE_SETTINGS.items()}
    return [
        f"{name}={'max' if getattr(value, 'is_opt_max', False) else value}"
        for name, value in found.items()
        if value != CODE_SETTINGS[name] or getattr(value, "is_opt_max", False)
    ]


def _gather(names: dict[str, Any], seen: set[int], files: set[str], built_in: set[str]) -> None:
    """Add the files of the kernels that can be called by these names, and the numbers and structs behind names there.

    By namespace, not by file: kernels of one file may have names of their own.
    """
    seen.add(id(names))
    for name, value in list(names.items()):
        if isinstance(value, int):
            built_in.add(f"{name}={value}")
        elif isinstance(value, CPUDispatcher):
            files.add(value.py_func.__code__.co_filename)
            if id(value.py_func.__globals__) not in seen:
                _gather(value.py_func.__globals__, seen, files, built_in)
        elif type(value) is _Intrinsic:
            built_in.add(getattr(value, "struct_kind", ""))


def marker_name(processor: str) -> str:
    """How names of files begin that say which kernels are there: it changes with every kernel file, numba's version and
    settings, and the processor.
    """
    package = Path(__file__).parents[1]
    sources = sorted(path for path in package.rglob("*.py") if b"@kernel" in path.read_bytes())
    parts = [numba_version, processor, *_unusual_settings(), *(_file_stamp(str(path)) for path in sources)]
    return f"warm-{hashlib.sha256(' '.join(parts).encode()).hexdigest()[:24]}"
