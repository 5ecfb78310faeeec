"""Drawings of a speculative terminal tree, from left to right, with matplotlib.

A box is a node of `tokdfa.backends.cfg_fsm.tree_graph`: the terminal that has ended before it and how many tokens take
this way, the terminals that the lexeme there can become, how many tokens end in it, and some of them. The width of the
line to it grows with the logarithm of the tokens that take it.

Everything is written in one font with letters of one width, and measured in these: a column is as wide as its longest
line, and a leaf has a row of its own. So nothing covers anything.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.automata.graph import token_label
from tokdfa.automata.layout import font
from tokdfa.core.packages import import_library

if TYPE_CHECKING:
    from collections.abc import Iterable

_INK, _FAINT, _ACCENT = "#262626", "#8a8a8a", "#1a6fb5"
#: Characters in a line of a box.
_LINE_WIDTH = 30
#: Units of a drawing are widths of a letter: the height of a line of text, and the room between rows and columns.
_LINE_HEIGHT, _ROW_GAP, _COLUMN_GAP = 2.4, 2.4, 6.0
_POINTS = 8.0  # of the font, where the drawing chooses the size of its figure
_LETTER_WIDTH = 0.63  # of the font's size: 0.602, and what hinting adds on a screen
_MAX_INCHES = 40.0


def draw_tree(graph: Any, ax: Any = None, *, limit: int = 24, title: str = "") -> Any:
    """Draw a graph made by `tree_to_networkx` and return the matplotlib Axes.

    At most `limit` nodes are drawn, those that most tokens use; a box says how many narrower branches it has besides.
    Without `ax` a figure of fitting size is made.
    """
    plt = import_library("matplotlib.pyplot", "a drawing")

    ranked = sorted(graph, key=lambda node: (-graph.nodes[node]["tokens"], node))
    kept = graph.subgraph(ranked[: max(limit, 1)])
    lines = {node: box_lines(graph, kept, node) for node in kept}
    places, width, height = _lay_out(kept, lines)
    if ax is None:
        inches = min(_POINTS * _LETTER_WIDTH / 72, _MAX_INCHES / max(width, height))
        heading = 0.35 if title else 0.0
        figure = plt.figure(figsize=(width * inches, height * inches + heading))
        ax = figure.add_axes((0.0, 0.0, 1.0, height * inches / (height * inches + heading)))
    ax.set(xlim=(-2, width - 2), ylim=(-height, 0), aspect="equal")
    ax.set_title(title, loc="left", parse_math=False)
    ax.set_axis_off()
    ax.apply_aspect()
    points = ax.get_window_extent().width / ax.figure.dpi * 72 / width  # of a letter's width
    for parent, child in kept.edges:
        begin = places[parent][0] + max(map(len, lines[parent]))
        tokens = kept.nodes[child]["tokens"]
        ax.plot(
            [begin, begin + _COLUMN_GAP / 2, places[child][0]],
            [places[parent][1], places[child][1], places[child][1]],
            color=_ACCENT,
            linewidth=points * (0.12 + 0.1 * float(np.log10(tokens))),
            zorder=1,
        )
    for node, (x, y) in places.items():
        edge = _FAINT if node == 0 else _INK
        box = {"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": edge, "linewidth": 0.14 * points}
        text = "\n".join(lines[node])
        size = points / _LETTER_WIDTH
        ax.text(x, y, text, fontproperties=font(), fontsize=size, color=_INK, va="center", parse_math=False, bbox=box)
    return ax


def _lay_out(kept: Any, lines: dict[int, list[str]]) -> tuple[dict[int, tuple[float, float]], float, float]:
    """The left end and the middle of each node's text, and the width and height of the drawing. Cost: linear."""
    import networkx

    depth = networkx.single_source_shortest_path_length(kept, 0)
    widths = [0.0] * (max(depth.values()) + 1)  # of columns
    for node, column in depth.items():
        widths[column] = max(widths[column], *(len(line) + _COLUMN_GAP for line in lines[node]))
    lefts = [0.0, *accumulate(widths)]
    ordered = networkx.DiGraph()  # children by their tokens
    ordered.add_nodes_from(kept)
    ordered.add_edges_from(sorted(kept.edges, key=lambda edge: (-kept.nodes[edge[1]]["tokens"], edge[1])))
    places: dict[int, tuple[float, float]] = {}
    bottom = -_ROW_GAP / 2
    for node in networkx.dfs_postorder_nodes(ordered, 0):
        heights = [places[child][1] for child in kept.successors(node)]
        if heights:
            middle = (max(heights) + min(heights)) / 2
        else:
            height = len(lines[node]) * _LINE_HEIGHT
            middle, bottom = bottom - height / 2, bottom - height - _ROW_GAP
        places[node] = lefts[depth[node]], middle
    return places, lefts[-1], max(-bottom, len(lines[0]) * _LINE_HEIGHT + _ROW_GAP)


def box_lines(graph: Any, kept: Any, node: int) -> list[str]:
    """What stands in the box of `node`, of whose children those in `kept` are drawn."""
    data = graph.nodes[node]
    lines = [f"{data['tokens']:,} tokens"]
    if node:
        (parent,) = graph.predecessors(node)
        terminal = graph.edges[parent, node]["terminal"]
        if terminal:
            lines.insert(0, f"past {_joined([terminal], '')}")
        lines += [_joined(data["may_become"], " | ") or "over", f"{data['ending']:,} end here"]
        if data["examples"]:
            lines.append(_joined(map(token_label, data["examples"]), "  "))
    left_out = [child for child in graph.successors(node) if child not in kept]
    if left_out:
        lines.append(f"{len(left_out)} narrower: {sum(graph.nodes[child]['tokens'] for child in left_out):,}")
    return lines


def _joined(texts: Iterable[str], separator: str) -> str:
    """As many of the texts as fit in a line, and a sign that there are more; escapes for what a font may lack."""
    shown = ""
    for text in texts:
        plain = "".join(c if c.isascii() or c in "␣…" else c.encode("unicode_escape").decode() for c in text)
        longer = f"{shown}{separator}{plain}" if shown else plain
        if len(longer) > _LINE_WIDTH:
            return f"{shown} …" if shown else f"{longer[: _LINE_WIDTH - 1]}…"
        shown = longer
    return shown
