"""From row to row: reading a lexeme, completing the rules that it ends, and remembering where that led.

The words are those of `tokdfa.backends.earley_trie.earley_rows`. Reading a set of lexemes moves the dot of every item
that waits for one of them. A dot that reaches the end of its right side *completes* its rule: the items that the origin
point stands for move on too, and so on. What has not come to its end is the core of the next row, which is looked up
or made.

**Empty rules.** A dot before a nullable nonterminal also moves past it when the item is added (Aycock and Horspool
2002), so nothing is ever completed in the row in which it was predicted. Cycles such as ``a: a | X`` end because an
origin point is completed once a row.

**Memo.** The row after a set of lexemes is remembered by the row before and the number that the lexer gave the set, an
*accepting set* (`tokdfa.backends.earley_trie.lexer`): a map (`tokdfa.core.key_map`) of keys ``row << 32 | set`` to the
row, -1 if there is none, UNKNOWN if nobody has asked yet.

Sources: Earley 1970; 000 (llguidance; rows along a lexer, one scan for a set of lexemes). Cost: linear in the items
that move, and in those of the row if it is new; reading a set of lexemes in a row where that was done before is one
hash look-up.
"""

from __future__ import annotations

import numpy as np

from tokdfa.backends.earley_trie.earley_rows import (
    ACCEPTS,
    END,
    R_MEMO,
    R_SKIP,
    R_SKIP_WINS,
    R_STAMP,
    R_WANTED,
    R_WORK,
    ROOT,
    intern_row,
)
from tokdfa.backends.earley_trie.lexer import NEEDS_ROWS
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_budget import pay
from tokdfa.core.key_map import enter_key
from tokdfa.core.sorting import find_least, sort_distinct

#: What an item of a row takes, and how many are paid for at once, before a row is begun.
NS_PER_ITEM, PAID_ITEMS = 5, 1 << 16


@kernel
def _add_item(dot, origin, count, agenda, stamp, rows):  # type: ignore[no-untyped-def]
    """Add an item, past nullable symbols too, to scratch[1:count]; an origin to complete goes to scratch[room + ...].

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
    """Complete what is to be completed, and intern the row that comes of scratch[1:count]."""
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
                return np.int64(-NEEDS_ROWS)
    rows.meta[R_WORK] += 20 + 4 * count + agenda
    end = sort_distinct(rows.scratch, np.int64(1), np.int64(count))
    return intern_row(rows.scratch, end, ACCEPTS if accepts else 0, rows)


@kernel
def first_row_kernel(rows):  # type: ignore[no-untyped-def]
    """The row before the first lexeme, or -NEEDS_ROWS."""
    rows.meta[R_STAMP] += 1
    stamp = np.int32(rows.meta[R_STAMP])
    count, agenda = np.int64(1), np.int64(0)
    for k in range(rows.initial_begin[len(rows.nullable) - 1], rows.initial_begin[len(rows.nullable)]):
        count, agenda = _add_item(np.int64(rows.initial_dots[k]), np.int64(ROOT), count, agenda, stamp, rows)
    return _finish_row(count, agenda, bool(rows.nullable[len(rows.nullable) - 1]), stamp, rows)


@kernel
def scan_kernel(row, lexemes, sets, rows):  # type: ignore[no-untyped-def]
    """The row after reading any lexeme of the accepting set `lexemes` in `row`; or -1 or -NEEDS_ROWS.

    `sets`: the table of accepting sets. -1: none of them may stand here. After the skip lexeme the row is the same one;
    if other lexemes match the same bytes, the items of both readings make one row, unless the skip lexeme is to win
    (``meta[R_SKIP_WINS]``).
    """
    if rows.meta[R_WORK] >= PAID_ITEMS:
        work = NS_PER_ITEM * rows.meta[R_WORK]
        rows.meta[R_WORK] = 0
        pay(work)
    if 2 * rows.meta[R_MEMO] + 2 >= len(rows.memo_keys):
        rows.meta[R_WANTED] = 0
        return np.int64(-NEEDS_ROWS)
    rows.meta[R_STAMP] += 1
    stamp = np.int32(rows.meta[R_STAMP])
    room = len(rows.scratch) // 2
    count, agenda = np.int64(1), np.int64(0)
    accepts, skipped = False, False
    first, past = rows.segment_begin[row], rows.segment_begin[row + 1]
    for j in range(sets.begin[lexemes], sets.begin[lexemes + 1]):
        symbol = sets.words[j]
        if symbol == rows.meta[R_SKIP]:
            skipped = True
            continue
        segment = find_least(rows.segment_symbol, first, past, symbol)
        if segment == past or rows.segment_symbol[segment] != symbol:
            continue
        for k in range(rows.segment_first[segment], rows.segment_first[segment + 1]):
            count, agenda = _add_item(
                np.int64(rows.item_dot[k]) + 1, np.int64(rows.item_origin[k]), count, agenda, stamp, rows
            )
            if count < 0:
                return np.int64(-NEEDS_ROWS)
    if skipped and (rows.meta[R_SKIP_WINS] or (count == 1 and agenda == 0)):
        following = np.int64(row)
    elif count == 1 and agenda == 0:
        following = np.int64(-1)
    else:
        if skipped:
            accepts = rows.flags[row] & ACCEPTS != 0
            begin, end = rows.cores.begin[row] + 1, rows.cores.begin[row + 1]
            if count + end - begin > room:
                rows.meta[R_WANTED] = len(rows.scratch)
                return np.int64(-NEEDS_ROWS)
            for k in range(begin, end):
                rows.scratch[count] = rows.cores.words[k]
                count += 1
        following = _finish_row(count, agenda, accepts, stamp, rows)
        if following < 0:
            return following
    enter_key(np.int64(row) << 32 | np.int64(lexemes), following, rows.memo_keys, rows.memo_rows)
    rows.meta[R_MEMO] += 1
    return following
