"""From merged pieces to tokens: whole pieces are replaced, markers erased.

*Whole pieces.* Some tokenizers make a piece that is a token into that token at once. For the few tokens that merging
would not make (improper ones), the encoding that merging gives is improper as a whole piece, and the token itself is
proper as a whole piece only. `use_whole_pieces` runs the automaton beside the tokens of the piece so far, as long as
they begin such an encoding.

*Markers* are erased by the subset construction: what may follow a marker may follow at once. A text has one marking
only, so a sequence has one path at most, and sets stay small.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from tokdfa.backends.proper_merge.letter_automaton import marker_letter
from tokdfa.backends.proper_merge.merging_state import too_large
from tokdfa.proper.whole_pieces import PLAIN, WHOLE
from tokdfa.token_automata.token_rows import TokenRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tokdfa.proper.canonical import Canonicity


def use_whole_pieces(rows: TokenRows, canonicity: Canonicity, begun: int) -> TokenRows:
    """`rows`, with whole pieces in place of their encodings; `begun`: the node of the whole pieces at the start."""
    replaced, whole = canonicity.whole_piece_of, canonicity.whole_pieces
    marker = marker_letter(canonicity)
    begins = [rows.start] if begun == whole.root else []
    begins += [row[marker] for row in rows.rows if marker in row]
    if begun in (PLAIN, whole.root) and all(
        _read_whole(rows, *way, marker) < 0 for way in itertools.product(set(begins), replaced)
    ):
        return rows
    terminal = whole.terminal.tolist()
    number = {(rows.start, begun): 0}
    found = [(rows.start, begun)]
    made: list[dict[int, int]] = []

    def number_of(state: int, node: int) -> int:
        if (state, node) not in number:
            number[state, node] = len(found)
            found.append((state, node))
        return number[state, node]

    for state, node in found:  # the loop sees what it appends
        row = {}
        for token, target in rows.rows[state].items():
            if token == marker:
                if not terminal[node]:
                    row[token] = number_of(target, whole.root)
            elif node != WHOLE:
                row[token] = number_of(target, whole.after(node, token))
        if node == whole.root:
            for encoding, token in replaced.items():
                end = _read_whole(rows, state, encoding, marker)
                if end >= 0:
                    row[token] = number_of(end, WHOLE)
        made.append(row)
    accepting = [rows.accepting[state] and not terminal[node] for state, node in found]
    return TokenRows(made, accepting, 0).trimmed()


def _read_whole(rows: TokenRows, state: int, encoding: tuple[int, ...], marker: int) -> int:
    """The state after `encoding`, read from `state`, if a piece may end there, else -1."""
    for token in encoding:
        state = rows.rows[state].get(token, -1)
        if state < 0:
            return -1
    return state if rows.accepting[state] or marker in rows.rows[state] else -1


def join_pieces(
    parts: Sequence[tuple[TokenRows, int]],
    canonicity: Canonicity,
    max_states: int,
    refused: frozenset[int] = frozenset(),
) -> TokenRows:
    """The automaton over tokens alone: whole pieces replaced, markers erased; trimmed.

    `parts`: automata with markers, in any of which the text may stand, each with the node of the whole pieces at its
    start; no sequence is in two.
    `refused`: tokens with which the text may not begin, unless a border stands before it. O(transitions) unless sets of
    states multiply; LimitExceeded past `max_states` of them.
    """
    marker = marker_letter(canonicity)
    rows: list[dict[int, int]] = []
    accepting: list[bool] = []
    starts = []
    for merged, begun in parts:
        part = use_whole_pieces(merged, canonicity, begun) if merged.start >= 0 else merged
        if part.start < 0:
            continue
        if len(parts) == 1 and not refused and not any(marker in row for row in part.rows):
            return part
        shift = len(rows)
        rows += [{token: target + shift for token, target in row.items()} for row in part.rows]
        accepting += part.accepting
        # A start of its own, because other ways may lead back into the start.
        starts.append(len(rows))
        first = rows[part.start + shift]
        rows.append({token: target for token, target in first.items() if token not in refused})
        accepting.append(part.accepting[part.start])
    return _erase_markers(rows, accepting, starts, marker, max_states).trimmed()


def _erase_markers(
    rows: list[dict[int, int]], accepting: list[bool], starts: Iterable[int], marker: int, max_states: int
) -> TokenRows:
    """The subset construction, a marker being read without a token."""
    number: dict[frozenset[int], int] = {}
    found: list[frozenset[int]] = []

    def number_of(states: Iterable[int]) -> int:
        closed = set(states)
        agenda = list(closed)
        while agenda:
            beyond = rows[agenda.pop()].get(marker, -1)
            if beyond >= 0 and beyond not in closed:
                closed.add(beyond)
                agenda.append(beyond)
        group = frozenset(closed)
        if group not in number:
            if len(found) == max_states:
                raise too_large("states", max_states)
            number[group] = len(found)
            found.append(group)
        return number[group]

    number_of(starts)
    alone: dict[int, int] = {}  # state -> the number of its own set, which nearly all transitions lead to
    made = []
    for group in found:  # the loop sees what it appends
        together: dict[int, set[int]] = {}
        row: dict[int, int] = {}
        for state in group:
            for token, target in rows[state].items():
                if token in row:
                    together.setdefault(token, {row[token]}).add(target)
                elif token != marker:
                    row[token] = target
        for token, target in row.items():
            if token not in together:
                if target not in alone:
                    alone[target] = number_of([target])
                row[token] = alone[target]
        for token, targets in together.items():
            row[token] = number_of(targets)
        made.append(row)
    return TokenRows(made, [any(accepting[state] for state in group) for group in found], 0)
