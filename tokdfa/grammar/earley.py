"""Earley rows that are interned by content: equal situations are the same row, wherever they occur.

Words. A *dot* is a place in a rule's right side, as an index into the flat array ``rhs`` (right sides one after
another, each closed by an end mark). An *item* is a dot and an *origin*: where the text of its rule began. In Earley's
algorithm an origin is the index of a row. Here it is an *origin point*, the pair of a row and the nonterminal that was
predicted there, and what completing a rule needs of it is all that it stands for: the items of that row with that
nonterminal after the dot. A row's *kernel* holds the items that reading a lexeme put into it; the *predicted* items
follow from the kernel.

**Rows by content.** A row is the sorted set of its kernel items and whether the text may end there. Completed items do
their work when the row is made and are left out. So a row is a pure function of (row before, lexemes read), which a
table remembers (`R_MEMO`): loops come back to the same number, and a parser's whole state is one number.

**Right recursion.** In ``list: X list | X`` every X would open an origin point of its own, whose completion only
completes the one before. If all items that wait for a nonterminal in a row stand at their rule's last symbol and have
one origin, that origin is taken in place of a new one: completing either is completing the other. So right recursion
runs in one row as left recursion does (Leo 1991 reaches the same by memoised reduction paths).

**Empty rules.** A dot before a nullable nonterminal also moves past it when the item is added (Aycock and Horspool
2002), so nothing is ever completed in the row in which it was predicted. Cycles such as ``a: a | X`` end because an
origin point is completed once a row.

Sources: Earley 1970; 000 (rows along a lexer, one scan for a set of lexemes); hash-consed rows are ours. Cost: making a
row is linear in its items; reading a set of lexemes in a row where that was done before is one hash look-up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokdfa.errors import LimitExceeded
from tokdfa.jit import Struct, StructType, kernel, register_struct
from tokdfa.vocabulary.walk import UNKNOWN

if TYPE_CHECKING:
    from tokdfa.grammar.cfg import Cfg

Int32 = npt.NDArray[np.int32]

#: Stands in `rhs` at the end of each right side.
END = -1
#: Indices into `meta`: rows, kernel items, items, segments, origin points, entries of the memo; the room asked for; a
#: number for each scan; the skip lexeme, and whether it wins over other lexemes that match the same bytes; the limits.
R_ROWS, R_KERNEL, R_ITEMS, R_SEGMENTS, R_ORIGINS, R_MEMO, R_WANTED, R_STAMP, R_SKIP, R_SKIP_WINS = range(10)
R_MAX_ROWS, R_MAX_ITEMS = 10, 11
#: Returned in place of a row: an array is too short, or there may be no more rows (`Rows.grow`); a row would have more
#: items than its limit.
ROW_FULL, ROW_LIMIT = -3, -4
#: The origin point of the whole text.
ROOT = 0
#: Row flag: the text may end here.
_ACCEPTS = 1


#: The arrays that kernels take, in this order; `Rows` says what each holds.
# fmt: off
ROWS_FIELDS = (
    "rhs", "initial_begin", "initial_dots", "nullable", "kernel_items", "kernel_begin", "flags", "start_state",
    "item_dot", "item_origin", "segment_symbol", "segment_first", "segment_begin", "origin_segment", "row_slots",
    "memo_keys", "memo_rows", "scratch", "by_symbol", "completed", "meta",
)
# fmt: on


class RowArrays(Struct):
    """What kernels take: ROWS_FIELDS."""


@register_struct(RowArrays, ROWS_FIELDS)
class RowType(StructType):
    """numba's type of RowArrays."""


