"""Sets of code points as expressions over bytes: their UTF-8 encodings.

UTF-8 writes a code point as a lead byte and 0 to 3 continuation bytes (80..BF), each of which holds six bits. Cut off
the lead byte: what may follow it is again a set of numbers, of 6, 12 or 18 bits, and so on down. Lead bytes with the
same set of followers become one byte set. Since expressions are interned, equal sets of followers are one expression,
wherever they occur: the result is the minimal deterministic acyclic automaton of the set, prefixes and suffixes shared.

Only the shortest encoding of each code point occurs and no surrogate (D800..DFFF) does, as the standard demands
(Unicode, section 3.9, table 3-7): the full set has exactly the lead bytes 00..7F, C2..DF, E0..EF and F0..F4.

The automaton is written down once a set and kept (`utf8_program`), so that the Unicode word class with its 770 ranges
costs a tenth of a millisecond in every pattern but the first.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from tokdfa.core.budget import spend
from tokdfa.regex.char_sets import SURROGATES, Ranges, difference, intersection
from tokdfa.regex.expression import EMPTY
from tokdfa.regex.program import Program, known

if TYPE_CHECKING:
    from collections.abc import Iterable

#: By number of continuation bytes: first and last code point, and the bits that mark the lead byte.
LENGTHS = ((0x0, 0x7F, 0x00), (0x80, 0x7FF, 0xC0), (0x800, 0xFFFF, 0xE0), (0x10000, 0x10FFFF, 0xF0))
CONTINUATION = 0x80
#: Sets of so many ranges are written in two parts.
LARGE, LAST_ASCII = 64, 0x7F
#: The end of an encoding, in place of a node.
END = known(EMPTY)
#: First and last of a range of numbers, and the node behind them.
Span: TypeAlias = tuple[int, int, int]

#: What an edge of the automaton of a set takes.
NS_PER_EDGE = 1_000


@lru_cache(maxsize=512)
def utf8_program(code_points: Ranges) -> Program:
    """What writes the minimal acyclic automaton of the encodings of `code_points`; nothing if there are none.

    O(ranges), in Python; kept for the next time, so it is to be included and not to be run. Of large sets that differ
    in ASCII only the rest is written once.
    """
    if parts := split_large(code_points):
        program = Program()
        program.union([program.embed(utf8_program(part)) for part in parts])
        return program
    builder = AutomatonBuilder()
    edges = builder.first_edges(difference(code_points, SURROGATES))
    if edges:
        builder.node(edges)
    return builder.program


def split_large(code_points: Ranges) -> tuple[Ranges, Ranges] | None:
    """The part of a set of many ranges that is ASCII, and the rest; None if it has few, or is not of both."""
    if len(code_points) < LARGE or not code_points[0][0] <= LAST_ASCII < code_points[-1][1]:
        return None
    return intersection(code_points, ((0, LAST_ASCII),)), intersection(code_points, ((LAST_ASCII + 1, 0x10FFFF),))


def by_lead(spans: Iterable[Span], block: int) -> tuple[list[Span], dict[int, list[Span]]]:
    """Sorted spans of numbers by what comes before the last digits, which make `block` numbers: spans of such leads
    behind which any digits may follow; and the other leads, each with spans of the digits that may. O(spans).
    """
    whole: list[Span] = []
    followers: dict[int, list[Span]] = {}
    for first, last, target in spans:
        (lead, start), (last_lead, end) = divmod(first, block), divmod(last, block)
        if start and lead < last_lead:
            followers.setdefault(lead, []).append((start, block - 1, target))
            lead, start = lead + 1, 0
        if start or end < block - 1:
            followers.setdefault(last_lead, []).append((start if lead == last_lead else 0, end, target))
            last_lead -= 1
        if lead <= last_lead:
            whole.append((lead, last_lead, target))
    return whole, followers


def bits_of(first: int, last: int) -> int:
    """The bytes from `first` to `last` as bits."""
    return (2 << last) - (1 << first)


class AutomatonBuilder:
    """Writes nodes, equal ones once. A node is a value of `program`; an edge is (bytes as bits, node) until its node is
    made.
    """

    def __init__(self) -> None:
        self.program = Program()
        self._nodes: dict[tuple[tuple[int, int], ...], int] = {}
        self._byte_sets: dict[int, int] = {}
        self._wholes = [END]

    def node(self, edges: list[tuple[int, int]]) -> int:
        """The node with these edges, bytes with one target as one set."""
        by_target: dict[int, int] = {}
        for members, target in edges:
            by_target[target] = by_target.get(target, 0) | members
        key = tuple(sorted(by_target.items()))
        if key not in self._nodes:
            heads_and_tails = [(self.byte_set(members), target) for target, members in key]
            self._nodes[key] = self.program.choice(heads_and_tails)
        return self._nodes[key]

    def byte_set(self, members: int) -> int:
        if members not in self._byte_sets:
            self._byte_sets[members] = self.program.byte_bits(members)
        return self._byte_sets[members]

    def first_edges(self, code_points: Ranges) -> list[tuple[int, int]]:
        """The encodings of `code_points`, which are no surrogates, by their lead bytes."""
        found: list[tuple[int, int]] = []
        for tail, (first, last, mark) in enumerate(LENGTHS):
            numbers = intersection(code_points, ((first, last),))
            found += self.edges([(low, high, END) for low, high in numbers], tail, mark)
        return found

    def edges(self, numbers: list[Span], tail: int, mark: int) -> list[tuple[int, int]]:
        """`numbers` as one byte, marked `mark`, with the leading bits, and then `tail` continuation bytes."""
        spend(NS_PER_EDGE * (4 + 2 * len(numbers)))
        whole, followers = by_lead(numbers, 64**tail)
        found = [(bits_of(mark | first, mark | last), self._whole(tail)) for first, last, _ in whole]
        for lead, rest in followers.items():
            found.append((1 << (mark | lead), self.node(self.edges(rest, tail - 1, CONTINUATION))))
        return found

    def _whole(self, tail: int) -> int:
        """The node of any `tail` continuation bytes."""
        while len(self._wholes) <= tail:
            self._wholes.append(self.node([(bits_of(CONTINUATION, 0xBF), self._wholes[-1])]))
        return self._wholes[tail]
