"""Shared stacks of LALR states, and what the parser does with a terminal.

A stack is a node: its top state, and the stack below. Nodes are interned by (stack below, top), so equal stacks are one
number, copying one costs nothing, and what is known of a stack is kept beside it: its reductions, and the set of labels
that lead on from it, as bits (`tokdfa.backends.cfg_fsm.contextual.Contextual.ends`).

A terminal may make the parser reduce several times before it is shifted. Terminals that ask for the same reduction are
followed together, so what a stack takes costs a step for each reduction, whatever the number of terminals. Where a rule
derives itself, reductions come back to a stack: that is nothing new, and the parser would loop.

Source: DeRemer and Pennello 1982 for the tables; stacks as nodes after Tomita 1985.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.core.budget import hold, spend
from tokdfa.errors import LimitExceeded

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tokdfa.backends.cfg_fsm.lark_tables import LalrTables

#: For a terminal that the parser does not take.
REFUSED = -1
#: What it takes to reduce or to make a stack, and what a stack holds.
NS_PER_STACK, BYTES_PER_STACK = 1_000, 400


class Stacks:
    """All stacks met so far. Stack 0 holds the start state alone. Not thread-safe.

    `tables`: S states and T terminals; `contexts`: int32, shape (S,), the context of each state; `max_stacks`: past it
    LimitExceeded is raised; the stacks made so far stay usable.
    """

    def __init__(self, tables: LalrTables, contexts: npt.NDArray[np.int32], max_stacks: int) -> None:
        self.terminal_count = tables.actions.shape[1] - 1
        self.actions, self.max_stacks = tables.actions, max_stacks
        #: By parser state: its context.
        self.contexts: list[int] = contexts.tolist()
        self._actions, self._gotos = tables.actions.tolist(), tables.gotos.tolist()
        self._lengths, self._lefts, self._end = tables.rule_lengths.tolist(), tables.rule_lefts.tolist(), tables.end
        # between two shifts no nonterminal comes to stand above itself without the parser looping
        self._deepest = len(self._lengths) + tables.gotos.shape[1] + 2
        #: By parser state, as bits of terminals: what it shifts, and what it reduces by each rule.
        self._shifted, self._reduced = zip(*map(_read_row, self._actions), strict=True)
        self._numbers: dict[tuple[int, int], int] = {}
        self._below: list[int] = []
        #: By stack: its top state, how many states it holds.
        self.tops: list[int] = []
        self.depths: list[int] = []
        self._after: dict[tuple[int, int], int] = {}
        self._taken: dict[int, int] = {}
        self._push(-1, tables.start)

    def _push(self, below: int, top: int) -> int:
        """The stack (below, top), made if need be."""
        number = self._numbers.get((below, top))
        if number is None:
            number = len(self.tops)
            if number >= self.max_stacks:
                raise LimitExceeded(
                    f"the parser has met more than {self.max_stacks} stacks; raise max_stacks",
                    limit="max_stacks",
                    value=self.max_stacks,
                )
            spend(NS_PER_STACK)
            hold(BYTES_PER_STACK)
            self._numbers[below, top] = number
            self._below.append(below)
            self.tops.append(top)
            self.depths.append(self.depths[below] + 1 if below >= 0 else 1)
        return number

    @property
    def count(self) -> int:
        """Stacks made so far."""
        return len(self.tops)

    def _reduce(self, stack: int, rule: int, low: int) -> tuple[int, int]:
        """(the stack after a reduction, REFUSED if there is none or the parser loops; the new `low`).

        `low`: how deep what is left of the stack is that the reductions began with.
        """
        spend(NS_PER_STACK)
        for _ in range(self._lengths[rule]):
            stack = self._below[stack]
        low = min(low, self.depths[stack])
        target = self._gotos[self.tops[stack]][self._lefts[rule]]
        if target < 0 or self.depths[stack] - low >= self._deepest:
            return REFUSED, low
        return self._push(stack, target), low

    def shift(self, stack: int, terminal: int) -> int:
        """The stack after `terminal` (T for ignored text, which changes nothing), REFUSED if it cannot come next."""
        if terminal == self.terminal_count:
            return stack
        found = self._after.get((stack, terminal))
        if found is None:
            here, low, met = stack, self.depths[stack], {REFUSED}
            while here not in met and (action := self._actions[self.tops[here]][terminal]) < 0:
                met.add(here)
                here, low = self._reduce(here, -action - 1, low)
            here = REFUSED if here in met else here
            found = self._push(here, action - 1) if here >= 0 and action else REFUSED
            self._after[stack, terminal] = found
        return found

    def taken(self, stack: int) -> int:
        """What the parser takes next, as bits: its terminals, ignored text (T), and the end of the text (T + 1)."""
        found = self._taken.get(stack)
        if found is None:
            found = 1 << self.terminal_count
            agenda, met = [(stack, -1, self.depths[stack])], dict[int, int]()
            while agenda:
                here, wanted, low = agenda.pop()
                known = met.get(here, 0)
                wanted &= ~known
                met[here] = known | wanted
                top = self.tops[here]
                if top == self._end:
                    found |= (wanted >> self.terminal_count & 1) << self.terminal_count + 1
                found |= wanted & self._shifted[top]
                for rule, terminals in self._reduced[top].items():
                    if wanted & terminals:
                        after, lower = self._reduce(here, rule, low)
                        if after >= 0:
                            agenda.append((after, wanted & terminals, lower))
            self._taken[stack] = found
        return found

    def takes(self, stack: int, terminal: int) -> bool:
        """Whether the parser takes `terminal` next; T asks for the end of the text."""
        return bool(self.taken(stack) >> terminal + (terminal == self.terminal_count) & 1)

    def context(self, stack: int) -> int:
        """The context in which the next lexeme begins."""
        return self.contexts[self.tops[stack]]

    def states(self, stack: int) -> list[int]:
        """The states of a stack, the start state first."""
        found = []
        while stack >= 0:
            found.append(self.tops[stack])
            stack = self._below[stack]
        return found[::-1]


def _read_row(actions: list[int]) -> tuple[int, dict[int, int]]:
    """(what a parser state shifts; rule -> what it reduces by it), as bits; bit T of the latter is the end."""
    shifted, reduced = 0, dict[int, int]()
    for terminal, action in enumerate(actions):
        if action > 0:
            shifted |= 1 << terminal
        elif action < 0:
            reduced[-action - 1] = reduced.get(-action - 1, 0) | 1 << terminal
    return shifted, reduced
