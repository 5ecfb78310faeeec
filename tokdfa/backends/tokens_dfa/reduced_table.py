"""The reduced table of a tokens DFA: states x token classes -> state, with equal columns and equal rows kept once.

Words. A *tokens DFA* is a DFA whose letters are tokens. Its table is sparse: a row lists the token classes allowed in
its states, ascending, and the state each leads to; states with equal rows share one. A token class is the tokens with
equal columns (see `tokdfa.token_automata.columns`), its *members*. So a transition is a look-up of the token's class
and a binary search in a short row, and a mask is the union of the members of a row's classes.

States are numbered in the order in which tokens first reach them, the start is 0; states that no tokens reach, and
those from which no tokens complete the text, are left out. So tables built in different ways are equal arrays.

Source: 001, part 6 (the reduced table). Sparse rows and the numbering are ours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.automata.liveness import coaccessible_states
from tokdfa.core.budget import spend
from tokdfa.token_automata.columns import Columns, distinct_rows, list_members, places_of, reached_states, transpose


class ClassRows(NamedTuple):
    """The table before rows are shared: state s has the entries ``offsets[s] .. offsets[s + 1] - 1``.

    ``offsets``: int64, shape (states + 1,); ``classes``: int32, token classes, ascending in a row; ``targets``: int32,
    states; ``accepting``: bool, shape (states,); ``start``.
    """

    offsets: npt.NDArray[np.int64]
    classes: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]
    accepting: npt.NDArray[np.bool_]
    start: int


class ReducedTable(NamedTuple):
    """A tokens DFA; all arrays are as narrow as their values allow.

    ``row_of``: shape (states,), the row of each state; ``offsets``: int32, shape (rows + 1,); ``classes``, ``targets``:
    one entry a transition; ``accepting``: bool, shape (states,); ``member_offsets``: int32, shape (classes + 1,);
    ``members``: int32, the ids of the tokens of each class, in the trie's order; ``ranks``: int32, the tokens that have
    a class, by rank, ascending; empty if ``class_of`` is dense; ``class_of``: the class of each of ``ranks``, or of
    each rank, the number of classes standing for none.
    """

    row_of: npt.NDArray[np.integer]
    offsets: npt.NDArray[np.int32]
    classes: npt.NDArray[np.integer]
    targets: npt.NDArray[np.integer]
    accepting: npt.NDArray[np.bool_]
    member_offsets: npt.NDArray[np.int32]
    members: npt.NDArray[np.int32]
    ranks: npt.NDArray[np.int32]
    class_of: npt.NDArray[np.integer]

    @property
    def state_count(self) -> int:
        return len(self.row_of)

    @property
    def row_count(self) -> int:
        return len(self.offsets) - 1

    @property
    def class_count(self) -> int:
        return len(self.member_offsets) - 1

    @property
    def is_dense(self) -> bool:
        """Whether ``class_of`` has an entry for every rank."""
        return not len(self.ranks) and len(self.class_of) > 0

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)

    def row(self, state: int) -> slice:
        """Where the entries of `state` lie in `classes` and `targets`."""
        row = self.row_of[state]
        return slice(int(self.offsets[row]), int(self.offsets[row + 1]))

    def members_of(self, token_class: int) -> npt.NDArray[np.int32]:
        """The tokens of a class."""
        return self.members[self.member_offsets[token_class] : self.member_offsets[token_class + 1]]


#: What an entry of the rows takes, over all passes.
NS_PER_ENTRY = 30


def class_rows(columns: Columns, accepting: npt.NDArray[np.bool_], start: int) -> ClassRows:
    """The rows of all states. With bound tokens they may need `tokdfa.backends.tokens_dfa.bound_tokens.determinize`."""
    offsets, classes, targets = transpose(len(accepting), columns.offsets, columns.sources, columns.targets)
    return ClassRows(offsets, classes, targets, accepting, start)


def live_rows(rows: ClassRows) -> ClassRows:
    """Without the transitions to states from which no tokens complete the text. The start may be such a state."""
    live = coaccessible_states(rows.offsets, rows.targets, rows.accepting)
    kept = live[rows.targets]
    before = np.concatenate([[0], np.cumsum(kept)])
    return rows._replace(offsets=before[rows.offsets], classes=rows.classes[kept], targets=rows.targets[kept])


def reduce_rows(rows: ClassRows, columns: Columns, order: npt.NDArray[np.int32], *, share: bool = True) -> ReducedTable:
    """The table of the states that tokens reach.

    `columns`: what `rows` were made from; `order`: int32, the token of each rank; `share`: keep equal rows once.
    Classes are numbered in order of their first token, without those that no reached state allows.
    """
    spend(NS_PER_ENTRY * (len(rows.classes) + len(columns.ranks)))
    rows = _reached(rows)
    ranks, class_of, classes, targets = columns.ranks, columns.class_of, rows.classes, rows.targets
    offsets, class_count = rows.offsets, columns.class_count
    if not columns.in_order or len(classes) < len(columns.sources):  # else nothing has dropped out
        is_used = np.zeros(class_count, dtype=np.bool_)
        is_used[classes] = True
        kept = is_used[class_of]
        ranks, class_of = ranks[kept], class_of[kept]
        first = np.empty(class_count, dtype=np.int32)  # the place of each class's first token
        first[class_of[::-1]] = np.arange(len(class_of) - 1, -1, -1, dtype=np.int32)
        used = np.flatnonzero(is_used)
        used = used[np.argsort(first[used])]
        number, class_count = np.empty(class_count, dtype=np.int32), len(used)
        number[used] = np.arange(class_count, dtype=np.int32)
        class_of = number[class_of]
        by_class = transpose(class_count, offsets, number[classes], targets)
        offsets, classes, targets = transpose(len(rows.accepting), *by_class)  # sorted by class again
    narrow = _narrow(class_count)
    is_dense = len(ranks) * (4 + np.dtype(narrow).itemsize) >= len(order) * np.dtype(narrow).itemsize
    dense = np.full(len(order) if is_dense else 0, class_count, dtype=np.int32)
    member_offsets, members = list_members(ranks, class_of, order, class_count, dense)
    row_of = np.arange(len(rows.accepting), dtype=np.int32)
    if share:
        row_of, offsets, classes, targets = distinct_rows(offsets, classes, targets)
    return ReducedTable(
        row_of.astype(_narrow(len(offsets))),
        offsets.astype(np.int32),
        classes.astype(narrow),
        targets.astype(_narrow(len(rows.accepting))),
        rows.accepting.copy(),
        member_offsets,
        members,
        np.zeros(0, dtype=np.int32) if is_dense else ranks.copy(),
        (dense if is_dense else class_of).astype(narrow),
    )


def _narrow(count: int) -> type[np.integer]:
    """An unsigned type for 0..count, the last being free for "none"."""
    return np.uint16 if count < 1 << 16 else np.uint32


def _reached(rows: ClassRows) -> ClassRows:
    """The states that tokens reach, numbered in the order of reaching."""
    order, number, offsets = reached_states(rows.start, rows.offsets, rows.targets)
    if len(order) == len(number) and (order[:-1] < order[1:]).all():
        return rows
    places, _ = places_of(rows.offsets, order)
    return ClassRows(offsets, rows.classes[places], number[rows.targets[places]], rows.accepting[order], 0)
