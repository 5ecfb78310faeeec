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
many steps as the transformation has pairs (1 to 2 ns each). Limit: `max_pairs` pairs, 8 bytes each. In parallel, each
thread takes a part of the trie and a store of its own; columns are united in the order of the tokens, so the result is
the same.

Source: ours; the transformations of an automaton and their monoid are textbook (Eilenberg, "Automata, Languages, and
Machines", volume B). 001 for what it is compared with.
"""

cimport cython
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from tokdfa.core.border cimport PAID_WORK, pay
from tokdfa.core.interning cimport pair_key
from tokdfa.token_automata.columns cimport ColumnStore
from tokdfa.token_automata.row_walk cimport RowView, WordList
from tokdfa.vocabulary.byte_table cimport DEAD, UNKNOWN, WalkProgress

from functools import partial

import numpy as np

from tokdfa.errors import LimitExceeded
from tokdfa.token_automata.columns import unite
from tokdfa.token_automata.parallel import run_in_threads, split_trie


cdef enum:
    NS_PER_PAIR = 3         # of the budget
    PAIRS_PER_COLUMN = 20   # what a new column takes beside its pairs, in pairs


cdef class ColumnWalk


cdef inline RowView view_of "view_of" (ColumnWalk walk) noexcept nogil:
    return RowView(walk.steps.data(), &walk.class_of[0])


cdef int make_step "make_step" (ColumnWalk walk, int32_t* stack, uint64_t depth, uint64_t byte) except -1 nogil:
    return walk.make_step(stack[depth], walk.class_of[byte])


cdef extern from "tokdfa/vocabulary/walker.hpp" namespace "tokdfa" nogil:
    int walk_columns "tokdfa::walk<view_of, tokdfa::step_row, make_step, tokdfa::list_word>" (
        const uint64_t*, WalkProgress&, int64_t, ColumnWalk, int32_t*, WordList&) except -1


def transformations(trie, dfa, *, byte_classes=True, threads=1, max_pairs=30_000_000):
    """The distinct transformations of the tokens in `trie`, in order of their first token: `Columns`.

    `byte_classes`: step by the automaton's byte classes; otherwise by bytes. Raises LimitExceeded past `max_pairs`.
    """
    parts = split_trie(trie.ranked_nodes, len(trie.order), threads)
    if byte_classes:
        table, class_of = dfa.transitions, dfa.byte_class
    else:
        table, class_of = dfa.byte_table(), np.arange(256, dtype=np.uint8)
    walks = [ColumnWalk(table, class_of, trie.depth_limit, max_pairs) for _ in parts]
    given = trie.ranked_nodes, len(trie.order)
    found = run_in_threads([partial(walk.columns_of, *given, part) for walk, part in zip(walks, parts, strict=True)])
    return found[0] if len(found) == 1 else unite(found)


@cython.final
cdef class ColumnWalk:
    """The automaton of transformations, as far as it has been made. Its states are columns; 0 is the identity."""

    cdef ColumnStore store
    cdef vector[int32_t] steps      # column * classes + class -> column * classes, DEAD or UNKNOWN
    cdef vector[int32_t] targets    # class * states + state -> state, or -1: a class by itself, as columns are stepped
    cdef uint8_t[256] class_of
    cdef size_t classes, states
    cdef vector[int64_t] pairs      # the column that is being made
    cdef vector[int32_t] stack
    cdef size_t pair_count, max_pairs, held
    cdef int64_t work

    def __init__(
        self, const int32_t[:, ::1] transitions, const uint8_t[::1] class_of, int64_t depth_limit, size_t max_pairs
    ):
        cdef size_t state, letter
        self.states, self.classes, self.max_pairs = transitions.shape[0], transitions.shape[1], max_pairs
        for letter in range(256):
            self.class_of[letter] = class_of[letter]
        self.targets.resize(self.states * self.classes)
        for state in range(self.states):
            for letter in range(self.classes):
                self.targets[letter * self.states + state] = transitions[state, letter]
            self.pairs.push_back(pair_key(<int32_t>state, <int32_t>state))
        self.store = ColumnStore()
        self.store.columns.intern(self.pairs.data(), self.pairs.size())
        self.steps.assign(self.classes, UNKNOWN)
        self.stack.assign(depth_limit + 1, 0)

    def columns_of(self, const uint64_t[::1] nodes, uint64_t token_count, part):
        """The columns of the tokens of a `TriePart`."""
        cdef WordList out
        cdef WalkProgress progress = WalkProgress(part.begin, 0, 0, 0)
        found = np.empty((2, part.end_rank - part.first_rank + 1), dtype=np.int32)
        cdef int32_t[:, ::1] lists = found
        out = WordList(&lists[0, 0], &lists[1, 0], 0, token_count)
        for node in part.path:
            progress = WalkProgress(node, node + 1, 0, 0)
            walk_columns(&nodes[0], progress, INT64_MAX, self, self.stack.data(), out)
            out.count = 0  # its token is of an earlier part
            if progress.here > <uint64_t>node + 1:  # nothing below this ancestor survives
                break
            progress.here = part.begin
        progress.end = part.end
        with nogil:
            if progress.here < progress.end:
                walk_columns(&nodes[0], progress, INT64_MAX, self, self.stack.data(), out)
        self._pay()
        return self.store.columns_of(found[0, : out.count], found[1, : out.count], <uint32_t>self.classes)

    cdef int make_step(self, int32_t row, size_t letter) except -1 nogil:
        """Make the entry of `steps` for the column at `row` and one byte of a class more."""
        cdef int32_t column = row // <int32_t>self.classes, target, made = DEAD
        cdef size_t size = self.store.columns.length(column), kept = 0, k
        cdef const int64_t* pairs = self.store.columns.content_of(column)
        cdef const int32_t* after = self.targets.data() + letter * self.states
        cdef int64_t* out
        self.work += PAIRS_PER_COLUMN + size
        if self.work > PAID_WORK:
            self._pay()
        if self.pairs.size() < size:
            self.pairs.resize(size)
        out = self.pairs.data()
        for k in range(size):
            target = after[<int32_t>pairs[k]]
            out[kept] = pair_key(<int32_t>(pairs[k] >> 32), target)
            kept += target >= 0
        if kept:
            column = self.store.columns.intern(out, kept)
            made = column * <int32_t>self.classes
            if <size_t>made == self.steps.size():
                self.steps.resize(self.steps.size() + self.classes, UNKNOWN)
                self.pair_count += kept
        if self.pair_count > self.max_pairs:
            self._refuse()
        self.steps[row + letter] = made
        return 0

    cdef int _pay(self) except -1 nogil:
        """Count work, and new entries of `steps` and pairs."""
        cdef size_t nbytes = 8 * self.pair_count + 4 * self.steps.size()
        pay(NS_PER_PAIR * self.work, nbytes - self.held)
        self.work, self.held = 0, nbytes
        return 0

    cdef int _refuse(self) except -1 with gil:
        raise LimitExceeded(
            f"the tokens' transformations need more than {self.max_pairs} pairs of states: use token_index with "
            "lazy=True, or raise max_transitions",
            limit="max_transitions",
            value=self.max_pairs,
        )