class Rows:
    """The rows of a grammar made so far. Row 0 is the one before the first lexeme. Not thread-safe.

    `max_rows` bounds their number, `max_items` the items of one row (kernel and predicted).
    """

    def __init__(self, cfg: Cfg, max_rows: int = 1_000_000, max_items: int = 200_000, skip_wins: bool = False) -> None:
        self.cfg, self.max_rows, self.max_items = cfg, max_rows, max_items
        self._build_grammar()
        room = 64
        #: int64, the kernel items as dot << 32 | origin; int32, shape (room + 1,): where each row's begin.
        self.kernel_items = np.zeros(4 * room, dtype=np.int64)
        self.kernel_begin = np.zeros(room + 1, dtype=np.int32)
        #: int32, shape (room,): 1 where the text may end.
        self.flags = np.zeros(room, dtype=np.int32)
        #: int32, shape (room,): the lexer state in which the row's lexemes may begin, -1 if not known yet.
        self.start_state = np.full(room, -1, dtype=np.int32)
        #: All items with a symbol after the dot, by row and symbol: a *segment* for each such symbol.
        self.item_dot = np.zeros(16 * room, dtype=np.int32)
        self.item_origin = np.zeros(16 * room, dtype=np.int32)
        self.segment_symbol = np.zeros(8 * room, dtype=np.int32)
        self.segment_first = np.zeros(8 * room + 1, dtype=np.int32)
        self.segment_begin = np.zeros(room + 1, dtype=np.int32)
        #: int32, shape (origins,): the segment that an origin point stands for (its items wait for it).
        self.origin_segment = np.full(room, -1, dtype=np.int32)
        self.row_slots = np.full(4 * room, -1, dtype=np.int32)
        #: int64 and int32: (row << 32 | accepting set) -> row, open addressing; -1 where empty.
        self.memo_keys = np.full(4 * room, -1, dtype=np.int64)
        self.memo_rows = np.full(4 * room, -1, dtype=np.int32)
        self.scratch = np.zeros(1024, dtype=np.int64)
        symbols = len(self.cfg.names)
        #: Scratch by symbol: the origin of a predicted nonterminal, how many items have a symbol after the dot.
        self.by_symbol = np.zeros((4, symbols + 1), dtype=np.int32)
        #: Scratch by origin point: the row in whose making it was completed last.
        self.completed = np.full(room, -1, dtype=np.int32)
        self.meta = np.zeros(12, dtype=np.int64)
        self.meta[R_ORIGINS], self.meta[R_SKIP], self.meta[R_SKIP_WINS] = 1, cfg.skip, skip_wins
        self.meta[R_MAX_ROWS], self.meta[R_MAX_ITEMS] = max_rows, max_items
        #: What kernels take; replaced by `grow`.
        self.arrays = self._gather()
        while (first := _first_row_kernel(self.arrays)) < 0:
            self.supply(first)

    def _gather(self) -> Any:
        return _make_rows(*(getattr(self, name) for name in ROWS_FIELDS))

    @property
    def row_count(self) -> int:
        """Rows made so far."""
        return int(self.meta[R_ROWS])

    @property
    def nbytes(self) -> int:
        """Memory of all tables in bytes."""
        return sum(getattr(self, name).nbytes for name in ROWS_FIELDS)

    def accepts(self, row: int) -> bool:
        """Whether the text may end in `row`."""
        return bool(self.flags[row] & _ACCEPTS)

    def allowed(self, row: int) -> list[int]:
        """The lexemes that may come next, ascending; the skip lexeme is none of the grammar's business."""
        segments = self.segment_symbol[self.segment_begin[row] : self.segment_begin[row + 1]]
        return [symbol for symbol in segments.tolist() if symbol < len(self.cfg.lexemes)]

    def kernel_of(self, row: int) -> list[tuple[int, int]]:
        """The kernel items of a row as (dot, origin point), sorted."""
        packed = self.kernel_items[self.kernel_begin[row] : self.kernel_begin[row + 1]].tolist()
        return [(item >> 32, item & 0xFFFFFFFF) for item in packed]

    def describe_dot(self, dot: int) -> str:
        """An item's rule with its dot, as ``name -> a • b``."""
        first = dot
        while first > 0 and self.rhs[first - 1] != END:
            first -= 1
        past = dot
        while self.rhs[past] != END:
            past += 1
        names = [self.cfg.names[symbol] for symbol in self.rhs[first:past].tolist()]
        names.insert(dot - first, "•")
        left = self._left_of[first]
        return f"{self.cfg.names[left] if left < len(self.cfg.names) else 'text'} -> {' '.join(names)}"

    def supply(self, status: int) -> None:
        """Do what a kernel asked for: make room. Raises LimitExceeded."""
        if status == ROW_LIMIT:
            raise LimitExceeded(
                f"the parser has more than {self.max_items} items at one place of the text; simplify the alternatives"
                " (a terminal with the alternatives inside is one item), or raise max_row_items",
                limit="max_row_items",
                value=self.max_items,
            )
        if status == ROW_FULL:
            self.grow()

    def grow(self) -> None:
        """Double what is nearly full. Raises LimitExceeded past `max_rows`."""
        rows, kernel_items, items, segments, origins, memo, wanted = (int(value) for value in self.meta[:7])
        if rows >= self.max_rows and wanted:
            raise LimitExceeded(
                f"the parser has made more than {self.max_rows} rows; the text is too deeply nested for the limit, or"
                " raise max_rows",
                limit="max_rows",
                value=self.max_rows,
            )
        if wanted > self.max_items:
            self.supply(ROW_LIMIT)
        if 2 * rows + 4 >= len(self.flags):
            self.flags, self.start_state = _doubled(self.flags, 0), _doubled(self.start_state, -1)
            self.kernel_begin, self.segment_begin = _doubled(self.kernel_begin, 0), _doubled(self.segment_begin, 0)
            slots = np.full(2 * len(self.row_slots), -1, dtype=np.int32)
            _fill_row_slots_kernel(slots, self.kernel_items, self.kernel_begin, self.flags, rows)
            self.row_slots = slots
        if 2 * kernel_items + wanted >= len(self.kernel_items):
            self.kernel_items = _longer(self.kernel_items, wanted)
        if 2 * items + wanted >= len(self.item_dot):
            self.item_dot, self.item_origin = _longer(self.item_dot, wanted), _longer(self.item_origin, wanted)
        if 2 * segments + wanted >= len(self.segment_symbol):
            self.segment_symbol = _longer(self.segment_symbol, wanted)
            self.segment_first = _longer(self.segment_first, wanted)
        if 2 * origins + wanted >= len(self.origin_segment):
            more = len(self.origin_segment) + wanted
            self.origin_segment = np.concatenate([self.origin_segment, np.full(more, -1, dtype=np.int32)])
            self.completed = np.concatenate([self.completed, np.full(more, -1, dtype=np.int32)])
        if 4 * wanted >= len(self.scratch):
            self.scratch = np.zeros(8 * wanted, dtype=np.int64)
        if 4 * memo >= len(self.memo_keys):
            keys = np.full(2 * len(self.memo_keys), -1, dtype=np.int64)
            targets = np.full(2 * len(self.memo_rows), -1, dtype=np.int32)
            _refill_memo_kernel(self.memo_keys, self.memo_rows, keys, targets)
            self.memo_keys, self.memo_rows = keys, targets
        self.arrays = self._gather()

    def _build_grammar(self) -> None:
        """Flat arrays of the rules, with one more rule: text -> start."""
        cfg = self.cfg
        rules = [*cfg.rules, (len(cfg.names), (cfg.start,))]
        nullable = _nullable_symbols(rules, len(cfg.names) + 1)
        rhs: list[int] = []
        dots_of: list[list[int]] = [[] for _ in range(len(cfg.names) + 1)]
        self._left_of: dict[int, int] = {}
        for left, right in rules:
            self._left_of[len(rhs)] = left
            for place, symbol in enumerate(right):
                dots_of[left].append(len(rhs) + place)
                if not nullable[symbol]:
                    break
            rhs += [*right, END]
        #: int32: right sides, each closed by END. bool, by symbol: whether it derives the empty text.
        self.rhs = np.array(rhs, dtype=np.int32)
        self.nullable = nullable
        #: int32, CSR by symbol: the dots at which a predicted nonterminal may stand (past nullable beginnings, too).
        counts = np.array([len(dots) for dots in dots_of], dtype=np.int32)
        self.initial_begin = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        self.initial_dots = np.array([dot for dots in dots_of for dot in dots], dtype=np.int32)


