"""Reports on runs of kind ``maskbench``: who passes which schemas, what masks and compiles take, where engines differ.

The main table and ``official`` have the benchmark's numbers by its own definitions
(`tokdfa.lab.report.maskbench_data`); the others take them apart. Times of engines that refuse hard schemas are of
easier work: the table of the cases that all engines pass compares them on the same.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare.cells import Cell, Table, count_cell, number_cell, text_cell
from tokdfa.lab.report.maskbench_checks import draft_table, faults_table, refused_tests, walk_headlines, walks_table
from tokdfa.lab.report.maskbench_data import (
    OUTCOMES,
    OVER,
    PASSED,
    REFUSED,
    TBM,
    TTFM,
    UNDER,
    Field,
    compiles,
    fields,
    is_suite,
    mean,
    measured,
    outcome_counts,
    passed_by_all,
    percentile,
    samples,
    with_keywords,
)
from tokdfa.lab.report.maskbench_plots import build_plots
from tokdfa.lab.report.metrics import format_seconds, format_share

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.lab.report.data import RunData
    from tokdfa.lab.report.maskbench_data import Seconds

__all__ = ["build_plots", "build_tables", "headlines"]

#: What is shown of a distribution: head -> percent; None is the mean.
SHOWN = {"mean": None, "p50": 50.0, "p90": 90.0, "p99": 99.0, "p99.9": 99.9, "max": 100.0}
#: There are too few schemas for more.
SHOWN_OF_TTFM = {head: percent for head, percent in SHOWN.items() if head != "p99.9"}
#: Settings of the experiment that its reports tell, with their defaults.
LIMITS = {"chunk": 25, "seconds": 20.0, "memory_mb": 4000.0}
OFFICIAL_PERCENTILES = (25, 50, 75, 90, 95, 99, 99.9, 100)
#: Lists of cases are cut off here; the stored results have all.
MAX_ROWS = 400
MAX_MESSAGE = 120
SHORT_OUTCOMES = {"over-constrained": "over", "under-constrained": "under"}


def build_tables(data: RunData) -> list[Table]:
    """The benchmark's numbers, our finer ones, breakdowns by split and keyword, and where the engines differ."""
    if data.results.empty:
        return []
    whole, *sampled = fields(data)
    said = circumstances(data)
    breakdown = [draft_table(data), suite_table(data)] if is_suite(data) else [by_split(data), by_keyword(data)]
    walked = [table for table in (walks_table(data), faults_table(data)) if table.rows]
    return [
        overview(whole, "maskbench", said),
        *(overview(field, f"sample_{field.cases}", said) for field in sampled),
        official(data),
        common(whole),
        parts(data),
        verdicts(data),
        *breakdown,
        *walked,
        differences(data),
        refusals(data),
    ]


def overview(field: Field, name: str, circumstances: str) -> Table:
    """One row per engine: outcomes of its cases, TBM and TTFM."""
    counts = {engine: outcome_counts(field.of(engine)) for engine in field.engines}
    shown = [one for place, one in enumerate(OUTCOMES) if place < 4 or any(mine[one] for mine in counts.values())]
    most = max(mine[PASSED] for mine in counts.values())
    heads, times = _times(field)
    rows = []
    for engine in field.engines:
        passes = count_cell(float(counts[engine][PASSED]))._replace(best=counts[engine][PASSED] == most)
        passes = passes._replace(detail=format_share(counts[engine][PASSED] / field.cases))
        others = (count_cell(float(counts[engine][one])) for one in shown[1:])
        rows.append((text_cell(engine), count_cell(len(field.of(engine))), passes, *others, *times[engine]))
    outcomes = [SHORT_OUTCOMES.get(OUTCOMES[one], OUTCOMES[one]) for one in shown]
    note = (
        "Outcomes by the benchmark's definitions: refused is its compile error, over(-constrained) its validation "
        "error, a valid instance rejected, under(-constrained) its invalidation error, an invalid instance accepted. "
        "TBM: mask + commit of a token. TTFM: compile + first mask. Times are of the cases that were judged (not "
        f"refused, not ended by a limit); each call is timed as Python makes it. {circumstances} The best are bold."
    )
    brief = ("engine", *outcomes[:4], "TBM p50", "TBM p99", "TTFM p50")
    columns = ("engine", "cases", *outcomes, *heads)
    return Table(name, f"Every engine on {field.title}", note, columns, tuple(rows), brief)


