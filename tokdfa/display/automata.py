"""An automaton as a drawing (SVG), or, where it has too many states to be read, as a table of sizes.

Where states, arrows and labels go is decided by `tokdfa.automata.layout`, which also draws the figures for print; here
the same layout is written as SVG. States are circles without a ground, accepting ones with a second rim, lines and
letters have the colour of the page's text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.automata.words import words
from tokdfa.core.arguments import as_integer, as_sequence
from tokdfa.display.view import ACCENT, View, chip, escape, facts

if TYPE_CHECKING:
    from collections.abc import Collection

    from tokdfa.automata.dfa import Dfa
    from tokdfa.automata.layout import Layout, Point

#: More states or arrows than this make no drawing that can be read on a page.
DRAWN_STATES, DRAWN_ARROWS = 30, 120
#: Pixels for a unit of the layout.
_SCALE = 52.0
_RING, _LINE = 0.055, 0.024  # units: between the two rims of an accepting state; the width of lines
_HEAD_LENGTH, _HEAD_WIDTH = 0.14, 0.11
#: Words that a table gives as examples, and their bytes together.
_WORDS, _WORD_BYTES = 5, 2_000


class AutomatonView(View):
    """An automaton over bytes; the states of `highlight` have a thick rim in the accent colour.

    Drawing takes some tenths of a second for thirty states. Past 30 states, or 120 arrows, a table of sizes is shown.
    """

    def __init__(self, dfa: Dfa, highlight: Collection[int] = ()) -> None:
        states = as_sequence(highlight, "highlight", "states")
        self.dfa, self.highlight = dfa, frozenset(as_integer(state, "highlight") for state in states)

    @property
    def arrow_count(self) -> int:
        """Pairs of states with an arrow from one to the other. O(states x classes log classes)."""
        return sum(len(np.unique(row[row >= 0])) for row in self.dfa.transitions)

    @property
    def is_drawn(self) -> bool:
        """Whether it is small enough for a drawing."""
        return 0 < self.dfa.state_count <= DRAWN_STATES and self.arrow_count <= DRAWN_ARROWS

    def __repr__(self) -> str:
        return f"AutomatonView({self.dfa!r})"

    def svg(self) -> str:
        """The drawing, whatever its size: an ``<svg>`` element."""
        from tokdfa.automata.graph import to_networkx
        from tokdfa.automata.layout import lay_out

        graph = to_networkx(self.dfa)
        return _write_svg(graph, lay_out(graph), self.highlight, repr(self.dfa))

    def _body(self) -> str:
        if self.is_drawn:
            return self.svg()
        dfa = self.dfa
        some = words(dfa, _WORDS, _WORD_BYTES)
        pairs = [
            ("states", f"{dfa.state_count:,}"),
            ("accepting", f"{int(dfa.accepting.sum()):,}"),
            ("byte classes", f"{dfa.class_count:,}"),
            ("arrows", f"{self.arrow_count:,}"),
            ("transitions", f"{int((dfa.transitions >= 0).sum()):,} of {dfa.transitions.size:,}"),
            ("memory", f"{dfa.nbytes / 1000:,.1f} kB"),
            ("shortest words", " ".join(map(chip, some)) or "none: the language is empty"),
        ]
        return facts(pairs)


def _write_svg(graph: object, layout: Layout, highlight: Collection[int], title: str) -> str:
    """The layout as SVG. The layout's heights grow upwards, those of SVG downwards."""
    low, high = layout.corners
    width, height = (high - low).tolist()
    to_pixels = _Pixels(low[0], high[1])
    parts = [f"<title>{escape(title)}</title>"]
    curves = [*layout.entries, *(arrow.curve for arrow in layout.arrows)]
    parts += [_curve(curve, to_pixels) for curve in curves]
    for node, data in graph.nodes(data=True):  # type: ignore[attr-defined]
        parts.append(_state(node, data["accepting"], node in highlight, to_pixels(layout.places[node])))
    for arrow in layout.arrows:
        parts += _label(arrow.lines, to_pixels(arrow.label))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * _SCALE:.0f}" height="{height * _SCALE:.0f}" '
        f'viewBox="0 0 {width * _SCALE:.1f} {height * _SCALE:.1f}" role="img" fill="none" stroke="currentColor" '
        f'stroke-width="{_LINE * _SCALE:.2f}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" '
        f'text-anchor="middle">{"".join(parts)}</svg>'
    )


class _Pixels:
    """From units of the layout to pixels."""

    def __init__(self, left: float, top: float) -> None:
        self._corner = np.array([left, top])

    def __call__(self, points: Point) -> Point:
        return (points - self._corner) * np.array([_SCALE, -_SCALE])


def _curve(curve: Point, to_pixels: _Pixels) -> str:
    """A curve with a head at its end."""
    along = curve[3] - curve[2]
    along = along / max(float(np.hypot(*along)), 1e-9)
    across, foot = np.array([-along[1], along[0]]) * _HEAD_WIDTH / 2, curve[3] - _HEAD_LENGTH * along
    head = to_pixels(np.array([curve[3], foot + across, foot - across]))
    line = to_pixels(np.array([curve[0], curve[1], curve[2], curve[3] - 0.5 * _HEAD_LENGTH * along]))
    start, *controls = (f"{x:.1f},{y:.1f}" for x, y in line.tolist())
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in head.tolist())
    return f'<path d="M{start} C{" ".join(controls)}"/><polygon points="{corners}" fill="currentColor" stroke="none"/>'


def _state(node: int, accepting: bool, highlighted: bool, centre: Point) -> str:
    from tokdfa.automata.layout import LETTERS, RADIUS

    x, y = centre.tolist()
    rim = f' stroke="{ACCENT}" stroke-width="{3 * _LINE * _SCALE:.2f}"' if highlighted else ""
    radii = [RADIUS, RADIUS - _RING] if accepting else [RADIUS]
    circles = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius * _SCALE:.1f}"{rim}/>' for radius in radii)
    return circles + _text(str(node), x, y, LETTERS)


def _label(lines: list[str], centre: Point) -> list[str]:
    from tokdfa.automata.layout import LETTERS

    x, y = centre.tolist()
    step = 1.2 * LETTERS * _SCALE
    top = y - step * (len(lines) - 1) / 2
    return [_text(line, x, top + step * index, LETTERS) for index, line in enumerate(lines)]


def _text(text: str, x: float, y: float, letters: float) -> str:
    """A line of text around a point; the layout's letters are sizes of a font, in units."""
    size = letters * _SCALE
    return (
        f'<text x="{x:.1f}" y="{y + 0.35 * size:.1f}" font-size="{size:.1f}" fill="currentColor" stroke="none" '
        f'xml:space="preserve">{escape(text)}</text>'
    )
