from libc.stdint cimport int32_t, int64_t, uint64_t

from tokdfa.backends.pushdown_trie.name_tries cimport Name
from tokdfa.backends.pushdown_trie.stacks cimport Stacks


cdef enum:
    # what `step_trie` says besides a state: the string is another one; it ends here
    STRING_LEFT = -3
    STRING_ENDED = -4


cdef struct Spelling:  # what a state of reading says
    int64_t node     # whose character is being read; all characters down to it are, if nothing is `read`
    int64_t read     # bytes of the character's spelling
    int64_t first    # the nodes that may be read next: the node's children, or those that begin as it does
    int64_t past
    bint escaped     # whether its spelling is an escape


cdef class Names(Stacks):
    cdef bint has_name(self, const Name* node, int64_t at) noexcept
    # The state after a byte, and to `what` whether an allowed name is below it; STRING_LEFT; or STRING_ENDED, and to
    # `what` the index of the name. `at`: of the arguments.
    cdef int64_t step_trie(self, int64_t state, int64_t byte, int64_t at, int64_t* what) noexcept
    # Change a set of bytes, which is what the string state reads: all that an allowed name goes on with is added, the
    # closing quote of a name that is refused is taken out. `every`: that of refused names is added, too.
    cdef int name_reads(self, int64_t state, int64_t at, uint64_t* reads, bint every) noexcept
    # The state of the TERMINAL for other strings after the same bytes; DEAD, too, if there is no such TERMINAL.
    cdef int64_t name_string_state(self, int64_t state, int64_t at) noexcept
    # Append what an item of NAMES is after a byte to `found`.
    cdef int step_name(self, int64_t item, int64_t byte) except -1
