from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libcpp.algorithm cimport sort, unique
from libcpp.vector cimport vector

from tokdfa.backends.pushdown_trie.bound_program cimport Instruction, ProgramArrays
from tokdfa.backends.pushdown_trie.name_tries cimport Name, NameTrie
from tokdfa.backends.pushdown_trie.state_table cimport StateTable
from tokdfa.core.byte_sets cimport ByteSet
from tokdfa.core.interning cimport Contents


cdef enum:
    # An item is 63 bits: place, state and stack. Its state is 0 where nothing of a terminal was read.
    STACK_BITS = 22
    STATE_BITS = 21
    PLACE_BITS = 20
    PLACE_SHIFT = 43
    STACK_MASK = (1 << 22) - 1
    STATE_MASK = (1 << 21) - 1
    # flags of a row: the text may end here (of borders); in the middle of a lexeme; divisions by its items pay; it
    # takes special tokens; a terminal that ends at its first match may cut the others off, whatever these allow by
    # themselves; an item of its core is of COUNTED
    ROW_ACCEPTS = 1
    ROW_MIDDLE = 2
    ROW_WIDE = 4
    ROW_TOKENS = 8
    ROW_CUT = 16
    ROW_COUNTED = 32
    # `live_end` of a row that is not closed; `row_ended` of one that was not asked
    OPEN = -1
    NOT_ASKED = -2
    # added to the target of a transition of a row: 0 is UNKNOWN, 1 DEAD
    BIAS = 2
    # the stack of the whole text; the place of an entry that goes on in a row, whose number is the rest
    ROOT = 0
    ROW_PLACE = -1
    # as how many items that are met one counts that is sorted into a row, or an entry into a stack
    SORTED_ITEMS = 16


cdef struct Reached:  # an item of a closure; its stack may be ~frame
    int32_t place
    int32_t state
    int32_t stack


cdef struct Caller:  # the place to return to; the caller's stack, or ~frame; the next caller of the same frame
    int32_t place
    int32_t stack
    int32_t next


cdef struct Frame:
    int64_t stamp      # of the closure that called the frame last
    int32_t caller     # its latest one
    bint returned      # whether it has returned without reading
    int32_t stack      # -1 if not made
    int32_t index      # Tarjan's; 0: not met
    int32_t low
    int32_t member     # its place in its group, -1 if it is in no group being made
    int32_t met_by     # the member of a group whose callers were gathered last
    bint is_open       # on Tarjan's stack


cdef inline int64_t pack_item(int64_t place, int64_t state, int64_t stack) noexcept nogil:
    return place << PLACE_SHIFT | state << STACK_BITS | stack


cdef inline int64_t place_of(int64_t item) noexcept nogil:
    return item >> PLACE_SHIFT


cdef inline int64_t state_of(int64_t item) noexcept nogil:
    return item >> STACK_BITS & STATE_MASK


cdef inline int64_t stack_of(int64_t item) noexcept nogil:
    return item & STACK_MASK


# An entry of a stack: the place to return to, and the rest, which may be negative.
cdef inline int64_t pack_entry(int64_t place, int64_t rest) noexcept nogil:
    return <int64_t>(<uint64_t>place << 32 | <uint64_t><uint32_t>rest)


cdef inline int64_t entry_place(int64_t entry) noexcept nogil:
    return entry >> 32


cdef inline int64_t entry_rest(int64_t entry) noexcept nogil:
    return <int32_t><uint32_t><uint64_t>entry


cdef inline int sort_distinct(vector[int64_t]& values) except -1:
    sort(values.begin(), values.end())
    values.erase(unique(values.begin(), values.end()), values.end())
    return 0


cdef class RowTables:
    cdef object memory
    cdef readonly int64_t max_rows
    cdef int64_t row_count, stamp
    cdef int64_t rows_used  # whose transitions are what machines before left there
    # by row, in `memory`
    cdef int32_t* live_begin
    cdef int32_t* live_end
    cdef int32_t* row_fallback
    cdef int32_t* row_ended
    cdef int32_t* transitions          # row x 256 -> row + BIAS
    cdef uint64_t* row_reads           # row x 4
    cdef uint8_t* row_flags
    cdef Contents[int64_t] rows        # items, and behind them fallback << 8 | whether in the middle
    cdef Contents[int64_t] stacks      # entries
    cdef Contents[int64_t] groups      # of stacks that contain each other
    cdef vector[int32_t] group_stack   # their first stacks
    cdef vector[int64_t] live          # items
    # scratch: of closures
    cdef vector[Reached] work
    cdef vector[uint64_t] seen_keys
    cdef vector[int64_t] seen_stamps
    cdef vector[Caller] callers
    cdef vector[Frame] frames
    cdef vector[int64_t] pairs         # entries of a stack that is made
    cdef vector[int64_t] found         # items of a row that is made

    cdef int64_t bytes_held(self) noexcept
    cdef int clear(self) except -1


cdef class Rows:
    cdef readonly object bound, pool
    cdef StateTable automata
    cdef readonly RowTables t
    cdef object spare
    # the program
    cdef readonly ProgramArrays arrays
    cdef const Instruction* code_at
    cdef const int32_t* alternative
    cdef const int32_t* entry_of
    cdef const int32_t* argument
    cdef const NameTrie* table_at
    cdef const Name* name_at
    cdef const int32_t* order_of
    # by row
    cdef int32_t* live_begin
    cdef int32_t* live_end
    cdef int32_t* fallback_of
    cdef int32_t* ended_of
    cdef int32_t* next_row
    cdef uint64_t* reads_at
    cdef uint8_t* flags_at
    cdef readonly int64_t max_items, max_bytes, nodes_visited, rows_closed
    cdef public bint prunes
    cdef readonly bint longest
    cdef int64_t skip, items_met, held_bytes
    cdef ByteSet reads

    cdef int take_program(self) except -1
    # Make code known that is written later; the program may be in other arrays then.
    cdef int write_code(self, int64_t place) except -1
    cdef int check_room(self) except -1
    # Append an item to `found`, moved on where there is no choice.
    cdef int add_found(self, int64_t place, int64_t state, int64_t stack) except -1
    # The row with the core `found`, which need not be sorted.
    cdef int64_t intern_row(self, bint middle, int64_t fallback) except -1
    cdef int64_t intern_stack(self) except -1

    cpdef int64_t checked(self, int64_t row) except -1
    cdef inline const int64_t* core(self, int64_t row) noexcept:
        return self.t.rows.content_of(<int32_t>row)

    cdef inline int64_t core_size(self, int64_t row) noexcept:
        return <int64_t>self.t.rows.length(<int32_t>row) - 1

    cdef inline const int64_t* entries_of(self, int64_t stack) noexcept:
        return self.t.stacks.content_of(<int32_t>stack)

    cdef inline int64_t entry_count(self, int64_t stack) noexcept:
        return <int64_t>self.t.stacks.length(<int32_t>stack)
