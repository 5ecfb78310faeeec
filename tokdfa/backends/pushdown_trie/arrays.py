"""What the kernels of the machine take: the arrays of one machine, and those of the pool it reads from.

Machine (`MachineArrays`), all int32 unless said otherwise:

- program (`tokdfa.backends.pushdown_trie.bound_program`): ``code`` (instructions, 3), ``alternatives``, ``entries``,
  ``arguments``; ``tables``, ``names``, ``order``: tries of names (`tokdfa.backends.pushdown_trie.names`);
- stacks: the tables (`tokdfa.core.interning`) ``stacks``, of entries, and ``groups``, of stacks that contain each
  other, with the column ``group_stack``;
- rows: the table ``rows``, of the items of cores; ``live_items`` int64 and ``live_begin``, ``live_end``: see
  `tokdfa.backends.pushdown_trie.rows`; ``row_flags`` uint8; ``row_reads`` uint64, flat, row x 4; ``row_fallback``,
  ``row_ended``; ``transitions`` flat, row x 256;
- scratch: for closures, stacks and walks;
- ``meta`` int64: the counts, limits and counters named here.

Kernels never write past an array. They return a status; `tokdfa.backends.pushdown_trie.machine.Machine.supply` does
what it asks for (more room, a row of a lazy automaton, a partition), and the kernel is called again, a mask from where
it stopped (`tokdfa.backends.pushdown_trie.fill`), others from the start: what was made is found again, and nothing is
ever half made.
"""

from __future__ import annotations

import mmap
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.core.interning import TableArrays
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_struct import Struct, struct_at
from tokdfa.core.key_map import look_up

if TYPE_CHECKING:
    import numpy.typing as npt

#: Status: fine; what is missing.
OK, NEEDS_SCRATCH, NEEDS_STACKS, NEEDS_ROWS, NEEDS_ITEMS, NEEDS_POOL, NEEDS_PARTITION, NEEDS_CHAIN = range(8)
NEEDS_CODE, NEEDS_BUDGET = 8, 9

#: Indices into `meta`: rows and live items made so far; the stamp of the last closure; whether the longest match rules;
#: the terminal that is skipped or -1; what NEEDS_POOL and NEEDS_PARTITION ask for (a state; a place of the trie), and
#: NEEDS_CODE (a place of the program); limit on the items of a row; counters: nodes visited by walks, rows closed;
#: whether bytes that no live item reads are marked when a row is closed; items that were met and not yet paid for.
# fmt: off
(
    M_ROWS, M_LIVE, M_STAMP, M_LONGEST, M_SKIP, M_STATE, M_PLACE, M_MAX_ITEMS, M_NODES, M_CLOSED, M_PRUNES, M_MET,
) = range(12)
# fmt: on

#: An item is 63 bits: place, state and stack. Its state is 0 where nothing of a terminal was read.
STACK_BITS, STATE_BITS, PLACE_BITS = 22, 21, 20
STACK_MASK, STATE_MASK = (1 << STACK_BITS) - 1, (1 << STATE_BITS) - 1
PLACE_SHIFT = STACK_BITS + STATE_BITS

#: What partitions of the vocabulary (`tokdfa.backends.pushdown_trie.partition`) are known by. Added to a state: its
#: strict partition; one for an item that is alone in its row; one of the tokens that begin with a byte that it reads.
#: What these are added to.
STRICT, ALONE, OWN = 1 << 21, 1 << 22, 1 << 23
STATE_PART = STRICT - 1
#: Key of a partition: its place, and the bits of its state.
KEY_SHIFT = 24

# fmt: off
MACHINE_FIELDS = (
    "code", "alternatives", "entries", "arguments", "tables", "names", "order", "frame_state",
    "stacks", "groups", "group_stack",
    "rows", "live_items", "live_begin", "live_end", "row_flags", "row_reads", "row_fallback", "row_ended",
    "transitions",
    "work", "seen_keys", "seen_stamps", "callers", "pairs", "found", "todo", "reads", "meta",
)
# fmt: on
#: So many of them are the program's.
PROGRAM_FIELDS = MACHINE_FIELDS.index("stacks")
_program_arrays = attrgetter(*MACHINE_FIELDS[:PROGRAM_FIELDS])
#: Those that are interning tables.
TABLE_FIELDS = ("stacks", "groups", "rows")
#: What a machine that is gone leaves to the next one, which then rarely has to grow: all but the program; and the table
#: of its struct, under this name.
REUSED, STRUCT_TABLE = MACHINE_FIELDS[PROGRAM_FIELDS:], "struct_table"
#: Beside them: the bytes of all that is not by row.
SHARED_BYTES = "shared_bytes"
#: By array with entries for each row: (dtype, how many). They have room for as many rows as there may be; of their
#: memory only the pages are taken that rows use.
BY_ROW = {
    "live_begin": (np.int32, 1), "live_end": (np.int32, 1), "row_flags": (np.uint8, 1),
    "row_reads": (np.uint64, 4), "row_fallback": (np.int32, 1), "row_ended": (np.int32, 1),
    "transitions": (np.int32, 256),
}  # fmt: skip
#: Bytes of a row in these.
ROW_BYTES = sum(np.dtype(dtype).itemsize * count for dtype, count in BY_ROW.values())


