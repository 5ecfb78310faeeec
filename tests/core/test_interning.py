"""The interning table against a dict: any contents, any room at first, any moment of growth."""

from __future__ import annotations

import contextlib

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from tokdfa.core import interning
from tokdfa.core.budget import Budget, spending
from tokdfa.core.interning import (
    ABSENT,
    NEEDS_ROOM,
    Column,
    InterningTable,
    Limit,
    append,
    grow_together,
    hash_words,
    intern,
)
from tokdfa.errors import LimitExceeded

WORD = st.integers(-(1 << 63), (1 << 63) - 1)
CONTENTS = st.lists(st.lists(st.one_of(st.integers(0, 3), WORD), max_size=6), max_size=60)
ROOMS = st.integers(1, 5)


def words_of(table: InterningTable) -> list[tuple[int, ...]]:
    return [tuple(table.content(number).tolist()) for number in range(len(table))]


def check(table: InterningTable) -> None:
    """What holds of a table at any time."""
    room = table.room
    assert len(table) <= room <= table.limit.most
    assert 2 * room <= len(table.slots) == 1 << len(table.slots).bit_length() - 1
    assert (table.slots >= 0).sum() == len(table)
    for name, column in table.columns.items():
        kind = table._kinds[name]
        assert column.shape[0] == room * (kind.width if kind.flat else 1) + kind.ends
        assert column.nbytes == kind.bytes_of(room)
    bytes_of = sum(array.nbytes for array in (table.slots, table.begin, table.words, *table.columns.values()))
    assert table.nbytes == table._bytes_of(room, len(table.words)) == bytes_of


def same_hash(contents: list[int]) -> list[int]:
    """Another content of two words with the hash of this one."""
    seed, factor, whole = 0x9E3779B97F4A7C15, 0xFF51AFD7ED558CCD, (1 << 64) - 1

    def mixed(word: int) -> int:
        value = (seed ^ word & whole) * factor & whole
        return value ^ value >> 32

    other = contents[0] + 1
    last = mixed(contents[0]) ^ contents[1] & whole ^ mixed(other)
    return [other, last - (1 << 64) if last >> 63 else last]


@given(contents=CONTENTS, entries=ROOMS, words=ROOMS)
def test_like_a_dict(contents, entries, words):
    columns = {"value": Column(np.int32, fill=-1), "ends": Column(np.int8, ends=True)}
    table = InterningTable(columns, entries=entries, words=words)
    numbers: dict[tuple[int, ...], int] = {}
    for content in contents:
        assert table.find(*content) == numbers.get(tuple(content), ABSENT)
        number = table.intern(content)
        assert number == numbers.setdefault(tuple(content), len(numbers))
        assert table.columns["value"][number] in (-1, number)
        table.columns["value"][number] = number
        check(table)
    assert words_of(table) == list(numbers)
    assert table.columns["value"][: len(table)].tolist() == list(range(len(table)))
    table.clear()
    assert len(table) == 0
    assert all(table.find(*content) == ABSENT for content in contents)
    assert [table.intern(content) for content in numbers] == list(range(len(numbers)))


@given(keys=st.lists(st.one_of(st.integers(-3, 3), WORD), max_size=60), entries=ROOMS)
def test_keys_like_a_dict(keys, entries):
    table = InterningTable(
        {"pair": Column(np.int16, 2), "flat": Column(np.uint8, 3, 7, True)}, keys=True, entries=entries
    )
    numbers: dict[int, int] = {}
    for key in keys:
        assert table.find(key) == numbers.get(key, ABSENT)
        assert table.intern([key]) == numbers.setdefault(key, len(numbers))
        check(table)
    assert words_of(table) == [(key,) for key in numbers]
    assert table.columns["pair"].shape == (table.room, 2)
    assert (table.columns["flat"] == 7).all()
    assert len(table.columns["flat"]) == 3 * table.room


