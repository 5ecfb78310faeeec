"""Items of NAMES and COUNTED: what they do where others follow the automaton of their TERMINAL.

One method for each question, from `string_state` on. Each takes an item of the row's live ones whose instruction is
neither TERMINAL nor TOKEN, unless it says otherwise.

**COUNTED**: JSON strings with bounds on the number of their characters. The state of an item is a count and a state of
an explicit automaton: that of any string, or of those of a pattern. Its states lie in a row in the pool, so an item has
1 + count x states + local number. This stands in place of the product of pattern and length, which has as many states,
each with a row and a division of its own.

A character is counted where it begins (``characters`` of `tokdfa.backends.pushdown_trie.state_table`). *No dead ends.*
An item lives while the characters that may still begin are no fewer than its state needs before an end. The least count
forbids only the closing quote before it: where there is one, the automaton reaches an end after all greater numbers of
characters, too (`tokdfa.program.json_text.read_characters`); other patterns are left to the product.

Once the least count is reached and there is no greatest, the item is one of the plain TERMINAL. A count that does not
fit an item's 21 bits goes on in another COUNTED (`ProgramBuilder.counted`).

*Masks.* All counts share the division by the automaton's state: tokens after which the string is open (`strict`), less
those after which more characters are needed than may still be read. *Representatives*: most counts leave the same
tokens as others do: far from both bounds all; near to a bound, if no state needs more characters, those between which
no token's number of characters lies. `representative` gives the row with one count for all that allow the same, so a
long string has few masks.

**Lone items.** While an item of NAMES without other strings is the only live one of a row, and its name goes on, the
row after each byte is the same item in another state: within a key of a closed object or a constant all rows are of
this kind. So what reads several bytes, a token or a path of the trie, follows the item; the rows on the way, which cost
ten times as much, are not made. A row is made where the name ends, and where a token ends that is taken. With the
longest match no item is followed: there a row is more than its items.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

from tokdfa.backends.pushdown_trie.names cimport STRING_ENDED
from tokdfa.backends.pushdown_trie.rows cimport ROW_COUNTED, ROW_CUT, pack_item, place_of, stack_of, state_of
from tokdfa.backends.pushdown_trie.state_table cimport ACCEPTS, BEGINS, LEAST, MOST, SHORTEST, STATES, WIDE
from tokdfa.core.byte_sets cimport drop_byte
from tokdfa.program.operations cimport (
    ANY, COUNTED, COUNTED_BEYOND, COUNTED_CAP, COUNTED_MINIMUM, COUNTED_NEXT, COUNTED_TERMINAL, LAZY, NAMES,
    NAMES_OTHER, TERMINAL, TOKEN, UNBOUNDED,
)
from tokdfa.vocabulary.byte_table cimport DEAD

# the names of the C constants, for Python
globals().update(STRICT=STRICT, ALONE=ALONE, OWN=OWN, STATE_PART=STATE_PART)


cdef enum:
    QUOTE = 0x22
    ANY_LENGTH = 1 << 30  # characters left of what may have any number


cdef class Items(Names):
    """Rows, with items of NAMES and COUNTED."""

    cdef int64_t counted_start(self, int64_t place) noexcept:
        """The first state of the automaton of a COUNTED."""
        return self.code_at[self.argument[self.code_at[place].first + COUNTED_TERMINAL]].first

    cdef int64_t count_left(self, int64_t place, int64_t count) noexcept:
        """How many characters may begin after so many."""
        cdef const int32_t* arguments = self.argument + self.code_at[place].first
        return <int64_t>arguments[COUNTED_CAP] - count + arguments[COUNTED_BEYOND]

    cdef int64_t count_of(self, int64_t place, int64_t state) noexcept:
        """How many characters an item of COUNTED has read."""
        return (state - 1) // self.automata.characters_of[4 * self.counted_start(place) + STATES]

    cdef int step_count(self, int64_t item, int64_t byte) except -1:
        cdef int64_t place = place_of(item), start = self.counted_start(place), state = state_of(item), read, local
        cdef const int32_t* at = self.argument + self.code_at[place].first
        cdef const int32_t* characters = self.automata.characters_of
        cdef int64_t states = characters[4 * start + STATES], target
        read, local = (state - 1) // states, (state - 1) % states
        target = self.automata.targets[(start + local) * 256 + byte]
        if target < 0:
            return 0
        if self.automata.flags_of[target] & ACCEPTS:
            if read < at[COUNTED_MINIMUM]:
                return 0
            return self.add_found(self.code_at[place].second, 0, stack_of(item))
        if characters[4 * (start + local) + BEGINS]:
            if read == at[COUNTED_CAP]:
                place, read = at[COUNTED_NEXT], 0
                if place < 0:
                    return 0
                while self.code_at[place].operation == ANY or self.code_at[place].operation == LAZY:
                    if self.code_at[place].operation == LAZY:
                        self.write_code(place)
                        characters = self.automata.characters_of
                    else:
                        place = self.alternative[self.code_at[place].first]
                at = self.argument + self.code_at[place].first
            read += 1
            if at[COUNTED_BEYOND] == UNBOUNDED and read >= at[COUNTED_MINIMUM]:
                return self.add_found(at[COUNTED_TERMINAL], target, stack_of(item))
        if self.count_left(place, read) < characters[4 * target + LEAST]:
            return 0
        return self.add_found(place, 1 + read * states + target - start, stack_of(item))

    cdef int count_reads(self, int64_t place, int64_t state, uint64_t* reads) noexcept:
        """Take out of a set of bytes, which is what the automaton's state reads, those that the count does not
        allow.
        """
        cdef const int32_t* characters = self.automata.characters_of
        cdef int64_t start = self.counted_start(place), states = characters[4 * start + STATES], target, byte
        cdef int64_t count = (state - 1) // states, here = start + (state - 1) % states
        cdef int64_t begins = characters[4 * here + BEGINS], left = self.count_left(place, count) - begins
        if left < characters[4 * start + MOST]:
            for byte in range(256):
                target = self.automata.targets[here * 256 + byte]
                if target >= 0 and left < characters[4 * target + LEAST]:
                    if not self.automata.flags_of[target] & ACCEPTS:
                        drop_byte(reads, byte)
        if begins and count < self.argument[self.code_at[place].first + COUNTED_MINIMUM]:
            drop_byte(reads, QUOTE)
        return 0

    cdef int64_t string_state(self, int64_t item) noexcept:
        cdef int64_t place = place_of(item), state = state_of(item), start
        if self.code_at[place].operation == COUNTED:
            start = self.counted_start(place)
            return start + (state - 1) % self.automata.characters_of[4 * start + STATES]
        return self.name_string_state(state, self.code_at[place].first)

    cdef int item_reads(self, int64_t item) noexcept:
        cdef int64_t place = place_of(item), string = self.string_state(item)
        cdef uint64_t* reads = self.reads.words
        cdef int quarter
        for quarter in range(4):
            reads[quarter] = 0
            if string >= 0:
                reads[quarter] = self.automata.reads_of[4 * string + quarter]
        if self.code_at[place].operation == NAMES:
            return self.name_reads(state_of(item), self.code_at[place].first, reads, False)
        return self.count_reads(place, state_of(item), reads)

    cdef int64_t item_left(self, int64_t item, int64_t* needed) noexcept:
        cdef int64_t place = place_of(item)
        needed[0] = 0
        if self.code_at[place].operation != COUNTED:
            return ANY_LENGTH
        needed[0] = self.automata.characters_of[4 * self.counted_start(place) + MOST]
        return self.count_left(place, self.count_of(place, state_of(item)))

    cdef bint may_close(self, int64_t item) noexcept:
        """Whether a closing quote ends the string that an item is in, but for the names of NAMES."""
        cdef int64_t place = place_of(item)
        if self.code_at[place].operation != COUNTED:
            return True
        return self.count_of(place, state_of(item)) >= self.argument[self.code_at[place].first + COUNTED_MINIMUM]

    cdef int64_t wide_state(self, int64_t item, int64_t place, int flags, bint alone, int64_t depth) noexcept:
        """The state whose division of a place of the trie serves a live item, of TERMINAL or other, with its kind;
        or -1.

        `flags`: those of the row. `alone`: the row has no other item. Then a strict division serves a COUNTED, too,
        that may not read as many characters as a token of `depth` bytes may have, if tokens with too many are taken out
        afterwards. Where the quote that closes the string ends it, the division of the whole trie is that of the
        TERMINAL.
        """
        cdef int32_t operation = self.code_at[place_of(item)].operation
        cdef int64_t state, left, needed = 0
        if operation == TERMINAL:
            state = state_of(item)
            if not self.automata.flags_of[state] & WIDE:
                return -1
            if flags & ROW_CUT and not self.automata.flags_of[state] & SHORTEST:
                return -1
            return state | ALONE if alone else state
        if operation == TOKEN:
            return -1
        state = self.string_state(item)
        if state < 0 or not self.automata.flags_of[state] & WIDE:
            return -1
        left = self.item_left(item, &needed)
        if left - needed < depth and not (alone and place == 0):
            return -1
        if not alone:
            return state | STRICT
        if place == 0 and left - needed >= depth and self.may_close(item):
            return state | ALONE
        return state | STRICT | ALONE

    cdef int step_item(self, int64_t item, int64_t byte) except -1:
        if self.code_at[place_of(item)].operation == NAMES:
            return self.step_name(item, byte)
        return self.step_count(item, byte)

    cpdef int64_t representative(self, int64_t row) except -1:
        """A row with the same mask as `row`: the one in which counts of characters say no more than a mask depends on.

        O(items). Rows without counted strings represent themselves.
        """
        cdef const int32_t[::1] least, most
        cdef int64_t item, place, states, count, clipped, k, needed = 0
        cdef const int32_t* at
        cdef bint changed = False
        if not self.flags_at[self.checked(row)] & ROW_COUNTED:
            return row
        least, most = self.pool.lengths.levels
        self.t.found.clear()
        for k in range(self.core_size(row)):
            item = self.core(row)[k]
            place = place_of(item)
            if self.code_at[place].operation == COUNTED:
                at = self.argument + self.code_at[place].first
                states = self.automata.characters_of[4 * self.counted_start(place) + STATES]
                needed = self.automata.characters_of[4 * self.counted_start(place) + MOST]
                count = (state_of(item) - 1) // states
                clipped = clip_count(
                    count, at[COUNTED_MINIMUM], at[COUNTED_CAP], at[COUNTED_BEYOND], needed, least, most
                )
                changed |= clipped != count
                item = pack_item(place, state_of(item) + (clipped - count) * states, stack_of(item))
            self.t.found.push_back(item)
        return self.intern_row(False, -1) if changed else row

    # Lone items.

    cdef int64_t lone_item(self, int64_t row) noexcept:
        cdef int64_t item, place
        if self.live_end[row] - self.live_begin[row] != 1 or self.longest:
            return -1
        item = self.t.live[self.live_begin[row]]
        place = place_of(item)
        if self.code_at[place].operation != NAMES or self.argument[self.code_at[place].first + NAMES_OTHER] >= 0:
            return -1
        return item

    cdef int64_t guide_alone(self, int64_t row) noexcept:
        cdef int64_t item
        if self.live_end[row] - self.live_begin[row] != 1 or self.longest:
            return -1
        item = self.t.live[self.live_begin[row]]
        if self.code_at[place_of(item)].operation == TERMINAL:
            return state_of(item) | STRICT | ALONE
        return LONE - self.lone_item(row)

    cdef int64_t step_lone(self, int64_t item, int64_t byte, bint every) noexcept:
        cdef int64_t place = place_of(item), what = 0
        cdef int64_t target = self.step_trie(state_of(item), byte, self.code_at[place].first, &what)
        if target == STRING_ENDED:
            return LEAVES
        return pack_item(place, target, stack_of(item)) if target >= 0 and (what or every) else DEAD

    cdef int lone_reads(self, int64_t item, uint64_t* reads, bint every) noexcept:
        cdef int quarter
        if item < 0:
            return 0
        for quarter in range(4):
            reads[quarter] = 0
        return self.name_reads(state_of(item), self.code_at[place_of(item)].first, reads, every)

    cdef int64_t lone_row(self, int64_t item) except -1:
        self.t.found.assign(1, item)
        return self.intern_row(False, -1)


cdef int64_t clip_count(
    int64_t count, int64_t minimum, int64_t cap, int64_t beyond, int64_t needed,
    const int32_t[::1] least, const int32_t[::1] most
) noexcept:
    """A count that leaves the same tokens as `count` does, the same for as many others as can be.

    `needed`: so many characters more than it has a token may need; `least` and `most`:
    `tokdfa.backends.pushdown_trie.lengths.TokenLengths.levels`.
    """
    cdef int64_t left = cap - count + beyond, need = minimum - count, more
    if left >= least.shape[0] + needed:  # no token is too long
        if need >= most.shape[0]:  # and none closes the string
            return 0
        return minimum - min(<int64_t>most[need], minimum) if need > 0 else minimum
    if needed:
        return count
    more = left - least[left]
    if count + more <= cap and (need <= 0 or need - more >= most.shape[0]):
        return count + more
    return count
