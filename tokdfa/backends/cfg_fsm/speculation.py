"""Masks by concatenation and union: the speculative terminal tree and its cache.

A token that leaves the current lexeme runs through further terminals. Which ones is speculated in a tree. A *node* is a
lexer state and a list of pairs (token, rest): the tokens that may have come so far, each with what is left of it. What
a node knows is made once, from the vectors of its lexer state (`tokdfa.backends.cfg_fsm.splits`):

- *groups*: the tokens whose rest stays inside one lexeme, by the set of labels that this lexeme can still end in;
- *exits*: by outcome, the pairs that are left where a lexeme ends inside of the rest.

A mask is the union over the tree below each hypothesis (lexer state, stack): take the groups whose labels the stack
takes; for each exit whose label it takes, shift that label and go on at the child for the new stack's context. What is
left gets shorter, so the tree is finite: no deeper than the longest token.

Nodes know nothing of stacks. A child is found by (exit, context), so all stacks share the tree, and a mask for a new
stack costs a descent of some dozens of nodes: an OR of packed words for a wide group, a few bits for a narrow one.

That pays if the same lexer states come again. Where they do not, or terminals overlap so much that tokens run through
very many nodes, or the tree outgrows its memory, it costs more than walking the trie (`tokdfa.backends.cfg_fsm.walk`).
So both are counted: the tree has a credit of `CREDIT` for work on it, and each mask adds what walking it would have
taken. When the credit is used up, masks are made by walking. So masks never take much more than twice what walking
takes, plus the credit.

Source: 003, "RegexFSM() + RegexFSM()" and "RegexFSM() | RegexFSM()", its tree of speculated terminals and its cache.
There a concatenation multiplies vectors over all pairs each time; here that is done once for a pair of lexer states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.backends.cfg_fsm.splits import RestVectors, split_table
from tokdfa.backends.cfg_fsm.stacks import FULL, shift_kernel, taken_kernel
from tokdfa.backends.cfg_fsm.walk import NS_PER_MOVE, Walker
from tokdfa.core.budget import spend
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_budget import pay
from tokdfa.core.kernel_struct import Struct
from tokdfa.mask import mask_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from tokdfa.backends.cfg_fsm.hypotheses import Hypotheses
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: Groups of at least this share of a mask's words are kept packed: to OR a word costs a tenth of setting a bit.
_PACKED_SHARE = 0.1
#: What the descent asks for, beside FULL: nothing, the root of a lexer state, children of exits in contexts.
DONE, NEEDS_ROOT, NEEDS_CHILDREN, SPENT = 0, 1, 2, 3
#: How many children one descent may ask for.
_ASKED = 1024
#: Nanoseconds of work that go into the tree before it must have paid.
CREDIT = 300_000_000
#: What it takes to run a rest or to join a pair, and to pass a node; and how many nodes are paid for at once.
NS_PER_PAIR, NS_PER_NODE, PAID_NODES = 20, 500, 1 << 10


#: ``roots``: by lexer state, its node, -1 if there is none yet; ``nodes``, shape (., 4): where groups and exits begin
#: and end; ``groups``, shape (., 3): the class of labels, and where the tokens begin and end in ``tokens``, or -1 and a
#: row of ``packed``; ``exits``, shape (., 3): label, residue, bit; ``children``, shape (., X): nodes by context, -1 if
#: there is none yet; ``class_ends``: uint64, shape (., W), the labels of each class. Others int32, ``packed`` uint32.
TREE_FIELDS = ("roots", "nodes", "groups", "tokens", "packed", "exits", "children", "class_ends")


class TreeArrays(Struct, fields=TREE_FIELDS):
    """What kernels take: TREE_FIELDS."""


class _Rows:
    """A growing array of rows."""

    def __init__(self, width: int, dtype: type[np.generic] = np.int32) -> None:
        self._array = np.zeros((64, width), dtype=dtype)
        self.count = 0

    def extend(self, rows: npt.NDArray[Any]) -> tuple[int, int]:
        """Append rows; returns where they begin and end."""
        begin, self.count = self.count, self.count + len(rows)
        if self.count > len(self._array):
            grown = np.zeros((max(2 * len(self._array), self.count), self._array.shape[1]), dtype=self._array.dtype)
            grown[:begin] = self._array[:begin]
            self._array = grown
        self._array[begin : self.count] = rows
        return begin, self.count

    @property
    def rows(self) -> npt.NDArray[Any]:
        """All rows, a view."""
        return self._array[: self.count]


class Speculation:
    """Makes the masks of one grammar on one vocabulary. `counters`: work done. Not thread-safe.

    `limit`: bytes of vectors and nodes. Past it vectors are dropped, those first that were used longest ago: only new
    nodes need them. If nodes alone take half of the limit, they are dropped, too. `credit`: nanoseconds of work that
    may still go into the tree (see the module's docstring).
    """

    _tree: Any

    def __init__(self, hypotheses: Hypotheses, vocab: Vocabulary, limit: int) -> None:
        self.hypotheses, self.limit = hypotheses, limit
        self.table = split_table(vocab)
        self.counters = {"nodes_passed": 0, "nodes_made": 0, "vectors_made": 0, "masks_walked": 0, "nodes_visited": 0}
        self._walker = Walker(hypotheses, vocab.trie)
        self.credit = CREDIT
        self._words = mask_words(vocab.size)
        self._class_ends, classes = np.unique(hypotheses.ends, axis=0, return_inverse=True)
        #: By outcome: label, residue, and the bit that says whether it leads on.
        outcomes = hypotheses.lexer.outcomes
        marks = np.arange(len(outcomes)) if hypotheses.stacks.is_searched else outcomes[:, 0]
        self._outcomes = np.column_stack([outcomes, marks]).astype(np.int32)
        self._class_of = classes.reshape(-1).astype(np.int32)
        self._agenda: npt.NDArray[np.int32] = np.zeros((256, 2), dtype=np.int32)
        #: Exits and contexts whose children a descent has asked for.
        self._asked: npt.NDArray[np.int32] = np.zeros((_ASKED, 2), dtype=np.int32)
        self.clear()

    def clear(self) -> None:
        """Forget all vectors and nodes."""
        lex = self.hypotheses.lexer
        self._vectors: dict[int, RestVectors] = {}
        self._roots: npt.NDArray[np.int32] = np.full(len(lex.labels), -1, dtype=np.int32)
        self._nodes, self._groups, self._exits = _Rows(4), _Rows(3), _Rows(3)
        self._tokens, self._packed = _Rows(1), _Rows(self._words, np.uint32)
        self._children = _Rows(lex.starts.shape[1])
        #: By exit: the pairs that are left, tokens and rests.
        self._pairs: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]] = []
        self._same_child: dict[tuple[int, int], int] = {}
        self.nbytes = 0
        self._refresh()

    def _drop_vectors(self) -> None:
        """Drop vectors until half of the limit is free."""
        for state in list(self._vectors):
            if self.nbytes <= self.limit // 2:
                break
            self.nbytes -= self._vectors.pop(state).nbytes

    def _refresh(self) -> None:
        self._tree = TreeArrays(
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
            self._drop_vectors()
            if self.nbytes > self.limit // 2:
                self.clear()
        walks = self.counters["masks_walked"]
        self.credit += NS_PER_MOVE * (self._walker.moves // walks if walks else self._walker.trie.node_count)
        out.fill(0)
        if not self._descend(situation, out.view(np.uint32)):
            self.counters["masks_walked"] += 1
            self._walker.fill(situation, out)
            self.counters["nodes_visited"] = self._walker.counters["nodes_visited"]

    def _descend(self, situation: int, words: npt.NDArray[np.uint32]) -> bool:
        """Set the tokens' bits in `words`; False if the tree has not paid, or has no room, and a walk must do it."""
        stacks, members = self.hypotheses.stacks, self.hypotheses.members[situation]
        while self._may_go_on():
            status, what, passed = _descend_kernel(
                stacks.struct, self._tree, members, self._agenda, self._asked, words, 1 + self.credit // NS_PER_NODE
            )
            self.counters["nodes_passed"] += passed
            self.credit -= NS_PER_NODE * passed
            spend(NS_PER_NODE * (passed & PAID_NODES - 1))
            if status == DONE:
                return True
            if status == NEEDS_ROOT:
                self._roots[what] = self._make_node(what, self.table.tokens, self.table.wholes)
            elif status == NEEDS_CHILDREN:
                for exit_number, context in self._asked[:what].tolist():
                    if not self._may_go_on():
                        break
                    self._children.rows[exit_number, context] = self._child(exit_number, context)
            elif status == FULL and not self.hypotheses.learn_or_grow():
                self._agenda = np.concatenate([self._agenda, np.zeros_like(self._agenda)])
            self._refresh()
        return False

    def _may_go_on(self) -> bool:
        if self.nbytes > self.limit:
            self._drop_vectors()
        return self.credit > 0 and self.nbytes <= self.limit

    def _charge(self, work: int) -> None:
        """Count work on the tree, in nanoseconds."""
        self.credit -= work
        spend(work)

    def _child(self, exit_number: int, context: int) -> int:
        residue = int(self._exits.rows[exit_number, 1])
        state = int(self.hypotheses.lexer.starts[residue, context])
        key = exit_number, state
        if key not in self._same_child:
            self._same_child[key] = self._make_node(state, *self._pairs[exit_number])
        return self._same_child[key]

    def vectors(self, state: int) -> RestVectors:
        """The vectors of a lexer state; those of states in which a lexeme begins are kept."""
        found = self._vectors.pop(state, None)
        if found is not None:
            self._vectors[state] = found  # now the last to be dropped
            return found
        self.counters["vectors_made"] += 1
        found = self.table.vectors(self.hypotheses.lexer, state)
        self._charge(NS_PER_PAIR * (len(found.after) + len(found.rests)))
        if self.hypotheses.lexer.is_start[state]:
            self._vectors[state] = found
            self.nbytes += found.nbytes
        return found

    def _make_node(self, state: int, tokens: npt.NDArray[np.int32], rests: npt.NDArray[np.int32]) -> int:
        """A new node: lexer state `state` and the pairs (tokens[i], rests[i])."""
        self.counters["nodes_made"] += 1
        class_ends, staying, outcome_ends, leaving, left = _join_pairs_kernel(
            *self.vectors(state), self._class_of, len(self._class_ends), len(self._outcomes), tokens, rests
        )
        self._charge(NS_PER_PAIR * (len(tokens) + len(staying) + len(leaving)))
        groups = [(one, *self._keep_tokens(staying[begin:end])) for one, begin, end in _runs(class_ends)]
        exits = list(_runs(outcome_ends))
        self._pairs += [(leaving[begin:end], left[begin:end]) for _, begin, end in exits]
        self.nbytes += leaving.nbytes + left.nbytes
        group_range = self._groups.extend(np.array(groups, dtype=np.int32).reshape(-1, 3))
        exit_range = self._exits.extend(self._outcomes[[outcome for outcome, _, _ in exits]])
        self._children.extend(np.full((len(exits), self.hypotheses.lexer.starts.shape[1]), -1, dtype=np.int32))
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


def _runs(ends: npt.NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """(number, begin, end) of each run that is not empty; run k ends at ``ends[k]``, where the next one begins."""
    begins = np.concatenate([[0], ends[:-1]])
    for number in np.flatnonzero(ends > begins).tolist():
        yield number, int(begins[number]), int(ends[number])


@kernel
def _join_pairs_kernel(  # type: ignore[no-untyped-def]
    after, begins, outcomes, exit_rests, class_of, class_count, outcome_count, tokens, rests
):
    """Join pairs (tokens[i], rests[i]) with the vectors of a lexer state.

    Returns the tokens that stay inside, ordered by class, and before them where each class ends among them; then, by
    outcome, where each ends, and the tokens and rests of the pairs that are left.
    """
    class_ends, outcome_ends = np.zeros(class_count, dtype=np.int64), np.zeros(outcome_count, dtype=np.int64)
    for pair in range(len(rests)):
        rest = rests[pair]
        if after[rest] >= 0:
            class_ends[class_of[after[rest]]] += 1
        for place in range(begins[rest], begins[rest + 1]):
            outcome_ends[outcomes[place]] += 1
    staying = np.empty(class_ends.sum(), dtype=np.int32)
    leaving = np.empty(outcome_ends.sum(), dtype=np.int32)
    left = np.empty_like(leaving)
    # first where each begins; each entry made moves it on, so that at last it is where it ends
    class_ends[:] = np.cumsum(class_ends) - class_ends
    outcome_ends[:] = np.cumsum(outcome_ends) - outcome_ends
    for pair in range(len(rests)):
        rest = rests[pair]
        if after[rest] >= 0:
            number = class_of[after[rest]]
            staying[class_ends[number]] = tokens[pair]
            class_ends[number] += 1
        for place in range(begins[rest], begins[rest + 1]):
            outcome = outcomes[place]
            leaving[outcome_ends[outcome]] = tokens[pair]
            left[outcome_ends[outcome]] = exit_rests[place]
            outcome_ends[outcome] += 1
    return class_ends, staying, outcome_ends, leaving, left


@kernel
def _descend_kernel(stacks, tree, members, agenda, asked, words, most):  # type: ignore[no-untyped-def]
    """OR into `words` the tokens of all groups below `members` (hypotheses) whose labels their stacks take.

    Returns (status, lexer state or how many children are asked for, nodes passed); SPENT after `most` nodes.
    After anything but DONE, make what
    is asked for and call again: bits that are set already do no harm. Where a child is lacking the descent passes it by
    and goes on, so there are no more descents than the tree has levels; all that is lacking is in `asked`.
    """
    roots, nodes, groups, tokens, packed = tree.roots, tree.nodes, tree.groups, tree.tokens, tree.packed
    exits, children, class_ends = tree.exits, tree.children, tree.class_ends
    contexts, tops, taken, known = stacks.contexts, stacks.tops, stacks.taken, stacks.known
    passed, lacking = np.int64(0), np.int64(0)
    for member in range(len(members)):
        state = members[member, 0]
        if roots[state] < 0:
            return NEEDS_ROOT, np.int64(state), passed
        agenda[0, 0], agenda[0, 1] = roots[state], members[member, 1]
        waiting = 1
        while waiting:
            waiting -= 1
            node, stack = agenda[waiting, 0], np.int64(agenda[waiting, 1])
            if passed == most:
                return SPENT, np.int64(0), passed
            passed += 1
            if passed & PAID_NODES - 1 == 0:
                pay(np.int64(NS_PER_NODE * PAID_NODES))
            if not known[stack] and not taken_kernel(stacks, stack):
                return FULL, np.int64(0), passed
            for group in range(nodes[node, 0], nodes[node, 1]):
                for word in range(taken.shape[1]):
                    if class_ends[groups[group, 0], word] & taken[stack, word] != 0:
                        _add_group_kernel(tokens, packed, groups[group, 1], groups[group, 2], words)
                        break
            for leaving in range(nodes[node, 2], nodes[node, 3]):
                bit = np.int64(exits[leaving, 2])
                if taken[stack, bit >> 6] >> np.uint64(bit & 63) & np.uint64(1) == 0:
                    continue
                after = shift_kernel(stacks, stack, exits[leaving, 0])
                if after == FULL or waiting == len(agenda):
                    return FULL, np.int64(0), passed
                context = np.int64(contexts[tops[after]])
                child = children[leaving, context]
                if child >= 0:
                    agenda[waiting, 0], agenda[waiting, 1] = child, after
                    waiting += 1
                    continue
                asked[lacking, 0], asked[lacking, 1] = leaving, context
                lacking += 1
                if lacking == len(asked):
                    return NEEDS_CHILDREN, lacking, passed
    return NEEDS_CHILDREN if lacking else DONE, lacking, passed


@kernel
def _add_group_kernel(tokens, packed, begin, end, words):  # type: ignore[no-untyped-def]
    """OR the tokens of a group into `words`."""
    if begin < 0:
        for word in range(len(words)):
            words[word] |= packed[end, word]
        return
    for place in range(begin, end):
        token = tokens[place]
        words[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
