"""Whether some text leads from a hypothesis to an end, where that is not seen at once.

Two things can make a stack or a lexer state a dead end: a conflict that Lark has resolved (or a rule without end), and
lexing: a terminal that cannot be written because the one before it would go on, or another one comes first. Then there
is nothing but to look: a search over hypotheses at the beginning of lexemes, one step for each lexeme that can be
written, shallow stacks first, for a text is completed by reducing. What is found is kept.

So it is known of each stack which outcomes of the next lexeme lead to an end, and a hypothesis is live iff its lexer
state can reach one of them: again one AND of two sets.

Deep stacks could go on for ever without an end, as in a rule that uses itself and nothing else. So a hypothesis is only
followed if there is an end in *outline*: for a parser that has forgotten its stack but for the top, and after a
reduction may be in any state that the terminal is shifted to. What has no end in outline has none.

A search meets at most `limit` hypotheses; past it LimitExceeded is raised. A live hypothesis is mostly found at once; a
dead one only if its outline is dead, too, or finitely many follow from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.backends.cfg_fsm.stacks import REFUSED
from tokdfa.backends.coaccessible import CoaccessibleSearch
from tokdfa.core.budget import hold, spend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.backends.cfg_fsm.contextual import Contextual
    from tokdfa.backends.cfg_fsm.stacks import Stacks

#: A lexer state in which a lexeme begins, and a stack.
Beginning = tuple[int, int]

#: What it takes to look at an outcome of a hypothesis, and to keep a hypothesis.
NS_PER_OUTCOME, BYTES_PER_HYPOTHESIS = 10_000, 500
#: What a search says past its limit.
NO_WAY = (
    "no way to an end of the text was found among {} ways to go on; the grammar has conflicts, or its terminals are in"
    " each other's way; raise max_search, or use earley_trie"
)


class Liveness:
    """Answers, and remembers, what can be completed. Not thread-safe."""

    def __init__(self, lexer: Contextual, stacks: Stacks, limit: int) -> None:
        self.lexer, self.stacks = lexer, stacks
        #: Shallow stacks first, for a text is completed by reducing.
        self._search = CoaccessibleSearch[Beginning](
            self._successors,
            lambda begin: stacks.takes(begin[1], stacks.terminal_count),
            limit,
            lambda begin: stacks.depths[begin[1]],
            NO_WAY,
        )
        self._outcomes = [(label, residue) for label, residue in lexer.outcomes.tolist()]
        self._outline: dict[Beginning, bool] = {}
        actions = stacks.actions
        #: Terminal -> the states that it is shifted to.
        self._shifted = [np.unique(column[column > 0] - 1).tolist() for column in actions.T]

    def leading_on(self, stack: int) -> int:
        """The outcomes of the next lexeme after which the text can be completed, as bits; and the end as the last bit.

        Raises LimitExceeded.
        """
        bits = 0
        for outcome in range(len(self._outcomes)):
            spend(NS_PER_OUTCOME)
            following = self._following(stack, outcome)
            if following is not None and self.is_live(following):
                bits |= 1 << outcome
        return bits | self.stacks.takes(stack, self.stacks.terminal_count) << len(self._outcomes)

    def is_live(self, begin: Beginning) -> bool:
        """Whether some text leads from the beginning of a lexeme to an end. Raises LimitExceeded."""
        return self._has_outline(begin) and self._search.is_live(begin)

    def _successors(self, here: Beginning) -> Iterator[Beginning]:
        """The beginnings of the next lexeme that have an outline, after each outcome of this one."""
        state, stack = here
        for outcome in self.lexer.reachable(state):
            spend(NS_PER_OUTCOME)
            following = self._following(stack, outcome)
            if following is not None and self._has_outline(following):
                yield following

    def _following(self, stack: int, outcome: int) -> Beginning | None:
        """Where the next lexeme begins after an outcome; None if the parser refuses its label."""
        label, residue = self._outcomes[outcome]
        if label != self.lexer.ignored_label and not self.stacks.actions[self.stacks.tops[stack], label]:
            return None
        after = self.stacks.shift(stack, label)
        if after == REFUSED:
            return None
        state = int(self.lexer.starts[residue, self.stacks.context(after)])
        return None if state < 0 else (state, after)

    def _has_outline(self, begin: Beginning) -> bool:
        """Whether there is an end in outline. Found out for all places that can be reached, at once."""
        place = begin[0], self.stacks.tops[begin[1]]
        if place not in self._outline:
            sources: dict[Beginning, list[Beginning]] = {place: []}
            agenda = [place]
            for here in agenda:  # grows on the way
                spend(NS_PER_OUTCOME)
                hold(BYTES_PER_HYPOTHESIS)
                for target in self._outline_successors(*here):
                    if target not in sources:
                        sources[target] = []
                        agenda.append(target)
                    sources[target].append(here)
            ends = self.stacks.actions[:, self.stacks.terminal_count] != 0
            agenda = [here for here in sources if self._outline.get(here) or (here[0] >= 0 and ends[here[1]])]
            self._outline.update(dict.fromkeys(sources, False))
            self._outline.update(dict.fromkeys(agenda, True))
            for here in agenda:
                for source in sources[here]:
                    if not self._outline[source]:
                        self._outline[source] = True
                        agenda.append(source)
        return self._outline[place]

    def _outline_successors(self, state: int, top: int) -> Iterator[Beginning]:
        """Where the next lexeme may begin after this one, as lexer state and top of the stack.

        After a reduction that is any state that the label is shifted to. All who reduce share that list: they lead to
        a place of its own, (~residue, label), which leads to those.
        """
        starts, contexts = self.lexer.starts, self.stacks.contexts
        if state < 0:
            residue, targets = ~state, self._shifted[top]
            spend(NS_PER_OUTCOME // 4 * len(targets))
            for target in targets:
                if (begin := int(starts[residue, contexts[target]])) >= 0:
                    yield begin, target
            return
        for outcome in self.lexer.reachable(state):
            label, residue = self._outcomes[outcome]
            action = top + 1 if label == self.lexer.ignored_label else int(self.stacks.actions[top, label])
            if action < 0:
                yield ~residue, label
            elif action > 0 and (begin := int(starts[residue, contexts[action - 1]])) >= 0:
                yield begin, action - 1
