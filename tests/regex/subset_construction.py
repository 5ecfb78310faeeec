"""The textbook road from a regular expression to a DFA: its position automaton, and the subset construction.

This is the baseline that the derivative automata of `tokdfa.regex` are compared with (`tests.regex.count_states`).
The *position automaton* of an expression (V. M. Glushkov, "The abstract theory of automata", 1961; R. McNaughton and
H. Yamada, 1960) has a state for each *position*, that is each occurrence of a byte set in the expression, and a start
state. A position's successors are the positions that can follow it.

An expression is a tree of nested tuples:

    ("empty",)                       the empty word
    ("nothing",)                     no word
    ("bytes", bool[256])             one byte of a set
    ("concat", [tree, ...])          one after another
    ("union", [tree, ...])           any of them
    ("repeat", tree, low, high)      low to high times; high None: without bound

Counted repeats are expanded into copies: ``x{2,4}`` is ``x x (x (x)?)?`` and ``x{2,}`` is ``x x+``.

Sets of positions are Python integers, bit i standing for position i: union is one machine operation for 60 positions or
so, and equal sets are equal dictionary keys. Bit 0 is the start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokdfa.automata.byte_classes import byte_classes
from tokdfa.automata.explore import STATE_LIMIT, explore
from tokdfa.errors import LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from tokdfa.automata.dfa import Dfa

    Tree = tuple[Any, ...]

#: How many positions an expanded expression may have. Sets are as long as there are positions, so memory grows with the
#: square: some 100 MB here.
POSITION_LIMIT = 5_000


def subset_construction(tree: Tree, limit: int = STATE_LIMIT) -> Dfa:
    """The automaton of the sets of positions that words lead to; the empty set is dead. Neither trimmed nor minimised.

    Up to 2**positions sets: LimitExceeded at set number `limit` + 1, and past `POSITION_LIMIT` positions. A set of k
    positions costs O(k) unions, and one more for each byte class.
    """
    positions = _Positions()
    whole = positions.part(tree)
    positions.follow[0] = whole.first
    accepting = whole.last | whole.nullable
    sets = np.array(positions.sets, dtype=np.bool_).reshape(-1, 256)
    byte_class, representatives = byte_classes(sets.astype(np.uint8))
    readers = [  # for each byte class, the positions that read it
        sum(1 << position for position in np.flatnonzero(column).tolist()) << 1 for column in sets[:, representatives].T
    ]

    def successors(state: int) -> list[int | None]:
        following = 0
        for position in _members(state):
            following |= positions.follow[position]
        return [following & read or None for read in readers]

    return explore(1, successors, lambda state: bool(state & accepting), byte_class, limit)


class _Part(NamedTuple):
    """What is known of a part: does it contain the empty word, which positions can be first, which last?"""

    nullable: bool
    first: int
    last: int


_EMPTY, _NOTHING = _Part(True, 0, 0), _Part(False, 0, 0)


class _Positions:
    """The positions of an expression: the byte set of each, from position 1 on, and which can follow it."""

    def __init__(self) -> None:
        self.sets: list[npt.NDArray[np.bool_]] = []
        self.follow: list[int] = [0]

    def part(self, tree: Tree) -> _Part:
        """The part that `tree` is; each call makes new positions."""
        match tree:
            case ("bytes", members):
                return self.one_byte(members)
            case ("concat", parts):
                whole = _EMPTY
                for part in parts:
                    whole = self.then(whole, self.part(part))
                return whole
            case ("union", parts):
                whole = _NOTHING
                for part in parts:
                    other = self.part(part)
                    whole = _Part(whole.nullable or other.nullable, whole.first | other.first, whole.last | other.last)
                return whole
            case ("repeat", body, low, high):
                return self.repeat(body, low, high)
        return _EMPTY if tree[0] == "empty" else _NOTHING

    def one_byte(self, members: npt.NDArray[np.bool_]) -> _Part:
        if len(self.sets) == POSITION_LIMIT:
            raise LimitExceeded(
                f"the expression has more than {POSITION_LIMIT} positions once its counted repeats are expanded; "
                "shorten the repeats",
                limit="positions",
                value=POSITION_LIMIT,
            )
        self.sets.append(members)
        self.follow.append(0)
        return _Part(False, 1 << len(self.sets), 1 << len(self.sets))

    def then(self, left: _Part, right: _Part) -> _Part:
        self.link(left.last, right.first)
        return _Part(
            left.nullable and right.nullable,
            left.first | right.first if left.nullable else left.first,
            left.last | right.last if right.nullable else right.last,
        )

    def repeat(self, body: Tree, low: int, high: int | None) -> _Part:
        whole = _EMPTY
        for _ in range(low if high is not None else low - 1):
            whole = self.then(whole, self.part(body))
        if high is None:
            loop = self.part(body)
            self.link(loop.last, loop.first)
            return self.then(whole, loop._replace(nullable=loop.nullable or low == 0))
        tail = _EMPTY
        for _ in range(high - low):
            tail = self.then(self.part(body), tail)._replace(nullable=True)
        return self.then(whole, tail)

    def link(self, before: int, after: int) -> None:
        """Let each position of the set `after` follow each of `before`."""
        for position in _members(before):
            self.follow[position] |= after


def _members(positions: int) -> Iterator[int]:
    """The members of a set of positions, ascending."""
    while positions:
        lowest = positions & -positions
        yield lowest.bit_length() - 1
        positions ^= lowest
