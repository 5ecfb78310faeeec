"""A comparison of two runs as a page (HTML, Markdown) and on a terminal.

Its tables are declared like those of any kind, over the frames ``engines``, ``outcomes`` and ``one_sided``.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from tokdfa.lab.declare import Bars, Listing, Results, Stat, Summary
from tokdfa.lab.declare.columns import Column, short_factor, text
from tokdfa.lab.report.page import Page, readable_time
from tokdfa.lab.report.tables import environment_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tokdfa.lab.report.compare import Comparison

#: So many examples of cases are in a cell; the frames have them all.
EXAMPLES = 3

_COLUMNS = (
    *(text("engine"), text("head", "measure"), Column("count", "cases"), text("what")),
    *(text("shown_before", "before"), text("shown_after", "after"), text("verdict", "beyond noise")),
    *(Column("raw", "ratio", "ratio"), Column("ratio", "against controls", "ratio"), Column("floor", unit="ratio")),
    *(Column("places", "cases"), text("where"), Column("before", "only before"), Column("after", "only after")),
)
TABLES = (
    Summary(
        "engines",
        "Engines, over all cases",
        "Medians over the cases that both runs have. The ratio is the median over the cases of after over before, with "
        "its 95% bootstrap interval over the cases; above 1 is slower or more. Beyond noise: discovered among all "
        "comparisons of the table, with 1 outside its interval, and beyond the floor, which the controls set.",
        by=("engine", "head"),
        values=(
            *("shown_before", "shown_after", "count", "raw"),
            *(Stat("ratio", ends=("low", "high")), "floor", "verdict"),
        ),
        frame="engines",
        brief=("engine", "measure", "before", "after", "against controls", "beyond noise"),
    ),
    Listing(
        "outcomes",
        "Outcomes that have changed",
        "What is stored of how something ended, where both runs have it; equal changes of an engine share a row.",
        shown=("engine", "what", "shown_before", "shown_after", "places", "where"),
        frame="outcomes",
    ),
    Listing(
        "one_sided",
        "What only one of the runs has",
        "Values of an engine, a case and a measure; what only one run has takes part in no ratio.",
        shown=("engine", "before", "after", "where"),
        frame="one_sided",
    ),
)
CHART = Bars(
    "ratios",
    "After over before, against the controls",
    "The median over cases of each engine, for those with six cases in both runs; the interval is under the pointer.",
    x="ratio",
    rows="engine",
    by="verdict",
    panels="head",
    hover=("engine", "said", "count"),
    frame="engines",
    where="low.notna()",
)


def page(comparison: Comparison, folders: tuple[Path, Path]) -> Page:
    """The comparison as a page; `folders` are those of the runs, for the command that repeats it."""
    runs = (comparison.before, comparison.after)
    names = list(dict.fromkeys(run.name for run in runs))
    started = [readable_time(run.provenance.get("started")) or "an unknown time" for run in runs]
    commits = [str((run.provenance.get("git") or {}).get("commit") or "")[:10] for run in runs]
    marks = commits if all(commits) and commits[0] != commits[1] else started
    arguments = [*map(str, folders), *(part for name in comparison.controls for part in ("--control", name))]
    results = _results(comparison)
    tables = [*(table.build(results) for table in TABLES), environment_table(runs, ("before", "after"))]
    return Page(
        name=" and ".join(names) if len(names) > 1 else f"{names[0]}, before and after",
        question=f"What has changed from {' to '.join(marks)}?",
        made=" and ".join(started),
        headlines=headlines(comparison),
        tables=[table for table in tables if table.rows],
        plots=[CHART.build(results)],
        experiment="",
        command=shlex.join(["tokdfa", "compare", *arguments]),
    )


def _results(comparison: Comparison) -> Results:
    """The frames of a comparison, ready for the declarations."""
    outcomes, alone = comparison.outcomes, comparison.one_sided
    frames = {
        "engines": comparison.engines,
        "outcomes": outcomes.assign(
            shown_before=outcomes["before"],
            shown_after=outcomes["after"],
            places=outcomes["cases"].map(len),
            where=outcomes["cases"].map(_examples),
        ),
        "one_sided": alone.assign(where=alone["cases"].map(_examples)),
    }
    return Results(frames, {column.name: column for column in _COLUMNS})


def headlines(comparison: Comparison) -> list[str]:
    """What has changed, in sentences: engines, controls, outcomes and rows of one run; the tables have the rest."""
    return [*_of_engines(comparison), _of_controls(comparison), _of_outcomes(comparison)]


def _of_engines(comparison: Comparison) -> list[str]:
    frame = comparison.engines
    told, known = frame[frame["told"]], int(frame["chance"].notna().sum())
    sentences = []
    for engine, mine in told.groupby("engine", sort=False):
        said = ", ".join(mine["head"] + " " + mine["said"])
        sentences.append(f"{engine}, median of {mine['count'].max():,} cases (95% interval): {said}.")
    beyond = f"{len(told):,} of" if len(told) else "none of"
    return [*sentences, f"Over all cases, {beyond} {known:,} comparisons of an engine's medians are beyond noise."]


def _of_controls(comparison: Comparison) -> str:
    if not comparison.controls:
        return (
            "No engine is known to be the same in both runs, so what the machine did cannot be told from what the code "
            "did: name one that is the same as a control, or run both again, by turns."
        )
    frame = comparison.engines
    shifts = frame.loc[frame["control"] & (frame["unit"] == "s"), "raw"]
    names = ", ".join(comparison.controls)
    if shifts.empty:
        return f"Controls, the same in both runs: {names}."
    low, high = map(short_factor, (shifts.min(), shifts.max()))
    return (
        f"The controls ({names}), the same in both runs, took {low} to {high} times as long in the later one. Times "
        "are compared against theirs on the same case, and only what is beyond their own spread is told."
    )


def _of_outcomes(comparison: Comparison) -> str:
    changed = sum(map(len, comparison.outcomes["cases"]))
    said = f"{changed:,} cases have another outcome." if changed else "All outcomes are the same."
    for side, name in (("earlier", "before"), ("later", "after")):
        if count := sum(comparison.one_sided[name]):
            said += f" {count:,} values of an engine on a case are in the {side} run alone."
    return said


def _examples(parts: Sequence[str]) -> str:
    more = f"; and {len(parts) - EXAMPLES:,} more" if len(parts) > EXAMPLES else ""
    return "; ".join(parts[:EXAMPLES]) + more
