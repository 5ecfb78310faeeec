from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.vector cimport vector

from tokdfa.core.interning cimport Contents


cdef struct Item:
    int32_t dot
    int32_t origin


cdef class Rows:
    cdef readonly object cfg
    cdef readonly int64_t max_rows, max_items
    cdef int32_t skip, lexeme_count, symbol_count
    cdef bint skip_wins
    cdef dict left_of                       # first dot of a right side -> the rule's left side
    # the grammar
    cdef vector[int32_t] rhs                # right sides, each closed by END
    cdef vector[int32_t] initial_begin      # by symbol, into:
    cdef vector[int32_t] initial_dots       # where a predicted nonterminal's dots may stand
    cdef vector[uint8_t] nullable           # by symbol
    # rows
    cdef Contents[int64_t] cores            # whether the text may end, then items as dot << 32 | origin
    cdef vector[int32_t] segment_begin      # by row; one more
    cdef vector[int32_t] segment_symbol     # by segment
    cdef vector[int32_t] segment_first      # by segment, into `items`; one more
    cdef vector[Item] items                 # with a symbol after the dot
    cdef vector[int32_t] origin_segment     # by origin point: the items that wait for it
    # scratch: the core being made; origin points to complete, and by point the scan that did it last
    cdef vector[int64_t] core
    cdef vector[int32_t] agenda, completed
    cdef int32_t scans
    # by symbol: items after whose dot it stands, or where the next of them goes; its origin point. The symbols met, the
    # nonterminals predicted, and by these the one origin of their items, before and after chains are followed
    cdef vector[int32_t] tally, origin_of, present, predicted, only, settled
    cdef int64_t work, kept                 # items moved and bytes that are not paid for

    cdef int build_grammar(self) except -1
    cdef int add_item(self, int32_t dot, int32_t origin) except -1 nogil
    cdef int move_segment(self, int32_t segment) except -1 nogil
    cdef int32_t finish(self, bint accepts) except -1 nogil
    cdef int32_t make_row(self) except -1 nogil
    cdef int64_t predict(self) except -1 nogil
    cdef int note_symbol(self, int32_t symbol) except -1 nogil
    cdef int lay_out(self, size_t base) noexcept nogil
    cdef bint join_origins(self, size_t base, size_t first_item) noexcept nogil
    cdef int raise_too_many_items(self) except -1 nogil
    cdef int count(self, int64_t work, int64_t kept) except -1 nogil
    cdef int check_row(self, int64_t row) except -1
    # The row after reading any of the lexemes (ascending) in a row; -1 if none of them may stand there.
    cdef int32_t scan(self, int32_t row, const int32_t* lexemes, size_t size) except -2 nogil


cdef inline bint row_accepts(Rows rows, int32_t row) noexcept nogil:
    """Whether the text may end in a row."""
    return rows.cores.content_of(row)[0] != 0
