"""The plots that compare backends. Each is drawn from the run's data alone, or says why there is nothing to draw.

ECDF: the share of masks that took at most so long; a curve further to the left is better, and its upper end shows the
slow masks that a median hides. Bars have a logarithmic axis where the values span decades, so compare their ends, not
their lengths; the printed ratios are to the run's reference, above 1 is better.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokdfa.lab.report import style
from tokdfa.lab.report.data import ratio_of_row
from tokdfa.lab.report.metrics import METRICS, short_factor

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from matplotlib.figure import Figure

    from tokdfa.lab.report.data import RunData
    from tokdfa.lab.report.metrics import Metric

#: At most so many groups of bars in one plot; the report says how many were left out.
MAX_GROUPS = 24


@dataclass(frozen=True)
class Plot:
    """A titled figure, or the reason why there is none. `name` is fit for a file name and for an id."""

    name: str
    title: str
    caption: str
    figure: Figure | None = None
    reason: str = ""

    def to_png(self) -> bytes:
        """The picture."""
        assert self.figure is not None
        return style.to_png(self.figure)


def slug(text: str) -> str:
    """`text` as part of a file name and of an id, at most 40 characters."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40]


def left_out(name: str, title: str, reason: str) -> Plot:
    """A plot that would be empty, with the reason."""
    return Plot(name, title, "", None, reason)


def build_plots(data: RunData) -> list[Plot]:
    """All plots of a run that compares backends, drawn or with the reason why not."""
    if not len(data.done):
        reason = "no item of the run has succeeded" if len(data.items) else "the run has no items yet"
        return [left_out("backends", "Comparison of backends", reason)]
    with style.drawing():
        look = style.looks(data.backend_of)
        return [
            mask_ecdf(data, look),
            *compile_bars(data, look),
            memory_bars(data, look),
            cost_against_states(data, look),
            cost_against_vocabulary(data, look),
        ]


def mask_ecdf(data: RunData, look: dict[str, style.Look]) -> Plot:
    """ECDFs of mask time, one panel per tokenizer, one curve per label."""
    import numpy as np

    name, title = "mask_ecdf", "Mask time: share of masks that took at most so long"
    samples = data.samples_of("mask")
    samples = samples[samples["ns"] > 0]
    if samples.empty:
        return left_out(name, title, "no mask times were measured")
    tokenizers = [tokenizer for tokenizer in data.tokenizers if (samples["tokenizer"] == tokenizer).any()]
    figure, panels = style.new_figure(len(tokenizers), 2.3, sharex=True)
    # enough points for a smooth curve, most of them in the tail, however many samples there are
    shares = np.unique(np.concatenate([np.linspace(0, 0.99, 150), np.linspace(0.99, 1, 51)]))
    for axes, tokenizer in zip(panels, tokenizers, strict=True):
        mine = samples[samples["tokenizer"] == tokenizer]
        for label, group in mine.groupby("label", sort=False):
            times = np.quantile(group["ns"].to_numpy() * 1e-9, shares, method="inverted_cdf")
            axes.plot(times, shares, drawstyle="steps-post", **style.curve(look[str(label)]))
        size = mine["vocab_size"].iloc[0]
        axes.set_title(style.drawable(tokenizer, 40) + ("" if np.isnan(size) else f" ({size:,.0f} tokens)"))
        axes.set(ylabel="share of masks", ylim=(0, 1.03))
    style.set_axis(panels[-1], "x", METRICS["mask_p50"], "time of one mask (left is better)")
    style.legend(figure, _present(data, samples["label"]), look, "curves")
    caption = f"{len(samples):,} mask samples of the items that succeeded, pooled over constraints and workloads."
    return Plot(name, title, caption, figure)


def compile_bars(data: RunData, look: dict[str, style.Look]) -> Iterator[Plot]:
    """Compile time per constraint, one plot per tokenizer, with each label's ratio to the reference."""
    metric = METRICS["compile"]
    values = data.case_values(metric).groupby(level=["tokenizer", "constraint"], sort=False).median()
    for place, tokenizer in enumerate(data.tokenizers, 1):
        name, title = f"compile_{place}_{slug(tokenizer)}", f"Compile time by constraint: {tokenizer}"
        mine = values[values.index.get_level_values("tokenizer") == tokenizer].droplevel("tokenizer")
        if not mine.notna().to_numpy().any():
            yield left_out(name, title, "no compile times were measured with this tokenizer")
            continue
        shown = mine.head(MAX_GROUPS)
        notes: dict[str, list[str]] = {}
        for label in data.labels if data.reference is not None else ():
            ratios = [ratio_of_row(row, metric, label, data.reference) for _, row in shown.iterrows()]
            notes[label] = [f"{short_factor(ratio.median)}x" if ratio else "" for ratio in ratios]
        figure = grouped_bars(shown, metric, look, notes)
        caption = f"The number at a bar is its ratio to {data.reference}; above 1 is faster." if notes else ""
        if shown.isna().to_numpy().any():
            caption += " A missing bar has no result: see the failures."
        if len(mine) > len(shown):
            caption += f" The first {len(shown)} of {len(mine)} constraints; all are in the table."
        yield Plot(name, title, caption.strip(), figure)


