r"""A pre-tokenizer's pattern as a program of a backtracking matcher, and what succeeds from every point of it.

The program. An instruction reads a character of a set, splits into two ways of which the first is tried first, enters
or leaves an atomic group, looks ahead, tests for the end of the text, or ends the match (K. Thompson, CACM 11, 1968; R.
Cox, "Regular Expression Matching: the Virtual Machine Approach", 2009). A backtracking engine takes the first way that
leads to the end of the match; so what it does at a split depends only on which ways *can* succeed on the rest of the
text.

The vector. For a position of a text, let the *vector* say for each instruction how many levels of matching succeed from
it on the rest of the text. Outside atomic groups there is one level, the match itself. In a group of depth d there are
d + 1: the innermost group's body completes, then (the group having committed to the first way its body completed) what
follows it in the group around, and so on outwards. At least one level succeeds iff the body can be completed, and that
is what the engine's choice inside the group depends on; the others say what the choice leads to. Each instruction is a
plain rule:

========  ==================================================================================
match     1
read      that of the next instruction, at the position to the right, if the set holds the character; else 0
split     that of the first way if it is not 0, else that of the second
enter     one less than that of the body (0 stays 0)
leave     one more than that of what follows
look      that of what follows if the body succeeds (or fails, if negative), else 0
end       that of what follows at the end of the text, else 0
========  ==================================================================================

Hence the vector at a position follows from the class of its character and the vector one position to the right. There
are finitely many; we list them from the end of the text on, whose vector is number 0 (a vector of its own even if it
equals another). Look-ahead of any length is thereby a matter of one step. This is the construction of an automaton for
regular look-ahead that runs from the right, as compilers of transducers use it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tokdfa.errors import LimitExceeded
from tokdfa.regex.library_parser import source_sets
from tokdfa.regex.syntax_tree import (
    Alternation,
    Assertion,
    Atomic,
    Concat,
    Empty,
    LookAhead,
    Node,
    Repeat,
    SourceSet,
)

#: Patterns in use have up to 90 instructions and 80 vectors.
INSTRUCTION_LIMIT = 2_000
VECTOR_LIMIT = 4_000
#: How many levels are computed at once, one byte each.
_CELLS = 1 << 24
#: The vector of the end of the text.
AT_END = 0


class Op(IntEnum):
    """What an instruction does."""

    MATCH = 0
    READ = 1
    SPLIT = 2
    ENTER = 3
    LEAVE = 4
    LOOK = 5
    END = 6


@dataclass(frozen=True)
class Instruction:
    """`first`: what comes next, the preferred way, or the body; `second`: the other way, or what follows a look-ahead.

    `argument`: the number of the character set of a READ; 1 for a negative LOOK.
    """

    op: Op
    first: int = -1
    second: int = -1
    argument: int = 0


@dataclass
class PatternProgram:
    """Instructions, the number of the first, and the character sets that READ refers to."""

    sets: list[SourceSet]
    instructions: list[Instruction] = field(default_factory=list)
    start: int = -1

    def silent_order(self) -> list[int]:
        """All instructions but READ and MATCH, each after those that it leads to without reading.

        There is such an order, since no repeated part can be empty.
        """
        order: list[int] = []
        seen = [step.op in {Op.READ, Op.MATCH} for step in self.instructions]
        for root in range(len(self.instructions)):
            path = [root]
            while path:
                step = self.instructions[path[-1]]
                waiting = [target for target in (step.first, step.second) if target >= 0 and not seen[target]]
                if seen[path[-1]]:
                    path.pop()
                elif waiting:
                    path.append(waiting[-1])
                else:
                    seen[path[-1]] = True
                    order.append(path.pop())
        return order


@dataclass(frozen=True)
class Vectors:
    """All vectors of a program.

    `levels`: uint8, shape (instructions, vectors), the levels that succeed. `before`: int32, shape (classes, vectors):
    the vector at a position whose character is of the class, given the vector one position to the right.
    """

    levels: npt.NDArray[np.uint8]
    before: npt.NDArray[np.int32]


def compile_pattern(tree: Node) -> PatternProgram:
    """The program of a pattern. Linear in the expanded pattern; LimitExceeded past INSTRUCTION_LIMIT."""
    program = PatternProgram(source_sets(tree))
    compiler = _Compiler(program)
    program.start = compiler.compile(tree, compiler.add(Op.MATCH))
    return program


def list_vectors(program: PatternProgram, holds: npt.NDArray[np.bool_]) -> Vectors:
    """All vectors, breadth-first from the end of the text. `holds`: bool, (sets, classes): which sets hold which.

    O(vectors x classes x instructions), in numpy; LimitExceeded past VECTOR_LIMIT vectors.
    """
    classes = holds.shape[1]
    order = program.silent_order()
    size = len(program.instructions)
    at_end = np.zeros((size, 1), dtype=np.uint8)
    _evaluate(program, order, at_end, end_of_text=True)
    numbers: dict[bytes, int] = {}
    known = [at_end[:, 0]]
    before: list[list[int]] = []
    width = max(1, _CELLS // (size * classes))
    while len(before) < len(known):
        ahead = np.stack(known[len(before) : len(before) + width], axis=1)
        found = np.zeros((size, ahead.shape[1], classes), dtype=np.uint8)
        for place, step in enumerate(program.instructions):
            if step.op == Op.READ:
                found[place] = ahead[step.first][:, None] * holds[step.argument]
        _evaluate(program, order, found, end_of_text=False)
        for by_class in np.ascontiguousarray(found.transpose(1, 2, 0)):
            row = [numbers.setdefault(levels.tobytes(), len(numbers) + 1) for levels in by_class]
            for number, levels in zip(row, by_class, strict=True):
                if number == len(known):
                    known.append(levels.copy())
            before.append(row)
        if len(known) > VECTOR_LIMIT:
            raise LimitExceeded(
                f"the pattern has more than {VECTOR_LIMIT} vectors of what can succeed; its look-ahead is too complex",
                limit="vectors",
                value=VECTOR_LIMIT,
            )
    return Vectors(np.stack(known, axis=1), np.ascontiguousarray(np.array(before, dtype=np.int32).T))


def _evaluate(program: PatternProgram, order: list[int], levels: npt.NDArray[np.uint8], *, end_of_text: bool) -> None:
    """Fill in all instructions but READ, by the rules of the module's docstring. `levels`: (instructions, ...)."""
    for place, step in enumerate(program.instructions):
        if step.op == Op.MATCH:
            levels[place] = 1
    for place in order:
        step = program.instructions[place]
        ahead = levels[step.first] if step.first >= 0 else levels[place]
        match step.op:
            case Op.SPLIT:
                levels[place] = np.where(ahead > 0, ahead, levels[step.second])
            case Op.ENTER:
                levels[place] = np.where(ahead > 0, ahead - 1, 0)
            case Op.LEAVE:
                levels[place] = ahead + 1
            case Op.LOOK:
                levels[place] = levels[step.second] * ((ahead > 0) != bool(step.argument))
            case Op.END:
                levels[place] = ahead if end_of_text else 0


