"""Steps: the row after a byte, after the bytes of a token, and after each token.

With the longest match (`tokdfa.backends.pushdown_trie.rows` has the rule) a row in the middle of a lexeme steps, ends
or falls back: `step_longest`.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tokdfa.backends.pushdown_trie.items cimport LEAVES
from tokdfa.backends.pushdown_trie.rows cimport (
    BIAS, NOT_ASKED, ROW_ACCEPTS, ROW_MIDDLE, entry_rest, pack_item, place_of, sort_distinct, stack_of, state_of,
)
from tokdfa.backends.pushdown_trie.state_table cimport ACCEPTS, ENDS, SHORTEST
from tokdfa.core.border cimport pay
from tokdfa.core.byte_sets cimport has_byte
from tokdfa.program.operations cimport NAMES, NAMES_OTHER, TERMINAL
from tokdfa.vocabulary.byte_table cimport DEAD, UNKNOWN

import numpy as np

from tokdfa.errors import LimitExceeded

#: Links of a chain of fallbacks at most.
MAX_CHAIN = 100_000

cdef enum:
    ENDED = ENDS << 8       # beside flags: an item ends here, as it may nowhere else
    SHORT_CHAIN = 64        # of fallbacks: links that are not counted
    PAID_NODES = 1 << 16


cdef class Steps(Closure):
    """Rows that are stepped when a byte is first read from them."""

    cdef int64_t step_row(self, int64_t row, int64_t byte) except? -9:
        cdef int64_t target = <int64_t>self.next_row[row * 256 + byte] - BIAS
        return target if target != UNKNOWN else self.make_step(row, byte)

    cdef int64_t make_step(self, int64_t row, int64_t byte) except? -9:
        """Make the transition of a row by a byte."""
        cdef int64_t item, before, state, place, target, k
        if self.longest:
            return self.step_longest(row, byte)
        self.close_row(row)
        if not has_byte(self.reads_at + 4 * row, byte):
            return DEAD
        self.t.found.clear()
        for k in range(self.live_begin[row], self.live_end[row]):
            item = self.t.live[k]
            before, place = state_of(item), place_of(item)
            if before == 0:
                continue  # it takes special tokens
            if self.code_at[place].operation != TERMINAL:
                self.step_item(item, byte)
                continue
            state = self.automata.targets[before * 256 + byte]
            if state == UNKNOWN:
                self.automata.make_row(before)
                state = self.automata.targets[before * 256 + byte]
            if state < 0:
                continue
            if self.automata.flags_of[state] & ENDS:
                self.add_found(self.code_at[place].second, 0, stack_of(item))
            else:
                self.add_found(place, state, stack_of(item))
        target = DEAD
        if not self.t.found.empty():
            target = self.intern_row(False, -1)
        self.next_row[row * 256 + byte] = <int32_t>(target + BIAS)
        return target

    cdef int64_t read(self, int64_t row, const uint8_t* data, int64_t size) except? -9:
        cdef int64_t item = -1, following, k  # a lone item in place of the row, where that is -1
        cdef uint8_t byte
        for k in range(size):
            byte, following = data[k], LEAVES
            if row >= 0:
                item = -1
                if self.next_row[row * 256 + byte] - BIAS == UNKNOWN:
                    self.close_row(row)
                    item = self.lone_item(row)
            if item >= 0:
                following = self.step_lone(item, byte, False)
            if following != LEAVES:
                item, row = following, -1
            else:
                if row < 0:
                    row = self.lone_row(item)
                row, item = self.step_row(row, byte), -1
            if row < 0 and item < 0:
                return DEAD
        return row if row >= 0 else self.lone_row(item)

    cdef int64_t peek(self, int64_t row, const uint8_t* data, int64_t size) noexcept:
        cdef int64_t k
        for k in range(size):
            row = <int64_t>self.next_row[row * 256 + data[k]] - BIAS
            if row < 0:
                return row
        return row

    cdef int64_t end_strings(self, int64_t row) except? -9:
        cdef int64_t item, place, k
        self.t.found.clear()
        for k in range(self.live_begin[row], self.live_end[row]):
            item = self.t.live[k]
            place = place_of(item)
            if self.code_at[place].operation == NAMES:
                place = self.argument[self.code_at[place].first + NAMES_OTHER]
            if place >= 0:
                self.add_found(self.code_at[place].second, 0, stack_of(item))
        return DEAD if self.t.found.empty() else self.intern_row(False, -1)

    # The longest match.

    cdef int64_t step_longest(self, int64_t row, int64_t byte) except? -9:
        """The row after a byte, or DEAD. The links of the chain are stepped inmost first."""
        cdef int64_t result = DEAD, here = row, following
        cdef int together = 0, common = 0
        self.chain.clear()
        while here >= 0:
            if self.next_row[here * 256 + byte] - BIAS != UNKNOWN:
                result = self.next_row[here * 256 + byte] - BIAS
                break
            if self.chain.size() > SHORT_CHAIN and self.chain.size() >= MAX_CHAIN:
                raise LimitExceeded(
                    f"the text may be cut into lexemes in more than {MAX_CHAIN} ways at once, because terminals that"
                    " have matched may yet match more; make them end sooner, or use lexer=any",
                    limit="max_chain",
                    value=MAX_CHAIN,
                )
            self.chain.push_back(<int32_t>here)
            self.close_row(here)
            self.put_inside(here, byte, &together, &common)
            if not self.t.found.empty() and together & ACCEPTS:
                break
            following = -1
            if self.flags_at[here] & ROW_MIDDLE:
                following = self.end_row(here)
                if following < 0:
                    following = self.fallback_of[here]
            here = following
        while not self.chain.empty():
            here = self.chain.back()
            self.chain.pop_back()
            self.put_inside(here, byte, &together, &common)
            if not self.t.found.empty():
                if together & ENDED or common & ENDS:  # nothing can be longer: the lexeme has ended
                    self.put_ended()
                    result = self.intern_row(False, -1)
                else:
                    result = self.intern_middle(-1 if together & ACCEPTS else result)
            self.next_row[here * 256 + byte] = <int32_t>(result + BIAS)
        return result

    cdef int put_inside(self, int64_t row, int64_t byte, int* together, int* common) except -1:
        """Put the items that go on in their lexemes into `found`; the flags that some of them, and that all have."""
        cdef int64_t item, before, state, k
        cdef int flags
        together[0], common[0] = 0, ACCEPTS | ENDS
        self.t.found.clear()
        for k in range(self.live_begin[row], self.live_end[row]):
            item = self.t.live[k]
            before = state_of(item)
            if before == 0:
                continue
            state = self.automata.targets[before * 256 + byte]
            if state == UNKNOWN:
                self.automata.make_row(before)
                state = self.automata.targets[before * 256 + byte]
            if state >= 0:
                self.t.found.push_back(pack_item(place_of(item), state, stack_of(item)))
                flags = self.automata.flags_of[state]
                common[0] &= flags
                together[0] |= flags
                if flags & SHORTEST and flags & ACCEPTS:
                    together[0] |= ENDED
        return 0

    cdef int64_t intern_middle(self, int64_t fallback) except? -9:
        """The row in the middle of a lexeme. A fallback with the same items lives and dies with it: left out."""
        cdef int64_t k, size
        cdef bint same
        sort_distinct(self.t.found)
        size = self.t.found.size()
        while fallback >= 0:
            same = self.flags_at[fallback] & ROW_MIDDLE and self.core_size(fallback) == size
            k = 0
            while same and k < size:
                same = self.core(fallback)[k] == self.t.found[k]
                k += 1
            if not same:
                break
            fallback = self.fallback_of[fallback]
        return self.intern_row(True, fallback)

    cdef int64_t end_row(self, int64_t row) except? -9:
        cdef int64_t border = -1, k
        if self.ended_of[row] != NOT_ASKED:
            return self.ended_of[row]
        self.t.found.clear()
        for k in range(self.core_size(row)):
            self.t.found.push_back(self.core(row)[k])
        self.put_ended()
        if not self.t.found.empty():
            border = self.intern_row(False, -1)
        self.ended_of[row] = <int32_t>border
        return border

    cdef int64_t border_of(self, int64_t row) except? -9:
        cdef int64_t following
        while row >= 0 and self.flags_at[row] & ROW_MIDDLE:
            following = self.end_row(row)
            row = following if following >= 0 else self.fallback_of[row]
        if row >= 0:
            self.close_row(row)
        return row

    cdef int put_ended(self) except -1:
        """Replace `found`, items in lexemes, by what follows those that may end.

        A terminal that ends at its first match wins over others.
        """
        cdef int64_t item, border, k
        cdef int flags, wanted = ACCEPTS
        for item in self.t.found:
            flags = self.automata.flags_of[state_of(item)]
            if flags & ACCEPTS and flags & SHORTEST:
                wanted = ACCEPTS | SHORTEST
        self.ending.clear()
        for item in self.t.found:
            if self.automata.flags_of[state_of(item)] & wanted == wanted:
                self.ending.push_back(item)
        self.t.found.clear()
        for item in self.ending:
            if place_of(item) == self.skip:
                border = entry_rest(self.entries_of(stack_of(item))[0])
                for k in range(self.core_size(border)):
                    self.t.found.push_back(self.core(border)[k])
            else:
                self.add_found(self.code_at[place_of(item)].second, 0, stack_of(item))
        return 0

    # What Python asks.

    def run(self, int64_t row, const uint8_t[::1] data not None, int64_t begin, int64_t end):
        """The row after the bytes ``data[begin:end]``, or -1. O(bytes) where they were read before."""
        self.checked(row)
        if not 0 <= begin <= end <= data.shape[0]:
            raise IndexError(f"{data.shape[0]} bytes have no part from {begin} to {end}")
        return self.read(row, &data[begin], end - begin) if begin < end else row

    def run_text(self, const uint8_t[::1] text not None, row=0):
        """The row after a text, or -1."""
        return self.run(row, text, 0, text.shape[0])

    def step(self, row, byte):
        """The row after a byte, or -1."""
        return self.run_text(bytes([byte]), row)

    def following_rows(self, int64_t row):
        """The rows after each byte, -1 where it is refused: int32, shape (256,)."""
        found = np.empty(256, dtype=np.int32)
        cdef int32_t[::1] targets = found
        cdef int64_t byte
        self.checked(row)
        for byte in range(256):
            targets[byte] = <int32_t>self.step_row(row, byte)
        return found

    def targets(self, int64_t row, trie):
        """int32, shape (V,): the row after each token, -1 where a token is not allowed. Special tokens are not.

        One walk over the token trie, 0.5 to 2 ms for Llama 3.
        """
        found = np.full(trie.size + 1, -1, dtype=np.int32)
        cdef int32_t[::1] rows = found
        cdef const uint64_t[::1] nodes = trie.nodes
        cdef vector[int32_t] path
        cdef uint64_t node, here = 0, depth, paid = PAID_NODES
        cdef int64_t target
        path.resize(trie.depth_limit + 2)
        path[0] = <int32_t>self.checked(row)
        while here < <uint64_t>nodes.shape[0]:
            if here >= paid:
                pay(0, 0)  # signals; who asks counts the work
                paid += PAID_NODES
            node = nodes[here]
            depth = (node >> 8) & 0xFFF
            target = self.step_row(path[depth], node & 0xFF)
            if target < 0:
                here = (node >> 20) & 0x7FFFFF
                continue
            rows[node >> 43] = path[depth + 1] = <int32_t>target  # the spare id, too, whose entry means nothing
            here += 1
        return found[: trie.size]

    def border(self, int64_t row):
        """See `border_of`."""
        return self.border_of(self.checked(row))

    def can_end(self, row):
        """Whether the text so far is complete."""
        cdef int64_t border = self.border_of(self.checked(row))
        return border >= 0 and bool(self.flags_at[border] & ROW_ACCEPTS)

    def items(self, int64_t row):
        """(place, state, stack) of each live item of a row."""
        self.close_row(self.checked(row))
        live = [self.t.live[k] for k in range(self.live_begin[row], self.live_end[row])]
        return [(place_of(item), state_of(item), stack_of(item)) for item in live]
