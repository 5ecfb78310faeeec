"""Lexer and Earley rows as one recogniser of bytes.

Words. A *situation* is all that the recogniser knows: the row before the current lexeme, the lexer state after the
bytes of the lexeme read so far, and a *fallback*, mostly -1. Situations are interned, so a matcher's state is one
number.

A byte that the lexer can continue with changes the lexer state alone; that is what happens at nearly every node of a
walk (000: over 99.5 %). Otherwise the lexeme ends, the parser reads it (`earley_scan.scan_kernel`, remembered by row
and accepting set), and the byte begins a lexeme of the next row. What ends a lexeme is the *lexing rule*:

- `one_byte` (llguidance's): the lexer goes on while it can. If it cannot, it must be accepting right there. So with
  ``list|listen`` before ``ed``, the text "listed" is lost at its "d".
- `longest` (maximal munch, as Lark means it): the lexeme is the longest that matches. Where an accepting state is left
  for one that does not accept, the fallback remembers the situation that ending there would have led to, and it is
  stepped along; once a longer match is found it is dropped, and if the lexer dies it takes over. A fallback may have a
  fallback of its own, and so on: a *chain*. Two links with the same row and lexer state live, match and die together,
  so the inner one never takes over and is left out: a chain is as long as its rows differ. Most grammars have no
  fallback that lives for more than a byte.

The *skip* lexeme may begin wherever a lexeme may (Lark), or only between two lexemes (`skip_at_ends` false; 000).

Each kernel returns a status; what it lacks (room, a row of a large automaton) is supplied by Python code, and it is
called again from where it stopped. Nothing is ever half done: rows and situations are made whole or not at all.
Cost: about 1 us a call of a kernel, then 0.2 us a byte, and about 1 us a new row.
`tokdfa.backends.earley_trie.walk` does without these calls where it can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokdfa.backends.earley_trie.earley import Rows
from tokdfa.backends.earley_trie.earley_rows import R_SKIP, R_WORK, rows_at
from tokdfa.backends.earley_trie.earley_scan import scan_kernel
from tokdfa.backends.earley_trie.lexer import (
    NEEDS_CHAIN,
    NEEDS_LEXER,
    NEEDS_ROWS,
    NEEDS_SITUATIONS,
    OK,
    REFUSED,
    START_MARK,
    Lexer,
    fill_transition_kernel,
    intern_state_kernel,
    lexer_at,
)
from tokdfa.core.budget import spend
from tokdfa.core.interning import InterningTable, Limit, TableArrays, intern
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_struct import Struct, struct_at
from tokdfa.core.key_map import look_up
from tokdfa.core.keys import pack_pair
from tokdfa.errors import LimitExceeded
from tokdfa.vocabulary.byte_table import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.grammar.cfg import Cfg

Int32 = npt.NDArray[np.int32]

#: Indices into `meta`: the lexing rule (1 is longest); whether the skip lexeme may stand at the ends; and counters of
#: walks: nodes visited, nodes at which a lexeme ended, lexemes that the parser had to scan; whether walks look for a
#: row where one was pushed last, and how often it was there.
S_LONGEST, S_SKIP_AT_ENDS, S_NODES, S_ENDS, S_SCANS, S_ROW_STACK, S_REUSED = range(7)
#: What a byte takes, without new rows.
NS_PER_BYTE = 200
#: What `Machine.supply` counts as, besides what it does, in ns: a row of the lexer is filled, a kernel called again.
SUPPLY_WORK = 20_000
#: Links of a chain at most; grammars in use have one or two.
MAX_CHAIN = 256


_FIELDS: dict[str, tuple[str, int] | type[Struct]] = {
    "situations": TableArrays,
    "content": ("int64", 1),
    "chain": ("int32", 2),
    "meta": ("int64", 1),
}


class SituationArrays(Struct, fields=tuple(_FIELDS), declared=_FIELDS):
    """What kernels take: the table of situations, of row, lexer state and fallback; room for one; scratch; meta."""


machine_at = struct_at(SituationArrays)


class Machine:
    """The recogniser of a grammar. Not thread-safe: see `tokdfa.backends.earley_trie.strategy`, which holds a lock."""

    def __init__(
        self,
        cfg: Cfg,
        *,
        longest: bool = True,
        skip_at_ends: bool = True,
        row_stack: bool = False,
        max_rows: int = 1_000_000,
        max_row_items: int = 200_000,
        max_lexer_states: int = 250_000,
    ) -> None:
        self.cfg = cfg
        self.lexer = Lexer(cfg, max_lexer_states)
        self.rows = Rows(cfg, max_rows, max_row_items, skip_wins=not longest)
        most = 8 * max_rows
        message = f"the recogniser has met more than {most} situations; raise max_rows"
        self.situations = InterningTable(entries=64, words=192, limit=Limit(most, "max_rows", message))
        self._content: npt.NDArray[np.int64] = np.zeros(3, dtype=np.int64)
        self.meta: npt.NDArray[np.int64] = np.zeros(7, dtype=np.int64)
        self.meta[[S_LONGEST, S_SKIP_AT_ENDS, S_ROW_STACK]] = longest, skip_at_ends, row_stack
        self.chain: Int32 = np.zeros((MAX_CHAIN, 4), dtype=np.int32)
        #: What kernels take; replaced by `supply`.
        self.arrays = self._gather()
        self.start = self.intern(0, self.start_state(0), -1)

    @property
    def nbytes(self) -> int:
        """Memory of all tables in bytes."""
        return self.lexer.nbytes + self.rows.nbytes + self.situations.nbytes + self.chain.nbytes

    def start_state(self, row: int) -> int:
        """The lexer state in which the lexemes that `row` allows may begin."""
        return self.supplied(lambda: _find_start(row, self.lexer.arrays, self.rows.arrays, self.meta))

    def next_row(self, row: int, accepting_set: int) -> int:
        """The row after one of the lexemes of the set, -1 if none may stand there."""
        return self.supplied(lambda: _find_next(row, accepting_set, self.lexer.arrays, self.rows.arrays, self.meta))

    def intern(self, row: int, state: int, fallback: int) -> int:
        """The number of a situation."""
        return self.supplied(lambda: intern_situation(row, state, fallback, self.arrays))

    def view(self, situation: int) -> tuple[int, int, int]:
        """(row, lexer state, fallback) of a situation."""
        row, state, fallback = self.situations.words[3 * situation : 3 * situation + 3].tolist()
        return row, state, fallback

    def run(self, situation: int, data: npt.NDArray[np.uint8], begin: int, end: int) -> int:
        """The situation after the bytes ``data[begin:end]``, or -1. O(bytes)."""
        spend(NS_PER_BYTE * (end - begin))
        while True:
            lexer, rows = self.lexer.arrays.address, self.rows.arrays.address
            found: int = _run_kernel(situation, data, begin, end, lexer, rows, self.arrays.address)
            if found >= -REFUSED:
                return found
            self.supply(-found)

    def can_end(self, situation: int) -> bool:
        """Whether the text so far is complete."""
        row = self.row_at_border(situation)
        return row >= 0 and self.rows.accepts(row)

    def row_at_border(self, situation: int) -> int:
        """The row after the lexeme being read, if it may end here; the row itself if none was begun; else -1."""
        return self.supplied(
            lambda: _find_border_kernel(
                situation, self.lexer.arrays.address, self.rows.arrays.address, self.arrays.address
            )
        )

    def supplied(self, call: Callable[[], int]) -> int:
        """What a kernel returns, a number or -1, called again and again until it has what it needs."""
        while True:
            found = int(call())
            if found >= -REFUSED:
                return found
            self.supply(-found)

    def supply(self, status: int) -> None:
        """Do what a kernel asked for. Raises LimitExceeded."""
        spend(SUPPLY_WORK)
        if status == NEEDS_LEXER:
            self.lexer.supply()
        elif status == NEEDS_ROWS:
            self.rows.grow()
        elif status == NEEDS_SITUATIONS:
            self.situations.grow()
            self.arrays = self._gather()
        else:
            raise LimitExceeded(
                f"the text may be cut into lexemes in more than {MAX_CHAIN} ways at once, because terminals that have"
                " matched may yet match more; make them end sooner, or use lexer=one_byte",
                limit="max_chain",
                value=MAX_CHAIN,
            )

    def _gather(self) -> Any:
        return SituationArrays(self.situations.struct, self._content, self.chain, self.meta)


@kernel
def intern_situation(row, state, fallback, machine):  # type: ignore[no-untyped-def]
    """The number of a situation, or -NEEDS_SITUATIONS."""
    content = machine.content
    content[0], content[1], content[2] = row, state, fallback
    number = intern(content, 0, 3, machine.situations)
    return number if number >= 0 else np.int64(-NEEDS_SITUATIONS)


@kernel
def view_situation(situation, machine):  # type: ignore[no-untyped-def]
    """(row, lexer state, fallback) of a situation."""
    words, first = machine.situations.words, 3 * situation
    return words[first], words[first + 1], words[first + 2]


@kernel
def _find_next(row, accepting_set, lexer, rows, meta):  # type: ignore[no-untyped-def]
    """The row after an accepting set, made if need be; -1 if there is none, or -NEEDS_ROWS."""
    following = np.int64(look_up(pack_pair(row, accepting_set), rows.memo_keys, rows.memo_rows))
    if following == UNKNOWN:
        meta[S_SCANS] += 1
        following = scan_kernel(row, accepting_set, lexer.sets, rows)
    return following


@kernel
def _find_border_kernel(situation, lexer_address, rows_address, machine_address):  # type: ignore[no-untyped-def]
    """`Machine.row_at_border`, or a status that needs something, negated."""
    lexer, rows, machine = lexer_at(lexer_address), rows_at(rows_address), machine_at(machine_address)
    link = np.int64(situation)
    while link >= 0:
        row, state, link = view_situation(link, machine)
        if lexer.accepting[state] >= 0:
            return _find_next(row, np.int64(lexer.accepting[state]), lexer, rows, machine.meta)
        first = lexer.states.begin[state]
        if first < lexer.states.begin[state + 1] and lexer.states.words[first] == START_MARK:
            return row
    return np.int64(-1)


@kernel
def _find_start(row, lexer, rows, meta):  # type: ignore[no-untyped-def]
    """The lexer state in which the lexemes of `row` may begin, or -NEEDS_LEXER."""
    state = np.int64(rows.start_state[row])
    if state >= 0:
        return state
    lexemes = len(lexer.start_component)
    first, past = rows.segment_begin[row], rows.segment_begin[row + 1]
    content = np.empty(past - first + 2, dtype=np.int64)
    content[0] = START_MARK
    size = 1
    skip = rows.meta[R_SKIP]
    placed = skip < 0 or not (
        meta[S_SKIP_AT_ENDS] or (row > 0 and past > first and rows.segment_symbol[first] < lexemes)
    )
    for segment in range(first, past):
        symbol = rows.segment_symbol[segment]
        if symbol >= lexemes:
            break
        if not placed and skip < symbol:
            placed = True
            content[size] = lexer.start_component[skip]
            size += 1
        component = lexer.start_component[symbol]
        if component >= 0:
            content[size] = component
            size += 1
    if not placed:
        content[size] = lexer.start_component[skip]
        size += 1
    state = intern_state_kernel(content, size, lexer)
    if state >= 0:
        rows.start_state[row] = state
    return state


@kernel
def find_target(state, column, lexer):  # type: ignore[no-untyped-def]
    """(status, the lexer state after a byte of class `column` or DEAD, -1)."""
    place = state * len(lexer.representatives) + column
    if lexer.transitions[place] == UNKNOWN:
        status = fill_transition_kernel(state, column, lexer)
        if status != OK:
            return status, np.int64(-1)
    return OK, np.int64(lexer.transitions[place])


@kernel
def end_lexeme(row, accepting_set, lexer, rows, machine):  # type: ignore[no-untyped-def]
    """(status, row, lexer state) after a lexeme of the set has ended, before the next byte."""
    following = _find_next(row, accepting_set, lexer, rows, machine.meta)
    if following < 0:
        return np.int64(-following), np.int64(-1), np.int64(-1)
    state = _find_start(following, lexer, rows, machine.meta)
    if state < 0:
        return NEEDS_LEXER, np.int64(-1), np.int64(-1)
    return OK, following, state


@kernel
def _add_link(count, row, state, chain):  # type: ignore[no-untyped-def]
    """Put (row, state) in front of the new chain's `count` links, and drop a link that is the same. The new count."""
    kept = 0
    for k in range(count):
        if chain[k, 2] != row or chain[k, 3] != state:
            chain[kept, 2], chain[kept, 3] = chain[k, 2], chain[k, 3]
            kept += 1
    chain[kept, 2], chain[kept, 3] = row, state
    return kept + 1


