"""The parser of a grammar: its rules as flat arrays, and the tables of its rows, which grow.

`tokdfa.backends.earley_trie.earley_rows` says what a row is, `tokdfa.backends.earley_trie.earley_scan` how one leads to
the next; `Rows` holds what their kernels read and write. A kernel that lacks room makes no row and says so;
`Rows.grow` makes room, and the kernel is called again. Arrays grow to twice their length, so all growing together is
linear in what they hold at last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokdfa.backends.earley_trie.earley_rows import (
    ACCEPTS,
    END,
    R_MAX_ITEMS,
    R_ORIGINS,
    R_SKIP,
    R_SKIP_WINS,
    ROWS_FIELDS,
    gather_rows,
)
from tokdfa.backends.earley_trie.earley_scan import first_row_kernel
from tokdfa.core.budget import hold
from tokdfa.core.interning import Column, InterningTable, Limit
from tokdfa.core.key_map import is_crowded, longer_map, new_map
from tokdfa.errors import LimitExceeded
from tokdfa.grammar.simplify import nullable_symbols
from tokdfa.vocabulary.byte_table import UNKNOWN

if TYPE_CHECKING:
    from tokdfa.grammar.cfg import Cfg

Int32 = npt.NDArray[np.int32]


class Rows:
    """The rows of a grammar made so far. Row 0 is the one before the first lexeme. Not thread-safe.

    `max_rows` bounds their number, `max_items` the items of one row (core and predicted).
    """

    def __init__(self, cfg: Cfg, max_rows: int = 1_000_000, max_items: int = 200_000, skip_wins: bool = False) -> None:
        self.cfg, self.max_items = cfg, max_items
        self._build_grammar()
        room = 64
        columns = {
            "flags": Column(np.int32),
            "start_state": Column(np.int32, fill=-1),
            "segment_begin": Column(np.int32, ends=True),
        }
        limit = Limit(
            max_rows,
            "max_rows",
            f"the parser has made more than {max_rows} rows; the text is too deeply nested for the limit, or raise"
            " max_rows",
        )
        #: The core of each row: its flags, then its items as dot << 32 | origin.
        self.cores = InterningTable(columns, entries=room, words=5 * room, limit=limit)
        #: All items with a symbol after the dot, by row and symbol: a *segment* for each such symbol.
        self.item_dot = np.zeros(16 * room, dtype=np.int32)
        self.item_origin = np.zeros(16 * room, dtype=np.int32)
        self.segment_symbol = np.zeros(8 * room, dtype=np.int32)
        self.segment_first = np.zeros(8 * room + 1, dtype=np.int32)
        #: int32, shape (origins,): the segment that an origin point stands for (its items wait for it).
        self.origin_segment = np.full(room, -1, dtype=np.int32)
        #: int64 and int32: the memo, (row << 32 | accepting set) -> row.
        self.memo_keys, self.memo_rows = new_map(2 * room, UNKNOWN)
        self.scratch = np.zeros(1024, dtype=np.int64)
        symbols = len(self.cfg.names)
        #: Scratch by symbol: the origin of a predicted nonterminal, how many items have a symbol after the dot.
        self.by_symbol = np.zeros((4, symbols + 1), dtype=np.int32)
        #: Scratch by origin point: the row in whose making it was completed last.
        self.completed = np.full(room, -1, dtype=np.int32)
        self.meta = np.zeros(10, dtype=np.int64)
        self.meta[R_ORIGINS], self.meta[R_SKIP], self.meta[R_SKIP_WINS] = 1, cfg.skip, skip_wins
        self.meta[R_MAX_ITEMS] = max_items
        self._gather()
        while first_row_kernel(self.arrays) < 0:
            self.grow()

    def _gather(self) -> None:
        """Have kernels take the arrays as they are now."""
        #: int32, columns by row: 1 where the text may end; the lexer state in which the row's lexemes may begin, -1 if
        #: not known yet; where the row's segments begin, and the last one's end.
        self.flags, self.start_state, self.segment_begin = self.cores.columns.values()
        #: What kernels take; replaced by `grow`.
        self.arrays = gather_rows(self)

    @property
    def row_count(self) -> int:
        """Rows made so far."""
        return self.cores.count

    @property
    def nbytes(self) -> int:
        """Memory of all tables in bytes."""
        own = sum(getattr(self, name).nbytes for name in ROWS_FIELDS if name not in self.cores.columns)
        return self.cores.nbytes + own

    def accepts(self, row: int) -> bool:
        """Whether the text may end in `row`."""
        return bool(self.flags[row] & ACCEPTS)

    def allowed(self, row: int) -> list[int]:
        """The lexemes that may come next, ascending; the skip lexeme is none of the grammar's business."""
        segments = self.segment_symbol[self.segment_begin[row] : self.segment_begin[row + 1]]
        return [symbol for symbol in segments.tolist() if symbol < len(self.cfg.lexemes)]

    def core_of(self, row: int) -> list[tuple[int, int]]:
        """The items of a row's core as (dot, origin point), sorted."""
        packed = self.cores.content(row)[1:].tolist()
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

    def grow(self) -> None:
        """Double what is nearly full. Raises LimitExceeded past `max_rows` or `max_items`."""
        items, segments, origins, memo, wanted = (int(value) for value in self.meta[:5])
        if wanted > self.max_items:
            raise LimitExceeded(
                f"the parser has more than {self.max_items} items at one place of the text; simplify the alternatives"
                " (a terminal with the alternatives inside is one item), or raise max_row_items",
                limit="max_row_items",
                value=self.max_items,
            )
        grown: dict[str, npt.NDArray[Any]] = {}  # all or none, as the budget may end in between
        if 2 * items + wanted >= len(self.item_dot):
            grown |= {name: longer(getattr(self, name), wanted) for name in ("item_dot", "item_origin")}
        if 2 * segments + wanted >= len(self.segment_symbol):
            grown |= {name: longer(getattr(self, name), wanted) for name in ("segment_symbol", "segment_first")}
        if 2 * origins + wanted >= len(self.origin_segment):
            more = len(self.origin_segment) + wanted
            hold(8 * more)
            for name in ("origin_segment", "completed"):
                grown[name] = np.concatenate([getattr(self, name), np.full(more, -1, dtype=np.int32)])
        if 4 * wanted >= len(self.scratch):
            hold(64 * wanted)
            grown["scratch"] = np.zeros(8 * wanted, dtype=np.int64)
        if is_crowded(2 * memo, self.memo_keys):
            hold(self.memo_keys.nbytes + self.memo_rows.nbytes)
            grown["memo_keys"], grown["memo_rows"] = longer_map(self.memo_keys, self.memo_rows, UNKNOWN)
        self.cores.grow()
        vars(self).update(grown)
        self._gather()

    def _build_grammar(self) -> None:
        """Flat arrays of the rules, with one more symbol and rule: text -> start. Linear in the grammar."""
        cfg = self.cfg
        rules = [*cfg.rules, (len(cfg.names), (cfg.start,))]
        nullable = np.zeros(len(cfg.names) + 1, dtype=np.bool_)
        nullable[list(nullable_symbols(cfg))] = True
        nullable[-1] = nullable[cfg.start]
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


def longer(array: npt.NDArray[Any], more: int) -> npt.NDArray[Any]:
    """`array` with twice its rows and twice `more`, and one, undefined; it counts towards the budget."""
    grown = np.empty((2 * len(array) + 2 * more + 1, *array.shape[1:]), dtype=array.dtype)
    hold(grown.nbytes - array.nbytes)
    grown[: len(array)] = array
    return grown