def _times(field: Field) -> tuple[list[str], dict[str, list[Cell]]]:
    """Heads, and for each engine cells, of both times; the lowest of each is bold if there are several."""
    heads: list[str] = []
    cells: dict[str, list[Cell]] = {engine: [] for engine in field.engines}
    for metric, shown in ((TBM, SHOWN), (TTFM, SHOWN_OF_TTFM)):
        take = compiles if metric is TTFM else lambda rows: samples(rows, "tbm")
        values = {engine: take(field.of(engine)) for engine in cells}
        for head, percent in shown.items():
            heads.append(f"{metric.title} {head}")
            found = {engine: _shown(mine, percent) for engine, mine in values.items()}
            low = min((value for value in found.values() if not math.isnan(value)), default=math.nan)
            for engine, value in found.items():
                cells[engine].append(number_cell(metric, value, len(found) > 1 and value == low))
    return heads, cells


def circumstances(data: RunData) -> str:
    """What the experiment's settings make of the numbers, in sentences."""
    settings = data.config.get("settings", {})
    chunk, seconds, memory = (settings.get(name, default) for name, default in LIMITS.items())
    said = [
        f"Up to {chunk:,} cases of an engine share a process and what the engine keeps between schemas; every schema "
        "is compiled anew, the garbage collector is off within a case, and there is one thread. "
        f"A case may take {seconds:g} s and {memory:,.0f} MiB."
    ]
    if data.results["to_end"].astype(bool).all():
        said.append("Stricter than the benchmark, the end of the text decides, too.")
    return " ".join(said)


def _shown(values: Seconds, percent: float | None) -> float:
    return mean(values) if percent is None else percentile(values, percent)


def official(data: RunData) -> Table:
    """The benchmark's own table: a row per number, a column per engine, times in whole microseconds."""
    rows = measured(data)
    by_engine = {str(engine): mine for engine, mine in rows.groupby("engine", sort=False)}
    lines: list[tuple[Cell, ...]] = []

    def add(head: str, values: list[float]) -> None:
        lines.append((text_cell(head), *map(count_cell, values)))

    for title, values in (
        ("TBM", [samples(mine, "tbm") for mine in by_engine.values()]),
        ("TTFM", [compiles(mine) for mine in by_engine.values()]),
    ):
        add(f"{title} avg (us)", [_micros(mean(mine)) for mine in values])
        for percent in OFFICIAL_PERCENTILES:
            add(f"{title} p{percent:g}", [_micros(percentile(mine, percent)) for mine in values])
    counts = [outcome_counts(mine) for mine in by_engine.values()]
    add("tokens", [float(mine["tokens"].sum()) for mine in by_engine.values()])
    add("schemas", [float(len(mine)) for mine in by_engine.values()])
    add("passing", [float(mine[PASSED]) for mine in counts])
    for head, outcome in (
        *(("crashes", "crash"), ("oom", "memory"), ("timeouts", "timeout"), ("compile errors", REFUSED)),
        *(("validation errors", OVER), ("invalidation errors", UNDER)),
    ):
        add(head, [float(mine[outcome]) for mine in counts])
    note = (
        "As the benchmark prints it; engines with a sample have fewer schemas. Its crashes count timeouts and memory, "
        "too; here each counts once."
    )
    return Table("official", "In the benchmark's own format", note, ("metric", *by_engine), tuple(lines))


def _micros(seconds: float) -> float:
    return seconds if seconds != seconds else float(int(seconds * 1e6))  # noqa: PLR0124 (NaN)