def _nullable_symbols(rules: list[tuple[int, tuple[int, ...]]], symbols: int) -> npt.NDArray[np.bool_]:
    """bool, shape (symbols,): which derive the empty text. Linear in the grammar."""
    nullable = np.zeros(symbols, dtype=np.bool_)
    missing = [len(right) for _, right in rules]
    users: dict[int, list[int]] = {}
    for number, (_, right) in enumerate(rules):
        for symbol in right:
            users.setdefault(symbol, []).append(number)
    agenda = [left for number, (left, _) in enumerate(rules) if not missing[number]]
    while agenda:
        symbol = agenda.pop()
        if nullable[symbol]:
            continue
        nullable[symbol] = True
        for number in users.get(symbol, ()):
            missing[number] -= 1
            if not missing[number]:
                agenda.append(rules[number][0])
    return nullable


def _doubled(array: npt.NDArray[Any], fill: int) -> npt.NDArray[Any]:
    grown = np.full(2 * len(array), fill, dtype=array.dtype)
    grown[: len(array)] = array
    return grown


def _longer(array: npt.NDArray[Any], more: int) -> npt.NDArray[Any]:
    """`array` at twice its length and `more`; the rest is undefined."""
    grown = np.empty(2 * len(array) + 2 * more + 1, dtype=array.dtype)
    grown[: len(array)] = array
    return grown


