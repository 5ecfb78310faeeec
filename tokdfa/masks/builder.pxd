from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from tokdfa.masks.divisions cimport Bits, Cut, Division, Divisions, LeftRange
from tokdfa.vocabulary.byte_table cimport WalkProgress
from tokdfa.vocabulary.trie_nodes cimport FlatTrie


cdef enum:
    # in place of a state: a rest is to be walked; the strategy is to choose; numbers below are its own, and walked
    WALK = -1
    CHOOSE = -2
    # what `mend` says (walker.hpp), and codes of a step: less than LEFT for what is left
    RETRY = 0
    SURVIVES = 1
    DIES = 2
    LEFT = -3


cdef struct Frame:  # a rest that is to be read
    int32_t row     # what the parser knows
    int32_t state   # by which the rest is divided, or WALK or CHOOSE
    int32_t rest
    int32_t passed  # the state by which the division was that has left the rest; -1 for none


cdef class MaskBuilder:
    cdef readonly FlatTrie flat
    cdef readonly Divisions divisions
    cdef readonly int64_t limit
    cdef readonly int64_t nodes_visited, borders
    cdef readonly int32_t patience
    cdef object shared
    cdef bint names_states
    cdef vector[uint32_t] own_words       # V + 1 bits
    cdef uint32_t* words                  # of the mask being made: these, or the caller's
    cdef int64_t word_count
    cdef bint blank                       # nothing is written to them yet
    cdef vector[Frame] agenda             # what is to be read for it, the next one last
    cdef Cut cut                          # of the division being made, in:
    cdef vector[uint32_t] inside
    cdef vector[int32_t] inside_tokens
    cdef vector[LeftRange] ranges
    cdef int64_t unpaid                   # nodes
    cdef dict same_as, named, wanted

    # What a strategy gives. It has a stack of situations, and one of states, indexed by depth.
    #
    # Walk some nodes on from the situations in the stack: the template's walk with `allow`.
    cdef int walk_some(self, FlatTrie trie, WalkProgress& progress, int64_t most, Bits& out) except -1 nogil
    # Walk some nodes on by the states in the stack: the template's walk with `allow_inside` and `leave`.
    cdef int divide_some(self, WalkProgress& progress, int64_t most, Cut& cut) except -1 nogil
    # Make what the steps at open ranges lacked (tags from OPEN on), all at once.
    cdef int supply(self, const vector[LeftRange]& open) except -1
    # Put the situation in a row and state into the stack at depth `base`, after bytes that are read first; 0 if
    # refused.
    cdef bint enter_walk(self, const Frame* frame, const uint8_t* data, int64_t size, int64_t base) except -1
    # Put a state into the stack at depth `base`, after the bytes between depth `begin` and this; what the last step
    # returns, at once if that is negative.
    cdef int64_t enter_division(self, int32_t state, const uint8_t* data, int64_t begin, int64_t base) except? -9
    # Put into a frame, whose rest a division has left with a tag, the row and state behind the tag; 0 if refused.
    cdef bint follow(self, int32_t tag, Frame* frame) except -1
    # The state, or WALK, for a frame with CHOOSE.
    cdef int32_t choose(self, const Frame* frame) except -9
    # About how many nodes a walk by a state visits.
    cdef int64_t width(self, int32_t state) except -1

    # What the builder does with it.
    cdef int begin_mask(self) except -1
    # Write zeros to a mask that is blank.
    cdef int clear_words(self) noexcept
    cdef int end_mask(self, int32_t[::1] out) except -1
    # OR the tokens allowed in a row and state; `clears`: of those that the division leaves, bits that are set do not
    # count.
    cdef int add_place(self, int32_t row, int32_t state, bint clears) except -1
    # OR what the frames in the agenda allow.
    cdef int read_agenda(self, bint clears) except -1
    # Put into the agenda what the division of a frame leaves.
    cdef int put_off(self, int32_t number, const Frame* frame) except -1
    # OR the tokens inside of a division that is made.
    cdef int take_inside(self, int32_t number) except -1
    # OR the tokens of a rest that are allowed, by a walk.
    cdef int walk_rest(self, const Frame* frame) except -1
    cdef int walk_nodes(self, FlatTrie trie, int64_t first, int64_t past) except -1
    # Divide a rest by a state. `within`: the number of a division of the rest all of whose tokens are inside, and which
    # leaves one rest at most; then only that is walked. Less than 0: none.
    cdef int divide(self, int32_t number, int32_t rest, int32_t state, int32_t within) except -1
    cdef int make_room(self, int64_t most) except -1
    cdef int divide_range(self, int64_t word, int32_t state) except -1
    cdef int divide_nodes(self, int64_t first, int64_t past) except -1
    # Go on at open ranges until there are none.
    cdef int resume(self) except -1
    # Put into the stack what an open range has been left with.
    cdef int reenter(self, LeftRange open) except -1
    cdef int count_nodes(self, int64_t visited) except -1
    cdef int clear_left(self, int32_t number) except -1
    cdef int64_t spelling(self, int64_t node) noexcept
    cdef int32_t state_like(self, int32_t state) except -1
    cdef int offer(self, int32_t state) except -1
    cdef int insert(self, int32_t state, object stored) except -1
