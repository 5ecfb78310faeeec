"""A ready mask for every state of a tokens DFA, each distinct one once.

States that allow the same token classes and agree on whether the text may end have the same mask. A mask of few tokens
is kept as a list of ids, any other packed (see `tokdfa.vocabulary.mask_store` for why); so handing one out is one
copy, or a few hundred bits written. Masks are made in the order of the states until `limit` bytes are used up; those of
later states are then put together when asked for (`assemble_mask`).

Source: 001, part 6 ("bitset masks of allowed tokens for every state").
Cost: about 1 ns for each token of each distinct mask. A class with more tokens than a mask has words is packed once,
and then taken word by word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.core.jit import kernel
from tokdfa.mask import mask_words
from tokdfa.token_automata.columns import distinct_rows
from tokdfa.vocabulary.mask_store import NARROW, add_tokens_kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.tokens_dfa.reduced_table import ReducedTable
    from tokdfa.mask import Mask

#: Rows of the plan of `make_masks`.
_ALLOWED, _ENDS, _TOKENS, _PLACE = range(4)


class ReadyMasks(NamedTuple):
    """State -> its mask, as a list of ids (int32) or packed (int32 words); equal masks are one object.

    A state whose mask is not made is in neither. ``mask_count``: distinct masks; ``nbytes``: what they take.
    """

    narrow: dict[int, npt.NDArray[np.int32]]
    packed: dict[int, Mask]
    mask_count: int
    nbytes: int


def make_masks(table: ReducedTable, size: int, end_tokens: npt.NDArray[np.int32], limit: int) -> ReadyMasks:
    """Masks for the states of `table`; `size`: V; `end_tokens`: int32; `limit`: bytes."""
    no_values = np.zeros(len(table.classes), dtype=np.int32)
    allowed_of, offsets, classes, _ = distinct_rows(table.offsets, table.classes, no_values)
    words = mask_words(size)
    # of each distinct mask: its list of allowed classes, whether end tokens belong to it, tokens, where it lies
    plan = np.empty((4, 2 * len(offsets)), dtype=np.int64)
    mask_of = np.empty(table.state_count, dtype=np.int32)
    big = np.empty(table.class_count, dtype=np.int32)
    count, big_count = _plan_masks_kernel(
        allowed_of[table.row_of], table.accepting, offsets, classes, table.member_offsets, len(end_tokens), words,
        limit // 4, plan, mask_of, big,
    )  # fmt: skip
    packed = np.zeros((big_count, words), dtype=np.int32)
    data = np.zeros(plan[_PLACE, count], dtype=np.int32)
    _fill_masks_kernel(
        offsets, classes, table.member_offsets, table.members, big, packed, end_tokens, plan, count, data
    )
    bounds = plan[_PLACE, : count + 1].tolist()
    is_narrow = (plan[_TOKENS, :count] <= NARROW).tolist()
    found = [data[bounds[mask] : bounds[mask + 1]] for mask in range(count)]
    ready = ReadyMasks({}, {}, count, data.nbytes)
    for state, mask in enumerate(mask_of.tolist()):
        if mask >= 0:
            (ready.narrow if is_narrow[mask] else ready.packed)[state] = found[mask]
    return ready


def assemble_mask(table: ReducedTable, state: int, end_tokens: npt.NDArray[np.int32], out: Mask) -> None:
    """Overwrite `out` with the mask of `state`, put together from its token classes. O(words + tokens)."""
    row = table.row(state)
    ends = end_tokens if table.accepting[state] else end_tokens[:0]
    _assemble_mask_kernel(table.classes[row].astype(np.int32), table.member_offsets, table.members, ends, out)


@kernel
def _plan_masks_kernel(  # type: ignore[no-untyped-def]
    allowed_of, accepting, offsets, classes, member_offsets, end_count, words, limit, plan, mask_of, big
):
    """Number the distinct masks in the order of the states, until they take `limit` words; fill `plan` and `mask_of`.

    big[class]: the number of a class that is worth packing, or -1. Returns (masks, classes to pack).
    """
    number = np.full(2 * len(offsets), -1, dtype=np.int32)
    count, place, big_count = 0, 0, 0
    is_full = False
    for state in range(len(allowed_of)):
        key = 2 * allowed_of[state] + accepting[state]
        if number[key] < 0 and not is_full:
            tokens = end_count * np.int64(accepting[state])
            for k in range(offsets[allowed_of[state]], offsets[allowed_of[state] + 1]):
                tokens += member_offsets[classes[k] + 1] - member_offsets[classes[k]]
            room = tokens if tokens <= NARROW else words
            is_full = place + room > limit
            if not is_full:
                plan[_ALLOWED, count], plan[_ENDS, count] = allowed_of[state], accepting[state]
                plan[_TOKENS, count], plan[_PLACE, count] = tokens, place
                number[key] = count
                place += room
                count += 1
        mask_of[state] = number[key]
    plan[_PLACE, count] = place
    for token_class in range(len(big)):
        big[token_class] = -1
        if member_offsets[token_class + 1] - member_offsets[token_class] > words:
            big[token_class] = big_count
            big_count += 1
    return count, big_count


@kernel
def _fill_masks_kernel(  # type: ignore[no-untyped-def]
    offsets, classes, member_offsets, members, big, packed, end_tokens, plan, count, data
):
    for token_class in range(len(big)):
        if big[token_class] >= 0:
            begin, past = member_offsets[token_class], member_offsets[token_class + 1]
            add_tokens_kernel(members[begin:past], packed[big[token_class]])
    for mask in range(count):
        end = plan[_PLACE, mask]
        here = data[end : plan[_PLACE, mask + 1]]
        is_narrow = plan[_TOKENS, mask] <= NARROW
        for k in range(offsets[plan[_ALLOWED, mask]], offsets[plan[_ALLOWED, mask] + 1]):
            token_class = classes[k]
            begin, past = member_offsets[token_class], member_offsets[token_class + 1]
            if is_narrow:
                for m in range(begin, past):
                    data[end] = members[m]
                    end += 1
            elif big[token_class] >= 0:
                here |= packed[big[token_class]]
            else:
                add_tokens_kernel(members[begin:past], here)
        if plan[_ENDS, mask] == 1:
            if is_narrow:
                for token in end_tokens:
                    data[end] = token
                    end += 1
            else:
                add_tokens_kernel(end_tokens, here)


@kernel
def _assemble_mask_kernel(classes, member_offsets, members, end_tokens, out):  # type: ignore[no-untyped-def]
    out[:] = 0
    for token_class in classes:
        add_tokens_kernel(members[member_offsets[token_class] : member_offsets[token_class + 1]], out)
    add_tokens_kernel(end_tokens, out)
