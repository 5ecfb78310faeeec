"""Sets of code points as expressions over bytes: their UTF-8 encodings.

UTF-8 writes a code point as a lead byte and 0 to 3 continuation bytes (80..BF), each of which holds six bits. Cut off
the lead byte: what may follow it is again a set of numbers, of 6, 12 or 18 bits, and so on down. Lead bytes with the
same set of followers become one byte set. Since expressions are interned, equal sets of followers are one expression,
wherever they occur: the result is the minimal deterministic acyclic automaton of the set, prefixes and suffixes shared.

Only the shortest encoding of each code point occurs and no surrogate (D800..DFFF) does, as the standard demands
(Unicode, section 3.9, table 3-7): the full set has exactly the lead bytes 00..7F, C2..DF, E0..EF and F0..F4.

The automaton is worked out once a set and kept (`utf8_plan`); a store then builds it in one compiled call, so that
the Unicode word class with its 770 ranges costs a fraction of a millisecond in every pattern but the first.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.regex.char_sets import Ranges, difference, intersection
from tokdfa.regex.expression import NOTHING

if TYPE_CHECKING:
    from tokdfa.regex.expression import ExpressionStore

SURROGATES: Ranges = ((0xD800, 0xDFFF),)
#: By number of continuation bytes: first and last code point, and the bits that mark the lead byte.
_LENGTHS = ((0x0, 0x7F, 0x00), (0x80, 0x7FF, 0xC0), (0x800, 0xFFFF, 0xE0), (0x10000, 0x10FFFF, 0xF0))
_CONTINUATION = 0x80
#: The end of an encoding, in place of a node.
_END = -1


class Utf8Plan(NamedTuple):
    """A deterministic acyclic automaton; the last node is the root.

    The edges of node n are those from ``offsets[n]`` to ``offsets[n + 1]``.
    ``offsets``: int32, shape (nodes + 1,); ``bits``: int32, shape (edges, 8), the 256 bits of each edge's byte set;
    ``targets``: int32, shape (edges,), an earlier node, or -1 for the end of the encoding.
    """

    offsets: npt.NDArray[np.int32]
    bits: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]


def utf8_expression(code_points: Ranges, store: ExpressionStore) -> int:
    """The expression for the UTF-8 encodings of `code_points`; surrogates are left out. O(nodes and edges)."""
    plan = utf8_plan(code_points)
    return store.acyclic(*plan) if len(plan.targets) else NOTHING


@lru_cache(maxsize=512)
def utf8_plan(code_points: Ranges) -> Utf8Plan:
    """The minimal acyclic automaton of the encodings of `code_points`. O(ranges), in Python; kept for the next time."""
    builder = _PlanBuilder()
    valid = difference(code_points, SURROGATES)
    edges: list[tuple[int, int]] = []
    for tail, (first, last, mark) in enumerate(_LENGTHS):
        edges += builder.edges(intersection(valid, ((first, last),)), tail, mark)
    builder.node(edges)
    return builder.plan()


class _PlanBuilder:
    """Collects nodes, equal ones once. An edge is (byte, target) until its node is made."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[tuple[int, tuple[int, ...]], ...], int] = {}

    def node(self, edges: list[tuple[int, int]]) -> int:
        """The node with these edges, bytes with one target as one set."""
        by_target: dict[int, list[int]] = {}
        for byte, target in edges:
            by_target.setdefault(target, []).append(byte)
        key = tuple((target, tuple(sorted(group))) for target, group in sorted(by_target.items()))
        return self._nodes.setdefault(key, len(self._nodes))

    def edges(self, numbers: Ranges, tail: int, mark: int) -> list[tuple[int, int]]:
        """`numbers` as one byte, marked `mark`, with the leading bits, and then `tail` continuation bytes."""
        block = 64**tail
        followers: dict[int, list[tuple[int, int]]] = {}  # leading bits -> the numbers that may follow
        found: list[tuple[int, int]] = []
        for first, last in numbers:
            for lead in range(first // block, last // block + 1):
                start, end = max(first - lead * block, 0), min(last - lead * block, block - 1)
                if (start, end) == (0, block - 1):
                    found.append((mark | lead, self._whole(tail)))
                else:
                    followers.setdefault(lead, []).append((start, end))
        for lead, rest in followers.items():
            found.append((mark | lead, self.node(self.edges(tuple(rest), tail - 1, _CONTINUATION))))
        return found

    def _whole(self, tail: int) -> int:
        """The node of any `tail` continuation bytes."""
        if tail == 0:
            return _END
        following = self._whole(tail - 1)
        return self.node([(byte, following) for byte in range(_CONTINUATION, 0xC0)])

    def plan(self) -> Utf8Plan:
        """All nodes, in the order in which they were made."""
        offsets, flags, targets = [0], [], []
        for key in self._nodes:
            for target, group in key:
                members = np.zeros(256, dtype=np.bool_)
                members[list(group)] = True
                flags.append(members)
                targets.append(target)
            offsets.append(len(targets))
        packed = np.packbits(np.array(flags, dtype=np.bool_).reshape(-1, 256), axis=1, bitorder="little")
        bits = np.ascontiguousarray(packed).view("<i4").astype(np.int32)
        return Utf8Plan(np.array(offsets, dtype=np.int32), bits, np.array(targets, dtype=np.int32))
