"""Tries of names: what NAMES instructions read, without an automaton of all spellings.

A JSON string may spell a name in many ways: each character raw, or escaped in either case of its digits. An automaton
of all spellings has some six states for each character. Here it is *virtual*. What is kept is the trie of the names
over UTF-16 code units, and a state of reading is

- START, before the opening quote, or
- (node, phase): phase 0 if all units down to the node are spelled; otherwise so much of the spelling of the node's own
  unit is read: 1 to 3 bytes of raw UTF-8; a backslash, ``\\u``, or that and 1 to 3 digits.

Where several siblings begin alike, the state names the first of them, so what was read says which state it is. A
character beyond U+FFFF is two units: raw, it is a phase of the node of the second; escaped, the units are two escapes.

Nodes lie in level order, siblings in ascending order of their units. Names are sorted by units, so those below a node
are an interval of them, and ``order`` says which index each has; with the least and the greatest index below the node
that decides mostly at once, and always exactly, whether a name of a window of indices is below it. So no state is
entered from which no allowed name can be spelled.

Layout: ``names`` int32, shape (nodes, `NAME_COLUMNS`), all tables one after another; ``order`` int32 likewise;
``tables`` int32, shape (tables, 4): where a table's nodes begin and end, where its order begins, and whether only
needed escapes may be used. Cost: about 20 ns a code unit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.core.jit import kernel
from tokdfa.errors import LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tokdfa.program.program import NameTable

    Int32 = npt.NDArray[np.int32]

#: Columns of a node: its code unit; its parent (-1: the root); its first child, and the one past the last; the interval
#: of names below it in ascending order; their least and greatest index; the index of the name that ends here, or -1.
N_UNIT, N_PARENT, N_FIRST, N_PAST, N_LOW, N_HIGH, N_LEAST, N_MOST, N_NAME = range(9)
NAME_COLUMNS = 9
#: Columns of a table.
T_NODES, T_PAST, T_ORDER, T_NEEDED = range(4)
TABLE_COLUMNS = 4
#: Phases of a unit's spelling: all of it; bytes of UTF-8 read; a backslash; with `u`; with digits.
WHOLE, RAW, ESCAPED, UNICODE, DIGITS = 0, 1, 4, 5, 6
PHASES = 9
#: States: before the opening quote; after it. Node n in phase p is AT_ROOT + PHASES n + p. 0 is no state.
START, AT_ROOT = 1, 2
#: Bytes of a spelling.
QUOTE, BACKSLASH, SLASH, LETTER_U = 0x22, 0x5C, 0x2F, 0x75
#: Nodes of a table: an item has 21 bits for a state.
MAX_NAME_NODES = ((1 << 21) - 1 - AT_ROOT) // PHASES


def build_tries(tables: Sequence[NameTable]) -> tuple[Int32, Int32, Int32]:
    """(names, order, tables) of some tables, numbered from 0. Raises LimitExceeded for a table too large."""
    data = np.frombuffer(b"".join([b"".join(table.units) for table in tables]), dtype=">u2").astype(np.int32)
    lengths = np.array([len(unit) >> 1 for table in tables for unit in table.units], dtype=np.int32)
    order = np.array([index for table in tables for index in table.order], dtype=np.int32)
    counts = np.array([len(table.names) for table in tables], dtype=np.int32)
    names = np.empty((len(data) + len(tables), NAME_COLUMNS), dtype=np.int32)
    found = np.zeros((len(tables), TABLE_COLUMNS), dtype=np.int32)
    used, widest = _build_kernel(data, lengths, order, counts, names, found)
    for number, table in enumerate(tables):
        if table.escapes == "needed":
            found[number, T_NEEDED] = 1
    if widest > MAX_NAME_NODES:
        raise LimitExceeded(
            f"names that may stand at one place have more than {MAX_NAME_NODES} characters that none of them share;"
            " use fewer or shorter ones",
            limit="name_nodes",
            value=MAX_NAME_NODES,
        )
    return names[:used], order, found


@kernel
def _build_kernel(data, lengths, order, counts, names, tables):  # type: ignore[no-untyped-def]
    """Fill `names` and three columns of `tables`; (nodes, at most one for each unit and table; most of one table)."""
    begins = np.empty(len(lengths), dtype=np.int64)
    for k in range(len(lengths)):
        begins[k] = begins[k - 1] + lengths[k - 1] if k else 0
    depths = np.empty(len(names), dtype=np.int32)
    used, first, widest = 0, 0, 0
    for table in range(len(counts)):
        base = used
        tables[table, T_NODES], tables[table, T_ORDER] = base, first
        names[used, N_UNIT], names[used, N_PARENT], names[used, N_LOW] = 0, -1, 0
        names[used, N_HIGH] = counts[table]
        depths[used] = 0
        used += 1
        node = base
        while node < used:  # in level order: children are appended
            depth = depths[node]
            low, high = np.int64(names[node, N_LOW]), np.int64(names[node, N_HIGH])
            least, most = order[first + low], order[first + low]
            for k in range(low + 1, high):
                index = order[first + k]
                least, most = min(least, index), max(most, index)
            names[node, N_LEAST], names[node, N_MOST] = least, most
            names[node, N_NAME] = -1
            if lengths[first + low] == depth:  # names that have this one as a beginning come after it
                names[node, N_NAME] = order[first + low]
                low += 1
            names[node, N_FIRST] = used - base
            while low < high:
                unit = data[begins[first + low] + depth]
                past = low + 1
                while past < high and data[begins[first + past] + depth] == unit:
                    past += 1
                names[used, N_UNIT], names[used, N_PARENT] = unit, node - base
                names[used, N_LOW], names[used, N_HIGH] = low, past
                depths[used] = depth + 1
                used += 1
                low = past
            names[node, N_PAST] = used - base
            node += 1
        first += int(counts[table])
        tables[table, T_PAST] = used
        widest = max(widest, used - base)
    return used, widest


@kernel
def is_high(unit):  # type: ignore[no-untyped-def]
    """Whether a code unit is the first surrogate of two."""
    return 0xD800 <= unit < 0xDC00


@kernel
def is_low(unit):  # type: ignore[no-untyped-def]
    """Whether a code unit is the second surrogate of two."""
    return 0xDC00 <= unit < 0xE000


@kernel
def must_escape(unit):  # type: ignore[no-untyped-def]
    """Whether a character cannot stand raw in a string."""
    return unit < 0x20 or unit in (QUOTE, BACKSLASH)


@kernel
def short_escape(unit):  # type: ignore[no-untyped-def]
    """The byte after the backslash in a unit's short escape, or -1."""
    if unit in (QUOTE, BACKSLASH, SLASH):
        return np.int64(unit)
    if unit == 8:
        return np.int64(0x62)
    if unit == 12:
        return np.int64(0x66)
    if unit == 10:
        return np.int64(0x6E)
    if unit == 13:
        return np.int64(0x72)
    if unit == 9:
        return np.int64(0x74)
    return np.int64(-1)


