"""The plots that compare backends. Each is drawn from the run's data alone, or says why there is nothing to draw.

ECDF: the share of masks that took at most so long; a curve further to the left is better, and its upper end shows the
slow masks that a median hides. Bars have a logarithmic axis where the values span decades, so compare their ends, not
their lengths; the printed ratios are to the run's reference, above 1 is better.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tokdfa.report import style
from tokdfa.report.data import paired_ratio
from tokdfa.report.metrics import METRICS, significant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd
    from matplotlib.figure import Figure

    from tokdfa.report.data import RunData
    from tokdfa.report.metrics import Metric

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


def slug(text: str) -> str:
    """`text` as part of a file name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"


def build_plots(data: RunData) -> list[Plot]:
    """All plots of a run that compares backends, drawn or with the reason why not."""
    if not len(data.done):
        reason = "no item of the run has succeeded" if len(data.items) else "the run has no items yet"
        return [Plot("backends", "Comparison of backends", "", reason=reason)]
    with style.drawing():
        look = style.looks(data.backend_of)
        return [
            mask_ecdf(data, look),
            *compile_bars(data, look),
            memory_bars(data, look),
            cost_against(data, look, "states"),
            cost_against(data, look, "vocab_size"),
        ]


def mask_ecdf(data: RunData, look: dict[str, style.Look]) -> Plot:
    """ECDFs of mask time, one panel per tokenizer, one curve per label."""
    import numpy as np

    metric = METRICS["mask_p50"]
    plot = Plot("mask_ecdf", "Mask time: share of masks that took at most so long", "")
    samples = data.samples_of("mask")
    samples = samples[samples["ns"] > 0]
    if samples.empty:
        return _without(plot, "no mask times were measured")
    tokenizers = [name for name in data.tokenizers if (samples["tokenizer"] == name).any()]
    figure, panels = style.new_figure(len(tokenizers), 2.5, sharex=True)
    shares = np.unique(np.concatenate([np.linspace(0, 0.99, 200), np.linspace(0.99, 1, 101)]))
    for axes, tokenizer in zip(panels, tokenizers, strict=True):
        mine = samples[samples["tokenizer"] == tokenizer]
        for label, group in mine.groupby("label", sort=False):
            times = np.quantile(group["ns"].to_numpy() * 1e-9, shares, method="inverted_cdf")
            axes.plot(times, shares, color=look[label].colour, linestyle=look[label].dash, drawstyle="steps-post")
        size = mine["vocab_size"].iloc[0]
        axes.set_title(style.drawable(tokenizer, 40) + ("" if np.isnan(size) else f" ({size:,.0f} tokens)"))
        axes.set(ylabel="share of masks", ylim=(0, 1.02))
    style.set_axis(panels[-1].xaxis, metric, "time of one mask (left is better)")
    _curve_legend(figure, _present(data, samples["label"]), look)
    count = len(samples)
    caption = f"{count:,} mask samples of the items that succeeded, pooled over constraints and workloads."
    return _drawn(plot, figure, caption)


def compile_bars(data: RunData, look: dict[str, style.Look]) -> Iterator[Plot]:
    """Compile time per constraint, one plot per tokenizer, with each label's ratio to the reference."""
    metric = METRICS["compile"]
    values = data.case_values(metric).groupby(level=["tokenizer", "constraint"], sort=False).median()
    for tokenizer in data.tokenizers:
        title = f"Compile time by constraint: {tokenizer}"
        plot = Plot(f"compile_{slug(tokenizer)}", title, "")
        if tokenizer not in values.index.get_level_values(0) or not values.loc[tokenizer].notna().to_numpy().any():
            yield _without(plot, "no compile times were measured with this tokenizer")
            continue
        mine = values.loc[tokenizer]
        mine = mine.reindex([name for name in data.constraints if name in mine.index])
        shown = mine.head(MAX_GROUPS)
        ratios = {
            label: [paired_ratio(row.to_frame().T, metric, label, data.reference) for _, row in shown.iterrows()]
            for label in data.labels
            if data.reference is not None and label != data.reference
        }
        notes = {label: [f"{_short(r.median)}x" if r else "" for r in found] for label, found in ratios.items()}
        figure = grouped_bars(shown, metric, data.labels, look, notes)
        caption = f"The number at a bar is its ratio to {data.reference}; above 1 is faster. " if notes else ""
        if shown.isna().to_numpy().any():
            caption += "A missing bar is a failure, listed below. "
        if len(mine) > len(shown):
            caption += f"The first {len(shown)} of {len(mine)} constraints; all are in the table. "
        yield _drawn(plot, figure, caption.strip())


