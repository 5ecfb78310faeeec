"""NAMES: JSON strings that spell one of a list of names, or any other string, without an automaton of all spellings.

A JSON string may spell a name in many ways: each character raw, or escaped in either case of its digits. An automaton
of all spellings has some six states for each character of each name. Here it is *virtual*. What is kept is the trie of
the names over characters (code points), and a state of reading is

- START, before the opening quote, or
- (node, phase): phase 0 if all characters down to the node are spelled; otherwise how many bytes of the spelling of the
  node's own character are read, raw (1 to 3) or as an escape (1 to 5).

Where several siblings begin alike, the state names the first of them, so what was read says which state it is. The
escape of a character beyond U+FFFF has twelve bytes, so its node has a second number for the second half.

Names are sorted, so those below a node are an interval of them, and ``order`` says which index each has. With the least
and the greatest index below the node that decides mostly at once, and always exactly, whether a name of a *window* of
indices is below it. No state is entered from which no allowed name can be spelled.

*Other strings.* If the instruction has a TERMINAL for them, that is the automaton of any JSON string, which is in BODY
wherever a character may begin. So it is known in which state it would be after the same bytes, the *string state*.
While the bytes spell the beginning of some name of the table, the item stays here; with a byte that no name goes on
with it becomes an item of the TERMINAL. So "any name but these" needs no complement of an automaton, and what a name is
worth is decided at its closing quote.

*Masks.* The string state says how much of the vocabulary stays inside the string: whatever a token does there, in the
trie or out of it, it can go on if the string can. Only a closing quote is different, since a name may be refused: so
the division is one that counts tokens as inside only if the terminal is not complete after them (`strict`).
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

from tokdfa.backends.pushdown_trie.name_tries cimport Name, NameTrie
from tokdfa.backends.pushdown_trie.rows cimport place_of, stack_of, state_of
from tokdfa.backends.pushdown_trie.state_table cimport ENDS
from tokdfa.core.byte_sets cimport add_byte, drop_byte
from tokdfa.program.operations cimport NAMES_HIGH, NAMES_LOW, NAMES_OTHER, NAMES_TABLE, NAMES_TARGETS
from tokdfa.vocabulary.byte_table cimport DEAD

from tokdfa.program import json_text


cdef enum:
    # phases: all of the character is spelled; so many bytes of it raw, 1 to 3; so many bytes of an escape, less one
    WHOLE = 0
    ESCAPED = 4
    PHASES = 9
    ESCAPE_LENGTH = 6  # \u and four digits
    # states: before the opening quote; after it. Node n in phase p is AT_ROOT + PHASES n + p. 0 is no state.
    START = 1
    AT_ROOT = 2
    QUOTE = 0x22
    BACKSLASH = 0x5C
    SLASH = 0x2F
    LETTER_U = 0x75

# the names of the C constants, for Python
globals().update(START=START, AT_ROOT=AT_ROOT, PHASES=PHASES)

cdef int64_t BODY = json_text.BODY


cdef bint must_escape(int64_t code) noexcept nogil:
    """Whether a character cannot stand raw in a string."""
    return code < 0x20 or code == QUOTE or code == BACKSLASH


cdef int64_t short_escape(int64_t code) noexcept nogil:
    """The byte after the backslash in a character's short escape, or -1."""
    if code == QUOTE or code == BACKSLASH or code == SLASH:
        return code
    if code == 8:
        return 0x62
    if code == 12:
        return 0x66
    if code == 10:
        return 0x6E
    if code == 13:
        return 0x72
    if code == 9:
        return 0x74
    return -1


