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
from tokdfa.token_automata.columns import distinct_rows, places_of
from tokdfa.vocabulary.mask_store import NARROW, add_tokens_kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.tokens_dfa.reduced_table import ReducedTable
    from tokdfa.mask import Mask


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
    words, ends_class = mask_words(size), table.class_count
    members = np.append(table.members, end_tokens)  # end tokens as one class more
    member_offsets = np.append(table.member_offsets, len(members)).astype(np.int32)
    sizes = np.diff(member_offsets)
    keys, firsts, key_of = np.unique(
        2 * allowed_of[table.row_of] + table.accepting, return_index=True, return_inverse=True
    )
    by_state = np.argsort(firsts)
    rows, ends = keys[by_state] >> 1, keys[by_state] & 1
    tokens = np.diff(np.append(0, np.cumsum(sizes[classes]))[offsets])[rows] + ends * len(end_tokens)
    is_narrow = tokens <= NARROW
    taken = np.cumsum(np.where(is_narrow, tokens, words))
    count = int(np.searchsorted(taken, limit // 4, side="right"))
    # the classes of each mask
    places, offsets = places_of(offsets, rows[:count])
    listed = np.insert(classes[places], offsets[1:][ends[:count] == 1], ends_class)
    offsets += np.append(0, np.cumsum(ends[:count]))
    narrow, wide = np.flatnonzero(is_narrow[:count]), np.flatnonzero(~is_narrow[:count])
    flat = members[places_of(member_offsets, listed[places_of(offsets, narrow)[0]])[0]]
    lists = np.split(flat, np.cumsum(tokens[narrow])[:-1]) if len(narrow) else []
    masks = np.zeros((len(wide), words), dtype=np.int32)
    packed_of, packed = _pack_large_classes(sizes, members, member_offsets, words)
    for mask, out in zip(wide.tolist(), masks, strict=True):
        chosen = listed[offsets[mask] : offsets[mask + 1]]
        _assemble_mask_kernel(chosen, member_offsets, members, packed_of, packed, out)
    found = (
        dict(zip(by_state[narrow].tolist(), lists, strict=True)),
        dict(zip(by_state[wide].tolist(), masks, strict=True)),
    )
    ready = ReadyMasks({}, {}, count, 4 * int(taken[count - 1]) if count else 0)
    for state, key in enumerate(key_of.tolist()):
        if key in found[0]:
            ready.narrow[state] = found[0][key]
        elif key in found[1]:
            ready.packed[state] = found[1][key]
    return ready


def _pack_large_classes(
    sizes: npt.NDArray[np.int32], members: npt.NDArray[np.int32], member_offsets: npt.NDArray[np.int32], words: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """(the place of each class among those packed, -1 for the others; masks of the classes with more than `words`)."""
    large = np.flatnonzero(sizes > words)
    packed_of = np.full(len(sizes), -1, dtype=np.int32)
    packed_of[large] = np.arange(len(large), dtype=np.int32)
    packed = np.zeros((len(large), words), dtype=np.int32)
    for token_class, out in zip(large.tolist(), packed, strict=True):
        add_tokens_kernel(members[member_offsets[token_class] : member_offsets[token_class + 1]], out)
    return packed_of, packed


def assemble_mask(table: ReducedTable, state: int, end_tokens: npt.NDArray[np.int32], out: Mask) -> None:
    """Overwrite `out` with the mask of `state`, put together from its token classes. O(words + tokens)."""
    out[:] = 0
    chosen = table.classes[table.row(state)].astype(np.int32)
    nothing = np.zeros(0, dtype=np.int32), np.zeros((0, len(out)), dtype=np.int32)
    _assemble_mask_kernel(chosen, table.member_offsets, table.members, *nothing, out)
    if table.accepting[state]:
        add_tokens_kernel(end_tokens, out)


@kernel
def _assemble_mask_kernel(classes, member_offsets, members, packed_of, packed, out):  # type: ignore[no-untyped-def]
    """Add the members of `classes`; of those with a place in `packed_of`, if that is not empty, the mask there."""
    for token_class in classes:
        if len(packed_of) > 0 and packed_of[token_class] >= 0:
            out |= packed[packed_of[token_class]]
        else:
            add_tokens_kernel(members[member_offsets[token_class] : member_offsets[token_class + 1]], out)
