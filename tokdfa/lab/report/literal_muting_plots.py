"""The plots of ``literal_muting``: the ratio plain over muted, growth with the literals, and what is forbidden.

The ratio has a logarithmic axis with 1 as its origin: bars to the right are cases in which muting pays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokdfa.lab.report import style
from tokdfa.lab.report.literal_muting_data import (
    CLAIM,
    MUTED,
    muting_pairs,
    rows_of,
    tokenization_counts,
    with_literals,
)
from tokdfa.lab.report.metrics import METRICS, Metric
from tokdfa.lab.report.plots import Plot, left_out

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from tokdfa.lab.report.data import RunData

GAIN = Metric(
    *("muting_gain", "plain over muted compile time", "compile time without muting over that with it"),
    *("ratio", "results", "seconds"),
    better="higher",
)
FORBIDDEN = Metric(
    *("forbidden", "share forbidden", "share that the muted constraint forbids", "share", "results", "stops_at"),
    scale="linear",
)


def build_plots(data: RunData) -> list[Plot]:
    """The ratio per constraint, growth along each axis, and the shares of forbidden tokenizations and positions."""
    if data.results.empty:
        return [left_out("literal_muting", "Muting of literals", "the run has no results yet")]
    with style.drawing():
        return [ratio_bars(data), *growth_curves(data), forbidden_bars(data)]


def ratio_bars(data: RunData) -> Plot:
    """Plain over muted compile time: a bar per constraint and token_classes, the median over tokenizers."""
    name, title = "muting_ratio", "Plain over muted compile time"
    every = muting_pairs(rows_of(data, "cost"))
    pairs = with_literals(every)
    if pairs.empty:
        return left_out(name, title, "no constraint with literals was compiled plain and muted")
    classes = [str(one) for one in dict.fromkeys(pairs["token_classes"])]
    constraints = [str(one) for one in dict.fromkeys(pairs["constraint"])]
    look = style.looks_in_order(classes)
    step = len(classes) + 1.2
    figure, (axes,) = style.new_figure(1, max(1.6, 0.13 * len(constraints) * step + 0.3))
    axes.set_xscale("log")
    for place, constraint in enumerate(constraints):
        for i, one in enumerate(classes):
            chosen = (pairs["constraint"] == constraint) & (pairs["token_classes"] == one)
            ratios = pairs.loc[chosen, "ratio"]
            if len(ratios):
                y = place * step + i
                axes.barh(y, ratios.median() - 1, left=1, height=0.86, **style.bars(look[one]))
                style.draw_range(axes, ratios.min(), ratios.max(), y)
    axes.axvline(1, color=style.INK, linewidth=0.9)
    axes.axvline(CLAIM, color=style.MUTED, linewidth=1.2, linestyle=(0, (4, 2)))
    axes.annotate("001", (CLAIM, -0.9), xytext=(-3, 0), textcoords="offset points", ha="right", va="top", fontsize=8.5)
    middles = [place * step + (len(classes) - 1) / 2 for place in range(len(constraints))]
    axes.set_yticks(middles, [style.drawable(constraint, 18) for constraint in constraints])
    axes.set_ylim(len(constraints) * step - 0.4, -1.2)
    style.bare_rows(axes)
    axes.margins(x=0.1)
    style.set_axis(axes, "x", GAIN, "plain over muted (above 1 muting pays)")
    style.legend(figure, classes, look, "bars")
    caption = "Bars: median over tokenizers; lines: lowest to highest. Dashed: what 001 reports for the HTTPS regex."
    without = [str(one) for one in dict.fromkeys(every["constraint"]) if one not in constraints]
    if without:
        caption += f" Without literals, so not drawn: {', '.join(without)}."
    return Plot(name, title, caption, figure)


def growth_curves(data: RunData) -> Iterator[Plot]:
    """Compile time against the number of words, and against their length; a panel per pattern and vocabulary."""
    frame = rows_of(data, "growth")
    frame = frame[(frame["status"] == "ok") & (frame["seconds"] > 0)]
    for axis, what, label in (
        ("words", "the number of literals", "words"),
        ("length", "the length of literals", "letters of each word"),
    ):
        name, title = f"muting_growth_{axis}", f"Compile time against {what}"
        along = frame[frame["axis"] == axis]
        if along[axis].nunique() < 2:
            yield left_out(name, title, f"fewer than two values of {axis} were measured")
            continue
        yield Plot(name, title, _growth_caption(along, axis), _growth_figure(along, axis, label))


def _shown_tokenizers(along: pd.DataFrame) -> list[str]:
    """The smallest and the largest vocabulary."""
    sizes = along.groupby("tokenizer", sort=False)["vocab_size"].first()
    return list(dict.fromkeys((str(sizes.idxmin()), str(sizes.idxmax()))))


def _growth_caption(along: pd.DataFrame, axis: str) -> str:
    other = "length" if axis == "words" else "words"
    fixed = f"{along[other].iloc[0]:,.0f}"
    said = f"Words of {fixed} random letters" if axis == "words" else f"{fixed} random words"
    left = along["tokenizer"].nunique() - len(_shown_tokenizers(along))
    return f"{said}; both axes are logarithmic." + (" The other vocabularies are in the table." if left else "")


def _growth_figure(along: pd.DataFrame, axis: str, label: str) -> Any:
    variants = [str(variant) for variant in dict.fromkeys(along["variant"])]
    classes = list(dict.fromkeys(variant.removesuffix(MUTED) for variant in variants))
    colours = style.looks_in_order(classes)
    look = {}
    for variant in variants:
        muted = variant.endswith(MUTED)
        one = colours[variant.removesuffix(MUTED)]
        look[variant] = one._replace(variant=int(muted), dash=style.DASHES[muted])
    constraints = [str(one) for one in dict.fromkeys(along["constraint"])]
    shown = [(constraint, tokenizer) for constraint in constraints for tokenizer in _shown_tokenizers(along)]
    figure, panels = style.new_figure(len(shown), 1.75, sharex=True, sharey=True)
    for axes, (constraint, tokenizer) in zip(panels, shown, strict=True):
        mine = along[(along["constraint"] == constraint) & (along["tokenizer"] == tokenizer)]
        for variant, one in look.items():
            points = mine[mine["variant"] == variant].sort_values(axis)
            marks = {"marker": one.marker, "markersize": 4.5}
            axes.plot(points[axis], points["seconds"], **style.curve(one), **marks)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_title(style.drawable(f"{constraint}, {tokenizer}", 44))
        style.set_axis(axes, "y", METRICS["compile"], "")
    values = sorted(along[axis].unique())
    panels[-1].set_xticks(values, [f"{value:g}" for value in values])
    panels[-1].set_xlabel(label)
    panels[-1].minorticks_off()
    style.legend(figure, variants, look, "curves")
    return figure


def forbidden_bars(data: RunData) -> Plot:
    """Shares of forbidden tokenizations and positions of the drawn texts: a bar per constraint and tokenizer."""
    name, title = "muting_forbidden", "Proper tokenizations that muting forbids"
    counts = tokenization_counts(data)
    counts = counts[(counts["literals"] > 0) & (counts["followed"] > 0)]
    sources = list(dict.fromkeys(counts["source"]))
    source = "drawn" if "drawn" in sources else next(iter(sources), "")
    counts = counts[counts["source"] == source]
    if counts.empty:
        return left_out(name, title, "no text of a constraint with literals was followed")
    tokenizers = [str(one) for one in dict.fromkeys(counts["tokenizer"])]
    constraints = [str(one) for one in dict.fromkeys(counts["constraint"])]
    look = style.looks_in_order(tokenizers)
    step = len(tokenizers) + 1.2
    figure, panels = style.new_figure(2, 0.12 * len(constraints) * step + 0.3)
    for axes, (whole, heading) in zip(
        panels, (("followed", "of the proper tokenizations"), ("positions", "of the positions they reach")), strict=True
    ):
        for _, entry in counts.iterrows():
            place = constraints.index(entry["constraint"]) * step + tokenizers.index(entry["tokenizer"])
            share = float(entry["forbidden"]) / float(entry[whole])
            axes.barh(place, share, height=0.86, **style.bars(look[entry["tokenizer"]]))
            style.annotate_end(axes, share, place, FORBIDDEN.format(share), 7)
        middles = [place * step + (len(tokenizers) - 1) / 2 for place in range(len(constraints))]
        axes.set_yticks(middles, [style.drawable(constraint, 18) for constraint in constraints])
        axes.set_ylim(len(constraints) * step - 0.4, -1)
        style.bare_rows(axes)
        axes.margins(x=0.12)
        axes.set_title(heading)
        style.set_axis(axes, "x", FORBIDDEN, "share forbidden (lower is better)")
    style.legend(figure, tokenizers, look, "bars")
    texts = "random texts" if source == "drawn" else "the given texts"
    return Plot(name, title, f"Of {texts}; constraints without literals forbid nothing and are not drawn.", figure)