def _declare(fields: tuple[str, ...], **others: str) -> dict[str, tuple[str, int]]:
    """By field (dtype, dimensions): "int32", 1 but for those that `others` lists by dtype and ``_table`` for two."""
    declared = dict.fromkeys(fields, ("int32", 1))
    for kind, names in others.items():
        dtype, _, table = kind.partition("_")
        declared |= dict.fromkeys(names.split(), (dtype, 2 if table else 1))
    return declared


_MACHINE: dict[str, tuple[str, int] | type[Struct]] = {
    **_declare(
        MACHINE_FIELDS,
        int32_table="code tables names frame_state work callers todo",
        int64="live_items seen_stamps pairs found meta",
        uint8="row_flags",
        uint64="row_reads seen_keys reads",
    ),
    **dict.fromkeys(TABLE_FIELDS, TableArrays),
}


class MachineArrays(Struct, fields=MACHINE_FIELDS, declared=_MACHINE):
    """What kernels take: MACHINE_FIELDS."""


# fmt: off
POOL_FIELDS = (
    "byte_data", "offsets", "transitions", "flags", "partition_class", "reads", "characters",
    "part_keys", "part_slots", "part_dense", "part_ids", "part_nodes", "dense", "ids", "nodes",
    "branch_keys", "branch_slots", "branch_bytes", "branch_begin", "branch_children",
    "walk_rows", "walk_path", "walk_guides", "walk_reads", "walk_deferred", "frame_left", "frame_place",
    "listed", "end_tokens", "chain", "walk_meta", "walk_at", "walk_met", "walk_wanted",
)
# fmt: on


_POOL = _declare(
    POOL_FIELDS,
    int32_table="characters part_ids part_nodes walk_deferred",
    int64="offsets part_keys branch_keys walk_meta walk_at walk_guides",
    int64_table="frame_place walk_wanted",
    uint8="byte_data flags walk_path",
    uint32="walk_met",
    uint32_table="dense",
    uint64="nodes walk_reads",
    uint64_table="reads branch_bytes frame_left",
)


class PoolArrays(Struct, fields=POOL_FIELDS, declared=_POOL):
    """What kernels take: POOL_FIELDS."""


#: In kernels: the struct at an address.
machine_at, pool_at = struct_at(MachineArrays), struct_at(PoolArrays)


def zeros_by_page(count: int, dtype: Any = np.int32) -> npt.NDArray[Any]:
    """Zeros, shape (count,), whose memory the system hands out page by page as it is touched, some µs each.

    numpy asks for large pages, and when one of these is touched first a text may wait for 5 to 14 ms.
    """
    size = np.dtype(dtype).itemsize * count
    if hasattr(mmap, "MAP_PRIVATE"):  # the default would be memory that forked processes share
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    else:
        memory = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, dtype=dtype)


def longer(array: npt.NDArray[Any], room: int) -> npt.NDArray[Any]:
    """`array` and zeros, `room` rows in all. Copies."""
    return np.concatenate([array, np.zeros((room - len(array), *array.shape[1:]), dtype=array.dtype)])


def zeros_by_row(rows: int) -> list[npt.NDArray[Any]]:
    """The arrays of BY_ROW with room for so many rows, in one piece of memory (`zeros_by_page`)."""
    sizes = [np.dtype(dtype).itemsize * count * rows for dtype, count in BY_ROW.values()]
    begins = np.cumsum([0, *(-(-size // mmap.PAGESIZE) * mmap.PAGESIZE for size in sizes)]).tolist()
    memory = zeros_by_page(begins[-1], np.uint8)
    parts = zip(begins, sizes, BY_ROW.values(), strict=False)
    return [memory[begin : begin + size].view(dtype) for begin, size, (dtype, _) in parts]


def gather_machine(owner: Any, reused: dict[str, Any] | None = None) -> MachineArrays:
    """The struct of a machine's arrays, which are attributes of `owner`. 10 µs.

    `reused`: those of REUSED as another machine had them, with its struct's table as STRUCT_TABLE; then 4 µs.
    """
    if reused is None:
        tables = {name: getattr(owner, name).struct for name in TABLE_FIELDS}
        return MachineArrays(*(tables.get(name) or getattr(owner, name) for name in MACHINE_FIELDS))
    return MachineArrays.with_others(reused, reused[STRUCT_TABLE], *_program_arrays(owner))


@kernel
def pack_item(place, state, stack):  # type: ignore[no-untyped-def]
    """An item as one number."""
    return np.int64(place) << PLACE_SHIFT | np.int64(state) << STACK_BITS | np.int64(stack)


@kernel
def find_partition(place, state, pool):  # type: ignore[no-untyped-def]
    """The number of a partition, or -1."""
    return np.int64(look_up(np.int64(place) << KEY_SHIFT | np.int64(state), pool.part_keys, pool.part_slots))
