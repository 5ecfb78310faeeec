"""Masks by concatenation and union: the speculative terminal tree and its cache.

A token that leaves the current lexeme runs through further terminals. Which ones is speculated in a tree. A *node* is a
lexer state and a list of pairs (token, rest): the tokens that may have come so far, each with what is left of it. What
a node knows is made once, from the vectors of its lexer state (`tokdfa.cfg_fsm.splits`):

- *groups*: the tokens whose rest stays inside one lexeme, by the set of labels that this lexeme can still end in;
- *exits*: by outcome, the pairs that are left where a lexeme ends inside of the rest.

A mask is the union over the tree below each hypothesis (lexer state, stack): take the groups whose labels the stack
takes; for each exit whose label it takes, shift that label and go on at the child for the new stack's context. What is
left gets shorter, so the tree is finite: no deeper than the longest token.

Nodes know nothing of stacks. A child is found by (exit, context), so all stacks share the tree, and a mask for a new
stack costs a descent of some dozens of nodes: an OR of packed words for a wide group, a few bits for a narrow one.

Source: 003, "RegexFSM() + RegexFSM()" and "RegexFSM() | RegexFSM()", its tree of speculated terminals and its cache.
There a concatenation multiplies vectors over all pairs each time; here that is done once for a pair of lexer states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.cfg_fsm.splits import RestVectors, split_table
from tokdfa.cfg_fsm.stacks import FULL, REFUSED, shift_kernel, taken_kernel
from tokdfa.jit import kernel
from tokdfa.mask import mask_words

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.cfg_fsm.hypotheses import Hypotheses
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: Groups of at least this share of a mask's words are kept packed: to OR a word costs a tenth of setting a bit.
_PACKED_SHARE = 0.1
#: What the descent asks for, beside FULL: nothing, the root of a lexer state, the child of an exit in a context.
DONE, NEEDS_ROOT, NEEDS_CHILD = 0, 1, 2


class TreeArrays(NamedTuple):
    """The tree for kernels. `roots`: int32, shape (K,), nodes, -1 if there is none yet; `nodes`: int32, shape (., 4),
    where groups and exits begin and end; `groups`: int32, shape (., 3), the class of labels, and where its tokens begin
    and end in `tokens`, or -1 and a row of `packed`; `exits`: int32, shape (., 2), outcome as label and residue;
    `children`: int32, shape (., X), nodes by context, -1 if there is none yet; `class_ends`: uint64, shape (., W).
    """

    roots: npt.NDArray[np.int32]
    nodes: npt.NDArray[np.int32]
    groups: npt.NDArray[np.int32]
    tokens: npt.NDArray[np.int32]
    packed: npt.NDArray[np.uint32]
    exits: npt.NDArray[np.int32]
    children: npt.NDArray[np.int32]
    class_ends: npt.NDArray[np.uint64]


class _Rows:
    """A growing array of rows."""

    def __init__(self, width: int, dtype: type[np.generic] = np.int32) -> None:
        self._array = np.zeros((64, width), dtype=dtype)
        self.count = 0

    def extend(self, rows: np.ndarray) -> tuple[int, int]:
        """Append rows; returns where they begin and end."""
        begin, self.count = self.count, self.count + len(rows)
        if self.count > len(self._array):
            grown = np.zeros((max(2 * len(self._array), self.count), self._array.shape[1]), dtype=self._array.dtype)
            grown[:begin] = self._array[:begin]
            self._array = grown
        self._array[begin : self.count] = rows
        return begin, self.count

    @property
    def rows(self) -> np.ndarray:
        """All rows, a view."""
        return self._array[: self.count]


class Speculation:
    """Makes the masks of one grammar on one vocabulary. `counters`: work done. Not thread-safe.

    `limit`: bytes of vectors and nodes, past which all are dropped before the next mask.
    """

    def __init__(self, hypotheses: Hypotheses, vocab: Vocabulary, limit: int) -> None:
        self.hypotheses, self.limit = hypotheses, limit
        self.table = split_table(vocab)
        self.counters = {"nodes_passed": 0, "nodes_made": 0, "vectors_made": 0}
        lex = hypotheses.lex
        self._words = mask_words(vocab.size)
        outcomes = np.stack([lex.labels, lex.residues], axis=1)
        self._outcomes, numbers = np.unique(outcomes, axis=0, return_inverse=True)
        #: int32, by lexer state: the number of its outcome, -1 without a label.
        self._outcome_of = np.where(lex.labels < 0, -1, numbers.reshape(-1)).astype(np.int32)
        self._class_ends, classes = np.unique(lex.ends, axis=0, return_inverse=True)
        self._class_of = classes.reshape(-1).astype(np.int32)
        self._agenda: npt.NDArray[np.int32] = np.zeros((256, 2), dtype=np.int32)
        self.clear()

    def clear(self) -> None:
        """Forget all vectors and nodes."""
        lex = self.hypotheses.lex
        self._vectors: dict[int, RestVectors] = {}
        self._roots: npt.NDArray[np.int32] = np.full(len(lex.labels), -1, dtype=np.int32)
        self._nodes, self._groups, self._exits = _Rows(4), _Rows(3), _Rows(2)
        self._tokens, self._packed = _Rows(1), _Rows(self._words, np.uint32)
        self._children = _Rows(lex.starts.shape[1])
        #: By exit: the pairs that are left, tokens and rests.
        self._pairs: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]] = []
        self._same_child: dict[tuple[int, int], int] = {}
        self.nbytes = 0
        self._refresh()

    def _refresh(self) -> None:
        self.tree = TreeArrays(
            self._roots,
            self._nodes.rows,
            self._groups.rows,
            self._tokens.rows[:, 0],
            self._packed.rows,
            self._exits.rows,
            self._children.rows,
            self._class_ends,
        )

    def fill(self, situation: int, out: Mask) -> None:
        """Write the tokens that leave some hypothesis of `situation` open; `out` is int32, shape (ceil(V/32),)."""
        if self.nbytes > self.limit:
            self.clear()
        out.fill(0)
        stacks, members = self.hypotheses.stacks, self.hypotheses.members[situation]
        while True:
            status, one, other, passed = _descend_kernel(
                self.hypotheses.lex.starts,
                stacks.parse,
                stacks.arrays,
                self.tree,
                members,
                self._agenda,
                out.view(np.uint32),
            )
            self.counters["nodes_passed"] += passed
            if status == DONE:
                return
            if status == NEEDS_ROOT:
                self._roots[one] = self._make_node(one, self.table.tokens, self.table.wholes)
            elif status == NEEDS_CHILD:
                self._children.rows[one, other] = self._child(one, other)
            elif stacks.count == len(stacks.arrays.tops):
                stacks.grow()
            else:
                self._agenda = np.concatenate([self._agenda, np.zeros_like(self._agenda)])
            self._refresh()

    def _child(self, exit_number: int, context: int) -> int:
        residue = int(self._exits.rows[exit_number, 1])
        state = int(self.hypotheses.lex.starts[residue, context])
        key = exit_number, state
        if key not in self._same_child:
            self._same_child[key] = self._make_node(state, *self._pairs[exit_number])
        return self._same_child[key]

    def vectors(self, state: int) -> RestVectors:
        """The vectors of a lexer state; those of states in which a lexeme begins are kept."""
        found = self._vectors.get(state)
        if found is None:
            self.counters["vectors_made"] += 1
            found = self.table.vectors(self.hypotheses.lex, self._outcome_of, state)
            if (self.hypotheses.lex.starts == state).any():
                self._vectors[state] = found
                self.nbytes += found.nbytes
        return found

    def _make_node(self, state: int, tokens: npt.NDArray[np.int32], rests: npt.NDArray[np.int32]) -> int:
        """A new node: lexer state `state` and the pairs (tokens[i], rests[i])."""
        self.counters["nodes_made"] += 1
        vectors = self.vectors(state)
        inside = vectors.after[rests]
        stays = np.flatnonzero(inside >= 0)
        classes = self._class_of[inside[stays]]
        groups = [
            (number, *self._keep_tokens(tokens[stays[classes == number]])) for number in np.unique(classes).tolist()
        ]
        counts = vectors.begins[rests + 1] - vectors.begins[rests]
        # the exits of all pairs, one after another
        firsts = np.repeat(vectors.begins[rests] - (np.cumsum(counts) - counts), counts)
        places = firsts + np.arange(len(firsts))
        outcomes, left, leaving = vectors.outcomes[places], vectors.rests[places], np.repeat(tokens, counts)
        exits = np.unique(outcomes)
        for number in exits.tolist():
            chosen = outcomes == number
            self._pairs.append((leaving[chosen], left[chosen]))
            self.nbytes += 8 * int(chosen.sum())
        group_range = self._groups.extend(np.array(groups, dtype=np.int32).reshape(-1, 3))
        exit_range = self._exits.extend(self._outcomes[exits])
        self._children.extend(np.full((len(exits), self.hypotheses.lex.starts.shape[1]), -1, dtype=np.int32))
        node, _ = self._nodes.extend(np.array([[*group_range, *exit_range]], dtype=np.int32))
        return node

    def _keep_tokens(self, tokens: npt.NDArray[np.int32]) -> tuple[int, int]:
        """Where a group's tokens are kept: begin and end in the list of tokens, or -1 and a packed row."""
        if len(tokens) < _PACKED_SHARE * self._words:
            self.nbytes += tokens.nbytes
            return self._tokens.extend(tokens[:, None])
        row = np.zeros((1, self._words), dtype=np.uint32)
        np.bitwise_or.at(row[0], tokens >> 5, np.uint32(1) << (tokens & 31).astype(np.uint32))
        self.nbytes += row.nbytes
        return -1, self._packed.extend(row)[0]


