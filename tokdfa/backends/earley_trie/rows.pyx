"""Earley rows that are interned by content: equal situations are the same row, wherever they occur.

Words. A *dot* is a place in a rule's right side, as an index into the flat array ``rhs`` (right sides one after
another, each closed by an end mark). An *item* is a dot and an *origin*: where the text of its rule began. In Earley's
algorithm an origin is the index of a row. Here it is an *origin point*, the pair of a row and the nonterminal that was
predicted there, and what completing a rule needs of it is all that it stands for: the items of that row with that
nonterminal after the dot. A row's *core* holds the items that reading a lexeme put into it; the *predicted* items
follow from the core. All items of a row with one symbol after the dot are a *segment*: what reading that lexeme
moves on, or what an origin point stands for.

**Scanning.** Reading a set of lexemes moves the dot of every item that waits for one of them. A dot that reaches the
end of its right side *completes* its rule: the items that the origin point stands for move on too, and so on. What has
not come to its end is the core of the next row, which is looked up or made.

**Rows by content.** A row is the sorted set of its core's items and whether the text may end there. Completed items do
their work when the row is made and are left out. So a row is a pure function of the row before and the lexemes read:
loops come back to the same number, and a parser's whole state is one number.

**Empty rules.** A dot before a nullable nonterminal also moves past it when the item is added (Aycock and Horspool
2002), so nothing is ever completed in the row in which it was predicted. Cycles such as ``a: a | X`` end because an
origin point is completed once a row.

**Right recursion.** In ``list: X list | X`` every X would open an origin point of its own, whose completion only
completes the one before. If all items that wait for a nonterminal in a row stand at their rule's last symbol and have
one origin, that origin is taken in place of a new one: completing either is completing the other. So right recursion
runs in one row as left recursion does (Leo 1991 reaches the same by memoised reduction paths).

The *skip* lexeme leaves the row as it is. If other lexemes match the same bytes, the items of both readings make one
row, unless the skip lexeme is to win.

Sources: Earley 1970; llguidance (rows along a lexer, one scan for a set of lexemes); hash-consed rows are ours. Cost:
linear in the items that move, and in those of the row if it is new.
"""

from libc.stdint cimport int32_t, int64_t
from libcpp.algorithm cimport lower_bound, sort

from tokdfa.core.border cimport int32_array, pay

from tokdfa.errors import LimitExceeded
from tokdfa.grammar.simplify import nullable_symbols


cdef extern from "<algorithm>" namespace "std" nogil:
    int64_t* unique(int64_t* first, int64_t* last)


cdef enum:
    END = -1             # closes a right side
    ROOT = 0             # the origin point of the whole text
    NS_PER_ITEM = 5
    PAID_ITEMS = 1 << 16
    PAID_BYTES = 1 << 20
    # Items that a core may have before equal ones are dropped, whatever the limit.
    LEAST_LIMIT = 1 << 17


