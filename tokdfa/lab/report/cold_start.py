"""Reports on runs of kind ``cold_start``: what a new process pays before its first mask, phase by phase.

A *case* is a tokenizer and a constraint. Times are medians over processes of their own. Of the phases only the last two
before the mask are the engine's own doing: its code, and what it makes for a vocabulary and a constraint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.lab.declare.cells import Table, number_cell, readable, text_cell
from tokdfa.lab.report import style
from tokdfa.lab.report.metrics import Metric, format_seconds
from tokdfa.lab.report.plots import Plot, left_out
from tokdfa.lab.report.tables import failure_counts

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.lab.report.data import RunData

CASE = ["tokenizer", "constraint"]
#: Column -> the words of a phase, in the order of a process's life.
BEFORE = {
    "ns_python": "Python",
    "ns_import": "import",
    "ns_tokenizer": "tokenizer and trie",
    "ns_code": "the engine's code",
    "ns_first": "compile, tables, first mask",
}
AGAIN, UNTIL_FIRST = "ns_again", "ns_until_first"
TIME = Metric("start_time", "time", "time of a phase", "s", "results", "ns_first", factor=1e-9)


def measured(data: RunData) -> pd.DataFrame:
    """The rows that succeeded, their times in seconds."""
    import pandas as pd

    rows = data.results[data.results["status"] == "ok"].reset_index(drop=True)
    columns = [*BEFORE, AGAIN, UNTIL_FIRST]
    return rows.assign(**{name: pd.to_numeric(rows[name]).astype("float64") * TIME.factor for name in columns})


def build_tables(data: RunData) -> list[Table]:
    """The phases of each start in each case, and what failed."""
    return [phases(data), broken(data)]


def phases(data: RunData) -> Table:
    """One row per case and start, one column per phase."""
    rows = []
    for _, group in measured(data).groupby(CASE, sort=False):
        for _, one in group.iterrows():
            cells = [
                number_cell(TIME, one[name], one[name] == group[name].min()) for name in (*BEFORE, UNTIL_FIRST, AGAIN)
            ]
            rows.append((*(text_cell(one[name]) for name in [*CASE, "start"]), *cells))
    columns = (*CASE, "start", *BEFORE.values(), "all until the first mask", "the same constraint again")
    note = "Medians over processes of their own, the least of a case bold. Kernels come from numba's cache."
    brief = (*CASE, "start", BEFORE["ns_code"], BEFORE["ns_first"], columns[-2], columns[-1])
    return Table("cold_start", "From nothing to the first mask", note, columns, tuple(rows), brief)


def broken(data: RunData) -> Table:
    """Every start that failed, with the reason."""
    failed = data.results[data.results["status"] != "ok"]
    rows = [
        (
            *(text_cell(one[name]) for name in [*CASE, "start"]),
            text_cell(readable(one["status"])),
            text_cell(one["message"]),
        )
        for _, one in failed.iterrows()
    ]
    return Table(
        "broken", "Failed starts", "Starts without a result.", (*CASE, "start", "status", "reason"), tuple(rows)
    )


def build_plots(data: RunData) -> list[Plot]:
    """The phases of each start on top of each other, a panel per case."""
    name, title = "cold_start", "From nothing to the first mask"
    rows = measured(data) if len(data.results) else data.results
    if rows.empty:
        return [left_out(name, title, "no start has a result to show")]
    look = style.looks_in_order(list(BEFORE.values()))
    cases = list(rows.groupby(CASE, sort=False))
    with style.drawing():
        figure, panels = style.new_figure(len(cases), 0.5 + 0.24 * max(len(group) for _, group in cases), sharex=True)
        for axes, (case, group) in zip(panels, cases, strict=True):
            left = group[UNTIL_FIRST] * 0
            for column, words in BEFORE.items():
                bars = {**style.bars(look[words]), "linewidth": 0}
                axes.barh(range(len(group)), group[column], left=left, height=0.72, **bars)
                left = left + group[column]
            for place, (end, seconds) in enumerate(zip(left, group[UNTIL_FIRST], strict=True)):
                style.annotate_end(axes, end, place, format_seconds(seconds), 8)
            axes.set_yticks(range(len(group)), [style.drawable(str(start), 24) for start in group["start"]])
            axes.set_ylim(len(group) - 0.4, -0.6)
            axes.set_title(", ".join(map(str, case)))
            style.bare_rows(axes)
            axes.margins(x=0.16)
        style.set_axis(panels[-1], "x", TIME, "seconds until the first mask (lower is better)")
        style.legend(figure, list(look), look, "bars")
    return [Plot(name, title, "Medians over processes of their own.", figure)]


def headlines(data: RunData) -> list[str]:
    """What the engines' own phases take in each case, and what failed."""
    if data.results.empty:
        return ["The run has no results yet."]
    sentences = []
    for case, group in measured(data).groupby(CASE, sort=False):
        parts = [
            f"{one['start']} {format_seconds(one['ns_first'])} (code {format_seconds(one['ns_code'])}, the same "
            f"constraint again {format_seconds(one[AGAIN])})"
            for _, one in group.sort_values("ns_first").iterrows()
        ]
        sentences.append(f"{', '.join(map(str, case))}: compiling, tables and the first mask: {'; '.join(parts)}.")
    until = measured(data)[UNTIL_FIRST]
    if len(until):
        sentences.append(
            "From asking for a process to its first mask: "
            f"{format_seconds(until.min())} to {format_seconds(until.max())}."
        )
    counted = failure_counts(data.results)
    return [*sentences, *([f"Of {len(data.results)} starts these failed: {counted}."] if counted else [])]
