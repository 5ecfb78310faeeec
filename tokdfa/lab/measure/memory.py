"""Memory of one contender: the peak while it compiles, and what it keeps once its masks have been filled.

Resident memory belongs to a process, so this is measured in one of its own: a fork of a prepared process that holds
the tokenizer and the vocabulary, and has compiled nothing but a throw-away constraint. Before, free
memory is given back to the system (`release_free_memory`), as memory that is resident but unused would hide what the
contender takes. One compile is therefore good to some 100 KB, not to the byte: what it takes comes in whole pages, may
fit into holes that others left, and includes tables that a library loads once. So a contender that keeps little is
compiled again and again, all copies are kept, and its size is what one more copy adds: good to a few KB, and free of
what copies share.

The peak comes from the system's high-water mark, which Linux lets a process reset (``/proc/self/clear_refs``). Pages
of files do not count there: after a fork, the first use of a library's code would otherwise look like memory of the
contender that happens to need it. Elsewhere the mark covers the whole
life of the process and all of its pages, so a peak below that of the preparation reads as zero.
"""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tokdfa import mask as masks
from tokdfa.lab.measure.workloads import follow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tokdfa.backends.base import Backend, CompiledConstraint
    from tokdfa.constraint import Constraint
    from tokdfa.lab.measure.workloads import Walk

#: Below this many bytes one compile says little: copies are made.
SMALL = 4 << 20
MAX_COPIES = 32
#: Time after which no further copy is begun; there is always one.
COPY_SECONDS = 1.0

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")


def measure_memory(
    backend: Backend, constraint: Constraint, walks: Sequence[Walk], begin: Callable[[], None] = lambda: None
) -> tuple[int, int]:
    """(peak rise while compiling, bytes retained after the masks of `walks`), both at least 0.

    Retained is the rise of resident memory, or, below SMALL, the mean rise of up to MAX_COPIES further copies made
    within COPY_SECONDS. Changes the state of this process: run it in a fork. `begin` is called before each compile and
    each mask. Raises what the backend raises.
    """
    release_free_memory()
    reset_peak()
    before = read_usage()
    begin()
    compiled = backend.compile(constraint)
    compile_peak = read_usage().peak_over(before)
    _fill_masks(compiled, walks, begin)
    release_free_memory()
    first = read_usage()
    if first.own - before.own >= SMALL:
        return compile_peak, first.own - before.own
    copies: list[CompiledConstraint] = []
    stop = time.monotonic() + COPY_SECONDS
    while not copies or (len(copies) < MAX_COPIES and time.monotonic() < stop):
        begin()
        copies.append(backend.compile(constraint))
        _fill_masks(copies[-1], walks, begin)
    release_free_memory()
    return compile_peak, max(read_usage().own - first.own, 0) // len(copies)


def _fill_masks(compiled: CompiledConstraint, walks: Sequence[Walk], begin: Callable[[], None]) -> None:
    mask = masks.allocate_mask(compiled.vocab.size)
    for walk in walks:
        for matcher in follow(compiled, walk.tokens):
            begin()
            matcher.fill_mask(mask)


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


@dataclass(frozen=True)
class Usage:
    """Resident memory of this process in bytes: `own` pages, pages of `files`, and the high-water mark of both."""

    own: int
    files: int
    peak: int

    def peak_over(self, before: Usage) -> int:
        """How far the process's own memory rose above `before`, at least 0, given a mark that was reset then."""
        mark = self.peak - before.own - before.files - max(self.files - before.files, 0)
        return max(mark, self.own - before.own, 0)


def read_usage() -> Usage:
    """The memory of this process now. Where the system does not tell files apart, all pages are its own."""
    if _STATUS.exists():
        lines = (line.split() for line in _STATUS.read_text().splitlines())
        kilobytes = {words[0]: int(words[1]) for words in lines if len(words) == 3 and words[2] == "kB"}
        own = kilobytes["RssAnon:"] + kilobytes["RssShmem:"]
        return Usage(own * 1024, kilobytes["RssFile:"] * 1024, kilobytes["VmHWM:"] * 1024)
    import psutil

    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return Usage(int(psutil.Process().memory_info().rss), 0, peak)
