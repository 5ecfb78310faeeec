# cython: auto_pickle=False
"""Strategies whose states are the numbers of an automaton over tokens: their matcher, and a table with its masks.

`NumberedStates` is what such a strategy writes: how a state reads a token, whether the text may end in it, and its
mask. One that is compiled also says in `known_step` where a token leads, without Python, and in `write_new` makes masks
so. `RowTable` is one that has all rows in a `TokenTable`. A matcher holds its states as C integers.
"""

from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.memoryview cimport PyMemoryView_FromObject, PyMemoryView_GET_BUFFER
from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

from tokdfa.backends.matcher cimport Matcher
from tokdfa.backends.state_matcher cimport StateMatcher
from tokdfa.vocabulary.byte_table cimport DEAD, UNKNOWN
from tokdfa.vocabulary.mask_store cimport KEPT_IDS, MaskStore, clear_words, hash_words, set_bits

import numpy as np

from tokdfa.backends.situation_source import SituationSource
from tokdfa.mask import mask_words

cdef enum:
    ENDED = -1  # the state after an end token

cdef object AFTER_END = StateMatcher.FINISHED
cdef tuple KINDS = (np.dtype(np.uint16), np.dtype(np.int32), np.dtype(np.uint32), np.dtype(np.int64))


cdef class Numbers:
    """An array of numbers below 2**31, of 2 to 8 bytes each, that is read but not changed."""

    def __init__(self, array):
        if array.dtype not in KINDS or array.ndim != 1 or not array.flags.c_contiguous:
            raise TypeError(f"{array.dtype} of shape {array.shape}")
        self.view = PyMemoryView_FromObject(array)
        self.data = PyMemoryView_GET_BUFFER(self.view).buf
        self.size, self.width = array.size, array.itemsize

    cdef int64_t find(self, int64_t number, int64_t begin, int64_t end) noexcept nogil:
        cdef int64_t middle, last = end
        while begin < end:
            middle = (begin + end) >> 1
            if self.at(middle) < number:
                begin = middle + 1
            else:
                end = middle
        return begin if begin < last and self.at(begin) == number else -1


cdef class NumberedStates:
    """The states of an automaton over the tokens of `vocab`, and the masks of some."""

    cdef int64_t known_step(self, int64_t state, int64_t token) noexcept:
        return UNKNOWN

    def step(self, state, token):
        """The state after `token`, or -1."""
        raise NotImplementedError

    def targets(self, state):
        """The state after each token: int32, shape (V,), -1 where a token is not allowed."""
        raise NotImplementedError

    def accepts(self, state):
        """Whether the text may end in `state`."""
        raise NotImplementedError

    def make_mask(self, state, out):
        """Overwrite `out` with a mask that is not kept, and keep it if masks are kept; what that took, by counter.

        To be written unless masks are made by compiled code (`write_new`).
        """
        raise NotImplementedError

    cdef int write_new(self, int64_t state, object out, int32_t* words, object counters) except -1:
        for name, amount in self.make_mask(state, out).items():
            add(counters, name, amount)
        return 0

    def fill(self, int64_t state, out):
        """Overwrite `out` with the mask of `state`; what that took, by counter."""
        cdef int32_t[::1] words = out
        cdef dict counters = {}
        if words.shape[0] == 0 or words.shape[0] != self.masks.words:
            raise ValueError(f"out has {words.shape[0]} words, not {self.masks.words}")
        if not self.masks.write(state, &words[0]):
            self.write_new(state, out, &words[0], counters)
        return counters


cdef int add(object counters, str name, int64_t amount) except -1:
    counters[name] = counters.get(name, 0) + amount
    return 0


cdef class NumberedMatcher(StateMatcher):
    """A matcher whose state is one of `states`. State 0 is the start."""

    def __init__(self, NumberedStates states not None):
        self.bind(states.vocab)
        self.states = states
        self._serve_from(states.masks)

    @property
    def state(self):
        return AFTER_END if self.here == ENDED else self.here

    @state.setter
    def state(self, state):
        self.here = number_of(state)

    @property
    def _history(self):
        return [AFTER_END if state == ENDED else state for state in self.passed]

    @_history.setter
    def _history(self, states):
        cdef vector[int64_t] passed = [number_of(state) for state in states]
        self.passed.swap(passed)

    cdef bint write_kept(self, int32_t* out) except -1:
        return self.store is not None and self.store.write(self.here, out)

    cdef int write_new(self) except -1:
        return self.states.write_new(self.here, self.checked, self.words, self.counters)

    cdef bint take_known(self, object token) except -1:
        cdef int64_t after = self.after(token)
        if after < 0:
            return False
        self.passed.push_back(self.here)
        self.here = after
        return True

    cdef int64_t after(self, object token) except? -3:
        cdef int overflow = 0
        cdef int64_t number
        if self.here == ENDED or self.states is None:
            return UNKNOWN
        number = PyLong_AsLongLongAndOverflow(token, &overflow)  # -1 if it overflows
        return self.states.known_step(self.here, number)

    cdef int enter(self, object state) except -1:
        cdef int64_t after = number_of(state)
        self.passed.push_back(self.here)
        self.here = after
        return 0

    cdef bint has_ended(self) except -1:
        return self.here == ENDED

    cdef int follow(self, StateMatcher other) except -1:
        cdef NumberedMatcher matcher = other
        self.here, self.passed = matcher.here, matcher.passed
        return 0

    def rollback(self, count):
        cdef Py_ssize_t taken = len(self._tokens)
        if type(count) is int and 0 < count <= taken == <Py_ssize_t>self.passed.size():
            self.go_back(count)
            del self._tokens[taken - <Py_ssize_t>count :]
        else:
            Matcher.rollback(self, count)

    cdef int go_back(self, Py_ssize_t count) except -1:
        cdef Py_ssize_t kept = <Py_ssize_t>self.passed.size() - count
        if kept < 0:
            raise IndexError(f"there are not {count} states before this one")
        self.here = self.passed[kept]
        self.passed.resize(kept)
        return 0

    def _rollback(self, count):
        self.go_back(count)

    def _step(self, state, token):
        target = self.states.step(state, token)
        return None if target < 0 else target

    def _accepts(self, state):
        return self.states.accepts(state)

    def _fill(self, state, out):
        self._count(**self.states.fill(state, out))

    def situation_source(self):
        return NumberedSituations(self.states)

    def _fork_empty(self):
        return NumberedMatcher(self.states)


