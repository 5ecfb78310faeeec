"""The machine of one compiled constraint: its program, and the stacks and rows made so far.

Row 0 is the one before the first byte. Rows are named by numbers, and nothing is ever dropped while a machine lives: a
constraint whose machine has become too large (`max_bytes`) starts a new one, see `tokdfa.backends.pushdown_trie`.

Not thread-safe: every method that may make something holds the lock of the pool.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokdfa.budget import hold, spend
from tokdfa.core.interning import WANTED_ENTRIES, Column, InterningTable, Limit, grow_together
from tokdfa.errors import LimitExceeded
from tokdfa.pushdown import arrays as a
from tokdfa.pushdown.arrays import gather_machine
from tokdfa.pushdown.closure import close_kernel
from tokdfa.pushdown.counted import clip_kernel
from tokdfa.pushdown.form import FIRST, OPERATION, RETURN_PLACE, SECOND, TOKEN
from tokdfa.pushdown.longest import end_kernel
from tokdfa.pushdown.rows import (
    OPEN,
    ROW_ACCEPTS,
    ROW_MIDDLE,
    ROW_TOKENS,
    add_found_kernel,
    intern_kernel,
)
from tokdfa.pushdown.stacks import FRAME_COLUMNS, ROOT, pack_entry
from tokdfa.pushdown.steps import only_byte_kernel, run_kernel

if TYPE_CHECKING:
    from tokdfa.pushdown.form import Form
    from tokdfa.pushdown.pool import Pool
    from tokdfa.pushdown.program import Program

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

#: Links of a chain of fallbacks at most.
MAX_CHAIN = 100_000
#: What `Machine.supply` counts as, besides what it does, in ns: the kernel is called again from its start.
SUPPLY_WORK = 20_000
#: Rows and stacks that the first machine of a vocabulary has room for.
FIRST_ROOM = 32
#: Rows whose memory the first machine of a vocabulary writes to, so that no text waits for the system to hand out
#: the page: that takes some µs each, and up to ten on a virtual machine.
TOUCHED_ROWS = 1_024


class MachineFull(LimitExceeded):
    """The machine has reached `max_bytes`; a matcher then moves to a new one, so users do not see it."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(
            f"the rows and stacks of the constraint take more than {max_bytes >> 20} MB; raise table_mb",
            limit="table_mb",
            value=max_bytes >> 20,
        )


