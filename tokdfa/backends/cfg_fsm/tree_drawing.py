"""Drawings of a speculative terminal tree, from left to right, with matplotlib.

A box is a node of `tokdfa.backends.cfg_fsm.tree_graph`: the terminals that the lexeme there can become, how many tokens
end in it, and some of them. On the line to it stand the terminal that has ended before, and how many tokens take this
way; the width of the line grows with the logarithm of that.

Everything is written in one font with letters of one width, and measured in these: a box is as large as its lines, a
column as wide as its widest box, and a leaf has a row of its own. So nothing covers anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokdfa.automata.graph import token_label
from tokdfa.automata.layout import font
from tokdfa.core.packages import import_library

if TYPE_CHECKING:
    from collections.abc import Iterable

_INK, _FAINT, _ACCENT = "#262626", "#8a8a8a", "#1a6fb5"
#: Characters in a line of a box.
_LINE_WIDTH = 30
#: Units of a drawing are widths of a letter. A line of text is so high; between rows, and beside a line's text, is so
#: much room.
_LINE_HEIGHT, _ROW_GAP, _SIDE = 2.2, 1.6, 2.0
_POINTS = 8.0  # of the font, where the drawing chooses the size of its figure
_LETTER_WIDTH = 0.63  # of the font's size: 0.602, and what hinting adds on a screen
_MAX_INCHES = 40.0


class Box(NamedTuple):
    """Where a node is drawn: the left edge, the middle, width and height; and its lines."""

    left: float
    middle: float
    width: float
    height: float
    lines: tuple[str, ...]


def draw_tree(graph: Any, ax: Any = None, *, limit: int = 24, title: str = "") -> Any:
    """Draw a graph made by `tree_to_networkx` and return the matplotlib Axes.

    At most `limit` nodes are drawn, those that most tokens use; a box says how many narrower branches it has besides.
    Without `ax` a figure of fitting size is made.
    """
    plt = import_library("matplotlib.pyplot", "a drawing")

    kept = _widest(graph, limit)
    boxes = lay_out_tree(kept, graph)
    width = max(box.left + box.width for box in boxes.values())
    low = min(box.middle - box.height / 2 for box in boxes.values())
    high = max(box.middle + box.height / 2 for box in boxes.values())
    if ax is None:
        inches = _POINTS * _LETTER_WIDTH / 72
        inches = min(inches, _MAX_INCHES / max(width, high - low))
        heading = 0.35 if title else 0.0
        size = np.array([width + 2, high - low + 2]) * inches
        figure = plt.figure(figsize=(size[0], size[1] + heading))
        ax = figure.add_axes((0.0, 0.0, 1.0, size[1] / (size[1] + heading)))
    ax.set(xlim=(-1, width + 1), ylim=(low - 1, high + 1), aspect="equal")
    ax.set_title(title, loc="left", parse_math=False)
    ax.set_axis_off()
    ax.apply_aspect()
    points = ax.get_window_extent().width / ax.figure.dpi * 72 / (width + 2)
    _paint_lines(ax, kept, boxes, points)
    for node, box in boxes.items():
        _paint_box(ax, box, points, rim=_FAINT if node == 0 else _INK)
    return ax


def _widest(graph: Any, limit: int) -> Any:
    """The `limit` nodes that most tokens use, a parent before its children, as a graph."""
    ranked = sorted(graph, key=lambda node: (-graph.nodes[node]["tokens"], node))
    return graph.subgraph(ranked[: max(limit, 1)])


def lay_out_tree(kept: Any, graph: Any) -> dict[int, Box]:
    """The boxes of a tree's nodes `kept`, by node; `graph` is the whole tree. Cost: linear."""
    import networkx

    lines = {
        node: _lines(graph, node, [child for child in graph.successors(node) if child not in kept]) for node in kept
    }
    depth = networkx.single_source_shortest_path_length(kept, 0)
    widths = [0.0] * (max(depth.values()) + 1)  # of the boxes of a column
    gaps = [0.0] * len(widths)  # before a column
    for node, column in depth.items():
        widths[column] = max(widths[column], *(len(line) + _SIDE for line in lines[node]))
        if column:
            gaps[column] = max(gaps[column], len(edge_text(kept, node)) + 3 * _SIDE)
    lefts = [sum(widths[:column]) + sum(gaps[: column + 1]) for column in range(len(widths))]
    boxes: dict[int, Box] = {}
    bottom = 0.0
    for node in networkx.dfs_postorder_nodes(_by_tokens(kept), 0):
        height = len(lines[node]) * _LINE_HEIGHT + 0.6
        children = [boxes[child] for child in kept.successors(node)]
        if children:
            middle = (max(box.middle for box in children) + min(box.middle for box in children)) / 2
        else:
            middle = bottom - height / 2
            bottom -= height + _ROW_GAP
        boxes[node] = Box(lefts[depth[node]], middle, widths[depth[node]], height, lines[node])
    return boxes


