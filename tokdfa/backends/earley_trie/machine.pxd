from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.vector cimport vector

from tokdfa.grammar.lexer cimport Lexer
from tokdfa.backends.earley_trie.rows cimport Rows
from tokdfa.core.interning cimport Contents, Keys


cdef enum:
    CHAIN_LINKS = 256  # of a chain of fallbacks at most; grammars in use have one or two


cdef struct Situation:
    int32_t row
    int32_t state
    int32_t fallback  # the number of a situation; less than 0: none


cdef struct Border:  # after a lexeme: the row, and the state in which its lexemes begin
    int32_t row
    int32_t state


cdef class Machine:
    cdef readonly object cfg
    cdef readonly Lexer lexer
    cdef readonly Rows rows
    cdef readonly bint longest, skip_at_ends
    cdef readonly int32_t start
    cdef int64_t max_situations
    cdef Contents[int32_t] situations     # row, lexer state, fallback
    cdef Keys ended                       # pairs of a row and an accepting set that ended there
    cdef vector[Border] after             # by such a pair; row -1: refused, state -1: not known yet
    cdef vector[int32_t] start_states     # by row, -1: not known yet
    cdef vector[int32_t] content          # scratch
    cdef Border[CHAIN_LINKS] before       # scratch: a chain before a byte, outmost first,
    cdef Border[CHAIN_LINKS] chain        # and after it, inmost first
    cdef readonly int64_t scans           # lexemes that the parser had to read

    # The lexer state in which the lexemes of a row may begin.
    cdef int32_t start_in(self, int32_t row) except -1 nogil
    # The number of (row, set) in `after`, entered if need be.
    cdef int32_t end_of(self, int32_t row, int32_t accepting_set) except -1 nogil
    # The row and state after a lexeme of the set has ended; 0 if none may stand there.
    cdef bint end_lexeme(self, int32_t row, int32_t accepting_set, Border* after) except -1 nogil
    cdef int add_link(self, int count, int32_t row, int32_t state) noexcept nogil
    # Read a byte of a class; 0 if it is refused, and the situation is as it was.
    cdef bint step(self, Situation* here, int32_t column) except -1 nogil
    # Read bytes, as `step`.
    cdef bint read(self, Situation* here, const uint8_t* data, int64_t size) except -1 nogil
    # The number of a situation.
    cdef int32_t enter(self, int32_t row, int32_t state, int32_t fallback) except -1 nogil
    cdef int load(self, int64_t situation, Situation* out) except -1
    cpdef int32_t row_at_border(self, int64_t situation) except -2


cdef inline Situation situation_at(Machine machine, int32_t number) noexcept nogil:
    cdef const int32_t* content = machine.situations.content_of(number)
    return Situation(content[0], content[1], content[2])
