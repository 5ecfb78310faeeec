"""The only place that sets numba options. Kernels are marked `@kernel` (or `@kernel(parallel=True)`).

Options and why:

- ``cache=True``: compiled code is kept on disk, so only the first use of a kernel on a machine pays for compilation.
  numba notices a change of the kernel's own file but not of kernels it calls in other files. So each kernel is cached
  in a folder named by the content of the files its callees come from, and by the numbers that are built into it:
  editing one file recompiles exactly what depends on it. The folder is ``$NUMBA_CACHE_DIR``, or ``tokdfa/kernels``
  below the user's cache folder.
- ``nogil=True``: kernels touch arrays only, so other Python threads may run meanwhile.
- ``error_model="numpy"``: no division check in hot loops; no kernel divides by anything that can be zero.
- ``fastmath`` stays off: kernels are integer code, and the few floats are measurements.
- ``boundscheck`` is left to the environment (``NUMBA_BOUNDSCHECK=1``), which the tests use for one run.

Kernels take many arrays at once as structs (`tokdfa.kernel_struct`).

`warm_up` compiles all kernels by running a small job through each part that has some (`WARMUP_STEPS`).
"""

from __future__ import annotations

import hashlib
import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
from numba import config as numba_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: What to run so that every kernel is compiled: (what it is, "module:function").
WARMUP_STEPS: tuple[tuple[str, str], ...] = (
    ("token trie and walk", "tokdfa.vocabulary.walk:_warm_up"),
    ("regex derivatives", "tokdfa.regex.lazy_dfa:_warm_up"),
    ("automata algebra", "tokdfa.automata.algebra:_warm_up"),
    ("merge rules", "tokdfa.bpe.rules_cache:_warm_up"),
    ("token index", "tokdfa.backends.token_index:_warm_up"),
    ("parts of constraints", "tokdfa.token_automata.vegas:_warm_up"),
    ("tokens DFA", "tokdfa.backends.tokens_dfa:_warm_up"),
    ("proper tokens", "tokdfa.backends.cartesian_merge:_warm_up"),
    ("grammars", "tokdfa.backends.earley_trie:_warm_up"),
    ("JSON numbers", "tokdfa.json_schema.number_dfa:_warm_up"),
    ("pushdown automata", "tokdfa.backends.pushdown_trie:_warm_up"),
    ("LALR grammars", "tokdfa.backends.cfg_fsm:_warm_up"),
    ("proper grammars", "tokdfa.backends.proper_liveness:_warm_up"),
    ("judging of sequences", "tokdfa.bench.judge:_warm_up"),
)


def kernel_folder() -> Path:
    """The folder below which compiled kernels are kept."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        return Path(given)
    cache_home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache_home) / "tokdfa" / "kernels"


def kernel(function: Callable[..., Any] | None = None, *, parallel: bool = False) -> Any:
    """Mark a function as a kernel: compiled by numba at first call, without the GIL, kept on disk."""
    if function is None:
        return lambda given: kernel(given, parallel=parallel)
    before = numba_config.CACHE_DIR
    numba_config.CACHE_DIR = str(kernel_folder() / _callee_stamp(function))
    try:
        return numba.njit(cache=True, nogil=True, error_model="numpy", parallel=parallel)(function)
    finally:
        numba_config.CACHE_DIR = before


def is_warm() -> bool:
    """True if `warm_up` has finished on this machine with the kernels as they are now."""
    return _marker().exists()


def warm_up() -> Iterator[tuple[str, int, int]]:
    """Compile every kernel, yielding (what comes next, steps done, steps in all) before each step."""
    for done, (title, target) in enumerate(WARMUP_STEPS):
        yield title, done, len(WARMUP_STEPS)
        module, function = target.split(":")
        getattr(importlib.import_module(module), function)()
    marker = _marker()
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.touch()


_file_stamps: dict[str, str] = {}
#: What a struct is in compiled code is said there, and that is no kernel.
_STRUCTS = str(Path(__file__).with_name("kernel_struct.py"))


def _file_stamp(path: str) -> str:
    if path not in _file_stamps:
        _file_stamps[path] = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]
    return _file_stamps[path]


def _callee_stamp(function: Callable[..., Any]) -> str:
    """A name made of the contents of the other files whose kernels `function` can call, however indirectly.

    Numbers and structs that its file knows are in it, too: a kernel has them built in, and they may come from any file.
    """
    files = {_STRUCTS, *_kernel_files(function.__globals__, {function.__code__.co_filename})}
    numbers = sorted(f"{name}={value}" for name, value in function.__globals__.items() if isinstance(value, int))
    numbers += sorted({kind for value in function.__globals__.values() if (kind := getattr(value, "struct_kind", ""))})
    return hashlib.sha256("".join([*sorted(map(_file_stamp, files)), *numbers]).encode()).hexdigest()[:16]


def _kernel_files(namespace: dict[str, Any], seen: set[str]) -> Iterator[str]:
    for value in list(namespace.values()):
        python_function = getattr(value, "py_func", None)
        if python_function is None or python_function.__code__.co_filename in seen:
            continue
        seen.add(python_function.__code__.co_filename)
        yield python_function.__code__.co_filename
        yield from _kernel_files(python_function.__globals__, seen)


def _marker() -> Path:
    """A file whose name changes with every kernel file, its place, numba's version and the processor compiled for."""
    package = Path(__file__).parent
    sources = sorted(path for path in package.rglob("*.py") if b"@kernel" in path.read_bytes())
    parts = [
        str(package),
        numba.__version__,
        numba_config.CPU_NAME or "host",
        *(_file_stamp(str(path)) for path in sources),
    ]
    return kernel_folder() / f"warm-{hashlib.sha256(' '.join(parts).encode()).hexdigest()[:24]}"
