"""DirectMerge as 002 prints it: one transformation of the automaton for each merge, in plain Python.

Source: Tran-Thien 2024, the four cases for a != b; for a = b the states are told apart by the parity of the run of a's
that has led there. Shares nothing with the package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: State -> token -> state.
Rows = dict[int, dict[int, int]]


def direct_merge(
    rows: Rows, accepting: set[int], start: int, rules: Iterable[tuple[int, int, int]]
) -> tuple[Rows, set[int], int]:
    """Carry out the rules (left, right, result) in order. `rows`: trimmed; a copy is changed."""
    rows, accepting = {state: dict(row) for state, row in rows.items()}, set(accepting)
    present = {token for row in rows.values() for token in row}
    for left, right, result in rules:
        if left not in present or right not in present:
            continue
        if left == right:
            rows, accepting, start = _merge_twins(rows, accepting, start, left, result)
        else:
            _merge_pair(rows, accepting, start, left, right, result)
        present.add(result)
    return rows, accepting, start


def _merge_pair(rows: Rows, accepting: set[int], start: int, a: int, b: int, ab: int) -> None:
    entered = {row[a] for row in rows.values() if a in row}
    for state in [state for state in entered if b in rows[state]]:
        row = rows[state]
        begins = [source for source, leaving in rows.items() if leaving.get(a) == state]
        for source in begins:
            assert ab not in rows[source], "two ways to the same token"
            rows[source][ab] = row[b]
        first = state == start or any(
            target == state and token != a for leaving in rows.values() for token, target in leaving.items()
        )
        second = state in accepting or any(token != b for token in row)
        if not first and second:
            del row[b]
        elif first and not second:
            for source in begins:
                del rows[source][a]
        elif first and second:
            twin = max(rows) + 1
            for source in begins:
                rows[source][a] = twin
            rows[twin] = {token: target for token, target in row.items() if token != b}
            if state in accepting:
                accepting.add(twin)
        else:
            for source in begins:
                del rows[source][a]
            del rows[state]


def _merge_twins(rows: Rows, accepting: set[int], start: int, a: int, aa: int) -> tuple[Rows, set[int], int]:
    """State s becomes 2 s (the run of a's so far is even) and 2 s + 1 (one a of it is left over)."""
    made: Rows = {}
    for state, row in rows.items():
        others = {token: 2 * target for token, target in row.items() if token != a}
        made[2 * state], made[2 * state + 1] = dict(others), others
        if a in row:
            made[2 * state][a] = 2 * row[a] + 1
            if a in rows[row[a]]:
                assert aa not in row, "two ways to the same token"
                made[2 * state][aa] = 2 * rows[row[a]][a]
    return made, {2 * state + odd for state in accepting for odd in (0, 1)}, 2 * start