def _by_tokens(kept: Any) -> Any:
    """The same tree, the children of a node in order of their tokens."""
    import networkx

    ordered = networkx.DiGraph()
    ordered.add_nodes_from(kept)
    edges = sorted(kept.edges, key=lambda edge: (edge[0], -kept.nodes[edge[1]]["tokens"], edge[1]))
    ordered.add_edges_from(edges)
    return ordered


def edge_text(graph: Any, node: int) -> str:
    """What stands on the line to `node`."""
    (data,) = (data for _, _, data in graph.in_edges(node, data=True))
    return f"{_shorten(data['terminal'], _LINE_WIDTH)} {graph.nodes[node]['tokens']:,}".strip()


def _lines(graph: Any, node: int, left_out: list[int]) -> tuple[str, ...]:
    """What stands in the box of `node`."""
    data = graph.nodes[node]
    if node == 0:
        lines = [f"{data['tokens']:,} tokens"]
    else:
        lines = [_joined(data["may_become"], " | ") or "over", f"{data['ending']:,} end here"]
        if data["examples"]:
            lines.append(_joined(map(token_label, data["examples"]), "  "))
    if left_out:
        tokens = sum(graph.nodes[child]["tokens"] for child in left_out)
        lines.append(f"{len(left_out)} narrower: {tokens:,}")
    return tuple(lines)


def _joined(texts: Iterable[str], separator: str) -> str:
    """As many of the texts as fit in a line, and a sign that there are more."""
    shown = ""
    for text in map(_ascii, texts):
        longer = f"{shown}{separator}{text}" if shown else text
        if len(longer) > _LINE_WIDTH:
            return f"{shown} …" if shown else _shorten(longer, _LINE_WIDTH)
        shown = longer
    return shown


def _shorten(text: str, width: int) -> str:
    text = _ascii(text)
    return text if len(text) <= width else text[: width - 1] + "…"


def _ascii(text: str) -> str:
    """`text` with escapes for what a font may lack."""
    return "".join(
        letter if letter.isascii() or letter in "␣…" else letter.encode("unicode_escape").decode() for letter in text
    )


def _paint_lines(ax: Any, kept: Any, boxes: dict[int, Box], points: float) -> None:
    """Lines from parents to children, each with its text."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    for parent, child in kept.edges:
        start, end, text = boxes[parent], boxes[child], edge_text(kept, child)
        right = start.left + start.width
        turned = end.left - len(text) - _SIDE  # where the line has come to the height of the child
        bend = (right + turned) / 2
        points_of_line = [
            (right, start.middle),
            *((bend, start.middle), (bend, end.middle), (turned, end.middle)),
            (end.left, end.middle),
        ]
        codes = [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4, Path.LINETO]
        weight = 0.12 + 0.1 * float(np.log10(kept.nodes[child]["tokens"]))
        line = PathPatch(
            Path(points_of_line, codes), fill=False, edgecolor=_ACCENT, linewidth=weight * points, zorder=1
        )
        ax.add_patch(line)
        middle = (turned + end.left) / 2
        _write(ax, middle, end.middle + 0.35, text, points, ha="center", va="bottom", color=_ACCENT)


def _paint_box(ax: Any, box: Box, points: float, rim: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    patch = FancyBboxPatch(
        (box.left, box.middle - box.height / 2),
        *(box.width, box.height),
        boxstyle="round,pad=0,rounding_size=0.6",
        facecolor="white",
        edgecolor=rim,
        linewidth=0.14 * points,
        zorder=2,
    )
    ax.add_patch(patch)
    top = box.middle + (len(box.lines) - 1) / 2 * _LINE_HEIGHT
    for number, line in enumerate(box.lines):
        weight, color = ("bold", _INK) if number == 0 else ("normal", _FAINT if number == 1 else _INK)
        where = box.left + _SIDE / 2, top - number * _LINE_HEIGHT
        _write(ax, *where, line, points, ha="left", va="center_baseline", color=color, weight=weight)


def _write(ax: Any, x: float, y: float, text: str, points: float, weight: str = "normal", **how: str) -> None:
    """Write a line of text; a letter is one unit wide."""
    properties = font().copy()
    properties.set_weight(weight)
    size = points / _LETTER_WIDTH
    ax.text(x, y, text, fontproperties=properties, fontsize=size, parse_math=False, zorder=3, **how)
