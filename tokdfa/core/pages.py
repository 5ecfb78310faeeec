"""Memory that the system hands out page by page, for tables whose greatest size is known and rarely reached."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


def zeros_by_page(count: int, dtype: Any = np.int32) -> npt.NDArray[Any]:
    """Zeros, shape (count,), whose memory the system hands out page by page as it is touched, some µs each.

    numpy asks for large pages, and when one of these is touched first a text may wait for 5 to 14 ms.
    """
    size = np.dtype(dtype).itemsize * count
    if hasattr(mmap, "MAP_PRIVATE"):  # the default would be memory that forked processes share
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    else:
        memory = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, dtype=dtype)
