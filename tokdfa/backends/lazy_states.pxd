from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

from tokdfa.backends.numbered_states cimport NumberedStates
from tokdfa.regex.lazy_dfa cimport LazyDfa
from tokdfa.vocabulary.trie_nodes cimport FlatTrie


cdef class LazyStates(NumberedStates):
    cdef readonly LazyDfa automaton
    cdef FlatTrie trie
    cdef object working
    cdef bint keeps, per_token
    cdef vector[int32_t] ends

    cdef int32_t checked(self, int64_t state) except -1
    cdef int walk(self, int32_t row, int32_t* words, object counters) except -1
    cdef int run_tokens(self, int32_t row, int32_t* words, object counters) except -1