@kernel
def utf8_length(code):  # type: ignore[no-untyped-def]
    """Bytes of a character raw; 0 if it cannot stand raw or is a surrogate."""
    if must_escape(code) or 0xD800 <= code < 0xE000:
        return np.int64(0)
    if code < 0x80:
        return np.int64(1)
    return np.int64(2) if code < 0x800 else (np.int64(3) if code < 0x10000 else np.int64(4))


@kernel
def utf8_byte(code, length, place):  # type: ignore[no-untyped-def]
    """Byte `place` of a character of `length` bytes."""
    bits = code >> (6 * (length - 1 - place))
    if place > 0:
        return np.int64(0x80 | bits & 0x3F)
    if length == 1:
        return np.int64(bits)
    return np.int64((0xF00 >> length) & 0xFF | bits)


@kernel
def character(node, base, names):  # type: ignore[no-untyped-def]
    """The code point that is complete with a node: of a second surrogate that of both units."""
    unit = np.int64(names[base + node, N_UNIT])
    if is_low(unit):
        high = np.int64(names[base + names[base + node, N_PARENT], N_UNIT])
        if is_high(high):
            return 0x10000 + ((high - 0xD800) << 10) + unit - 0xDC00
    return unit


@kernel
def node_above(node, phase, base, names):  # type: ignore[no-untyped-def]
    """The node at which the spelling began of which `phase` is read."""
    parent = np.int64(names[base + node, N_PARENT])
    if phase < ESCAPED and is_low(names[base + node, N_UNIT]):
        return np.int64(names[base + parent, N_PARENT])
    return parent
