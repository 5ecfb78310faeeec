"""Token classes by what tokens do: one walk of the token trie by the automaton of transformations.

Theory. A prefix of a token acts on the states of the automaton as a transformation (`tokdfa.token_automata.columns`),
and a prefix that is one byte longer acts as that transformation followed by the byte's. So transformations are
themselves the states of a deterministic automaton over byte classes: it starts at the identity and steps from f by
class c to f·c; where f·c is defined nowhere, no state survives, and every token with that prefix is out. Different
prefixes with equal transformations are one state of it. This automaton is the DFA run from all of its states at once,
and the token trie is walked by it exactly as by any other: made lazily, one table look-up a node, dead subtrees
skipped. At a node that ends a token the state reached *is* the token's column.

What it replaces: 001 classifies tokens by their strings of byte classes, builds prefix graphs of these, and walks the
graphs from every state. There are far fewer transformations than class strings: on 131,072 tokens the eleven benchmark
regexes have 3 to 1,483 against 6 to 86,729 (``tokdfa run experiments/tokens_dfa_ablation.yaml`` shows both). Dead bytes
and prefix graphs come for free: a dead byte's transformation is empty, and a transformation is computed once for all
the prefixes that share it.

Cost: one visit for each trie node whose prefix survives (about 1.6 ns), and for each new (transformation, class) as
many steps as the transformation has pairs. Limit: `max_pairs` pairs, 8 bytes each. In parallel, each thread takes a
part of the trie and a store of its own; columns are united in the order of the tokens, so the result is the same.

Source: ours; the transformations of an automaton and their monoid are textbook (Eilenberg, "Automata, Languages, and
Machines", volume B). 001 for what it is compared with.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.core.interning import COUNT, NEEDS_ROOM, Column, has_room, intern
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_budget import pay
from tokdfa.core.keys import first_of, pack_pair, second_of
from tokdfa.errors import LimitExceeded
from tokdfa.token_automata.columns import column_store, columns_of, unite
from tokdfa.token_automata.parallel import run_in_threads, split_trie
from tokdfa.vocabulary.byte_table import DEAD, UNKNOWN, collect_tokens_kernel
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT

if TYPE_CHECKING:
    from tokdfa.automata.dfa import Dfa
    from tokdfa.token_automata.columns import Columns
    from tokdfa.token_automata.parallel import TriePart
    from tokdfa.vocabulary.trie import TokenTrie

#: What a pair of a new column takes, and how many are paid for at once.
NS_PER_PAIR, PAID_PAIRS = 3, 1 << 17


def transformations(
    trie: TokenTrie, dfa: Dfa, *, byte_classes: bool = True, threads: int = 1, max_pairs: int = 30_000_000
) -> Columns:
    """The distinct transformations of the tokens in `trie`, in order of their first token.

    `byte_classes`: step by the automaton's byte classes; otherwise by bytes. Raises LimitExceeded past `max_pairs`.
    """
    parts = split_trie(trie.ranked_nodes, len(trie.order), threads)
    walkers = [_Walker(trie, dfa, byte_classes, max_pairs) for _ in parts]
    found = run_in_threads([partial(walker.walk, part) for walker, part in zip(walkers, parts, strict=True)])
    return found[0] if len(found) == 1 else unite(found)


class _Walker:
    """The automaton of transformations, as far as it has been made, and what one walk found."""

    def __init__(self, trie: TokenTrie, dfa: Dfa, byte_classes: bool, max_pairs: int) -> None:
        states = dfa.state_count
        self.trie, self.max_pairs = trie, max_pairs
        # copies, since numba compiles a kernel once more for frozen arrays
        self.byte_class = dfa.byte_class.copy() if byte_classes else np.arange(256, dtype=np.uint8)
        self.transitions = dfa.transitions.copy() if byte_classes else dfa.byte_table()
        # ``steps`` is a table as in the plain walk (`tokdfa.vocabulary.byte_table`), with columns for states
        steps = Column(np.int32, self.transitions.shape[1], UNKNOWN, flat=True)
        self.store = column_store(4 * states + 1024, 128, {"steps": steps})
        self.stack = np.zeros(trie.depth_limit + 1, dtype=np.int32)
        self.store.intern(np.arange(states, dtype=np.int64) * ((1 << 32) + 1))  # column 0: every state to itself

    def walk(self, part: TriePart) -> Columns:
        """The columns of the tokens of `part`."""
        room = part.end_rank - part.first_rank + 1
        ranks, rows = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32)
        begin = part.begin
        for node in part.path:
            behind, _ = self._visit(node, node + 1, ranks, rows)
            if behind > node + 1:  # nothing below this ancestor survives
                begin = behind
                break
        _, count = self._visit(begin, part.end, ranks, rows)
        return columns_of(self.store, ranks[:count], rows[:count], self.transitions.shape[1])

    def _visit(
        self, position: int, end: int, ranks: npt.NDArray[np.int32], rows: npt.NDArray[np.int32]
    ) -> tuple[int, int]:
        """Visit the nodes ``position .. end - 1``, writing ranks and rows of tokens; (the node behind, tokens)."""
        count = 0
        while True:
            position, count = _walk_by_transformations_kernel(
                self.trie.ranked_nodes,
                position,
                end,
                len(self.trie.order),
                self.byte_class,
                self.transitions,
                self.store.columns["steps"],
                self.stack,
                count,
                ranks,
                rows,
                self.store.struct,
            )
            if position >= end:
                return position, count
            self._grow()

    def _grow(self) -> None:
        if self.store.words_used > self.max_pairs:
            raise LimitExceeded(
                f"the tokens' transformations need more than {self.max_pairs} pairs of states: use token_index with "
                "lazy=True, or raise max_transitions",
                limit="max_transitions",
                value=self.max_pairs,
            )
        self.store.grow()


@kernel
def _step_transformation(column, byte_class, transitions, store):  # type: ignore[no-untyped-def]
    """The column after one byte of `byte_class` more; DEAD if it is empty, NEEDS_ROOM if there is no room to tell."""
    words = store.words
    first, past = store.begin[column], store.begin[column + 1]
    if not has_room(1, past - first, store):
        return np.int64(NEEDS_ROOM)
    begin = store.begin[store.meta[COUNT]]
    end = begin
    for k in range(first, past):
        target = transitions[second_of(words[k]), byte_class]
        if target >= 0:
            words[end] = pack_pair(first_of(words[k]), target)
            end += 1
    if end == begin:
        return np.int64(DEAD)
    return np.int64(intern(words, begin, end, store))


@kernel
def _walk_by_transformations_kernel(  # type: ignore[no-untyped-def]
    nodes,
    position,
    end,
    spare,
    byte_class,
    transitions,
    steps,
    stack,
    count,
    ranks,
    rows,
    store,
):
    """Walk nodes position..end-1, writing a token's rank and the row reached from index `count` on.

    `rows`: column x classes, as in `steps`; an entry of that which the walk finds lacking is made here. Returns (where
    it stopped for lack of room, how many tokens were written in all).
    """
    classes = transitions.shape[1]
    work = np.int64(0)
    while True:
        position, count, _, _ = collect_tokens_kernel(
            nodes, position, end, (steps, byte_class), stack, (ranks, rows, spare), count
        )
        if position >= end:
            return position, count
        depth = (nodes[position] >> np.uint64(DEPTH_SHIFT)) & np.uint64((1 << DEPTH_BITS) - 1)
        column, letter = np.int64(stack[depth]) // classes, np.int64(byte_class[nodes[position] & np.uint64(0xFF)])
        work += 20 + store.begin[column + 1] - store.begin[column]
        if work > PAID_PAIRS:
            pay(NS_PER_PAIR * work)
            work = np.int64(0)
        target = _step_transformation(column, letter, transitions, store)
        if target == NEEDS_ROOM:
            return position, count
        steps[column * classes + letter] = target * classes if target >= 0 else DEAD