@kernel
def step_kernel(row, state, fallback, column, lexer, rows, machine):  # type: ignore[no-untyped-def]
    """(status, row, lexer state, fallback) after a byte of class `column`. The inmost fallback is stepped first.

    `machine.chain` holds the links before the byte, outmost first, and beside them those after it, inmost first.
    """
    chain, none = machine.chain, np.int64(-1)
    chain[0, 0], chain[0, 1] = row, state
    depth = 0
    while fallback >= 0:
        depth += 1
        if depth + 1 >= len(chain):
            return NEEDS_CHAIN, none, none, none
        chain[depth, 0], chain[depth, 1], fallback = view_situation(fallback, machine)
    count = 0
    rows.meta[R_WORK] += depth * (depth + 8)
    for level in range(depth, -1, -1):
        here, before = np.int64(chain[level, 0]), np.int64(chain[level, 1])
        status, target = find_target(before, column, lexer)
        if status != OK:
            return status, none, none, none
        accepted = np.int64(lexer.accepting[before])
        goes_on = target >= 0 and lexer.completes[target] < 0
        matches = goes_on and (not machine.meta[S_LONGEST] or lexer.accepting[target] >= 0)
        if target >= 0 and not goes_on:
            status, after, begun = end_lexeme(here, np.int64(lexer.completes[target]), lexer, rows, machine)
        elif accepted >= 0 and not matches:
            status, after, begun = end_lexeme(here, accepted, lexer, rows, machine)
            if status == OK:  # and the byte begins the next one
                status, begun = find_target(begun, column, lexer)
                if status == OK and begun < 0:
                    status = REFUSED
                elif status == OK and lexer.completes[begun] >= 0:
                    status, after, begun = end_lexeme(after, np.int64(lexer.completes[begun]), lexer, rows, machine)
        else:
            status, after, begun = REFUSED, none, none
        if status > REFUSED:
            return status, none, none, none
        if accepted >= 0 or matches or (target >= 0 and not goes_on):
            count = 0  # what the links further in would have led to is decided
        if status == OK:
            count = _add_link(count, after, begun, chain)
        if goes_on:
            count = _add_link(count, here, target, chain)
    if count == 0:
        return REFUSED, none, none, none
    fallback = none
    for link in range(count - 1):
        fallback = intern_situation(chain[link, 2], chain[link, 3], fallback, machine)
        if fallback < 0:
            return NEEDS_SITUATIONS, none, none, none
    return OK, np.int64(chain[count - 1, 2]), np.int64(chain[count - 1, 3]), fallback


@kernel
def _run_kernel(situation, data, begin, end, lexer_address, rows_address, machine_address):  # type: ignore[no-untyped-def]
    """The situation after the bytes, -1 if they are not allowed, or a status that needs something, negated."""
    lexer, rows, machine = lexer_at(lexer_address), rows_at(rows_address), machine_at(machine_address)
    row, state, fallback = view_situation(np.int64(situation), machine)
    for position in range(begin, end):
        status, row, state, fallback = step_kernel(
            row, state, fallback, np.int64(lexer.byte_class[data[position]]), lexer, rows, machine
        )
        if status != OK:
            return -np.int64(status)
    return intern_situation(row, state, fallback, machine)
