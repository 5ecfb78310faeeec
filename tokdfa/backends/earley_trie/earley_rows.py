"""Earley rows that are interned by content: equal situations are the same row, wherever they occur.

Words. A *dot* is a place in a rule's right side, as an index into the flat array ``rhs`` (right sides one after
another, each closed by an end mark). An *item* is a dot and an *origin*: where the text of its rule began. In Earley's
algorithm an origin is the index of a row. Here it is an *origin point*, the pair of a row and the nonterminal that was
predicted there, and what completing a rule needs of it is all that it stands for: the items of that row with that
nonterminal after the dot. A row's *core* holds the items that reading a lexeme put into it; the *predicted* items
follow from the core. All items of a row with one symbol after the dot are a *segment*: what reading that lexeme
moves on, or what an origin point stands for.

**Rows by content.** A row is the sorted set of its core's items and whether the text may end there. Completed items do
their work when the row is made (`tokdfa.backends.earley_trie.earley_scan`) and are left out. So a row is a pure
function of the row before and the lexemes read: loops come back to the same number, and a parser's whole state is one
number.

**Right recursion.** In ``list: X list | X`` every X would open an origin point of its own, whose completion only
completes the one before. If all items that wait for a nonterminal in a row stand at their rule's last symbol and have
one origin, that origin is taken in place of a new one: completing either is completing the other. So right recursion
runs in one row as left recursion does (Leo 1991 reaches the same by memoised reduction paths).

Sources: Earley 1970; hash-consed rows are ours. Cost: making a row is linear in its items.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tokdfa.backends.earley_trie.lexer import NEEDS_ROWS
from tokdfa.core.interning import TableArrays, append, find, has_room
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_struct import Struct, struct_at
from tokdfa.core.sorting import sort_range

#: Stands in `rhs` at the end of each right side.
END = -1
#: Indices into `meta`: items, segments, origin points, entries of the memo; the room asked for; a number for each scan;
#: the skip lexeme, and whether it wins over other lexemes that match the same bytes; the limit on the items of a row;
#: work done and not paid for, in items of about 5 ns.
R_ITEMS, R_SEGMENTS, R_ORIGINS, R_MEMO, R_WANTED, R_STAMP, R_SKIP, R_SKIP_WINS, R_MAX_ITEMS, R_WORK = range(10)
#: The origin point of the whole text.
ROOT = 0
#: Row flag: the text may end here.
ACCEPTS = 1

#: The arrays that kernels take, in this order; `tokdfa.backends.earley_trie.earley.Rows` says what each holds.
# fmt: off
ROWS_FIELDS = {
    **dict.fromkeys(("rhs", "initial_begin", "initial_dots"), "int32"), "nullable": "bool",
    **dict.fromkeys((
        "flags", "start_state", "segment_begin", "item_dot", "item_origin", "segment_symbol", "segment_first",
        "origin_segment",
    ), "int32"),
    "memo_keys": "int64", "memo_rows": "int32", "scratch": "int64", "by_symbol": "int32", "completed": "int32",
    "meta": "int64",
}
# fmt: on
_DECLARED: dict[str, tuple[str, int] | type[Struct]] = {
    "cores": TableArrays,
    **{name: (dtype, 2 if name == "by_symbol" else 1) for name, dtype in ROWS_FIELDS.items()},
}


class RowArrays(Struct, fields=tuple(_DECLARED), declared=_DECLARED):
    """What kernels take: the interning table of the rows' cores, then ROWS_FIELDS."""


rows_at = struct_at(RowArrays)


def gather_rows(owner: Any) -> Any:
    """The struct of the arrays of rows, which are attributes of `owner`."""
    return RowArrays(owner.cores.struct, *(getattr(owner, name) for name in ROWS_FIELDS))


@kernel
def intern_row(items, end, flags_of_row, rows):  # type: ignore[no-untyped-def]
    """The row whose core is items[1:end] (sorted, distinct), made if need be; or -NEEDS_ROWS, with nothing changed.

    ``items[0]`` becomes the flags, which are interned in front of the items.
    """
    items[0] = flags_of_row
    row = find(items, 0, end, rows.cores)
    if row >= 0:
        return row

    # Which nonterminals are predicted, and how many items have each symbol after the dot.
    count, origin_of, agenda, seen = rows.by_symbol[0], rows.by_symbol[1], rows.by_symbol[2], rows.by_symbol[3]
    nonterminals = 0
    present = 0  # distinct symbols after dots, kept in `seen`
    total = end - 1
    for k in range(1, end):
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
    rows.meta[R_WANTED] = total + 1
    rows.meta[R_WORK] += end - 1 + 2 * total
    if (
        total > rows.meta[R_MAX_ITEMS]
        or rows.meta[R_ITEMS] + total > len(rows.item_dot)
        or rows.meta[R_SEGMENTS] + present + 1 > len(rows.segment_symbol)
        or rows.meta[R_ORIGINS] + nonterminals > len(rows.origin_segment)
        or not has_room(1, end, rows.cores)
    ):
        for k in range(present):
            count[seen[k]] = 0
        return np.int64(-NEEDS_ROWS)

    # Segments in the order of symbols; `count` becomes where the next item of a symbol goes.
    sort_range(seen, 0, present)
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
    for k in range(1, end):
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
        rows.meta[R_WORK] += total
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
            rows.meta[R_WORK] += steps
            if steps > 1 and steps <= nonterminals:  # lead all of the chain to its end at once
                behind = rows.by_symbol[0, j]
                rows.by_symbol[0, j] = only
                while behind >= base and behind != only:
                    following = rows.by_symbol[0, behind - base]
                    rows.by_symbol[0, behind - base] = only
                    behind = following
        for k in range(rows.meta[R_ITEMS], place):
            if rows.item_origin[k] >= base and rows.item_origin[k] != agenda[rows.item_origin[k] - base]:
                rows.item_origin[k] = agenda[rows.item_origin[k] - base]
                changed = True
    count[:nonterminals] = 0
    for k in range(present):
        count[seen[k]] = 0

    row = append(items, 0, end, rows.cores)
    rows.segment_begin[row + 1] = segment + present
    rows.flags[row] = flags_of_row
    rows.meta[R_ITEMS] = place
    rows.meta[R_SEGMENTS] = segment + present
    rows.meta[R_ORIGINS] = base + nonterminals
    return row