@kernel
def _descend_kernel(starts, parse, stacks, tree, members, agenda, words):  # type: ignore[no-untyped-def]
    """OR into `words` the tokens of all groups below `members` (hypotheses) whose labels their stacks take.

    Returns (status, lexer state or exit, context, nodes passed). After anything but DONE, make what is asked for and
    call again: bits that are set already do no harm.
    """
    passed = np.int64(0)
    for member in range(len(members)):
        state = members[member, 0]
        if tree.roots[state] < 0:
            return NEEDS_ROOT, np.int64(state), np.int64(0), passed
        agenda[0, 0], agenda[0, 1] = tree.roots[state], members[member, 1]
        waiting = 1
        while waiting:
            waiting -= 1
            node, stack = agenda[waiting, 0], np.int64(agenda[waiting, 1])
            passed += 1
            taken_kernel(parse, stacks, stack)
            taken = stacks.taken[stack]
            for group in range(tree.nodes[node, 0], tree.nodes[node, 1]):
                hope = False
                for word in range(len(taken)):
                    if tree.class_ends[tree.groups[group, 0], word] & taken[word] != 0:
                        hope = True
                if hope:
                    _add_group_kernel(tree, group, words)
            for leaving in range(tree.nodes[node, 2], tree.nodes[node, 3]):
                label = np.int64(tree.exits[leaving, 0])
                if taken[label >> 6] >> np.uint64(label & 63) & np.uint64(1) == 0:
                    continue
                after = shift_kernel(parse, stacks, stack, label)
                if after == FULL or waiting == len(agenda):
                    return FULL, np.int64(0), np.int64(0), passed
                if after == REFUSED:
                    continue
                context = np.int64(parse.contexts[stacks.tops[after]])
                child = tree.children[leaving, context]
                if child < 0:
                    return NEEDS_CHILD, np.int64(leaving), context, passed
                agenda[waiting, 0], agenda[waiting, 1] = child, after
                waiting += 1
    return DONE, np.int64(0), np.int64(0), passed


@kernel
def _add_group_kernel(tree, group, words):  # type: ignore[no-untyped-def]
    """OR the tokens of a group into `words`."""
    begin, end = tree.groups[group, 1], tree.groups[group, 2]
    if begin < 0:
        row = tree.packed[end]
        for word in range(len(words)):
            words[word] |= row[word]
        return
    for place in range(begin, end):
        token = tree.tokens[place]
        words[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
