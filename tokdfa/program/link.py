"""Linking: a program made by itself becomes a part of another, so that a schema is lowered once for many grammars.

The code is copied with its places moved; equal terminals and name tables are one. What the program writes when it is
first needed (LAZY) is written there, whoever needs it first, and then copied here: so a place is where `_Linked.place`
says, which knows the stretches that were copied.

Cost: about 1 us an instruction, for those that are written.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.core.budget import spend
from tokdfa.program.program import (
    ANY,
    CALL,
    COUNTED,
    COUNTED_BEYOND,
    COUNTED_NEXT,
    COUNTED_TERMINAL,
    FIRST,
    LAZY,
    NAMES,
    NAMES_HIGH,
    NAMES_LOW,
    NAMES_OTHER,
    NAMES_TABLE,
    NAMES_TARGETS,
    OPERATION,
    SECOND,
    TERMINAL,
    TOKEN,
)

if TYPE_CHECKING:
    from tokdfa.program.builder import Program, ProgramBuilder

Int32 = npt.NDArray[np.int32]

#: What it takes to copy an instruction, and what it holds.
NS_PER_INSTRUCTION, BYTES_PER_INSTRUCTION = 1_000, 24


def link(builder: ProgramBuilder, program: Program) -> int:
    """Where a frame of `builder` begins that reads what `program` reads, which is not for the longest match."""
    return _Linked(builder, program).place(program.start)


class _Linked:
    """A program in another. `begins`, `moves`: from which place of it on places are moved, and how far."""

    def __init__(self, builder: ProgramBuilder, program: Program) -> None:
        assert program.skip < 0, "a schema skips nothing"
        self.builder, self.program, self.source = builder, program, program.source
        self.begins, self.moves = [0, 1], [0, 0]  # RETURN stays where it is
        #: Numbers there -> numbers here.
        self.terminals: list[int] = []
        self.tables: list[int] = []
        self.tokens: list[int] = []
        self.frames = np.zeros(0, dtype=np.int32)
        self.copied = 1
        with self.source.lock:
            self.copy()

    def place(self, place: int) -> int:
        """Where a place of the program is here."""
        return int(self.places(np.array([place], dtype=np.int32))[0])

    def places(self, places: Int32) -> Int32:
        """Where places are; -1 stays -1."""
        stretch = np.searchsorted(self.begins, places, side="right") - 1
        return np.where(places > 0, places + np.array(self.moves, dtype=np.int32)[stretch], places).astype(np.int32)

    def copy(self) -> None:
        """Copy what is not copied yet."""
        builder, code = self.builder, self.source
        rows = np.array(code.code, dtype=np.int32).reshape(-1, 3)
        spend(NS_PER_INSTRUCTION * (len(rows) - self.copied), BYTES_PER_INSTRUCTION * (len(rows) - self.copied))
        self.terminals += map(builder.terminal, code.terminals[len(self.terminals) :])
        for table in code.name_tables[len(self.tables) :]:
            self.tables.append(builder.name_table(table.names, table.escapes))
        for tokens in code.token_sets[len(self.tokens) :]:
            if tokens not in builder.token_sets:
                builder.token_sets.append(tokens)
            self.tokens.append(builder.token_sets.index(tokens))
        move = len(builder.code) // 3 - self.copied
        self.begins.append(self.copied)
        self.moves.append(move)
        self.move_rows(rows)
        for frame, entry in zip(self.frames.tolist(), self.places(np.array(code.entries, dtype=np.int32)), strict=True):
            builder.entries[frame] = entry
        self.copied = len(rows)

    def move_rows(self, rows: Int32) -> None:
        """Append `rows` from `copied` on to the builder, with all that they name."""
        builder, code, known = self.builder, self.source, len(self.frames)
        new_frames = [builder.frame(name) for name in code.frame_names[known:]]
        self.frames = np.concatenate([self.frames, np.array(new_frames, dtype=np.int32)])
        alternatives = np.array(code.alternatives, dtype=np.int32)
        arguments = np.array(code.arguments, dtype=np.int32)
        made = rows[self.copied :].copy()
        operation = made[:, OPERATION]

        def of(kind: int) -> npt.NDArray[np.intp]:
            found: npt.NDArray[np.intp] = np.flatnonzero(operation == kind)
            return found

        for kind, numbers in ((TERMINAL, self.terminals), (TOKEN, self.tokens), (CALL, self.frames)):
            chosen = of(kind)
            if len(chosen):
                made[chosen, FIRST] = np.array(numbers, dtype=np.int32)[made[chosen, FIRST]]
            made[chosen, SECOND] = self.places(made[chosen, SECOND])
        for place in of(ANY):
            begin, end = made[place, FIRST : SECOND + 1]
            made[place, FIRST] = len(builder.alternatives)
            builder.alternatives.extend(self.places(alternatives[begin:end]).tolist())
            made[place, SECOND] = len(builder.alternatives)
        counted, names = of(COUNTED), of(NAMES)
        made[counted, SECOND] = self.places(made[counted, SECOND])
        self.move_arguments(arguments, made, counted, names)
        if len(of(LAZY)):
            ours, theirs = self.source.spelled_by, builder.spelled_by if builder.makes else b""
            builder.spelled_by = None if ours is None or theirs is None else bytes({*ours, *theirs})
        for place in of(LAZY):
            builder.makes.append(partial(self.write, int(place) + self.copied))
            made[place, FIRST], made[place, SECOND] = len(builder.makes) - 1, 0
        builder.code.extend(made.ravel().tolist())

    def move_arguments(
        self, arguments: Int32, made: Int32, counted: npt.NDArray[np.intp], names: npt.NDArray[np.intp]
    ) -> None:
        """Append copies of the arguments of some instructions; windows of one list of targets keep sharing it."""
        if not len(counted) + len(names):
            return
        is_moved, is_target = np.zeros((2, len(arguments)), dtype=np.bool_)
        at = made[names, FIRST]
        for first in at.tolist():
            low, high, targets = (int(arguments[first + k]) for k in (NAMES_LOW, NAMES_HIGH, NAMES_TARGETS))
            is_moved[first : first + NAMES_TARGETS + 1] = True
            is_target[targets : targets + max(high - low + 1, 0)] = True
        for first in made[counted, FIRST].tolist():
            is_moved[first : first + COUNTED_BEYOND + 1] = True
        begin = int(np.flatnonzero(is_moved | is_target)[0])
        moved, move = arguments.copy(), len(self.builder.arguments) - begin
        moved[is_target] = self.places(arguments[is_target])
        for column in (COUNTED_TERMINAL, COUNTED_NEXT):
            moved[made[counted, FIRST] + column] = self.places(arguments[made[counted, FIRST] + column])
        if len(at):
            moved[at + NAMES_TABLE] = np.array(self.tables, dtype=np.int32)[arguments[at + NAMES_TABLE]]
            moved[at + NAMES_OTHER] = self.places(arguments[at + NAMES_OTHER])
            moved[at + NAMES_TARGETS] += move
        self.builder.arguments.extend(moved[begin:].tolist())
        made[counted, FIRST] += move
        made[names, FIRST] += move

    def write(self, place: int) -> int:
        """Write what is LAZY at a place of the program, and copy it: the place here to go on at."""
        source = self.source
        with source.lock:
            source.write(place)
            self.copy()
            target = source.alternatives[source.code[3 * place + FIRST]]
        return self.place(target)
