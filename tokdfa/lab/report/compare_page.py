"""A comparison of two runs as a page (HTML, Markdown), on a terminal, and as JSON.

Changes become the rows of two frames, ``engines`` and ``cases``; their tables are declared like those of any kind.
"""

from __future__ import annotations

import json
import math
import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare import Listing, Results, Stat, Summary
from tokdfa.lab.declare.charts import MOST_ROWS, Chart, Panel
from tokdfa.lab.declare.columns import Column, Ratio, short_factor, text
from tokdfa.lab.declare.look import MUTED, PALETTE
from tokdfa.lab.declare.vega import printable
from tokdfa.lab.report.compare_statistics import FALSE_SHARE
from tokdfa.lab.report.page import Page, readable_time
from tokdfa.lab.report.tables import environment_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pandas as pd

    from tokdfa.lab.declare.cells import Table
    from tokdfa.lab.report.compare import Change, Comparison

#: At most so many rows of single cases, examples of cases in a cell, and panels of the chart; JSON has them all.
MAX_ROWS, EXAMPLES, MAX_PANELS = 200, 3, 5

_COLUMNS = (
    *(text("engine"), text("case"), text("head", "measure"), Column("count", "cases or samples"), text("what")),
    *(text("shown_before", "before"), text("shown_after", "after"), text("verdict", "beyond noise")),
    *(Column("raw", "ratio", "ratio"), Column("ratio", "against controls", "ratio"), Column("floor", unit="ratio")),
    *(Column("places", "cases"), text("where"), Column("before", "only before"), Column("after", "only after")),
)
_NUMBERS = (
    *("shown_before", "shown_after", "count"),
    *(Stat("raw", ends=("raw_low", "raw_high")), Stat("ratio", ends=("low", "high"))),
)
TABLES = (
    Summary(
        "engines",
        "Engines, over all cases",
        "Medians over the cases that both runs have. The ratio is the median over the cases of after over before, with "
        "its 95% bootstrap interval over the cases; above 1 is slower or more. Beyond noise: discovered among all "
        "comparisons of the table, with 1 outside its interval, and beyond the floor, which the controls set.",
        by=("engine", "head"),
        values=(*_NUMBERS, "floor", "verdict"),
        frame="engines",
        brief=("engine", "measure", "before", "after", "against controls", "beyond noise"),
    ),
    Summary(
        "cases",
        "Cases that are beyond noise",
        "Medians of the samples of one case, and their ratio, after over before, with its 95% bootstrap interval over "
        "the samples; against the controls it is wider by their own spread. The greatest first; JSON has them all.",
        by=("engine", "case", "head"),
        values=(*_NUMBERS, "verdict"),
        frame="cases",
        brief=("engine", "case", "measure", "before", "after", "against controls", "beyond noise"),
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
        "Series of an engine, a case and a measure; what only one run has takes part in no ratio.",
        shown=("engine", "before", "after", "where"),
        frame="one_sided",
    ),
)


def page(comparison: Comparison, folders: tuple[Path, Path]) -> Page:
    """The comparison as a page; `folders` are those of the runs, for the command that repeats it."""
    runs = (comparison.before, comparison.after)
    names = list(dict.fromkeys(run.name for run in runs))
    started = [readable_time(run.provenance.get("started")) or "an unknown time" for run in runs]
    commits = [str((run.provenance.get("git") or {}).get("commit") or "")[:10] for run in runs]
    marks = commits if all(commits) and commits[0] != commits[1] else started
    arguments = [*map(str, folders), *(part for name in comparison.controls for part in ("--control", name))]
    return Page(
        name=" and ".join(names) if len(names) > 1 else f"{names[0]}, before and after",
        question=f"What has changed from {' to '.join(marks)}?",
        made=" and ".join(started),
        headlines=headlines(comparison),
        tables=build_tables(comparison),
        plots=[ratios_chart(comparison)],
        experiment="",
        command=shlex.join(["tokdfa", "compare", *arguments]),
    )


def headlines(comparison: Comparison) -> list[str]:
    """What has changed, in sentences: engines, cases, outcomes, rows, environment, and how far the numbers hold."""
    return [
        *_of_engines(comparison.engines),
        _of_cases(comparison.cases),
        _of_controls(comparison),
        _of_outcomes(comparison),
        _of_environment(comparison),
    ]


