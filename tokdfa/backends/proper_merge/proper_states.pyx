# cython: auto_pickle=False
"""Proper sequences of tokens for one constraint: what a matcher has to remember, and its masks.

Words. What the tokens so far say about pieces may leave a choice: whether a border stands after "12" of a number shows
only later. A *hypothesis* is one way of reading them, as the key of a state
(`tokdfa.backends.proper_merge.proper_table`); a matcher holds the last token and all live hypotheses, nearly always
one, at most a handful.

A token v may come next *directly*, as part of the same piece: it is a live token of a hypothesis and not forbidden
after the last token. Or *after a border*, where a hypothesis admits one: then it is a live token of the state behind
the border, and the last token has no say. So

    mask = (Mdirect AND NOT forbidden(last)) OR Mborder,

Mdirect and Mborder being unions over the hypotheses, kept for each set of them: two or three bit sets a mask.

Source: 002, appendix, section 4.1 (the last token decides); the hypotheses are ours.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memcpy, memset
from libcpp.vector cimport vector

from tokdfa.backends.proper_merge.proper_rows cimport ENDS
from tokdfa.backends.proper_merge.proper_table cimport ProperTable
from tokdfa.proper.bpe cimport int32_data
from tokdfa.proper.intervals cimport IntervalLists

import numpy as np

from tokdfa.mask import allocate_mask, set_token
from tokdfa.proper.canonical import NARROW
from tokdfa.vocabulary.mask_store import list_tokens


cdef extern from "tokdfa/backends/proper_merge/split_mask.hpp" namespace "tokdfa" nogil:
    void combine_words(const int32_t* direct, const int32_t* after_border, const int32_t* forbidden, int32_t* out,
                       size_t words)


#: The last token (-1: none, the piece has just begun) and the keys of the hypotheses, ascending.
State = tuple


def begin_state(table):
    """The state of a text that begins here."""
    return -1, tuple([start * table.node_count + table.root for start in table.automaton.starts if start >= 0])


cdef class SplitMask:
    """Mdirect and Mborder of one set of hypotheses: packed, and as lists of tokens where both are short.

    `begins`: a piece has just begun, so that the mask is Mdirect.
    """

    cdef readonly object direct, after_border
    cdef const int32_t* direct_words
    cdef const int32_t* border_words
    cdef size_t words
    cdef bint is_narrow
    cdef vector[int32_t] direct_tokens, border_tokens

    def __init__(self, direct, after_border, bint begins):
        cdef const int32_t[::1] first = direct, second = after_border
        if first.shape[0] != second.shape[0]:
            raise ValueError(f"masks of {first.shape[0]} and {second.shape[0]} words")
        self.direct, self.after_border, self.words = direct, after_border, first.shape[0]
        self.direct_words, self.border_words = int32_data(direct, -1), int32_data(after_border, -1)
        self.is_narrow = (
            not begins  # otherwise a mask is copied as it is
            and list_narrow(direct, self.direct_tokens)
            and list_narrow(after_border, self.border_tokens)
        )

    @property
    def nbytes(self):
        """Memory of the bit sets."""
        return self.direct.nbytes + self.after_border.nbytes

    cpdef fill(self, int64_t last, canonicity, int32_t[::1] out):
        """Overwrite `out` with the mask after the token `last` (-1: none)."""
        cdef const int32_t[::1] forbidden
        cdef dict kept
        if <size_t>out.shape[0] != self.words:
            raise ValueError(f"out has {out.shape[0]} words, not {self.words}")
        if last < 0:
            memcpy(&out[0], self.direct_words, 4 * self.words)
            return
        kept = canonicity.kept_masks
        found = kept.get(last)
        forbidden = canonicity.forbidden_after(last) if found is None else found
        self.write(&forbidden[0], &out[0])

    cdef void write(self, const int32_t* forbidden, int32_t* out) noexcept:
        cdef size_t k
        cdef uint32_t token
        if not self.is_narrow:
            combine_words(self.direct_words, self.border_words, forbidden, out, self.words)
            return
        memset(out, 0, 4 * self.words)
        for k in range(self.direct_tokens.size()):
            token = self.direct_tokens[k]
            (<uint32_t*>out)[token >> 5] |= <uint32_t>1 << (token & 31) & ~<uint32_t>forbidden[token >> 5]
        for k in range(self.border_tokens.size()):
            token = self.border_tokens[k]
            (<uint32_t*>out)[token >> 5] |= <uint32_t>1 << (token & 31)


cdef bint list_narrow(mask, vector[int32_t]& tokens) except -1:
    """List the tokens of a mask, if there are no more than NARROW. Whether that is so."""
    cdef int32_t[::1] room = np.empty(NARROW, dtype=np.int32)
    cdef Py_ssize_t count = list_tokens(mask, room.base), k
    for k in range(count):
        tokens.push_back(room[k])
    return count >= 0


cdef class ProperStates:
    """The states and masks over one table. Immutable to its users, safe to share between threads.

    `max_bytes` bounds the kept bit sets; past it they are made anew.
    """

    cdef readonly ProperTable table
    cdef readonly object canonicity
    cdef IntervalLists lists
    cdef object arrays             # what the pointers point into
    cdef const int32_t* state_of   # by token, of `lists`
    cdef const int32_t* number     # by token, in the merge tree
    cdef dict choices              # (whether a piece has just begun, the keys) -> SplitMask
    cdef int64_t kept_bytes, max_bytes

    def __init__(self, ProperTable table not None, max_bytes=256 << 20):
        self.table, self.canonicity, self.lists = table, table.canonicity, table.canonicity.lists
        tree = self.canonicity.merge_tree
        self.arrays = tree
        self.state_of, self.number = int32_data(self.lists.state_of, -1), int32_data(tree.number, -1)
        self.choices, self.max_bytes = {}, max_bytes

    @property
    def nbytes(self):
        """Memory of the table and of the kept bit sets."""
        return self.table.nbytes + self.kept_bytes

    def prepare(self, tuple state not None):
        """Settle what the first mask needs."""
        self._make_choices(state[0] < 0, state[1])

    def settle_all(self, tuple state not None):
        """Settle all hypotheses that can be reached from `state`. One trie walk each, and more."""
        agenda = [(key, state[0] < 0) for key in state[1]]
        seen = set(agenda)
        while agenda:
            key, fresh = agenda.pop()
            _, keys, live = self.table.row(key)
            self.prepare((-1 if fresh else 0, (key,)))
            following = [(target, False) for target in np.unique(keys[live]).tolist()]
            border = -1 if fresh else self.behind_border(key)
            if border >= 0:
                following.append((border, True))
            for found in following:
                if found not in seen:
                    seen.add(found)
                    agenda.append(found)

    def can_end(self, tuple state not None):
        """Whether the text may end."""
        cdef int64_t key
        cdef bint may_end = False
        for key in state[1]:
            self.table.check(key, 0)
            may_end |= self.table.reader.may_stop(<uint32_t>key, ENDS)
        return may_end

    def fill(self, tuple state not None, int32_t[::1] out not None):
        """Overwrite `out` with the tokens that may come next, end tokens included. 1 us once kept.

        Returns None then, else (states, transitions) that had to be settled first.
        """
        cdef SplitMask choices
        last, keys = state
        choices = self.choices.get((last < 0, keys))
        if choices is not None:
            choices.fill(last, self.canonicity, out)
            return None
        table = self.table
        states, transitions = table.settled_states, table.transitions
        choices = self._make_choices(last < 0, keys)
        choices.fill(last, self.canonicity, out)
        return table.settled_states - states, table.transitions - transitions

    def step(self, tuple state not None, int64_t token):
        """The state after `token`, None if it is not allowed. 0.3 us a hypothesis."""
        cdef SplitMask choices = None
        cdef bint direct_live = True, border_live = True
        cdef int64_t last, key, target
        cdef tuple keys
        cdef list found = []
        last, keys = state
        self.table.check(0, token)
        if len(keys) == 1:
            # The kept bit sets of a single hypothesis say whether the token leads to a live state.
            choices = self.choices.get((last < 0, keys))
        if choices is not None:
            direct_live = choices.direct_words[token >> 5] >> (token & 31) & 1
            border_live = choices.border_words[token >> 5] >> (token & 31) & 1
        direct_live = direct_live and (last < 0 or self.may_follow(last, token))
        for key in keys:
            target = self.follow(key, token, choices is None) if direct_live else -1
            if target >= 0:
                found.append(target)
            key = self.behind_border(key) if border_live and last >= 0 else -1
            target = self.follow(key, token, choices is None) if key >= 0 else -1
            if target >= 0:
                found.append(target)
        if len(found) > 1:
            found = sorted(set(found))
        return (token, tuple(found)) if found else None

    cdef int64_t follow(self, int64_t key, int64_t token, bint to_live) except -2:
        """The state after a token of one hypothesis, -1 for none; `to_live`: only if it is live."""
        return self.table.step(key, token) if to_live else self.table.read(key, token)

    cdef bint may_follow(self, int64_t last, int64_t token) except -1:
        """Whether no rule merges across the border of two tokens of one piece."""
        self.table.check(0, last)
        return self.state_of[last] < 0 or not self.lists.is_listed(self.state_of[last], self.number[token])

    cpdef int64_t behind_border(self, int64_t key) except -2:
        """The key of the state behind a border, -1 if none may stand here."""
        self.table.check(key, 0)
        return self.table.reader.behind_border(<uint32_t>key)

    def _make_choices(self, bint fresh, tuple keys not None):
        choices = self.gather(fresh, keys, self.table.add_live_tokens, self.can_end((-1, keys)))
        with self.table.lock:
            if self.kept_bytes > self.max_bytes:
                self.choices, self.kept_bytes = {}, 0
            self.choices[fresh, keys] = choices
            self.kept_bytes += choices.nbytes
        return choices

    def gather(self, bint fresh, tuple keys not None, add_tokens, bint can_end):
        """Mdirect and Mborder; `fresh`: the piece has just begun, so that no border stands here.

        `add_tokens`: adds the tokens of a key to a mask. End tokens are in the one that the last token has no say in.
        """
        direct, after_border = (allocate_mask(self.canonicity.size) for _ in range(2))
        for key in keys:
            add_tokens(key, direct)
            border = -1 if fresh else self.behind_border(key)
            if border >= 0:
                add_tokens(border, after_border)
        if can_end:
            for end in self.canonicity.vocabulary.end_tokens:
                set_token(direct if fresh else after_border, end)
        return SplitMask(direct, after_border, fresh)
