"""The clock: nanoseconds of single calls, with the garbage collector out of the way and one thread.

`time.perf_counter_ns` is monotonic and costs some 50 ns a call. Nothing is subtracted from samples.
"""

from __future__ import annotations

import gc
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

#: Environment of a measuring process. Thread pools read these when they are loaded, so they must be set before Python
#: starts. A fixed hash seed makes the order of sets, and with it the work of a pure-Python contender, repeatable.
ONE_THREAD: dict[str, str] = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONHASHSEED": "0",
}


@contextmanager
def collector_off() -> Iterator[None]:
    """Collect garbage now, then keep the collector off; the caller's setting comes back afterwards."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def time_call(function: Callable[[], T]) -> tuple[T, int]:
    """What `function()` returns, and how long it took in nanoseconds."""
    started = time.perf_counter_ns()
    value = function()
    return value, time.perf_counter_ns() - started
