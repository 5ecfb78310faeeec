"""The hash tables of tokdfa/core/interning.hpp against a dict: any contents, any moment of growth."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import hypothesis.strategies as st
import pytest
from hypothesis import given

if TYPE_CHECKING:
    from collections.abc import Iterator

hash_tables = pytest.importorskip("tests.checked.hash_tables", reason="only in the checked build")

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)


def colliding() -> Iterator[int]:
    """Keys that have one slot until a table has more than 64."""
    for key in range(1 << 20):
        value = (key ^ key >> 33) * 0xFF51AFD7ED558CCD & (1 << 64) - 1
        if (value ^ value >> 32) & 63 == 63:
            yield key


KEYS = st.one_of(
    st.integers(-2, 60), st.sampled_from(list(islice(colliding(), 60))), st.integers(-(1 << 63), (1 << 63) - 1)
)
#: None: the table is cleared.
KEY_STEPS = st.lists(st.one_of(KEYS, KEYS, KEYS, st.none()), max_size=150)
WORDS = st.lists(st.one_of(st.integers(-1, 2), INT32), max_size=40).map(tuple)
#: A content; a part of one that is there, by three numbers; or None: the table is cleared.
STEPS = st.lists(st.one_of(WORDS, WORDS, WORDS, st.lists(st.integers(0, 1 << 20), min_size=3, max_size=3), st.none()))


@given(KEY_STEPS)
def test_keys_are_numbered_as_by_a_dict(steps: list[int | None]) -> None:
    table, numbers = hash_tables.Keys(), dict[int, int]()
    for key in steps:
        if key is None:
            table.clear()
            numbers.clear()
        else:
            assert table.find(key) == numbers.get(key, -1)
            assert table.intern(key) == numbers.setdefault(key, len(numbers))
        assert len(table) == len(numbers)
    assert [table.of(number) for number in range(len(table))] == list(numbers)
    assert [table.find(key) for key in numbers] == list(range(len(table)))
    assert table.bytes() >= 8 * len(table) + 4 * 2 * len(table)


@given(STEPS)
def test_contents_are_numbered_as_by_a_dict(steps: list[tuple[int, ...] | list[int] | None]) -> None:
    table, numbers = hash_tables.Contents(), dict[tuple[int, ...], int]()
    for step in steps:
        if step is None:
            table.clear()
            numbers.clear()
        elif isinstance(step, tuple):
            assert table.find(step) == numbers.get(step, -1)
            assert table.intern(step) == numbers.setdefault(step, len(numbers))
        elif numbers:
            number = step[0] % len(numbers)
            content = list(numbers)[number]
            begin, end = sorted(place % (len(content) + 1) for place in step[1:])
            part = content[begin:end]
            assert table.intern_part(number, begin, end) == numbers.setdefault(part, len(numbers))
        assert len(table) == len(numbers)
    assert [table.of(number) for number in range(len(table))] == list(numbers)
    assert [table.find(content) for content in numbers] == list(range(len(table)))
    assert table.bytes() >= sum(4 * len(content) + 8 + 4 * 2 for content in numbers)


@given(st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 2), max_size=4).map(tuple)), max_size=150))
def test_a_content_that_is_appended_is_found_by_its_first_number(steps: list[tuple[bool, tuple[int, ...]]]) -> None:
    table, contents = hash_tables.Contents(), list[tuple[int, ...]]()
    for appends, content in steps:
        if appends or content not in contents:
            contents.append(content)
            assert (table.append if appends else table.intern)(content) == len(contents) - 1
        assert table.find(content) == table.intern(content) == contents.index(content)
    assert [table.of(number) for number in range(len(table))] == contents


@given(INT32, INT32)
def test_pairs_are_keys(first: int, second: int) -> None:
    key = hash_tables.pair_key(first, second) & (1 << 64) - 1
    assert divmod(key, 1 << 32) == (first % (1 << 32), second % (1 << 32))
