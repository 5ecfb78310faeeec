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
the partition is one that counts tokens as inside only if the terminal is not complete after them (`strict`).

Layout: ``names`` int32, shape (nodes, `NAME_COLUMNS`), all tables one after another, each in level order with siblings
in ascending order; ``order`` int32 likewise; ``tables`` int32, shape (tables, 3): where a table's nodes begin, where
its order begins, and whether only needed escapes may be used. Cost: about 20 ns a character.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.backends.pushdown_trie.rows import ENDS, add_found
from tokdfa.core.jit import kernel
from tokdfa.errors import LimitExceeded
from tokdfa.program.json_text import BODY
from tokdfa.program.program import (
    COUNTED,
    FIRST,
    NAMES_HIGH,
    NAMES_LOW,
    NAMES_OTHER,
    NAMES_TABLE,
    NAMES_TARGETS,
    OPERATION,
    SECOND,
    TERMINAL,
)
from tokdfa.vocabulary.byte_table import DEAD

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tokdfa.program.program import NameTable

    Int32 = npt.NDArray[np.int32]

#: Columns of a node: its character, -1 for the second number of the node before; its parent (-1: the root); its first
#: child, and the one past the last; the interval of names below it in ascending order; their least and greatest index;
#: the index of the name that ends here, or -1.
N_CHARACTER, N_PARENT, N_FIRST, N_PAST, N_LOW, N_HIGH, N_LEAST, N_MOST, N_NAME = range(9)
NAME_COLUMNS = 9
#: Columns of a table.
T_NODES, T_ORDER, T_NEEDED = range(3)
TABLE_COLUMNS = 3
#: Phases: all of the character is spelled; so many bytes of it raw, 1 to 3; so many bytes of an escape, less one.
WHOLE, ESCAPED, PHASES = 0, 4, 9
#: Bytes of an escape, ``\\u`` and four digits.
ESCAPE_LENGTH = 6
#: States: before the opening quote; after it. Node n in phase p is AT_ROOT + PHASES n + p. 0 is no state.
START, AT_ROOT = 1, 2
QUOTE, BACKSLASH, SLASH, LETTER_U = 0x22, 0x5C, 0x2F, 0x75
#: Nodes of a table: an item has 21 bits for a state.
MAX_NAME_NODES = ((1 << 21) - 1 - AT_ROOT) // PHASES
#: What `step_trie` says besides a state: the string is another one; it ends here.
LEFT, ENDED = -3, -4


def bind_code(code: Int32, starts: Sequence[int], tables: Sequence[NameTable]) -> tuple[bool, Int32, Int32, Int32]:
    """Put states in place of the numbers of terminals; (whether there is a COUNTED, names, order, tables), the last
    three of some tables, numbered from 0. Raises LimitExceeded for a table too large, before it changes `code`.

    `code`: int32, shape (instructions, 3); `starts`: by terminal.
    """
    order = [index for table in tables for index in table.order]
    sorted_names = [table.names[index] for table in tables for index in table.order]
    joined = "".join(sorted_names)
    data = np.frombuffer(bytearray(joined.encode("utf-32")), np.int32, offset=4)  # in the order of this machine
    # one array for all, as to make one takes some µs
    parts = [*order, *map(len, sorted_names), *[len(table.names) for table in tables], *starts]
    numbers = np.frombuffer(array("i", parts), np.int32)
    room = len(joined) + len(tables)
    if not joined.isascii():
        room += sum(character > "\uffff" for character in joined)
    names = np.empty((room, NAME_COLUMNS), dtype=np.int32)
    found = np.zeros((len(tables), TABLE_COLUMNS), dtype=np.int32)
    for number, table in enumerate(tables):
        found[number, T_NEEDED] = table.escapes == "needed"
    used, widest, counts = _bind_kernel(code, data, numbers, len(order), MAX_NAME_NODES, names, found)
    if widest > MAX_NAME_NODES:
        raise LimitExceeded(
            f"names that may stand at one place have more than {MAX_NAME_NODES} characters that none of them share;"
            " use fewer or shorter ones",
            limit="name_nodes",
            value=MAX_NAME_NODES,
        )
    return counts, names[:used], numbers[: len(order)], found


