"""Lexer and parser together: hypotheses, and the situations that are sets of them.

A byte moves each hypothesis (lexer state, stack). Where the new lexer state is labelled, the lexeme may end: the label
is shifted, and a second hypothesis begins the next lexeme in the new stack's context, with the residue as obligations.
A hypothesis whose lexer state cannot end in anything that leads on from its stack is dropped at once, so all that are
left are live.

A text may end where one of its hypotheses is at the beginning of a lexeme and the parser takes the end.

Situations are numbered by content, so a matcher's state is one number. Where bytes lead from a situation is a row of a
table, filled as far as it is needed: bytes that move all hypotheses alike are looked at once. So `Hypotheses` is a
`tokdfa.vocabulary.byte_table.ByteTable`, whose row for situation s begins at ``s * class_count``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.backends.cfg_fsm.liveness import Liveness
from tokdfa.backends.cfg_fsm.stacks import REFUSED
from tokdfa.core.budget import hold, spend
from tokdfa.errors import LimitExceeded
from tokdfa.vocabulary.byte_table import DEAD, UNKNOWN, ByteTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tokdfa.backends.cfg_fsm.contextual import Contextual
    from tokdfa.backends.cfg_fsm.stacks import Stacks

#: A lexer state and a stack.
Hypothesis = tuple[int, int]

#: Hypotheses of one situation.
MAX_HYPOTHESES = 1 << 17
#: What it takes to move a hypothesis by a byte, to run a byte, and to number a situation.
NS_PER_MOVE, NS_PER_BYTE, NS_PER_SITUATION = 1_000, 100, 5_000


class Hypotheses(ByteTable):
    """Situations of one grammar. Situation 0 is the beginning. Not thread-safe.

    `members`: the hypotheses of each situation, ascending; `ends`: by lexer state, what it can end in
    (`Contextual.ends`). `is_searched`: what leads on from a stack is found by a search, and is a set of outcomes.
    """

    def __init__(
        self, lexer: Contextual, stacks: Stacks, is_searched: bool, max_situations: int, max_search: int
    ) -> None:
        self.lexer, self.stacks, self.is_searched, self.max_situations = lexer, stacks, is_searched, max_situations
        self.ends = lexer.ends(by_outcome=is_searched)
        super().__init__(np.full(16 * lexer.class_count, UNKNOWN, dtype=np.int32), lexer.byte_class, lexer.class_count)
        self.members: list[tuple[Hypothesis, ...]] = []
        self._liveness = Liveness(lexer, stacks, max_search)
        self._columns, self._starts = lexer.byte_class.tolist(), lexer.starts.tolist()
        self._labels, self._residues = lexer.labels.tolist(), lexer.residues.tolist()
        self._numbers: dict[tuple[Hypothesis, ...], int] = {}
        self._leads_on: dict[int, int] = {}
        begin = self._starts[0][stacks.context(0)]
        #: Whether any text is accepted.
        self.is_live = self._is_live(begin, 0)
        self._intern({(begin, 0)})

    def leads_on(self, stack: int) -> int:
        """The labels, or the outcomes, that lead on from a stack, as bits; the last one is the end of the text."""
        if not self.is_searched:
            return self.stacks.taken(stack)
        found = self._leads_on.get(stack)
        if found is None:
            found = self._leads_on[stack] = self._liveness.leading_on(stack)
        return found

    def _is_live(self, state: int, stack: int) -> bool:
        return bool(self.ends[state] & self.leads_on(stack))

    def can_end(self, situation: int) -> bool:
        """Whether the text may end in a situation."""
        stacks, is_start = self.stacks, self.lexer.is_start
        return any(
            is_start[state] and stacks.takes(stack, stacks.terminal_count) for state, stack in self.members[situation]
        )

    def run(self, situation: int, data: npt.NDArray[np.uint8], begin: int, end: int) -> int:
        """The situation after ``data[begin:end]``, -1 if that cannot be completed."""
        row = situation * self.class_count
        for byte in data[begin:end].tolist():
            spend(NS_PER_BYTE)
            column = self._columns[byte]
            target = int(self.transitions[row + column])
            if target == UNKNOWN:
                members, moves = self.members[row // self.class_count], self.lexer.transitions
                target = self._row_after([int(moves[state, column]) for state, _ in members], members)
                self.transitions[row + column] = target
            if target == DEAD:
                return -1
            row = target
        return row // self.class_count

    def fill(self, row: int, byte: int) -> None:
        """Make known where a byte leads from the situation of a row, and all bytes that move its hypotheses alike."""
        members = self.members[row // self.class_count]
        moves = self.lexer.transitions[[state for state, _ in members]]
        targets = moves[:, self._columns[byte]]
        after = self._row_after(targets.tolist(), members)
        self.transitions[row : row + self.class_count][(moves == targets[:, None]).all(axis=0)] = after

    def _row_after(self, targets: Sequence[int], members: tuple[Hypothesis, ...]) -> int:
        """The row of the situation after a byte that moves the lexer states of `members` to `targets`, or DEAD."""
        found = self._after(targets, members)
        return self._intern(found) * self.class_count if found else DEAD

    def _after(self, targets: Sequence[int], members: tuple[Hypothesis, ...]) -> set[Hypothesis]:
        """The live hypotheses after a byte that moves the lexer states of `members` to `targets`."""
        found: set[Hypothesis] = set()
        for target, (_, stack) in zip(targets, members, strict=True):
            if target < 0:
                continue
            spend(NS_PER_MOVE)
            if self._is_live(target, stack):
                found.add((target, stack))
            label = self._labels[target]
            if label >= 0 and (after := self.stacks.shift(stack, label)) != REFUSED:
                begin = self._starts[self._residues[target]][self.stacks.context(after)]
                if self._is_live(begin, after):
                    found.add((begin, after))
        return found

    def _intern(self, found: set[Hypothesis]) -> int:
        """The number of the situation with these hypotheses."""
        members = tuple(sorted(found))
        number = self._numbers.get(members)
        if number is None:
            number = len(self.members)
            if number >= self.max_situations:
                raise LimitExceeded(
                    f"more than {self.max_situations} situations were met; raise max_situations",
                    limit="max_situations",
                    value=self.max_situations,
                )
            if len(members) > MAX_HYPOTHESES:
                raise LimitExceeded(
                    f"a text leaves more than {MAX_HYPOTHESES} readings open; make terminals overlap less",
                    limit="hypotheses",
                    value=MAX_HYPOTHESES,
                )
            spend(NS_PER_SITUATION)
            hold(4 * self.class_count + 100 * (1 + len(members)))
            self._numbers[members] = number
            self.members.append(members)
            if self.class_count * (number + 1) > len(self.transitions):
                self.transitions = np.concatenate([self.transitions, np.full_like(self.transitions, UNKNOWN)])
        return number