class _Compiler:
    """Adds instructions, each part of the tree after what follows it, so that its continuation is known."""

    def __init__(self, program: PatternProgram) -> None:
        self.program = program
        self.set_numbers = {(wanted.origin, wanted.source): n for n, wanted in enumerate(program.sets)}

    def add(self, op: Op, first: int = -1, second: int = -1, argument: int = 0) -> int:
        instructions = self.program.instructions
        if len(instructions) == INSTRUCTION_LIMIT:
            raise LimitExceeded(
                f"the pattern has more than {INSTRUCTION_LIMIT} instructions; shorten its counted repeats",
                limit="instructions",
                value=INSTRUCTION_LIMIT,
            )
        instructions.append(Instruction(op, first, second, argument))
        return len(instructions) - 1

    def compile(self, node: Node, following: int) -> int:
        """The number of the first instruction of `node`, after which comes `following`."""
        match node:
            case SourceSet(origin, source):
                return self.add(Op.READ, following, argument=self.set_numbers[origin, source])
            case Empty():
                return following
            case Concat(parts):
                for part in reversed(parts):
                    following = self.compile(part, following)
                return following
            case Alternation(options):
                entry = self.compile(options[-1], following)
                for option in reversed(options[:-1]):
                    entry = self.add(Op.SPLIT, self.compile(option, following), entry)
                return entry
            case Repeat():
                return self.repeat(node, following)
            case Atomic(body):
                return self.add(Op.ENTER, self.compile(body, self.add(Op.LEAVE, following)))
            case LookAhead(body, negative):
                return self.add(Op.LOOK, self.compile(body, self.add(Op.MATCH)), following, int(negative))
            case Assertion("text_end"):
                return self.add(Op.END, following)
        raise AssertionError(node)

    def repeat(self, node: Repeat, following: int) -> int:
        entry, needed = following, node.low
        if node.high is None:
            loop = self.add(Op.SPLIT)
            body = self.compile(node.body, loop)
            self.program.instructions[loop] = Instruction(Op.SPLIT, *self.ways(node, body, following))
            entry, needed = (loop, 0) if needed == 0 else (body, needed - 1)
        else:
            for _ in range(node.high - node.low):
                entry = self.add(Op.SPLIT, *self.ways(node, self.compile(node.body, entry), following))
        for _ in range(needed):
            entry = self.compile(node.body, entry)
        return entry

    def ways(self, node: Repeat, once_more: int, enough: int) -> tuple[int, int]:
        return (enough, once_more) if node.lazy else (once_more, enough)
