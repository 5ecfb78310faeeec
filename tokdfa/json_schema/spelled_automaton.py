r"""From an automaton of decoded texts to one of JSON strings, which reads every spelling of them.

A pattern tells few code points apart: most have a dozen *classes*. So its automaton is derived over classes, one symbol
each (`Classes`), and has as many states as the pattern has places. What JSON adds is the same for all of its states:
how bytes spell a code point (`tokdfa.json_schema.string_body`). That is a decision diagram from bytes to classes, made
once an alphabet. Behind each state of the automaton stands a copy of it, in which a class has become the state that it
leads to, and nodes with equal edges are one: `Classes.spell` writes all of that down in one call of a kernel.

The result has no dead states. It is minimal if the automaton of classes is, but for accidents of ``escapes="needed"``,
where a letter behind a backslash may lead where a raw one does.

Rows are interned by a table of this module: their number is known when all are written, and no Python code is between
that could make room.

Cost: 20 ns for each of a state's nodes and byte classes; of an automaton with 40 states and Unicode's other characters
30 us. Where letters of all scripts lead on, a state has 800 nodes.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.automata.dfa import Dfa
from tokdfa.core.budget import hold, spend
from tokdfa.core.jit import kernel
from tokdfa.json_schema.string_body import BACKSLASH, MUST_ESCAPE, QUOTE, SHORT_ESCAPES, Body
from tokdfa.regex.char_sets import SURROGATES, Ranges
from tokdfa.regex.nodes import NOTHING
from tokdfa.regex.program import known

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokdfa.program.program import Escapes
    from tokdfa.regex.program import Program

#: The symbol that stands for the closing quote; classes are the symbols below it.
CLOSING = 255
#: Entries of nodes: nothing goes on; a class c is ``LEAF - c``.
DEAD, LEAF = -1, -2
#: Work (`tokdfa.core.budget`) of an entry of the automaton, and of a range of code points.
NS_PER_ENTRY, NS_PER_RANGE = 10, 2_000
#: By byte: the code point that it spells behind a backslash, -1 for none.
_SHORT = np.full(256, -1, dtype=np.int64)
_SHORT[[ord(letter) for letter in SHORT_ESCAPES.values()]] = list(SHORT_ESCAPES)
#: By number of continuation bytes: the least code point and the bits that mark the lead byte.
_LEAST = np.array([0x0, 0x80, 0x800, 0x10000])
_MARK = np.array([0x00, 0xC0, 0xE0, 0xF0])


class Classes(Body):
    """Texts as sequences of classes: code points that none of `sets` tells apart are one symbol.

    `closed`: each text ends with CLOSING. Code points in none of the sets have no symbol; nor have surrogates.
    """

    closing = bytes([CLOSING])

    def __init__(self, sets: Iterable[Ranges], escapes: Escapes, closed: bool) -> None:
        super().__init__(escapes, closed)
        distinct = set(sets)
        # by code point: the sets that begin or end there, as bits; first surrogates, and what must be escaped
        flips = {0: 0, 0x110000: 0}
        for number, ranges in enumerate((SURROGATES, MUST_ESCAPE, *distinct)):
            bit = 1 << number
            for first, last in ranges:
                flips[first] = flips.get(first, 0) ^ bit
                flips[last + 1] = flips.get(last + 1, 0) ^ bit
        spend(NS_PER_RANGE * len(flips))
        numbers: dict[int, int] = {}
        self.firsts, self.raw, self.escaped, inside = sorted(flips), list[int](), list[int](), 0
        for first in self.firsts:
            inside ^= flips[first]
            is_none = inside & 1 or inside < 4
            found = DEAD if is_none else numbers.setdefault(inside >> 2, len(numbers))
            self.raw.append(DEAD if inside & 2 else found)
            self.escaped.append(found if escapes == "all" or inside & 2 else DEAD)
        #: How many classes there are.
        self.count = len(numbers)
        self._bits: dict[Ranges, int] = {}

    def char_set(self, ranges: Ranges, program: Program) -> int:
        """The value of one code point out of `ranges`, which is one of the sets, or a union of such."""
        if ranges not in self._bits:
            bits = 0
            for first, last in ranges:
                place = bisect_right(self.firsts, first) - 1
                while place < len(self.firsts) and self.firsts[place] <= last:
                    number = max(self.raw[place], self.escaped[place])
                    bits |= 1 << number if number >= 0 else 0
                    place += 1
            self._bits[ranges] = bits
        bits = self._bits[ranges]
        return program.byte_bits(bits) if bits else known(NOTHING)

    def text(self, text: str, program: Program) -> int:
        """The value of exactly `text`, each of whose characters is one of the sets."""
        places = [bisect_right(self.firsts, ord(character)) - 1 for character in text]
        return program.literal(bytes(max(self.raw[place], self.escaped[place]) for place in places))

    def spell(self, texts: Dfa, most_states: int) -> Dfa | None:
        """The automaton of the JSON strings, quotes included, whose texts a minimal one over classes accepts; None if
        it has more than about so many states: where classes are ragged, as letters are, a state has a thousand nodes.
        """
        is_closed, given = bool(self.end), texts.transitions.copy()  # kernels take no frozen arrays
        columns, closed = texts.byte_class[: self.count].astype(np.int64), texts.accepting & is_closed
        ends = given[:, texts.byte_class[CLOSING]] >= 0 if is_closed else texts.accepting.copy()
        intervals = np.array((self.firsts, self.raw, self.escaped))
        table, byte_class, visited = _spell_kernel(given, columns, ends, closed, intervals, most_states)
        spend(NS_PER_ENTRY * visited)
        if not len(table):
            return None
        hold(table.nbytes)
        accepting = np.zeros(len(table), dtype=np.bool_)
        accepting[_END] = True
        return Dfa.trusted(table, byte_class, accepting, _START)


_START, _END, _FIRST = range(3)


@kernel
def _intern_row(row, rows, slots, count):  # type: ignore[no-untyped-def]
    """(number of an equal row, or that of a new one; how many there are). There is room."""
    mask = np.uint64(len(slots) - 1)
    slot = _hash_row(row) & mask
    while slots[slot] >= 0:
        number, same = np.int64(slots[slot]), True
        for k in range(len(row)):
            if rows[number, k] != row[k]:
                same = False
                break
        if same:
            return number, count
        slot = (slot + np.uint64(1)) & mask
    slots[slot] = count
    rows[count] = row
    return count, count + 1


@kernel
def _hash_row(row):  # type: ignore[no-untyped-def]
    """A hash of entries, most of which are DEAD; no factor waits for the one before."""
    value = np.uint64(0)
    for k in range(len(row)):
        value += np.uint64(np.int64(row[k]) - DEAD) * (np.uint64(2 * k + 1) * np.uint64(0x9E3779B97F4A7C15))
    return value ^ (value >> np.uint64(32))


@kernel
def _new_slots(count):  # type: ignore[no-untyped-def]
    """Empty slots for so many rows."""
    size = 64
    while size < 2 * count:
        size *= 2
    return np.full(size, -1, dtype=np.int32)


@kernel
def _join_intervals(firsts, classes):  # type: ignore[no-untyped-def]
    """int64, shape (2, intervals): first code points and classes, neighbours of one class joined."""
    joined, count = np.empty((2, len(firsts)), dtype=np.int64), 0
    for k in range(len(firsts)):
        if count == 0 or joined[1, count - 1] != classes[k]:
            joined[0, count], joined[1, count] = firsts[k], classes[k]
            count += 1
    return joined[:, :count].copy()


@kernel
def _class_of(first, past, intervals):  # type: ignore[no-untyped-def]
    """(whether the code points from `first` up to `past` are of one class, that of `first`)."""
    low, high = 0, intervals.shape[1]
    while high - low > 1:
        middle = (low + high) >> 1
        if intervals[0, middle] <= first:
            low = middle
        else:
            high = middle
    return high == intervals.shape[1] or intervals[0, high] >= past, intervals[1, low]


@kernel
def _block(hexadecimal, tail, base, least, intervals, wholes, nodes, slots, meta):  # type: ignore[no-untyped-def]
    """The entry for the code points from `base` on that `tail` more digits tell apart, those below `least` left out.

    Digits are hexadecimal, or continuation bytes of UTF-8. `wholes`: int32, shape (2, 4, classes), the nodes of so many
    digits that lead to one class, or DEAD; ``meta[0]``: how many nodes there are.
    """
    digits = 16 if hexadecimal else 64
    size = np.int64(1) << (tail * (4 if hexadecimal else 6))
    is_one, found = _class_of(base, base + size, intervals)
    if base + size <= least or (is_one and found < 0):
        return np.int64(DEAD)
    if base >= least and is_one:
        return _whole(hexadecimal, tail, found, wholes, nodes, slots, meta)
    row = np.full(256, DEAD, dtype=np.int32)
    for digit in range(digits):
        inside = base + digit * (size // digits)
        entry = _block(hexadecimal, tail - 1, inside, least, intervals, wholes, nodes, slots, meta)
        _write_digit(row, hexadecimal, digit, entry)
    return _node(row, nodes, slots, meta)


@kernel
def _write_digit(row, hexadecimal, digit, entry):  # type: ignore[no-untyped-def]
    """Write an entry for a digit, in both cases."""
    if not hexadecimal:
        row[0x80 + digit] = entry
        return
    row[0x30 + digit if digit < 10 else 0x57 + digit] = entry
    if digit >= 10:
        row[0x37 + digit] = entry


@kernel
def _node(row, nodes, slots, meta):  # type: ignore[no-untyped-def]
    """The node with these entries; DEAD if all are."""
    for entry in row:
        if entry != DEAD:
            number, meta[0] = _intern_row(row, nodes, slots, meta[0])
            return number
    return np.int64(DEAD)


@kernel
def _step_node(byte, entry, nodes, slots, meta):  # type: ignore[no-untyped-def]
    """The node that reads one byte."""
    row = np.full(256, DEAD, dtype=np.int32)
    row[byte] = entry
    return _node(row, nodes, slots, meta)


@kernel
def _whole(hexadecimal, tail, found, wholes, nodes, slots, meta):  # type: ignore[no-untyped-def]
    """The entry of any `tail` digits that lead to one class."""
    if found < 0:
        return np.int64(DEAD)
    kind = np.int64(hexadecimal)
    for length in range(1, tail + 1):
        if wholes[kind, length, found] < 0:
            row = np.full(256, DEAD, dtype=np.int32)
            entry = LEAF - found if length == 1 else wholes[kind, length - 1, found]
            for digit in range(16 if hexadecimal else 64):
                _write_digit(row, hexadecimal, digit, entry)
            wholes[kind, length, found] = _node(row, nodes, slots, meta)
    return np.int64(wholes[kind, tail, found]) if tail else np.int64(LEAF - found)


@kernel
def _high_surrogates(tail, base, intervals, wholes, nodes, slots, meta):  # type: ignore[no-untyped-def]
    """The entry for high surrogates, `base` and those that `tail` more digits tell apart from it, and all behind them.

    ``meta[1:]``: the nodes behind one, if all code points it begins are of one class.
    """
    size = np.int64(16) ** tail
    first, past = 0x10000 + ((base - 0xD800) << 10), 0x10000 + ((base + size - 0xD800) << 10)
    is_one, found = _class_of(first, past, intervals)
    if is_one and found < 0:
        return np.int64(DEAD)
    if tail == 0:
        if is_one and meta[1 + found] >= 0:
            return meta[1 + found]
        row = np.full(256, DEAD, dtype=np.int32)
        for quarter in range(4):
            entry = _block(True, 2, first + 256 * quarter, 0, intervals, wholes, nodes, slots, meta)
            _write_digit(row, True, 12 + quarter, entry)
        entry = _node(row, nodes, slots, meta)
        row[:] = DEAD
        _write_digit(row, True, 13, entry)
        entry = _step_node(0x75, _node(row, nodes, slots, meta), nodes, slots, meta)
        entry = _step_node(BACKSLASH, entry, nodes, slots, meta)
        if is_one:
            meta[1 + found] = entry
        return entry
    row = np.full(256, DEAD, dtype=np.int32)
    entry = np.int64(DEAD)
    for digit in range(16):
        if digit == 0 or not is_one:
            inside = base + digit * (size // 16)
            entry = _high_surrogates(tail - 1, inside, intervals, wholes, nodes, slots, meta)
        _write_digit(row, True, digit, entry)
    return _node(row, nodes, slots, meta)


@kernel
def _spelling_nodes(intervals, count):  # type: ignore[no-untyped-def]
    """The diagram of one code point: nodes, int32, shape (nodes, 256), children first, the root last.

    `intervals`: int64, shape (3, intervals): first code points, the class that they have raw, and escaped, or DEAD.
    """
    raw, escaped = _join_intervals(intervals[0], intervals[1]), _join_intervals(intervals[0], intervals[2])
    room = 64 + 16 * (intervals.shape[1] + count)
    nodes, slots = np.empty((room, 256), dtype=np.int32), _new_slots(room)
    wholes = np.full((2, 4, count), DEAD, dtype=np.int32)
    meta = np.full(1 + count, DEAD, dtype=np.int64)
    meta[0] = 0
    root = np.full(256, DEAD, dtype=np.int32)
    for tail in range(4):
        least, mark = _LEAST[tail], _MARK[tail]
        past = _LEAST[tail + 1] if tail < 3 else 0x110000
        for lead in range(least >> (6 * tail), ((past - 1) >> (6 * tail)) + 1):
            base = np.int64(lead) << (6 * tail)
            root[mark | lead] = _block(False, tail, base, least, raw, wholes, nodes, slots, meta)
    unit = np.full(256, DEAD, dtype=np.int32)
    for digit in range(16):
        if digit != 13:
            entry = _block(True, 3, np.int64(digit << 12), 0, escaped, wholes, nodes, slots, meta)
        else:
            row = np.full(256, DEAD, dtype=np.int32)
            for second in range(12):
                base = np.int64(0xD000 + 256 * second)
                if second < 8:
                    inside = _block(True, 2, base, 0, escaped, wholes, nodes, slots, meta)
                else:
                    inside = _high_surrogates(2, base, escaped, wholes, nodes, slots, meta)
                _write_digit(row, True, second, inside)
            entry = _node(row, nodes, slots, meta)
        _write_digit(unit, True, digit, entry)
    escape = np.full(256, DEAD, dtype=np.int32)
    escape[0x75] = _node(unit, nodes, slots, meta)
    for byte in range(256):
        if _SHORT[byte] >= 0:
            found = _class_of(_SHORT[byte], _SHORT[byte], escaped)[1]
            escape[byte] = LEAF - found if found >= 0 else DEAD
    root[BACKSLASH] = _node(escape, nodes, slots, meta)
    nodes[meta[0]] = root
    return nodes[: meta[0] + 1]


@kernel
def _merge_bytes(nodes):  # type: ignore[no-untyped-def]
    """(uint8, shape (256,): classes of bytes that no node tells apart, the quote alone; their first bytes)."""
    byte_class, firsts = np.empty(256, dtype=np.uint8), np.empty(256, dtype=np.int64)
    hashes = np.zeros(256, dtype=np.uint64)
    for node in range(len(nodes)):
        factor = np.uint64(2 * node + 1) * np.uint64(0x9E3779B97F4A7C15)
        for byte in range(256):
            hashes[byte] += np.uint64(np.int64(nodes[node, byte])) * factor
    count = 0
    for byte in range(256):
        found = 0
        while found < count:
            other = firsts[found]
            if hashes[other] == hashes[byte] and QUOTE not in (byte, other):
                node = 0
                while node < len(nodes) and nodes[node, byte] == nodes[node, other]:
                    node += 1
                if node == len(nodes):
                    break
            found += 1
        if found == count:
            firsts[count] = byte
            count += 1
        byte_class[byte] = found
    return byte_class, firsts[:count]


@kernel
def _spell_kernel(texts, columns, ends, closed, intervals, most_states):  # type: ignore[no-untyped-def]
    """(table, byte class) of the automaton of the JSON strings of `texts`, a table whose state 0 is the start, and how
    many entries were looked at. The table is empty if there are more than `most_states` and those of one text.

    `columns`: by class the column of `texts`; `ends`: the states in which a text may end; `closed`: the states that are
    its end. States: _START, _END, those of `texts` that are not closed, and the nodes behind them.
    """
    nodes = _spelling_nodes(intervals, len(columns))
    byte_class, firsts = _merge_bytes(nodes)
    width, root = len(firsts), len(nodes) - 1
    entries = np.empty((len(nodes), width), dtype=np.int32)
    below = np.zeros(len(nodes), dtype=np.uint64)  # the columns that classes below have, as bits modulo 64
    for node in range(len(nodes)):
        for k in range(width):
            entry = nodes[node, firsts[k]]
            entries[node, k] = entry
            if entry >= 0:
                below[node] |= below[entry]
            elif entry <= LEAF:
                entries[node, k] = LEAF - columns[LEAF - entry]
                below[node] |= np.uint64(1) << np.uint64(columns[LEAF - entry] & 63)
    number, count = np.empty(len(texts), dtype=np.int64), np.int64(_FIRST)
    for state in range(len(texts)):
        number[state] = _END if closed[state] else count
        count += not closed[state]
    first_node = count
    rows = np.empty((2 * count + 64, width), dtype=np.int32)
    slots = _new_slots(len(rows))
    rows[:count] = DEAD
    rows[_START, byte_class[QUOTE]] = number[0]
    made, row = np.empty(len(nodes), dtype=np.int64), np.empty(width, dtype=np.int32)
    visited = np.int64(0)
    for state in range(len(texts)):
        if count > most_states:
            return rows[:0].copy(), byte_class, visited
        live = np.uint64(0)
        for k in range(texts.shape[1]):
            if texts[state, k] >= 0:
                live |= np.uint64(1) << np.uint64(k & 63)
        for node in range(len(nodes)):
            made[node] = DEAD
            if not below[node] & live:
                continue
            is_dead = True
            visited += width
            for k in range(width):
                entry = np.int64(entries[node, k])
                if entry >= 0:
                    entry = made[entry]
                elif entry <= LEAF:
                    target = texts[state, LEAF - entry]
                    entry = number[target] if target >= 0 else np.int64(DEAD)
                row[k] = entry
                is_dead = is_dead and entry < 0
            if is_dead:
                continue
            if node == root:
                rows[number[state]] = row
                break
            if count == len(rows):
                longer = np.empty((2 * count, width), dtype=np.int32)
                longer[:count] = rows
                rows, slots = longer, _new_slots(2 * count)
                for other in range(first_node, count):
                    _enter_row(other, rows, slots)
            made[node], count = _intern_row(row, rows, slots, count)
        if ends[state]:
            rows[number[state], byte_class[QUOTE]] = _END
    return rows[:count].copy(), byte_class, visited


@kernel
def _enter_row(number, rows, slots):  # type: ignore[no-untyped-def]
    """Enter a row that differs from all others in longer slots."""
    mask = np.uint64(len(slots) - 1)
    slot = _hash_row(rows[number]) & mask
    while slots[slot] >= 0:
        slot = (slot + np.uint64(1)) & mask
    slots[slot] = number


def _warm_up() -> None:
    """Compile every kernel of this module: of 64 texts there are more nodes than there is room for at first."""
    texts = np.append(np.arange(1, 65, dtype=np.int32), np.int32(-1)).reshape(-1, 1)
    Classes([((0x61, 0x7A),)], "all", False).spell(Dfa(texts, np.zeros(256, np.uint8), texts[:, 0] < 0, 0), 10_000)
