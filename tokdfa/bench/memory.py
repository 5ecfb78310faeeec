"""Memory of one contender: the peak while it compiles, and what it keeps once its masks have been filled.

Resident memory belongs to a process, so this is measured in one of its own: a fork of a prepared process that holds
the tokenizer, the vocabulary and the loaded kernels, and has compiled nothing but a throw-away constraint. Before, free
memory is given back to the system (`release_free_memory`), as memory that is resident but unused would hide what the
contender takes. Numbers are therefore good to some 100 KB, not to the byte.

The peak comes from the system's high-water mark, which Linux lets a process reset (``/proc/self/clear_refs``).
Elsewhere the mark covers the whole life of the process, so a peak below that of the preparation reads as zero.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tokdfa import mask as masks
from tokdfa.errors import TokenRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tokdfa.backends.base import Backend, CompiledConstraint
    from tokdfa.bench.workloads import Walk
    from tokdfa.constraint import Constraint

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")


def measure_memory(
    backend: Backend, constraint: Constraint, walks: Sequence[Walk], begin: Callable[[], None] = lambda: None
) -> tuple[int, int]:
    """(peak rise while compiling, rise retained after the masks of `walks`) in bytes, both at least 0.

    Changes the state of this process: run it in a fork. `begin` is called before each compile and each mask. Raises
    what the backend raises.
    """
    release_free_memory()
    reset_peak()
    before = resident()
    begin()
    compiled = backend.compile(constraint)
    peak = max(peak_resident() - before, resident() - before)
    _fill_masks(compiled, walks, begin)
    release_free_memory()
    return max(peak, 0), max(resident() - before, 0)


def _fill_masks(compiled: CompiledConstraint, walks: Sequence[Walk], begin: Callable[[], None]) -> None:
    mask = masks.allocate_mask(compiled.vocab.size)
    for walk in walks:
        matcher = compiled.start()
        for token in walk.tokens:
            begin()
            matcher.fill_mask(mask)
            try:
                matcher.advance(token)
            except TokenRefused:  # judged when it is timed
                break


def release_free_memory() -> None:
    """Collect garbage, and hand free pages of the C heap back to the system where the C library can."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def reset_peak() -> None:
    """Set the high-water mark of resident memory to what is resident now. Without effect outside Linux."""
    if _CLEAR_REFS.exists():
        _CLEAR_REFS.write_text("5")


def resident() -> int:
    """Resident memory of this process in bytes."""
    import psutil

    return int(psutil.Process(os.getpid()).memory_info().rss)


def peak_resident() -> int:
    """The high-water mark of resident memory, in bytes."""
    if _STATUS.exists():
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
