"""A constraint and a pre-tokenizer at once: the constraint's texts, with a marker at every border of pieces.

The product of the constraint's automaton and the marked language (`tokdfa.bpe.pretokenizer_dfa`): a byte moves both, a
marker only the pre-tokenizer. It accepts exactly the marked texts whose text satisfies the constraint. States from
which nothing is accepted are gone, so a border that the rest of the constraint rules out is never even begun.

A marker needs a letter. 0xFF occurs in no UTF-8 text, so during the construction it stands for the marker
(`MarkedDfa.as_bytes`) and the algebra of byte automata does the work; afterwards it is taken out again.

*Byte fallback* (`tokdfa.bpe.byte_fallback`) tells two ways of reading a byte apart: as part of a character that is a
token, and as a byte token. `PieceAutomaton` has a second set of letters for the latter, and its states carry the state
of the fallback as well.

Sizes: nearly as many states as the constraint alone where it is ASCII; 2,000 more for each place where any character
may stand (Llama 3, Tekken), which is what it takes to know the class of a character before it is complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.automata.algebra import _BOTH, _explore_pairs_kernel, intersection, trim, union
from tokdfa.automata.dfa import Dfa
from tokdfa.automata.explore import STATE_LIMIT
from tokdfa.bpe.pretokenizer_dfa import MARKER_BYTE, MarkedDfa
from tokdfa.errors import EmptyLanguageError, LimitExceeded
from tokdfa.jit import kernel

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from tokdfa.bpe.byte_fallback import ByteFallback

#: Another byte that no UTF-8 text holds, so that nothing is read by it.
_NEVER = 0xFE


def marked_product(
    dfa: Dfa, marked: MarkedDfa | None, starts: Iterable[int] = (), limit: int = STATE_LIMIT
) -> MarkedDfa:
    """The marked texts of `marked` (None: without pre-tokenizer, so without markers) that satisfy `dfa`.

    `starts`: the states of `marked` from any of which the text may go on, if it does not begin here. Raises
    EmptyLanguageError if the pre-tokenizer takes no text of the constraint, LimitExceeded past `limit` states.
    Cost: some 1 us a state; 1 to 40 ms.
    """
    if marked is None:
        whole = trim(dfa)
        markers = np.full(whole.state_count, -1, dtype=np.int32)
        return MarkedDfa(whole.transitions, whole.byte_class, markers, whole.accepting, whole.start)
    table = dfa.byte_table()
    table[:, MARKER_BYTE] = np.arange(len(table))
    table[:, _NEVER] = -1
    constraint = Dfa.from_table(table, dfa.accepting, dfa.start)
    borders = reduce(union, [marked.as_bytes(start) for start in starts or (marked.start,)])
    product = intersection(constraint, borders, limit)
    if not product.state_count:
        raise EmptyLanguageError("no text of the constraint is text to the tokenizer: its pre-tokenizer loses a part")
    column = int(product.byte_class[MARKER_BYTE])
    if column == product.byte_class[_NEVER]:  # no markers at all
        markers = np.full(product.state_count, -1, dtype=np.int32)
        return MarkedDfa(product.transitions, product.byte_class, markers, product.accepting, product.start)
    byte_class = product.byte_class.copy()
    byte_class[MARKER_BYTE] = byte_class[_NEVER]
    byte_class[byte_class > column] -= 1
    transitions = np.delete(product.transitions, column, axis=1)
    return MarkedDfa(transitions, byte_class, product.transitions[:, column], product.accepting, product.start)


def states_after(marked: MarkedDfa, pieces_of_tokens: Iterable[bytes]) -> list[int]:
    """The states of `marked` after the bytes of some tokens, with markers only between tokens. Empty if none is left.

    O(bytes), a few states at a time.
    """
    alive = {marked.start}
    for spelled in pieces_of_tokens:
        alive |= {marked.after_marker(state) for state in alive}
        alive = {marked.run(spelled, state) for state in alive} - {-1}
    return sorted(alive)


@dataclass(frozen=True, eq=False)
class PieceAutomaton:
    """The marked product with byte tokens as letters of their own, in flat arrays for kernels.

    `table`: int32, shape (states * classes,), row offset + class -> row offset of the next state, or -1; `classes`;
    `byte_class`: uint8, shape (256,), the class of a byte in the text of a token; `fallback_class`: int32, shape
    (256,), the class of a byte token, -1 if there is none; `marker`: int32, shape (states,), state or -1; `can_stop`:
    uint8, shape (states,), bit 0: the text may end here, bit 1: a border may stand here, bit 2: inside a character that
    byte tokens have begun. `start`: a state.
    """

    table: npt.NDArray[np.int32]
    classes: int
    byte_class: npt.NDArray[np.uint8]
    fallback_class: npt.NDArray[np.int32]
    marker: npt.NDArray[np.int32]
    can_stop: npt.NDArray[np.uint8]
    start: int

    @property
    def state_count(self) -> int:
        return len(self.marker)

    @property
    def nbytes(self) -> int:
        return self.table.nbytes + self.marker.nbytes + self.can_stop.nbytes


#: Bits of `PieceAutomaton.can_stop`.
ENDS, BORDERS, INSIDE = 1, 2, 4


def piece_automaton(product: MarkedDfa, fallback: ByteFallback | None, limit: int = STATE_LIMIT) -> PieceAutomaton:
    """The automaton of `product`, with byte tokens if there is a `fallback`. LimitExceeded past `limit` states."""
    table: npt.NDArray[np.int32] = product.transitions
    marker: npt.NDArray[np.int32] = product.marker
    accepting: npt.NDArray[np.bool_] = product.accepting
    inside = np.zeros(len(marker), dtype=np.bool_)
    fallback_class = np.full(256, -1, dtype=np.int32)
    start = product.start
    if fallback is not None:
        table, marker, accepting, inside, fallback_class = _add_fallback(product, fallback, limit)
        start = 0
    classes = table.shape[1]
    can_stop = accepting * np.uint8(ENDS) | (marker >= 0) * np.uint8(BORDERS) | inside * np.uint8(INSIDE)
    rows = np.where(table >= 0, table * np.int32(classes), np.int32(-1)).astype(np.int32).ravel()
    return PieceAutomaton(
        rows, classes, np.array(product.byte_class), fallback_class, np.array(marker), can_stop, start
    )


def _add_fallback(product: MarkedDfa, fallback: ByteFallback, limit: int) -> tuple[Any, ...]:
    """(table, marker, accepting, inside a character, class of each byte token) of product x fallback."""
    spoken, byte_kinds = fallback.byte_kinds
    both = product.byte_class[spoken].astype(np.int64) * 256 + byte_kinds
    _, first_of, kinds = np.unique(both, return_index=True, return_inverse=True)
    representatives = spoken[first_of]
    plain = product.class_count
    first = np.concatenate(
        [product.transitions, product.marker[:, None], product.transitions[:, product.byte_class[representatives]]],
        axis=1,
    )
    between = np.full((len(fallback.table), plain + 1), -1, dtype=np.int32)
    between[0] = 0  # texts of tokens and markers stand between characters
    second = np.concatenate([between, fallback.table[:, representatives]], axis=1)
    keys, table = _explore_pairs_kernel(first, second, product.start, 0, _BOTH, limit)
    if len(keys) > limit:
        raise LimitExceeded(
            f"the constraint with byte fallback needs more than {limit} states: raise max_states",
            limit="max_states",
            value=limit,
        )
    width = len(fallback.table) + 1
    inside = keys % width != 1
    accepting = product.accepting[keys // width - 1] & ~inside
    live = accepting.copy()
    while _spread_back_kernel(table, live):
        pass
    table[~live[table] & (table >= 0)] = -1
    fallback_class = np.full(256, -1, dtype=np.int32)
    fallback_class[spoken] = plain + 1 + kinds.ravel()
    return table, table[:, plain].copy(), accepting, inside, fallback_class


@kernel
def _spread_back_kernel(table, live):  # type: ignore[no-untyped-def]
    """Mark states with a live successor; returns whether any was new. Backwards, as later states are nearer the end."""
    changed = False
    for state in range(len(live) - 1, -1, -1):
        if not live[state]:
            for column in range(table.shape[1]):
                target = table[state, column]
                if target >= 0 and live[target]:
                    live[state] = True
                    changed = True
                    break
    return changed
