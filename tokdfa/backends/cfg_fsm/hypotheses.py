"""Lexer and parser together: hypotheses, and the situations that are sets of them.

A byte moves each hypothesis (lexer state, stack). Where the new lexer state is labelled, the lexeme may end: the label
is shifted, and a second hypothesis begins the next lexeme in the new stack's context, with the residue as obligations.
A hypothesis whose lexer state cannot end in anything that leads on from its stack is dropped at once, so all that are
left are live.

A text may end where one of its hypotheses is at the beginning of a lexeme and the parser takes the end.

Situations are numbered: a sorted list of hypotheses is looked up by its bytes. So a matcher's state is one number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.backends.cfg_fsm.liveness import Liveness
from tokdfa.backends.cfg_fsm.stacks import FULL, REFUSED, shift_kernel, taken_kernel
from tokdfa.core.budget import hold, spend
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_budget import pay
from tokdfa.core.kernel_struct import Struct
from tokdfa.errors import LimitExceeded

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.cfg_fsm.contextual import Contextual
    from tokdfa.backends.cfg_fsm.stacks import Stacks

#: Hypotheses that one text may leave open, summed over the bytes of one token.
MAX_HYPOTHESES = 1 << 20

#: So many comparisons of hypotheses, of about 1 ns, are paid for at once.
PAID_COMPARISONS = 1 << 18
#: What it takes to run the bytes of a token, and to number a situation.
NS_PER_RUN = 5_000

LEX_FIELDS = ("transitions", "byte_class", "labels", "residues", "ends", "starts")


class LexArrays(Struct, fields=LEX_FIELDS):
    """What kernels take of `Contextual`: LEX_FIELDS."""


class Hypotheses:
    """Situations of one grammar. Situation 0 is the beginning. Not thread-safe.

    `lex`: what kernels take of the lexer. `arena`: int32, shape (room, 2): the hypotheses that a kernel is working on.
    """

    lex: Any

    def __init__(self, lexer: Contextual, stacks: Stacks, max_situations: int, max_search: int) -> None:
        self.lexer, self.stacks, self.max_situations = lexer, stacks, max_situations
        self.liveness = Liveness(lexer, stacks, max_search)
        self.ends = lexer.ends(by_outcome=stacks.is_searched)
        self.lex = LexArrays(lexer.transitions, lexer.byte_class, lexer.labels, lexer.residues, self.ends, lexer.starts)
        self.arena: npt.NDArray[np.int32] = np.zeros((256, 2), dtype=np.int32)
        self._end = stacks.terminal_count
        self._numbers: dict[bytes, int] = {}
        #: By situation: int32, shape (count, 2).
        self.members: list[npt.NDArray[np.int32]] = []
        self._ends: list[bool] = []
        begin = int(lexer.starts[0, stacks.context(0)])
        #: Whether any text is accepted.
        self.is_live = self._leads_on(begin, 0)
        self.intern(np.array([[begin, 0]], dtype=np.int32))

    def _leads_on(self, state: int, stack: int) -> bool:
        while not taken_kernel(self.stacks.struct, stack):
            self.make_room()
        return bool((self.ends[state] & self.stacks.taken[stack]).any())

    def intern(self, found: npt.NDArray[np.int32]) -> int:
        """The number of the situation with these hypotheses, each once, in any order."""
        ordered = found if len(found) == 1 else found[np.lexsort((found[:, 1], found[:, 0]))]
        key = ordered.tobytes()
        number = self._numbers.get(key)
        if number is None:
            number = len(self.members)
            if number >= self.max_situations:
                raise LimitExceeded(
                    f"more than {self.max_situations} situations were met; raise max_situations",
                    limit="max_situations",
                    value=self.max_situations,
                )
            spend(NS_PER_RUN)
            hold(500 + 2 * len(key))
            self._numbers[key] = number
            self.members.append(np.frombuffer(key, dtype=np.int32).reshape(-1, 2))
            self._ends.append(self._may_end(number))
        return number

    def _may_end(self, situation: int) -> bool:
        members = self.members[situation].tolist()
        return any(self.lexer.is_start[state] and self.stacks.takes(stack, self._end) for state, stack in members)

    def can_end(self, situation: int) -> bool:
        """Whether the text may end in a situation."""
        return self._ends[situation]

    def run(self, situation: int, data: npt.NDArray[np.uint8], begin: int, end: int) -> npt.NDArray[np.int32]:
        """The hypotheses after ``data[begin:end]``: int32, shape (count, 2), empty if none is left."""
        spend(NS_PER_RUN)
        members = self.members[situation]
        while True:
            if len(members) > len(self.arena):
                self.make_room()
                continue
            first, last = _run_kernel(self.lex, self.stacks.struct, self.arena, members, data, begin, end)
            if first >= 0:
                return self.arena[first:last].copy()
            self.make_room()

    def make_room(self) -> None:
        """Do what a kernel has returned FULL for: search what leads on, or make room for stacks or for hypotheses."""
        if not self.learn_or_grow():
            self._grow()

    def learn_or_grow(self) -> bool:
        """As `make_room`, but not for hypotheses: False if that is not what was lacking."""
        asked = self.stacks.pop_asked()
        if asked >= 0:
            self.stacks.learn(asked, self.liveness.leading_on(asked))
        elif self.stacks.is_full:
            self.stacks.grow()
        else:
            return False
        return True

    def _grow(self) -> None:
        if len(self.arena) >= MAX_HYPOTHESES:
            raise LimitExceeded(
                f"one token leaves more than {MAX_HYPOTHESES} readings of the text open; make terminals overlap less",
                limit="hypotheses",
                value=MAX_HYPOTHESES,
            )
        self.arena = np.concatenate([self.arena, np.zeros_like(self.arena)])


@kernel
def add_kernel(ends, taken, arena, first, last, state, stack):  # type: ignore[no-untyped-def]
    """Add a hypothesis to arena[first:last] unless it is there or is not live; the new end, or FULL."""
    hope = False
    for word in range(ends.shape[1]):
        if ends[state, word] & taken[stack, word] != 0:
            hope = True
    if not hope:
        return last
    for k in range(first, last):
        if arena[k, 0] == state and arena[k, 1] == stack:
            return last
    if last >= len(arena):
        return np.int64(FULL)
    arena[last, 0] = state
    arena[last, 1] = stack
    return last + 1


@kernel
def end_lexeme_kernel(lex, stacks, arena, first, last, state, stack):  # type: ignore[no-untyped-def]
    """Add to arena[first:last] what follows if the lexeme ends in the labelled `state`; the new end, or FULL."""
    after = shift_kernel(stacks, stack, lex.labels[state])
    if after < 0:
        return last if after == REFUSED else np.int64(FULL)
    if not taken_kernel(stacks, after):
        return np.int64(FULL)
    begin = lex.starts[lex.residues[state], stacks.contexts[stacks.tops[after]]]
    return add_kernel(lex.ends, stacks.taken, arena, first, last, begin, after)


@kernel
def step_kernel(lex, stacks, arena, first, last, column):  # type: ignore[no-untyped-def]
    """Move the hypotheses arena[first:last] by a byte of class `column`; write what is left from `last` on.

    Returns its end, or FULL. Each hypothesis is compared with all that were written, which is paid for where they are
    many.
    """
    transitions, labels, ends, taken = lex.transitions, lex.labels, lex.ends, stacks.taken
    end, compared = np.int64(last), np.int64(0)
    for k in range(first, last):
        compared += end - last
        if compared > PAID_COMPARISONS:
            pay(compared)
            compared = np.int64(0)
        state = transitions[arena[k, 0], column]
        if state < 0:
            continue
        stack = np.int64(arena[k, 1])
        end = add_kernel(ends, taken, arena, last, end, state, stack)
        if end != FULL and labels[state] >= 0:
            end = end_lexeme_kernel(lex, stacks, arena, last, end, state, stack)
        if end == FULL:
            break
    return end


@kernel
def _run_kernel(lex, stacks, arena, members, data, begin, end):  # type: ignore[no-untyped-def]
    """Move `members` by data[begin:end]. Returns where in `arena` the result lies, or (FULL, FULL)."""
    first, last = np.int64(0), np.int64(len(members))
    for k in range(last):
        arena[k] = members[k]
    for place in range(begin, end):
        after = step_kernel(lex, stacks, arena, first, last, lex.byte_class[data[place]])
        if after == FULL:
            return np.int64(FULL), np.int64(FULL)
        first, last = last, after
        if first == last:
            break
    return first, last
