"""Closure: the live items of a row, found from its core. `tokdfa.backends.pushdown_trie.rows` says what they are."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tokdfa.backends.pushdown_trie.rows cimport (
    OPEN, ROOT, ROW_ACCEPTS, ROW_CUT, ROW_MIDDLE, ROW_PLACE, ROW_TOKENS, ROW_WIDE, Caller, Frame, Reached,
    entry_place, entry_rest, pack_entry, pack_item, place_of, stack_of, state_of,
)
from tokdfa.backends.pushdown_trie.state_table cimport ACCEPTS, ENDS, SHORTEST, WIDE
from tokdfa.core.border cimport pay
from tokdfa.program.operations cimport ANY, CALL, COUNTED, LAZY, NAMES, RETURN, TERMINAL, TOKEN
from tokdfa.vocabulary.byte_table cimport UNKNOWN


cdef enum:
    ITEM_WORK = 10       # what an item counts as that a closure meets, in ns
    MOST_MET = 1 << 18   # once more items are met, they are paid for
    MOST_REACHED = 2000000  # items of a closure beside eight times what a row may have


cdef class Closure(Items):
    """Rows that are closed when they are first looked at."""

    cdef int close_row(self, int64_t row) except -1:
        if self.live_end[row] != OPEN:
            return 0
        if self.flags_at[row] & ROW_MIDDLE:
            return self.close_middle(row)
        self.write_live(row, self.reach(row))
        if self.items_met > MOST_MET:
            self.pay_items()
        return 0

    cdef int pay_items(self) except -1:
        cdef int64_t met = self.items_met
        self.items_met = 0
        return pay(met * ITEM_WORK, 0)

    cdef int push(self, int64_t place, int64_t state, int64_t stack) except -1:
        """Add an item to the closure unless it is there.

        The set is emptied before every closure, by a new stamp; an interning table would have to be cleared.
        """
        cdef uint64_t mask, key, slot
        if 2 * self.t.work.size() + 2 >= self.t.seen_keys.size():
            self.widen_seen()
        mask = self.t.seen_keys.size() - 1
        key = <uint64_t>place << 44 ^ <uint64_t>state << 23 ^ <uint64_t>(stack + (1 << 21))
        slot = key * <uint64_t>0x9E3779B97F4A7C15 >> 20 & mask
        while self.t.seen_stamps[slot] == self.t.stamp:
            if self.t.seen_keys[slot] == key:
                return 0
            slot = (slot + 1) & mask
        self.t.seen_keys[slot], self.t.seen_stamps[slot] = key, self.t.stamp
        self.t.work.push_back(Reached(<int32_t>place, <int32_t>state, <int32_t>stack))
        return 0

    cdef int widen_seen(self) except -1:
        """Twice the slots. Raises LimitExceeded for a closure without bounds."""
        cdef vector[uint64_t] keys
        cdef vector[int64_t] stamps
        cdef uint64_t mask, slot, key
        cdef size_t k
        if <int64_t>self.t.work.size() > 8 * self.max_items + MOST_REACHED:
            raise self.too_many_items()
        keys.resize(2 * self.t.seen_keys.size())
        stamps.resize(keys.size())
        mask = keys.size() - 1
        for k in range(self.t.seen_keys.size()):
            if self.t.seen_stamps[k] == self.t.stamp:
                key = self.t.seen_keys[k]
                slot = key * <uint64_t>0x9E3779B97F4A7C15 >> 20 & mask
                while stamps[slot] == self.t.stamp:
                    slot = (slot + 1) & mask
                keys[slot], stamps[slot] = key, self.t.stamp
        self.t.seen_keys.swap(keys)
        self.t.seen_stamps.swap(stamps)
        return 0

    cdef bint reach(self, int64_t row) except -1:
        """Find all items that those of a row's core come to, into `work`; whether the text may end."""
        cdef int64_t k, item
        cdef size_t done = 0
        cdef Reached here
        cdef int32_t operation, first, second
        cdef bint accepts = False
        self.t.stamp += 1
        self.t.work.clear()
        self.t.callers.clear()
        for k in range(self.core_size(row)):
            item = self.core(row)[k]
            self.push(place_of(item), state_of(item), stack_of(item))
        while done < self.t.work.size():
            here = self.t.work[done]
            operation = self.code_at[here.place].operation
            first, second = self.code_at[here.place].first, self.code_at[here.place].second
            if operation == TERMINAL:
                if here.state == 0:
                    here.state = first
                    self.t.work[done].state = first
                if self.automata.targets[<int64_t>here.state * 256] == UNKNOWN:  # its flags are not known yet
                    self.automata.make_row(here.state)
                if self.automata.flags_of[here.state] & ACCEPTS:
                    self.push(second, 0, here.stack)
            elif operation == ANY:
                for k in range(first, second):
                    self.push(self.alternative[k], 0, here.stack)
            elif operation == CALL:
                self.call(first, second, here.stack)
            elif operation == RETURN:
                if here.stack == ROOT:
                    accepts = True
                else:
                    self.return_from(here.stack)
            elif operation == LAZY:
                self.write_code(here.place)
                continue  # with what was written
            elif (operation == NAMES or operation == COUNTED) and here.state == 0:
                self.t.work[done].state = 1
            done += 1
        self.items_met += self.t.work.size()
        return accepts

    cdef int call(self, int32_t frame, int64_t place, int64_t stack) except -1:
        """Enter a frame, which returns to a place with a stack."""
        cdef Frame* one = &self.t.frames[frame]
        if one.stamp != self.t.stamp:
            one.stamp = self.t.stamp
            one.caller = one.stack = one.member = -1
            one.index = 0
            one.returned = one.is_open = False
            self.push(self.entry_of[frame], 0, ~<int64_t>frame)
        self.t.callers.push_back(Caller(<int32_t>place, <int32_t>stack, one.caller))
        one.caller = <int32_t>(self.t.callers.size() - 1)
        if one.returned:
            self.push(place, 0, stack)
        return 0

    cdef int return_from(self, int64_t stack) except -1:
        """Go on at the places to which a stack, or the present callers of a frame, return."""
        cdef int64_t k, count, entry
        cdef int32_t caller
        if stack > 0:
            count = self.entry_count(stack)
            self.items_met += count
            for k in range(count):
                entry = self.entries_of(stack)[k]
                if entry_place(entry) != ROW_PLACE:
                    self.push(entry_place(entry), 0, entry_rest(entry))
            return 0
        self.t.frames[~stack].returned = True
        caller = self.t.frames[~stack].caller
        while caller >= 0:
            self.push(self.t.callers[caller].place, 0, self.t.callers[caller].stack)
            caller = self.t.callers[caller].next
            self.items_met += 1
        return 0

    cdef int write_live(self, int64_t row, bint accepts) except -1:
        """Write the items of a closure that can read, with stacks in place of frames, and the row's flags."""
        cdef size_t k, begin, kept
        cdef Reached here
        cdef int64_t string
        cdef int32_t operation
        cdef int seen = 0, flags = self.flags_at[row]
        begin = kept = self.t.live.size()
        if accepts:
            flags |= ROW_ACCEPTS
        try:
            for k in range(self.t.work.size()):
                here = self.t.work[k]
                operation = self.code_at[here.place].operation
                if operation == TERMINAL:
                    if self.automata.flags_of[here.state] & ENDS:
                        continue
                    seen |= self.automata.flags_of[here.state]
                elif operation == NAMES or operation == COUNTED:
                    string = self.string_state(pack_item(here.place, here.state, 0))
                    if string >= 0:
                        seen |= self.automata.flags_of[string] & WIDE
                elif operation == TOKEN:
                    flags |= ROW_TOKENS
                else:
                    continue
                if here.stack < 0:
                    self.resolve_frame(~here.stack)
                    here.stack = self.t.frames[~here.stack].stack
                self.t.live.push_back(pack_item(here.place, here.state, here.stack))
            # not at a border at which nothing can be read
            if self.longest and self.skip >= 0 and (accepts or self.t.live.size() > begin):
                self.t.pairs.assign(1, pack_entry(ROW_PLACE, row))
                here.state = self.code_at[self.skip].first
                self.t.live.push_back(pack_item(self.skip, here.state, self.intern_stack()))
                seen |= self.automata.flags_of[here.state]
            if <int64_t>(self.t.live.size() - begin) > self.max_items:
                raise self.too_many_items()
            kept = self.t.live.size()
        finally:
            self.t.live.resize(kept)
        self.flags_at[row] = <uint8_t>(flags | self.division_flags(seen, begin))
        self.live_begin[row], self.live_end[row] = <int32_t>begin, <int32_t>kept
        self.rows_closed += 1
        if self.prunes:
            self.note_reads(row)
        return 0

    cdef int note_reads(self, int64_t row) noexcept:
        """Note which bytes live items read: nobody has to step each item to find out that it refuses a byte."""
        cdef uint64_t* noted = self.reads_at + 4 * row
        cdef const uint64_t* reads
        cdef int64_t item, k
        cdef int32_t operation
        cdef int quarter
        for quarter in range(4):
            noted[quarter] = 0
        for k in range(self.live_begin[row], self.live_end[row]):
            item = self.t.live[k]
            operation = self.code_at[place_of(item)].operation
            if operation == TOKEN:
                continue
            if operation == TERMINAL:
                reads = self.automata.reads_of + 4 * state_of(item)
            else:
                self.item_reads(item)
                reads = self.reads.words
            for quarter in range(4):
                noted[quarter] |= reads[quarter]
        return 0

    cdef int close_middle(self, int64_t row) except -1:
        """The live items of a row in the middle of a lexeme: its core, but for terminals that cannot go on."""
        cdef size_t begin = self.t.live.size()
        cdef int64_t item, state, k, size = self.core_size(row)
        cdef int seen = 0, flags
        cdef bint may_end = False
        for k in range(size):  # all that may raise comes first
            state = state_of(self.core(row)[k])
            if self.automata.targets[state * 256] == UNKNOWN:
                self.automata.make_row(state)
        for k in range(size):
            item = self.core(row)[k]
            flags = self.automata.flags_of[state_of(item)]
            may_end |= flags & ACCEPTS
            if not flags & ENDS:
                self.t.live.push_back(item)
                seen |= flags
        self.flags_at[row] |= <uint8_t>self.division_flags(seen, begin)
        self.live_begin[row], self.live_end[row] = <int32_t>begin, <int32_t>self.t.live.size()
        if self.prunes and not may_end and self.fallback_of[row] < 0:
            self.note_reads(row)
        return 0

    cdef int division_flags(self, int seen, size_t begin) noexcept:
        """ROW_WIDE if divisions may be used by the live items from `begin` on; ROW_CUT if those of terminals that end
        at their first match only. Of two such terminals either may cut off the other, and then none is used.
        """
        cdef int64_t first = -1, state
        cdef size_t k
        cdef int wide = 0
        if not (self.longest and seen & SHORTEST and self.t.live.size() - begin > 1):
            return ROW_WIDE if seen & WIDE else 0
        for k in range(begin, self.t.live.size()):
            state = state_of(self.t.live[k])
            if self.automata.flags_of[state] & SHORTEST:
                if first >= 0 and state != first:
                    return ROW_CUT
                first, wide = state, 0
                if self.automata.flags_of[state] & WIDE:
                    wide = ROW_WIDE
        return ROW_CUT | wide
