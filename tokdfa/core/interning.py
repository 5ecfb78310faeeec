"""The interning table: contents become numbers, equal contents the same one.

Words. A *content* is a sequence of int64 *words* of any length, none included; an *entry* is a content with its number.
Numbers are given in order from 0, and entries never go away. A *key* is a content of exactly one word; tables of keys
(``keys=True``) keep no places where contents begin. A *column* is an array with a value, or a row of values, for each
entry, which means something to the table's owner alone.

Layout (`TableArrays`). ``words``: all contents, one after another; ``begin``: entry n is
``words[begin[n] : begin[n + 1]]``, in tables of keys empty, as entry n is ``words[n]``; ``slots``: the number of an
entry or -1, an open-addressing hash table whose length is a power of two, at most half full; ``meta``: COUNT and what
was found lacking.

Kernels never write past an array. `has_room` is the only place that looks at rooms (for keys: `intern_key`): `intern`
and `append` ask it before they write anything, and answer NEEDS_ROOM if it says no. Then Python code calls
`InterningTable.grow`, and the kernel is called again, from its start or from where it stopped; what it has made is
found again. `grow` replaces all arrays of the table, its columns among them, or none: they cannot grow apart. Two
tables: `grow_together`.

A kernel that interns a content with a few fixed fields puts them in front of it, so the first word of a scratch array
is best left free for them. Indices are uint64 where it matters: numba asks of every signed index whether it counts from
the end, which takes a quarter of the time of a look-up.

Kernels that own two plain arrays of keys, and need no struct: `tokdfa.core.keys`.

Source: hash-consing (Ershov 1958; Filliâtre and Conchon 2006). Cost: 15 ns for a content of a word or two that is
known, 20 ns for a new one, 3 ns for each further word; growing is linear in what the table holds, and doubles it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.core.budget import hold
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_struct import Struct
from tokdfa.core.keys import fill_slots, find_slot, slot_count
from tokdfa.errors import LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: In place of a number: there is no such content; the table has to grow first.
ABSENT, NEEDS_ROOM = -1, -2
#: Indices into `meta`: entries so far; the entries and words for which there was no room.
COUNT, WANTED_ENTRIES, WANTED_WORDS = range(3)
META = 3

_FIELDS = {"slots": "int32", "begin": "int64", "words": "int64", "meta": "int64"}


class TableArrays(Struct, fields=tuple(_FIELDS), declared={name: (dtype, 1) for name, dtype in _FIELDS.items()}):
    """What kernels take: see the module."""


class Column(NamedTuple):
    """An array of this type with `width` values for each entry (0: one, in an array of one dimension).

    `fill`: what an entry has at first. `flat`: of one dimension though there are `width` values. `ends`: with a value
    more than there are entries, as entry n begins at the n-th and ends at the next one.
    """

    dtype: Any
    width: int = 0
    fill: int = 0
    flat: bool = False
    ends: bool = False

    def make(self, room: int) -> npt.NDArray[Any]:
        """The array for so many entries."""
        flat = room * max(self.width, 1) + self.ends
        return np.full((room, self.width) if self.width and not self.flat else flat, self.fill, dtype=self.dtype)

    def bytes_of(self, room: int) -> int:
        """The bytes of the array for so many entries."""
        return int((room * max(self.width, 1) + self.ends) * np.dtype(self.dtype).itemsize)


class Limit(NamedTuple):
    """How many entries there may be, the option that says so, and what to tell users past it."""

    most: int
    option: str = ""
    message: str = "a table is full"


#: Numbers of entries are int32 in `slots`.
UNLIMITED = Limit((1 << 31) - 1)


class InterningTable:
    """An interning table and the columns that grow with it. Not thread-safe.

    `keys`: contents are one word each. `entries`, `words`: room at first. `limit`: past it `grow` raises LimitExceeded.
    `struct` is what kernels take; it and the arrays are new after `grow`.
    """

    slots: npt.NDArray[np.int32]
    begin: npt.NDArray[np.int64]
    words: npt.NDArray[np.int64]
    struct: TableArrays
    #: By name, in the order in which they were given.
    columns: dict[str, npt.NDArray[Any]]
    #: Memory of the table and its columns in bytes.
    nbytes: int

    def __init__(
        self,
        columns: Mapping[str, Column] | None = None,
        *,
        keys: bool = False,
        entries: int = 64,
        words: int = 0,
        limit: Limit = UNLIMITED,
    ) -> None:
        self.keys, self.limit, self._kinds = keys, limit, dict(columns or {})
        self.meta: npt.NDArray[np.int64] = np.zeros(META, dtype=np.int64)
        self._take(*self._allocate(max(1, min(entries, limit.most)), words or 4 * entries))

    @property
    def count(self) -> int:
        """Entries made so far."""
        return int(self.meta[COUNT])

    def __len__(self) -> int:
        return int(self.meta[COUNT])

    @property
    def room(self) -> int:
        """Entries that there is room for."""
        return len(self.words) if self.keys else len(self.begin) - 1

    @property
    def words_used(self) -> int:
        """Words of all contents."""
        return self.count if self.keys else int(self.begin[self.count])

    def content(self, number: int) -> npt.NDArray[np.int64]:
        """The words of an entry, a view."""
        if self.keys:
            return self.words[number : number + 1]
        return self.words[self.begin[number] : self.begin[number + 1]]

    def find(self, *words: int) -> int:
        """The number of a content, or ABSENT. 2 us."""
        if self.keys:
            return int(find_key(words[0], self.struct))
        return int(find(np.array(words, dtype=np.int64), 0, len(words), self.struct))

    def intern(self, words: Sequence[int] | npt.NDArray[np.int64]) -> int:
        """The number of a content, new or known. 2 us. Raises LimitExceeded past the budget's memory."""
        content = np.asarray(words, dtype=np.int64)
        while True:
            if self.keys:
                number = int(intern_key(content[0], self.struct))
            else:
                number = int(intern(content, 0, len(content), self.struct))
            if number != NEEDS_ROOM:
                return number
            self.grow()

    def grow(self, entries: int = 0, words: int = 0) -> None:
        """Make room for so many more entries and words at least, and for what a kernel has asked for; double what would
        be more than half full then. Raises LimitExceeded past `limit` or the budget's memory, and leaves the table as
        it is.
        """
        room, of_words = self._rooms_for(entries, words)
        hold(self._bytes_of(room, of_words) - self.nbytes)
        self._move(room, of_words)

    def clear(self) -> None:
        """Forget all entries; rooms and columns stay as they are."""
        self.slots[:] = -1
        self.meta[:] = 0

    def _rooms_for(self, entries: int, words: int) -> tuple[int, int]:
        """The rooms for entries and words that `grow` makes."""
        entries, words = max(entries, int(self.meta[WANTED_ENTRIES])), max(words, int(self.meta[WANTED_WORDS]))
        if self.count + entries > self.limit.most:
            raise LimitExceeded(self.limit.message, limit=self.limit.option, value=self.limit.most)
        room = min(_doubled(self.room, 2 * (self.count + entries)), self.limit.most)
        return room, room if self.keys else _doubled(len(self.words), 2 * (self.words_used + words))

    def _move(self, room: int, of_words: int) -> None:
        """Copy everything to arrays with these rooms, unless they are the present ones."""
        if (room, of_words) != (self.room, len(self.words)):
            made = self._allocate(room, of_words)
            slots, begin, contents, columns = made
            begin[: len(self.begin)] = self.begin
            contents[: len(self.words)] = self.words
            for name, column in columns.items():
                column[: len(self.columns[name])] = self.columns[name]
            self._take(*made)
            if self.keys:
                fill_slots(self.words, self.count, slots)
            else:
                _fill_slots_kernel(self.struct)
        self.meta[WANTED_ENTRIES] = self.meta[WANTED_WORDS] = 0

    def _bytes_of(self, room: int, words: int) -> int:
        columns = sum(kind.bytes_of(room) for kind in self._kinds.values())
        return 4 * slot_count(room) + 8 * (0 if self.keys else room + 1) + 8 * words + columns

    def _allocate(
        self, room: int, words: int
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64], dict[str, npt.NDArray[Any]]]:
        return (
            np.full(slot_count(room), -1, dtype=np.int32),
            np.zeros(0 if self.keys else room + 1, dtype=np.int64),
            np.zeros(room if self.keys else words, dtype=np.int64),
            {name: kind.make(room) for name, kind in self._kinds.items()},
        )

    def _take(
        self,
        slots: npt.NDArray[np.int32],
        begin: npt.NDArray[np.int64],
        words: npt.NDArray[np.int64],
        columns: dict[str, npt.NDArray[Any]],
    ) -> None:
        struct = TableArrays(slots, begin, words, self.meta)
        self.slots, self.begin, self.words, self.columns, self.struct = slots, begin, words, columns, struct
        self.nbytes = self._bytes_of(self.room, len(words))


