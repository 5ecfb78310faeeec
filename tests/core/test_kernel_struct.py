"""Structs: kernels read and write the very arrays, of any shape and type, and refuse what is no such array."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from tokdfa.core.jit import kernel
from tokdfa.core.kernel_struct import Struct, struct_at


class Pair(Struct, fields=("words", "table")):
    """Two arrays."""


@kernel
def _use_kernel(pair, place):  # type: ignore[no-untyped-def]
    """Add a word to its row of the table; the sum of the row, and the shape."""
    for column in range(pair.table.shape[1]):
        pair.table[place, column] += pair.words[place]
    return pair.table[place].sum(), pair.table.shape[0], pair.table.shape[1], len(pair.words)


@pytest.mark.parametrize("words", [np.uint8, np.int64, np.bool_])
@pytest.mark.parametrize("table", [np.int32, np.uint64])
def test_a_kernel_reads_and_writes_the_arrays(words, table):
    arrays = np.array([1, 0, 1], dtype=words), np.arange(12, dtype=table).reshape(3, 4)
    pair = Pair(*arrays)
    assert _use_kernel(pair, 2) == (8 + 9 + 10 + 11 + 4, 3, 4, 3)
    assert arrays[1][2].tolist() == [9, 10, 11, 12]
    assert arrays[1][:2].ravel().tolist() == list(range(8))


def test_a_struct_keeps_its_arrays_alive():
    pairs = [Pair(np.full(2, number), np.full((2, 3), number)) for number in range(200)]
    gc.collect()
    junk = [np.full((2, 3), -1) for _ in range(200)]
    assert [_use_kernel(pair, 1)[0] for pair in pairs] == [6 * number for number in range(200)]
    assert len(junk) == 200


def test_what_is_no_array_of_a_struct_is_refused():
    good = np.zeros((4, 4), dtype=np.int32)
    with pytest.raises(TypeError, match="Pair has 2 arrays, not 1"):
        Pair(good)
    for bad in (good[:, ::2], good.T[1:3], np.zeros((2, 2, 2), dtype=np.int32)):
        with pytest.raises(TypeError, match="C-contiguous and have one or two dimensions"):
            Pair(good[0], bad)


class Declared(Struct, fields=("words", "table"), declared={"words": ("int64", 1), "table": ("uint8", 2)}):
    """Its arrays are known before there are any."""


declared_at = struct_at(Declared)


@kernel
def _sum_kernel(address):  # type: ignore[no-untyped-def]
    """The sum of all words and of the table."""
    both = declared_at(address)
    return both.words.sum() + both.table.sum()


def test_a_struct_by_its_address():
    both = Declared(np.arange(5), np.ones((2, 3), dtype=np.uint8))
    assert _sum_kernel(both.address) == 16
    assert both._numba_type_ is Declared.kind


def test_first_arrays_beside_others_of_another_struct():
    """The other arrays are alive as long as the new struct is, and the old struct is as it was."""
    first = Declared(np.arange(5), np.full((2, 3), 2, dtype=np.uint8))
    second = Declared.with_others(first, first.table, np.full(3, 7))
    assert _sum_kernel(second.address) == 21 + 12
    assert _use_kernel(second, 1) == (27, 2, 3, 3)
    assert _sum_kernel(first.address) == 10 + 6 + 27
    del first
    gc.collect()
    junk = [np.full((2, 3), 1, dtype=np.uint8) for _ in range(200)]
    assert _sum_kernel(second.address) == 21 + 6 + 27
    assert len(junk) == 200


def test_arrays_that_were_not_declared_are_refused():
    """A kernel that takes an address could not tell."""
    for words, table in ((np.int32, np.uint8), (np.int64, np.int8)):
        with pytest.raises(TypeError, match="arrays of a Declared are not those declared"):
            Declared(np.zeros(1, dtype=words), np.zeros((1, 1), dtype=table))
    with pytest.raises(TypeError, match="not those declared"):
        Declared(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.uint8))
    with pytest.raises(TypeError, match="arrays of Pair are not declared"):
        struct_at(Pair)


class Outer(Struct, fields=("inner", "words")):
    """A struct in a struct."""


@kernel
def _use_inner_kernel(outer, place):  # type: ignore[no-untyped-def]
    """Add the outer struct's word to the inner one's; the sum of what the inner one has then."""
    outer.inner.words[place] += outer.words[place]
    return _use_kernel(outer.inner, place)[0]


def test_a_struct_in_a_struct():
    inner = Pair(np.array([1, 2, 3]), np.zeros((3, 2), dtype=np.int32))
    outers = [Outer(inner, np.arange(3)) for _ in range(2)]
    words = inner._arrays[0]
    del inner
    gc.collect()
    assert [_use_inner_kernel(outer, 2) for outer in outers] == [10, 24]
    assert words.tolist() == [1, 2, 7]
    assert outers[0]._numba_type_ is outers[1]._numba_type_


def test_a_declared_struct_in_a_struct():
    class Inner(Struct, fields=("words",), declared={"words": ("int64", 1)}):
        pass

    class Holder(Struct, fields=("inner", "words"), declared={"inner": Inner, "words": ("int32", 1)}):
        pass

    at = struct_at(Holder)

    @kernel
    def read(address):  # type: ignore[no-untyped-def]
        holder = at(address)
        return holder.inner.words[1] + holder.words[0]

    holder = Holder(Inner(np.array([1, 20])), np.array([3], dtype=np.int32))
    assert read(holder.address) == 23
    with pytest.raises(TypeError, match="not those declared"):
        Holder(Pair(np.zeros(1), np.zeros((1, 1))), np.array([3], dtype=np.int32))
    with pytest.raises(TypeError, match="Pair are not declared"):

        class Wrong(Struct, fields=("inner",), declared={"inner": Pair}):
            pass
