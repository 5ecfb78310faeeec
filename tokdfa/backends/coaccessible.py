"""Which states can still reach an end, if the vocabulary lacks bytes that texts need.

If every byte that a constraint reads is a token by itself, whatever can be completed can be completed with tokens. If
not, a token may lead to where no token goes on; whether it does is found out by a search for an end.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

from tokdfa.core.budget import hold, spend
from tokdfa.errors import LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

#: What a state of a search takes, without finding its successors, and what it holds.
NS_PER_STATE, BYTES_PER_STATE = 3_000, 200

StateT = TypeVar("StateT", bound="Hashable")


class CoaccessibleSearch(Generic[StateT]):
    """Answers, and remembers, whether tokens lead from a state to an end.

    `successors`: the states that tokens lead to; `can_end`: whether the text may end in a state; `limit`: states that
    one search may meet, past it LimitExceeded (option `max_search`). Breadth first, ends and known states first.
    """

    def __init__(
        self, successors: Callable[[StateT], Iterable[StateT]], can_end: Callable[[StateT], bool], limit: int
    ) -> None:
        self._successors, self._can_end, self._limit = successors, can_end, limit
        self._known: dict[StateT, bool] = {}

    def is_live(self, state: StateT) -> bool:
        """Whether tokens lead from `state` to an end. Raises LimitExceeded."""
        known = self._known.get(state)
        if known is not None:
            return known
        came_from = {state: state}
        agenda = deque([state])
        while agenda:
            here = agenda.popleft()
            spend(NS_PER_STATE)
            hold(BYTES_PER_STATE)
            if self._known.get(here) or self._can_end(here):
                while here != state:
                    self._known[here] = True
                    here = came_from[here]
                self._known[state] = True
                return True
            for target in self._successors(here):
                if target not in came_from and self._known.get(target) is not False:
                    came_from[target] = here
                    if self._known.get(target) or self._can_end(target):
                        agenda.appendleft(target)
                    else:
                        agenda.append(target)
            if len(came_from) > self._limit:
                raise LimitExceeded(
                    f"the vocabulary lacks some bytes as tokens, and no way to an end was found among {self._limit}"
                    " situations; raise max_search, or use a vocabulary that has every byte",
                    limit="max_search",
                    value=self._limit,
                )
        self._known.update(dict.fromkeys(came_from, False))
        return False
