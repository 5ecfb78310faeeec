# cython: auto_pickle=False
"""A lazy automaton over bytes as an automaton over tokens.

A state is a row of the automaton, named by its offset. A token is read byte by byte, and a mask is made by a walk over
the trie; both make the rows that they meet. Rows, and masks that are not kept, are made under one lock, as they change
the automaton, within the budget of a step. A step over rows that are known takes neither, nor Python.

Cost of a mask of few nodes: 1 us, of which half is the lock and the budget, and what the rows take that it makes.
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint32_t
from libc.string cimport memcpy

from tokdfa.backends.numbered_states cimport NumberedStates, add
from tokdfa.regex.lazy_dfa cimport LazyDfa
from tokdfa.vocabulary.byte_table cimport DEAD, UNKNOWN, FirstTokens, walk_into
from tokdfa.vocabulary.mask_store cimport KEPT_IDS, MaskStore, clear_words, set_bits
from tokdfa.vocabulary.trie_nodes cimport FlatTrie

import numpy as np

from tokdfa.vocabulary.byte_table import walk_collect


cdef class LazyStates(NumberedStates):
    """The rows of a `LazyDfa` over bytes, named by their offsets, as states over the tokens of `vocab`.

    `masks`: where masks are kept, if `keep` is on. `working`: the budget of a step, entered under the lock of `masks`.
    With `per_token` each token is run by itself, byte by byte; otherwise tokens share the bytes of their prefixes.
    """

    def __init__(
        self, vocab, LazyDfa automaton not None, MaskStore masks not None, working, keep=True, per_token=False
    ):
        cdef FlatTrie trie = vocab.trie.flat
        if masks.words != (trie.size + 31) // 32:
            raise ValueError("masks of another vocabulary are kept")
        self.vocab, self.automaton, self.trie, self.masks = vocab, automaton, trie, masks
        self.working, self.keeps, self.per_token, self.ends = working, keep, per_token, vocab.end_tokens

    cdef int64_t known_step(self, int64_t state, int64_t token) noexcept:
        return self.automaton.peek_token(<int32_t>state, self.trie, token) if 0 <= state <= INT32_MAX else DEAD

    def step(self, int64_t state, int64_t token):
        cdef int64_t target = self.known_step(state, token)
        if target == UNKNOWN:
            with self.masks.lock, self.working:
                target = self.automaton.step_token(<int32_t>state, self.trie, token)
        return target

    def accepts(self, int64_t state):
        return bool(self.automaton.accepts_in[self.checked(state) // self.automaton.class_count])

    def targets(self, int64_t state):
        """By one walk."""
        size = self.trie.size
        tokens, reached = np.empty(size + 1, dtype=np.int32), np.empty(size + 1, dtype=np.int32)
        with self.masks.lock, self.working:
            count, _ = walk_collect(self.vocab.trie, self.automaton, state, tokens, reached)
        found = np.full(size, DEAD, dtype=np.int32)
        found[tokens[:count]] = reached[:count]
        return found

    cdef int32_t checked(self, int64_t state) except -1:
        if not 0 <= state < self.automaton.state_count * self.automaton.class_count:
            raise IndexError(f"there is no state {state}")
        return <int32_t>state

    cdef int write_new(self, int64_t state, object out, int32_t* words, object counters) except -1:
        cdef int32_t row = self.checked(state)
        clear_words(words, self.masks.words)
        with self.masks.lock, self.working:
            if self.per_token:
                self.run_tokens(row, words, counters)
            else:
                self.walk(row, words, counters)
        return add(counters, "masks_made", 1)

    cdef int walk(self, int32_t row, int32_t* words, object counters) except -1:
        cdef FirstTokens found
        cdef size_t ends = self.ends.size() if self.automaton.accepts_in[row // self.automaton.class_count] else 0
        walk = walk_into(self.trie, self.automaton, row, <uint32_t*>words, found)
        set_bits(self.ends.data(), ends, words, self.masks.words)
        if not self.keeps:
            pass
        elif found.is_all and found.count + ends <= KEPT_IDS:
            if ends:
                memcpy(&found.tokens[found.count], self.ends.data(), 4 * ends)
            self.masks.keep_ids(row, &found.tokens[0], found.count + ends)
        else:
            self.masks.keep_mask(row, words)
        add(counters, "trie_nodes_visited", walk.progress.visited)
        add(counters, "trie_nodes_skipped", walk.progress.skipped)
        return add(counters, "rows_filled", walk.rows_filled)

    cdef int run_tokens(self, int32_t row, int32_t* words, object counters) except -1:
        cdef int32_t token
        for token in range(<int32_t>self.trie.size):
            if self.automaton.step_token(row, self.trie, token) >= 0:
                set_bits(&token, 1, words, self.masks.words)
        if self.automaton.accepts_in[row // self.automaton.class_count]:
            set_bits(self.ends.data(), self.ends.size(), words, self.masks.words)
        if self.keeps:
            self.masks.keep_mask(row, words)
        return add(counters, "tokens_run", self.vocab.trie.order.size)
