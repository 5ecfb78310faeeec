"""Which states can still reach an end, where the vocabulary lacks bytes.

If every byte that a constraint reads is a token by itself, whatever can be completed can be completed with tokens. If
not, a token may lead to where no token goes on. A state is *live* iff tokens lead from it to an end. Who is live is
asked in this order, so that little is left for the last:

1. *By bytes, all at once.* Letters tell (`tokdfa.vocabulary.letters`): spellable bytes, and the few tokens that contain
   another byte. A state from which spellable bytes alone reach an end is live. Of an automaton that is coreachability,
   of rules it is emptiness, with the missing bytes taken away: known once for each terminal, rule and return place, and
   additive along a stack (`tokdfa.backends.pushdown_trie.spelled_rows`). If no token contains a missing byte, that is
   all.
2. *By bytes that occur in tokens at all*: a state from which these cannot reach an end is dead.
3. *By letters, one state at a time*: what is left is searched, from the state to the nearest that is known to be live.

A strategy answers 1 and 2 as far as it can (the `outlook` of a state); here is the search, greedy best first (Russell
and Norvig, "Artificial Intelligence", section 3.5).

Cost: of a search some 30 us a state, and as many states as the nearest live one is letters away, if nothing leads
astray.
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
    first, of these those that were met first. `outlook`: whether a state is live, where that is known without a search;
    else None.
    """

    def __init__(
        self,
        successors: Callable[[StateT], Iterable[StateT]],
        can_end: Callable[[StateT], bool],
        limit: int,
        rank: Callable[[StateT], int] = lambda state: 0,
        message: str = LACKS_BYTES,
        outlook: Callable[[StateT], bool | None] = lambda state: None,
    ) -> None:
        self._successors, self._can_end, self._limit = successors, can_end, limit
        self._rank, self._message, self._outlook = rank, message, outlook
        self._known: dict[StateT, bool] = {}

    def is_live(self, state: StateT) -> bool:
        """Whether a way leads from `state` to an end. Raises LimitExceeded."""
        known = self._judge(state)
        if known is not None:
            return known
        came_from = {state: state}
        agenda = [(0, 0, state)]
        found, here = False, state
        while agenda and not found:
            here = heappop(agenda)[2]
            spend(NS_PER_STATE)
            hold(BYTES_PER_STATE)
            for target in self._successors(here):
                if target in came_from:
                    continue
                known = self._judge(target)
                if known is False:
                    continue
                came_from[target] = here
                if known:
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

    def _judge(self, state: StateT) -> bool | None:
        """Whether a state is live, if that was found out or is seen at once."""
        known = self._known.get(state)
        if known is None:
            known = True if self._can_end(state) else self._outlook(state)
            if known is not None:
                self._known[state] = known
        return known