def grow_together(*tables: InterningTable) -> None:
    """`InterningTable.grow` for each table; if the budget or a limit refuses one, all stay as they are."""
    rooms = [table._rooms_for(0, 0) for table in tables]
    hold(sum(table._bytes_of(*room) - table.nbytes for table, room in zip(tables, rooms, strict=True)))
    for table, room in zip(tables, rooms, strict=True):
        table._move(*room)


def _doubled(room: int, least: int) -> int:
    """`room`, doubled until it is at least `least`."""
    while room < least:
        room *= 2
    return room


# Contents of any length.


@kernel
def hash_words(words, begin, end):  # type: ignore[no-untyped-def]
    """A hash of words[begin:end], integers of any width; uint64, whose low bits serve."""
    value = np.uint64(0x9E3779B97F4A7C15)
    for k in range(np.uint64(begin), np.uint64(end)):
        value = (value ^ np.uint64(words[k])) * np.uint64(0xFF51AFD7ED558CCD)
        value ^= value >> np.uint64(32)
    return value


@kernel
def _find_place(content, begin, end, table):  # type: ignore[no-untyped-def]
    """(the number of content[begin:end] or ABSENT; the slot where it is or belongs)."""
    slots, begins, words = table.slots, table.begin, table.words
    one, first, size = np.uint64(1), np.uint64(begin), np.uint64(end) - np.uint64(begin)
    mask = np.uint64(len(slots)) - one
    slot = hash_words(content, begin, end) & mask
    while slots[slot] >= 0:
        number = np.uint64(slots[slot])
        here = np.uint64(begins[number])
        if np.uint64(begins[number + one]) - here == size:
            k = np.uint64(0)
            while k < size and words[here + k] == content[first + k]:
                k += one
            if k == size:
                return np.int64(number), slot
        slot = (slot + one) & mask
    return np.int64(ABSENT), slot


