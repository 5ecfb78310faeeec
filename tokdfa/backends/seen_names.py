"""The names that an object has had, and a name that is read beside them, byte by byte.

Names are equal if their decoded texts are: ``"\\u0061"`` is ``"a"``, and a surrogate pair is its character. So a name
is followed by the UTF-8 bytes of its characters, however these are spelled, in a radix tree of the names that were
(Morrison's PATRICIA, 1968). `Names` never change: a tree shares with the one before it all but the way to the new name,
so that each state of a long object holds its own.

Cost: about 1 us a byte, 5 us a name; memory some 500 bytes a name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

QUOTE, BACKSLASH = 0x22, 0x5C
#: What a backslash and one more byte spell.
SHORT = {0x22: '"', 0x5C: "\\", 0x2F: "/", 0x62: "\b", 0x66: "\f", 0x6E: "\n", 0x72: "\r", 0x74: "\t"}
SECOND, HEX = frozenset([*SHORT, 0x75]), frozenset(b"0123456789abcdefABCDEF")
#: Bytes of an escape of four digits, after which half of a surrogate pair waits for the other.
ESCAPE = 6
NO_BYTES: frozenset[int] = frozenset()


class Node(NamedTuple):
    """Whether a name ends here, and by its first byte each way on: its bytes, and the node behind them."""

    ends: bool
    ways: dict[int, tuple[bytes, Node]]


LEAF = Node(True, {})


class Place:
    """A place in a tree: on the way to a node, so many of its bytes behind. All are equal: where a name stands follows
    from its text and the names that were, by which states are told apart.
    """

    __slots__ = ("count", "node", "way")

    def __init__(self, way: bytes, node: Node, count: int) -> None:
        self.way, self.node, self.count = way, node, count

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place)

    def step(self, byte: int) -> Place | None:
        """The place after a byte of UTF-8; None if no name goes on so."""
        if self.count < len(self.way):
            return Place(self.way, self.node, self.count + 1) if self.way[self.count] == byte else None
        found = self.node.ways.get(byte)
        return None if found is None else Place(*found, 1)

    def run(self, text: str) -> Place | None:
        """The place after some characters."""
        here: Place | None = self
        for byte in text.encode(errors="surrogatepass"):
            here = here and here.step(byte)
        return here

    @property
    def ends(self) -> bool:
        """Whether a name that was ends here."""
        return self.count == len(self.way) and self.node.ends

    @property
    def following(self) -> frozenset[int]:
        """The bytes of UTF-8 with which names go on."""
        return frozenset(self.way[self.count : self.count + 1] or self.node.ways)


class Names:
    """A set of names, each as UTF-8 (with surrogates that stand alone). Immutable; `add` makes another one."""

    __slots__ = ("_before", "_hash", "_name", "root", "size")

    def __init__(self, before: Names | None = None, name: bytes = b"", root: Node | None = None) -> None:
        self._before, self._name = before, name
        self.root = root or Node(False, {})
        self.size: int = 0 if before is None else before.size + 1
        self._hash: int = 0 if before is None else before._hash ^ hash(name)

    def __iter__(self) -> Iterator[bytes]:
        here: Names | None = self
        while here is not None and here._before is not None:
            yield here._name
            here = here._before

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Names):
            return self is other
        return self._hash == other._hash and self.size == other.size and set(self) == set(other)

    @property
    def start(self) -> Place:
        """The place before a name."""
        return Place(b"", self.root, 0)

    def add(self, name: str) -> Names:
        """With one more name, which is none of these. O(its bytes + ways that branch off)."""
        text = name.encode(errors="surrogatepass")
        return Names(self, text, _insert(self.root, text))


def _insert(root: Node, text: bytes) -> Node:
    """A tree with one more text."""
    above: list[tuple[Node, bytes]] = []
    node, left = root, text
    while left and left[0] in node.ways:
        way, below = node.ways[left[0]]
        shared = next((k for k, pair in enumerate(zip(way, left, strict=False)) if pair[0] != pair[1]), None)
        shared = min(len(way), len(left)) if shared is None else shared
        if shared < len(way):  # the way parts within
            below = Node(False, {way[shared]: (way[shared:], below)})
        above.append((node, way[:shared]))
        node, left = below, left[shared:]
    made = Node(node.ends, {**node.ways, left[0]: (left, LEAF)}) if left else Node(True, node.ways)
    for parent, way in reversed(above):
        made = Node(parent.ends, {**parent.ways, way[0]: (way, made)})
    return made


class Name(NamedTuple):
    """A name that is being read: its place among those that were, None if it can be none of them, and the bytes of an
    escape that has not ended, or of the first half of a surrogate pair.
    """

    place: Place | None
    escape: bytes = b""

    @property
    def is_open(self) -> bool:
        """Whether an escape has not ended, so that a quote or a backslash belongs to it."""
        return bool(self.escape) and len(self.escape) != ESCAPE

    def step(self, byte: int) -> Name:
        """The name after a byte that does not end it."""
        place, escape = self
        if place is None:  # only where it ends matters
            return Name(None, b"" if escape else b"\\" if byte == BACKSLASH else b"")
        if not escape:
            return Name(place, b"\\") if byte == BACKSLASH else Name(place.step(byte))
        if len(escape) == ESCAPE and byte != BACKSLASH:
            return _unescaped(place, escape).step(byte)
        escape += bytes([byte])
        if len(escape) == ESCAPE + 2 and byte != 0x75:
            return _unescaped(_unescaped(place, escape[:ESCAPE]).place, escape[ESCAPE:])
        if len(escape) == 2 and byte in SHORT:
            return _unescaped(place, escape)
        if len(escape) == ESCAPE:
            return Name(place, escape) if _is_first_half(escape) else _unescaped(place, escape)
        if len(escape) < 2 * ESCAPE:
            return Name(place, escape)
        first, second = escape[:ESCAPE], escape[ESCAPE:]
        if _is_second_half(second):
            return Name(place.run((_unit(first) + _unit(second)).encode("utf-16", "surrogatepass").decode("utf-16")))
        behind = _unescaped(place, first).place
        return Name(behind, second) if behind and _is_first_half(second) else _unescaped(behind, second)

    @property
    def ends(self) -> bool:
        """Whether it is a name that was, if it ends here."""
        place = self.place if not self.escape or self.place is None else _unescaped(self.place, self.escape).place
        return place is not None and place.ends

    @property
    def watched(self) -> frozenset[int]:
        """The bytes after which it may still be a name that was, and the quote if it is one."""
        place, escape = self
        if place is None:
            return NO_BYTES
        if self.is_open:
            return SECOND if len(escape) % ESCAPE == 1 else HEX
        behind = _unescaped(place, escape).place if escape else place
        found = (behind.following if behind is not None else NO_BYTES) | {BACKSLASH}
        return found | {QUOTE} if self.ends else found


def _unescaped(place: Place | None, escape: bytes) -> Name:
    """The name after an escape that has ended."""
    return Name(place and place.run(_unit(escape)))


def _unit(escape: bytes) -> str:
    return SHORT[escape[1]] if len(escape) == 2 else chr(int(escape[2:], 16))


def _is_first_half(escape: bytes) -> bool:
    return 0xD800 <= int(escape[2:], 16) < 0xDC00


def _is_second_half(escape: bytes) -> bool:
    return 0xDC00 <= int(escape[2:], 16) < 0xE000
