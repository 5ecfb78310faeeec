"""Divisions of the vocabulary by the states of terminals (`tokdfa.masks`), and which of them serve a row.

Whatever else may be read in a row: if one of its terminals reads a token to its end and stays alive, the token is
allowed. So the division by a terminal's state serves every row that the state is in, of all constraints of a
vocabulary. In a JSON string 123,000 of Llama 3's 128,000 tokens are inside, and the trie of the rest has a few thousand
nodes, which are walked from the row. One division serves a row: whatever another state allows is either inside or met
in the rest.

The same is done for subtrees: where a walk comes to a node with many descendants in a row that has a wide state (after
the quote that opens a string, after a blank), what is below that node is a rest of its own.

**Kinds.** A state may have bits beside its number, which make other divisions of it.

- STRICT: a token is inside only if the terminal is not complete after it. For items that do not end where the terminal
  does (`tokdfa.backends.pushdown_trie.names`, `tokdfa.backends.pushdown_trie.items`).
- ALONE: the state is that of all items of a row. Then a token that dies before the terminal has been complete is
  refused: in a JSON string only tokens with a closing quote are left. If the terminal has one end on the way to a
  token, and cannot go on there, the row behind that end is the same for all such tokens. What stands behind is left
  with a tag of its own, and read from that row.
- OWN: tokens that begin with a byte that the state does not read are refused. For states that read few bytes, but over
  and over, as blanks and digits: the others are walked in the vocabulary's trie.

States of one division class (`tokdfa.backends.pushdown_trie.automaton_table`) share a division, so nothing may count
for it but the strings that a state reads, up to the length of the longest token: no flag that says more of a state.

**When a division is made.** Of the whole trie at once, as the walk without it would take as long; of a subtree, or with
OWN, when walks for want of it have visited as many nodes as it takes to make, and then after a mask, for those to come.
So no more is ever spent than twice what was best, and a first visit costs a walk (Karlin et al. 1988, ski rental).
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset
from libcpp.vector cimport vector

from tokdfa.backends.pushdown_trie.items cimport ALONE, OWN, STATE_PART, STRICT
from tokdfa.backends.pushdown_trie.rows cimport ROW_MIDDLE, ROW_WIDE, STATE_BITS, place_of, state_of
from tokdfa.backends.pushdown_trie.state_table cimport ACCEPTS, ENDS, LOOPS, WIDE
from tokdfa.core.byte_sets cimport ByteSet, meets, set_size
from tokdfa.masks.builder cimport LEFT, RETRY, WALK, Frame
from tokdfa.masks.divisions cimport MADE, OPEN, WHOLE_REST, Cut, Division, LeftRange, left_code
from tokdfa.program.operations cimport NAMES, NAMES_TABLE, TERMINAL
from tokdfa.vocabulary.byte_table cimport DEAD, UNKNOWN, WalkProgress

from contextlib import suppress

from tokdfa.backends.pushdown_trie.slices import Slices
from tokdfa.errors import LimitExceeded

#: A trie of fewer nodes is walked as it is, without slices.
LEAST_NODES = 20_000
#: What it takes to make a division of a small subtree, in nodes of a walk.
DIVISION_WORK = 25_000
#: So many divisions a mask may want for those to come.
MOST_DUE = 1
#: Bytes of divisions; past it all are dropped and made anew.
LIMIT = 1 << 26


cdef enum:
    MOST_REST = 30000   # a rest of so many nodes is good enough not to make further divisions for the same row
    SIZE_UNIT = 10000   # a division takes as long again as DIVISION_WORK for each so many nodes
    # an entry of the stack, by depth: the state, with ENDED if the terminal has been complete on the way, and BEFORE if
    # it was so before this state
    ENDED = 1
    BEFORE = 2
    ENTRY_SHIFT = 2


# The holes of the walk that divides.

cdef struct StateView:
    const int32_t* targets
    const uint8_t* flags
    int64_t kind
    int64_t begin


cdef inline StateView state_view "state_view" (RowDivisions owner) noexcept nogil:
    return StateView(owner.automata.targets, owner.automata.flags_of, owner.kind, owner.begin)


cdef inline int64_t state_step "state_step" (
    StateView view, int64_t* stack, uint64_t depth, uint64_t byte
) noexcept nogil:
    cdef int64_t entry = stack[depth], ended = entry & ENDED, code = left_code(REST, view.begin)
    cdef int64_t target = view.targets[<uint64_t>(entry >> ENTRY_SHIFT) * 256 + byte]
    if target >= 0:
        if not (view.flags[target] & ACCEPTS and view.kind & STRICT):
            stack[depth + 1] = target << ENTRY_SHIFT | ended * BEFORE | ended | (view.flags[target] & ACCEPTS)
            return target
        ended = ENDED
    elif target == UNKNOWN:
        return LEFT - left_code(OPEN + entry, depth)
    elif ended and view.kind & ALONE and not entry & BEFORE and view.flags[entry >> ENTRY_SHIFT] & ENDS:
        code = left_code(BEHIND, depth)
    if (view.kind & OWN and depth == 0) or (view.kind & ALONE and not ended):
        return DEAD
    return LEFT - code


cdef int state_mend "state_mend" (RowDivisions owner, int64_t* stack, uint64_t depth, uint64_t byte) except -1 nogil:
    return RETRY  # never asked: what is lacking is left open


cdef extern from "tokdfa/masks/division.hpp" nogil:
    # the walk with these holes: nodes, where it is, the most nodes, owner, stack, out
    int walk_states "tokdfa::walk<state_view, state_step, state_mend, tokdfa::count_inside, tokdfa::leave>" (
        const uint64_t*, WalkProgress&, int64_t, RowDivisions, int64_t*, Cut&) except -1


cdef class RowDivisions(MaskBuilder):
    """Divisions, and the row that they serve. Not thread-safe: the lock of the vocabulary's pool is held."""

    def __init__(self, flat, automata):
        MaskBuilder.__init__(self, flat, limit=LIMIT, patience=0, own_tries=True)
        self.automata, self.branches = automata, self.divisions.branches
        self.trie_nodes, self.depth_limit, self.size = self.flat.node_count, self.flat.depth_limit, self.flat.size
        self.states.resize(self.depth_limit + 2)
        self.price, self.most_due = DIVISION_WORK, MOST_DUE
        self.slices = Slices(automata, self)

    def forget(self):
        """Forget all divisions."""
        MaskBuilder.forget(self)
        if self.slices is not None:
            self.slices.forget()

    # Making divisions.

    @property
    def is_large(self):
        """Whether slices pay, and are used."""
        return self.trie_nodes >= LEAST_NODES

    cdef int divide_some(self, WalkProgress& progress, int64_t most, Cut& cut) except -1 nogil:
        return walk_states(self.divisions.nodes, progress, most, self, self.states.data(), cut)

    cdef int64_t enter_division(self, int32_t state, const uint8_t* data, int64_t begin, int64_t base) except? -9:
        self.kind, self.begin = state & ~<int64_t>STATE_PART, base
        self.states[base] = (state & <int64_t>STATE_PART) << ENTRY_SHIFT
        return 0

    cdef int supply(self, const vector[LeftRange]& open) except -1:
        cdef size_t k
        states = {(open[k].tag - OPEN) >> ENTRY_SHIFT for k in range(open.size())}
        self.automata.fill_rows(sorted(states))
        return 0

    cdef int reenter(self, LeftRange open) except -1:
        self.states[open.depth] = open.tag - OPEN
        return 0

    def divide_now(self, int64_t state):
        """Make the division of whole tokens by a state with its kind, unless it is there; its number.

        -1: there is no room. Raises what making the row of a state raises.
        """
        return self.divide_by(WHOLE_REST, state)

    def divide_within(self, int64_t state, int64_t within):
        """`divide_now`, where all that is inside of division `within` of whole tokens (-1: none) is inside, too."""
        cdef int32_t number = self.divisions.number_of(WHOLE_REST, <int32_t>state)
        if within >= <int64_t>self.divisions.divisions.size() or (
            within >= 0 and self.divisions.divisions[within].met != MADE
        ):
            raise IndexError(f"there is no division {within}")
        if self.divisions.divisions[number].met != MADE and self.divisions.has_room(self.trie_nodes):
            self.divide(number, WHOLE_REST, <int32_t>state, <int32_t>within)
        return number if self.divisions.divisions[number].met == MADE else -1

    cdef int32_t divide_by(self, int32_t rest, int64_t state) except -9:
        """Make the division of a rest by a state with its kind, unless it is there; its number, or -1: no room."""
        cdef int32_t known = self.automata.class_of(state & STATE_PART)
        cdef int32_t key = known | <int32_t>(state & ~<int64_t>STATE_PART), number, within
        number = self.divisions.number_of(rest, key)
        if self.divisions.divisions[number].met != MADE:
            if not self.divisions.has_room(self.trie_nodes):
                return -1
            within = -1
            if rest == WHOLE_REST and self.is_large:
                within = self.slices.within(key)  # which may make other divisions
            if within >= 0 and not state & (ALONE | OWN) and self.divisions.nodes_left(within) <= MOST_REST:
                self.divisions.divisions[number] = self.divisions.divisions[within]  # its own would leave little less
            else:
                self.divide(number, rest, key, within)
        return number

    cdef int try_slices(self, int64_t state) except -1:
        """Make the division of whole tokens by a state with its kind, if a slice serves; a state is tried once."""
        cdef int32_t number = self.divisions.number_of(WHOLE_REST, <int32_t>state)
        if self.divisions.divisions[number].met == 0:
            self.divisions.divisions[number].met = 1
            if self.is_large and self.slices.within(state) >= 0:
                self.divide_by(WHOLE_REST, state)
        return 0

    cdef int note_wanted(self, int32_t number, int64_t nodes, int64_t work) except -1:
        """Note that `nodes` are walked for want of a division, and that it is due, if all such walks come to `work`."""
        cdef Division* division = &self.divisions.divisions[number]
        division.met = <int32_t>min(division.met + nodes, <int64_t>1 << 30)
        if division.met >= work and <int64_t>self.due.size() < self.most_due:
            self.due.push_back(number)
        return 0

    def divide_due(self):
        """Make the divisions that are due, for the masks to come; what takes too much is not made."""
        cdef size_t k
        cdef int64_t key
        for k in range(self.due.size()):
            with suppress(LimitExceeded):
                key = self.divisions.keys.key(self.due[k])
                self.divide_by(<int32_t>(key >> 32), key & 0xFFFFFFFF)
        self.due.clear()

    cdef bint ends_once(self, int32_t number) noexcept:
        """Whether all that a division leaves stands behind the only end on the way."""
        cdef int32_t k
        for k in range(self.divisions.divisions[number].first_end, self.divisions.divisions[number].past_end):
            if self.divisions.ends[k].tag != BEHIND:
                return False
        return True

    # Rows.

    cdef bint is_alone(self, int64_t row, bint whole) noexcept:
        """Whether a closed row has one item, or several of terminals and names in the same state, and no terminal is
        complete.

        Names are in one state if as much of one table is spelled; which state of a terminal that is, one of them knows.
        With the longest match a terminal that dies may have had another end, which its row falls back on. Terminals
        beside names count as several where not `whole` tokens are read, as nobody walks there once more what the names
        spell.
        """
        cdef int64_t begin = self.machine.live_begin[row], end = self.machine.live_end[row], k
        cdef int64_t state = -1, spelled = -1, item, other, here
        cdef bint is_known = False, is_plain = False
        cdef int32_t operation
        if self.machine.longest or begin == end:
            return False
        for k in range(begin, end):
            item = self.machine.t.live[k]
            other = state_of(item)
            operation = self.machine.code_at[place_of(item)].operation
            if operation == TERMINAL:
                if self.automata.flags_of[other] & ACCEPTS:
                    return False
                is_plain = True
            elif end - begin == 1:
                return True
            elif operation == NAMES:
                here = self.machine.argument[self.machine.code_at[place_of(item)].first + NAMES_TABLE]
                here = here << STATE_BITS | other
                if spelled >= 0 and spelled != here:
                    return False
                spelled = here
                other = self.machine.string_state(item)
                if other < 0:
                    continue
                is_known = True
            else:
                return False
            if state >= 0 and other != state:
                return False
            state = other
        if not whole and is_plain and spelled >= 0:
            return False
        return state >= 0 and (is_known or spelled < 0)

    cdef int64_t names_item(self, int64_t row) noexcept:
        """The first live item of NAMES of a closed row, or -1."""
        cdef int64_t k
        for k in range(self.machine.live_begin[row], self.machine.live_end[row]):
            if self.machine.code_at[place_of(self.machine.t.live[k])].operation == NAMES:
                return self.machine.t.live[k]
        return -1

    cdef int64_t wide_row(self, int64_t row) except? -9:
        """The row whose wide states serve a closed row, -1 if none has any.

        In the middle of a lexeme that may end, such as a blank, a byte that it does not read is one of the border after
        it. So states of that border serve, too, if they read none of the bytes that the lexeme goes on with
        (`is_barred`).
        """
        cdef int64_t border
        if self.machine.flags_at[row] & ROW_WIDE:
            return row
        if not self.machine.flags_at[row] & ROW_MIDDLE:
            return -1
        border = self.machine.end_row(row)
        if border < 0:
            return -1
        self.machine.close_row(border)
        return border if self.machine.flags_at[border] & ROW_WIDE else -1

    cdef int64_t serving_state(
        self, int64_t k, int64_t row, int64_t source, int64_t place, bint alone, int64_t passed
    ) noexcept:
        """`Items.wide_state` of live item k of `source`, if it serves a row and is not the state `passed`; or -1."""
        cdef int64_t wide = self.machine.wide_state(
            self.machine.t.live[k], place, self.machine.flags_at[source], alone, self.depth_limit
        )
        cdef int64_t state = wide & STATE_PART
        return -1 if wide < 0 or state == passed or self.is_barred(state, row, source) else wide

    cdef bint is_barred(self, int64_t state, int64_t row, int64_t source) noexcept:
        """Whether a state of `source`, which is `wide_row` of a row, does not serve that, as its lexemes go on
        first.
        """
        cdef int64_t other, k
        if source == row:
            return False
        for k in range(self.machine.live_begin[row], self.machine.live_end[row]):
            other = state_of(self.machine.t.live[k])
            if self.automata.targets[other * 256] == UNKNOWN:
                return True
            if meets(self.automata.reads_of + 4 * other, self.automata.reads_of + 4 * state):
                return True
        return False

    cdef int32_t best_state(self, int32_t rest, int64_t row, int64_t source, int64_t passed) except -9:
        """The state with its kind by whose division a rest is read in a row, or WALK.

        Of the row's wide states it is the one whose division leaves the least. One is enough, so others are not even
        made if one leaves little. The state `passed` is left out, as nothing is inside of it.
        """
        cdef int32_t best, number
        cdef int64_t least, last, missing, reads, wide, state, known, size, k
        cdef bint whole = rest == WHOLE_REST, alone = self.is_alone(row, whole), names = self.names_item(row) >= 0
        while True:
            best, least, last, missing, reads = WALK, <int64_t>1 << 40, -1, -1, -1
            for k in range(self.machine.live_begin[source], self.machine.live_end[source]):
                wide = self.serving_state(k, row, source, not whole, alone, passed)
                if wide < 0:
                    continue
                state = wide & STATE_PART
                known = self.automata.class_in[state]
                if whole and wide == state and self.automata.flags_of[state] & LOOPS:
                    # its rest would be most of the trie: `take_loops` has one of what it reads
                    self.try_slices((known if known >= 0 else state) | OWN)
                    continue
                if known >= 0:
                    known |= wide & ~<int64_t>STATE_PART
                    if known == last:
                        continue
                last = known
                number = self.divisions.find(rest, <int32_t>known) if known >= 0 else -1
                if number < 0:
                    size = set_size(self.automata.reads_of + 4 * state)
                    if size > reads:  # it is likely to leave the least
                        missing, reads = wide, size
                    continue
                if names and known & (ALONE | STRICT) == ALONE and not self.ends_once(number):
                    continue  # nobody has strings like this; what a name is worth would not be asked
                size = self.divisions.nodes_left(number)
                if size < least:
                    best, least = <int32_t>known, size
            if not whole or missing < 0 or least <= MOST_REST or self.divide_by(rest, missing) < 0:
                return best

    cdef int32_t closing_rest(self, int64_t row) except -9:
        """What is left by the one state that the items of a row are in, if no terminal may be complete; -1: nothing."""
        cdef int64_t state = -1, item, k
        cdef int32_t number
        for k in range(self.machine.live_begin[row], self.machine.live_end[row]):
            item = self.machine.t.live[k]
            if state < 0 and self.machine.code_at[place_of(item)].operation == TERMINAL:
                state = state_of(item)
            elif state < 0:
                state = self.machine.string_state(item)
        number = self.divide_by(WHOLE_REST, state | STRICT | ALONE)
        if number < 0:
            return WHOLE_REST
        if self.divisions.divisions[number].first_end == self.divisions.divisions[number].past_end:
            return -1
        return self.divisions.ends[self.divisions.divisions[number].first_end].rest

    cdef bint serve_subtree(
        self, int64_t row, int64_t source, int32_t rest, int64_t size, int64_t passed
    ) except -1:
        """Whether a division of a subtree of `size` nodes serves a row by one of its wide states, `passed` left out.
        One that is missing is wanted.
        """
        cdef int64_t wide, state, known, k
        cdef int32_t number = -1
        cdef bint alone = self.is_alone(row, False)
        for k in range(self.machine.live_begin[source], self.machine.live_end[source]):
            wide = self.serving_state(k, row, source, 1, alone, passed)
            if wide < 0:
                continue
            state = wide & STATE_PART
            known = self.automata.class_in[state]
            known = (known if known >= 0 else state) | (wide & ~<int64_t>STATE_PART)
            number = self.divisions.number_of(rest, <int32_t>known)
            if self.divisions.divisions[number].met == MADE:
                return True
        if number >= 0:
            self.note_wanted(number, size, self.price * (SIZE_UNIT + size) // SIZE_UNIT)
        return False

    cdef int64_t guide_of(self, int64_t row, int64_t source, int64_t passed) noexcept:
        """The wide state of a closed row, with its kind, that reads the most bytes, or -1; `passed` is left out."""
        cdef int64_t guide = -1, most = -1, wide, count, k
        for k in range(self.machine.live_begin[source], self.machine.live_end[source]):
            wide = self.serving_state(k, row, source, 1, False, passed)
            if wide < 0:
                continue
            count = set_size(self.automata.reads_of + 4 * (wide & STATE_PART))
            if count > most:
                guide, most = wide, count
        return guide

    cdef int take_loops(self, int64_t row, int64_t source) except -1:
        """Take what states that loop read over and over, and put off what these divisions leave.

        The bytes that they read are `taken`. A division that is missing is wanted when three masks have missed it, or
        of a state that reads few bytes a hundred.
        """
        cdef ByteSet asked
        cdef const uint64_t* reads
        cdef Frame frame = Frame(<int32_t>row, WALK, WHOLE_REST, -1)
        cdef int64_t item, state, known, k, missed
        cdef int32_t number
        cdef int quarter
        memset(&asked, 0, sizeof(ByteSet))
        for k in range(self.machine.live_begin[source], self.machine.live_end[source]):
            item = self.machine.t.live[k]
            state = state_of(item)
            if self.machine.code_at[place_of(item)].operation != TERMINAL:
                continue
            if not self.automata.flags_of[state] & LOOPS or self.is_barred(state, row, source):
                continue
            reads = self.automata.reads_of + 4 * state
            if meets(reads, self.taken.words):
                continue
            known = self.automata.class_in[state]
            number = self.divisions.number_of(WHOLE_REST, <int32_t>((known if known >= 0 else state) | OWN))
            if self.divisions.divisions[number].met != MADE:
                if meets(reads, asked.words):
                    continue  # another item in the same state, mostly
                for quarter in range(4):
                    asked.words[quarter] |= reads[quarter]
                missed = 1 + self.price // (3 if self.automata.flags_of[state] & WIDE else 100)
                self.note_wanted(number, missed, self.price)
                continue
            self.take_inside(number)
            self.put_off(number, &frame)
            for quarter in range(4):
                self.taken.words[quarter] |= reads[quarter]
        return 0
