"""Token classes by their strings of byte classes, their prefix graphs, and the walk of the graphs from every state.

Words. A *class string* is a token's bytes with each replaced by its byte class. Tokens with equal class strings cannot
be told apart by the automaton: they are one *token class*. The class strings form a forest, one *prefix graph* for
each first class, in which a string's children begin with it. From each state the graphs are walked with a stack of
states: a child starts from its parent's state, a dead prefix cuts its whole subtree, and a graph whose first class is
dead is not entered.

Steps, each of which can be left out to see what it buys:

- dead bytes: tokens with a byte that no transition reads are dropped before anything else;
- byte classes: without them the letters are the bytes themselves;
- token classes: without them each token is a class of its own (`merge` false);
- prefix graphs: without them each class string is run by itself from every state.

Source: 001, parts 1 to 4. There a graph's nodes are token classes, each below its longest proper prefix among them;
here all prefixes are nodes, so each edge is one class. The layout is that of the token trie (`tokdfa.vocabulary.trie`),
with classes in place of bytes and of tokens, so the same kernel walks it. Classification walks the token trie once; 001
sorts the class strings.

Cost: one visit for each trie node, with a look-up in a hash table (5-10 ns); then, for each state, one for each
graph node whose parent survives (1.6-4 ns). Several threads each take a part of the token trie, with graphs of their
own for it; classes that occur in two parts are united with all other equal columns afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.core.jit import kernel
from tokdfa.token_automata.columns import Columns, places_of, transpose
from tokdfa.token_automata.parallel import TriePart
from tokdfa.token_automata.token_index import fill_rows
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT

if TYPE_CHECKING:
    from tokdfa.automata.dfa import Dfa
    from tokdfa.vocabulary.trie import TokenTrie

#: A graph's letters are its node's low byte; the walk's kernel maps them through a table, here the identity.
_LETTERS = np.arange(256, dtype=np.uint8)
_LETTERS.flags.writeable = False


class PrefixGraphs(NamedTuple):
    """A forest of class strings in depth-first order; token class k is the k-th string that some token has.

    ``nodes``: uint64, packed like a token trie's, with byte classes (or bytes) for bytes, token classes for tokens;
    ``ranks``: int32, ascending, the tokens that were not dropped, by rank; ``class_of``: int32, the token class of
    each; ``class_count``; ``trie``: that of the tokens; ``letters``: uint8, shape (256,), the class of each byte.
    """

    nodes: npt.NDArray[np.uint64]
    ranks: npt.NDArray[np.int32]
    class_of: npt.NDArray[np.int32]
    class_count: int
    trie: TokenTrie
    letters: npt.NDArray[np.uint8]

    def strings(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """The class strings one behind the other, uint8, and their offsets, int64, shape (class_count + 1,)."""
        firsts = np.unique(self.class_of, return_index=True)[1]
        spelled = self.trie.token_bytes
        places, offsets = places_of(spelled.offsets, self.trie.order[self.ranks[firsts]])
        return self.letters[spelled.data[places]], offsets


def build_prefix_graphs(
    trie: TokenTrie,
    dfa: Dfa,
    part: TriePart | None = None,
    *,
    dead_bytes: bool = True,
    byte_classes: bool = True,
    merge: bool = True,
) -> PrefixGraphs:
    """The prefix graphs of the tokens in `trie`, or in a `part` of it; see the module's docstring for the switches."""
    if part is None:
        part = TriePart(0, trie.node_count, 0, len(trie.order))
    letters = dfa.byte_class if byte_classes else _LETTERS
    skip = ~bytes_alive(dfa) if dead_bytes else np.zeros(256, dtype=np.bool_)
    room = part.end - part.begin + len(part.path)
    #: rows: letter, first child, last child, next sibling, token class (or -1) of each node
    forest = np.empty((5, room + 1), dtype=np.int32)
    keys = np.full(1 << (2 * room).bit_length() if merge else 1, -1, dtype=np.int64)
    ranks, class_of = np.empty((2, part.end_rank - part.first_rank), dtype=np.int32)
    node_count, token_count = _classify_tokens_kernel(
        trie.ranked_nodes,
        np.array(part.path, dtype=np.int64),
        part.begin,
        part.end,
        len(trie.order),
        skip,
        letters,
        merge,
        forest,
        keys,
        ranks,
        class_of,
        np.zeros(trie.depth_limit + 1, dtype=np.int32),
    )
    nodes = np.empty(node_count - 1, dtype=np.uint64)
    path = np.zeros(trie.depth_limit + 1, dtype=np.int32)
    class_count = int(np.count_nonzero(forest[4][:node_count] >= 0))
    _lay_out_graphs_kernel(forest, path, nodes, class_count)
    class_of = forest[4][class_of[:token_count]]
    return PrefixGraphs(nodes, ranks[:token_count], class_of, class_count, trie, letters)


def bytes_alive(dfa: Dfa) -> npt.NDArray[np.bool_]:
    """The bytes that some transition reads: bool, shape (256,). The others are the dead bytes."""
    return np.take(np.any(dfa.transitions >= 0, axis=0), dfa.byte_class)


