"""How many characters tokens have inside a JSON string: which of them fit where only so many may still be read.

A division says which tokens stay inside a string. Where a `COUNTED` may read few more characters, those with more do
not; how many a token has, and how many more an end needs after it, depends on the state in which it begins, and is
found once for a vocabulary and a state. Then the mask of short tokens is a comparison, kept for each number that tokens
tell apart.

Most numbers make no difference: few tokens have more than 20 characters, fewer have characters before a quote. `levels`
says which do, from whatever state a token begins; strings that differ in other numbers have one mask
(`Machine.representative`).
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tokdfa.backends.pushdown_trie.state_table cimport ACCEPTS, BEGINS, LEAST
from tokdfa.vocabulary.trie_nodes cimport FlatTrie

from types import SimpleNamespace

import numpy as np

from tokdfa.core.locks import cached_property
from tokdfa.program.json_text import BODY, string_dfa


class TokenLengths:
    """Not thread-safe: the pool's lock is held."""

    def __init__(self, trie, automata):
        self.trie, self._automata = trie, automata
        #: State -> what `count_characters` finds, and which numbers are in it.
        self._counts = {}
        self._short = {}
        #: Memory of what is kept in bytes.
        self.nbytes = 0

    @cached_property
    def levels(self):
        """(least, most): which numbers of characters tokens tell apart, as arrays of int32.

        ``least[left]``: the least number that admits the same tokens as `left` characters do that may still be read;
        more than there are entries admit all. ``most[need]``: the greatest number that lets the same tokens close the
        string as `need` characters do that are still to be read; with more than there are entries none can.
        O(trie x states of the string automaton) at worst, once.
        """
        automaton = string_dfa("all")  # what it refuses is refused with fewer escapes, too
        characters = np.zeros((automaton.state_count, 4), dtype=np.int32)
        characters[BODY, BEGINS] = 1
        states = SimpleNamespace(  # in the form of a `StateTable`
            transitions=automaton.byte_table().ravel(),
            flags=ACCEPTS * automaton.accepting.astype(np.uint8),
            characters=characters,
        )
        begun, closing = (np.zeros(self.trie.depth_limit + 2, dtype=np.bool_) for _ in range(2))
        for state in range(automaton.state_count):
            begun[count_characters(self.trie, state, states, closing)[1]] = True
        begun |= closing
        counts, closings = np.flatnonzero(begun), np.flatnonzero(closing)
        lefts, needs = np.arange(counts.max()), np.arange(closings.max(initial=0) + 1)
        least = counts[np.searchsorted(counts, lefts, side="right") - 1]
        most = closings[np.searchsorted(closings, needs)] if len(closings) else needs
        return least.astype(np.int32), most.astype(np.int32)

    def short_tokens(self, state, left):
        """Mask of the tokens that, with an end, begin no more than `left` characters of the string from a state on.

        uint32, as many words as masks have with a spare token; tokens that leave the string are in it. O(trie) once a
        state, then O(vocabulary) once for each number that tokens tell apart.
        """
        known = self._counts.get(state)
        if known is None:
            closing = np.zeros(self.trie.depth_limit + 2, dtype=np.bool_)
            known = self._counts[state] = count_characters(self.trie, state, self._automata, closing)
            self.nbytes += known[0].nbytes
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

    def make_all(self):
        """Make the masks of `short_tokens` for every `left` that tokens tell apart, by the states asked for before.

        O(vocabulary x its longest token).
        """
        for state, (_, numbers) in list(self._counts.items()):
            for left in numbers.tolist():
                self.short_tokens(state, left)


def count_characters(FlatTrie trie not None, int32_t start, states, closing):
    """How many characters each token begins from a state on, and an end needs then; 0 where the string is not open
    any more; the last entry means nothing: int16. And which numbers these are, in order, 0 among them. `closing`:
    marked by how many stand before a quote.
    """
    counts = np.zeros(trie.size + 1, dtype=np.int16)
    cdef int16_t[::1] out = counts
    cdef const int32_t[::1] transitions = states.transitions
    cdef const uint8_t[::1] flags = states.flags
    cdef const int32_t[:, ::1] characters = states.characters
    cdef uint8_t[::1] before_quote = closing.view(np.uint8)
    cdef vector[int32_t] path
    cdef vector[int16_t] begun
    cdef vector[uint8_t] met
    cdef uint64_t here = 0, node, depth
    cdef int64_t state, target, number
    met.push_back(True)
    path.resize(trie.depth_limit + 2)
    begun.resize(trie.depth_limit + 2)
    path[0] = start
    while here < trie.node_count:
        node = trie.nodes[here]
        depth = (node >> 8) & 0xFFF
        state = path[depth]
        target = transitions[state * 256 + <int64_t>(node & 0xFF)]
        if target < 0 or flags[target] & ACCEPTS:
            if target >= 0:
                before_quote[begun[depth]] = True
            here = (node >> 20) & 0x7FFFFF
            continue
        path[depth + 1] = <int32_t>target
        begun[depth + 1] = <int16_t>(begun[depth] + characters[state, BEGINS])
        number = begun[depth + 1] + characters[target, LEAST]
        out[node >> 43] = <int16_t>number
        if <int64_t>(node >> 43) != trie.size:
            if number >= <int64_t>met.size():
                met.resize(number + 1)
            met[number] = True
        here += 1
    return counts, np.array([number for number in range(<int64_t>met.size()) if met[number]], dtype=np.int64)