def _of_engines(changes: Sequence[Change]) -> list[str]:
    told = [change for change in changes if change.told]
    known = sum(not math.isnan(change.estimate.chance) and not change.control for change in changes)
    if not told:
        return [f"Over all cases, none of {known:,} comparisons of an engine's medians is beyond noise."]
    sentences = []
    for engine in dict.fromkeys(change.engine for change in told):
        mine = [change for change in told if change.engine == engine]
        sizes = sorted({change.estimate.size for change in mine})
        over = f"{sizes[0]:,} cases" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,} cases"
        parts = (f"{change.column.head} {describe(change)}" for change in mine)
        sentences.append(f"{engine}, median of {over} (95% interval): {', '.join(parts)}.")
    return [*sentences, f"Over all cases, {len(told):,} of {known:,} comparisons of engines are beyond noise."]


def _of_cases(changes: Sequence[Change]) -> str:
    if not changes:
        return "The store holds no samples of single cases: items are compared by their summaries."
    asked = [change for change in changes if not change.control]
    known = [change for change in asked if not math.isnan(change.estimate.chance)]
    counts: dict[str, int] = {}
    for change in known:
        if change.told:
            counts[change.verdict] = counts.get(change.verdict, 0) + 1
    words = ", ".join(f"{count:,} {verdict}" for verdict, count in counts.items()) or "nothing beyond noise"
    few = len(asked) - len(known)
    rest = f"; {few:,} more have too few samples" if few else ""
    return (
        f"Case by case, {len(known):,} comparisons: {words}{rest}. With so many, some are far from 1 by chance: of "
        f"those that are told, at most {FALSE_SHARE:.0%} in the long run (Benjamini and Hochberg)."
    )


def _of_controls(comparison: Comparison) -> str:
    if not comparison.controls:
        return (
            "No engine is known to be the same in both runs, so what the machine did cannot be told from what the code "
            "did: name one that is the same as a control, or run both again, by turns."
        )
    shifts = [
        math.log(change.raw.interval.value)
        for change in comparison.engines
        if change.engine in comparison.controls and change.column.unit == "s"
    ]
    names = ", ".join(comparison.controls)
    if not shifts:
        return f"Controls, the same in both runs: {names}."
    low, high = (short_factor(math.exp(end)) for end in (min(shifts), max(shifts)))
    return (
        f"The controls ({names}), the same in both runs, took {low} to {high} times as long in the later one. Times "
        "are compared against theirs on the same case, and only what is beyond their own spread is told."
    )


def _of_outcomes(comparison: Comparison) -> str:
    changed = sum(len(one.places) for one in comparison.outcomes)
    said = f"{changed:,} cases have another outcome." if changed else "All outcomes are the same."
    for side, count in (
        ("earlier", sum(one.before for one in comparison.one_sided)),
        ("later", sum(one.after for one in comparison.one_sided)),
    ):
        if count:
            said += f" {count:,} series of an engine on a case are in the {side} run alone."
    return said


def _of_environment(comparison: Comparison) -> str:
    if not comparison.environment:
        return "The environments are the same, as far as they are recorded."
    parts = [f"{key}: {before}, then {after}" for key, (before, after) in comparison.environment.items()]
    return f"The environments differ: {_examples(parts, 6)}."


def _examples(parts: Sequence[str], count: int = EXAMPLES) -> str:
    more = f"; and {len(parts) - count:,} more" if len(parts) > count else ""
    return "; ".join(parts[:count]) + more


def describe(change: Change) -> str:
    """``1.3x slower (1.1–1.5)``: the ratio against the controls with its interval."""
    value, low, high = change.estimate.interval
    low, high = (value, value) if math.isnan(low) else (low, high)
    ends = (value, low, high) if change.column.better == "higher" else (1 / value, 1 / high, 1 / low)
    return Ratio(*ends, change.estimate.size).describe(change.column)


def frames(comparison: Comparison) -> dict[str, pd.DataFrame]:
    """All comparisons as rows, one a change, an outcome, an engine with rows of one run alone."""
    import pandas as pd

    outcomes = [
        {"shown_before": one.before, "shown_after": one.after, "places": len(one.places)}
        | {"engine": one.engine, "what": one.what.replace("_", " "), "where": _examples(one.places)}
        for one in comparison.outcomes
    ]
    one_sided = [{**asdict(one), "where": _examples(one.cases)} for one in comparison.one_sided]
    rows = {"engines": map(_row, comparison.engines), "cases": map(_row, comparison.cases)}
    return {name: pd.DataFrame(found) for name, found in {**rows, "outcomes": outcomes, "one_sided": one_sided}.items()}


def _row(change: Change) -> dict[str, Any]:
    """A change: numbers in base units, NaN for what is not known."""
    column, (raw, estimate) = change.column, (change.raw.interval, change.estimate.interval)
    return {
        **{"engine": change.engine, "case": " · ".join(change.case), "measure": column.name, "head": column.head},
        **{"unit": column.unit, "before": change.before, "after": change.after, "count": change.estimate.size},
        **{"raw": raw.value, "raw_low": raw.low, "raw_high": raw.high},
        **{"ratio": estimate.value, "low": estimate.low, "high": estimate.high, "chance": change.estimate.chance},
        **{"floor": change.floor, "verdict": change.verdict, "told": change.told},
        **{"shown_before": column.format(change.before), "shown_after": column.format(change.after)},
    }


