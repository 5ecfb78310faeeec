from libc.stdint cimport int64_t

from tokdfa.backends.pushdown_trie.steps cimport Steps
from tokdfa.backends.state_matcher cimport StateMatcher
from tokdfa.vocabulary.trie_nodes cimport FlatTrie


cdef class PushdownMatcher(StateMatcher):
    cdef readonly object _compiled, _generation, _lock
    cdef readonly Steps _machine
    cdef FlatTrie trie
    cdef bint simple  # no token that spells something needs more than its bytes to be judged

    # Where an int leads, as far as rows are made: DEAD if it may not come, UNKNOWN if somebody has to be asked.
    cdef int64_t after(self, object token) except? -3