def grouped_bars(
    values: pd.DataFrame, metric: Metric, look: dict[str, style.Look], notes: dict[str, list[str]]
) -> Figure:
    """Horizontal bars: a group per row of `values`, a bar per column, with a note at each bar's end."""
    import numpy as np

    labels = [str(label) for label in values.columns]
    step = len(labels) + 1.2
    thickness = 0.135 if notes else 0.1
    figure, (axes,) = style.new_figure(1, max(1.4, thickness * len(values) * step + 0.3))
    tops = np.arange(len(values)) * step
    for i, label in enumerate(labels):
        widths = values[label].to_numpy(dtype=float)
        known = np.isfinite(widths) & (widths > 0)
        axes.barh(tops[known] + i, widths[known], height=0.86, **style.bars(look[label]))
        for row in np.flatnonzero(known):
            style.annotate_end(axes, widths[row], tops[row] + i, notes[label][row] if label in notes else "", 8)
    axes.set_yticks(tops + (len(labels) - 1) / 2, [style.drawable(str(name), 18) for name in values.index])
    axes.set_ylim(tops[-1] + len(labels), -1)
    style.bare_rows(axes)
    axes.set_xscale("log")
    axes.margins(x=0.12)
    style.set_axis(axes, "x", metric)
    style.legend(figure, labels, look, "bars")
    return figure


def memory_bars(data: RunData, look: dict[str, style.Look]) -> Plot:
    """Peak and retained memory per label: the median over cases, with a line from the lowest to the highest."""
    import numpy as np

    name, title = "memory", "Memory of a compiled constraint"
    found = [(METRICS[which], data.case_values(METRICS[which])) for which in ("memory_peak", "memory_retained")]
    found = [(metric, values) for metric, values in found if values.notna().to_numpy().any()]
    if not found:
        return left_out(name, title, "memory was not measured")
    figure, panels = style.new_figure(len(found), 0.5 + 0.27 * len(data.labels))
    for axes, (metric, values) in zip(panels, found, strict=True):
        known = values.to_numpy()[np.isfinite(values.to_numpy())]
        # a logarithmic axis only where every value can stand on it and it is needed
        log = bool(known.min() > 0 and known.max() > 30 * known.min())
        if log:
            axes.set_xscale("log")
        for place, label in enumerate(data.labels):
            column = values[label].dropna()
            if len(column):
                axes.barh(place, column.median(), height=0.7, **style.bars(look[label]))
                style.draw_range(axes, column.min(), column.max(), place)
                style.annotate_end(axes, column.max(), place, metric.format(column.median()))
        axes.set_yticks(range(len(data.labels)), [style.drawable(label) for label in data.labels])
        axes.set_ylim(len(data.labels) - 0.4, -0.6)
        style.bare_rows(axes)
        axes.margins(x=0.2)
        style.set_axis(axes, "x", metric, log=log)
    return Plot(name, title, "Bars and numbers: median over cases; lines: from the lowest to the highest case.", figure)


def cost_against_states(data: RunData, look: dict[str, style.Look]) -> Plot:
    """Compile time and median mask time against the number of states, one point per case and label."""
    name, title = "cost_states", "Cost against DFA states"
    states = data.case_values(METRICS["states"]).min(axis=1).dropna()
    if states.nunique() < 2:
        return left_out(name, title, "fewer than two cases with different numbers of states")
    shown = _costs(data)
    if not shown:
        return left_out(name, title, "neither compile times nor mask times were measured")
    figure, panels = style.new_figure(len(shown), 2.4, sharex=True)
    for axes, (metric, values) in zip(panels, shown, strict=True):
        for label in data.labels:
            column = _positive(values[label])
            column = column[column.index.isin(states.index)]
            axes.scatter(states.loc[column.index], column, alpha=0.8, **style.points(look[label]))
        axes.set_title(metric.axis_label)
        style.set_axis(axes, "y", metric, "")
    style.set_axis(panels[-1], "x", METRICS["states"], "states (the fewest that any backend reports)")
    style.legend(figure, data.labels, look, "points")
    return Plot(name, title, "One point per case and backend; both axes are logarithmic.", figure)


def cost_against_vocabulary(data: RunData, look: dict[str, style.Look]) -> Plot:
    """Compile time and median mask time against the vocabulary size: cases as points, medians as lines."""
    name, title = "cost_vocabulary", "Cost against vocabulary size"
    sizes = data.done["vocab_size"].nunique()
    if sizes < 2:
        return left_out(name, title, f"the run has {sizes} vocabulary size{'s' if sizes != 1 else ''}; this needs two")
    shown = _costs(data)
    if not shown:
        return left_out(name, title, "neither compile times nor mask times were measured")
    size_of = dict(zip(data.done["tokenizer"], data.done["vocab_size"], strict=True))
    figure, panels = style.new_figure(len(shown), 2.4, sharex=True)
    for axes, (metric, values) in zip(panels, shown, strict=True):
        for label in data.labels:
            column = _positive(values[label])
            x = column.index.get_level_values("tokenizer").map(size_of)
            axes.scatter(x, column, alpha=0.35, **style.points(look[label]))
            middle = column.groupby(x).median()
            axes.plot(middle.index, middle.to_numpy(), **style.curve(look[label]))
        axes.set_title(metric.axis_label)
        style.set_axis(axes, "y", metric, "")
    style.set_axis(panels[-1], "x", METRICS["vocab_size"], "vocabulary size (tokens)")
    style.legend(figure, data.labels, look, "curves")
    caption = "Points: cases; lines: their median. Other constraints may have succeeded at another size."
    return Plot(name, title, caption, figure)


def _costs(data: RunData) -> list[tuple[Metric, pd.DataFrame]]:
    found = [(METRICS[cost], data.case_values(METRICS[cost])) for cost in ("compile", "mask_p50")]
    return [(metric, values) for metric, values in found if (values > 0).to_numpy().any()]


def _positive(column: pd.Series[float]) -> pd.Series[float]:
    """The values that can stand on a logarithmic axis."""
    return column[column > 0]


def _present(data: RunData, labels: pd.Series[str]) -> list[str]:
    found = set(labels)
    return [label for label in data.labels if label in found]