def common(field: Field) -> Table:
    """TBM and TTFM on the cases that all engines pass: the same work for everyone."""
    shared = passed_by_all(field)
    if len(field.engines) < 2 or not shared.cases:
        return Table("common", "The same work for all", "", ("engine",), ())
    heads, times = _times(shared)
    rows = [(text_cell(engine), *cells) for engine, cells in times.items()]
    note = f"Of {shared.title}: the times of the same tokens and schemas. The best are bold."
    return Table("common", "The same work for all", note, ("engine", *heads), tuple(rows))


def parts(data: RunData) -> Table:
    """One row per engine and part of the work: compile, first mask, mask, commit."""
    rows = []
    for engine, mine in measured(data).groupby("engine", sort=False):
        for what, metric, values in (
            ("compile", TTFM, compiles(mine, ["compile_ns"])),
            ("first mask", TTFM, compiles(mine, ["first_ns"])),
            ("mask", TBM, samples(mine, "mask_ns")),
            ("commit", TBM, samples(mine, "advance_ns")),
        ):
            cells = (number_cell(metric, _shown(values, percent)) for percent in SHOWN.values())
            rows.append((text_cell(engine), text_cell(what), count_cell(len(values)), *cells))
    clock = measured(data)["clock_ns"].median()
    note = (
        "What TTFM and TBM are made of. The first mask includes the start of its matcher. A token that is refused has "
        f"a mask, and a commit of 0. A timed call that does nothing takes {format_seconds(clock * 1e-9)} (median); "
        "nothing is subtracted."
    )
    columns = ("engine", "part", "samples", *SHOWN)
    return Table("parts", "The parts of the times", note, columns, tuple(rows))


def verdicts(data: RunData) -> Table:
    """One row per engine: what the outcomes hide, case by case."""
    rows = []
    for engine, mine in measured(data).groupby("engine", sort=False):
        passed = mine[mine["outcome"] == PASSED]
        over = mine[mine["outcome"] == OVER]
        artefacts = over[(over["order_artefacts"] == over["over_tests"]) & (over["under_tests"] == 0)]
        counts = (
            *(len(mine), len(passed), (passed["tests"] == 0).sum(), (passed["unended_tests"] == 0).sum()),
            *(len(over), len(artefacts), (mine["over_tests"] > 0).sum(), (mine["under_tests"] > 0).sum()),
            *((mine["ended_under_tests"] > 0).sum(), mine["tests"].sum(), mine["right_tests"].sum()),
        )
        rows.append((text_cell(engine), *(count_cell(float(count)) for count in counts)))
    unordered = measured(data).drop_duplicates("case")["unordered_tests"]
    note = (
        "Passes without a test are vacuous. Passes with ends: every valid instance may also end where it does. Order "
        "only: over-constrained cases whose rejected instances are all accepted with the same members in the order of "
        f"the schema ({int((unordered > 0).sum())} of the cases have a valid instance in another order). A case may "
        "have tests of both faults; the benchmark counts the last. Under with end: an invalid instance that may also "
        "end was accepted."
    )
    columns = (
        *("engine", "cases", "passes", "passes without a test", "passes with ends", "over", "order only"),
        *("any valid rejected", "any invalid accepted", "under with end", "tests", "tests right"),
    )
    return Table("verdicts", "What the outcomes hide", note, columns, tuple(rows))


def by_split(data: RunData) -> Table:
    """One row per split of the data: cases, and how many each engine passes."""
    rows = _passes(measured(data), "split")
    columns = ("split", "cases", *_names(data))
    note = "Cases passed; of an engine with a sample, of how many."
    return Table("splits", "Passes by split", note, columns, tuple(rows))