@kernel
def _make_rows(  # type: ignore[no-untyped-def]
    rhs,
    initial_begin,
    initial_dots,
    nullable,
    kernel_items,
    kernel_begin,
    flags,
    start_state,
    item_dot,
    item_origin,
    segment_symbol,
    segment_first,
    segment_begin,
    origin_segment,
    row_slots,
    memo_keys,
    memo_rows,
    scratch,
    by_symbol,
    completed,
    meta,
):
    return RowArrays(
        rhs,
        initial_begin,
        initial_dots,
        nullable,
        kernel_items,
        kernel_begin,
        flags,
        start_state,
        item_dot,
        item_origin,
        segment_symbol,
        segment_first,
        segment_begin,
        origin_segment,
        row_slots,
        memo_keys,
        memo_rows,
        scratch,
        by_symbol,
        completed,
        meta,
    )


@kernel
def _hash_items(items, begin, end, flags):  # type: ignore[no-untyped-def]
    """A hash of items[begin:end] and `flags`, non-negative int64."""
    value = np.uint64(14695981039346656037) ^ np.uint64(flags)
    for k in range(begin, end):
        value = (value ^ np.uint64(items[k])) * np.uint64(1099511628211)
        value ^= value >> np.uint64(32)
    return np.int64(value >> np.uint64(1))


@kernel
def _fill_row_slots_kernel(slots, kernel_items, kernel_begin, flags, rows):  # type: ignore[no-untyped-def]
    """Enter the first `rows` rows into an empty hash table."""
    mask = len(slots) - 1
    for row in range(rows):
        slot = _hash_items(kernel_items, kernel_begin[row], kernel_begin[row + 1], flags[row]) & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = row


@kernel
def _mix(key):  # type: ignore[no-untyped-def]
    value = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((value ^ (value >> np.uint64(29))) >> np.uint64(1))


@kernel
def _refill_memo_kernel(keys, rows, new_keys, new_rows):  # type: ignore[no-untyped-def]
    """Copy the entries of a memo into an empty larger one."""
    mask = len(new_keys) - 1
    for k in range(len(keys)):
        if keys[k] >= 0:
            slot = _mix(keys[k]) & mask
            while new_keys[slot] >= 0:
                slot = (slot + 1) & mask
            new_keys[slot] = keys[k]
            new_rows[slot] = rows[k]


