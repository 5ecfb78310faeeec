"""A constraint and a pre-tokenizer at once: the constraint's texts, with a marker at every border of pieces.

The product of the constraint's automaton and the marked language (`tokdfa.proper.pretokenizer_dfa`): a byte moves both,
a marker only the pre-tokenizer. It accepts exactly the marked texts whose text satisfies the constraint. States from
which nothing is accepted are gone, so a border that the rest of the constraint rules out is never even begun.

A marker needs a letter. 0xFF occurs in no UTF-8 text, so during the construction it stands for the marker
(`MarkedDfa.as_bytes`) and the algebra of byte automata does the work; afterwards it is taken out again.

*Byte fallback* (`tokdfa.proper.byte_fallback`) tells two ways of reading a byte apart: as part of a character that is a
token, and as a byte token. `PieceAutomaton` has a second set of letters for the latter, and its states carry the state
of the fallback as well.

Sizes: nearly as many states as the constraint alone where it is ASCII; 2,000 more for each place where any character
may stand (Llama 3, Tekken), which is what it takes to know the class of a character before it is complete.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.automata.algebra import intersection, trim, union
from tokdfa.automata.dfa import Dfa
from tokdfa.automata.explore import STATE_LIMIT
from tokdfa.automata.liveness import leading_to
from tokdfa.automata.pairs import explore_pairs
from tokdfa.errors import EmptyLanguageError, LimitExceeded
from tokdfa.proper.pretokenizer_dfa import MARKER_BYTE, NO_BYTE, MarkedDfa

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from tokdfa.proper.byte_fallback import ByteFallback


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
        return MarkedDfa(whole.transitions, whole.byte_class, whole.accepting, whole.start, markers)
    table = dfa.byte_table()
    table[:, MARKER_BYTE] = np.arange(len(table))
    table[:, NO_BYTE] = -1
    constraint = Dfa.from_table(table, dfa.accepting, dfa.start)
    borders = reduce(union, [marked.as_bytes(start) for start in starts or (marked.start,)])
    product = intersection(constraint, borders, limit)
    if not product.state_count:
        raise EmptyLanguageError("no text of the constraint is text to the tokenizer: its pre-tokenizer loses a part")
    return MarkedDfa.of_bytes(product)


def marked_product_from(
    dfa: Dfa, marked: MarkedDfa | None, starts: Sequence[int], limit: int = STATE_LIMIT
) -> tuple[MarkedDfa, list[int]]:
    """Like `marked_product`, but each of `starts` is a beginning of its own: their products, side by side.

    Returns the product and its state for each start, -1 where no text goes on from there. Raises EmptyLanguageError if
    no text goes on from any of them.
    """
    if marked is None:
        product = marked_product(dfa, None)
        return product, [product.start for _ in starts]
    products, begins, count = [], [], 0
    for start in starts:
        begins.append(-1)
        with suppress(EmptyLanguageError):
            products.append(marked_product(dfa, marked, [start], limit))
            begins[-1] = count + products[-1].start
            count += products[-1].state_count
    if not products:
        raise EmptyLanguageError("no text of the constraint goes on after this context")
    if len(products) == 1:
        return products[0], begins
    parts = [(np.take(one.transitions, one.byte_class, axis=1), one.marker) for one in products]
    shifts = np.cumsum([0, *(one.state_count for one in products)])[:-1]
    table, marker = (
        np.concatenate([np.where(part >= 0, part + shift, -1) for part, shift in zip(column, shifts, strict=True)])
        for column in zip(*parts, strict=True)
    )
    accepting = np.concatenate([one.accepting for one in products])
    beside = Dfa.from_table(table.astype(np.int32), accepting, 0)
    return MarkedDfa(beside.transitions, beside.byte_class, accepting, 0, marker.astype(np.int32)), begins


@dataclass(frozen=True, eq=False)
class PieceAutomaton:
    """The marked product with byte tokens as letters of their own, in flat arrays for compiled code.

    `table`: int32, shape (states * classes,), row offset + class -> row offset of the next state, or -1; `classes`;
    `byte_class`: uint8, shape (256,), the class of a byte in the text of a token; `fallback_class`: int32, shape
    (256,), the class of a byte token, -1 if there is none; `marker`: int32, shape (states,), state or -1; `can_stop`:
    uint8, shape (states,), bit 0: the text may end here, bit 1: a border may stand here, bit 2: inside a character that
    byte tokens have begun. `starts`: the states in which the text may begin, -1 for dead ones.
    """

    table: npt.NDArray[np.int32]
    classes: int
    byte_class: npt.NDArray[np.uint8]
    fallback_class: npt.NDArray[np.int32]
    marker: npt.NDArray[np.int32]
    can_stop: npt.NDArray[np.uint8]
    starts: tuple[int, ...]

    @property
    def state_count(self) -> int:
        return len(self.marker)

    @property
    def nbytes(self) -> int:
        return self.table.nbytes + self.marker.nbytes + self.can_stop.nbytes


#: Bits of `PieceAutomaton.can_stop`.
ENDS, BORDERS, INSIDE = 1, 2, 4


def piece_automaton(
    product: MarkedDfa,
    fallback: ByteFallback | None,
    starts: Sequence[int] | None = None,
    inside: int = 0,
    limit: int = STATE_LIMIT,
) -> PieceAutomaton:
    """The automaton of `product`, with byte tokens if there is a `fallback`.

    `starts`: states of the product (default: its start); `inside`: the state of the fallback there. LimitExceeded past
    `limit` states.
    """
    begins = (product.start,) if starts is None else tuple(starts)
    if fallback is None:
        nowhere = np.zeros(product.state_count, dtype=np.bool_)
        no_bytes = np.full(256, -1, dtype=np.int32)
        parts: tuple[Any, ...] = (product.transitions, product.marker, product.accepting, nowhere, no_bytes)
    else:
        parts, begins = _add_fallback(product, fallback, begins, inside, limit)
    table, marker, accepting, in_character, fallback_class = parts
    classes = table.shape[1]
    can_stop = accepting * np.uint8(ENDS) | (marker >= 0) * np.uint8(BORDERS) | in_character * np.uint8(INSIDE)
    rows = np.where(table >= 0, table * np.int32(classes), np.int32(-1)).astype(np.int32).ravel()
    return PieceAutomaton(
        rows, classes, np.array(product.byte_class), fallback_class, np.array(marker), can_stop, begins
    )


def _add_fallback(
    product: MarkedDfa, fallback: ByteFallback, starts: Sequence[int], inside: int, limit: int
) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """(table, marker, accepting, inside a character, class of each byte token) of product x fallback; the starts."""
    spoken, byte_kinds = fallback.byte_kinds
    both = product.byte_class[spoken].astype(np.int64) * 256 + byte_kinds
    _, first_of, kinds = np.unique(both, return_index=True, return_inverse=True)
    representatives = spoken[first_of]
    plain = product.class_count
    # One state more, which leads to the starts by letters of its own.
    entrances = np.full((product.state_count + 1, len(starts)), -1, dtype=np.int32)
    entrances[-1] = starts
    first = np.concatenate(
        [product.transitions, product.marker[:, None], product.transitions[:, product.byte_class[representatives]]],
        axis=1,
    )
    nothing = np.full((1, first.shape[1]), -1, dtype=np.int32)
    first = np.concatenate([np.concatenate([first, nothing]), entrances], axis=1)
    between = np.full((len(fallback.table), plain + 1), -1, dtype=np.int32)
    between[0] = 0  # texts of tokens and markers stand between characters
    entered = np.full((len(fallback.table), len(starts)), -1, dtype=np.int32)
    entered[0] = inside
    second = np.concatenate([between, fallback.table[:, representatives], entered], axis=1)
    pairs, table = explore_pairs(first, second, (product.state_count, 0), (True, True), limit)
    if len(pairs) > limit:
        raise LimitExceeded(
            f"the constraint with byte fallback needs more than {limit} states: raise max_states",
            limit="max_states",
            value=limit,
        )
    in_character = pairs[:, 1] != 0
    accepting = np.append(product.accepting, False)[pairs[:, 0]] & ~in_character
    live = leading_to(table, accepting)
    table[~live[table] & (table >= 0)] = -1
    fallback_class = np.full(256, -1, dtype=np.int32)
    fallback_class[spoken] = plain + 1 + kinds.ravel()
    begin = first.shape[1] - len(starts)
    found = tuple(table[0, begin:].tolist())
    parts = (np.ascontiguousarray(table[:, :begin]), table[:, plain].copy(), accepting, in_character, fallback_class)
    return parts, found
