from libc.stdint cimport int32_t, int64_t

from tokdfa.backends.pushdown_trie.filler cimport Filler
from tokdfa.backends.pushdown_trie.steps cimport Steps
from tokdfa.backends.state_matcher cimport StateMatcher
from tokdfa.vocabulary.trie_nodes cimport FlatTrie


cdef class PushdownMatcher(StateMatcher):
    cdef readonly object _compiled, _generation, _lock
    cdef readonly Steps _machine
    cdef FlatTrie trie
    cdef Filler filler
    cdef object working, end_tokens
    cdef list token_sets
    cdef bint keeps
    cdef bint simple  # no token that spells something needs more than its bytes to be judged

    # Make the mask of the present row, and keep it; to be called for `simple` ones without special tokens.
    cdef int make_mask(self, int32_t* words) except -1
    cdef int count_made(self, int64_t nodes, int64_t rows) except -1
