"""A stored run, read once: items, samples and rows with all the columns that reports read.

Only items whose status is ``ok`` enter a comparison; all others are listed as failures.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pandas as pd

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
    def reference(self) -> str:
        """The label that ratios refer to: the configured one, or the first label of the configured backend."""
        wanted = self.config.get("reference")
        items = self.items[self.items["label"] == wanted]
        items = items if len(items) else self.items[self.items["backend"] == wanted]
        return str(items["label"].iloc[0]) if len(items) and wanted else ""

    @cached_property
    def failures(self) -> pd.DataFrame:
        """The items that did not succeed, whatever the reason."""
        return self.items[self.items["status"] != "ok"]


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
