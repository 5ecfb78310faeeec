"""How everything is drawn: one look per label, one size, light and dark from the same figure.

Every backend name has its colour in every report (`COLOURS`; a name that is not listed gets one by a hash of itself).
Labels of one backend share its colour and differ by dash, marker and fill, so that colour is never the only cue. The
named colours are close to those of Okabe and Ito (2008) and of Tol (2021); those of the shipped backends can be told
apart with the common forms of colour blindness, which a test simulates. Each has a lighter twin for dark pages.

Figures are drawn 4.7 inches wide with letters that can be read on a page of 390 pixels. SVG text stays text, and
colours become CSS variables, so that one drawing follows the page from light to dark.
"""

from __future__ import annotations

import hashlib
import io
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tokdfa.lab.report.metrics import Metric

#: backend or engine name -> place in PALETTE.
COLOURS: dict[str, int] = {
    "token_index": 0,
    "tokdfa": 0,
    "llguidance": 1,
    "outlines_core": 2,
    "glrmask": 3,
    "brute_force": 4,
    "tokens_dfa": 5,
    "pushdown_trie": 6,
    "earley_trie": 7,
    "direct_merge": 8,
    "cartesian_merge": 9,
    "cfg_fsm": 10,
    "xgrammar": 11,
    "lm_format_enforcer": 12,
}

#: (on light pages, on dark pages); the first thirteen belong to the names above, the others to names by hash.
PALETTE: tuple[tuple[str, str], ...] = (
    ("#0072b2", "#3d9bff"),
    ("#e06000", "#ff7f2a"),
    ("#009e73", "#00c78c"),
    ("#aa3377", "#e377c2"),
    ("#444444", "#e0e0e0"),
    ("#332288", "#f0d060"),
    ("#6622ff", "#8844ff"),
    ("#660000", "#ee4444"),
    ("#aa66ff", "#aaffaa"),
    ("#440044", "#666666"),
    ("#ee2244", "#ff00dd"),
    ("#992200", "#227722"),
    ("#111111", "#bb2299"),
    ("#8c6d00", "#a99bff"),
    ("#2e8fb8", "#88ccee"),
    ("#882255", "#e0709a"),
    ("#117733", "#6bcb77"),
    ("#7a7a1f", "#d4d45a"),
    ("#9c4a1a", "#c9a27e"),
    ("#00707a", "#4fd0d8"),
    ("#7d4fa0", "#c39be0"),
    ("#4c6b00", "#ffd0a0"),
)
INK, MUTED, GRID, PAPER = "#1f2328", "#59636e", "#d1d9e0", "#ffffff"
DARK = {INK: "#e6edf3", MUTED: "#9aa7b4", GRID: "#3d444d", PAPER: "#14181d"}

WIDTH = 4.7  # inches: 338 points, so that a point is about a CSS pixel on a narrow page
DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
HATCHES = (None, None, "////", "....")
MARKERS = ("o", "s", "^", "D", "v", "P")

RC: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 10.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 10.5,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.facecolor": "none",
    "figure.facecolor": PAPER,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.8,
    "text.parse_math": False,  # patterns are full of dollar signs
    "svg.fonttype": "none",
}


class Look(NamedTuple):
    """How one label is drawn. `variant` counts the labels of the same backend from 0."""

    colour: str
    variant: int
    dash: Any
    marker: str


def looks(backend_of: Mapping[str, str]) -> dict[str, Look]:
    """label -> look, for a mapping label -> backend name in the order of the experiment."""
    chosen: dict[str, int] = {name: COLOURS[name] for name in backend_of.values() if name in COLOURS}
    for name in sorted(set(backend_of.values()) - set(chosen)):
        chosen[name] = _free_place(name, set(chosen.values()))
    variants: dict[str, int] = {}
    found = {}
    for label, backend in backend_of.items():
        variant = variants[backend] = variants.get(backend, -1) + 1
        colour = PALETTE[chosen[backend]][0]
        marker = MARKERS[(variant + chosen[backend]) % len(MARKERS)]
        found[label] = Look(colour, variant, DASHES[variant % len(DASHES)], marker)
    return found


def _free_place(name: str, taken: set[int]) -> int:
    """A place of the palette by the hash of a name; the next free one if another name of this run has it."""
    first = max(COLOURS.values()) + 1
    places = len(PALETTE) - first
    start = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") % places
    order = [first + (start + i) % places for i in range(places)]
    return next((place for place in order if place not in taken), order[0])


