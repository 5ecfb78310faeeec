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

from tokdfa.core.budget import spend
from tokdfa.regex.char_sets import SURROGATES, Ranges, difference, intersection
from tokdfa.regex.nodes import EMPTY
from tokdfa.regex.program import Program, known

#: By number of continuation bytes: first and last code point, and the bits that mark the lead byte.
LENGTHS = ((0x0, 0x7F, 0x00), (0x80, 0x7FF, 0xC0), (0x800, 0xFFFF, 0xE0), (0x10000, 0x10FFFF, 0xF0))
CONTINUATION = 0x80
#: Sets of so many ranges are written in two parts.
LARGE, LAST_ASCII = 64, 0x7F
#: The end of an encoding, in place of a node.
END = known(EMPTY)

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
        program.union([program.include(utf8_program(part)) for part in parts])
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


def by_lead(numbers: Ranges, tail: int) -> tuple[list[int], dict[int, list[tuple[int, int]]]]:
    """The leading bits of `numbers`, which `tail` continuation bytes follow: those behind which any may follow; and the
    others, each with the numbers that may. O(ranges and leads).
    """
    block = 64**tail
    whole: list[int] = []
    followers: dict[int, list[tuple[int, int]]] = {}
    for first, last in numbers:
        for lead in range(first // block, last // block + 1):
            start, end = max(first - lead * block, 0), min(last - lead * block, block - 1)
            if (start, end) == (0, block - 1):
                whole.append(lead)
            else:
                followers.setdefault(lead, []).append((start, end))
    return whole, followers


class AutomatonBuilder:
    """Writes nodes, equal ones once. A node is a value of `program`; an edge is (byte, node) until its node is made."""

    def __init__(self) -> None:
        self.program = Program()
        self._nodes: dict[tuple[tuple[int, tuple[int, ...]], ...], int] = {}
        self._byte_sets: dict[tuple[int, ...], int] = {}
        self._wholes = [END]

    def node(self, edges: list[tuple[int, int]]) -> int:
        """The node with these edges, bytes with one target as one set."""
        by_target: dict[int, list[int]] = {}
        for byte, target in edges:
            by_target.setdefault(target, []).append(byte)
        key = tuple((target, tuple(sorted(group))) for target, group in sorted(by_target.items()))
        if key not in self._nodes:
            heads_and_tails = [(self.byte_set(group), target) for target, group in key]
            self._nodes[key] = self.program.choice(heads_and_tails)
        return self._nodes[key]

    def byte_set(self, members: tuple[int, ...]) -> int:
        if members not in self._byte_sets:
            self._byte_sets[members] = self.program.byte_set(members)
        return self._byte_sets[members]

    def first_edges(self, code_points: Ranges) -> list[tuple[int, int]]:
        """The encodings of `code_points`, which are no surrogates, by their lead bytes."""
        found: list[tuple[int, int]] = []
        for tail, (first, last, mark) in enumerate(LENGTHS):
            found += self.edges(intersection(code_points, ((first, last),)), tail, mark)
        return found

    def edges(self, numbers: Ranges, tail: int, mark: int) -> list[tuple[int, int]]:
        """`numbers` as one byte, marked `mark`, with the leading bits, and then `tail` continuation bytes."""
        block = 64**tail
        spend(NS_PER_EDGE * (4 + sum(last // block - first // block + 1 for first, last in numbers)))
        whole, followers = by_lead(numbers, tail)
        found = [(mark | lead, self._whole(tail)) for lead in whole]
        for lead, rest in followers.items():
            found.append((mark | lead, self.node(self.edges(tuple(rest), tail - 1, CONTINUATION))))
        return found

    def _whole(self, tail: int) -> int:
        """The node of any `tail` continuation bytes."""
        while len(self._wholes) <= tail:
            following = self._wholes[-1]
            self._wholes.append(self.node([(byte, following) for byte in range(CONTINUATION, 0xC0)]))
        return self._wholes[tail]