@kernel
def find(content, begin, end, table):  # type: ignore[no-untyped-def]
    """The number of content[begin:end], or ABSENT; of equal entries (`append`) the first."""
    return _find_place(content, begin, end, table)[0]


@kernel
def has_room(entries, words, table):  # type: ignore[no-untyped-def]
    """Whether there is room for so many more entries with so many words in all; if not, `grow` will make it."""
    count, meta = table.meta[COUNT], table.meta
    if count + entries < len(table.begin) and table.begin[count] + words <= len(table.words):
        return True
    wanted_entries, wanted_words = meta[WANTED_ENTRIES], meta[WANTED_WORDS]
    meta[WANTED_ENTRIES] = entries if entries > wanted_entries else wanted_entries
    meta[WANTED_WORDS] = words if words > wanted_words else wanted_words
    return False


@kernel
def _add_entry(content, begin, end, slot, table):  # type: ignore[no-untyped-def]
    """The number of a new entry, whose slot is free; there is room."""
    number = np.uint64(table.meta[COUNT])
    place = np.uint64(table.begin[number])
    for k in range(np.uint64(begin), np.uint64(end)):
        table.words[place] = content[k]
        place += np.uint64(1)
    table.begin[number + np.uint64(1)] = place
    table.slots[slot] = number
    table.meta[COUNT] = number + np.uint64(1)
    return np.int64(number)


@kernel
def intern(content, begin, end, table):  # type: ignore[no-untyped-def]
    """The number of content[begin:end], new or known; or NEEDS_ROOM, with nothing changed."""
    number, slot = _find_place(content, begin, end, table)
    if number >= 0:
        return number
    if not has_room(1, end - begin, table):
        return np.int64(NEEDS_ROOM)
    return _add_entry(content, begin, end, slot, table)


@kernel
def append(content, begin, end, table):  # type: ignore[no-untyped-def]
    """The number of a new entry content[begin:end], even if there is an equal one; or NEEDS_ROOM."""
    if not has_room(1, end - begin, table):
        return np.int64(NEEDS_ROOM)
    mask = np.uint64(len(table.slots) - 1)
    slot = hash_words(content, begin, end) & mask
    while table.slots[slot] >= 0:
        slot = (slot + np.uint64(1)) & mask
    return _add_entry(content, begin, end, slot, table)


@kernel
def _fill_slots_kernel(table):  # type: ignore[no-untyped-def]
    """Enter all entries into empty slots, in order: of equal ones, the first is met first."""
    slots, one = table.slots, np.uint64(1)
    mask = np.uint64(len(slots)) - one
    for number in range(np.uint64(table.meta[COUNT])):
        slot = hash_words(table.words, table.begin[number], table.begin[number + one]) & mask
        while slots[slot] >= 0:
            slot = (slot + one) & mask
        slots[slot] = number


# Contents of one word.


@kernel
def find_key(key, table):  # type: ignore[no-untyped-def]
    """The number of a key, or ABSENT."""
    return np.int64(table.slots[find_slot(key, table.words, table.slots)])


@kernel
def intern_key(key, table):  # type: ignore[no-untyped-def]
    """The number of a key, new or known; or NEEDS_ROOM, with nothing changed."""
    slot = find_slot(key, table.words, table.slots)
    number = np.int64(table.slots[slot])
    if number >= 0:
        return number
    count = table.meta[COUNT]
    if count >= len(table.words):
        table.meta[WANTED_ENTRIES] = 1
        return np.int64(NEEDS_ROOM)
    table.words[count] = key
    table.slots[slot] = count
    table.meta[COUNT] = count + 1
    return count


def _warm_up() -> None:
    """Run every kernel of this page that Python calls once, and those of `tokdfa.core.key_map`."""
    from tokdfa.core.key_map import longer_map, new_map

    for keys in (False, True):
        table = InterningTable(keys=keys, entries=1)
        for number in range(3):
            table.intern([number])
        table.find(1)
    longer_map(*new_map(1, -1), -1)
