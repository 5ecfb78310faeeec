"""Some hundred constraints made, used and dropped leave nothing behind (`tests.leaks` makes thousands)."""

from __future__ import annotations

import ctypes
import itertools

import pytest

from tests.leaks import ALLOWED, allocated, backends, use
from tokdfa.vocabulary.vocabulary import Vocabulary

COUNT = 300


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="nothing says what is allocated")
def test_dropped_constraints_leave_nothing_behind() -> None:
    pairs = (bytes(pair) for pair in itertools.product(b"abcdefghij0123456789, ", repeat=2))
    vocabulary = Vocabulary([*(bytes([byte]) for byte in range(256)), *pairs, b""], end_tokens=[256 + 22 * 22])
    made, numbers = backends(vocabulary), itertools.count()

    def grow() -> int:
        before = allocated()
        for number in itertools.islice(numbers, COUNT):
            use(made[number // 2 % len(made)], number)
        return allocated() - before

    grow()  # fills caches
    assert min(grow() for _ in range(3)) < ALLOWED * COUNT
