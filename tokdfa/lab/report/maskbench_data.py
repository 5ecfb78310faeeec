"""The rows of a run of kind ``maskbench``, ready for tables and plots: per engine, its cases and its times.

``TBM`` and ``TTFM`` are the benchmark's: mask + commit of every token of the cases that were judged, and compile +
first mask of their schemas. Cases that were refused have no times, and neither have those that broke a limit or died,
as in the benchmark; how many there are must be read beside the times. Percentiles are the benchmark's, too: of n values
in order, number n * p // 100, counted from 0.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokdfa.lab.report.data import complete_columns
from tokdfa.lab.report.metrics import Metric

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from tokdfa.lab.report.data import RunData

#: float64, seconds.
Seconds = npt.NDArray[np.float64]

PASSED, REFUSED, OVER, UNDER = "passed", "refused", "over", "under"
#: Outcome -> its words in tables, in their order; those after the first four are shown where they occur.
OUTCOMES = {
    PASSED: "passes",
    REFUSED: "refused",
    OVER: "over-constrained",
    UNDER: "under-constrained",
    "timeout": "timeouts",
    "crash": "crashes",
    "memory": "out of memory",
    "unavailable": "unavailable",
}
JUDGED = (PASSED, OVER, UNDER)
_NUMBERS = (
    *("tests", "valid_tests", "unordered_tests", "right_tests", "over_tests", "under_tests", "order_artefacts"),
    *("unended_tests", "ended_under_tests", "tokens", "compile_ns", "first_ns", "sample", "clock_ns"),
    *("walks_asked", "walks", "walk_tokens", "walks_finished", "walks_unfinished"),
    *("dead_ends", "invalid_texts", "unjudged_texts"),
)
TBM = Metric("tbm", "TBM", "time between masks: mask + commit", "s", "results", "mask_ns")
TTFM = Metric("ttfm", "TTFM", "time to first mask: compile + first mask", "s", "results", "first_ns")


def measured(data: RunData) -> pd.DataFrame:
    """The results with numbers as float, NaN where there is none, in the order of engines and cases of the run."""
    rows = complete_columns(data.results, (), _NUMBERS)
    order = {name: place for place, name in enumerate(engines(data))}
    return rows.iloc[rows["engine"].map(order).argsort(kind="stable")].reset_index(drop=True)


def engines(data: RunData) -> list[str]:
    """The labels of the engines that have results, in the order of the experiment."""
    listed = [entry.get("label") or entry["backend"] for entry in data.config.get("settings", {}).get("engines", [])]
    there = dict.fromkeys(data.results["engine"].astype(str))
    return [*(name for name in listed if name in there), *(name for name in there if name not in listed)]


def is_suite(data: RunData) -> bool:
    """Whether the cases are those of a test suite, where the end of the text counts."""
    return bool(len(data.results)) and bool(data.results["suite"].astype(bool).all())


@dataclass(frozen=True)
class Field:
    """Engines on cases that all of them were given. `title` says which cases."""

    title: str
    rows: pd.DataFrame

    @property
    def engines(self) -> list[str]:
        return [str(name) for name in dict.fromkeys(self.rows["engine"])]

    @property
    def cases(self) -> int:
        return int(self.rows["case"].nunique())

    def of(self, engine: str) -> pd.DataFrame:
        """The rows of one engine."""
        return self.rows[self.rows["engine"] == engine]


def fields(data: RunData) -> list[Field]:
    """All cases with the engines that had them all, and each sample with all engines that had it, largest first."""
    rows = measured(data)
    had = {engine: frozenset(mine["case"]) for engine, mine in rows.groupby("engine", sort=False)}
    found: list[Field] = []
    for cases in sorted(set(had.values()), key=len, reverse=True):
        members = [engine for engine, mine in had.items() if cases <= mine]
        title = "all cases" if not found else f"a sample of {len(cases):,} cases"
        found.append(Field(title, rows[rows["case"].isin(cases) & rows["engine"].isin(members)]))
    return found


def passed_by_all(field: Field) -> Field:
    """The cases of a field that all its engines pass, so that their times are of the same work."""
    counts = field.rows[field.rows["outcome"] == PASSED].groupby("case")["engine"].nunique()
    common = set(counts[counts == len(field.engines)].index)
    title = f"{len(common):,} case{'s' * (len(common) != 1)} that all engines pass"
    return Field(title, field.rows[field.rows["case"].isin(common)])


def samples(rows: pd.DataFrame, column: str) -> Seconds:
    """The seconds of all tokens in ``mask_ns`` or ``advance_ns``, or of both together in ``tbm``."""
    judged = rows[rows["outcome"].isin(JUDGED)]
    if column == "tbm":
        return samples(judged, "mask_ns") + samples(judged, "advance_ns")
    joined = b"".join(judged[column])
    return np.frombuffer(joined, dtype="<f4").astype(np.float64) * 1e-9


def compiles(rows: pd.DataFrame, columns: Iterable[str] = ("compile_ns", "first_ns")) -> Seconds:
    """The seconds of compiling, of the first mask, or of both together (TTFM), of the cases that were judged."""
    judged = rows[rows["outcome"].isin(JUDGED)]
    return np.asarray(sum(judged[column] for column in columns), dtype=np.float64) * 1e-9


def percentile(values: Seconds, percent: float) -> float:
    """The benchmark's percentile; NaN of nothing. O(n)."""
    if not len(values):
        return math.nan
    place = min(int(len(values) * percent / 100), len(values) - 1)
    return float(np.partition(values, place)[place])


def mean(values: Seconds) -> float:
    """The mean; NaN of nothing."""
    return float(values.mean()) if len(values) else math.nan


def with_keywords(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each row and each keyword that its schema uses, in the column ``used``."""
    return rows.assign(used=rows["keywords"].map(json.loads)).explode("used").dropna(subset=["used"])


def outcome_counts(rows: pd.DataFrame) -> dict[str, int]:
    """Outcome -> how many of the rows have it."""
    counts: dict[Any, int] = rows["outcome"].value_counts().to_dict()
    return {outcome: int(counts.get(outcome, 0)) for outcome in OUTCOMES}
