"""Bound tokens in the table: tokens that lead on in another way than by their bytes.

If literals were muted (`tokdfa.backends.tokens_dfa.muting`), a token may lead from one state to two: by its bytes, and
as a bound token. The token then gets a class of its own (`add_bound_tokens`), and the table is made deterministic by
subset construction (`determinize`), which starts new states only where two readings really part.

Source: 001, part 5. There a bound token gets its token's number, so that one transition overwrites the other.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.backends.tokens_dfa.reduced_table import ClassRows
from tokdfa.core.budget import hold, spend
from tokdfa.errors import LimitExceeded
from tokdfa.token_automata.columns import Columns, places_of


class BoundTokens(NamedTuple):
    """Transitions that a token makes other than by its bytes.

    ``ranks``: int32, shape (G,), the token bound to each bound token, by rank; ``targets``: int32, shape (states, G),
    -1 for none.
    """

    ranks: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]


def add_bound_tokens(columns: Columns, bound_tokens: BoundTokens) -> Columns:
    """With the token of each bound token as a class of its own: what its bytes do, and what its bound tokens do.

    O(tokens + transitions of bound tokens); nothing is done token by token in Python.
    """
    bound = np.array(list(dict.fromkeys(bound_tokens.ranks.tolist())), dtype=np.int32)
    before = np.searchsorted(columns.ranks, bound)
    missing = np.sort(bound[np.append(columns.ranks, -1)[before] != bound])
    before = np.searchsorted(columns.ranks, missing)
    ranks, class_of = np.insert(columns.ranks, before, missing), np.insert(columns.class_of, before, -1)
    place = np.searchsorted(ranks, bound)
    old, new = class_of[place], columns.class_count + np.arange(len(bound), dtype=np.int32)
    class_of[place] = new

    lengths = np.diff(columns.offsets)
    known = old >= 0
    entries, _ = places_of(columns.offsets, old[known])
    by_bytes = np.repeat(new[known], lengths[old[known]]), columns.sources[entries], columns.targets[entries]
    states, which = np.nonzero(bound_tokens.targets >= 0)
    number = dict(zip(bound.tolist(), new.tolist(), strict=True))
    class_of_bound_token = np.array([number[rank] for rank in bound_tokens.ranks.tolist()], dtype=np.int32)
    by_bound_tokens = class_of_bound_token[which], states.astype(np.int32), bound_tokens.targets[states, which]
    added = np.stack([np.concatenate(pair) for pair in zip(by_bytes, by_bound_tokens, strict=True)])
    added = added[:, np.lexsort(added[::-1])]
    distinct = np.ones(added.shape[1], dtype=np.bool_)
    distinct[1:] = np.any(added[:, 1:] != added[:, :-1], axis=0)
    classes, sources, targets = added[:, distinct]

    # a class whose only tokens have become bound tokens' has none left, and leaves the table
    lengths = np.concatenate([lengths, np.bincount(classes - columns.class_count, minlength=len(bound))])
    has_tokens = np.zeros(len(lengths), dtype=np.bool_)
    has_tokens[class_of] = True
    kept = np.repeat(has_tokens, lengths)
    offsets = np.concatenate([[0], np.cumsum(np.where(has_tokens, lengths, 0))])
    all_sources, all_targets = np.concatenate([columns.sources, sources]), np.concatenate([columns.targets, targets])
    return Columns(ranks, class_of, offsets, all_sources[kept], all_targets[kept])


#: What a state takes that is made anew, without and by its entries; and what it holds without them.
NS_PER_STATE, NS_PER_ENTRY, BYTES_PER_STATE = 50_000, 100, 1_000


def determinize(rows: ClassRows, max_states: int) -> ClassRows:
    """Subset construction for rows in which a class may occur more than once.

    A set of one state keeps its number, so rows without doubles stay as they are; only the others are made anew. Raises
    LimitExceeded if that makes more than `max_states` states.
    """
    state_count = len(rows.accepting)
    bounds = rows.offsets.tolist()
    repeated = np.zeros(len(rows.classes) + 1, dtype=np.bool_)
    repeated[1:-1] = rows.classes[1:] == rows.classes[:-1]
    repeated[rows.offsets[:-1]] = False
    if not repeated.any():
        return rows
    members: list[tuple[int, ...]] = [(state,) for state in range(state_count)]
    number = {subset: state for state, subset in enumerate(members)}
    parts = [slice(begin, end) for begin, end in itertools.pairwise(bounds)]
    pieces = [(rows.classes[part], rows.targets[part]) for part in parts]
    agenda = np.unique(np.searchsorted(rows.offsets, np.flatnonzero(repeated), side="right") - 1).tolist()
    while agenda:
        state = agenda.pop()
        classes = np.concatenate([rows.classes[parts[member]] for member in members[state]])
        targets = np.concatenate([rows.targets[parts[member]] for member in members[state]])
        spend(NS_PER_STATE + NS_PER_ENTRY * len(classes))
        hold(BYTES_PER_STATE + 8 * len(classes))
        order = np.argsort(classes, kind="stable")
        classes, targets = classes[order], targets[order]
        begins = np.flatnonzero(np.diff(classes, prepend=-1))  # none where no token spells what may follow
        ends = np.append(begins[1:], len(classes))
        reached = targets[begins]
        for place in np.flatnonzero(ends - begins > 1).tolist():
            subset = tuple(sorted(set(targets[begins[place] : ends[place]].tolist())))
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
                pieces.append((classes[:0], targets[:0]))
            reached[place] = number[subset]
        pieces[state] = classes[begins], reached
    offsets = np.concatenate([[0], np.cumsum([len(classes) for classes, _ in pieces])])
    accepting = np.concatenate(
        [rows.accepting, [rows.accepting[list(subset)].any() for subset in members[state_count:]]]
    )
    return ClassRows(
        offsets,
        np.concatenate([classes for classes, _ in pieces]),
        np.concatenate([targets for _, targets in pieces]),
        accepting.astype(np.bool_),
        rows.start,
    )
