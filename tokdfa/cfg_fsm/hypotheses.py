"""Lexer and parser together: hypotheses, and the situations that are sets of them.

A byte moves each hypothesis (lexer state, stack). Where the new lexer state is labelled, the lexeme may end: the label
is shifted, and a second hypothesis begins the next lexeme in the new stack's context, with the residue as obligations.
A hypothesis whose lexer state cannot end in anything that its stack takes is dropped at once.

A text may end where one of its hypotheses is at the beginning of a lexeme and the parser takes the end.

Situations are numbered: a sorted list of hypotheses is looked up by its bytes. So a matcher's state is one number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.cfg_fsm.stacks import FULL, REFUSED, shift_kernel, taken_kernel
from tokdfa.errors import LimitExceeded
from tokdfa.jit import kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.cfg_fsm.contextual import Contextual
    from tokdfa.cfg_fsm.stacks import Stacks

#: Hypotheses that one text may leave open, summed over the bytes of one token.
MAX_HYPOTHESES = 1 << 20


class LexArrays(NamedTuple):
    """`Contextual` for kernels; see there."""

    transitions: npt.NDArray[np.int32]
    byte_class: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.int32]
    residues: npt.NDArray[np.int32]
    ends: npt.NDArray[np.uint64]
    starts: npt.NDArray[np.int32]


class Hypotheses:
    """Situations of one grammar. Situation 0 is the beginning. Not thread-safe.

    `arena`: int32, shape (room, 2): the hypotheses that a kernel is working on.
    """

    def __init__(self, lexer: Contextual, stacks: Stacks, max_situations: int) -> None:
        self.lexer, self.stacks, self.max_situations = lexer, stacks, max_situations
        self.lex = LexArrays(
            lexer.transitions, lexer.byte_class, lexer.labels, lexer.residues, lexer.ends, lexer.starts
        )
        self.arena: npt.NDArray[np.int32] = np.zeros((256, 2), dtype=np.int32)
        self._numbers: dict[bytes, int] = {}
        #: By situation: int32, shape (count, 2).
        self.members: list[npt.NDArray[np.int32]] = []
        self._ends: list[bool] = []
        self.intern(np.array([[lexer.starts[0, stacks.context(0)], 0]], dtype=np.int32))

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
            self._numbers[key] = number
            self.members.append(np.frombuffer(key, dtype=np.int32).reshape(-1, 2))
            self._ends.append(self._may_end(number))
        return number

    def _may_end(self, situation: int) -> bool:
        end = self.lexer.end_label
        ends = self.lex.ends[self.members[situation][:, 0], end >> 6].tolist()
        stacks = self.members[situation][:, 1].tolist()
        return any(
            bits >> (end & 63) & 1 and self.stacks.takes(stack, end) for bits, stack in zip(ends, stacks, strict=True)
        )

    def can_end(self, situation: int) -> bool:
        """Whether the text may end in a situation."""
        return self._ends[situation]

    def run(self, situation: int, data: npt.NDArray[np.uint8], begin: int, end: int) -> npt.NDArray[np.int32]:
        """The hypotheses after ``data[begin:end]``: int32, shape (count, 2), empty if none is left."""
        members = self.members[situation]
        while True:
            if len(members) > len(self.arena):
                self.grow()
                continue
            first, last = _run_kernel(
                self.lex, self.stacks.parse, self.stacks.arrays, self.arena, members, data, begin, end
            )
            if first >= 0:
                return self.arena[first:last].copy()
            self.grow()

    def grow(self) -> None:
        """Make room after a kernel has found an array full: for stacks if there is none left, or for hypotheses."""
        if self.stacks.count == len(self.stacks.arrays.tops):
            self.stacks.grow()
            return
        if len(self.arena) >= MAX_HYPOTHESES:
            raise LimitExceeded(
                f"one token leaves more than {MAX_HYPOTHESES} readings of the text open; the terminals overlap too much",
                limit="hypotheses",
                value=MAX_HYPOTHESES,
            )
        self.arena = np.concatenate([self.arena, np.zeros_like(self.arena)])


@kernel
def _add_kernel(lex, parse, stacks, arena, first, last, state, stack):  # type: ignore[no-untyped-def]
    """Add a hypothesis to arena[first:last] unless it is there or cannot be completed; the new end, or FULL."""
    taken_kernel(parse, stacks, stack)
    hope = False
    for word in range(lex.ends.shape[1]):
        if lex.ends[state, word] & stacks.taken[stack, word] != 0:
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
def step_kernel(lex, parse, stacks, arena, first, last, byte):  # type: ignore[no-untyped-def]
    """Move the hypotheses arena[first:last] by a byte; write what is left from `last` on. Its end, or FULL."""
    column = lex.byte_class[byte]
    end = np.int64(last)
    for k in range(first, last):
        state = lex.transitions[arena[k, 0], column]
        if state < 0:
            continue
        stack = np.int64(arena[k, 1])
        end = _add_kernel(lex, parse, stacks, arena, last, end, state, stack)
        if end == FULL:
            return end
        label = lex.labels[state]
        if label >= 0:
            after = shift_kernel(parse, stacks, stack, label)
            if after == FULL:
                return np.int64(FULL)
            if after != REFUSED:
                begin = lex.starts[lex.residues[state], parse.contexts[stacks.tops[after]]]
                end = _add_kernel(lex, parse, stacks, arena, last, end, begin, after)
                if end == FULL:
                    return end
    return end


@kernel
def _run_kernel(lex, parse, stacks, arena, members, data, begin, end):  # type: ignore[no-untyped-def]
    """Move `members` by data[begin:end]. Returns where in `arena` the result lies, or (FULL, FULL)."""
    first, last = np.int64(0), np.int64(len(members))
    arena[:last] = members
    for place in range(begin, end):
        after = step_kernel(lex, parse, stacks, arena, first, last, data[place])
        if after == FULL:
            return np.int64(FULL), np.int64(FULL)
        first, last = last, after
        if first == last:
            break
    return first, last
