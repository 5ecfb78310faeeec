"""How many characters tokens have inside a JSON string: which of them fit where only so many may still be read.

A partition says which tokens stay inside a string. Where a `COUNTED` may read few more characters, those with more do
not; how many a token has, and how many more an end needs after it, depends on the state in which it begins, and is
found once for a vocabulary and a state. Then the mask of short tokens is a comparison, kept for each number that tokens
tell apart.

Most numbers make no difference: few tokens have more than 20 characters, fewer have characters before a quote. `levels`
says which do, from whatever state a token begins; strings that differ in other numbers have one mask
(`tokdfa.backends.pushdown_trie.items.clip_row_kernel`).

The walk is a loop of its own, and no step of `tokdfa.vocabulary.walker`: where they are is a state with a
number of characters, so a step has branches, and over these arrays takes 10 ms for Llama 3 in place of 0.9.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.backends.pushdown_trie.rows import ACCEPTS
from tokdfa.backends.pushdown_trie.state_table import BEGINS, LEAST
from tokdfa.core.jit import kernel
from tokdfa.program.json_text import BODY, string_dfa
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT

if TYPE_CHECKING:
    from tokdfa.backends.pushdown_trie.partition import TrieParts
    from tokdfa.backends.pushdown_trie.state_table import StateTable
    from tokdfa.vocabulary.trie import TokenTrie


class _States(NamedTuple):
    """Those columns of a `StateTable` by which characters are counted."""

    transitions: npt.NDArray[np.int32]
    flags: npt.NDArray[np.uint8]
    characters: npt.NDArray[np.int32]


class TokenLengths:
    """Not thread-safe: the pool's lock is held."""

    def __init__(self, trie: TokenTrie | TrieParts, automata: StateTable | _States) -> None:
        self.trie, self._automata = trie, automata
        #: State -> what `_count` finds, and which numbers are in it.
        self._counts: dict[int, tuple[npt.NDArray[np.int16], npt.NDArray[np.int16]]] = {}
        self._short: dict[tuple[int, int], npt.NDArray[np.uint32]] = {}
        #: Memory of what is kept in bytes.
        self.nbytes = 0

    @cached_property
    def levels(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """(least, most): which numbers of characters tokens tell apart, as arrays of int32.

        ``least[left]``: the least number that admits the same tokens as `left` characters do that may still be read;
        more than there are entries admit all. ``most[need]``: the greatest number that lets the same tokens close the
        string as `need` characters do that are still to be read; with more than there are entries none can.
        O(trie x states of the string automaton) at worst, once.
        """
        automaton = string_dfa("all")  # what it refuses is refused with fewer escapes, too
        characters = np.zeros((automaton.state_count, 4), dtype=np.int32)
        characters[BODY, BEGINS] = 1
        accepts = ACCEPTS * automaton.accepting.astype(np.uint8)
        states = _States(automaton.byte_table().ravel(), accepts, characters)
        begun, closing = (np.zeros(self.trie.depth_limit + 2, dtype=np.bool_) for _ in range(2))
        begun[0] = True
        for state in range(automaton.state_count):
            begun[self._count(state, states, closing)[:-1]] = True
        begun |= closing
        counts, closings = np.flatnonzero(begun), np.flatnonzero(closing)
        lefts, needs = np.arange(counts[-1]), np.arange(closings.max(initial=0) + 1)
        least = counts[np.searchsorted(counts, lefts, side="right") - 1]
        most = closings[np.searchsorted(closings, needs)] if len(closings) else needs
        return least.astype(np.int32), most.astype(np.int32)

    def short_tokens(self, state: int, left: int) -> npt.NDArray[np.uint32]:
        """Mask of the tokens that, with an end, begin no more than `left` characters of the string from a state on.

        uint32, as many words as masks have with a spare token; tokens that leave the string are in it. O(trie) once a
        state, then O(vocabulary) once for each number that tokens tell apart.
        """
        known = self._counts.get(state)
        if known is None:
            closing = np.zeros(self.trie.depth_limit + 2, dtype=np.bool_)
            counts = self._count(state, self._automata, closing)
            known = self._counts[state] = counts, np.unique(counts)
            self.nbytes += counts.nbytes
        counts, numbers = known
        left = int(numbers[max(0, int(np.searchsorted(numbers, left, side="right")) - 1)])
        key = state, left
        words = self._short.get(key)
        if words is None:
            bits = np.zeros((self.trie.size // 32 + 1) * 32, dtype=np.bool_)
            bits[: len(counts)] = counts <= left
            words = self._short[key] = np.packbits(bits, bitorder="little").view(np.uint32)
            self.nbytes += words.nbytes
        return words

    def _count(self, state: int, states: StateTable | _States, closing: npt.NDArray[np.bool_]) -> npt.NDArray[np.int16]:
        """How many characters each token begins from a state on, and an end needs then; 0 where the string is not open
        any more; the last entry means nothing. `closing`: marked by how many stand before a quote.
        """
        counts, room = np.zeros(self.trie.size + 1, dtype=np.int16), self.trie.depth_limit + 2
        scratch = np.zeros(room, dtype=np.int32), np.zeros(room, dtype=np.int16)
        arrays = states.transitions, states.flags, states.characters
        _count_characters_kernel(self.trie.nodes, state, *arrays, counts, closing, *scratch)
        return counts

    def make_all(self) -> None:
        """Make the masks of `short_tokens` for every `left` that tokens tell apart, by the states asked for before.

        O(vocabulary x its longest token).
        """
        for state, (_, numbers) in list(self._counts.items()):
            for left in numbers.tolist():
                self.short_tokens(state, left)


@kernel
def _count_characters_kernel(  # type: ignore[no-untyped-def]
    nodes, start, transitions, flags, characters, counts, closing, states, begun
):
    """Write how many characters each token begins that the string is open after, and the least number that is needed
    then; mark in `closing` how many stand before a quote.
    """
    depth_mask = np.uint64((1 << DEPTH_BITS) - 1)
    states[0], begun[0] = start, 0
    here = np.uint64(0)
    while here < np.uint64(len(nodes)):
        node = nodes[here]
        depth = np.int64((node >> np.uint64(DEPTH_SHIFT)) & depth_mask)
        state = np.int64(states[depth])
        target = np.int64(transitions[state * 256 + np.int64(node & np.uint64(0xFF))])
        if target < 0 or flags[target] & ACCEPTS:
            if target >= 0:
                closing[begun[depth]] = True
            here = (node >> np.uint64(NEXT_SHIFT)) & np.uint64(MAX_NODES)
            continue
        states[depth + 1] = target
        begun[depth + 1] = begun[depth] + characters[state, BEGINS]
        counts[np.int64(node >> np.uint64(TOKEN_SHIFT))] = begun[depth + 1] + characters[target, LEAST]
        here += np.uint64(1)


def warm_up() -> None:
    """Compile what small vocabularies rarely need."""
    from tokdfa.backends.pushdown_trie.partition import TrieParts

    trie = TrieParts(np.full(1, 1 << NEXT_SHIFT, dtype=np.uint64), 1, 1)  # one node, after which the walk ends
    states = np.full(512, -1, dtype=np.int32), np.zeros(2, dtype=np.uint8), np.zeros((2, 4), dtype=np.int32)
    TokenLengths(trie, _States(*states)).short_tokens(1, 0)
