"""Ghosts in the table: tokens that lead on in another way than by their bytes.

If literals were muted (`tokdfa.token_automata.muting`), a token may lead from one state to two: by its bytes, and as a
ghost. The token then gets a class of its own (`add_ghosts`), and the table is made deterministic by subset construction
(`determinize`), which starts new states only where two readings really part.

Source: 001, part 5. There a ghost gets its token's number, so that one transition overwrites the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.errors import LimitExceeded
from tokdfa.token_automata.columns import Columns
from tokdfa.token_automata.reduced_table import TokenRows

if TYPE_CHECKING:
    from collections.abc import Iterable


class Ghosts(NamedTuple):
    """Transitions that a token makes other than by its bytes.

    ``ranks``: int32, shape (G,), the token bound to each ghost, by rank; ``targets``: int32, shape (states, G), -1 for
    none.
    """

    ranks: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]


def add_ghosts(columns: Columns, ghosts: Ghosts) -> Columns:
    """With the token of each ghost as a class of its own: what its bytes do, and what its ghosts do.

    O(tokens + transitions of ghosts); nothing is done token by token in Python.
    """
    bound = np.array(list(dict.fromkeys(ghosts.ranks.tolist())), dtype=np.int32)
    missing = np.setdiff1d(bound, columns.ranks)
    before = np.searchsorted(columns.ranks, missing)
    ranks, class_of = np.insert(columns.ranks, before, missing), np.insert(columns.class_of, before, -1)
    place = np.searchsorted(ranks, bound)
    old, new = class_of[place], columns.class_count + np.arange(len(bound), dtype=np.int32)
    class_of[place] = new

    lengths = np.diff(columns.offsets)
    known = old >= 0
    taken = lengths[old[known]]
    entries = np.repeat(columns.offsets[old[known]] - np.cumsum(taken) + taken, taken) + np.arange(taken.sum())
    by_bytes = np.repeat(new[known], taken), columns.sources[entries], columns.targets[entries]
    states, which = np.nonzero(ghosts.targets >= 0)
    number = dict(zip(bound.tolist(), new.tolist(), strict=True))
    class_of_ghost = np.array([number[rank] for rank in ghosts.ranks.tolist()], dtype=np.int32)
    by_ghosts = class_of_ghost[which], states.astype(np.int32), ghosts.targets[states, which]
    added = np.stack([np.concatenate(pair) for pair in zip(by_bytes, by_ghosts, strict=True)])
    added = added[:, np.lexsort(added[::-1])]
    distinct = np.ones(added.shape[1], dtype=np.bool_)
    distinct[1:] = np.any(added[:, 1:] != added[:, :-1], axis=0)
    classes, sources, targets = added[:, distinct]

    # a class whose only tokens have become ghosts' has none left, and leaves the table
    lengths = np.concatenate([lengths, np.bincount(classes - columns.class_count, minlength=len(bound))])
    has_tokens = np.zeros(len(lengths), dtype=np.bool_)
    has_tokens[class_of] = True
    kept = np.repeat(has_tokens, lengths)
    offsets = np.concatenate([[0], np.cumsum(np.where(has_tokens, lengths, 0))])
    all_sources, all_targets = np.concatenate([columns.sources, sources]), np.concatenate([columns.targets, targets])
    return Columns(ranks, class_of, offsets, all_sources[kept], all_targets[kept])


def determinize(rows: TokenRows, max_states: int) -> TokenRows:
    """Subset construction for rows in which a class may occur more than once.

    A set of one state keeps its number, so rows without doubles stay as they are; only the others are made anew. Raises
    LimitExceeded if that makes more than `max_states` states.
    """
    state_count = len(rows.accepting)
    repeated = np.zeros(len(rows.classes), dtype=np.bool_)
    repeated[1:] = rows.classes[1:] == rows.classes[:-1]
    repeated[rows.offsets[:-1][rows.offsets[:-1] < len(repeated)]] = False
    row_index = np.repeat(np.arange(state_count), np.diff(rows.offsets))
    open_states = set(row_index[repeated].tolist())
    if not open_states:
        return rows
    members: list[tuple[int, ...]] = [(state,) for state in range(state_count)]
    number = {subset: state for state, subset in enumerate(members)}
    made: dict[int, tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]] = {}
    agenda = sorted(open_states)
    while agenda:
        state = agenda.pop()
        row_classes, row_targets = _gather_rows(rows, members[state])
        groups = np.flatnonzero(np.concatenate([[True], row_classes[1:] != row_classes[:-1]]))
        targets = []
        for begin, end in zip(groups, [*groups[1:], len(row_classes)], strict=True):
            subset = tuple(np.unique(row_targets[begin:end]).tolist())
            if subset not in number:
                if len(members) >= max_states:
                    raise LimitExceeded(
                        f"muted literals split the automaton into more than {max_states} states: set "
                        "mute_literals=False, or raise max_states",
                        limit="max_states",
                        value=max_states,
                    )
                number[subset] = len(members)
                agenda.append(len(members))
                members.append(subset)
            targets.append(number[subset])
        made[state] = row_classes[groups], np.array(targets, dtype=np.int32)
    pieces = [made.get(state) or _gather_rows(rows, (state,)) for state in range(len(members))]
    offsets = np.concatenate([[0], np.cumsum([len(classes) for classes, _ in pieces])])
    accepting = np.array([rows.accepting[list(subset)].any() for subset in members])
    return TokenRows(
        offsets,
        np.concatenate([classes for classes, _ in pieces]),
        np.concatenate([targets for _, targets in pieces]),
        accepting,
        rows.start,
    )


def _gather_rows(rows: TokenRows, states: Iterable[int]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """The entries of several states as one row, classes ascending."""
    parts = [slice(*rows.offsets[state : state + 2].tolist()) for state in states]
    classes = np.concatenate([rows.classes[part] for part in parts])
    targets = np.concatenate([rows.targets[part] for part in parts])
    if len(parts) == 1:
        return classes, targets
    order = np.argsort(classes, kind="stable")
    return classes[order], targets[order]