cdef class Rows:
    """The rows of a grammar made so far. Row 0 is the one before the first lexeme. Not thread-safe.

    `max_rows` bounds their number, `max_items` the items of one row (core and predicted).
    """

    def __init__(self, cfg, max_rows=1_000_000, max_items=200_000, skip_wins=False):
        self.cfg, self.max_rows, self.max_items = cfg, max_rows, max_items
        self.skip, self.skip_wins, self.lexeme_count = cfg.skip, skip_wins, len(cfg.lexemes)
        self.symbol_count = len(cfg.names) + 1
        self.build_grammar()
        self.segment_begin.push_back(0)
        self.segment_first.push_back(0)
        self.origin_segment.push_back(-1)
        self.completed.push_back(0)
        self.tally.resize(self.symbol_count)
        self.origin_of.resize(self.symbol_count)
        self.only.resize(self.symbol_count)
        self.settled.resize(self.symbol_count)
        self.make_first_row()

    cdef int build_grammar(self) except -1:
        """Flat arrays of the rules, with one more symbol and rule: text -> start. Linear in the grammar."""
        cfg = self.cfg
        text = len(cfg.names)
        nullable = [False] * self.symbol_count
        for symbol in nullable_symbols(cfg):
            nullable[symbol] = True
        nullable[text] = nullable[cfg.start]
        rhs, dots_of, self.left_of = [], [[] for _ in range(self.symbol_count)], {}
        for left, right in [*cfg.rules, (text, (cfg.start,))]:
            self.left_of[len(rhs)] = left
            for place, symbol in enumerate(right):
                dots_of[left].append(len(rhs) + place)
                if not nullable[symbol]:
                    break
            rhs += [*right, END]
        self.rhs, self.nullable = rhs, nullable
        self.initial_begin.push_back(0)
        for dots in dots_of:
            for dot in dots:
                self.initial_dots.push_back(dot)
            self.initial_begin.push_back(<int32_t>self.initial_dots.size())
        return 0

    def make_first_row(self):
        """Make the row before the first lexeme."""
        cdef int32_t k, text = self.symbol_count - 1
        self.scans += 1
        self.core.assign(1, 0)
        for k in range(self.initial_begin[text], self.initial_begin[text + 1]):
            self.add_item(self.initial_dots[k], ROOT)
        self.finish(self.nullable[text])

    cdef int count(self, int64_t work, int64_t kept) except -1 nogil:
        """Count items moved and bytes kept, and pay for many at once."""
        self.work += work
        self.kept += kept
        if self.work < PAID_ITEMS and self.kept < PAID_BYTES:
            return 0
        work, kept = self.work, self.kept
        self.work = self.kept = 0
        return pay(NS_PER_ITEM * work, kept)

    # From row to row.

    cdef int32_t scan(self, int32_t row, const int32_t* lexemes, size_t size) except -2 nogil:
        cdef const int32_t* first = self.segment_symbol.data() + self.segment_begin[row]
        cdef const int32_t* past = self.segment_symbol.data() + self.segment_begin[row + 1]
        cdef const int32_t* found
        cdef const int64_t* content
        cdef size_t k
        cdef bint accepts = False, skipped = False
        self.scans += 1
        self.agenda.clear()
        self.core.assign(1, 0)
        for k in range(size):
            if lexemes[k] == self.skip:
                skipped = True
                continue
            found = lower_bound(first, past, lexemes[k])
            if found != past and found[0] == lexemes[k]:
                self.move_segment(<int32_t>(found - self.segment_symbol.data()))
        if skipped and (self.skip_wins or (self.core.size() == 1 and self.agenda.empty())):
            return row
        if self.core.size() == 1 and self.agenda.empty():
            return -1
        if skipped:
            content = self.cores.content_of(row)
            accepts = content[0] != 0
            self.core.insert(self.core.end(), content + 1, content + self.cores.length(row))
        return self.finish(accepts)

    cdef int move_segment(self, int32_t segment) except -1 nogil:
        """Add the items of a segment with the dot moved past its symbol."""
        cdef int32_t k
        for k in range(self.segment_first[segment], self.segment_first[segment + 1]):
            self.add_item(self.items[k].dot + 1, self.items[k].origin)
        return 0

    cdef int add_item(self, int32_t dot, int32_t origin) except -1 nogil:
        """Add an item to the core, past nullable symbols too; an origin point to complete goes to the agenda."""
        cdef int32_t symbol = self.rhs[dot]
        while symbol != END:
            self.core.push_back(<int64_t>dot << 32 | origin)
            if not self.nullable[symbol]:
                if <int64_t>self.core.size() > max(self.max_items, LEAST_LIMIT):
                    self.raise_too_many_items()
                return 0
            dot += 1
            symbol = self.rhs[dot]
        if self.completed[origin] != self.scans:
            self.completed[origin] = self.scans
            self.agenda.push_back(origin)
        return 0

    cdef int32_t finish(self, bint accepts) except -1 nogil:
        """Complete what is to be completed, and intern the row that comes of the core."""
        cdef size_t done = 0
        while done < self.agenda.size():
            if self.agenda[done] == ROOT:
                accepts = True
            else:
                self.move_segment(self.origin_segment[self.agenda[done]])
            done += 1
        self.count(20 + 4 * self.core.size() + done, 0)
        self.core[0] = accepts
        sort(self.core.begin() + 1, self.core.end())
        self.core.resize(unique(self.core.data() + 1, self.core.data() + self.core.size()) - self.core.data())
        cdef int32_t row = self.cores.find(self.core.data(), self.core.size())
        return row if row >= 0 else self.make_row()

    cdef int raise_too_many_items(self) except -1 nogil:
        with gil:
            raise LimitExceeded(
                f"the parser has more than {self.max_items} items at one place of the text; simplify the alternatives"
                " (a terminal with the alternatives inside is one item), or raise max_row_items",
                limit="max_row_items",
                value=self.max_items,
            )

    # Making a row.

    cdef int32_t make_row(self) except -1 nogil:
        """The new row of this core. What an error leaves in the tables is beyond the last row's end, and dropped."""
        cdef int32_t segments = self.segment_begin.back(), row = <int32_t>self.cores.size()
        cdef size_t first_item, base
        cdef int64_t total
        if row >= self.max_rows:
            with gil:
                raise LimitExceeded(
                    f"the parser has made more than {self.max_rows} rows; the text is too deeply nested for the limit,"
                    " or raise max_rows",
                    limit="max_rows",
                    value=self.max_rows,
                )
        total = self.predict()
        if total > self.max_items:
            self.raise_too_many_items()
        self.count(
            self.core.size() + 2 * total,
            8 * (self.core.size() + total + self.present.size() + self.predicted.size()) + 40,
        )
        first_item = self.segment_first[segments]
        base = self.origin_segment.size()
        self.segment_symbol.resize(segments + self.present.size())
        self.segment_first.resize(segments + self.present.size() + 1)
        self.items.resize(first_item + total)
        self.segment_begin.reserve(grown(self.segment_begin.size(), self.segment_begin.capacity()))
        self.completed.resize(base + self.predicted.size(), 0)
        self.origin_segment.resize(base + self.predicted.size())
        self.lay_out(base)
        while True:  # again, since items with different origins may have one now
            self.work += total
            if not self.join_origins(base, first_item):
                break
        row = self.cores.intern(self.core.data(), self.core.size())
        self.segment_begin.push_back(segments + <int32_t>self.present.size())
        return row

    cdef int64_t predict(self) except -1 nogil:
        """Tally the symbols after the dots of all items, predicted ones too; how many items these are."""
        cdef size_t k
        cdef int32_t done = 0, place, symbol
        cdef int64_t total = self.core.size() - 1
        for k in range(self.present.size()):
            self.tally[self.present[k]] = 0
        self.present.clear()
        self.predicted.clear()
        for k in range(1, self.core.size()):
            self.note_symbol(self.rhs[<int32_t>(self.core[k] >> 32)])
        while done < <int32_t>self.predicted.size():
            symbol = self.predicted[done]
            for place in range(self.initial_begin[symbol], self.initial_begin[symbol + 1]):
                self.note_symbol(self.rhs[self.initial_dots[place]])
                total += 1
            done += 1
        return total

    cdef int note_symbol(self, int32_t symbol) except -1 nogil:
        if self.tally[symbol] == 0:
            self.present.push_back(symbol)
            if self.initial_begin[symbol + 1] > self.initial_begin[symbol]:
                self.predicted.push_back(symbol)
        self.tally[symbol] += 1
        return 0

    cdef int lay_out(self, size_t base) noexcept nogil:
        """Write segments, in the order of their symbols, and items; `base`: the first of the new origin points."""
        cdef int32_t segment = self.segment_begin.back(), k, symbol, dot, origin, past
        cdef int32_t place = self.segment_first[segment], count = <int32_t>self.present.size()
        cdef size_t j
        for j in range(self.predicted.size()):
            self.origin_of[self.predicted[j]] = <int32_t>(base + j)
        sort(self.present.begin(), self.present.end())
        for k in range(count):
            symbol = self.present[k]
            self.segment_symbol[segment + k] = symbol
            self.segment_first[segment + k] = place
            past = place + self.tally[symbol]
            self.tally[symbol] = place  # from here on where its next item goes
            place = past
            if self.initial_begin[symbol + 1] > self.initial_begin[symbol]:
                self.origin_segment[self.origin_of[symbol]] = segment + k
        self.segment_first[segment + count] = place
        for j in range(1, self.core.size()):
            dot, origin = <int32_t>(self.core[j] >> 32), <int32_t>self.core[j]
            symbol = self.rhs[dot]
            self.items[self.tally[symbol]] = Item(dot, origin)
            self.tally[symbol] += 1
        for j in range(self.predicted.size()):
            symbol = self.predicted[j]
            for k in range(self.initial_begin[symbol], self.initial_begin[symbol + 1]):
                dot = self.initial_dots[k]
                self.items[self.tally[self.rhs[dot]]] = Item(dot, <int32_t>(base + j))
                self.tally[self.rhs[dot]] += 1
        return 0

    cdef bint join_origins(self, size_t base, size_t first_item) noexcept nogil:
        """Take for a new origin point the one origin of its items if they all stand at the end of their rules; whether
        that has changed items.
        """
        cdef int32_t count = <int32_t>self.predicted.size(), first = <int32_t>base, j, k, here, only, steps, behind
        cdef int32_t following, origin
        cdef bint changed = False, is_last
        for j in range(count):
            here, only = self.origin_segment[first + j], first + j
            for k in range(self.segment_first[here], self.segment_first[here + 1]):
                origin = self.items[k].origin
                is_last = self.rhs[self.items[k].dot + 1] == END
                if is_last and origin == first + j:
                    continue  # waits for what it completes: a cycle of unit rules, which adds nothing
                if not is_last or (only != first + j and origin != only):
                    only = first + j
                    break
                only = origin
            self.only[j] = only
        for j in range(count):
            # Follow the chain; one longer than there are points is a cycle of unit rules, and stays as it is.
            only, steps = self.only[j], 0
            while only >= first and self.only[only - first] != only and steps <= count:
                only = self.only[only - first]
                steps += 1
            self.work += steps
            if steps > count:
                self.settled[j] = first + j
                continue
            self.settled[j] = only
            behind = self.only[j]
            self.only[j] = only
            while behind >= first and behind != only:  # lead all of the chain to its end at once
                following = self.only[behind - first]
                self.only[behind - first] = only
                behind = following
        for j in range(<int32_t>first_item, <int32_t>self.items.size()):
            origin = self.items[j].origin
            if origin >= first and origin != self.settled[origin - first]:
                self.items[j].origin = self.settled[origin - first]
                changed = True
        return changed

    cdef int check_row(self, int64_t row) except -1:
        if not 0 <= row < <int64_t>self.cores.size():
            raise IndexError(f"there is no row {row}")
        return 0

    # For Python.

    @property
    def row_count(self):
        """Rows made so far."""
        return self.cores.size()

    @property
    def nbytes(self):
        """Memory of all tables in bytes."""
        numbers = self.rhs.capacity() + self.initial_dots.capacity() + self.segment_begin.capacity()
        numbers += self.segment_symbol.capacity() + self.segment_first.capacity() + 2 * self.origin_segment.capacity()
        return self.cores.bytes() + 8 * self.items.capacity() + 4 * numbers + 24 * self.symbol_count

    @property
    def right_sides(self):
        """int32: the right sides of all rules, each closed by END, that of ``text -> start`` last. A copy."""
        return int32_array(self.rhs)

    def accepts(self, int64_t row):
        """Whether the text may end in `row`."""
        self.check_row(row)
        return row_accepts(self, <int32_t>row)

    def segments(self, int64_t row):
        """(symbol, segment) of all segments of a row, ascending."""
        cdef int32_t k
        self.check_row(row)
        return [(self.segment_symbol[k], k) for k in range(self.segment_begin[row], self.segment_begin[row + 1])]

    def items_in(self, int64_t segment):
        """The items of a segment as (dot, origin point)."""
        cdef int32_t k
        if not 0 <= segment < self.segment_begin.back():
            raise IndexError(f"there is no segment {segment}")
        return [
            (self.items[k].dot, self.items[k].origin)
            for k in range(self.segment_first[segment], self.segment_first[segment + 1])
        ]

    def segment_of(self, int64_t origin):
        """The segment that an origin point stands for: its items wait for it."""
        if not 0 < origin < <int64_t>self.origin_segment.size():
            raise IndexError(f"there is no origin point {origin} with items")
        return self.origin_segment[origin]

    def allowed(self, row):
        """The lexemes that may come next, ascending; the skip lexeme is none of the grammar's business."""
        return [symbol for symbol, _ in self.segments(row) if symbol < self.lexeme_count]

    def core_of(self, int64_t row):
        """The items of a row's core as (dot, origin point), sorted."""
        cdef const int64_t* content
        cdef size_t k
        self.check_row(row)
        content = self.cores.content_of(<int32_t>row)
        return [(content[k] >> 32, content[k] & 0xFFFFFFFF) for k in range(1, self.cores.length(<int32_t>row))]

    def describe_dot(self, int64_t dot):
        """An item's rule with its dot, as ``name -> a • b``."""
        if not 0 <= dot < <int64_t>self.rhs.size():
            raise IndexError(f"there is no dot {dot}")
        right = self.right_sides.tolist()
        first = dot
        while first > 0 and right[first - 1] != END:
            first -= 1
        names = [self.cfg.names[symbol] for symbol in right[first : right.index(END, dot)]]
        names.insert(dot - first, "•")
        left = self.left_of[first]
        return f"{self.cfg.names[left] if left < len(self.cfg.names) else 'text'} -> {' '.join(names)}"


cdef inline size_t grown(size_t size, size_t capacity) noexcept nogil:
    """A capacity with room for one more."""
    return capacity if size < capacity else 2 * size + 1