@pytest.mark.parametrize("at", range(12))
@pytest.mark.parametrize("lacking", ["entries", "words", "both"])
def test_growing_is_asked_for_at_every_count(at, lacking):
    """A kernel that says NEEDS_ROOM has changed nothing, and finds what it made when it is called again."""
    contents = [np.array(range(k, k + k % 4), dtype=np.int64) for k in range(12)]
    table = InterningTable(
        entries=max(1, at) if lacking != "words" else 16,
        words=max(1, sum(map(len, contents[:at]))) if lacking != "entries" else 64,
    )
    plain = InterningTable(entries=64, words=64)
    for k, content in enumerate(contents):
        before = words_of(table), table.slots.copy()
        number = intern(content, 0, len(content), table.struct)
        if number == NEEDS_ROOM:
            assert words_of(table) == before[0]
            assert np.array_equal(table.slots, before[1])
            table.grow()
            number = intern(content, 0, len(content), table.struct)
        elif k == at:
            table.grow()
        assert number == intern(content, 0, len(content), plain.struct)
        check(table)
    assert words_of(table) == words_of(plain)


@given(content=st.lists(st.integers(0, 99), min_size=2, max_size=2))
def test_equal_hashes_of_different_contents(content):
    other = same_hash(content)
    both = [np.array(part, dtype=np.int64) for part in (content, other)]
    assert hash_words(both[0], 0, 2) == hash_words(both[1], 0, 2)
    table = InterningTable(entries=1)
    assert [table.intern(part) for part in (content, other, content, other)] == [0, 1, 0, 1]
    table.grow(entries=40)
    assert (table.find(*content), table.find(*other), table.find(content[0])) == (0, 1, ABSENT)


@pytest.mark.parametrize("entries", [1, 2, 3, 64])
def test_appended_contents(entries):
    """Equal entries are all kept, and the first of them is found, before and after growing."""
    table = InterningTable(entries=entries)
    content = np.array([5, 6], dtype=np.int64)
    for number in range(10):
        while (made := append(content, 0, number % 3, table.struct)) == NEEDS_ROOM:
            table.grow()
        assert made == number
        check(table)
        assert [table.find(*content[:size]) for size in range(min(number + 1, 3))] == list(range(min(number + 1, 3)))
    assert table.intern([7]) == 10


def test_no_more_entries_than_the_limit():
    table = InterningTable(keys=True, entries=64, limit=Limit(5, "max_things", "more than 5 things"))
    assert table.room == 5
    for key in range(5):
        table.intern([key])
    with pytest.raises(LimitExceeded, match="more than 5 things") as caught:
        table.intern([5])
    assert caught.value.limit == "max_things"
    assert table.intern([3]) == 3
    check(table)


@pytest.mark.parametrize("megabytes", [0.0, 0.001, 0.01, 0.1])
@pytest.mark.parametrize("keys", [False, True])
def test_past_the_budget_the_table_is_whole(megabytes, keys):
    table = InterningTable({"value": Column(np.int64)}, keys=keys, entries=2)
    made = 0
    with contextlib.suppress(LimitExceeded), spending(Budget(1.0, megabytes), "a table"):
        for made in range(1 << 16):
            number = table.intern([made])
            table.columns["value"][number] = made
    assert made + 1 < 1 << 16
    assert len(table) == made
    check(table)
    assert words_of(table) == [(key,) for key in range(made)]
    assert table.columns["value"][:made].tolist() == list(range(made))
    assert [table.find(key) for key in range(made + 1)] == [*range(made), ABSENT]
    assert table.intern([made]) == made  # without a budget


def test_tables_that_grow_together_do_so_or_do_not():
    tables = [InterningTable(entries=4, limit=Limit(most)) for most in (64, 5)]
    for table in tables:
        for number in range(4):
            table.intern([number])
    with contextlib.suppress(LimitExceeded), spending(Budget(1.0, 0.0), "tables"):
        grow_together(*tables)
    assert [table.room for table in tables] == [4, 4]
    grow_together(*tables)
    assert [table.room for table in tables] == [8, 5]
    tables[1].intern([4])
    assert intern(np.array([5]), 0, 1, tables[1].struct) == NEEDS_ROOM
    with pytest.raises(LimitExceeded, match="a table is full"):
        grow_together(*tables)
    assert [table.room for table in tables] == [8, 5]
    for table in tables:
        check(table)


def test_a_failing_allocation_leaves_the_table_whole(monkeypatch):
    table = InterningTable({"value": Column(np.int64)}, entries=2, words=8)
    assert [table.intern([1]), table.intern([2])] == [0, 1]

    def fail(self, room):
        raise MemoryError

    monkeypatch.setattr(interning.Column, "make", fail)
    with pytest.raises(MemoryError):
        table.intern([3])
    check(table)
    assert [table.find(1), table.find(2), table.find(3)] == [0, 1, ABSENT]
