"""The plots of runs of kind ``canonicity``: building time by part, and how many tokens a token forbids."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tokdfa.lab.report import style
from tokdfa.lab.report.metrics import METRICS, Metric, format_seconds
from tokdfa.lab.report.plots import Plot, left_out

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

FORBIDDEN = Metric(
    *("forbidden", "tokens that may not come next", "tokens that may not follow a token", "", "results", "value"),
    better="neither",
)
SHARE = Metric(
    *("share", "share of the tokens", "share of the proper tokens", "share", "results", "at"),
    better="neither",
    scale="linear",
)


def build_time_bars(parts: Mapping[str, Mapping[str, float]]) -> Plot:
    """A stacked bar per tokenizer. `parts`: tokenizer -> part -> seconds (NaN: there is none), `total` among them."""
    name, title = "build_parts", "Building time by part"
    known = {
        tokenizer: {part: value for part, value in seconds.items() if part != "total" and not math.isnan(value)}
        for tokenizer, seconds in parts.items()
    }
    known = {tokenizer: seconds for tokenizer, seconds in known.items() if seconds}
    if not known:
        return left_out(name, title, "no building was timed")
    names = [part for part in next(iter(parts.values())) if any(part in seconds for seconds in known.values())]
    look = style.looks_in_order(names)
    figure, (axes,) = style.new_figure(1, 0.5 + 0.32 * len(known))
    for place, (tokenizer, seconds) in enumerate(known.items()):
        begin = 0.0
        for part, value in seconds.items():
            axes.barh(place, value, left=begin, height=0.7, **style.bars(look[part]))
            begin += value
        style.annotate_end(axes, begin, place, format_seconds(parts[tokenizer]["total"]))
    axes.set_yticks(range(len(known)), [style.drawable(tokenizer) for tokenizer in known])
    axes.set_ylim(len(known) - 0.4, -0.6)
    style.bare_rows(axes)
    axes.margins(x=0.15)
    style.set_axis(axes, "x", METRICS["build_time"], "time to build the tables", log=False)
    style.legend(figure, names, look, "bars")
    caption = "Bars: medians of the parts. Numbers: the median of the whole, checks and copies of arrays included."
    return Plot(name, title, caption, figure)


def forbidden_curves(curves: Mapping[str, pd.DataFrame]) -> Plot:
    """A curve per tokenizer: which share of its tokens forbids at most so many. `curves`: columns at, value."""
    name, title = "forbidden", "How many tokens a token forbids next"
    shown = {tokenizer: rows[rows["value"] >= 1] for tokenizer, rows in curves.items()}
    shown = {tokenizer: rows for tokenizer, rows in shown.items() if len(rows)}
    if not shown:
        return left_out(name, title, "no token forbids another")
    look = style.looks_in_order(list(shown))
    figure, (axes,) = style.new_figure(1, 2.8)
    axes.set_xscale("log")
    for tokenizer, rows in shown.items():
        axes.step(rows["value"], rows["at"], where="post", **style.curve(look[tokenizer]))
    axes.set_ylim(0, 1.02)
    style.set_axis(axes, "x", FORBIDDEN)
    style.set_axis(axes, "y", SHARE)
    style.legend(figure, list(shown), look, "curves")
    return Plot(
        name,
        title,
        "The share of tokens that forbid at most so many; a curve starts at the share of those that forbid none.",
        figure,
    )