def by_keyword(data: RunData) -> Table:
    """One row per keyword, the most frequent first: cases whose schema uses it, and how many each engine passes."""
    exploded = with_keywords(measured(data))
    counts = exploded.groupby("used")["case"].nunique()
    rows = sorted(_passes(exploded, "used"), key=lambda row: (-counts[row[0].text], row[0].text))
    note = "Cases whose schema uses the keyword anywhere, and how many each engine passes, whatever else they use."
    return Table("keywords", "Passes by keyword", note, ("keyword", "cases", *_names(data)), tuple(rows))


def _names(data: RunData) -> list[str]:
    return [str(name) for name in dict.fromkeys(measured(data)["engine"])]


def _passes(rows: pd.DataFrame, column: str) -> list[tuple[Cell, ...]]:
    """One row per value of a column: the number of cases, and the passes of each engine; the best are bold."""
    lines = []
    for value, group in rows.groupby(column, sort=True):
        cases = group["case"].nunique()
        passed: dict[str, tuple[int, int]] = {}
        for engine in dict.fromkeys(rows["engine"]):
            mine = group[group["engine"] == engine]
            passed[engine] = int((mine["outcome"] == PASSED).sum()), len(mine)
        most = max((count for count, had in passed.values() if had == cases), default=0)
        cells = (
            Cell(f"{count:,}", float(count), best=count == most > 0 and len(passed) > 1)
            if had == cases
            else Cell(f"{count:,} of {had:,}", float(count))
            for count, had in passed.values()
        )
        lines.append((text_cell(value), count_cell(float(cases)), *cells))
    return lines


def suite_table(data: RunData) -> Table:
    """One row per file of the suite: its tests, and of each engine how many are right, refused, wrong."""
    rows = measured(data)
    lines = []
    total = {engine: Counter[str]() for engine in _names(data)}
    groups = [(str(split), group) for split, group in rows.groupby("split", sort=True)]
    for split, group in groups:
        cells = []
        for engine, counts in total.items():
            mine = group[group["engine"] == engine]
            refused = float(refused_tests(mine))
            right, tests = float(mine["right_tests"].sum()), float(mine["tests"].sum())
            counts.update({"right": int(right), "refused": int(refused), "wrong": int(tests - right - refused)})
            cells.append(Cell(f"{right:,.0f} / {refused:,.0f} / {tests - right - refused:,.0f}", right))
        tests = group.drop_duplicates("case")["tests"].sum()
        lines.append((text_cell(split), count_cell(float(tests)), *cells))
    everything = (Cell(f"{one['right']:,} / {one['refused']:,} / {one['wrong']:,}", float(one["right"])) for one in
                  total.values())  # fmt: skip
    tests = rows.drop_duplicates("case")["tests"].sum()
    lines.append((text_cell("all"), count_cell(float(tests)), *everything))
    note = "Tests right / refused with their schema / wrong. A valid instance must be accepted with its end."
    return Table("suite", "The test suite by file", note, ("file", "tests", *total), tuple(lines))


def differences(data: RunData) -> Table:
    """One row per case on which the engines do not have the same outcome."""
    names, lines = _names(data), []
    for case, group in measured(data).groupby("case", sort=False):
        if group["outcome"].nunique() < 2:
            continue
        by_engine = {str(one["engine"]): one for _, one in group.iterrows()}
        lines.append((text_cell(case), *(_outcome_cell(by_engine.get(name)) for name in names)))
    note = f"Of {len(lines):,} in all; with the first message of whoever does not pass."
    if len(lines) > MAX_ROWS:
        note += f" The first {MAX_ROWS} are listed, the stored results have all."
    return Table("differences", "Where engines differ", note, ("case", *names), tuple(lines[:MAX_ROWS]))


def _outcome_cell(row: pd.Series[Any] | None) -> Cell:
    if row is None:
        return text_cell(None)
    return text_cell(row["outcome"])._replace(detail=_short(str(row["message"])))


