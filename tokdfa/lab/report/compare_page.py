"""A comparison of two runs as a page (HTML, Markdown), on a terminal, and as JSON.

Changes become the rows of two frames, ``engines`` and ``cases``; their tables are declared like those of any kind.
"""

from __future__ import annotations

import json
import math
import shlex
from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare import Bars, Listing, Results, Stat, Summary
from tokdfa.lab.declare.columns import Column, short_factor, text
from tokdfa.lab.report.compare_statistics import FALSE_SHARE
from tokdfa.lab.report.page import Page, readable_time
from tokdfa.lab.report.tables import environment_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pandas as pd

    from tokdfa.lab.declare.cells import Table
    from tokdfa.lab.report.compare import Comparison

#: At most so many rows of single cases, and examples of cases in a cell; JSON has them all.
MAX_ROWS, EXAMPLES = 200, 3

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
    return Page(
        name=" and ".join(names) if len(names) > 1 else f"{names[0]}, before and after",
        question=f"What has changed from {' to '.join(marks)}?",
        made=" and ".join(started),
        headlines=headlines(comparison),
        tables=build_tables(comparison),
        plots=[CHART.build(_results(frames(comparison)))],
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


def _rows(frame: pd.DataFrame, where: str = "") -> list[dict[str, Any]]:
    """The comparisons of a frame for which a query holds."""
    if frame.empty:
        return []
    found: list[dict[str, Any]] = (frame.query(where) if where else frame).to_dict("records")  # type: ignore[assignment]
    return found


def _of_engines(frame: pd.DataFrame) -> list[str]:
    told, known = _rows(frame, "told"), len(_rows(frame, "chance.notna() and not control"))
    if not told:
        return [f"Over all cases, none of {known:,} comparisons of an engine's medians is beyond noise."]
    sentences = []
    for engine in dict.fromkeys(row["engine"] for row in told):
        mine = [row for row in told if row["engine"] == engine]
        sizes = sorted({row["count"] for row in mine})
        over = f"{sizes[0]:,} cases" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,} cases"
        parts = (f"{row['head']} {row['said']}" for row in mine)
        sentences.append(f"{engine}, median of {over} (95% interval): {', '.join(parts)}.")
    return [*sentences, f"Over all cases, {len(told):,} of {known:,} comparisons of engines are beyond noise."]


def _of_cases(frame: pd.DataFrame) -> str:
    if frame.empty:
        return "The store holds no samples of single cases: items are compared by their summaries."
    asked = frame[~frame["control"]]
    known = asked[asked["chance"].notna()]
    counts = known.loc[known["told"], "verdict"].value_counts(sort=False)
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
    shifts = [row["raw"] for row in _rows(comparison.engines, "control and unit == 's'")]
    names = ", ".join(comparison.controls)
    if not shifts:
        return f"Controls, the same in both runs: {names}."
    low, high = map(short_factor, (min(shifts), max(shifts)))
    return (
        f"The controls ({names}), the same in both runs, took {low} to {high} times as long in the later one. Times "
        "are compared against theirs on the same case, and only what is beyond their own spread is told."
    )


def _of_outcomes(comparison: Comparison) -> str:
    changed = sum(map(len, comparison.outcomes["cases"]))
    said = f"{changed:,} cases have another outcome." if changed else "All outcomes are the same."
    for side, name in (("earlier", "before"), ("later", "after")):
        if count := sum(comparison.one_sided[name]):
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


def frames(comparison: Comparison) -> dict[str, pd.DataFrame]:
    """All comparisons as rows, one a change, an outcome, an engine with rows of one run alone."""
    outcomes, alone = comparison.outcomes, comparison.one_sided
    return {
        "engines": comparison.engines,
        "cases": comparison.cases,
        "outcomes": outcomes.assign(
            shown_before=outcomes["before"],
            shown_after=outcomes["after"],
            places=outcomes["cases"].map(len),
            what=outcomes["what"].str.replace("_", " "),
            where=outcomes["cases"].map(_examples),
        ).drop(columns=["before", "after", "cases"]),
        "one_sided": alone.assign(where=alone["cases"].map(_examples)),
    }


def _results(found: dict[str, pd.DataFrame]) -> Results:
    return Results(found, {column.name: column for column in _COLUMNS})


def build_tables(comparison: Comparison) -> list[Table]:
    """The tables that have a row, engines first; of the cases only those that are beyond noise, the greatest first."""
    found = frames(comparison)
    for name in ("engines", "cases"):
        rows = found[name]
        if len(rows):
            ranked = rows.assign(size=rows["ratio"].map(lambda ratio: abs(math.log(ratio))).where(rows["told"], 0))
            found[name] = ranked.sort_values("size", ascending=False, kind="stable")
    if len(found["cases"]):
        found["cases"] = found["cases"][found["cases"]["told"]].head(MAX_ROWS)
    results = _results(found)
    built = [table.build(results) for table in TABLES]
    built.append(environment_table([comparison.before, comparison.after], ("before", "after")))
    return [table for table in built if table.rows]


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