@kernel
def _bind_kernel(code, data, numbers, count, limit, names, tables):  # type: ignore[no-untyped-def]
    """Fill `names`, and T_NODES and T_ORDER of `tables`; (nodes, most of one table, whether `code` has a COUNTED).
    Puts states in place of the terminals in `code`, if no table has more than `limit` nodes.

    `numbers`: of `count` names the order and the lengths, of each table how many it has, and by terminal its state.
    """
    order, lengths = numbers[:count], numbers[count : 2 * count]
    counts, starts = numbers[2 * count : 2 * count + len(tables)], numbers[2 * count + len(tables) :]
    begins = np.empty(len(lengths), dtype=np.int64)
    for k in range(len(lengths)):
        begins[k] = begins[k - 1] + lengths[k - 1] if k else 0
    depths = np.empty(len(names), dtype=np.int32)
    used, first, widest = 0, 0, 0
    for table in range(len(counts)):
        base = used
        tables[table, T_NODES], tables[table, T_ORDER] = base, first
        names[used, N_CHARACTER], names[used, N_PARENT], names[used, N_LOW] = 0, -1, 0
        names[used, N_HIGH] = counts[table]
        depths[used] = 0
        used += 1
        node = base
        while node < used:  # in level order: children are appended
            if names[node, N_CHARACTER] < 0:
                node += 1
                continue
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
                character = data[begins[first + low] + depth]
                past = low + 1
                while past < high and data[begins[first + past] + depth] == character:
                    past += 1
                names[used, N_CHARACTER], names[used, N_PARENT] = character, node - base
                names[used, N_LOW], names[used, N_HIGH] = low, past
                depths[used] = depth + 1
                used += 1
                if character > 0xFFFF:
                    names[used] = -1
                    names[used, N_PARENT] = node - base
                    used += 1
                low = past
            names[node, N_PAST] = used - base
            node += 1
        first += int(counts[table])
        widest = max(widest, used - base)
    has_counted = False
    if widest <= limit:
        for place in range(len(code)):
            if code[place, OPERATION] == TERMINAL:
                code[place, FIRST] = starts[code[place, FIRST]]
            has_counted = has_counted or code[place, OPERATION] == COUNTED
    return used, widest, has_counted


@kernel
def _must_escape(code):  # type: ignore[no-untyped-def]
    """Whether a character cannot stand raw in a string."""
    return code < 0x20 or code in (QUOTE, BACKSLASH)


@kernel
def _short_escape(code):  # type: ignore[no-untyped-def]
    """The byte after the backslash in a character's short escape, or -1."""
    if code in (QUOTE, BACKSLASH, SLASH):
        return np.int64(code)
    if code == 8:
        return np.int64(0x62)
    if code == 12:
        return np.int64(0x66)
    if code == 10:
        return np.int64(0x6E)
    if code == 13:
        return np.int64(0x72)
    if code == 9:
        return np.int64(0x74)
    return np.int64(-1)


@kernel
def _spelled_byte(code, escaped, place):  # type: ignore[no-untyped-def]
    """Byte `place` of a character raw, or of its escape with digits in lower case; -1 past its end, and if there is no
    such spelling.
    """
    nothing = np.int64(-1)
    if escaped:
        if code < 0 or place >= (ESCAPE_LENGTH if code < 0x10000 else 2 * ESCAPE_LENGTH):
            return nothing
        unit = code
        if code >= 0x10000:
            unit = 0xD800 + ((code - 0x10000) >> 10) if place < ESCAPE_LENGTH else 0xDC00 + (code & 0x3FF)
        digit = np.int64(unit >> (20 - 4 * (place % ESCAPE_LENGTH))) & 15
        if place % ESCAPE_LENGTH < 2:
            return np.int64(BACKSLASH) if place % ESCAPE_LENGTH == 0 else np.int64(LETTER_U)
        return 0x30 + digit if digit < 10 else 0x57 + digit
    length = np.int64(1) + (code >= 0x80) + (code >= 0x800) + (code >= 0x10000)
    if _must_escape(code) or place >= length:
        return nothing
    bits = np.int64(code >> (6 * (length - 1 - place)))
    if place > 0:
        return 0x80 | bits & 0x3F
    return bits if length == 1 else (0xF00 >> length) & 0xFF | bits