cdef int64_t spelled_byte(int64_t code, bint escaped, int64_t place) noexcept nogil:
    """Byte `place` of a character raw, or of its escape with digits in lower case; -1 past its end, and if there is no
    such spelling.
    """
    cdef int64_t unit = code, digit, length = 1, bits
    if escaped:
        if code < 0 or place >= (ESCAPE_LENGTH if code < 0x10000 else 2 * ESCAPE_LENGTH):
            return -1
        if place % ESCAPE_LENGTH == 0:
            return BACKSLASH
        if place % ESCAPE_LENGTH == 1:
            return LETTER_U
        if code >= 0x10000:
            unit = 0xDC00 + (code & 0x3FF)
            if place < ESCAPE_LENGTH:
                unit = 0xD800 + ((code - 0x10000) >> 10)
        digit = unit >> (20 - 4 * (place % ESCAPE_LENGTH)) & 15
        return 0x30 + digit if digit < 10 else 0x57 + digit
    if code >= 0x80:
        length = 2 + (code >= 0x800) + (code >= 0x10000)
    if must_escape(code) or place >= length:
        return -1
    bits = code >> (6 * (length - 1 - place))
    if place > 0:
        return 0x80 | (bits & 0x3F)
    return bits if length == 1 else ((0xF00 >> length) & 0xFF) | bits


cdef bint is_spelled_alike(int64_t code, int64_t other, bint escaped, int64_t read) noexcept nogil:
    """Whether two characters have a spelling each that begins with the same `read` bytes."""
    cdef int64_t place, byte
    for place in range(read):
        byte = spelled_byte(code, escaped, place)
        if byte < 0 or byte != spelled_byte(other, escaped, place):
            return False
    return True


cdef Spelling spelling_of(int64_t state, const Name* nodes) noexcept nogil:
    cdef Spelling found
    cdef int64_t phase = (state - AT_ROOT) % PHASES
    cdef bint is_second
    found.node = (state - AT_ROOT) // PHASES
    is_second = nodes[found.node].character < 0
    if phase == WHOLE and not is_second:
        found.escaped, found.read = False, 0
        found.first, found.past = nodes[found.node].first, nodes[found.node].past
        return found
    found.read = phase
    if phase >= ESCAPED:
        found.read = phase - ESCAPED + 1
    if is_second:
        found.node -= 1
        found.read += ESCAPE_LENGTH
    found.escaped = is_second or phase >= ESCAPED
    found.first, found.past = found.node, nodes[nodes[found.node].parent].past
    return found


