"""The plots of runs of kind ``engine_ablation``: time against density, variants, nodes of the parser, hit rates.

Time against density is the figure of 000: without slices or partitions a mask costs in proportion to what it allows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.lab.report import style
from tokdfa.lab.report.data import factors
from tokdfa.lab.report.engine_ablation_data import (
    CASE,
    CLAIMED_SHARE,
    DEFAULT,
    SHARES,
    WALK,
    measured,
    reach,
    reuse,
    times,
)
from tokdfa.lab.report.metrics import METRICS, Metric
from tokdfa.lab.report.plots import MAX_GROUPS, Plot, left_out

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.lab.report.data import RunData

SPEED = Metric(
    "over_walk",
    "times as fast as the walk",
    "mean mask time of the walk over that of the variant",
    "ratio",
    "results",
    "mask_ns_mean",
    better="higher",
)
NODE_SHARE = Metric(
    "node_share", "share of the nodes", "share of the nodes of a walk", "share", "results", "lexeme_ends"
)
HIT_RATE = Metric(
    "hit_rate",
    "share found again",
    "share that is found again",
    "share",
    "results",
    "masks_made",
    better="higher",
    scale="linear",
)
#: Column of `reuse` -> its name in the plot.
RATES = {"mask_hits": "masks", "row_hits": "rows after a lexeme", "equal_rows": "new rows"}
#: Column of `reuse` -> what a caption says of it.
RATES_MEAN = {
    "mask_hits": "Masks: of situations met before.",
    "row_hits": "Rows after a lexeme: looked up, of all lexemes that end in walks over the whole trie.",
    "equal_rows": "New rows: of those made, the ones that were there already.",
}
#: Column of `reach` -> its name in the plot.
NODES = {"end_share": "a lexeme ends", "scan_share": "new to the parser"}
#: Points are drawn below this many a variant, so that the plot stays small.
MAX_POINTS = 1_500


def build_plots(data: RunData) -> list[Plot]:
    """Mask time against density, how much faster than the walk, shares of nodes, and rates."""
    if data.results.empty:
        return [left_out("engine_ablation", "Parts of a grammar engine", "the run has no results yet")]
    with style.drawing():
        of_parser = [shares(data)] if measured(data)["lexeme_ends"].notna().any() else []
        return [density(data), speeds(data), *of_parser, rates(data)]


def density(data: RunData) -> Plot:
    """A point per mask and variant: the share of the vocabulary that is allowed, and the time."""
    name, title = "density", "Mask time by mask density"
    rows = measured(data, "mask")
    rows = rows[(rows["allowed"] > 0) & (rows["ns"] > 0)]
    if rows.empty:
        return left_out(name, title, "no masks were measured one by one")
    present = list(dict.fromkeys(rows["variant"].astype(str)))
    look = style.looks_in_order(present)
    figure, panels = style.new_figure(len(present), 1.45, sharex=True, sharey=True)
    for axes, variant in zip(panels, present, strict=True):
        mine = rows[rows["variant"] == variant]
        shown = mine.iloc[:: -(-len(mine) // MAX_POINTS)]
        share, seconds = shown["allowed"] / shown["vocab_size"], shown["ns"] * METRICS["mask_p50"].factor
        axes.scatter(share, seconds, alpha=0.35, **{**style.points(look[variant]), "s": 9})
        axes.set_title(variant)
        axes.set_xscale("log")
        axes.set_yscale("log")
    for axes in panels:
        style.set_axis(axes, "y", METRICS["mask_p50"], "mask time")
    style.set_axis(panels[-1], "x", METRICS["density"], "share of the vocabulary allowed", log=True)
    drawn = min(MAX_POINTS, int(rows["variant"].value_counts().max()))
    caption = (
        f"One point per position, all constraints and paths together, at most {drawn:,} a variant; lower is better."
    )
    return Plot(name, title, caption, figure)


def speeds(data: RunData) -> Plot:
    """A dot and a range per variant: how many times as fast as the walk, over the cases."""
    name, title = "over_walk", "How many times as fast as the walk"
    table = times(data)
    found = {variant: factors(table, WALK, variant) for variant in table.columns if variant not in (WALK, SHARES)}
    found = {variant: ratios for variant, ratios in found.items() if len(ratios)}
    if not found:
        return left_out(name, title, f"no case has a result of {WALK!r} and of another variant")
    figure, (axes,) = style.new_figure(1, 0.5 + 0.3 * len(found))
    colour = style.PALETTE[0][0]
    axes.set_xscale("log")
    axes.axvline(1, color=style.INK, linewidth=1)
    for place, ratios in enumerate(found.values()):
        for low, high, width in ((0.0, 1.0, 0.9), (0.25, 0.75, 2.8)):
            ends = [ratios.quantile(low), ratios.quantile(high)]
            axes.plot(ends, [place, place], color=colour, linewidth=width, solid_capstyle="butt")
        axes.plot(ratios.median(), place, color=colour, marker="o", markersize=5)
    axes.set_yticks(range(len(found)), list(found))
    axes.set_ylim(len(found) - 0.4, -0.6)
    style.bare_rows(axes)
    style.set_axis(axes, "x", SPEED)
    return Plot(name, title, "Dots: median over the cases; thick: the middle half; thin: lowest to highest.", figure)


def shares(data: RunData) -> Plot:
    """Bars by case: the share of a walk's nodes at which a lexeme ends, and that at which the parser does new work."""
    name, title = "node_shares", "Nodes that reach the parser"
    found = reach(data)
    found = found[found["variant"] == SHARES].head(MAX_GROUPS)
    if found.empty:
        return left_out(name, title, f"the variant {SHARES!r} has no result")
    values = found.rename(columns=NODES)[[*CASE, *NODES.values()]]
    figure, axes = _bars(values, list(NODES.values()))
    axes.set_xscale("log")
    axes.axvline(CLAIMED_SHARE, color=style.INK, linewidth=1, linestyle="--")
    style.set_axis(axes, "x", NODE_SHARE, "share of the nodes (lower is better)")
    axes.set_xlim(1e-7, 1)
    axes.set_xticks([1e-6, 1e-4, 1e-2, 1])
    return Plot(name, title, f"Variant {SHARES}. Dashed: {CLAIMED_SHARE:.1%}, which 000 stays under.", figure)


