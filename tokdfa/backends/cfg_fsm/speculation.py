"""Masks by concatenation and union: the speculative terminal tree and its cache.

A token that leaves the current lexeme runs through further terminals. Which ones is speculated in a tree. A *node* is a
lexer state and a list of pairs (token, rest): the tokens that may have come so far, each with what is left of it. What
a node knows is made once, from the vectors of its lexer state (`tokdfa.backends.cfg_fsm.splits`):

- *groups*: the tokens whose rest stays inside one lexeme, by the set of labels that this lexeme can still end in;
- *exits*: by outcome, the pairs that are left where a lexeme ends inside of the rest.

A mask is the union over the tree below each hypothesis (lexer state, stack): take the groups whose labels the stack
takes; for each exit whose label it takes, shift that label and go on at the child for the new stack's context. What is
left gets shorter, so the tree is finite: no deeper than the longest token.

Nodes know nothing of stacks. A child is found by exit and context, so all stacks share the tree, and a mask for a new
stack costs a descent of some dozens of nodes: an OR of packed words for a wide group, a few bits for a narrow one.

What is allowed below a hypothesis is kept as a list of groups, so that a mask of one met before is a union of these.

Vectors cost some milliseconds for each lexer state in which a lexeme begins, which walking the trie does not. A mask
whose part of the tree has no room is made by walking.

Source: 003, "RegexFSM() + RegexFSM()" and "RegexFSM() | RegexFSM()", its tree of speculated terminals and its cache.
There a concatenation multiplies vectors over all pairs each time; here that is done once for a pair of lexer states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.backends.cfg_fsm.cuts import join_pairs
from tokdfa.backends.cfg_fsm.splits import RestVectors, split_table
from tokdfa.core.budget import spend
from tokdfa.mask import mask_words
from tokdfa.vocabulary.byte_table import walk
from tokdfa.vocabulary.mask_store import add_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from tokdfa.backends.cfg_fsm.hypotheses import Hypotheses, Hypothesis
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.trie import TokenTrie
    from tokdfa.vocabulary.vocabulary import Vocabulary

    Ids = npt.NDArray[np.int32]
    Words = npt.NDArray[np.uint32]

_NONE = np.zeros(0, dtype=np.int32)
#: What is kept of a hypothesis beside its groups.
BYTES_PER_HYPOTHESIS = 300
#: Groups of at least this share of a mask's words are kept packed: to OR a word costs a tenth of setting a bit.
_PACKED_SHARE = 0.1
#: What it takes to run a rest or to join a pair, and to pass a node.
NS_PER_PAIR, NS_PER_PASS = 20, 10_000


class Walker:
    """Makes masks by walking one vocabulary's trie with situations. `counters`: work done. Not thread-safe."""

    def __init__(self, hypotheses: Hypotheses, trie: TokenTrie) -> None:
        self.hypotheses, self.trie = hypotheses, trie
        self.counters = {"nodes_visited": 0}

    def fill(self, situation: int, out: Mask) -> None:
        """Write the tokens that leave some hypothesis of `situation` open; `out` is int32, shape (ceil(V/32),)."""
        out.fill(0)
        done = walk(self.trie, self.hypotheses, situation * self.hypotheses.class_count, out)
        self.counters["nodes_visited"] += done.nodes_visited


class Exit:
    """Where lexemes end with one outcome. `bit`: says whether it leads on; `tokens`, `rests`: the pairs left;
    `children`: by lexer state.
    """

    def __init__(self, bit: int, label: int, residue: int, tokens: Ids, rests: Ids) -> None:
        self.bit, self.label, self.residue, self.tokens, self.rests = bit, label, residue, tokens, rests
        self.children: dict[int, TreeNode] = {}


class TreeNode:
    """See the module. `groups`: what each can end in, and its tokens, packed (uint32) if they are many."""

    def __init__(self) -> None:
        self.groups: list[tuple[int, npt.NDArray[Any]]] = []
        self.exits: list[Exit] = []