@kernel
def _intern_row(items, size, flags_of_row, rows):  # type: ignore[no-untyped-def]
    """The row whose kernel is items[:size] (sorted, distinct), made if need be; or ROW_FULL, with nothing changed."""
    mask = len(rows.row_slots) - 1
    slot = _hash_items(items, 0, size, flags_of_row) & mask
    while rows.row_slots[slot] >= 0:
        row = rows.row_slots[slot]
        first = rows.kernel_begin[row]
        if rows.kernel_begin[row + 1] - first == size and rows.flags[row] == flags_of_row:
            same = True
            for k in range(size):
                if rows.kernel_items[first + k] != items[k]:
                    same = False
                    break
            if same:
                return np.int64(row)
        slot = (slot + 1) & mask

    # Which nonterminals are predicted, and how many items have each symbol after the dot.
    count, origin_of, agenda, seen = rows.by_symbol[0], rows.by_symbol[1], rows.by_symbol[2], rows.by_symbol[3]
    nonterminals = 0
    present = 0  # distinct symbols after dots, kept in `seen`
    total = size
    for k in range(size):
        symbol = rows.rhs[items[k] >> 32]
        if count[symbol] == 0:
            seen[present] = symbol
            present += 1
            if rows.initial_begin[symbol + 1] > rows.initial_begin[symbol]:
                agenda[nonterminals] = symbol
                nonterminals += 1
        count[symbol] += 1
    done = 0
    while done < nonterminals:
        predicted = agenda[done]
        done += 1
        for k in range(rows.initial_begin[predicted], rows.initial_begin[predicted + 1]):
            symbol = rows.rhs[rows.initial_dots[k]]
            if count[symbol] == 0:
                seen[present] = symbol
                present += 1
                if rows.initial_begin[symbol + 1] > rows.initial_begin[symbol]:
                    agenda[nonterminals] = symbol
                    nonterminals += 1
            count[symbol] += 1
            total += 1
    row = rows.meta[R_ROWS]
    rows.meta[R_WANTED] = total + 1
    if total > rows.meta[R_MAX_ITEMS]:
        for k in range(present):
            count[seen[k]] = 0
        return np.int64(ROW_LIMIT)
    if (
        row >= rows.meta[R_MAX_ROWS]
        or row + 2 >= len(rows.flags)
        or rows.meta[R_KERNEL] + size > len(rows.kernel_items)
        or rows.meta[R_ITEMS] + total > len(rows.item_dot)
        or rows.meta[R_SEGMENTS] + present + 1 > len(rows.segment_symbol)
        or rows.meta[R_ORIGINS] + nonterminals > len(rows.origin_segment)
    ):
        for k in range(present):
            count[seen[k]] = 0
        return np.int64(ROW_FULL)

    # Segments in the order of symbols; `count` becomes where the next item of a symbol goes.
    seen[:present].sort()
    segment = rows.meta[R_SEGMENTS]
    place = rows.meta[R_ITEMS]
    for k in range(present):
        symbol = seen[k]
        rows.segment_symbol[segment + k] = symbol
        rows.segment_first[segment + k] = place
        place += count[symbol]
        count[symbol] = rows.segment_first[segment + k]
    rows.segment_first[segment + present] = place
    for k in range(nonterminals):
        origin_of[agenda[k]] = rows.meta[R_ORIGINS] + k
    for k in range(size):
        dot = items[k] >> 32
        symbol = rows.rhs[dot]
        rows.item_dot[count[symbol]] = dot
        rows.item_origin[count[symbol]] = items[k] & 0xFFFFFFFF
        count[symbol] += 1
    for j in range(nonterminals):
        predicted = agenda[j]
        for k in range(rows.initial_begin[predicted], rows.initial_begin[predicted + 1]):
            dot = rows.initial_dots[k]
            symbol = rows.rhs[dot]
            rows.item_dot[count[symbol]] = dot
            rows.item_origin[count[symbol]] = origin_of[predicted]
            count[symbol] += 1

    # Origin points; those whose items all stand at the end of their rules and have one origin are that origin.
    base = rows.meta[R_ORIGINS]
    for k in range(present):
        symbol = seen[k]
        if rows.initial_begin[symbol + 1] > rows.initial_begin[symbol]:
            rows.origin_segment[origin_of[symbol]] = segment + k
    changed = True
    while changed:  # again, since items with different origins may have one now
        changed = False
        for j in range(nonterminals):
            here = rows.origin_segment[base + j]
            only = base + j
            for k in range(rows.segment_first[here], rows.segment_first[here + 1]):
                origin = rows.item_origin[k]
                last = rows.rhs[rows.item_dot[k] + 1] == END
                if last and origin == base + j:
                    continue  # waits for what it completes: a cycle of unit rules, which adds nothing
                if not last or (only != base + j and origin != only):
                    only = base + j
                    break
                only = origin
            rows.by_symbol[0, j] = only  # `count` is free again, but for the symbols present: cleared below
        for j in range(nonterminals):
            # Follow the chain; one longer than there are points is a cycle of unit rules, and stays as it is.
            only = rows.by_symbol[0, j]
            steps = 0
            while only >= base and rows.by_symbol[0, only - base] != only and steps <= nonterminals:
                only = rows.by_symbol[0, only - base]
                steps += 1
            agenda[j] = only if steps <= nonterminals else base + j
        for k in range(rows.meta[R_ITEMS], place):
            if rows.item_origin[k] >= base and rows.item_origin[k] != agenda[rows.item_origin[k] - base]:
                rows.item_origin[k] = agenda[rows.item_origin[k] - base]
                changed = True
    count[:nonterminals] = 0
    for k in range(present):
        count[seen[k]] = 0

    first = rows.kernel_begin[row]
    for k in range(size):
        rows.kernel_items[first + k] = items[k]
    rows.kernel_begin[row + 1] = first + size
    rows.segment_begin[row + 1] = segment + present
    rows.flags[row] = flags_of_row
    rows.start_state[row] = -1
    rows.row_slots[slot] = row
    rows.meta[R_ROWS] = row + 1
    rows.meta[R_KERNEL] = first + size
    rows.meta[R_ITEMS] = place
    rows.meta[R_SEGMENTS] = segment + present
    rows.meta[R_ORIGINS] = base + nonterminals
    return row


