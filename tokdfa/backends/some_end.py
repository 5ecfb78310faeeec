"""Some way from a situation to an end of the text, not always the shortest: it bounds the least number of tokens from
above (`tokdfa.backends.shortest_ends`).

A search over situations, byte by byte, takes the one of the least *rank* first (greedy best-first search, Russell and
Norvig, "Artificial Intelligence", section 3.5). A rank is the strategy's guess at what must still be read: the grammar
engines count what their stacks or rows hold, in instructions or lexemes. Such ranks fall along a way to an end, so a
search goes straight through the members that an object requires, and what is read inside one lexeme is met breadth
first. A search ends where an earlier one has passed. Ranks decide how long it takes, never what is true.

Cost: some 30 us a situation, and as many situations as the end has bytes if nothing leads astray.
"""

from __future__ import annotations

from collections import defaultdict
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.core.budget import spend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tokdfa.backends.situation_source import SituationSource

#: No way is known.
FAR = 1 << 30
#: Situations of one search at most.
MOST_SITUATIONS = 5_000
#: What a situation takes, a new one that a byte leads to, and a byte of a way.
NS_PER_SITUATION, NS_PER_TARGET, NS_PER_BYTE = 30_000, 10_000, 500
#: What the rank of a stack takes, and each way out of it.
NS_PER_STACK, NS_PER_WAY = 2_000, 300


class SomeEnd:
    """See the module's docstring. Not thread-safe."""

    def __init__(self, source: SituationSource) -> None:
        self._source = source
        #: Situation -> the byte that leads nearer to an end, and the situation after it.
        self._ways: dict[int, tuple[int, int]] = {}

    def way(self, situation: int) -> tuple[bytes, list[int]] | None:
        """Bytes that lead to an end, and the situations before each of them and after the last; None if none are found.

        Any tokens that spell the bytes lead there.
        """
        if not self._find(situation):
            return None
        text, situations = bytearray(), [situation]
        while situations[-1] in self._ways:
            spend(NS_PER_BYTE)
            byte, after = self._ways[situations[-1]]
            text.append(byte)
            situations.append(after)
        return bytes(text), situations

    def _find(self, start: int) -> bool:
        """Search for an end, and note the way to it."""
        source = self._source
        came_from: dict[int, tuple[int, int]] = {start: (-1, 0)}
        agenda = [(0, 0, start)]
        while agenda and len(came_from) <= MOST_SITUATIONS:
            here = heappop(agenda)[2]
            spend(NS_PER_SITUATION)
            if self._is_settled(here):
                while here != start:
                    before, byte = came_from[here]
                    self._ways[before] = byte, here
                    here = before
                return True
            following = source.following(here)
            if following is None:
                return False
            for byte in np.flatnonzero(following >= 0).tolist():
                target = int(following[byte])
                if target not in came_from:
                    spend(NS_PER_TARGET)
                    came_from[target] = here, byte
                    rank = 0 if self._is_settled(target) else source.rank(target)
                    heappush(agenda, (rank, len(came_from), target))
        return False

    def _is_settled(self, situation: int) -> bool:
        return situation in self._ways or self._source.can_end(situation)


def settle_ranks(asked: Iterable[int], ranks: dict[int, int], ways: Callable[[int], Iterable[tuple[int, int]]]) -> None:
    """Know the ranks of stacks: FAR, if no way out of one comes to an end. Stacks may return to each other.

    `ways`: stack -> what each way out of its top takes, and the stack below.
    """
    found: dict[int, list[tuple[int, int]]] = {}
    users: defaultdict[int, list[int]] = defaultdict(list)
    waiting = [stack for stack in asked if stack not in ranks]
    while waiting:
        stack = waiting.pop()
        if stack not in found:
            found[stack] = list(ways(stack))
            spend(NS_PER_STACK + NS_PER_WAY * len(found[stack]))
            for _, below in found[stack]:
                users[below].append(stack)
                if below not in ranks:
                    waiting.append(below)
    ranks.update(dict.fromkeys(found, FAR))  # not before: an error leaves nothing half known
    agenda = list(found)  # the innermost last
    while agenda:
        stack = agenda.pop()
        rank = min((taken + ranks[below] for taken, below in found[stack]), default=FAR)
        if rank < ranks[stack]:
            ranks[stack] = rank
            agenda += users[stack]