@kernel
def _is_spelled_alike(code, other, escaped, read):  # type: ignore[no-untyped-def]
    """Whether two characters have a spelling each that begins with the same `read` bytes."""
    for place in range(read):
        byte = _spelled_byte(code, escaped, place)
        if byte < 0 or byte != _spelled_byte(other, escaped, place):
            return False
    return True


@kernel
def _read_state(state, base, names):  # type: ignore[no-untyped-def]
    """(node, whether its character is being read as an escape, how many bytes of that are read; first and past: the
    nodes that may be read next) of a state.

    These are its children if no byte is read, else those of first to past whose spellings begin as the node's.
    """
    node, phase = (state - AT_ROOT) // PHASES, (state - AT_ROOT) % PHASES
    is_second = names[base + node, N_CHARACTER] < 0
    if phase == WHOLE and not is_second:
        return node, False, phase, np.int64(names[base + node, N_FIRST]), np.int64(names[base + node, N_PAST])
    read = phase - ESCAPED + 1 if phase >= ESCAPED else phase
    if is_second:
        node, read = node - 1, read + ESCAPE_LENGTH
    past = np.int64(names[base + names[base + node, N_PARENT], N_PAST])
    return node, is_second or phase >= ESCAPED, read, node, past


@kernel
def _has_name(node, base, at, machine):  # type: ignore[no-untyped-def]
    """Whether a name of the window of the instruction with arguments `at` is below a node."""
    names, arguments = machine.names, machine.arguments
    low, high = arguments[at + NAMES_LOW], arguments[at + NAMES_HIGH]
    least, most = names[base + node, N_LEAST], names[base + node, N_MOST]
    if most < low or least > high:
        return False
    if low <= least or most <= high:
        return True
    first = machine.tables[arguments[at + NAMES_TABLE], T_ORDER]
    for k in range(names[base + node, N_LOW], names[base + node, N_HIGH]):
        if low <= machine.order[first + k] <= high:
            return True
    return False


@kernel
def step_trie(state, byte, at, machine):  # type: ignore[no-untyped-def]
    """(state after a byte, whether an allowed name is below it); (LEFT, 0); or (ENDED, the index of the name)."""
    names, table = machine.names, machine.arguments[at + NAMES_TABLE]
    base, needed = np.int64(machine.tables[table, T_NODES]), machine.tables[table, T_NEEDED] != 0
    if state == START:
        return (np.int64(AT_ROOT), np.int64(1)) if byte == QUOTE else (np.int64(LEFT), np.int64(0))
    node, escaped, read, first, past = _read_state(state, base, names)
    if read == 0 and byte == QUOTE:
        name = np.int64(names[base + node, N_NAME])
        return (np.int64(ENDED), name) if name >= 0 else (np.int64(LEFT), np.int64(0))
    code = np.int64(names[base + node, N_CHARACTER])
    escaped = escaped if read > 0 else byte == BACKSLASH
    if escaped and read % ESCAPE_LENGTH >= 2 and 0x41 <= byte <= 0x46:
        byte += 0x20
    chosen, live, reached = np.int64(-1), False, np.int64(0)
    for here in range(first, past):
        other = np.int64(names[base + here, N_CHARACTER])
        is_short = escaped and read == 1 and byte == _short_escape(other)
        if not is_short and _spelled_byte(other, escaped, read) != byte:
            continue
        if (escaped and needed and not _must_escape(other)) or not _is_spelled_alike(other, code, escaped, read):
            continue
        if chosen < 0:
            chosen = np.int64(here)
            reached = np.int64(0) if is_short or _spelled_byte(other, escaped, read + 1) < 0 else read + 1
        live = live or _has_name(here, base, at, machine)
    if chosen < 0:
        return np.int64(LEFT), np.int64(0)
    if escaped and reached >= ESCAPE_LENGTH:
        chosen, reached = chosen + 1, reached - ESCAPE_LENGTH
    phase = reached + ESCAPED - 1 if escaped and reached > 0 else reached
    return AT_ROOT + PHASES * chosen + phase, np.int64(live)


