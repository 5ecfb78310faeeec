"""The machine of one compiled constraint: its program, and the stacks and rows made so far.

Row 0 is the one before the first byte. Rows are named by numbers, and nothing is ever dropped while a machine lives: a
constraint whose machine has become too large (`max_bytes`) starts a new one, see
`tokdfa.backends.pushdown_trie.strategy`.

Not thread-safe: every method that may make something holds the lock of the pool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokdfa.backends.pushdown_trie import arrays as a
from tokdfa.backends.pushdown_trie.arrays import NEEDS_STACKS, OK, machine_at
from tokdfa.backends.pushdown_trie.bound_program import BoundProgram
from tokdfa.backends.pushdown_trie.closure import close_row
from tokdfa.backends.pushdown_trie.items import clip_row_kernel
from tokdfa.backends.pushdown_trie.machine_tables import MachineTables
from tokdfa.backends.pushdown_trie.rows import (
    BIAS,
    ROW_ACCEPTS,
    ROW_COUNTED,
    ROW_MIDDLE,
    ROW_TOKENS,
    add_found,
    intern_row,
)
from tokdfa.backends.pushdown_trie.stacks import ROOT, ROW_PLACE, pack_entry
from tokdfa.backends.pushdown_trie.steps import border_of, run_kernel, step_all_kernel, walk_rows_kernel
from tokdfa.backends.situation_source import MOST_WAYPOINTS
from tokdfa.core.budget import spend
from tokdfa.core.interning import intern
from tokdfa.core.jit import kernel
from tokdfa.errors import LimitExceeded
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
    from collections.abc import Callable

    from tokdfa.backends.pushdown_trie.pool import Pool
    from tokdfa.program.program import Program
    from tokdfa.vocabulary.trie import TokenTrie

    Int32 = npt.NDArray[np.int32]

#: What `Machine.supply` counts as, besides what it does, in ns: the kernel is called again from its start.
SUPPLY_WORK = 20_000
#: What an item counts as that a closure meets, in ns.
ITEM_WORK = 10
#: What counts for `Machine.waypoints`, in ns: an item, a place after it or an entry of its stack; a waypoint; a name.
END_WORK, WAYPOINT_WORK, NAME_WORK = 500, 8_000, 200


class Machine(MachineTables):
    """See the module's docstring, and for the limits and `first_bytes` `MachineTables`.

    `bound`: the program bound to the pool's automata, if that was asked already. `slices`: partitions that are missing
    are made with their help.
    """

    def __init__(
        self,
        program: Program,
        pool: Pool,
        max_items: int = 200_000,
        max_bytes: int = 64 << 20,
        bound: BoundProgram | None = None,
        first_bytes: bool = True,
        slices: bool = True,
    ) -> None:
        self.pool, self.slices = pool, slices
        with pool.lock:
            bound = bound or BoundProgram(program, pool.automata)
            super().__init__(bound, pool.spare_tables, max_items, max_bytes, first_bytes)
            #: Instruction that reads names -> the places after them, each once; None for more than MOST_WAYPOINTS.
            self._few_after_names: dict[int, list[int] | None] = {}
            if _begin_kernel(program.start, self.arrays.address) != OK:
                raise AssertionError("a machine without rows has no room for its first one")

    @property
    def program(self) -> Program:
        """The program as it stands now."""
        return self.bound.program

    def run(self, row: int, data: npt.NDArray[np.uint8], begin: int, end: int) -> int:
        """The row after the bytes ``data[begin:end]``, or -1. O(bytes) where they were read before."""
        while True:
            found = int(run_kernel(row, data, begin, end, self.arrays.address, self.pool.arrays.address))
            if found > -10:
                return found
            self.supply(-10 - found)

    def step(self, row: int, byte: int) -> int:
        """The row after a byte, or -1."""
        return self.run(row, np.array([byte], dtype=np.uint8), 0, 1)

    def run_text(self, text: bytes, row: int = 0) -> int:
        """The row after a text, or -1."""
        return self.run(row, np.frombuffer(text, dtype=np.uint8), 0, len(text))

    def targets(self, row: int, trie: TokenTrie) -> npt.NDArray[np.int32]:
        """int32, shape (V,): the row after each token, -1 where a token is not allowed. Special tokens are not.

        One walk over the token trie, 0.5 to 2 ms for Llama 3.
        """
        rows = np.empty(trie.depth_limit + 2, dtype=np.int32)
        found = np.full(trie.size + 1, -1, dtype=np.int32)
        self._ask(walk_rows_kernel, trie.nodes, row, rows, found)
        return found[:-1]

    def following_rows(self, row: int) -> npt.NDArray[np.int32]:
        """The rows after each byte, -1 where it is refused: int32, shape (256,)."""
        self._ask(step_all_kernel, row)
        return self.transitions[row * 256 : row * 256 + 256] - np.int32(BIAS)

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

    def border(self, row: int) -> int:
        """See `border_of`."""
        return self._ask(border_of, row)

    def _ask(self, kernel: Callable[..., Any], *given: Any) -> int:
        """What a kernel finds that answers a status, or (status, what it finds), when all that it asks for is there."""
        while True:
            answer = kernel(*given, self.arrays, self.pool.arrays)
            status, found = answer if isinstance(answer, tuple) else (answer, 0)
            if status == a.OK:
                return int(found)
            self.supply(status)

    def can_end(self, row: int) -> bool:
        """Whether the text so far is complete."""
        border = self.border(row)
        return border >= 0 and bool(self.row_flags[border] & ROW_ACCEPTS)

    def close(self, row: int) -> None:
        """Make sure that a row's live items are known."""
        self._ask(close_row, row)

    def items(self, row: int) -> list[tuple[int, int, int]]:
        """(place, state, stack) of each live item of a row."""
        self.close(row)
        packed = self.live_items[self.live_begin[row] : self.live_end[row]].tolist()
        return [(item >> a.PLACE_SHIFT, item >> a.STACK_BITS & a.STATE_MASK, item & a.STACK_MASK) for item in packed]

    def stack(self, number: int) -> list[tuple[int, int]]:
        """(place to return to, rest) of each entry of a stack."""
        return [(entry >> 32, entry & 0xFFFFFFFF) for entry in self.stacks.content(number).tolist()]

    def token_sets(self, row: int) -> set[int]:
        """The sets of special tokens that may be taken in a row."""
        border = self.border(row)
        if border < 0 or not self.row_flags[border] & ROW_TOKENS:
            return set()
        places = [place for place, _, _ in self.items(border)]
        return {int(self.code[place, FIRST]) for place in places if self.code[place, OPERATION] == TOKEN}

    def representative(self, row: int) -> int:
        """A row with the same mask as `row`: the one in which counts of characters say no more than a mask depends on.

        O(items). Rows without counted strings represent themselves.
        """
        if not self.flags[row] & ROW_COUNTED:
            return row
        levels = self.pool.lengths.levels
        while (found := int(clip_row_kernel(row, *levels, self.arrays.address, self.pool.arrays.address))) < 0:
            self.supply(-found)
        return found

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
        return self._intern(following) if following else -1

    def waypoints(self, row: int, calls: bool) -> list[int]:
        """Rows of which every text that `row` takes passes one: where the instructions that are being read end, or with
        `calls` where the innermost calls return. None: that is not known, or is the end of the text, or they are more
        than MOST_WAYPOINTS. O(items); for an instruction that reads names O(names), once.
        """
        if self.row_fallback[row] >= 0:
            return []
        following: set[tuple[int, int]] = set()
        for item in self.rows.content(row)[:-1].tolist():
            place, stack = item >> a.PLACE_SHIFT, item & a.STACK_MASK
            ends = self.stack(stack) if calls else [(end, stack) for end in self._few_after(place)]
            spend(END_WORK * (1 + len(ends)))
            following.update(ends)
            if not ends or len(following) > MOST_WAYPOINTS:
                return []
        if any(place == ROW_PLACE or (place == RETURN_PLACE and stack == ROOT) for place, stack in following):
            return []
        spend(WAYPOINT_WORK * len(following))
        return [self._intern([(place, 0, stack)]) for place, stack in sorted(following)]

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
        return self._intern([(place, state, ROOT)])

    def carry(self, other: Machine, row: int, moved: dict[int, int]) -> int:
        """The row of a machine of the same program, by its content; -1 if it has stacks that refer to themselves (left
        recursion) or to rows. O(items and entries of their stacks), and the same for rows that it falls back on.

        `moved`: where stacks of that machine are here; begun as ``{ROOT: ROOT}``, for all rows that are carried over.
        """
        *core, kind = other.rows.content(row).tolist()
        fallback = kind >> 8
        if fallback >= 0:
            fallback = self.carry(other, fallback, moved)
            if fallback < 0:
                return -1
        stacks = [item & a.STACK_MASK for item in core]
        if not all(self._carry_stack(other, stack, moved) for stack in stacks):
            return -1
        self._gather()
        places = [(item >> a.PLACE_SHIFT, item >> a.STACK_BITS & a.STATE_MASK) for item in core]
        items = [(*place, moved[stack]) for place, stack in zip(places, stacks, strict=True)]
        return self._intern(items, kind & ROW_MIDDLE != 0, fallback)

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
            moved[here] = self.stacks.intern(sorted({place << 32 | moved[rest] for place, rest in entries}))
        return True

    def _intern(self, following: list[tuple[int, int, int]], middle: bool = False, fallback: int = -1) -> int:
        """The row of these items: places, states, stacks; `middle`, `fallback`: as `intern_row` has them."""

        def intern(machine: Any, _: Any) -> Any:
            count = 0
            for place, state, stack in following:
                count = add_found(place, state, stack, count, machine)
                if count < 0:
                    return a.NEEDS_SCRATCH
            return intern_row(count, middle, fallback, machine)

        return self._ask(intern)

    def supply(self, status: int) -> None:
        """Do what a kernel asked for. Raises LimitExceeded or MachineFull."""
        spend(SUPPLY_WORK)
        try:
            self._supply(status)
        except BaseException:  # a KeyboardInterrupt comes anywhere, between arrays that belong together, too
            self.settle()
            raise

    def _supply(self, status: int) -> None:
        if status == a.NEEDS_BUDGET:
            met, self.counts[a.M_MET] = self.counts[a.M_MET], 0
            spend(met * ITEM_WORK)
        elif status == a.NEEDS_POOL:
            self.pool.automata.fill_rows([int(self.meta[a.M_STATE])])
        elif status == a.NEEDS_PARTITION:
            below = int(self.meta[a.M_PLACE])
            self.pool.divide(
                below, int(self.meta[a.M_STATE]), self.slices, below != 0 or bool(self.meta[a.M_STATE] & a.OWN)
            )
        elif status == a.NEEDS_CODE:  # another machine may have had it written
            self.bound.write(int(self.meta[a.M_PLACE]))
            self.follow_program()
        elif status == a.NEEDS_CHAIN:
            most = len(self.pool.walk.chain)
            raise LimitExceeded(
                f"the text may be cut into lexemes in more than {most} ways at once, because terminals that"
                " have matched may yet match more; make them end sooner, or use lexer=any",
                limit="max_chain",
                value=most,
            )
        else:
            self.grow(status)


@kernel
def _begin_kernel(start, address):  # type: ignore[no-untyped-def]
    """Make the stack of nothing but the end, and row 0, in which nothing is read; a status."""
    machine = machine_at(address)
    machine.found[0] = pack_entry(RETURN_PLACE, ROOT)
    if intern(machine.found, 0, 1, machine.stacks) != ROOT:
        return np.int64(NEEDS_STACKS)
    status, _ = intern_row(add_found(start, 0, ROOT, 0, machine), False, -1, machine)
    return np.int64(status)