cdef class Names(Stacks):
    """Rows, with items of NAMES."""

    cdef bint has_name(self, const Name* node, int64_t at) noexcept:
        """Whether a name of the window of the instruction with arguments `at` is below a node."""
        cdef int32_t low = self.argument[at + NAMES_LOW], high = self.argument[at + NAMES_HIGH], k
        cdef const int32_t* order
        if node.most < low or node.least > high:
            return False
        if low <= node.least or node.most <= high:
            return True
        order = self.order_of + self.table_at[self.argument[at + NAMES_TABLE]].order
        for k in range(node.low, node.high):
            if low <= order[k] <= high:
                return True
        return False

    cdef int64_t step_trie(self, int64_t state, int64_t byte, int64_t at, int64_t* what) noexcept:
        cdef const NameTrie* table = self.table_at + self.argument[at + NAMES_TABLE]
        cdef const Name* nodes = self.name_at + table.nodes
        cdef Spelling here
        cdef int64_t chosen = -1, reached = 0, code, other, k, phase
        cdef bint live = False, is_short
        what[0] = 0
        if state == START:
            what[0] = byte == QUOTE
            return AT_ROOT if byte == QUOTE else STRING_LEFT
        here = spelling_of(state, nodes)
        if here.read == 0 and byte == QUOTE:
            what[0] = nodes[here.node].name
            return STRING_ENDED if what[0] >= 0 else STRING_LEFT
        code = nodes[here.node].character
        if here.read == 0:
            here.escaped = byte == BACKSLASH
        if here.escaped and here.read % ESCAPE_LENGTH >= 2 and 0x41 <= byte <= 0x46:
            byte += 0x20
        for k in range(here.first, here.past):
            other = nodes[k].character
            is_short = here.escaped and here.read == 1 and byte == short_escape(other)
            if not is_short and spelled_byte(other, here.escaped, here.read) != byte:
                continue
            if here.escaped and table.needed and not must_escape(other):
                continue
            if not is_spelled_alike(other, code, here.escaped, here.read):
                continue
            if chosen < 0:
                chosen = k
                reached = here.read + 1
                if is_short or spelled_byte(other, here.escaped, here.read + 1) < 0:
                    reached = 0
            live = live or self.has_name(nodes + k, at)
        if chosen < 0:
            return STRING_LEFT
        if here.escaped and reached >= ESCAPE_LENGTH:
            chosen, reached = chosen + 1, reached - ESCAPE_LENGTH
        phase = reached
        if here.escaped and reached > 0:
            phase = reached + ESCAPED - 1
        what[0] = live
        return AT_ROOT + PHASES * chosen + phase

    cdef int name_reads(self, int64_t state, int64_t at, uint64_t* reads, bint every) noexcept:
        cdef const NameTrie* table = self.table_at + self.argument[at + NAMES_TABLE]
        cdef const Name* nodes = self.name_at + table.nodes
        cdef Spelling here
        cdef int64_t name = -1, code, other, byte, k
        cdef bint may_escape
        if state == START:
            add_byte(reads, QUOTE)
            return 0
        here = spelling_of(state, nodes)
        if here.read == 0:
            name = nodes[here.node].name
        if name >= 0:
            add_byte(reads, QUOTE)
            if not every and not self.argument[at + NAMES_LOW] <= name <= self.argument[at + NAMES_HIGH]:
                drop_byte(reads, QUOTE)
        code = nodes[here.node].character
        for k in range(here.first, here.past):
            other = nodes[k].character
            if other < 0 or not (every or self.has_name(nodes + k, at)):
                continue
            may_escape = not table.needed or must_escape(other)
            if here.read == 0:
                if not must_escape(other):
                    add_byte(reads, spelled_byte(other, False, 0))
                if may_escape:
                    add_byte(reads, BACKSLASH)
            elif (may_escape or not here.escaped) and is_spelled_alike(other, code, here.escaped, here.read):
                byte = spelled_byte(other, here.escaped, here.read)
                add_byte(reads, byte)
                if here.escaped and here.read % ESCAPE_LENGTH >= 2 and byte >= 0x61:
                    add_byte(reads, byte - 0x20)
                if here.escaped and here.read == 1 and short_escape(other) >= 0:
                    add_byte(reads, short_escape(other))
        return 0

    cdef int64_t name_string_state(self, int64_t state, int64_t at) noexcept:
        cdef int32_t other = self.argument[at + NAMES_OTHER]
        cdef const Name* nodes
        cdef Spelling here
        cdef int64_t target, place
        if other < 0:
            return DEAD
        target = self.code_at[other].first
        if state == START:
            return target
        nodes = self.name_at + self.table_at[self.argument[at + NAMES_TABLE]].nodes
        here = spelling_of(state, nodes)
        target += BODY
        for place in range(here.read):
            if target >= 0:
                target = self.automata.targets[
                    target * 256 + spelled_byte(nodes[here.node].character, here.escaped, place)
                ]
        return target

    cdef int step_name(self, int64_t item, int64_t byte) except -1:
        cdef int64_t place = place_of(item), state = state_of(item), what = 0, at = self.code_at[place].first
        cdef int64_t following = self.step_trie(state, byte, at, &what)
        if following == STRING_ENDED:
            if not self.argument[at + NAMES_LOW] <= what <= self.argument[at + NAMES_HIGH]:
                return 0
            place = self.argument[self.argument[at + NAMES_TARGETS] + what - self.argument[at + NAMES_LOW]]
            following = 0
        elif following == STRING_LEFT:
            following = self.name_string_state(state, at)
            if following >= 0:
                following = self.automata.targets[following * 256 + byte]
            if following < 0:
                return 0
            place = self.argument[at + NAMES_OTHER]
            if self.automata.flags_of[following] & ENDS:
                place, following = self.code_at[place].second, 0
        elif what == 0 and self.name_string_state(following, at) < 0:
            return 0
        return self.add_found(place, following, stack_of(item))
