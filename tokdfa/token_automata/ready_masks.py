"""A ready mask for every state of a tokens DFA, each distinct one once.

States that allow the same token classes and agree on whether the text may end have the same mask. A mask of few tokens
is kept as a list of ids, any other packed (see `tokdfa.backends.mask_cache` for why); so handing one out is one
copy, or a few hundred bits written. Masks are made in the order of the states until `limit` bytes are used up; those of
later states are then put together when asked for (`assemble_mask`).

Source: 001, part 6 ("bitset masks of allowed tokens for every state").
Cost: about 1 ns for each token of each distinct mask. A class with more tokens than a mask has words is packed once,
and then taken word by word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.jit import kernel
from tokdfa.mask import mask_words
from tokdfa.token_automata.columns import distinct_rows

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.mask import Mask
    from tokdfa.token_automata.reduced_table import ReducedTable

#: The most tokens of a mask that is kept as a list (2 kB).
NARROW = 512


class ReadyMasks(NamedTuple):
    """For each state its mask as a list of ids (int32) or packed (int32 words); or neither.

    ``narrow``, ``wide``: one entry a state, None where there is none; equal masks are one object. ``mask_count``:
    distinct masks; ``nbytes``: what they take.
    """

    narrow: list[npt.NDArray[np.int32] | None]
    wide: list[Mask | None]
    mask_count: int
    nbytes: int


def no_masks(table: ReducedTable) -> ReadyMasks:
    """No mask ready."""
    return ReadyMasks([None] * table.state_count, [None] * table.state_count, 0, 0)


def make_masks(table: ReducedTable, size: int, end_tokens: npt.NDArray[np.int32], limit: int) -> ReadyMasks:
    """Masks for the states of `table`; `size`: V; `end_tokens`: int32; `limit`: bytes."""
    no_values = np.zeros(len(table.classes), dtype=np.int32)
    allowed_of, offsets, classes, _ = distinct_rows(table.offsets, table.classes, no_values)
    # a mask is a list of allowed classes, and whether the end tokens belong to it
    key = 2 * allowed_of[table.row_of] + table.accepting
    number = np.full(2 * len(offsets), -1, dtype=np.int32)
    mask_of, first = np.empty(len(key), dtype=np.int32), np.empty(len(key), dtype=np.int32)
    count = _number_masks_kernel(key, number, mask_of, first)
    allowed, ends = key[first[:count]] >> 1, key[first[:count]] & 1
    lengths = np.zeros(count, dtype=np.int64)
    _count_tokens_kernel(offsets, classes, table.member_offsets, allowed, ends, len(end_tokens), lengths)
    words = mask_words(size)
    is_narrow = lengths <= NARROW
    room = np.where(is_narrow, lengths, words)
    places = np.concatenate([[0], np.cumsum(room)])
    kept = int(np.searchsorted(4 * places[1:], limit, side="right"))
    data = np.zeros(int(places[kept]), dtype=np.int32)
    packed_of = np.full(table.class_count, -1, dtype=np.int32)
    big = np.flatnonzero(np.diff(table.member_offsets) > words)
    packed_of[big] = np.arange(len(big))
    packed = np.zeros((len(big), words), dtype=np.int32)
    _pack_classes_kernel(big, table.member_offsets, table.members, packed)
    _fill_masks_kernel(
        offsets, classes, table.member_offsets, table.members, packed_of, packed, allowed[:kept], ends, end_tokens,
        is_narrow, places, data,
    )  # fmt: skip
    bounds = places.tolist()
    narrow: list[npt.NDArray[np.int32] | None] = [None] * count
    wide: list[Mask | None] = [None] * count
    for mask in range(kept):
        (narrow if is_narrow[mask] else wide)[mask] = data[bounds[mask] : bounds[mask + 1]]
    states = mask_of.tolist()
    return ReadyMasks([narrow[m] for m in states], [wide[m] for m in states], kept, data.nbytes)


def assemble_mask(table: ReducedTable, state: int, end_tokens: npt.NDArray[np.int32], out: Mask) -> None:
    """Overwrite `out` with the mask of `state`, put together from its token classes. O(words + tokens)."""
    row = table.row(state)
    ends = end_tokens if table.accepting[state] else end_tokens[:0]
    _assemble_mask_kernel(table.classes[row].astype(np.int32), table.member_offsets, table.members, ends, out)


@kernel
def _number_masks_kernel(key, number, mask_of, first):  # type: ignore[no-untyped-def]
    """Number the keys in order of first occurrence, at state first[number]; returns how many there are."""
    count = 0
    for state in range(len(key)):
        if number[key[state]] < 0:
            number[key[state]] = count
            first[count] = state
            count += 1
        mask_of[state] = number[key[state]]
    return count


@kernel
def _count_tokens_kernel(offsets, classes, member_offsets, allowed, ends, end_count, lengths):  # type: ignore[no-untyped-def]
    for mask in range(len(allowed)):
        length = end_count * ends[mask]
        for k in range(offsets[allowed[mask]], offsets[allowed[mask] + 1]):
            length += member_offsets[classes[k] + 1] - member_offsets[classes[k]]
        lengths[mask] = length


@kernel
def _pack_classes_kernel(big, member_offsets, members, packed):  # type: ignore[no-untyped-def]
    for k in range(len(big)):
        for m in range(member_offsets[big[k]], member_offsets[big[k] + 1]):
            _set_bit(packed[k], members[m])


@kernel
def _fill_masks_kernel(  # type: ignore[no-untyped-def]
    offsets, classes, member_offsets, members, packed_of, packed, allowed, ends, end_tokens, is_narrow, places, data
):
    for mask in range(len(allowed)):
        end = places[mask]
        here = data[places[mask] : places[mask + 1]]
        for k in range(offsets[allowed[mask]], offsets[allowed[mask] + 1]):
            token_class = classes[k]
            if is_narrow[mask]:
                for m in range(member_offsets[token_class], member_offsets[token_class + 1]):
                    data[end] = members[m]
                    end += 1
            elif packed_of[token_class] >= 0:
                here |= packed[packed_of[token_class]]
            else:
                for m in range(member_offsets[token_class], member_offsets[token_class + 1]):
                    _set_bit(here, members[m])
        if ends[mask] == 1:
            for token in end_tokens:
                if is_narrow[mask]:
                    data[end] = token
                    end += 1
                else:
                    _set_bit(here, token)


@kernel
def _assemble_mask_kernel(classes, member_offsets, members, end_tokens, out):  # type: ignore[no-untyped-def]
    out[:] = 0
    for token_class in classes:
        for m in range(member_offsets[token_class], member_offsets[token_class + 1]):
            _set_bit(out, members[m])
    for token in end_tokens:
        _set_bit(out, token)


@kernel
def _set_bit(mask, token):  # type: ignore[no-untyped-def]
    mask[token >> 5] |= np.int32(np.uint32(1) << np.uint32(token & 31))
