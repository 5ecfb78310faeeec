"""The arrays of one machine (`tokdfa.backends.pushdown_trie.arrays`): where they come from, and how they grow.

They are the program's, those of stacks and rows, and scratch. Those of a machine that is gone are used again
(`SpareTables`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokdfa.backends.pushdown_trie import arrays as a
from tokdfa.backends.pushdown_trie.stacks import FRAME_COLUMNS
from tokdfa.core.budget import hold
from tokdfa.core.interning import WANTED_ENTRIES, Column, InterningTable, Limit, grow_together
from tokdfa.errors import LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.backends.pushdown_trie.bound_program import BoundProgram

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

#: Rows and stacks that the first machine of a vocabulary has room for.
FIRST_ROOM = 32
#: Rows whose memory the first machine of a vocabulary writes to, so that no text waits for the system to hand out
#: the page: that takes some µs each, and up to ten on a virtual machine.
TOUCHED_ROWS = 1_024
#: Keep up to so many sets of tables, each with at most so many rows used, each of which takes 1 kB, and at most so many
#: bytes of everything else.
SPARE_TABLES, SPARE_ROWS, SPARE_BYTES = 4, 16_384, 8 << 20


class MachineFull(LimitExceeded):
    """The machine has reached `max_bytes`; a matcher then moves to a new one, so users do not see it."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(
            f"the rows and stacks of the constraint take more than {max_bytes >> 20} MB; raise table_mb",
            limit="table_mb",
            value=max_bytes >> 20,
        )


