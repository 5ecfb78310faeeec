"""Whether some text leads from a hypothesis to an end, where that is not seen at once.

Two things can make a stack or a lexer state a dead end: a conflict that Lark has resolved (or a rule without end), and
lexing: a terminal that cannot be written because the one before it would go on, or another one comes first. Then there
is nothing but to look: a search over hypotheses at the beginning of lexemes, one step for each lexeme that can be
written, shallow stacks first, for a text is completed by reducing. What is found is kept.

A search meets at most `limit` hypotheses; past it LimitExceeded is raised. A live hypothesis is mostly found at once; a
dead one only if finitely many follow from it.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from tokdfa.cfg_fsm.stacks import REFUSED
from tokdfa.errors import LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.cfg_fsm.hypotheses import Hypotheses

Hypothesis = tuple[int, int]


class Liveness:
    """Answers, and remembers, whether a hypothesis can be completed. Not thread-safe."""

    def __init__(self, hypotheses: Hypotheses, limit: int) -> None:
        self.hypotheses, self.limit = hypotheses, limit
        self._known: dict[Hypothesis, bool] = {}
        self._outcomes: dict[int, list[tuple[int, int]]] = {}

    def is_live(self, state: int, stack: int) -> bool:
        """Whether some text leads from the hypothesis to an end. Raises LimitExceeded."""
        begin = state, stack
        if begin in self._known:
            return self._known[begin]
        came_from = {begin: begin}
        agenda = [(0, 0, begin)]
        while agenda:
            _, _, here = heapq.heappop(agenda)
            if self._known.get(here) or self._is_end(here):
                while here != begin:
                    self._known[here] = True
                    here = came_from[here]
                self._known[begin] = True
                return True
            for target in self._successors(here):
                if target not in came_from and self._known.get(target) is not False:
                    came_from[target] = here
                    heapq.heappush(agenda, (self._depth(target[1]), len(came_from), target))
            if len(came_from) > self.limit:
                raise LimitExceeded(
                    f"no way to an end of the text was found among {self.limit} ways to go on; the grammar has "
                    "conflicts, or its terminals are in each other's way; raise max_search, or use earley_trie",
                    limit="max_search",
                    value=self.limit,
                )
        self._known.update(dict.fromkeys(came_from, False))
        return False

    def _is_end(self, hypothesis: Hypothesis) -> bool:
        state, stack = hypothesis
        end = self.hypotheses.lexer.end_label
        bits = int(self.hypotheses.lex.ends[state, end >> 6])
        return bool(bits >> (end & 63) & 1) and self.hypotheses.stacks.takes(stack, end)

    def _successors(self, hypothesis: Hypothesis) -> Iterator[Hypothesis]:
        """The beginnings of the next lexeme after each way in which this one may end."""
        state, stack = hypothesis
        stacks, starts = self.hypotheses.stacks, self.hypotheses.lex.starts
        for label, residue in self.outcomes(state):
            after = stacks.shift(stack, label)
            if after != REFUSED:
                yield int(starts[residue, stacks.context(after)]), after

    def outcomes(self, state: int) -> list[tuple[int, int]]:
        """The (label, residue) pairs with which a lexeme may end that is in this lexer state. Kept by state."""
        if state not in self._outcomes:
            lex = self.hypotheses.lex
            seen, agenda = {state}, [state]
            found: dict[tuple[int, int], None] = {}
            while agenda:
                for target in set(lex.transitions[agenda.pop()].tolist()) - seen - {-1}:
                    seen.add(target)
                    agenda.append(target)
                    if lex.labels[target] >= 0:
                        found[int(lex.labels[target]), int(lex.residues[target])] = None
            # a state may come back to itself and end there
            if lex.labels[state] >= 0 and any(state in lex.transitions[other] for other in seen):
                found[int(lex.labels[state]), int(lex.residues[state])] = None
            self._outcomes[state] = sorted(found)
        return self._outcomes[state]

    def _depth(self, stack: int) -> int:
        depth, below = 0, self.hypotheses.stacks.arrays.below
        while stack >= 0:
            stack = int(below[stack])
            depth += 1
        return depth