def rates(data: RunData) -> Plot:
    """Bars by case: how much of the masks and of the rows is found again."""
    name, title = "rates", "What is found again"
    found = reuse(data).head(MAX_GROUPS)
    if found.empty:
        return left_out(name, title, f"the variant {DEFAULT!r} has no result")
    known = {column: what for column, what in RATES.items() if found[column].notna().any()}
    figure, axes = _bars(found[[*CASE, *known]].rename(columns=known), list(known.values()))
    axes.set_xlim(0, 1.02)
    style.set_axis(axes, "x", HIT_RATE)
    caption = " ".join(["From a cold start.", *(RATES_MEAN[column] for column in known)])
    return Plot(name, title, caption, figure)


def _bars(values: pd.DataFrame, columns: list[str]) -> tuple[Any, Any]:
    """A group of horizontal bars for each row, one bar a column; NaN and zero have none."""
    look = style.looks_in_order(columns)
    step = len(columns) + 0.8
    figure, (axes,) = style.new_figure(1, max(1.4, 0.115 * step * len(values) + 0.3))
    tops = np.arange(len(values)) * step
    for place, column in enumerate(columns):
        widths = values[column].to_numpy(dtype=float)
        known = np.isfinite(widths) & (widths > 0)
        axes.barh(tops[known] + place, widths[known], height=0.9, **style.bars(look[column]))
    names = [f"{one['constraint']}, {one['path']}" for _, one in values.iterrows()]
    if values["tokenizer"].nunique() > 1:
        names = [f"{name}, {tokenizer}" for name, tokenizer in zip(names, values["tokenizer"], strict=True)]
    axes.set_yticks(tops + (len(columns) - 1) / 2, [style.drawable(name, 30) for name in names])
    axes.tick_params(axis="y", labelsize=8.5)
    axes.set_ylim(tops[-1] + len(columns), -1)
    style.bare_rows(axes)
    style.legend(figure, columns, look, "bars")
    return figure, axes