def looks_in_order(names: Sequence[str]) -> dict[str, Look]:
    """Looks for things that are not backends: the palette's colours in order, then again with other fills."""
    count = len(PALETTE)
    return {
        name: Look(PALETTE[i % count][0], i // count, "-", MARKERS[i % len(MARKERS)]) for i, name in enumerate(names)
    }


def new_figure(panels: int = 1, panel_height: float = 2.6, **options: Any) -> tuple[Figure, list[Any]]:
    """A figure with panels below each other, and their axes. Call it, and all drawing, inside `drawing()`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 0.75 + panel_height * panels), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(panels, 1, squeeze=False, **options)[:, 0])


def drawing() -> Any:
    """A context in which matplotlib draws in this style."""
    import matplotlib as mpl

    return mpl.rc_context(RC)


def curve(look: Look) -> dict[str, Any]:
    """How a label's curve is drawn."""
    return {"color": look.colour, "linestyle": look.dash}


def points(look: Look) -> dict[str, Any]:
    """How a label's points are drawn by `Axes.scatter`."""
    return {"color": look.colour, "marker": look.marker, "s": 22, "linewidths": 0}


def bars(look: Look) -> dict[str, Any]:
    """How a label's bars are filled: solid for the first label of a backend, pale with an outline for its others."""
    from matplotlib.colors import to_rgba

    face = to_rgba(look.colour, 1.0 if look.variant == 0 else 0.25)
    return {
        "facecolor": face,
        "edgecolor": look.colour,
        "linewidth": 0.9,
        "hatch": HATCHES[look.variant % len(HATCHES)],
    }


def legend(
    figure: Figure, labels: Sequence[str], look: Mapping[str, Look], of: Literal["curves", "points", "bars"]
) -> None:
    """One legend above the panels, in as many columns as fit; the figure grows with its rows, the panels stay."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = []
    for label in labels:
        one = look[label]
        if of == "bars":
            handles.append(Patch(**bars(one)))
        elif of == "curves":
            handles.append(Line2D([], [], **curve(one)))
        else:
            handles.append(Line2D([], [], color=one.colour, linestyle="", marker=one.marker, markersize=5.5))
    names = [drawable(label, 34) for label in labels]
    columns = max(1, int(72 * WIDTH / (5.6 * max(map(len, names)) + 44)))
    columns = min(columns, 4)
    rows = -(-len(names) // columns)
    figure.set_figheight(figure.get_figheight() + 0.19 * max(0, rows - 2))
    figure.legend(handles, names, loc="outside upper left", ncols=columns, handlelength=2.2, columnspacing=1.4)


def annotate_end(axes: Axes, width: float, place: float, note: str, size: float = 8.5) -> None:
    """Write `note` just right of the end of a horizontal bar."""
    axes.annotate(
        note, (width, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=size, color=INK
    )


def draw_range(axes: Axes, low: float, high: float, place: float) -> None:
    """A line from the lowest to the highest value across a horizontal bar; nothing if they are one."""
    if low < high:
        axes.plot([low, high], [place, place], color=INK, linewidth=1)


def bare_rows(axes: Axes) -> None:
    """Rows of bars need neither lines nor ticks across."""
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def set_axis(
    axes: Axes, which: Literal["x", "y"], metric: Metric, label: str | None = None, log: bool | None = None
) -> None:
    """Scale, label and unit of an axis, as the metric says unless told otherwise. Call it after the data are drawn."""
    import numpy as np
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    axis = axes.xaxis if which == "x" else axes.yaxis
    few = 4 if which == "x" else 5  # labels side by side need more room
    axis.set_label_text(metric.axis_label if label is None else label)
    if log if log is not None else metric.scale == "log":
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
        low, high = axis.get_view_interval()
        decades = np.log10(high / low)
        subs = (1.0,) if decades > 3 else (1.0, 3.0) if decades > 1.5 else (1.0, 2.0, 3.0, 5.0, 7.0)
        log_locator = LogLocator(base=10, subs=subs, numticks=5 if which == "x" else 7)
        axis.set_major_locator(log_locator if decades > 0.8 else MaxNLocator(few))
        axis.set_minor_formatter(NullFormatter())
    else:
        axis.set_major_locator(MaxNLocator(few))
    axis.set_major_formatter(FuncFormatter(lambda value, _: metric.tick(value)))


def drawable(text: str, limit: int = 24) -> str:
    """`text` for a drawing: shortened, control characters as dots, characters the font lacks as boxes."""
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    known = _font_characters()
    return "".join("·" if not c.isprintable() else c if ord(c) in known else "□" for c in short)


@cache
def _font_characters() -> frozenset[int]:
    from matplotlib.font_manager import findfont, get_font

    return frozenset(get_font(findfont("DejaVu Sans")).get_charmap())


def to_png(figure: Figure) -> bytes:
    """The figure as PNG on white, 150 pixels per inch."""
    out = io.BytesIO()
    with drawing():
        figure.savefig(out, format="png", dpi=150)
    return out.getvalue()


def to_svg(figure: Figure, name: str) -> str:
    """The figure as one <svg> element for an HTML page: no size of its own, colours as the page's CSS variables.

    Ids are prefixed with `name`, since all figures of a page share its ids. The same figure gives the same text.
    """
    import matplotlib as mpl

    out = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with drawing(), mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(out, format="svg", transparent=True, metadata=nothing)
    text = out.getvalue()
    text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(
        r"<svg [^>]*?(viewBox=\"[^\"]*\")[^>]*>", r'<svg \1 xmlns:xlink="http://www.w3.org/1999/xlink">', text
    )
    return re.sub(r"<[^>]*>", lambda tag: _page_tag(tag.group(), name), text).strip()


def _page_tag(tag: str, name: str) -> str:
    tag = re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{name}-", tag)
    return re.sub(r"#[0-9a-f]{6}\b", lambda match: _variables().get(match.group(), match.group()), tag)


@cache
def _variables() -> dict[str, str]:
    places = {light: f"var(--c{place})" for place, (light, _) in enumerate(PALETTE)}
    return places | {INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--grid)", PAPER: "var(--paper)"}


def css_variables(dark: bool) -> str:
    """The declarations of the variables that `to_svg` uses, for light or for dark pages."""
    plain = {"--ink": INK, "--muted": MUTED, "--grid": GRID, "--paper": PAPER}
    entries = {name: DARK[value] if dark else value for name, value in plain.items()}
    entries |= {f"--c{place}": pair[dark] for place, pair in enumerate(PALETTE)}
    return " ".join(f"{name}: {value};" for name, value in entries.items())
