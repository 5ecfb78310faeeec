"""Drawings of small automata in the manner of textbook figures, with matplotlib alone.

One colour of ink and one accent. Where everything goes is decided by `tokdfa.automata.layout`; line widths and letters
scale with the drawing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokdfa.automata.layout import LETTERS, RADIUS, font, lay_out
from tokdfa.core.packages import import_library
from tokdfa.errors import LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Collection

    from tokdfa.automata.layout import Layout

#: More states than this make no readable figure.
DRAWN_STATES = 60

# A unit of the drawing is UNIT_INCHES wide unless the figure would be wider than MAX_INCHES.
_UNIT_INCHES, _MAX_INCHES = 0.72, 30.0
_RING, _LINE = 0.055, 0.022  # units: between the two rims of an accepting state; the width of lines
_INK = "#262626"


def draw(
    graph: Any, ax: Any = None, *, accent: str = "#1a6fb5", highlight: Collection[int] = (), title: str = ""
) -> Any:
    """Draw a graph made by `tokdfa.automata.graph` and return the matplotlib Axes.

    Accepting states have a double rim in the `accent` colour; states of `highlight` are filled with it. Without `ax` a
    figure of fitting size is made. LimitExceeded for more than 60 states.
    """
    plt = import_library("matplotlib.pyplot", "a drawing")

    if len(graph) > DRAWN_STATES:
        raise LimitExceeded(
            f"a drawing of {len(graph)} states cannot be read; draw at most {DRAWN_STATES}, or export with to_dot",
            limit="drawn states",
            value=DRAWN_STATES,
        )
    layout = lay_out(graph)
    low, high = layout.corners
    if ax is None:
        width, height = (high - low) * min(_UNIT_INCHES, _MAX_INCHES / (high - low)[0])
        heading = 0.3 if title else 0.0
        figure = plt.figure(figsize=(width, height + heading))
        ax = figure.add_axes((0.0, 0.0, 1.0, height / (height + heading)))
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal", title=title)
    ax.set_axis_off()
    ax.apply_aspect()
    points_per_unit = ax.get_window_extent().width / ax.figure.dpi * 72 / (high - low)[0]
    _paint_states(ax, graph, layout, points_per_unit, accent, highlight)
    _paint_arrows(ax, layout, points_per_unit)
    return ax


def _paint_states(
    ax: Any, graph: Any, layout: Layout, points_per_unit: float, accent: str, highlight: Collection[int]
) -> None:
    from matplotlib.patches import Circle

    line = _LINE * points_per_unit
    for node, data in graph.nodes(data=True):
        rim = accent if data["accepting"] else _INK
        fill, ink = (accent, "white") if node in highlight else ("white", _INK)
        x, y = layout.places[node].tolist()
        ax.add_patch(Circle((x, y), RADIUS, facecolor=fill, edgecolor=rim, linewidth=1.2 * line, zorder=3))
        if data["accepting"]:
            ring = "white" if node in highlight else accent
            ax.add_patch(Circle((x, y), RADIUS - _RING, fill=False, edgecolor=ring, linewidth=line, zorder=4))
        size = LETTERS * points_per_unit
        ax.text(x, y, str(node), ha="center", va="center_baseline", fontsize=size, color=ink, zorder=5)


def _paint_arrows(ax: Any, layout: Layout, points_per_unit: float) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    for curve in [*layout.entries, *(arrow.curve for arrow in layout.arrows)]:
        arrow_patch = FancyArrowPatch(
            path=Path(curve, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]),
            arrowstyle="-|>,head_length=0.42,head_width=0.2",
            mutation_scale=0.32 * points_per_unit,
            linewidth=_LINE * points_per_unit,
            color=_INK,
            joinstyle="miter",
            capstyle="butt",
            zorder=2,
        )
        ax.add_patch(arrow_patch)
    for arrow in layout.arrows:
        ax.text(
            *arrow.label.tolist(),
            "\n".join(arrow.lines),
            ha="center",
            va="center",
            fontproperties=font(),
            fontsize=LETTERS * points_per_unit,
            linespacing=1.1,
            color=_INK,
            parse_math=False,
            zorder=6,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.0, "alpha": 0.8},
        )
