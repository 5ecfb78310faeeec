"""The only place that sets numba options. Kernels are marked `@kernel` (or `@kernel(parallel=True)`).

Options and why:

- ``cache=True``: compiled code is kept on disk, so only the first use of a kernel on a machine pays for compilation.
  numba notices a change of the kernel's own file but not of kernels it calls in other files. So each kernel is cached
  in a folder named by the content of its file and of those its callees come from, by the numbers that are built into
  it, by numba's version and by its settings that change code (`CODE_SETTINGS`): editing one file recompiles exactly
  what depends on it, a run with bounds checks never loads code without them, and environments and checkouts share what
  is alike, wherever they are. The folder is ``$NUMBA_CACHE_DIR``, or ``tokdfa/kernels`` below the user's cache folder.
  If it cannot be written to, one warning says so, and a folder of the user's own in the temporary one takes its place;
  kernels are never kept beside the sources.
- ``nogil=True``: kernels touch arrays only, so other Python threads may run meanwhile.
- ``error_model="numpy"``: no division check in hot loops; no kernel divides by anything that can be zero.
- ``fastmath`` stays off: kernels are integer code, and the few floats are measurements.
- ``boundscheck`` is left to the environment (``NUMBA_BOUNDSCHECK=1``), which the tests use for one run.

Kernels take many arrays at once as structs (`tokdfa.core.kernel_struct`). Those that kernels call are compiled as parts
of their callers (`tokdfa.core.kernel_parts`).

`warm_up` compiles all kernels by running a small job through each part that has some (`WARMUP_STEPS`).
"""

from __future__ import annotations

import hashlib
import importlib
import os
import tempfile
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numba
from numba import config as numba_config
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.extending import _Intrinsic
from numba.core.registry import CPUDispatcher

from tokdfa.core import locks
from tokdfa.core.folders import cache_folder, private_folder
from tokdfa.core.kernel_parts import PART_OPTIONS, PartCode, attach_part, function_of_part
from tokdfa.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# a thread that compiles a kernel holds it, and would for ever in the child of a fork
locks.watch(global_compiler_lock._lock)

#: What to run so that every kernel is compiled: (what it is, "module:function").
WARMUP_STEPS: tuple[tuple[str, str], ...] = (
    ("interning tables", "tokdfa.core.interning:_warm_up"),
    ("token trie and walk", "tokdfa.vocabulary.walk:_warm_up"),
    ("regex derivatives", "tokdfa.regex.lazy_dfa:_warm_up"),
    ("automata algebra", "tokdfa.automata.algebra:_warm_up"),
    ("merge rules", "tokdfa.proper.rules_cache:_warm_up"),
    ("token index", "tokdfa.backends.token_index:_warm_up"),
    ("parts of constraints", "tokdfa.backends.proper_merge.vegas:_warm_up"),
    ("tokens DFA", "tokdfa.backends.tokens_dfa.strategy:_warm_up"),
    ("proper tokens", "tokdfa.backends.proper_merge.cartesian_merge:_warm_up"),
    ("grammars", "tokdfa.backends.earley_trie.strategy:_warm_up"),
    ("JSON numbers", "tokdfa.json_schema.number_dfa:_warm_up"),
    ("pushdown automata", "tokdfa.backends.pushdown_trie.strategy:_warm_up"),
    ("LALR grammars", "tokdfa.backends.cfg_fsm.strategy:_warm_up"),
    ("proper grammars", "tokdfa.backends.proper:_warm_up"),
    ("kept masks", "tokdfa.vocabulary.mask_store:_warm_up"),
    ("judging of sequences", "tokdfa.lab.measure.judge:_warm_up"),
)


#: Settings of numba (``NUMBA_...``) that change the code it makes, and their defaults. Read when kernels are defined.
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


def kernel_folder() -> Path:
    """The folder below which compiled kernels are kept."""
    wanted = os.environ.get("NUMBA_CACHE_DIR") or str(cache_folder("kernels"))
    return _writable_folder(wanted) or Path(wanted)


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