@kernel
def _add_item(dot, origin, count, agenda, stamp, rows):  # type: ignore[no-untyped-def]
    """Add an item, past nullable symbols too, to scratch[:count]; an origin to complete goes to scratch[room + ...].

    Returns the new (count, agenda); count is -1 if there is no room.
    """
    room = len(rows.scratch) // 2
    while True:
        symbol = rows.rhs[dot]
        if symbol == END:
            if rows.completed[origin] != stamp:
                rows.completed[origin] = stamp
                if room + agenda >= len(rows.scratch):
                    rows.meta[R_WANTED] = len(rows.scratch)
                    return np.int64(-1), agenda
                rows.scratch[room + agenda] = origin
                agenda += 1
            return count, agenda
        if count >= room:
            rows.meta[R_WANTED] = len(rows.scratch)
            return np.int64(-1), agenda
        rows.scratch[count] = dot << 32 | np.int64(origin)
        count += 1
        if not rows.nullable[symbol]:
            return count, agenda
        dot += 1


@kernel
def _finish_row(count, agenda, accepts, stamp, rows):  # type: ignore[no-untyped-def]
    """Complete what is to be completed, and intern the row that comes of scratch[:count]."""
    room = len(rows.scratch) // 2
    done = 0
    while done < agenda:
        origin = rows.scratch[room + done]
        done += 1
        if origin == ROOT:
            accepts = True
            continue
        segment = rows.origin_segment[origin]
        for k in range(rows.segment_first[segment], rows.segment_first[segment + 1]):
            count, agenda = _add_item(
                np.int64(rows.item_dot[k]) + 1, np.int64(rows.item_origin[k]), count, agenda, stamp, rows
            )
            if count < 0:
                return np.int64(ROW_FULL)
    rows.scratch[:count].sort()
    size = 0
    for k in range(count):
        if size == 0 or rows.scratch[k] != rows.scratch[size - 1]:
            rows.scratch[size] = rows.scratch[k]
            size += 1
    return _intern_row(rows.scratch, size, _ACCEPTS if accepts else 0, rows)