class Speculation:
    """Makes the masks of one grammar on one vocabulary. `counters`: work done. Not thread-safe.

    `limit`: bytes of vectors and nodes. Past it vectors are dropped, those first that were used longest ago: only new
    nodes need them. If nodes alone take half of the limit, they are dropped, too.
    """

    def __init__(self, hypotheses: Hypotheses, vocab: Vocabulary, limit: int) -> None:
        self.hypotheses, self.limit = hypotheses, limit
        self.table = split_table(vocab)
        self.counters = {"nodes_passed": 0, "nodes_made": 0, "vectors_made": 0, "masks_walked": 0, "nodes_visited": 0}
        self._walker = Walker(hypotheses, vocab.trie)
        self._words = mask_words(vocab.size)
        classes: dict[int, int] = {}
        #: By lexer state: the class of what it can end in; by class: that.
        self._class_of = np.array([classes.setdefault(ends, len(classes)) for ends in hypotheses.ends], dtype=np.uint16)
        self._class_ends = list(classes)
        self.clear()

    def clear(self) -> None:
        """Forget all vectors and nodes."""
        self._vectors: dict[int, RestVectors] = {}
        self._roots: dict[int, TreeNode] = {}
        #: By hypothesis: what it allows, packed groups and the tokens of the others.
        self._allowed: dict[Hypothesis, tuple[list[Words], Ids]] = {}
        self.nbytes = 0

    def _drop_vectors(self) -> None:
        """Drop vectors until half of the limit is free."""
        for state in list(self._vectors):
            if self.nbytes <= self.limit // 2:
                break
            self.nbytes -= self._vectors.pop(state).nbytes

    def fill(self, situation: int, out: Mask) -> None:
        """Write the tokens that leave some hypothesis of `situation` open; `out` is int32, shape (ceil(V/32),)."""
        if self.nbytes > self.limit:
            self._drop_vectors()
            if self.nbytes > self.limit // 2:
                self.clear()
        out.fill(0)
        if not self._descend(situation, out.view(np.uint32)):
            self.counters["masks_walked"] += 1
            self._walker.fill(situation, out)
            self.counters["nodes_visited"] = self._walker.counters["nodes_visited"]

    def _descend(self, situation: int, words: Words) -> bool:
        """Set the tokens' bits in `words`; False if the tree has no room, and a walk must do it."""
        for hypothesis in self.hypotheses.members[situation]:
            allowed = self._allowed.get(hypothesis)
            if allowed is None:
                groups = self._groups_below(*hypothesis)
                if groups is None:
                    return False
                packed = [group for group in groups if group.dtype == np.uint32]
                narrow = [group for group in groups if group.dtype == np.int32]
                allowed = self._allowed[hypothesis] = packed, np.concatenate([_NONE, *narrow])
                self.nbytes += BYTES_PER_HYPOTHESIS + 8 * len(packed) + allowed[1].nbytes
            for row in allowed[0]:
                np.bitwise_or(words, row, out=words)
            add_tokens(allowed[1], words.view(np.int32))
        return True

    def _groups_below(self, state: int, stack: int) -> list[npt.NDArray[Any]] | None:
        """The groups that are allowed in the tree below a hypothesis; None if there is no room."""
        hypotheses, stacks = self.hypotheses, self.hypotheses.stacks
        root = self.root(state)
        if root is None:
            return None
        found: list[npt.NDArray[Any]] = []
        agenda = [(root, stack)]
        for node, here in agenda:  # grows on the way
            spend(NS_PER_PASS)
            leads_on = hypotheses.leads_on(here)
            found += [tokens for ends, tokens in node.groups if ends & leads_on]
            for leaving in node.exits:
                if leads_on & leaving.bit:
                    after = stacks.shift(here, leaving.label)
                    child = self.child(leaving, stacks.context(after))
                    if child is None:
                        return None
                    agenda.append((child, after))
        self.counters["nodes_passed"] += len(agenda)
        return found

    def root(self, state: int) -> TreeNode | None:
        """The node of a lexer state to which all tokens come; None if there is no room."""
        if state not in self._roots:
            made = self._make_node(state, self.table.tokens, self.table.wholes)
            if made is None:
                return None
            self._roots[state] = made
        return self._roots[state]

    def child(self, leaving: Exit, context: int) -> TreeNode | None:
        """The node after an exit, one for all contexts in which the next lexeme begins alike; None without room."""
        state = int(self.hypotheses.lexer.starts[leaving.residue, context])
        child = leaving.children.get(state)
        if child is None:
            child = self._make_node(state, leaving.tokens, leaving.rests)
            if child is not None:
                leaving.children[state] = child
        return child

    def _make_vectors(self, state: int) -> RestVectors:
        """The vectors of a lexer state; those of states in which a lexeme begins are kept."""
        found = self._vectors.pop(state, None)
        if found is not None:
            self._vectors[state] = found  # now the last to be dropped
            return found
        self.counters["vectors_made"] += 1
        found = self.table.vectors(self.hypotheses.lexer, state)
        spend(NS_PER_PAIR * (len(found.after) + len(found.rests)))
        if self.hypotheses.lexer.is_start[state]:
            self._vectors[state] = found
            self.nbytes += found.nbytes
        return found

    def _make_node(self, state: int, tokens: Ids, rests: Ids) -> TreeNode | None:
        """The node of lexer state `state` and the pairs (tokens[i], rests[i]); None if there is no room."""
        if self.nbytes > self.limit:
            self._drop_vectors()
        if self.nbytes > self.limit:
            return None
        self.counters["nodes_made"] += 1
        node, found = TreeNode(), self.hypotheses.lexer.outcomes
        class_ends, inside, outcome_ends, left, further = join_pairs(
            self._make_vectors(state), self._class_of, len(self._class_ends), len(found), tokens, rests
        )
        for number, place in _runs(class_ends):
            staying = inside[place]
            if len(staying) >= _PACKED_SHARE * self._words:
                staying = np.zeros(self._words, dtype=np.uint32)
                add_tokens(inside[place], staying.view(np.int32))
            node.groups.append((self._class_ends[number], staying))
            self.nbytes += staying.nbytes
        for outcome, place in _runs(outcome_ends):
            label, residue = found[outcome].tolist()
            bit = 1 << (outcome if self.hypotheses.is_searched else label)
            node.exits.append(Exit(bit, label, residue, left[place], further[place]))
        self.nbytes += left.nbytes + further.nbytes
        spend(NS_PER_PAIR * (len(tokens) + len(inside) + len(left)))
        return node


def _runs(ends: npt.NDArray[np.int64]) -> Iterator[tuple[int, slice]]:
    """(number, place) of each run that is not empty; run k ends at ``ends[k]``, where the next one begins."""
    begins = np.append(0, ends[:-1])
    for number in np.flatnonzero(ends > begins).tolist():
        yield number, slice(int(begins[number]), int(ends[number]))