class _Place:
    """Where one kernel's code is kept; stands for numba's locators, which name folders by where the sources are."""

    def __init__(self, function: Callable[..., Any], path: str) -> None:
        self._py_file, self._line = path, function.__code__.co_firstlineno
        self._folder = kernel_folder() / _stamp(function)

    from_function = classmethod(lambda cls, function, path: cls(function, path))

    def get_cache_path(self) -> str:
        return str(self._folder)

    def ensure_cache_path(self) -> None:
        self._folder.mkdir(exist_ok=True)

    def get_source_stamp(self) -> str:
        return ""  # the folder says it

    def get_disambiguator(self) -> str:
        return str(self._line)


class _PlacedCode(CompileResultCacheImpl):  # type: ignore[misc, unused-ignore]
    _locator_classes: ClassVar[list[type]] = [_Place]


class _KernelCache(FunctionCache):  # type: ignore[misc, unused-ignore]
    """The code of one kernel on disk. Trouble with the disk costs the time of compiling, nothing else."""

    _impl_class = _PlacedCode

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # pickle lets out whatever a damaged file makes it stumble over
            _warn(f"compiled kernels in {self.cache_path} cannot be read ({type(error).__name__}: {error})")
            self._forget()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _warn(f"compiled kernels cannot be kept in {kernel_folder()} ({error.strerror})")
            self._forget()

    def _forget(self) -> None:
        """Without its index, which may name code that was not written, or that an earlier source has left."""
        try:
            Path(self._cache_file._index_path).unlink(missing_ok=True)
        except OSError:
            self.disable()


class _PlacedPart(PartCode):
    _locator_classes: ClassVar[list[type]] = [_Place]


class _PartCache(_KernelCache):
    """The code of the part of a kernel on disk."""

    _impl_class = _PlacedPart


def kernel(function: Callable[..., Any] | None = None, *, parallel: bool = False, inline: bool = False) -> Any:
    """Mark a function as a kernel: compiled by numba at first call, without the GIL, kept on disk.

    `inline`: it is made a part of its callers, whatever its size.
    """
    if function is None:
        return lambda given: kernel(given, parallel=parallel, inline=inline)
    options = {"nogil": True, "error_model": "numpy", "parallel": parallel, "forceinline": inline}
    dispatcher = numba.njit(no_cfunc_wrapper=not parallel, **options)(function)
    if numba_config.DISABLE_JIT:
        return dispatcher
    if not parallel:
        attach_part(dispatcher, numba.njit(**PART_OPTIONS, **options)(function_of_part(function)))
    is_kept = Path(function.__code__.co_filename).exists()  # not from a prompt
    if is_kept and _writable_folder(str(kernel_folder())) is not None:
        dispatcher._cache = _KernelCache(function)
        if not parallel:
            dispatcher.part._cache = _PartCache(dispatcher.part.py_func)
    return dispatcher


def is_warm() -> bool:
    """True if `warm_up` has finished on this machine with the kernels as they are now."""
    return _marker().exists()


def warm_up() -> Iterator[tuple[str, int, int]]:
    """Compile every kernel, yielding (what comes next, steps done, steps in all) before each step."""
    for done, (title, target) in enumerate(WARMUP_STEPS):
        yield title, done, len(WARMUP_STEPS)
        module, function = target.split(":")
        getattr(importlib.import_module(module), function)()
    with suppress(OSError):
        _marker().touch()


_file_stamps: dict[str, str] = {}
#: What structs and parts are in compiled code is said there, and not by kernels.
_BASES = {str(Path(__file__).with_name(name)) for name in ("kernel_struct.py", "kernel_parts.py")}


def _file_stamp(path: str) -> str:
    if path not in _file_stamps:
        _file_stamps[path] = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]
    return _file_stamps[path]


def _stamp(function: Callable[..., Any]) -> str:
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
    parts = [function.__module__, numba.__version__, *stamps, *bound, *sorted(built_in), *_unusual_settings()]
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


def _marker() -> Path:
    """A file whose name changes with every kernel file, numba's version and settings, and the processor."""
    package = Path(__file__).parents[1]
    sources = sorted(path for path in package.rglob("*.py") if b"@kernel" in path.read_bytes())
    parts = [
        numba.__version__,
        numba_config.CPU_NAME or "host",
        *_unusual_settings(),
        *(_file_stamp(str(path)) for path in sources),
    ]
    return kernel_folder() / f"warm-{hashlib.sha256(' '.join(parts).encode()).hexdigest()[:24]}"
