"""A stored run, read once and made ready for tables and plots; paired comparison with the run's reference.

A *label* is what an experiment calls a backend with its options ("token_index lazy"). A *case* is everything else that
tells two items apart: tokenizer, constraint, workload and seed. Labels are compared case by case: a ratio is taken
between two numbers of the same case, then the median over the cases is reported with its range. A label that failed on
hard cases gains nothing by it, since those cases are missing from its pairs only.

Only items whose status is ``ok`` enter a comparison; all others are listed as failures.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from tokdfa.lab.report.metrics import Metric, Ratio

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pandas as pd

#: What a case is made of.
CASE = ["tokenizer", "constraint", "workload", "seed"]

_ITEM_TEXTS = ("item_id", "tokenizer", "backend", "label", "constraint", "workload", "seed", "status", "message")
_ITEM_NUMBERS = (
    *("vocab_size", "compile_s", "first_mask_s", "states", "transitions"),
    *("memory_peak_bytes", "memory_retained_bytes"),
)
_SAMPLE_TEXTS = ("item_id", "measure")
_SAMPLE_NUMBERS = ("repeat", "step", "ns", "allowed", "differs")


class StoredRun(Protocol):
    """What a report needs of a run; `tokdfa.lab.run.store.open_run` returns one.

    `items`: one row per tokenizer, constraint, backend, workload and seed. `samples`: one row per measurement, in
    nanoseconds. `results`: the rows of special kinds. `config`: name, question, kind, reference and the rest of the
    resolved experiment. `provenance`: versions, commit, machine.
    """

    @property
    def config(self) -> Mapping[str, Any]: ...
    @property
    def provenance(self) -> Mapping[str, Any]: ...
    @property
    def folder(self) -> Path: ...
    def items(self) -> pd.DataFrame: ...
    def samples(self) -> pd.DataFrame: ...
    def results(self) -> pd.DataFrame: ...


@dataclass(frozen=True)
class RunData:
    """A run's frames with all the columns that reports read, in the order of the experiment.

    `items` and `samples` have the store's columns (missing ones are added, empty); `results` is as stored. `sections`:
    what an experiment on backends has measured beside them, special kind -> its data, with its own items and results.
    """

    config: Mapping[str, Any]
    provenance: Mapping[str, Any]
    items: pd.DataFrame
    samples: pd.DataFrame
    results: pd.DataFrame
    sections: Mapping[str, RunData] = field(default_factory=dict)

    @classmethod
    def read(cls, run: StoredRun) -> RunData:
        """Read a run once. Cost: its size in memory."""
        items = complete_columns(run.items(), _ITEM_TEXTS, _ITEM_NUMBERS)
        items["label"] = items["label"].where(items["label"].notna(), items["backend"])
        samples = complete_columns(run.samples(), _SAMPLE_TEXTS, _SAMPLE_NUMBERS)
        results = run.results().reset_index(drop=True)
        if run.config.get("kind", "backends") != "backends" or not run.config.get("settings"):
            return cls(run.config, run.provenance, items, samples, results)
        of_kind = items["backend"].where(items["tokenizer"].isna())
        sections = {}
        for kind, settings in run.config["settings"].items():
            mine = items[of_kind == kind].reset_index(drop=True)
            found = results[results["item_id"].isin(mine["item_id"])] if len(results) else results
            config = {**run.config, "kind": kind, "settings": settings, "reference": ""}
            sections[kind] = cls(config, run.provenance, mine, samples.iloc[:0], found.reset_index(drop=True))
        plain = items[~of_kind.isin(sections)].reset_index(drop=True)
        return cls(run.config, run.provenance, plain, samples, results.iloc[:0], sections)

    @property
    def name(self) -> str:
        return str(self.config.get("name") or "experiment")

    @property
    def question(self) -> str:
        return str(self.config.get("question") or "")

    @property
    def kind(self) -> str:
        return str(self.config.get("kind") or "backends")

    @cached_property
    def labels(self) -> list[str]:
        """The labels in the experiment's order."""
        return [str(label) for label in dict.fromkeys(self.items["label"])]

    @cached_property
    def backend_of(self) -> dict[str, str]:
        """label -> backend name."""
        return dict(zip(self.items["label"].astype(str), self.items["backend"].astype(str), strict=True))

    @property
    def tokenizers(self) -> list[str]:
        return [str(name) for name in dict.fromkeys(self.items["tokenizer"])]

    @property
    def constraints(self) -> list[str]:
        return [str(name) for name in dict.fromkeys(self.items["constraint"])]

    @cached_property
    def reference(self) -> str | None:
        """The label that ratios refer to: the configured one, or the first label of the configured backend."""
        wanted = self.config.get("reference")
        if wanted in self.labels:
            return str(wanted)
        return next((label for label, backend in self.backend_of.items() if backend == wanted), None)

    @cached_property
    def done(self) -> pd.DataFrame:
        """The items that succeeded."""
        return self.items[self.items["status"] == "ok"]

    @cached_property
    def failures(self) -> pd.DataFrame:
        """The items that did not succeed, whatever the reason."""
        return self.items[self.items["status"] != "ok"]

    def samples_of(self, measure: str) -> pd.DataFrame:
        """The samples of one measure of the items that succeeded, with the items' columns beside them."""
        chosen = self.samples[(self.samples["measure"] == measure) & self.samples["ns"].notna()]
        return chosen.merge(self.done[["item_id", "label", "vocab_size", *CASE]], on="item_id", how="inner")

    def case_values(self, metric: Metric) -> pd.DataFrame:
        """A metric of the items that succeeded: one row per case, one column per label, NaN where there is none."""
        import pandas as pd

        cases = self.done[["item_id", "label", *CASE]].copy()
        if metric.source == "samples":
            chosen = self.samples[self.samples["measure"] == metric.column]
            found = chosen.groupby("item_id")["ns"]
            cases["value"] = cases["item_id"].map(
                found.mean() if metric.quantile is None else found.quantile(metric.quantile)
            )
        else:
            cases["value"] = self.done[metric.column]
        cases[CASE] = cases[CASE].astype(object).where(cases[CASE].notna(), "")
        cases["value"] = pd.to_numeric(cases["value"]) * metric.factor
        table = cases.pivot_table(index=CASE, columns="label", values="value", aggfunc="median", sort=False)
        return table.reindex(columns=self.labels)


