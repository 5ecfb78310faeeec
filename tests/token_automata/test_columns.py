"""Sparse tables in compressed rows, each function against rows as lists."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tokdfa.token_automata.columns import distinct_rows, reached_states, transpose

Rows = list[list[tuple[int, int]]]
STATES = 7
#: Rows of entries (column, value), columns ascending; one for each state.
sparse = st.lists(
    st.dictionaries(st.integers(0, STATES - 1), st.integers(0, 2), max_size=4).map(lambda row: sorted(row.items())),
    min_size=STATES,
    max_size=STATES,
)


def compressed(rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    entries = np.array([entry for row in rows for entry in row], dtype=np.int32).reshape(-1, 2)
    offsets = np.append(0, np.cumsum([len(row) for row in rows], dtype=np.int64))
    return offsets, *np.ascontiguousarray(entries.T)


def rows_of(offsets: np.ndarray, columns: np.ndarray, values: np.ndarray) -> Rows:
    entries = list(zip(columns.tolist(), values.tolist(), strict=True))
    return [entries[begin:end] for begin, end in zip(offsets.tolist(), offsets.tolist()[1:], strict=False)]


@given(sparse)
def test_transpose(rows: Rows) -> None:
    expected = [
        [(k, value) for k, row in enumerate(rows) for column, value in row if column == wanted]
        for wanted in range(STATES)
    ]
    assert rows_of(*transpose(STATES, *compressed(rows))) == expected


@given(sparse)
def test_distinct_rows(rows: Rows) -> None:
    number, *table = distinct_rows(*compressed(rows))
    kept = list(dict.fromkeys(map(tuple, rows)))
    assert rows_of(*table) == [list(row) for row in kept]
    assert number.tolist() == [kept.index(tuple(row)) for row in rows]


@given(sparse, st.integers(0, STATES - 1))
def test_reached_states(rows: Rows, start: int) -> None:
    offsets, targets, _ = compressed(rows)
    order = [start]
    for state in order:  # the loop sees what it appends
        order += [target for target in dict.fromkeys(target for target, _ in rows[state]) if target not in order]
    reached, number, new_offsets = reached_states(start, offsets, targets)
    assert reached.tolist() == order
    assert number.tolist() == [order.index(state) if state in order else -1 for state in range(STATES)]
    assert new_offsets.tolist() == [0, *np.cumsum([len(rows[state]) for state in order]).tolist()]