@kernel
def _add_byte(byte, reads):  # type: ignore[no-untyped-def]
    """Add a byte to a set of bytes, four words of 64 bits."""
    reads[byte >> 6] |= np.uint64(1) << np.uint64(byte & 63)


@kernel
def name_reads(state, at, reads, every, machine):  # type: ignore[no-untyped-def]
    """Change a set of bytes, which is what the string state reads: all that an allowed name goes on with is added, the
    closing quote of a name that is refused is taken out. `every`: that of refused names is added, too.
    """
    names, arguments = machine.names, machine.arguments
    table = arguments[at + NAMES_TABLE]
    base, needed = np.int64(machine.tables[table, T_NODES]), machine.tables[table, T_NEEDED] != 0
    if state == START:
        _add_byte(QUOTE, reads)
        return
    node, escaped, read, first, past = _read_state(state, base, names)
    name = names[base + node, N_NAME] if read == 0 else -1
    if name >= 0:
        _add_byte(QUOTE, reads)
        if not every and not arguments[at + NAMES_LOW] <= name <= arguments[at + NAMES_HIGH]:
            reads[0] &= ~(np.uint64(1) << np.uint64(QUOTE))
    code = np.int64(names[base + node, N_CHARACTER])
    for here in range(first, past):
        other = np.int64(names[base + here, N_CHARACTER])
        if other < 0 or not (every or _has_name(here, base, at, machine)):
            continue
        may_escape = not needed or _must_escape(other)
        if read == 0:
            if not _must_escape(other):
                _add_byte(_spelled_byte(other, False, read), reads)
            if may_escape:
                _add_byte(BACKSLASH, reads)
        elif (may_escape or not escaped) and _is_spelled_alike(other, code, escaped, read):
            byte = _spelled_byte(other, escaped, read)
            _add_byte(byte, reads)
            if escaped and read % ESCAPE_LENGTH >= 2 and byte >= 0x61:
                _add_byte(byte - 0x20, reads)
            if escaped and read == 1 and _short_escape(other) >= 0:
                _add_byte(_short_escape(other), reads)


@kernel
def name_string_state(state, at, machine, pool):  # type: ignore[no-untyped-def]
    """The state of the TERMINAL for other strings after the same bytes; DEAD, too, if there is no such TERMINAL."""
    other = machine.arguments[at + NAMES_OTHER]
    if other < 0:
        return np.int64(DEAD)
    target = np.int64(machine.code[other, FIRST])
    if state == START:
        return target
    base = np.int64(machine.tables[machine.arguments[at + NAMES_TABLE], T_NODES])
    node, escaped, read, _, _ = _read_state(state, base, machine.names)
    target += BODY
    for place in range(read):
        if target >= 0:
            byte = _spelled_byte(np.int64(machine.names[base + node, N_CHARACTER]), escaped, place)
            target = np.int64(pool.transitions[target * 256 + byte])
    return target


@kernel
def step_name(item, byte, count, machine, pool):  # type: ignore[no-untyped-def]
    """Append what an item (place, state, stack) of NAMES is after a byte to `found`. The new count, or -1: no room."""
    place, state, stack = item
    code, arguments = machine.code, machine.arguments
    at = np.int64(code[place, FIRST])
    following, what = step_trie(state, byte, at, machine)
    if following == ENDED:
        if not arguments[at + NAMES_LOW] <= what <= arguments[at + NAMES_HIGH]:
            return count
        place = np.int64(arguments[arguments[at + NAMES_TARGETS] + what - arguments[at + NAMES_LOW]])
        following = np.int64(0)
    elif following == LEFT:
        following = name_string_state(state, at, machine, pool)
        if following >= 0:
            following = np.int64(pool.transitions[following * 256 + byte])
        if following < 0:
            return count
        place = np.int64(arguments[at + NAMES_OTHER])
        if pool.flags[following] & ENDS:
            place, following = np.int64(code[place, SECOND]), np.int64(0)
    elif what == 0 and name_string_state(following, at, machine, pool) < 0:
        return count
    return add_found(place, following, stack, count, machine)