class MachineTables:
    """See the module's docstring. `max_items` bounds the items of one row, `max_bytes` the transitions of all rows, and
    again all other tables. `first_bytes`: note the bytes that a row reads when it is closed.
    """

    # by row, see `arrays.BY_ROW`
    live_begin: Int32
    live_end: Int32
    row_flags: npt.NDArray[np.uint8]
    row_reads: npt.NDArray[np.uint64]
    row_fallback: Int32
    row_ended: Int32
    transitions: Int32
    scratch_room: int
    work: Int32
    seen_keys: npt.NDArray[np.uint64]
    seen_stamps: Int64
    callers: Int32
    pairs: Int64
    found: Int64
    todo: Int32
    #: Who has the tables after this machine; None while it is made.
    _spare: SpareTables | None = None

    def __init__(
        self, bound: BoundProgram, spare: SpareTables, max_items: int, max_bytes: int, first_bytes: bool
    ) -> None:
        self.bound, self.max_items, self.max_bytes = bound, max_items, max_bytes
        self.take_program()
        #: For as many rows as there may be; the pages that no row uses are never touched.
        self.max_rows = max(2 * FIRST_ROOM, max_bytes // a.ROW_BYTES)
        #: The arrays of `arrays.REUSED` as they are now, for the machine that has them after this one.
        self._reused: dict[str, Any] = {}
        reused = spare.take(self.max_rows * 256, max_bytes)
        stamp = 0
        if reused is None:
            self._allocate_tables(FIRST_ROOM)
            self._allocate_scratch(2 * FIRST_ROOM)
            if not spare.has_touched:
                spare.has_touched = True
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
        #: `meta` and `row_flags`, as Python's own ints: several times as fast to read and to write.
        self.counts = counts = self.meta.data
        self.flags = self.row_flags.data
        program = bound.program
        counts[a.M_LONGEST], counts[a.M_SKIP] = program.longest, program.skip
        counts[a.M_MAX_ITEMS], counts[a.M_PRUNES], counts[a.M_STAMP] = max_items, first_bytes, stamp
        if reused is None:
            self._gather()
        else:
            self.arrays, self._reused = a.gather_machine(self, reused), reused
        self._spare = spare

    def __del__(self, is_exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        # to make a `weakref.finalize` takes 1 µs and more; at exit, modules may be gone before this object is
        if self._spare is not None and not is_exiting():
            self._spare.give_back(self._reused)

    def _allocate_tables(self, room: int) -> None:
        self.stacks = InterningTable(entries=room, words=room, limit=Limit(a.STACK_MASK))
        self.groups = InterningTable({"group_stack": Column(np.int32)}, entries=room, words=4 * room)
        self.rows = InterningTable(entries=2 * room, words=4 * room, limit=Limit(self.max_rows))
        self.live_items: Int64 = np.zeros(4 * room, dtype=np.int64)
        vars(self).update(zip(a.BY_ROW, a.zeros_by_row(self.max_rows), strict=True))
        self.meta: Int64 = np.zeros(a.M_MET + 1, dtype=np.int64)
        self.reads: npt.NDArray[np.uint64] = np.zeros(4, dtype=np.uint64)

    def _allocate_scratch(self, room: int) -> None:
        scratch = {
            "work": np.zeros((room, 3), dtype=np.int32),
            "seen_keys": np.zeros(4 * room, dtype=np.uint64),
            "seen_stamps": np.zeros(4 * room, dtype=np.int64),
            "callers": np.zeros((room, 3), dtype=np.int32),
            "pairs": np.zeros(2 * room, dtype=np.int64),
            "found": np.zeros(2 * room, dtype=np.int64),
            "todo": np.zeros((max(room, self._least_todo()), 4), dtype=np.int32),
        }
        vars(self).update(scratch, scratch_room=room)  # all at once, whatever is raised before

    def _least_todo(self) -> int:
        return 2 * len(self.entries) + 8

    def _gather(self) -> None:
        """Have kernels take the arrays as they are now."""
        self.group_stack: Int32 = self.groups.columns["group_stack"]
        self.arrays = a.gather_machine(self)
        self._reused.update({name: getattr(self, name) for name in a.REUSED})
        self._reused[a.STRUCT_TABLE] = self.arrays.table
        self._reused[a.SHARED_BYTES] = sum(self._reused[name].nbytes for name in a.REUSED if name not in a.BY_ROW)

    def take_program(self) -> None:
        """Read the program's arrays as they are now, with room for what is called of all frames there is room for."""
        program = self.bound
        self.code, self.alternatives, self.entries = program.code, program.alternatives, program.entries
        self.arguments, self.tables, self.names = program.arguments, program.tables, program.names
        self.order = program.order
        self.frame_state: Int32 = np.zeros((len(self.entries), FRAME_COLUMNS), dtype=np.int32)

    def follow_program(self) -> None:
        """Take the program as it is now, if what outgrew its arrays is in others."""
        if self.code is not self.bound.code:
            self.settle()

    def settle(self) -> None:
        """Have kernels take the program and the arrays as they are now, whatever was about to change them."""
        self.take_program()
        if len(self.todo) < self._least_todo():
            self._allocate_scratch(self.scratch_room)
        self._gather()

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

    @property
    def _text_bytes(self) -> int:
        """`_other_bytes` without those of the program, which are there before the first text."""
        return sum(getattr(self, name).nbytes for name in a.REUSED if name not in a.BY_ROW)

    def grow(self, status: int) -> None:
        """Make the room that a kernel asked for. Raises LimitExceeded or MachineFull."""
        is_scratch = status == a.NEEDS_SCRATCH
        if status == a.NEEDS_ITEMS or (is_scratch and self.scratch_room > 8 * self.max_items + 1_000_000):
            raise LimitExceeded(
                f"the text may be read in more than {self.max_items} ways at once; make the grammar less ambiguous, or"
                " raise max_row_items",
                limit="max_row_items",
                value=self.max_items,
            )
        if is_scratch:
            self._allocate_scratch(2 * self.scratch_room)
        elif self._text_bytes > self.max_bytes:
            raise MachineFull(self.max_bytes)
        else:
            self._grow_tables(status)
        self._gather()

    def _grow_tables(self, status: int) -> None:
        """Make room for stacks or for rows."""
        tables = (self.stacks, self.groups) if status == a.NEEDS_STACKS else (self.rows,)
        if any(table.count + max(1, int(table.meta[WANTED_ENTRIES])) > table.limit.most for table in tables):
            raise MachineFull(self.max_bytes)
        live, needed = self.live_items, int(self.meta[a.M_LIVE]) + len(self.found)
        if status == a.NEEDS_ROWS and needed > len(live) // 2:
            room = max(needed, 2 * len(live))
            hold((room - len(live)) * live.itemsize)
            live = a.longer(live, room)
        grow_together(*tables)
        self.live_items = live


class SpareTables:
    """Tables of machines that are gone, for those to come: memory that was touched before costs a tenth of new memory,
    and tables that have grown need not grow again.

    Not thread-safe: the lock of the vocabulary's pool is held.
    """

    def __init__(self) -> None:
        self._kept: list[tuple[int, dict[str, Any]]] = []  # with their bytes
        #: Whether a machine has touched the memory that it, or the next one, will use.
        self.has_touched = False

    def take(self, transitions: int, max_bytes: int) -> dict[str, Any] | None:
        """The largest arrays there are with so many transitions that take a quarter of `max_bytes` at most; or None.

        Transitions and hash tables are empty.
        """
        largest, chosen = -1, -1
        for place, (size, tables) in enumerate(self._kept):
            if size >= largest and len(tables["transitions"]) == transitions and 4 * size <= max_bytes:
                largest, chosen = size, place
        return self._kept.pop(chosen)[1] if chosen >= 0 else None

    def give_back(self, tables: dict[str, Any]) -> None:
        """Keep the arrays of a machine that is gone for others, unless they are large."""
        rows = int(tables["meta"][a.M_ROWS])
        size: int = tables[a.SHARED_BYTES]
        if len(self._kept) < SPARE_TABLES and rows <= SPARE_ROWS and size <= SPARE_BYTES:
            tables["transitions"][: rows * 256] = 0
            for name in a.TABLE_FIELDS:
                tables[name].clear()
            self._kept.append((size, tables))
