"""Byte tables, and the plain walk with one: which tokens does a recogniser of bytes allow?

Theory. A recogniser reads a text byte by byte; a token is allowed iff the recogniser survives all its bytes. Tokens
share prefixes, so we walk the trie: at a node, try the node's byte from the state reached at its parent; if it
survives, allow the node's token and go on to the next node in depth-first order (the first child, if there is one); if
not, skip the node's subtree. The states on the way from the root lie in a stack indexed by depth, so nothing is popped:
a node of depth d reads ``stack[d]`` and writes ``stack[d + 1]``. `tokdfa.vocabulary.walk_forms` derives this from the
plain recursive walk in three steps, and keeps each; `tokdfa.vocabulary.walker` is the loop.

Two recognisers:

(a) A *byte table*: flat int32 ``transitions``, one row of ``class_count`` entries a state. A state is named by the
    offset of its row, and entries are such offsets (no multiplication in the loop), DEAD or UNKNOWN. The kernel stops
    at an UNKNOWN entry, Python code fills it (`ByteTable.fill`), and the walk resumes where it stopped. So a
    complete table and a lazy one run at the same speed once filled.
(b) Any Python object with ``step(state, byte) -> state or None`` (`ByteRecognizer`): a prototype in ten lines. It runs
    through (a) by naming its states with numbers (`RecognizerTable`), so each (state, byte) is stepped at most once.

Cost, Llama 3 vocabulary, wide state: 267,296 nodes at 2.5 ns (``tokdfa run experiments/trie_walk.yaml``;
`papers/reports/trie-walk.md`). The mask is written without a branch: nodes that end no token set the spare bit V, which
is cleared at the end.

Sources: 004 (toktrie), 000 (llguidance). Both push and pop the recogniser's own stack; the stack indexed by depth, one
packed word a node, row offsets as states and unsigned arithmetic (a signed index costs a test for wrap-around) are
ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tokdfa.core.budget import spend
from tokdfa.core.jit import kernel
from tokdfa.vocabulary import walker
from tokdfa.vocabulary.walker import set_bit, specialise, write_pair

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tokdfa.mask import Mask
    from tokdfa.vocabulary.trie import TokenTrie

#: What the budget of a step allows a node (`tokdfa.core.budget`); it takes less.
NS_PER_NODE = 3
#: A table entry: no text goes on this way.
DEAD = walker.DEAD
#: A table entry: not computed yet.
UNKNOWN = -2


class ByteTable(Protocol):
    """What the kernel needs of a recogniser. Filling a row may replace `transitions` by a larger array."""

    transitions: npt.NDArray[np.int32]  #: flat; row offset + class -> row offset, DEAD or UNKNOWN
    byte_class: npt.NDArray[np.uint8]  #: shape (256,)

    def fill(self, row: int, byte: int) -> None:
        """Replace the UNKNOWN entry of a byte in the row at offset `row`, and others as far as that is cheap."""


class ByteRecognizer(Protocol):
    """Any byte recogniser in Python: `step` returns the next state, or None where no text goes on."""

    def step(self, state: Any, byte: int) -> Any:
        """The state after `byte`, or None."""


class WalkCounters(NamedTuple):
    """Work done by one walk: nodes visited, nodes skipped unseen, stops to fill the table."""

    nodes_visited: int
    nodes_skipped: int
    rows_filled: int


def walk(trie: TokenTrie, table: ByteTable, state: int, mask: Mask) -> WalkCounters:
    """OR the tokens that `table` allows from `state` into `mask` (int32, shape (ceil(V/32),)).

    Cost: one visit for each node whose parent survived, 1.6-4 ns each, and one `fill` where it stops.
    """
    stack = np.empty(trie.depth_limit + 1, dtype=np.int32)
    stack[0] = state
    words = np.zeros(trie.size // 32 + 1, dtype=np.uint32)
    position = visited = skipped = filled = 0
    while True:
        position, _, seen, passed = _walk_table_kernel(
            trie.nodes, position, trie.node_count, (table.transitions, table.byte_class), stack, words, 0
        )
        visited, skipped = visited + seen, skipped + passed
        spend(NS_PER_NODE * seen)
        if position >= trie.node_count:
            break
        table.fill(int(stack[trie.depth(position)]), trie.byte(position))
        filled += 1
    if trie.size & 31:  # the spare bit is one of the mask's
        words[-1] &= np.uint32(~(1 << (trie.size & 31)) & 0xFFFFFFFF)
    unsigned = mask.view(np.uint32)
    np.bitwise_or(unsigned, words[: len(unsigned)], out=unsigned)
    return WalkCounters(visited, skipped, filled)


def walk_collect(
    trie: TokenTrie, table: ByteTable, state: int, tokens: npt.NDArray[np.int32], targets: npt.NDArray[np.int32]
) -> tuple[int, WalkCounters]:
    """The allowed tokens in trie order and the row each leads to, written to `tokens` and `targets` (int32).

    Both must have room for V + 1 entries. Returns how many there are, and the counters. Order is by bytes, then by id.
    """
    stack = np.empty(trie.depth_limit + 1, dtype=np.int32)
    stack[0] = state
    out = tokens, targets, trie.size
    position = count = visited = skipped = filled = 0
    while True:
        position, count, seen, passed = collect_tokens_kernel(
            trie.nodes, position, trie.node_count, (table.transitions, table.byte_class), stack, out, count
        )
        visited, skipped = visited + seen, skipped + passed
        spend(NS_PER_NODE * seen)
        if position >= trie.node_count:
            return count, WalkCounters(visited, skipped, filled)
        table.fill(int(stack[trie.depth(position)]), trie.byte(position))
        filled += 1


class RecognizerTable:
    """A lazily filled byte table over any Python recogniser whose states can be hashed: recogniser (b) through (a).

    Each byte is a class of its own. Grows by 1 kB a state; a row is filled when a walk first needs it.
    """

    def __init__(self, recognizer: ByteRecognizer) -> None:
        self.recognizer = recognizer
        self.byte_class: npt.NDArray[np.uint8] = np.arange(256, dtype=np.uint8)
        self.transitions: npt.NDArray[np.int32] = np.full(16 * 256, UNKNOWN, dtype=np.int32)
        self._rows: dict[Hashable, int] = {}
        self._states: list[Any] = []

    def row(self, state: Hashable) -> int:
        """The row offset that names `state`, a new one if need be."""
        row = self._rows.get(state)
        if row is None:
            row = self._rows[state] = 256 * len(self._states)
            self._states.append(state)
            if row == len(self.transitions):
                self.transitions = np.concatenate([self.transitions, np.full_like(self.transitions, UNKNOWN)])
        return row

    def state(self, row: int) -> Any:
        """The recogniser's state that `row` names."""
        return self._states[row // 256]

    def fill(self, row: int, byte: int) -> None:
        """Step the row's state with each byte."""
        state = self.state(row)
        following = [self.recognizer.step(state, one) for one in range(256)]
        rows = [DEAD if after is None else self.row(after) for after in following]
        self.transitions[row : row + 256] = rows


@kernel
def step_table(table, stack, depth, byte):  # type: ignore[no-untyped-def]
    """The table's entry, as the walker takes it: a row, DEAD, or UNKNOWN, which stops the walk."""
    transitions, byte_class = table
    target = transitions[np.uint64(stack[depth]) + np.uint64(byte_class[byte])]
    stack[depth + np.uint64(1)] = target
    return target


#: The walk of (transitions, byte_class) with a stack of rows, setting bits in words of V + 1 bits.
_walk_table_kernel = specialise(f"{__name__}._walk_table_kernel", step_table, set_bit)
#: The same, writing pairs of token and row: see `tokdfa.vocabulary.walker.write_pair`.
collect_tokens_kernel = specialise(f"{__name__}.collect_tokens_kernel", step_table, write_pair)


def _warm_up() -> None:
    """Run every kernel of the trie and of the walk once."""
    from tokdfa.mask import allocate_mask
    from tokdfa.vocabulary.vocabulary import Vocabulary
    from tokdfa.vocabulary.walk_layout import source_nodes, walk_source

    class AnyByte:
        def step(self, state: int, byte: int) -> int:
            return state

    trie = Vocabulary([b"a", b"ab", b""], end_tokens=[2]).trie
    table = RecognizerTable(AnyByte())
    walk(trie, table, table.row(0), allocate_mask(trie.size))
    room = np.empty(trie.size + 1, dtype=np.int32)
    walk_collect(trie, table, table.row(0), room, room.copy())
    nodes, rows, words = source_nodes(trie), np.zeros(256, dtype=np.int32), np.zeros(1, dtype=np.uint32)
    for alphabet in (np.zeros(256, dtype=np.uint8), None):
        walk_source(trie, nodes, rows, alphabet, 0, words)
