"""Whole pieces as a small trie of tokens, for automata that read a piece token by token.

Where a piece that is a token becomes that token at once, an improper token t is proper as a complete piece, and the
merge encoding of its text, e1 .. en, is not. So a reader of pieces has to know how much of
such an encoding it has seen since the piece began. The *nodes* are:

- 0 (`PLAIN`): the tokens of this piece so far begin no such encoding;
- 1 (`ROOT`): the piece has just begun;
- 2 (`WHOLE`): the piece is one improper token, and has to end here;
- the others: the piece so far is a prefix e1 .. ek of encodings. A *terminal* node is a complete one: the piece may go
  on, but not end.

Without whole pieces there is only node 0, which then also begins pieces.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.core.locks import cached_property

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from tokdfa.proper.merge_rules import Int32

PLAIN, ROOT, WHOLE = 0, 1, 2


@dataclass(frozen=True, eq=False)
class WholePieces:
    """`child_starts`: int32, shape (nodes + 1,); the children of node n are ``child_starts[n] .. child_starts[n+1]-1``.
    `child_tokens`, `child_nodes`: int32; tokens in the byte order of the vocabulary's trie, and where each leads.
    `terminal`: bool, shape (nodes,). `tokens`: int32, the improper tokens, ascending. `root`: the node at the beginning
    of a piece.
    """

    child_starts: Int32
    child_tokens: Int32
    child_nodes: Int32
    terminal: npt.NDArray[np.bool_]
    tokens: Int32
    root: int

    @property
    def node_count(self) -> int:
        return len(self.terminal)

    @cached_property
    def children(self) -> list[dict[int, int]]:
        """For each node: token -> node."""
        starts, tokens, nodes = self.child_starts.tolist(), self.child_tokens.tolist(), self.child_nodes.tolist()
        rows = [slice(begin, end) for begin, end in itertools.pairwise(starts)]
        return [dict(zip(tokens[row], nodes[row], strict=True)) for row in rows]

    def after(self, node: int, token: int) -> int:
        """The node after a proper `token`."""
        return self.children[node].get(token, PLAIN)


def build_whole_pieces(encodings: Mapping[int, Sequence[int]], rank_of: Int32) -> WholePieces:
    """The trie of the merge encodings of improper tokens that are whole pieces (1,452 nodes for Llama 3).

    `rank_of`: the place of each token in the byte order of the vocabulary's trie.
    """
    if not encodings:
        nothing = np.zeros(0, dtype=np.int32)
        return WholePieces(np.zeros(2, dtype=np.int32), nothing, nothing, np.zeros(1, dtype=np.bool_), nothing, PLAIN)
    children: list[dict[int, int]] = [{}, {}, {}]
    terminals = set()
    for encoding in encodings.values():
        node = ROOT
        for token in encoding:
            if token not in children[node]:
                children[node][token] = len(children)
                children.append({})
            node = children[node][token]
        terminals.add(node)
    rows = [sorted(row.items(), key=lambda item: int(rank_of[item[0]])) for row in children]
    starts = np.zeros(len(rows) + 1, dtype=np.int32)
    np.cumsum([len(row) for row in rows], out=starts[1:])
    flat = np.array([pair for row in rows for pair in row], dtype=np.int32).reshape(-1, 2)
    terminal = np.zeros(len(rows), dtype=np.bool_)
    terminal[sorted(terminals)] = True
    whole = np.array(sorted(encodings), dtype=np.int32)
    return WholePieces(starts, flat[:, 0].copy(), flat[:, 1].copy(), terminal, whole, ROOT)