@kernel
def _first_row_kernel(rows):  # type: ignore[no-untyped-def]
    """The row before the first lexeme, or ROW_FULL."""
    rows.meta[R_STAMP] += 1
    stamp = np.int32(rows.meta[R_STAMP])
    count, agenda = np.int64(0), np.int64(0)
    for k in range(rows.initial_begin[len(rows.nullable) - 1], rows.initial_begin[len(rows.nullable)]):
        count, agenda = _add_item(np.int64(rows.initial_dots[k]), np.int64(ROOT), count, agenda, stamp, rows)
    return _finish_row(count, agenda, bool(rows.nullable[len(rows.nullable) - 1]), stamp, rows)


@kernel
def find_row(row, lexemes, memo_keys, memo_rows):  # type: ignore[no-untyped-def]
    """The row after the accepting set `lexemes` in `row`, or -1 if there is none; UNKNOWN if nobody has asked yet."""
    key = np.int64(row) << 32 | np.int64(lexemes)
    mask = len(memo_keys) - 1
    slot = _mix(key) & mask
    while memo_keys[slot] >= 0:
        if memo_keys[slot] == key:
            return memo_rows[slot]
        slot = (slot + 1) & mask
    return np.int32(UNKNOWN)


@kernel
def scan_kernel(row, lexemes, set_pool, set_begin, rows):  # type: ignore[no-untyped-def]
    """The row after reading any lexeme of the accepting set `lexemes` in `row`; or -1, ROW_FULL or ROW_LIMIT.

    -1: none of them may stand here. After the skip lexeme the row is the same one; if other lexemes match the same
    bytes, the items of both readings make one row, unless the skip lexeme is to win (``meta[R_SKIP_WINS]``).
    """
    if 2 * rows.meta[R_MEMO] + 2 >= len(rows.memo_keys):
        rows.meta[R_WANTED] = 0
        return np.int64(ROW_FULL)
    rows.meta[R_STAMP] += 1
    stamp = np.int32(rows.meta[R_STAMP])
    room = len(rows.scratch) // 2
    count, agenda = np.int64(0), np.int64(0)
    accepts, skipped = False, False
    first, past = rows.segment_begin[row], rows.segment_begin[row + 1]
    for j in range(set_begin[lexemes], set_begin[lexemes + 1]):
        symbol = set_pool[j]
        if symbol == rows.meta[R_SKIP]:
            skipped = True
            continue
        low, high = first, past
        while low < high:
            middle = (low + high) >> 1
            if rows.segment_symbol[middle] < symbol:
                low = middle + 1
            else:
                high = middle
        if low == past or rows.segment_symbol[low] != symbol:
            continue
        for k in range(rows.segment_first[low], rows.segment_first[low + 1]):
            count, agenda = _add_item(
                np.int64(rows.item_dot[k]) + 1, np.int64(rows.item_origin[k]), count, agenda, stamp, rows
            )
            if count < 0:
                return np.int64(ROW_FULL)
    if skipped and (rows.meta[R_SKIP_WINS] or (count == 0 and agenda == 0)):
        following = np.int64(row)
    elif count == 0 and agenda == 0:
        following = np.int64(-1)
    else:
        if skipped:
            accepts = rows.flags[row] & _ACCEPTS != 0
            if count + rows.kernel_begin[row + 1] - rows.kernel_begin[row] > room:
                rows.meta[R_WANTED] = len(rows.scratch)
                return np.int64(ROW_FULL)
            for k in range(rows.kernel_begin[row], rows.kernel_begin[row + 1]):
                rows.scratch[count] = rows.kernel_items[k]
                count += 1
        following = _finish_row(count, agenda, accepts, stamp, rows)
        if following < 0:
            return following
    key = np.int64(row) << 32 | np.int64(lexemes)
    mask = len(rows.memo_keys) - 1
    slot = _mix(key) & mask
    while rows.memo_keys[slot] >= 0:
        slot = (slot + 1) & mask
    rows.memo_keys[slot] = key
    rows.memo_rows[slot] = following
    rows.meta[R_MEMO] += 1
    return following
