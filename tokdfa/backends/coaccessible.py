"""Which states can still reach an end, where that is not seen at once.

If every byte that a constraint reads is a token by itself, whatever can be completed can be completed with tokens. If
not, a token may lead to where no token goes on; whether it does is found out by a search for an end.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Generic, TypeVar

from tokdfa.core.budget import hold, spend
from tokdfa.errors import LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

#: What a state of a search takes, without finding its successors, and what it holds.
NS_PER_STATE, BYTES_PER_STATE = 3_000, 200

StateT = TypeVar("StateT", bound="Hashable")


#: What to tell users of a search past its limit, with the number of states.
LACKS_BYTES = (
    "the vocabulary lacks some bytes as tokens, and no way to an end was found among {} situations; raise max_search,"
    " or use a vocabulary that has every byte"
)


class CoaccessibleSearch(Generic[StateT]):
    """Answers, and remembers, whether a way leads from a state to an end.

    `successors`: the states that one step leads to; `can_end`: whether the text may end in a state; `limit`: states
    that one search may meet, past it LimitExceeded (option `max_search`) says `message`. States of the least `rank` go
    first, of these those that were met first.
    """

    def __init__(
        self,
        successors: Callable[[StateT], Iterable[StateT]],
        can_end: Callable[[StateT], bool],
        limit: int,
        rank: Callable[[StateT], int] = lambda state: 0,
        message: str = LACKS_BYTES,
    ) -> None:
        self._successors, self._can_end, self._limit = successors, can_end, limit
        self._rank, self._message = rank, message
        self._known: dict[StateT, bool] = {}

    def is_live(self, state: StateT) -> bool:
        """Whether a way leads from `state` to an end. Raises LimitExceeded."""
        known = self._known.get(state)
        if known is not None:
            return known
        came_from = {state: state}
        agenda = [(0, 0, state)]
        found = self._can_end(state)
        here = state
        while agenda and not found:
            here = heappop(agenda)[2]
            spend(NS_PER_STATE)
            hold(BYTES_PER_STATE)
            for target in self._successors(here):
                if target in came_from or self._known.get(target) is False:
                    continue
                came_from[target] = here
                if self._known.get(target) or self._can_end(target):
                    here, found = target, True
                    break
                heappush(agenda, (self._rank(target), len(came_from), target))
            if len(came_from) > self._limit and not found:
                raise LimitExceeded(self._message.format(self._limit), limit="max_search", value=self._limit)
        if not found:
            self._known.update(dict.fromkeys(came_from, False))
            return False
        while here != state:
            self._known[here] = True
            here = came_from[here]
        self._known[state] = True
        return True