def grouped_bars(
    values: pd.DataFrame,
    metric: Metric,
    labels: Sequence[str],
    look: dict[str, style.Look],
    notes: dict[str, list[str]],
) -> Figure:
    """Horizontal bars: one group per row of `values`, one bar per label, with an optional note at each bar's end."""
    import numpy as np

    height = 0.14 * len(values) * (len(labels) + 1.2) + 0.2
    figure, (axes,) = style.new_figure(1, max(1.4, height))
    places = np.arange(len(values)) * (len(labels) + 1.2)
    for i, label in enumerate(labels):
        widths = values[label].to_numpy(dtype=float)
        known = np.isfinite(widths) & (widths > 0)
        axes.barh(places[known] + i, widths[known], height=0.86, **style.bar_style(look[label]))
        for place, width, note in zip(places + i, widths, notes.get(label, [""] * len(values)), strict=True):
            if np.isfinite(width):
                offset = {"xytext": (3, 0), "textcoords": "offset points"}
                axes.annotate(note, (width, place), va="center", fontsize=7.5, color=style.INK, **offset)
    axes.set_yticks(places + (len(labels) - 1) / 2, [style.drawable(str(name), 18) for name in values.index])
    axes.set_ylim(places[-1] + len(labels), -1)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.14)
    style.set_axis(axes.xaxis, metric)
    style.legend(figure, labels, look, bars=True)
    return figure


def memory_bars(data: RunData, look: dict[str, style.Look]) -> Plot:
    """Peak and retained memory per label: the median over cases, with a line from the lowest to the highest."""
    import numpy as np

    plot = Plot("memory", "Memory of a compiled constraint", "")
    found = {name: data.case_values(METRICS[name]) for name in ("memory_peak", "memory_retained")}
    found = {name: values for name, values in found.items() if values.notna().to_numpy().any()}
    if not found:
        return _without(plot, "memory was not measured")
    figure, panels = style.new_figure(len(found), 0.4 + 0.27 * len(data.labels))
    for axes, (name, values) in zip(panels, found.items(), strict=True):
        metric = METRICS[name]
        for place, label in enumerate(data.labels):
            column = values[label].dropna()
            if column.empty:
                continue
            middle, low, high = column.median(), column.min(), column.max()
            axes.barh(place, middle, height=0.7, **style.bar_style(look[label]))
            axes.plot([low, high], [place, place], color=style.INK, linewidth=1)
            offset = {"xytext": (4, 0), "textcoords": "offset points"}
            axes.annotate(metric.format(middle), (max(high, middle), place), va="center", fontsize=8.5, **offset)
        axes.set_yticks(range(len(data.labels)), [style.drawable(label) for label in data.labels])
        axes.set_ylim(len(data.labels) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.margins(x=0.2)
        positive = values.to_numpy()[values.to_numpy() > 0]
        # a logarithmic axis only if all values can stand on it and they need it
        if len(positive) == np.isfinite(values.to_numpy()).sum() and positive.max() > 30 * positive.min():
            style.set_axis(axes.xaxis, metric)
        else:
            style.set_linear_axis(axes.xaxis, metric)
    return _drawn(plot, figure, "Bars: median over cases; lines: from the lowest to the highest case.")


def cost_against(data: RunData, look: dict[str, style.Look], name: str) -> Plot:
    """Compile time and mask time against the states of the DFA or the vocabulary size, one point per case."""
    against = METRICS[name]
    title = {"states": "Cost against DFA states", "vocab_size": "Cost against vocabulary size"}[name]
    plot = Plot(f"cost_{name}", title, "")
    places = _smallest_states(data) if name == "states" else _vocabulary_sizes(data)
    if places.nunique() < 2:
        found = "no backend reported its states" if places.empty else f"all cases have the same {against.title}"
        return _without(plot, found)
    shown = [(METRICS[cost], data.case_values(METRICS[cost])) for cost in ("compile", "mask_p50")]
    shown = [(metric, values) for metric, values in shown if values.notna().to_numpy().any()]
    if not shown:
        return _without(plot, "neither compile times nor mask times were measured")
    figure, panels = style.new_figure(len(shown), 2.5, sharex=True)
    for axes, (metric, values) in zip(panels, shown, strict=True):
        for label in data.labels:
            points = values[label].dropna()
            points = points[points.index.isin(places.index) & (points > 0)]
            x = places.loc[points.index]
            faint = {"alpha": 0.35, "linewidths": 0} if name == "vocab_size" else {"alpha": 0.85, "linewidths": 0}
            axes.scatter(x, points, s=22, color=look[label].colour, marker=look[label].marker, **faint)
            middle = points.groupby(x).median()
            if name == "vocab_size":
                axes.plot(middle.index, middle, color=look[label].colour, dashes=look[label].dash, **_line(look[label]))
        style.set_axis(axes.yaxis, metric, metric.title)
        axes.set_title("Lower is better")
    style.set_axis(panels[-1].xaxis, against, "DFA states (the fewest that any backend reports)" if name == "states" else None)
    style.legend(figure, data.labels, look)
    return _drawn(plot, figure, "One point per case; both axes are logarithmic.")
