"""Pictures of a token trie: its flat layout drawn as the tree it stands for (the figure of 004).

The picture shows nodes in depth-first order from top to bottom, depth from left to right. A disc ends a token, a square
does not; the number beside a node is its place in the array, and the arrow to the right of it tells where a walk goes
that cannot read the node's byte (``next``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokdfa.automata.graph import token_label
from tokdfa.core.packages import import_library

if TYPE_CHECKING:
    from collections.abc import Collection

    from matplotlib.axes import Axes

    from tokdfa.vocabulary.trie import TokenTrie

INK, FAINT, ACCENT = "#222222", "#b5b5b5", "#b3401d"


def trie_to_networkx(trie: TokenTrie, limit: int = 200) -> Any:
    """The first `limit` nodes as a networkx DiGraph, parent -> child; node -1 is the root.

    Node attributes: ``byte``, ``depth``, ``token`` (-1 for none), ``prefix`` (bytes), ``next``.
    """
    nx = import_library("networkx", "a graph")

    graph = nx.DiGraph()
    graph.add_node(-1, byte=-1, depth=-1, token=-1, prefix=b"", next=trie.node_count)
    path: list[int] = []
    for node, (prefix, token) in enumerate(trie.excerpt(limit=limit)):
        depth = trie.depth(node)
        del path[depth:]
        graph.add_node(node, byte=trie.byte(node), depth=depth, token=token, prefix=prefix, next=trie.next(node))
        graph.add_edge(path[-1] if path else -1, node)
        path.append(node)
    return graph


def draw_trie(trie: TokenTrie, *, visited: Collection[int] = (), limit: int = 40, ax: Axes | None = None) -> Axes:
    """Draw the first `limit` nodes; those in `visited` (the nodes a walk went through) are accented."""
    plt = import_library("matplotlib.pyplot", "a drawing")

    graph = trie_to_networkx(trie, limit)
    rows = len(graph) - 1
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 0.36 * rows + 0.6))
    places = {node: (data["depth"], -node) for node, data in graph.nodes(data=True)}
    places[-1] = (-1, 0.9)
    for parent, node in graph.edges:
        (x, y), (child_x, child_y) = places[parent], places[node]
        colour = ACCENT if node in visited else FAINT
        ax.plot([x, x, child_x], [y, child_y, child_y], color=colour, linewidth=1.2, zorder=1)
    for node, data in graph.nodes(data=True):
        if node < 0:
            ax.plot(*places[node], marker="o", color=INK, markersize=4)
            continue
        colour = ACCENT if node in visited else INK
        marker = "o" if data["token"] >= 0 else "s"
        ax.plot(*places[node], marker=marker, markersize=17, markerfacecolor="white", markeredgecolor=colour, zorder=2)
        label = token_label(bytes([data["byte"]]))
        ax.annotate(label, places[node], ha="center", va="center", color=colour, fontsize=9, zorder=3)
        token = f"token {data['token']}" if data["token"] >= 0 else "no token"
        note = f"[{node}]  {token_label(data['prefix'])}  {token}   next → {data['next']}"
        ax.annotate(note, places[node], xytext=(14, 0), textcoords="offset points", va="center", fontsize=8, color=INK)
    ax.set_xlim(-1.3, max(data["depth"] for _, data in graph.nodes(data=True)) + 3)
    ax.set_ylim(-rows - 0.2, 1.4)
    ax.axis("off")
    return ax