def _short(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= MAX_MESSAGE else f"{line[: MAX_MESSAGE - 1]}…"


def refusals(data: RunData) -> Table:
    """One row per engine and reason: equal messages, numbers and quoted parts apart, the most frequent first."""
    rows = measured(data)
    failed = rows[~rows["outcome"].isin([PASSED, OVER, UNDER])]
    reasons = failed.assign(reason=failed["message"].map(_reason), keyword=failed["keyword"].fillna(""))
    lines = []
    for engine, group in reasons.groupby("engine", sort=False):
        kinds = [(len(equal), where, equal) for where, equal in group.groupby(["outcome", "keyword", "reason"])]
        for count, (outcome, keyword, reason), equal in sorted(kinds, key=lambda kind: (-kind[0], kind[1])):
            first = equal["case"].iloc[0]
            cells = (*map(count_cell, (float(count), equal["tests"].sum())), text_cell(reason), text_cell(first))
            lines.append((text_cell(engine), text_cell(outcome), text_cell(keyword), *cells))
    note = "What an engine refuses or fails at, by the keyword that its message names, and one case of each."
    if len(lines) > MAX_ROWS:
        note += f" The first {MAX_ROWS} of {len(lines):,} reasons."
    columns = ("engine", "outcome", "keyword", "cases", "tests", "reason", "for example")
    return Table("refusals", "What is refused", note, columns, tuple(lines[:MAX_ROWS]))


def _reason(message: str) -> str:
    """A message without what differs from case to case: pointers, quoted parts and numbers."""
    return _short(re.sub(r"#/\S*|'[^']*'|\"[^\"]*\"|`[^`]*`|\d+", "…", message))


def headlines(data: RunData) -> list[str]:
    """What each engine passes and takes, who accepts what is invalid, and the times on the same work."""
    if data.results.empty:
        return ["The run has no results yet."]
    whole, *_ = fields(data)
    said = []
    for engine, mine in measured(data).groupby("engine", sort=False):
        counts, tbm, ttfm = outcome_counts(mine), samples(mine, "tbm"), compiles(mine)
        share = format_share(counts[PASSED] / len(mine))
        others = ", ".join(f"{OUTCOMES[one]} {count:,}" for one, count in counts.items() if count and one != PASSED)
        sample = "" if len(mine) == whole.cases else " (a sample)"
        sentence = (
            f"{engine} passes {counts[PASSED]:,} of {_cases(len(mine))}{sample}, {share}; {others or 'no failure'}."
        )
        if len(tbm):
            sentence += (
                f" TBM p50 {_time(tbm, 50)}, p99 {_time(tbm, 99)}, p99.9 {_time(tbm, 99.9)}; "
                f"TTFM p50 {_time(ttfm, 50)}, p99 {_time(ttfm, 99)}."
            )
        said.append(sentence)
    found = measured(data).groupby("engine", sort=False)[["under_tests", "ended_under_tests"]].sum()
    lax = ", ".join(
        f"{engine} {int(count):,} ({int(ended):,} with their end)"
        for engine, count, ended in found.itertuples()
        if count
    )
    said.append(f"Invalid instances accepted: {lax}." if lax else "No engine accepts an invalid instance.")
    shared = passed_by_all(whole)
    if len(whole.engines) > 1 and shared.cases:
        medians = {engine: samples(shared.of(engine), "tbm") for engine in shared.engines}
        known = {engine: values for engine, values in medians.items() if len(values)}
        said += [
            f"On {shared.title}, TBM p50 and p99: "
            + "; ".join(f"{engine} {_time(values, 50)}, {_time(values, 99)}" for engine, values in known.items())
            + "."
        ] if known else []  # fmt: skip
    said += walk_headlines(data)
    empty = int((measured(data).drop_duplicates("case")["tests"] == 0).sum())
    if empty:
        said.append(f"Without a test, so that whoever compiles them passes: {_cases(empty)}.")
    return said


def _cases(count: int) -> str:
    return f"{count:,} case{'s' * (count != 1)}"


def _time(values: Seconds, percent: float) -> str:
    return format_seconds(percentile(values, percent))
