"""Which states of an automaton made as it is needed can come to an end: of objects by members, arrays by items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from tokdfa.core.budget import hold, spend

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

#: Work and memory (`tokdfa.core.budget`) of a state that is looked at.
STATE_WORK, STATE_BYTES = 2_000, 500

StateT = TypeVar("StateT", bound="Hashable")


class TooManyStates(Exception):
    """A question could not be answered by looking at as many states as are allowed."""


class Ends(Generic[StateT]):
    """Remembers the answers of one automaton, with at most `most` states looked at for one.

    Depth first. A state that is on the way counts as dead, and is looked at again by whoever is not on the way; so a
    dead end is believed only when nothing that was met comes to an end.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._alive: dict[StateT, bool] = {}

    def alive(
        self, state: StateT, can_close: Callable[[StateT], bool], following: Callable[[StateT], Iterator[StateT]]
    ) -> bool:
        """Whether a state can come to an end. O(states met). Raises TooManyStates past the limit.

        `can_close`: whether a state is an end; `following`: the states that moves lead to.
        """
        known = self._alive.get(state)
        if known is not None:
            return known
        todo = [(state, following(state))]
        met = {state}
        while todo:
            here, moves = todo[-1]
            found = can_close(here)
            if not found:
                for target in moves:
                    if self._alive.get(target):
                        found = True
                        break
                    spend(STATE_WORK)
                    if target not in met and target not in self._alive:
                        hold(STATE_BYTES)
                        met.add(target)
                        todo.append((target, following(target)))
                        break
                else:
                    todo.pop()
                    continue
            if found:
                for above, _ in todo:  # all that are on the way lead here
                    self._alive[above] = True
                return True
            if len(met) > self._most:
                raise TooManyStates
        for dead in met:
            self._alive.setdefault(dead, False)
        return False
