"""The machine of one compiled constraint: its program, and the stacks and rows made so far.

Row 0 is the one before the first byte. Rows are named by numbers, and nothing is ever dropped while a machine lives: a
constraint whose machine has become too large (`max_bytes`) starts a new one, see
`tokdfa.backends.pushdown_trie.strategy`.

Not thread-safe: whoever asks holds the lock of the pool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.backends.pushdown_trie.bound_program import BoundProgram
from tokdfa.backends.pushdown_trie.rows import ROOT, ROW_PLACE, ROW_TOKENS
from tokdfa.backends.pushdown_trie.steps import Steps
from tokdfa.backends.situation_source import MOST_WAYPOINTS
from tokdfa.core.budget import spend
from tokdfa.program.program import (
    CALL,
    COUNTED,
    FIRST,
    NAMES,
    NAMES_LOW,
    NAMES_OTHER,
    NAMES_TARGETS,
    OPERATION,
    RETURN_PLACE,
    SECOND,
    TERMINAL,
    TOKEN,
)

if TYPE_CHECKING:
    from tokdfa.backends.pushdown_trie.pool import Pool
    from tokdfa.program.builder import Program

    Int32 = npt.NDArray[np.int32]

#: What counts for `Machine.waypoints`, in ns: an item, a place after it or an entry of its stack; a waypoint; a name.
END_WORK, WAYPOINT_WORK, NAME_WORK = 500, 8_000, 200


class Machine(Steps):
    """See the module's docstring, and for the limits and `first_bytes` `tokdfa.backends.pushdown_trie.rows.Rows`.

    `bound`: the program bound to the pool's automata, if that was asked already.
    """

    pool: Pool
    bound: BoundProgram

    def __init__(
        self,
        program: Program,
        pool: Pool,
        max_items: int = 200_000,
        max_bytes: int = 64 << 20,
        bound: BoundProgram | None = None,
        first_bytes: bool = True,
    ) -> None:
        #: Instruction that reads names -> the places after them, each once; None for more than MOST_WAYPOINTS.
        self._few_after_names: dict[int, list[int] | None] = {}
        with pool.lock:
            bound = bound or BoundProgram(program, pool.automata)
            super().__init__(bound, pool, max_items, max_bytes, first_bytes)

    @property
    def program(self) -> Program:
        """The program as it stands now."""
        return self.bound.program

    def forced_bytes(self, row: int, limit: int) -> bytes:
        """The bytes with which every completion goes on, up to `limit`: none where the text may end. O(256 x bytes)."""
        forced = bytearray()
        while len(forced) < limit and not self.can_end(row):
            following = self.following_rows(row)
            (alive,) = np.nonzero(following >= 0)
            if len(alive) != 1 or self.token_sets(row):
                break
            forced.append(alive[0])
            row = int(following[alive[0]])
        return bytes(forced)

    def token_sets(self, row: int) -> set[int]:
        """The sets of special tokens that may be taken in a row."""
        border = self.border(row)
        if border < 0 or not self.row_flags(border) & ROW_TOKENS:
            return set()
        places = [place for place, _, _ in self.items(border)]
        return {int(self.code[place, FIRST]) for place in places if self.code[place, OPERATION] == TOKEN}

    def take(self, row: int, token_sets: set[int]) -> int:
        """The row after a special token that is in these sets, or -1."""
        border = self.border(row)
        if border < 0:
            return -1
        following = [
            (int(self.code[place, SECOND]), 0, stack)
            for place, _, stack in self.items(border)
            if self.code[place, OPERATION] == TOKEN and int(self.code[place, FIRST]) in token_sets
        ]
        return self.make_row(following) if following else -1

    def waypoints(self, row: int, calls: bool) -> list[int]:
        """Rows of which every text that `row` takes passes one: where the instructions that are being read end, or with
        `calls` where the innermost calls return. None: that is not known, or is the end of the text, or they are more
        than MOST_WAYPOINTS. O(items); for an instruction that reads names O(names), once.
        """
        if self.row_kind(row)[1] >= 0:
            return []
        following: set[tuple[int, int]] = set()
        for place, _, stack in self.row_content(row):
            ends = self.stack(stack) if calls else [(end, stack) for end in self._few_after(place)]
            spend(END_WORK * (1 + len(ends)))
            following.update(ends)
            if not ends or len(following) > MOST_WAYPOINTS:
                return []
        if any(place == ROW_PLACE or (place == RETURN_PLACE and stack == ROOT) for place, stack in following):
            return []
        spend(WAYPOINT_WORK * len(following))
        return [self.make_row([(place, 0, stack)]) for place, stack in sorted(following)]

    def _few_after(self, place: int) -> list[int]:
        """`places_after`, each once; none if they are more than MOST_WAYPOINTS."""
        if self.code[place, OPERATION] != NAMES:
            return self.places_after(place)
        if place not in self._few_after_names:  # names may be many, and lead to one place
            named = self.named(place)
            spend(NAME_WORK * len(named))
            few = np.unique(named)
            self._few_after_names[place] = few.tolist() if len(few) <= MOST_WAYPOINTS else None
        found = self._few_after_names[place]
        return [] if found is None else [*found, *self.after_other(place)]

    def places_after(self, place: int) -> list[int]:
        """Where an instruction goes on once it has read; none if it only leads to others."""
        operation, _, second = self.code[place].tolist()
        if operation in (CALL, TERMINAL, TOKEN, COUNTED):
            return [second]
        return [*self.named(place).tolist(), *self.after_other(place)] if operation == NAMES else []

    def named(self, place: int) -> Int32:
        """Where an instruction that reads names goes on after each name of its window, which may be empty. A view."""
        first = int(self.code[place, FIRST])
        low, high, _, targets = self.arguments[first + NAMES_LOW : first + NAMES_TARGETS + 1].tolist()
        return self.arguments[targets : targets + max(0, high - low + 1)]

    def after_other(self, place: int) -> list[int]:
        """Where an instruction that reads names goes on after any other string."""
        other = int(self.arguments[self.code[place, FIRST] + NAMES_OTHER])
        return self.places_after(other) if other >= 0 else []

    def row_of_item(self, place: int, state: int) -> int:
        """The row of one item, with nothing to read behind its instruction."""
        return self.make_row([(place, state, ROOT)])

    def carry(self, other: Machine, row: int, moved: dict[int, int]) -> int:
        """The row of a machine of the same program, by its content; -1 if it has stacks that refer to themselves (left
        recursion) or to rows. O(items and entries of their stacks), and the same for rows that it falls back on.

        `moved`: where stacks of that machine are here; begun as ``{ROOT: ROOT}``, for all rows that are carried over.
        """
        self.follow_program()  # which the other machine may have seen grow
        middle, fallback = other.row_kind(row)
        if fallback >= 0:
            fallback = self.carry(other, fallback, moved)
            if fallback < 0:
                return -1
        core = other.row_content(row)
        if not all(self._carry_stack(other, stack, moved) for _, _, stack in core):
            return -1
        return self.make_row([(place, state, moved[stack]) for place, state, stack in core], middle, fallback)

    def _carry_stack(self, other: Machine, stack: int, moved: dict[int, int]) -> bool:
        """Put into `moved` where a stack of another machine is here, and those that it returns to; False if it returns
        to itself or to a row.
        """
        waiting, open_stacks = [stack], set[int]()
        while waiting:
            here = waiting[-1]
            if here in moved:
                waiting.pop()
                continue
            entries = other.stack(here)
            missing = [rest for place, rest in entries if rest not in moved]
            if any(place == ROW_PLACE for place, _ in entries) or not open_stacks.isdisjoint(missing):
                return False
            if missing:
                open_stacks.add(here)
                waiting += missing
                continue
            open_stacks.discard(here)
            moved[here] = self.make_stack([(place, moved[rest]) for place, rest in entries])
        return True