class Machine:
    """See the module's docstring. `max_items` bounds the items of one row, `max_bytes` the transitions of
    all rows, and again all other tables.

    `linked`: the form bound to the pool, if that was asked already. `first_bytes`: note the bytes that a
    row reads when it is closed. `slices`: partitions that are lacking are made with their help.
    """

    # by row, see `arrays.BY_ROW`
    live_begin: Int32
    live_end: Int32
    row_flags: npt.NDArray[np.uint8]
    row_reads: npt.NDArray[np.uint64]
    row_fallback: Int32
    row_ended: Int32
    transitions: Int32

    def __init__(
        self,
        form: Form,
        pool: Pool,
        max_items: int = 200_000,
        max_bytes: int = 64 << 20,
        linked: Program | None = None,
        first_bytes: bool = True,
        slices: bool = True,
    ) -> None:
        self.pool, self.max_items, self.max_bytes = pool, max_items, max_bytes
        self._first_bytes, self._slices = first_bytes, slices
        with pool.lock:
            self.program = linked or pool.link(form)
            self.longest = form.longest
            self._allocate(form)
            self._start(form.start)

    @property
    def form(self) -> Form:
        """The form as it stands now."""
        return self.program.form

    def _allocate(self, form: Form) -> None:
        self._take_program()
        #: For as many rows as there may be; the pages that no row uses are never touched.
        self.max_rows = max(2 * FIRST_ROOM, self.max_bytes // a.ROW_BYTES)
        #: The arrays of `arrays.REUSED` as they are now, for the machine that has them after this one.
        self._reused: dict[str, Any] = {}
        reused = self.pool.take_tables(self.max_rows * 256, self.max_bytes)
        stamp = 0
        if reused is None:
            self._allocate_tables(FIRST_ROOM)
            self._allocate_scratch(2 * FIRST_ROOM)
            if not self.pool.has_touched:
                self.pool.has_touched = True
                for name, (_, count) in a.BY_ROW.items():
                    getattr(self, name)[: TOUCHED_ROWS * count] = 0
        else:
            vars(self).update(reused)
            self.scratch_room = len(self.work)
            stamp = int(self.meta[a.M_STAMP])  # of what is marked as seen in the scratch
            if len(self.todo) < self._least_todo():
                self._allocate_scratch(self.scratch_room)
                reused = None
        self.meta[:] = 0
        #: `meta`, as Python's own ints: several times as fast to read and to write.
        self.counts = counts = self.meta.data
        counts[a.M_LONGEST], counts[a.M_SKIP] = form.longest, form.skip
        counts[a.M_MAX_ITEMS], counts[a.M_PRUNES], counts[a.M_STAMP] = self.max_items, self._first_bytes, stamp
        if reused is None:
            self._gather()
        else:
            self.arrays, self._reused = gather_machine(self, reused), reused
        weakref.finalize(self, self.pool.give_back_tables, self._reused).atexit = False

    def _allocate_tables(self, room: int) -> None:
        self.stacks = InterningTable(entries=room, words=room, limit=Limit(a.STACK_MASK))
        self.groups = InterningTable({"group_stack": Column(np.int32)}, entries=room, words=4 * room)
        self.rows = InterningTable(entries=2 * room, words=4 * room, limit=Limit(self.max_rows))
        self.live_items: Int64 = np.zeros(4 * room, dtype=np.int64)
        vars(self).update(zip(a.BY_ROW, a.zeros_by_row(self.max_rows), strict=True))
        self.meta: Int64 = np.zeros(11, dtype=np.int64)
        self.chain: Int32 = np.zeros(16, dtype=np.int32)

    def _allocate_scratch(self, room: int) -> None:
        self.scratch_room = room
        self.work: Int32 = np.zeros((room, 3), dtype=np.int32)
        self.seen_keys: npt.NDArray[np.uint64] = np.zeros(4 * room, dtype=np.uint64)
        self.seen_stamps: Int64 = np.zeros(4 * room, dtype=np.int64)
        self.callers: Int32 = np.zeros((room, 3), dtype=np.int32)
        self.pairs: Int64 = np.zeros(2 * room, dtype=np.int64)
        self.found: Int64 = np.zeros(2 * room, dtype=np.int64)
        self.todo: Int32 = np.zeros((max(room, self._least_todo()), 4), dtype=np.int32)

    def _least_todo(self) -> int:
        return 2 * len(self.entries) + 8

    def _gather(self) -> None:
        """Have kernels take the arrays as they are now."""
        self.group_stack: Int32 = self.groups.columns["group_stack"]
        self.arrays = gather_machine(self)
        self._reused.update((name, getattr(self, name)) for name in a.REUSED)
        self._reused[a.STRUCT_TABLE] = self.arrays.table

    def _take_program(self) -> None:
        """Read the program's arrays as they are now, with room for what is called of all frames there is room for."""
        program = self.program
        self.code, self.alternatives, self.entries = program.code, program.alternatives, program.entries
        self.arguments, self.tables, self.names = program.arguments, program.tables, program.names
        self.order, self.twin_begin, self.twins = program.order, program.twin_begin, program.twins
        self.frame_state: Int32 = np.zeros((len(self.entries), FRAME_COLUMNS), dtype=np.int32)

    def _start(self, start: int) -> None:
        self.stacks.intern([pack_entry(RETURN_PLACE, ROOT)])
        if add_found_kernel(start, ROOT, 0, self.arrays) < 0 or intern_kernel(1, self.arrays) != 0:
            raise AssertionError("a machine without rows has no room for its first one")

    # Questions.

    @property
    def row_count(self) -> int:
        """Rows made so far."""
        return int(self.meta[a.M_ROWS])

    @property
    def stack_count(self) -> int:
        """Return stacks made so far."""
        return self.stacks.count

    @property
    def nbytes(self) -> int:
        """Memory of all tables in bytes, but for the pool's; tables used before count as large as they have grown."""
        return self._other_bytes + self.row_count * a.ROW_BYTES

    @property
    def _other_bytes(self) -> int:
        """Memory of all tables in bytes that have no entries by row."""
        return sum(getattr(self, name).nbytes for name in a.MACHINE_FIELDS if name not in a.BY_ROW)

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

    def forced_bytes(self, row: int, limit: int) -> bytes:
        """The bytes with which every completion goes on, up to `limit`: none where the text may end. O(256 x bytes)."""
        forced = bytearray()
        while len(forced) < limit and not self.can_end(row):
            byte = int(only_byte_kernel(row, self.arrays, self.pool.arrays))
            if byte <= -10:
                self.supply(-10 - byte)
                continue
            if byte < 0 or self.token_sets(row):
                break
            forced.append(byte)
            row = self.step(row, byte)
        return bytes(forced)

    def border(self, row: int) -> int:
        """The row in which the next lexeme may begin: `row` itself, or with longest match what follows it; or -1."""
        while row >= 0 and self.row_flags[row] & ROW_MIDDLE:
            found = int(end_kernel(row, self.arrays, self.pool.arrays))
            if found <= -10:
                self.supply(-10 - found)
                continue
            if found >= 0:
                return found
            row = int(self.row_fallback[row])
        return row

    def can_end(self, row: int) -> bool:
        """Whether the text so far is complete."""
        border = self.border(row) if self.longest else row
        if border < 0:
            return False
        if self.live_end[border] == OPEN:
            self.close(border)
        return bool(self.row_flags[border] & ROW_ACCEPTS)

    def close(self, row: int) -> None:
        """Make sure that a row's live items are known."""
        while self.live_end[row] == OPEN:
            status = int(close_kernel(row, self.arrays, self.pool.arrays))
            if status != a.OK:
                self.supply(status)

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
        if border < 0:
            return set()
        self.close(border)
        if not self.row_flags[border] & ROW_TOKENS:
            return set()
        places = [place for place, _, _ in self.items(border)]
        return {int(self.code[place, FIRST]) for place in places if self.code[place, OPERATION] == TOKEN}

    def representative(self, row: int) -> int:
        """A row with the same mask as `row`: the one in which counts of characters say no more than a mask depends on.

        O(items). Rows without counted strings represent themselves.
        """
        if not self.program.counts:
            return row
        while True:
            found = int(clip_kernel(row, *self.pool.lengths.levels(), self.arrays))
            if found >= 0:
                return found
            self.supply(-10 - found)

    def take(self, row: int, token_sets: set[int]) -> int:
        """The row after a special token that is in these sets, or -1."""
        border = self.border(row)
        if border < 0:
            return -1
        following = [
            (int(self.code[place, SECOND]), stack)
            for place, _, stack in self.items(border)
            if self.code[place, OPERATION] == TOKEN and int(self.code[place, FIRST]) in token_sets
        ]
        if not following:
            return -1
        while len(following) > len(self.found):
            self.supply(a.NEEDS_SCRATCH)
        while True:
            for count, (place, stack) in enumerate(following):
                add_found_kernel(place, stack, count, self.arrays)
            found = int(intern_kernel(len(following), self.arrays))
            if found > -10:
                return found
            self.supply(-10 - found)

    # Growth.

    def supply(self, status: int, more: int = 0) -> None:
        """Do what a kernel asked for. Raises LimitExceeded or MachineFull.

        `more`: of code that is written when it is needed, write so many pieces beside the one that was asked for.
        """
        spend(SUPPLY_WORK)
        if status == a.NEEDS_POOL:
            self.pool.fill_row(int(self.meta[a.M_STATE]))
            return
        if status == a.NEEDS_PARTITION:
            self.pool.divide(int(self.meta[a.M_PLACE]), int(self.meta[a.M_STATE]), self._slices)
            return
        if status == a.NEEDS_CODE:
            self._write_code(int(self.meta[a.M_PLACE]), more)
            return
        if status == a.NEEDS_ITEMS:
            raise LimitExceeded(
                f"the text may be read in more than {self.max_items} ways at once; make the grammar less ambiguous, or"
                " raise max_row_items",
                limit="max_row_items",
                value=self.max_items,
            )
        if status == a.NEEDS_SCRATCH:
            if self.scratch_room > 8 * self.max_items + 1_000_000:
                self.supply(a.NEEDS_ITEMS)
            self._allocate_scratch(2 * self.scratch_room)
        elif status == a.NEEDS_CHAIN:
            if len(self.chain) > MAX_CHAIN:
                raise LimitExceeded(
                    f"the text may be cut into lexemes in more than {MAX_CHAIN} ways at once, because terminals that"
                    " have matched may yet match more; make them end sooner, or use lexer=any",
                    limit="max_chain",
                    value=MAX_CHAIN,
                )
            self.chain = np.zeros(2 * len(self.chain), dtype=np.int32)
        elif self._other_bytes > self.max_bytes:
            raise MachineFull(self.max_bytes)
        else:
            self._grow_tables(status)
        self._gather()

    def _write_code(self, place: int, more: int) -> None:
        """Have the code of a LATER written, unless another machine had, and take the program as it is then."""
        self.program.write(place, more)
        if self.code is not self.program.code:
            self._take_program()
            if len(self.todo) < self._least_todo():
                self._allocate_scratch(self.scratch_room)
            self._gather()

    def _grow_tables(self, status: int) -> None:
        """Make room for stacks or for rows."""
        tables = (self.stacks, self.groups) if status == a.NEEDS_STACKS else (self.rows,)
        if any(table.count + max(1, int(table.meta[WANTED_ENTRIES])) > table.limit.most for table in tables):
            raise MachineFull(self.max_bytes)
        live = self.live_items
        if status == a.NEEDS_ROWS:
            live = _grown(live, int(self.meta[a.M_LIVE]) + len(self.found))
        grow_together(*tables)
        self.live_items = live


def _grown(array: npt.NDArray[Any], room: int) -> npt.NDArray[Any]:
    """`array` with at least `room` places, and twice as many as before if it has to grow."""
    if room <= len(array) // 2:
        return array
    room = max(room, 2 * len(array))
    hold((room - len(array)) * array.itemsize)
    grown = np.zeros(room, dtype=array.dtype)
    grown[: len(array)] = array
    return grown
