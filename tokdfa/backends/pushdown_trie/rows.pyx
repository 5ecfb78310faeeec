"""Rows: the sets of items, each a place where the program may be, interned by content.

Words. An *item* is a place of the program, a state of what is read there (0: nothing), and a return stack. For TERMINAL
the state is one of the pool, for NAMES and COUNTED one of their own (`tokdfa.backends.pushdown_trie.names`,
`tokdfa.backends.pushdown_trie.items`). A *row* is the set of items after some bytes. Its *core* holds the items as
the last byte left them (kernel items, to LR parsers); its *live* items are those that can read, found by *closure*:
calls are entered, returns taken, alternatives spread, and a terminal that may end is left. Rows are interned by core,
behind whose items stands whether it is in the middle and its fallback (see below); they are closed once, and stepped
once for each byte; so a matcher's state is the number of a row, and what was found out about a row holds wherever it
comes up again.

Closure merges calls of the same frame (`tokdfa.backends.pushdown_trie.stacks`), so left recursion and empty rules come
to an end: there are finitely many (place, state, stack or frame). A frame that returns before anything was read returns
to all its callers, those that turn up later included.

**Longest match** (`Program.longest`; `tokdfa.backends.earley_trie.machine` says the rule and why). Then a row is either
a *border*, at which lexemes may begin, or in the *middle* of a lexeme, for all its items alike. In the middle nothing
is closed: terminals go on while any can. If none can, the row that follows the terminals that may end here takes the
byte; it is the border that the row has *ended* in. Where terminals that may end are left for some that may not yet, the
row keeps what ending there would have led to as its *fallback*, which is stepped along and takes over if the terminals
die. A skipped terminal is an item whose stack says to which border it returns.

Before a row is interned its items are moved on where there is no choice: past a terminal that cannot go on, out of a
frame with one caller, into a tail call. So rows that mean the same are more often equal.

**What a row reads** is the set of bytes that lead on from a closed row, or more. So most bytes are refused by a look at
it, and a row touches few lines of its transitions, 1 kB that is rarely in a cache.

Source: ours; a pushdown automaton determinised lazily, as a regex's NFA is by sets of states.
Cost: about 0.3 us a new row. A transition is kept as target + BIAS, so that 0 is one that is not known, and the memory
by row is reserved at once for all rows that there may be: pages are taken when rows come to be, nothing is ever copied,
and other threads may read transitions while rows are made.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from tokdfa.backends.pushdown_trie.bound_program cimport (
    ALTERNATIVES, ARGUMENTS, CODE, ENTRIES, NODES, ORDER, TABLES, Instruction, ProgramArrays,
)
from tokdfa.backends.pushdown_trie.name_tries cimport Name, NameTrie
from tokdfa.program.operations cimport ANY, CALL, COUNTED, NAMES, RETURN, TERMINAL

import mmap

import numpy as np

from tokdfa.core.pages import zeros_by_page
from tokdfa.core.budget import hold
from tokdfa.errors import LimitExceeded

# the names of the C constants, for Python
globals().update(ROW_TOKENS=ROW_TOKENS, ROOT=ROOT, ROW_PLACE=ROW_PLACE)

#: Bytes of a row in the tables that have entries by row.
ROW_BYTES = 1024 + 32 + 4 * 4 + 1
#: Rows that a machine has room for at least.
LEAST_ROWS = 64
#: Rows whose memory the first machine of a vocabulary writes to, so that no text waits for the system to hand out
#: the page: that takes some us each, and up to ten on a virtual machine.
TOUCHED_ROWS = 1_024


cdef enum:
    # Keep up to so many sets of tables, each with at most so many rows used, each of which takes 1 kB, and at most so
    # many bytes of everything else.
    SPARE_TABLES = 4
    SPARE_ROWS = 16_384
    SPARE_BYTES = 8 << 20
    MAX_MOVES = 1000  # of an item that leave no choice; more than any program has frames in a chain


class MachineFull(LimitExceeded):
    """The machine has reached `max_bytes`; a matcher then moves to a new one, so users do not see it."""

    def __init__(self, max_bytes):
        super().__init__(
            f"the rows and stacks of the constraint take more than {max_bytes >> 20} MB; raise table_mb",
            limit="table_mb",
            value=max_bytes >> 20,
        )


cdef class RowTables:
    """The memory of a machine's rows and stacks, which is used again by another when the machine is gone."""

    def __init__(self, int64_t max_rows, bint touched=False):
        cdef int64_t[7] sizes = [4, 4, 4, 4, 1024, 32, 1]
        cdef int64_t[7] begins
        cdef int64_t past = 0
        cdef uint8_t[::1] memory
        cdef int k
        self.max_rows = max_rows
        for k in range(7):
            begins[k] = past
            past += -(-sizes[k] * max_rows // mmap.PAGESIZE) * mmap.PAGESIZE
        self.memory = memory = zeros_by_page(past, np.uint8)
        self.live_begin, self.live_end = <int32_t*>&memory[begins[0]], <int32_t*>&memory[begins[1]]
        self.row_fallback, self.row_ended = <int32_t*>&memory[begins[2]], <int32_t*>&memory[begins[3]]
        self.transitions, self.row_reads = <int32_t*>&memory[begins[4]], <uint64_t*>&memory[begins[5]]
        self.row_flags = &memory[begins[6]]
        if touched:
            for k in range(7):
                memset(&memory[begins[k]], 0, sizes[k] * min(TOUCHED_ROWS, max_rows))
        self.seen_keys.resize(256)
        self.seen_stamps.resize(256)

    cdef int64_t bytes_held(self) noexcept:
        """Memory in bytes of what has no entries by row."""
        cdef int64_t scratch = 12 * self.work.capacity() + 16 * self.seen_keys.capacity() + 12 * self.callers.capacity()
        scratch += 8 * (self.pairs.capacity() + self.found.capacity() + self.live.capacity())
        return scratch + self.rows.bytes() + self.stacks.bytes() + self.groups.bytes() + 4 * self.group_stack.capacity()

    cdef int clear(self) except -1:
        """Forget rows and stacks."""
        self.rows_used, self.row_count = max(self.rows_used, self.row_count), 0
        self.rows.clear()
        self.stacks.clear()
        self.groups.clear()
        self.group_stack.clear()
        self.live.clear()
        return 0


cdef class SpareTables:
    """Tables of machines that are gone, for those to come: memory that was touched before costs a tenth of new memory,
    and tables that have grown need not grow again.

    Not thread-safe: the interpreter's lock is held.
    """

    cdef list kept
    cdef bint has_touched  # whether a machine has touched the memory that it, or the next one, will use

    def __init__(self):
        self.kept = []

    def take(self, int64_t max_rows, int64_t max_bytes):
        """The largest tables there are for so many rows that take a quarter of `max_bytes` at most, or new ones."""
        cdef RowTables tables
        cdef int64_t largest = -1, size
        chosen = None
        for tables in self.kept:
            size = tables.bytes_held()
            if size >= largest and tables.max_rows == max_rows and 4 * size <= max_bytes:
                largest, chosen = size, tables
        if chosen is not None:
            self.kept.remove(chosen)
            return chosen
        touched, self.has_touched = not self.has_touched, True
        return RowTables(max_rows, touched)

    def give_back(self, RowTables tables not None):
        """Keep the tables of a machine that is gone for others, unless they are large."""
        if len(self.kept) < SPARE_TABLES and tables.row_count <= SPARE_ROWS and tables.bytes_held() <= SPARE_BYTES:
            tables.clear()
            self.kept.append(tables)


def array_of(part):
    """The property of `Rows` that is an array of its program."""
    return property(lambda rows: rows.arrays.array(part))


cdef class Rows:
    """Rows and stacks of a program in a pool. `max_items` bounds the items of one row, `max_bytes` the transitions of
    all rows, and again all other tables. `first_bytes`: note the bytes that a row reads when it is closed.

    Row 0 is the one before the first byte. Rows are named by numbers, and nothing is ever dropped. Not thread-safe.
    """

    def __init__(self, bound, pool, max_items, max_bytes, first_bytes):
        cdef RowTables tables
        self.bound, self.pool, self.automata = bound, pool, pool.automata
        self.max_items, self.max_bytes, self.prunes = max_items, max_bytes, first_bytes
        self.longest, self.skip = bound.program.longest, bound.program.skip
        tables = pool.spare_tables.take(max(LEAST_ROWS, max_bytes // ROW_BYTES), max_bytes)
        self.t, self.spare = tables, pool.spare_tables
        self.live_begin, self.live_end = tables.live_begin, tables.live_end
        self.fallback_of, self.ended_of, self.next_row = tables.row_fallback, tables.row_ended, tables.transitions
        self.reads_at, self.flags_at = tables.row_reads, tables.row_flags
        tables.frames.clear()
        self.take_program()
        self.held_bytes = tables.bytes_held()
        tables.pairs.assign(1, pack_entry(0, ROOT))
        self.intern_stack()
        tables.found.clear()
        self.add_found(bound.program.start, 0, ROOT)
        self.intern_row(False, -1)

    def __del__(self):
        if self.t is not None:
            tables, self.t = self.t, None
            self.spare.give_back(tables)

    cdef int take_program(self) except -1:
        """Read the program's arrays as they are now."""
        cdef ProgramArrays arrays = self.bound.arrays
        cdef Frame unused
        memset(&unused, 0, sizeof(Frame))
        if <int64_t>self.t.frames.size() < arrays.room[ENTRIES]:  # for those, too, that are appended in place
            self.t.frames.resize(arrays.room[ENTRIES], unused)
        self.arrays = arrays
        self.code_at = <const Instruction*>arrays.at(CODE)
        self.alternative, self.entry_of = arrays.at(ALTERNATIVES), arrays.at(ENTRIES)
        self.argument, self.order_of = arrays.at(ARGUMENTS), arrays.at(ORDER)
        self.table_at, self.name_at = <const NameTrie*>arrays.at(TABLES), <const Name*>arrays.at(NODES)
        return 0

    cdef int write_code(self, int64_t place) except -1:
        self.bound.write(place)  # another machine may have had it written
        self.follow_program()
        return 0

    def follow_program(self):
        """Take the program as it is now, if what outgrew its arrays is in others."""
        if self.arrays is not self.bound.arrays:
            self.take_program()

    code, alternatives, entries = array_of(CODE), array_of(ALTERNATIVES), array_of(ENTRIES)
    arguments, tables, names, order = array_of(ARGUMENTS), array_of(TABLES), array_of(NODES), array_of(ORDER)

    @property
    def row_count(self):
        """Rows made so far."""
        return self.t.row_count

    @property
    def stack_count(self):
        """Return stacks made so far."""
        return self.t.stacks.size()

    @property
    def nbytes(self):
        """Memory of all tables in bytes, but for the pool's; tables used before count as large as they have grown."""
        return self.arrays.nbytes + self.t.bytes_held() + self.t.row_count * ROW_BYTES

    cdef int check_room(self) except -1:
        """Raise MachineFull if there is no room for another row and another stack; count memory that was taken."""
        cdef int64_t held = self.t.bytes_held()
        if held > self.max_bytes or self.t.row_count >= self.t.max_rows or self.t.stacks.size() >= STACK_MASK:
            raise MachineFull(self.max_bytes)
        if held > self.held_bytes:
            hold(held - self.held_bytes)
            self.held_bytes = held
        return 0

    def too_many_items(self):
        """The error where a row has more than `max_items`."""
        return LimitExceeded(
            f"the text may be read in more than {self.max_items} ways at once; make the grammar less ambiguous, or"
            " raise max_row_items",
            limit="max_row_items",
            value=self.max_items,
        )

    cdef int add_found(self, int64_t place, int64_t state, int64_t stack) except -1:
        cdef const Instruction* at = self.code_at + place
        cdef int64_t entry
        cdef int _
        if state == 0:  # nothing is read yet; the state stays 0 where the instruction reads no bytes
            for _ in range(MAX_MOVES):
                if at.operation == RETURN and stack != ROOT:
                    entry = self.entries_of(stack)[0]
                    if self.entry_count(stack) != 1 or entry_place(entry) == ROW_PLACE:
                        break
                    place, stack = entry_place(entry), entry_rest(entry)
                elif at.operation == CALL and self.code_at[at.second].operation == RETURN:
                    place = self.entry_of[at.first]
                elif at.operation == ANY and at.second - at.first == 1:
                    place = self.alternative[at.first]
                else:
                    break
                at = self.code_at + place
            if at.operation == TERMINAL:
                state = at.first
            elif at.operation == NAMES or at.operation == COUNTED:
                state = 1
        self.t.found.push_back(pack_item(place, state, stack))
        return 0

    cdef int64_t intern_row(self, bint middle, int64_t fallback) except -1:
        cdef RowTables t = self.t
        cdef int64_t kind = 0, row
        cdef size_t k, count
        self.items_met += SORTED_ITEMS * t.found.size()
        sort_distinct(t.found)
        count = t.found.size()
        if <int64_t>count > self.max_items:
            raise self.too_many_items()
        if middle:
            kind = ROW_MIDDLE
        t.found.push_back(fallback * 256 | kind)
        row = t.rows.find(t.found.data(), count + 1)
        if row >= 0:
            return row
        self.check_room()
        row = t.rows.intern(t.found.data(), count + 1)
        for k in range(count):
            if self.code_at[place_of(t.found[k])].operation == COUNTED:
                kind |= ROW_COUNTED
        if row < t.rows_used:
            memset(self.next_row + 256 * row, 0, 1024)
        self.flags_at[row], self.fallback_of[row] = <uint8_t>kind, <int32_t>fallback
        self.live_end[row], self.ended_of[row] = OPEN, NOT_ASKED
        for k in range(4):
            self.reads_at[4 * row + k] = ~<uint64_t>0
        t.row_count = row + 1
        return row

    cdef int64_t intern_stack(self) except -1:
        """The stack with the entries `pairs`, sorted and distinct."""
        cdef int64_t stack = self.t.stacks.find(self.t.pairs.data(), self.t.pairs.size())
        if stack >= 0:
            return stack
        self.check_room()
        return self.t.stacks.intern(self.t.pairs.data(), self.t.pairs.size())

    # What Python asks.

    def row_content(self, int64_t row):
        """(place, state, stack) of each item of a row's core."""
        cdef const int64_t* core = self.core(self.checked(row))
        return [(place_of(core[k]), state_of(core[k]), stack_of(core[k])) for k in range(self.core_size(row))]

    def row_kind(self, int64_t row):
        """(whether a row is in the middle of a lexeme, the row that it falls back on or -1)."""
        self.checked(row)
        return bool(self.flags_at[row] & ROW_MIDDLE), self.fallback_of[row]

    def row_flags(self, int64_t row):
        """The flags of a row."""
        return self.flags_at[self.checked(row)]

    def stack(self, int64_t stack):
        """(place to return to, rest) of each entry of a stack."""
        if not 0 <= stack < <int64_t>self.t.stacks.size():
            raise IndexError(f"there is no stack {stack}")
        cdef const int64_t* entries = self.entries_of(stack)
        return [(entry_place(entries[k]), entry_rest(entries[k])) for k in range(self.entry_count(stack))]

    def make_stack(self, entries):
        """The stack with these entries: (place, rest)."""
        self.t.pairs.clear()
        for place, rest in entries:
            self.t.pairs.push_back(pack_entry(place, rest))
        sort_distinct(self.t.pairs)
        return self.intern_stack()

    def make_row(self, items, middle=False, fallback=-1):
        """The row of these items: places, states, stacks; `middle`, `fallback`: as `row_kind` says them."""
        self.t.found.clear()
        for place, state, stack in items:
            self.add_found(place, state, stack)
        return self.intern_row(middle, fallback)

    cpdef int64_t checked(self, int64_t row) except -1:
        """`row`, if there is such a row; IndexError if not."""
        if not 0 <= row < self.t.row_count:
            raise IndexError(f"there is no row {row}")
        return row
