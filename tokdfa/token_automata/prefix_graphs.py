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
with classes in place of bytes and of tokens, so the same walk serves. Classification walks the token trie once
(`tokdfa.token_automata.class_strings`); 001 sorts the class strings.

Cost: one visit for each trie node, with a look-up in a hash table (5-10 ns); then, for each state, one for each
graph node whose parent survives (1.6-4 ns). Several threads each take a part of the token trie, with graphs of their
own for it; classes that occur in two parts are united with all other equal columns afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.token_automata.class_strings import ClassStrings
from tokdfa.token_automata.columns import Columns, places_of, transpose
from tokdfa.token_automata.parallel import TriePart
from tokdfa.token_automata.word_rows import WordRows

if TYPE_CHECKING:
    from tokdfa.automata.dfa import Dfa
    from tokdfa.vocabulary.trie import TokenTrie

#: Letters that are the bytes themselves.
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
    strings = ClassStrings(letters, skip, merge)
    strings.read(trie.ranked_nodes, part, trie.depth_limit, len(trie.order))
    return PrefixGraphs(*strings.lay_out(), strings.class_count, trie, letters)


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
    rows = WordRows(dfa.transitions if byte_classes else dfa.byte_table(), None, None, max_pairs)
    count = graphs.class_count
    if prefix_graphs:
        rows.fill_along(graphs.nodes, graphs.trie.depth_limit, count)
    else:
        rows.fill_by_word(*graphs.strings(), np.arange(count, dtype=np.int32))
    return Columns(graphs.ranks, graphs.class_of, *transpose(count, *rows.arrays())), rows.steps
