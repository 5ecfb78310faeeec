"""Ready masks of random tables, and masks put together from classes, against the tokens of each class."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokdfa.backends.tokens_dfa import ready_masks
from tokdfa.backends.tokens_dfa.ready_masks import make_masks
from tokdfa.mask import mask_to_ids, mask_words


class Table(NamedTuple):
    """What of a `ReducedTable` masks are made of; `allowed`: the classes of each row."""

    allowed: list[list[int]]
    members: np.ndarray
    member_offsets: np.ndarray
    row_of: np.ndarray
    accepting: np.ndarray

    @property
    def classes(self) -> np.ndarray:
        return np.array([one for row in self.allowed for one in row], dtype=np.uint16)

    @property
    def offsets(self) -> np.ndarray:
        return np.append(0, np.cumsum([len(row) for row in self.allowed])).astype(np.int32)

    @property
    def class_count(self) -> int:
        return len(self.member_offsets) - 1

    def tokens(self, state: int, ends: list[int]) -> list[int]:
        """The tokens of a mask in the order in which they are listed."""
        found = [
            token
            for one in self.allowed[self.row_of[state]]
            for token in self.members[self.member_offsets[one] : self.member_offsets[one + 1]].tolist()
        ]
        return found + (ends if self.accepting[state] else [])


SIZE, ENDS = 90, [88, 89]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Classes of 1 to 80 tokens: more than a mask has words, or fewer."""
    cuts = sorted(draw(st.sets(st.integers(1, 87), max_size=6)))
    count = len(cuts) + 1
    rows = draw(st.lists(st.sets(st.integers(0, count - 1)).map(sorted), min_size=1, max_size=5))
    row_of = draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=8))
    accepting = draw(st.lists(st.booleans(), min_size=len(row_of), max_size=len(row_of)))
    members = np.array(draw(st.permutations(range(88))), dtype=np.int32)
    bounds = np.array([0, *cuts, 88], dtype=np.int32)
    return Table(rows, members, bounds, np.array(row_of, dtype=np.uint16), np.array(accepting))


@given(tables(), st.sampled_from([0, 5, 60]), st.integers(0, 300))
def test_masks(table: Table, most_listed: int, words: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ready_masks, "NARROW", most_listed)
        ready = make_masks(table, SIZE, np.array(ENDS, dtype=np.int32), 4 * words)  # type: ignore[arg-type]
    made: dict[Any, Any] = {}
    used, is_full = 0, False
    for state in range(len(table.row_of)):
        tokens = table.tokens(state, ENDS)
        key = tuple(table.allowed[table.row_of[state]]), bool(table.accepting[state])
        is_narrow = len(tokens) <= most_listed
        room = len(tokens) if is_narrow else mask_words(SIZE)
        if key not in made and not is_full:
            is_full = used + room > words
            if not is_full:
                made[key] = (ready.narrow if is_narrow else ready.packed)[state]
                used += room
        if key not in made:
            assert state not in ready.narrow
            assert state not in ready.packed
            continue
        mask = (ready.narrow if is_narrow else ready.packed)[state]
        assert mask is made[key]
        assert (mask.tolist() if is_narrow else mask_to_ids(mask).tolist()) == (tokens if is_narrow else sorted(tokens))
    assert (ready.mask_count, ready.nbytes) == (len(made), 4 * used)