def paired_ratio(values: pd.DataFrame, metric: Metric, label: str, reference: str | None) -> Ratio | None:
    """How much better one column of `RunData.case_values` is than another, row by row; above 1 is better.

    None without a reference, for the reference itself, and without any pair. Values below the metric's resolution count
    as that; pairs that have a value of zero even so are left out.
    """
    if reference is None or label == reference:
        return None
    pairs = values[[label, reference]].dropna().clip(lower=metric.resolution)
    pairs = pairs[(pairs > 0).all(axis=1)]
    if pairs.empty:
        return None
    ratios = pairs[label] / pairs[reference] if metric.better == "higher" else pairs[reference] / pairs[label]
    return Ratio(float(ratios.median()), float(ratios.min()), float(ratios.max()), len(ratios))


def ratio_of_row(row: pd.Series[Any], metric: Metric, label: str, reference: str | None) -> Ratio | None:
    """The ratio within one row of labels' values: one pair."""
    return paired_ratio(row.to_frame().T, metric, label, reference)


def complete_columns(frame: pd.DataFrame, texts: Sequence[str], numbers: Sequence[str]) -> pd.DataFrame:
    """A copy, its rows numbered from 0, with at least these columns; numbers as float, NaN for missing.

    Whatever the stored nullable types are.
    """
    import pandas as pd

    frame = frame.reset_index(drop=True)
    for column in texts:
        frame[column] = frame[column].astype(object) if column in frame else None
    for column in numbers:
        frame[column] = pd.to_numeric(frame[column]).astype("float64") if column in frame else float("nan")
    return frame


def factors(table: pd.DataFrame, slow: str, fast: str) -> pd.Series[Any]:
    """The column `slow` over the column `fast`, case by case; empty if either was not run."""
    import pandas as pd

    if slow not in table or fast not in table:
        return pd.Series(dtype="float64")
    return (table[slow] / table[fast]).dropna()
