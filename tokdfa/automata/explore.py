"""One breadth-first builder: from "where does this state lead?" to a `Dfa`.

Many constructions have the same shape. Their states are values (sets of NFA states, regular expressions, pairs of
states, stacks of a bounded grammar); from a value one can compute where each byte class leads and whether it accepts;
equal values are one state. `explore` numbers the values that can be reached and writes the table. States are numbered
in breadth-first order, classes in ascending order, the start is 0.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tokdfa.automata.dfa import Dfa
from tokdfa.errors import AutomatonError, LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    import numpy.typing as npt

StateT = TypeVar("StateT", bound="Hashable")

#: How many states a construction may make unless it is told otherwise. An explored state costs about 1 kB.
STATE_LIMIT = 100_000


def explore(
    start: StateT | None,
    successors: Callable[[StateT], Iterable[StateT | None]],
    accepts: Callable[[StateT], bool],
    byte_class: npt.NDArray[np.uint8],
    limit: int = STATE_LIMIT,
) -> Dfa:
    """The automaton of the states that can be reached from `start` (None: the empty language).

    `successors(state)` gives the next state of each byte class, in order, None where there is none; `byte_class` is
    uint8, shape (256,). The result is neither trimmed nor minimised. One dictionary look-up a transition, so linear in
    states x classes. Raises LimitExceeded at state number `limit` + 1, AutomatonError if a state has the wrong number
    of successors.
    """
    if start is None:
        return Dfa.empty()
    classes = int(byte_class.max()) + 1
    numbers = {start: 0}
    queue = [start]
    table = array("i")
    for done, state in enumerate(queue, start=1):  # the loop sees what it appends
        for following in successors(state):
            if following is None:
                table.append(-1)
                continue
            number = numbers.setdefault(following, len(queue))
            if number == len(queue):
                if number >= limit:
                    raise state_limit_exceeded(limit)
                queue.append(following)
            table.append(number)
        if len(table) != done * classes:
            raise AutomatonError(
                f"state {done - 1} has {len(table) - (done - 1) * classes} successors; "
                f"there are {classes} byte classes, and each needs a next state or None"
            )
    accepting = np.fromiter(map(accepts, queue), dtype=np.bool_, count=len(queue))
    transitions = np.frombuffer(table, dtype=np.intc).reshape(len(queue), classes)
    return Dfa(transitions, byte_class, accepting, 0)


def state_limit_exceeded(limit: int) -> LimitExceeded:
    """The error for an automaton that would have more than `limit` states."""
    return LimitExceeded(
        f"the automaton has more than {limit} states; shorten its counted repeats or intersections, "
        f"or pass a larger limit than limit={limit}",
        limit="states",
        value=limit,
    )