def walk_graphs(
    graphs: PrefixGraphs,
    dfa: Dfa,
    *,
    byte_classes: bool = True,
    prefix_graphs: bool = True,
    max_pairs: int = 30_000_000,
) -> tuple[Columns, int]:
    """What each token class does to the states of `dfa`: its column, for all classes, the empty ones included; and the
    steps of `dfa` that it took to find out, each a look-up in its table.

    `byte_classes` as the graphs were built; `prefix_graphs`: walk them; otherwise run each class string by itself.
    Raises LimitExceeded past `max_pairs` pairs (8 bytes each).
    """
    steps = dfa.transitions if byte_classes else dfa.byte_table(), _LETTERS
    count = graphs.class_count
    if prefix_graphs:
        words: tuple[Any, ...] = graphs.nodes, graphs.trie.depth_limit
    else:
        words = *graphs.strings(), np.arange(count, dtype=np.int32)
        for array in words:
            array.flags.writeable = False  # as those of a vocabulary: numba compiles once more for others
    itself = np.arange(dfa.state_count, dtype=np.int32)
    offsets, classes, targets, taken = fill_rows(words, count, steps, (itself, itself), dfa.state_count, max_pairs)
    return Columns(graphs.ranks, graphs.class_of, *transpose(count, offsets, classes, targets)), taken


@kernel
def _classify_tokens_kernel(  # type: ignore[no-untyped-def]
    nodes, path, begin, end, token_count, skip, letters, merge, forest, keys, ranks, class_of, stack
):
    """Build the forest of class strings in order of discovery; list the tokens kept and the node that each ends at.

    Visits nodes begin..end-1, after their ancestors in `path`, which end no token here.

    Node 0 is the root. `keys` is a hash table of children: parent << 8 | letter in the upper 32 bits, child below; with
    keys and children in two arrays (`tokdfa.core.key_map`) all this takes half as long again. It is a loop of its own,
    and no step of `tokdfa.vocabulary.walker`, as it begins with the path, and writes to eight arrays.

    Returns (nodes made, tokens kept).
    """
    letter_of, first_child, last_child, sibling, ends = forest[0], forest[1], forest[2], forest[3], forest[4]
    slots = np.uint64(len(keys) - 1)
    made, kept = np.int64(1), 0
    first_child[0] = last_child[0] = sibling[0] = ends[0] = -1
    stack[0] = 0
    position, above = np.int64(begin), 0
    while above < len(path) or position < end:
        is_above = above < len(path)
        node = nodes[path[above] if is_above else position]
        byte = node & np.uint64(0xFF)
        if skip[byte]:
            position, above = np.int64((node >> np.uint64(NEXT_SHIFT)) & np.uint64(MAX_NODES)), len(path)
            continue
        depth = np.int64((node >> np.uint64(DEPTH_SHIFT)) & np.uint64((1 << DEPTH_BITS) - 1))
        parent, letter = np.int64(stack[depth]), np.int64(letters[byte])
        child = np.int64(-1)
        slot = np.uint64(0)
        key = (parent << 8) | letter
        if merge:
            slot = (np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32) & slots
            while keys[slot] >= 0:
                if keys[slot] >> 32 == key:
                    child = keys[slot] & 0xFFFFFFFF
                    break
                slot = (slot + np.uint64(1)) & slots
        if child < 0:
            child = made
            made += 1
            if merge:
                keys[slot] = (key << 32) | child
            letter_of[child], first_child[child], last_child[child] = letter, -1, -1
            sibling[child], ends[child] = -1, -1
            if first_child[parent] < 0:
                first_child[parent] = child
            else:
                sibling[last_child[parent]] = child
            last_child[parent] = child
        stack[depth + 1] = child
        if is_above:
            above += 1
            continue
        rank = np.int64(node >> np.uint64(TOKEN_SHIFT))
        if rank < token_count:
            ranks[kept], class_of[kept] = rank, child
            ends[child] = 0
            kept += 1
        position += 1
    return made, kept


@kernel
def _lay_out_graphs_kernel(forest, path, nodes, class_count):  # type: ignore[no-untyped-def]
    """Write the nodes in depth-first order, and number the token classes in it (ends[node]).

    A node that ends no token gets `class_count`, the spare class.
    """
    letter_of, first_child, sibling, ends = forest[0], forest[1], forest[3], forest[4]
    count, classes, depth = 0, 0, 0
    places = np.empty(len(path), dtype=np.int64)
    here = first_child[0]
    while here >= 0:
        token_class = np.uint64(class_count)
        if ends[here] >= 0:
            token_class = np.uint64(classes)
            ends[here] = classes
            classes += 1
        nodes[count] = (
            np.uint64(letter_of[here])
            | np.uint64(depth) << np.uint64(DEPTH_SHIFT)
            | token_class << np.uint64(TOKEN_SHIFT)
        )
        path[depth], places[depth] = here, count
        count += 1
        following = first_child[here]
        if following >= 0:
            depth += 1
        else:
            while True:
                nodes[places[depth]] |= np.uint64(count) << np.uint64(NEXT_SHIFT)
                following = sibling[path[depth]]
                if following >= 0 or depth == 0:
                    break
                depth -= 1
        here = following
