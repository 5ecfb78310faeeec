"""The plots of ``maskbench``: outcomes, and the distributions of TBM and TTFM from the median to the far tail.

A tail plot has the share of samples that took longer than so long, both axes logarithmic: the curve further to the left
and further down is better, and one in ten thousand is as easy to read as one in two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.lab.report import style
from tokdfa.lab.report.maskbench_data import (
    OUTCOMES,
    TBM,
    TTFM,
    compiles,
    engines,
    fields,
    measured,
    outcome_counts,
    samples,
)
from tokdfa.lab.report.metrics import Metric
from tokdfa.lab.report.plots import Plot, left_out

if TYPE_CHECKING:
    from tokdfa.lab.report.data import RunData
    from tokdfa.lab.report.maskbench_data import Seconds

CASES = Metric("cases", "cases", "cases of the benchmark", "", "results", "case", better="neither", scale="linear")
SHARE = Metric("share", "share", "share of samples", "share", "results", "case", better="neither")
#: Points of a curve: most of them in the tail.
SHARES = np.unique(np.concatenate([np.linspace(0, 1, 101), 1 - np.logspace(0, -6, 300)]))


def build_plots(data: RunData) -> list[Plot]:
    """Outcomes by engine, and the distributions of both times."""
    if data.results.empty:
        return [left_out("maskbench", "MaskBench", "the run has no results yet")]
    rows = measured(data)
    look = style.looks(dict(zip(rows["engine"].astype(str), rows["backend"].astype(str), strict=True)))
    tbm = {name: samples(rows[rows["engine"] == name], "tbm") for name in engines(data)}
    ttfm = {name: compiles(rows[rows["engine"] == name]) for name in engines(data)}
    with style.drawing():
        return [
            outcomes(data),
            curves("tbm", "TBM: mask and commit of a token", TBM, tbm, look, "tokens"),
            curves("ttfm", "TTFM: compile and first mask", TTFM, ttfm, look, "schemas"),
        ]


def outcomes(data: RunData) -> Plot:
    """A stacked bar per engine that had all cases: how many end in each outcome."""
    field = fields(data)[0]
    counts = {engine: outcome_counts(field.of(engine)) for engine in field.engines}
    known = [one for one in OUTCOMES if any(mine[one] for mine in counts.values())]
    look = style.looks_in_order(list(OUTCOMES.values()))
    figure, (axes,) = style.new_figure(1, 0.5 + 0.34 * len(counts))
    for place, mine in enumerate(counts.values()):
        left = 0
        for one in known:
            axes.barh(place, mine[one], left=left, height=0.7, **style.bars(look[OUTCOMES[one]]))
            left += mine[one]
    axes.set_yticks(range(len(counts)), [style.drawable(name, 26) for name in counts])
    axes.set_ylim(len(counts) - 0.4, -0.6)
    style.bare_rows(axes)
    style.set_axis(axes, "x", CASES)
    style.legend(figure, [OUTCOMES[one] for one in known], look, "bars")
    return Plot("outcomes", "Outcomes by engine", f"The {field.cases:,} cases that these engines all had.", figure)


def curves(
    name: str, title: str, metric: Metric, values: dict[str, Seconds], look: dict[str, style.Look], of: str
) -> Plot:
    """Two panels: the share that took at most so long, and the share that took longer, both axes logarithmic."""
    known = {engine: mine[mine > 0] for engine, mine in values.items()}
    known = {engine: mine for engine, mine in known.items() if len(mine)}
    if not known:
        return left_out(name, title, "no engine has a time")
    figure, (ecdf, tail) = style.new_figure(2, 2.3, sharex=True)
    for engine, mine in known.items():
        drawn = SHARES[1 - 1 / len(mine) >= SHARES]
        times = np.quantile(mine, drawn, method="inverted_cdf")
        line: dict[str, Any] = {"drawstyle": "steps-post", **style.curve(look[engine])}
        ecdf.plot([*times, mine.max()], [*drawn, 1.0], **line)
        tail.plot(times, 1 - drawn, **line)
    ecdf.set(ylabel=f"share of {of}, at most", ylim=(0, 1.03))
    style.set_axis(tail, "y", SHARE, f"share of {of}, longer")
    style.set_axis(ecdf, "x", metric, "")
    style.set_axis(tail, "x", metric, f"{metric.title} (left is better)")
    style.legend(figure, list(known), look, "curves")
    caption = "Of the cases that each engine judged, the refused ones left out. Below: the share that took longer."
    return Plot(name, title, caption, figure)