cdef int64_t number_of(object state) except? -2:
    cdef int64_t number
    if state is AFTER_END:
        return ENDED
    number = state
    if number < 0:
        raise ValueError(f"a state is a number from 0 on, not {number}")
    return number


class NumberedSituations(SituationSource):
    """The states, each its own number."""

    def __init__(self, states):
        self.states = states

    def __eq__(self, other):
        return isinstance(other, NumberedSituations) and self.states is other.states

    def __hash__(self):
        return hash(self.states)

    def step(self, situation, token):
        return self.states.step(situation, token)

    def targets(self, situation):
        return self.states.targets(situation)

    def fill(self, situation, out):
        self.states.fill(situation, out)

    def can_end(self, situation):
        return self.states.accepts(situation)


cdef class RowTable(NumberedStates):
    """The rows of an automaton over tokens in compressed form, with the masks asked for so far. State 0 is the start.

    `accepting`: bool, shape (states,); `cache_bytes`: limit on the masks kept; with `keep` off none is.
    """

    def __init__(self, vocab, table, accepting, cache_bytes, keep=True):
        self.vocab, self.table, self.accepting, self.keeps = vocab, table, accepting, keep
        self.ends = vocab.end_tokens
        self.masks = MaskStore(cache_bytes, mask_words(vocab.size))
        self.rank_of, self.order = Numbers(vocab.trie.rank_of), Numbers(vocab.trie.order)
        self.offsets, self.ranks, self.target_of = Numbers(table.offsets), Numbers(table.ranks), Numbers(table.targets)

    @property
    def nbytes(self):
        """Memory of the rows and of the masks kept so far."""
        return self.table.nbytes + self.accepting.nbytes + self.masks.nbytes

    def accepts(self, state):
        return bool(self.accepting[state])

    cdef int64_t known_step(self, int64_t state, int64_t token) noexcept:
        cdef int64_t place
        if not (0 <= token < self.rank_of.size and 0 <= state < self.offsets.size - 1):
            return DEAD
        place = self.ranks.find(self.rank_of.at(token), self.offsets.at(state), self.offsets.at(state + 1))
        return DEAD if place < 0 else self.target_of.at(place)

    def step(self, state, token):
        return self.known_step(state, token)

    def row(self, state):
        """Token -> state, in the byte order of tokens."""
        tokens, targets = self.entries(state)
        return dict(zip(tokens.tolist(), targets.tolist(), strict=True))

    def targets(self, state):
        tokens, targets = self.entries(state)
        found = np.full(self.vocab.size, DEAD, dtype=np.int32)
        found[tokens] = targets
        return found

    cdef int write_new(self, int64_t state, object out, int32_t* words, object counters) except -1:
        cdef int64_t begin = self.offsets.at(self.checked(state)), end = self.offsets.at(state + 1), k
        cdef vector[int32_t] tokens
        if self.accepting[state]:
            tokens = self.ends
        tokens.reserve(tokens.size() + end - begin)
        for k in range(begin, end):
            tokens.push_back(<int32_t>self.order.at(self.ranks.at(k)))
        clear_words(words, self.masks.words)
        set_bits(tokens.data(), tokens.size(), words, self.masks.words)
        if self.keeps:
            with self.masks.lock:
                if tokens.size() <= KEPT_IDS:
                    self.masks.keep_ids(state, tokens.data(), tokens.size())
                else:
                    self.masks.keep_words(state, words, hash_words(words, self.masks.words))
        return add(counters, "masks_made", 1)

    cdef int64_t checked(self, int64_t state) except -1:
        if not 0 <= state < self.offsets.size - 1:
            raise IndexError(f"there is no state {state}")
        return state

    cdef object entries(self, int64_t state):
        """(tokens, targets), in the byte order of tokens."""
        self.checked(state)
        place = slice(self.offsets.at(state), self.offsets.at(state + 1))
        return self.vocab.trie.order[self.table.ranks[place]], self.table.targets[place]