def build_tables(comparison: Comparison) -> list[Table]:
    """The tables that have a row, engines first; of the cases only those that are beyond noise."""
    found = frames(comparison)
    for name in ("engines", "cases"):
        rows = found[name]
        if len(rows):
            ranked = rows.assign(size=rows["ratio"].map(lambda ratio: abs(math.log(ratio))).where(rows["told"], 0))
            found[name] = ranked.sort_values("size", ascending=False, kind="stable")
    if len(found["cases"]):
        found["cases"] = found["cases"][found["cases"]["told"]].head(MAX_ROWS)
    results = Results(found, {column.name: column for column in _COLUMNS})
    built = [table.build(results) for table in TABLES]
    built.append(environment_table([comparison.before, comparison.after], ("before", "after")))
    return [table for table in built if table.rows]


def ratios_chart(comparison: Comparison) -> Chart:
    """The ratios of engines with their intervals, one panel a column; 1 is a line, what is told is coloured."""
    name, title = "ratios", "After over before, against the controls"
    drawn = [change for change in comparison.engines if not math.isnan(change.estimate.interval.low)]
    if not drawn:
        return Chart(name, title, reason="no engine has six cases in both runs")
    columns = {change.column.name: change.column for change in sorted(drawn, key=lambda one: one.column.unit != "s")}
    panels = [
        Panel(column.head, printable(_ratios([change for change in drawn if change.column.name == column.name])))
        for column in list(columns.values())[:MAX_PANELS]
    ]
    caption = "Points: median over cases; lines: 95% intervals; coloured: beyond noise."
    hidden = len(drawn) - sum(len(panel.spec["data"]["values"]) for panel in panels)
    return Chart(name, title, caption + (f" {hidden:,} more are in the table only." if hidden else ""), tuple(panels))


def _ratios(changes: Sequence[Change]) -> dict[str, Any]:
    """The specification of one column's panel."""
    points = []
    for change in changes[:MOST_ROWS]:
        value, low, high = change.estimate.interval
        is_better = (value > 1) == (change.column.better == "higher")
        told = "no" if not change.told else "better" if is_better else "worse"
        words = {"ratio": describe(change), "cases": change.estimate.size, "verdict": change.verdict}
        points.append({"engine": change.engine, "x": value, "low": low, "high": high, "beyond noise": told} | words)
    engines = [point["engine"] for point in points]
    better = "above" if changes[0].column.better == "higher" else "below"
    axis = {"title": f"after over before ({better} 1 is better)", "format": "~g", "tickCount": 5}
    x = {"field": "x", "type": "quantitative", "scale": {"zero": False, "padding": 12}, "axis": axis}
    colours = {"domain": ["better", "worse", "no"], "range": [PALETTE[0][0], PALETTE[1][0], MUTED]}
    places = {
        "y": {"field": "engine", "type": "nominal", "sort": engines, "axis": {"title": None, "grid": True}},
        "color": {
            **{"field": "beyond noise", "type": "nominal", "scale": colours},
            "legend": {"title": "beyond noise", "orient": "bottom", "columns": 3},
        },
        "tooltip": [{"field": name, "type": "nominal"} for name in ("engine", "ratio", "cases", "verdict")],
    }
    return {
        "data": {"values": points},
        "height": 22 * len(points),
        "layer": [
            {"data": {"values": [{}]}, "mark": {"type": "rule", "color": MUTED}, "encoding": {"x": {"datum": 1}}},
            {
                "mark": {"type": "rule", "strokeWidth": 1.8},
                "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, **places},
            },
            {"mark": {"type": "point", "filled": True, "size": 60, "opacity": 1}, "encoding": {"x": x, **places}},
        ],
    }


def to_json(comparison: Comparison, folders: tuple[Path, Path]) -> str:
    """All comparisons, told or not, as JSON: numbers in base units, null for what is not known."""
    runs = zip((comparison.before.provenance, comparison.after.provenance), folders, strict=True)
    before, after = (
        {"folder": str(folder), **{key: provenance.get(key) for key in ("started", "tokdfa", "git")}}
        for provenance, folder in runs
    )
    found = {name: json.loads(rows.to_json(orient="records")) for name, rows in frames(comparison).items()}
    content = {
        **{"before": before, "after": after, "controls": list(comparison.controls)},
        **{"findings": headlines(comparison), **found, "environment": comparison.environment},
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
