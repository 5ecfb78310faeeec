"""The automaton of JSON strings, from one over classes of code points (`tokdfa.json_schema.sets.spelled_automaton`).

`Spellings` is the decision diagram from bytes to classes. An *entry* of its nodes is 0 where nothing goes on, 1 + c at
a class c, 1 + classes + n at a node n: an index into a table of what these are behind a state of the texts, which is
all that a `Speller` changes from one state to the next.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset
from libcpp.algorithm cimport upper_bound
from libcpp.vector cimport vector

from tokdfa.core.interning cimport Contents, Keys, pair_key

import numpy as np

from tokdfa.automata.dfa import Dfa
from tokdfa.core.budget import hold, spend
from tokdfa.json_schema.sets.string_body import SHORT_ESCAPES

cdef enum:
    DEAD = -1
    START = 0, END, FIRST      # states of the automaton; the others are numbered from FIRST on
    QUOTE = 0x22, BACKSLASH = 0x5C, LETTER_U = 0x75
    HELD_ENTRIES = 1 << 12     # looked at before other threads may run
    CHECKED_ENTRIES = 1 << 20  # and then between checks of signals and budget


#: Work (`tokdfa.core.budget`) of an entry of the automaton, in nanoseconds.
NS_PER_ENTRY = 10
#: (continuation bytes, the least code point, the one past the last, what marks the lead byte).
UTF8_LENGTHS = (0, 0, 0x80, 0), (1, 0x80, 0x800, 0xC0), (2, 0x800, 0x10000, 0xE0), (3, 0x10000, 0x110000, 0xF0)


cdef struct Node:
    int32_t entries[256]  # by byte


cdef inline void clear(Node* node) noexcept nogil:
    memset(node, 0, sizeof(Node))


cdef inline void write_digit(Node* node, bint is_escaped, int digit, int32_t entry) noexcept nogil:
    """The entry of a hexadecimal digit, in both cases, or of a continuation byte of UTF-8."""
    if not is_escaped:
        node.entries[0x80 + digit] = entry
    elif digit < 10:
        node.entries[0x30 + digit] = entry
    else:
        node.entries[0x37 + digit] = node.entries[0x57 + digit] = entry


@cython.final
cdef class Spellings:
    """How bytes spell one code point. Nodes stand behind those that they lead to, the root last.

    `is_escaped`: in hexadecimal digits behind a backslash, else in UTF-8.
    """

    cdef vector[int32_t] firsts[2]   # by `is_escaped`: where intervals of code points begin
    cdef vector[int32_t] classes[2]  # and their classes, or DEAD
    cdef vector[int32_t] wholes    # by `is_escaped`, number of digits and class: the entry of any such digits, or 0
    cdef Contents[int32_t] nodes
    cdef Node root
    cdef uint8_t byte_class[256]   # bytes that no node tells apart are one class, but for the quote
    cdef size_t class_count, node_count, width
    cdef vector[int32_t] entries   # shape (node_count, width)
    cdef vector[uint64_t] below    # by node: the classes that it leads to, as bits modulo 64

    def __cinit__(self, firsts, raw, escaped, size_t class_count):
        cdef int tail, lead, mark
        cdef int32_t least, past
        cdef Node escape
        self.class_count = class_count
        self.wholes.assign(8 * class_count, 0)
        for is_escaped, classes in enumerate((raw, escaped)):
            self.join_intervals(is_escaped, firsts, classes)
        for tail, least, past, mark in UTF8_LENGTHS:
            for lead in range(least >> 6 * tail, ((past - 1) >> 6 * tail) + 1):
                self.root.entries[mark | lead] = self.block(False, tail, lead << 6 * tail, least)
        clear(&escape)
        escape.entries[LETTER_U] = self.code_unit()
        for code_point, letter in SHORT_ESCAPES.items():
            escape.entries[<int>ord(letter)] = self.block(True, 0, code_point, 0)
        self.root.entries[BACKSLASH] = self.entry_of(&escape)
        self.merge_bytes()
        self.write_entries()

    cdef int join_intervals(self, bint is_escaped, firsts, classes) except -1:
        """Take intervals; neighbours of one class become one."""
        for first, found in zip(firsts, classes):
            if self.classes[is_escaped].empty() or self.classes[is_escaped].back() != found:
                self.firsts[is_escaped].push_back(first)
                self.classes[is_escaped].push_back(found)
        return 0

    cdef bint is_one_class(self, bint is_escaped, int32_t first, int32_t past, int32_t* found) noexcept:
        """Whether the code points from `first` up to `past` are of one class, that of `first`, which is found."""
        cdef vector[int32_t]* firsts = &self.firsts[is_escaped]
        cdef size_t place = upper_bound(firsts.begin(), firsts.end(), first) - firsts.begin()
        found[0] = self.classes[is_escaped][place - 1]
        return place == firsts.size() or firsts[0][place] >= past

    cdef int32_t entry_of(self, const Node* node) except -1:
        """The entry that leads to a node, 0 if nothing goes on there."""
        cdef int byte
        for byte in range(256):
            if node.entries[byte]:
                return 1 + self.class_count + self.nodes.intern(node.entries, 256)
        return 0

    cdef int32_t block(self, bint is_escaped, int tail, int32_t base, int32_t least) except -1:
        """The entry for the code points that begin with `base`, `tail` digits to come; those below `least` left out."""
        cdef int digit, bits = 4 if is_escaped else 6
        cdef int32_t found, size = 1 << bits * tail
        cdef bint is_one = self.is_one_class(is_escaped, base, base + size, &found)
        cdef Node node
        if base + size <= least or (is_one and found < 0):
            return 0
        if is_one and base >= least:
            return self.whole(is_escaped, tail, found)
        clear(&node)
        for digit in range(1 << bits):
            found = self.block(is_escaped, tail - 1, base + digit * (size >> bits), least)
            write_digit(&node, is_escaped, digit, found)
        return self.entry_of(&node)

    cdef int32_t whole(self, bint is_escaped, int tail, int32_t found) except -1:
        """The entry of any `tail` digits, which all lead to one class."""
        cdef size_t place = (4 * is_escaped + tail) * self.class_count + found
        cdef int digit
        cdef int32_t entry
        cdef Node node
        if tail == 0:
            return 1 + found
        if not self.wholes[place]:
            clear(&node)
            entry = self.whole(is_escaped, tail - 1, found)
            for digit in range(16 if is_escaped else 64):
                write_digit(&node, is_escaped, digit, entry)
            self.wholes[place] = self.entry_of(&node)
        return self.wholes[place]

    cdef int32_t code_unit(self) except -1:
        """The entry of the four digits behind ``\\u``."""
        cdef int digit
        cdef Node node
        clear(&node)
        for digit in range(16):
            write_digit(&node, True, digit, self.block(True, 3, digit << 12, 0) if digit != 13 else self.after_d())
        return self.entry_of(&node)

    cdef int32_t after_d(self) except -1:
        """The entry behind ``\\uD``. From 8 on a high surrogate follows; low ones alone, from C on, spell nothing."""
        cdef int digit
        cdef int32_t base
        cdef Node node
        clear(&node)
        for digit in range(12):
            base = 0xD000 + 256 * digit
            write_digit(&node, True, digit, self.block(True, 2, base, 0) if digit < 8 else self.pairs(2, base))
        return self.entry_of(&node)

    cdef int32_t pairs(self, int tail, int32_t base) except -1:
        """The entry for the surrogate pairs that begin with `base`, `tail` digits of the first to come."""
        cdef int digit
        cdef int32_t found, entry = 0, size = 1 << 4 * tail, first = 0x10000 + ((base - 0xD800) << 10)
        cdef bint is_one = self.is_one_class(True, first, first + (size << 10), &found)
        cdef Node node
        if is_one and found < 0:
            return 0
        clear(&node)
        if tail:
            for digit in range(16):
                if digit == 0 or not is_one:
                    entry = self.pairs(tail - 1, base + digit * (size >> 4))
                write_digit(&node, True, digit, entry)
            return self.entry_of(&node)
        for digit in range(4):  # \uDC00 to \uDFFF
            write_digit(&node, True, 12 + digit, self.block(True, 2, first + 256 * digit, 0))
        entry = self.entry_of(&node)
        for byte in b"dD", b"u", b"\\":
            clear(&node)
            for k in byte:
                node.entries[<int>k] = entry
            entry = self.entry_of(&node)
        return entry

    cdef const int32_t* node(self, size_t number) noexcept:
        if number == self.nodes.size():
            return self.root.entries
        return self.nodes.content_of(<int32_t>number)

    cdef int merge_bytes(self) except -1:
        """Find the classes of bytes: node by node, those that it tells apart leave the class of its first byte."""
        cdef int32_t[256] class_of, number
        cdef vector[int32_t] firsts  # by class
        cdef Keys split
        cdef const int32_t* entries
        cdef int32_t byte, found
        cdef size_t node, old
        memset(class_of, 0, sizeof(class_of))
        class_of[QUOTE] = 1
        firsts = [0, QUOTE]
        for node in range(self.nodes.size() + 1):
            entries, old = self.node(node), firsts.size()
            split.clear()
            for byte in range(256):
                if entries[byte] != entries[firsts[class_of[byte]]]:
                    found = old + split.intern(pair_key(class_of[byte], entries[byte]))
                    class_of[byte] = found
                    if <size_t>found == firsts.size():
                        firsts.push_back(byte)
        for byte in range(256):  # numbered by their first bytes
            if firsts[class_of[byte]] == byte:
                number[class_of[byte]] = <int32_t>self.width
                self.width += 1
            self.byte_class[byte] = <uint8_t>number[class_of[byte]]
        return 0

    cdef int write_entries(self) except -1:
        """Write the nodes by class of bytes."""
        cdef size_t node, k, classes = self.class_count
        cdef const int32_t* entries
        cdef int32_t byte
        cdef uint64_t leaves
        self.node_count = self.nodes.size() + 1
        self.entries.resize(self.node_count * self.width)
        for node in range(self.node_count):
            entries, leaves = self.node(node), 0
            for byte in range(256):
                self.entries[node * self.width + self.byte_class[byte]] = entries[byte]
            for k in range(node * self.width, (node + 1) * self.width):
                if self.entries[k] > <int32_t>classes:
                    leaves |= self.below[self.entries[k] - 1 - classes]
                elif self.entries[k]:
                    leaves |= <uint64_t>1 << (self.entries[k] - 1 & 63)
            self.below.push_back(leaves)
        return 0


@cython.final
cdef class Speller:
    """The automaton of the strings while its rows are written."""

    cdef Spellings spellings
    cdef const int32_t[:, ::1] texts
    cdef const uint8_t[::1] columns  # by class
    cdef vector[int32_t] number      # by state of the texts: the state of the strings
    cdef vector[int32_t] front       # the rows of START, END and those states
    cdef Contents[int32_t] behind    # the rows of the nodes behind these, numbered from `first_node` on
    cdef vector[int32_t] now         # what each entry of the spellings is behind the present state
    cdef vector[int32_t] row
    cdef size_t first_node, done     # done: how many states are spelled
    cdef int64_t visited             # entries looked at

    def __cinit__(self, texts, closed, Spellings spellings):
        self.spellings, self.texts, self.columns = spellings, texts.transitions, texts.byte_class
        self.first_node = FIRST
        for is_end in closed.tolist():
            self.number.push_back(END if is_end else self.first_node)
            self.first_node += not is_end
        self.front.assign(self.first_node * spellings.width, DEAD)
        self.front[START * spellings.width + spellings.byte_class[QUOTE]] = self.number[0]
        self.now.assign(1 + spellings.class_count + spellings.node_count, DEAD)
        self.row.resize(spellings.width)

    cdef bint go_on(self, int64_t until, size_t most_states) except -1 nogil:
        """Spell states until so many entries were looked at; False once there are too many states."""
        while self.done < self.number.size() and self.visited < until:
            if self.first_node + self.behind.size() > most_states:
                return False
            self.spell_state()
            self.done += 1
        return True

    cdef int spell_state(self) except -1 nogil:
        """Write the row of a state, and those of the nodes behind it that are new."""
        cdef size_t width = self.spellings.width, nodes = 1 + self.spellings.class_count, node, k
        cdef const int32_t* entries = self.spellings.entries.data()
        cdef int32_t* now = self.now.data()
        cdef int32_t* row = self.row.data()
        cdef int32_t target
        cdef uint64_t live = 0
        cdef bint is_live = False
        for k in range(self.spellings.class_count):
            target = self.texts[self.done, self.columns[k]]
            now[1 + k] = DEAD
            if target >= 0:
                now[1 + k] = self.number[target]
                live |= <uint64_t>1 << (k & 63)
        for node in range(self.spellings.node_count):
            now[nodes + node], is_live = DEAD, False
            if self.spellings.below[node] & live:
                self.visited += width
                for k in range(width):
                    row[k] = now[entries[node * width + k]]
                    is_live |= row[k] >= 0
                if is_live and node < self.spellings.nodes.size():
                    now[nodes + node] = self.first_node + self.behind.intern(row, width)
        if is_live:  # the root
            memcpy(&self.front[self.number[self.done] * width], row, width * sizeof(int32_t))
        return 0


def spell(texts, ends, closed, Spellings spellings, size_t most_states):
    """See spelling.pyi."""
    cdef Speller speller = Speller(texts, closed, spellings)
    cdef size_t width = spellings.width, front = speller.first_node
    cdef int64_t counted = 0
    cdef int32_t[:, ::1] rows
    cdef bint fits = speller.go_on(HELD_ENTRIES, most_states)
    while fits and speller.done < speller.number.size():
        spend(NS_PER_ENTRY * (speller.visited - counted))
        PyErr_CheckSignals()
        counted = speller.visited
        with nogil:
            fits = speller.go_on(counted + CHECKED_ENTRIES, most_states)
    spend(NS_PER_ENTRY * (speller.visited - counted))
    if not fits:
        return None
    hold(sizeof(int32_t) * width * (front + speller.behind.size()))
    table = np.empty((front + speller.behind.size(), width), dtype=np.int32)
    rows = table
    memcpy(&rows[0, 0], speller.front.data(), sizeof(int32_t) * width * front)
    if speller.behind.size():
        memcpy(&rows[front, 0], speller.behind.content_of(0), sizeof(int32_t) * width * speller.behind.size())
    table[np.asarray(<int32_t[:speller.number.size()]>speller.number.data())[ends], spellings.byte_class[QUOTE]] = END
    byte_class = np.asarray(<uint8_t[:256]>spellings.byte_class).copy()
    return Dfa.trusted(table, byte_class, np.arange(len(table)) == END, START)
