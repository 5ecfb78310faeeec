"""A stored run, read once: items, samples and rows with all the columns that reports read.

Only items whose status is ``ok`` enter a comparison; all others are listed as failures.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tokdfa.core.locks import cached_property
from tokdfa.lab.declare.kind import Kind
from tokdfa.lab.kinds import find_kind, targets
from tokdfa.lab.run.store import COLUMNS, Run

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from tokdfa.lab.declare.results import Results


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
    def read(cls, run: Run) -> RunData:
        """Read a run once. Cost: its size in memory."""
        items = _completed(run.items(), COLUMNS["items"])
        items["label"] = items["label"].where(items["label"].notna(), items["backend"])
        samples = _completed(run.samples(), COLUMNS["samples"])
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
        """The label that ratios refer to; empty if nothing was measured of it."""
        wanted = str(self.config.get("reference") or "")
        return wanted if (self.items["label"] == wanted).any() else ""

    @cached_property
    def declared(self) -> Results:
        """The results with what the kind declares of them; without columns, if it is not known."""
        kind = find_kind(self.kind) if self.kind in targets() else Kind()
        rows = self.items.merge(self.samples, on="item_id", how="left") if self.kind == "backends" else self.results
        return kind.results(rows, self.config, self.reference, self.items)

    @cached_property
    def failures(self) -> pd.DataFrame:
        """The items that did not succeed, whatever the reason."""
        return self.items[self.items["status"] != "ok"]


def _completed(frame: pd.DataFrame, columns: Mapping[str, str]) -> pd.DataFrame:
    """A copy, its rows numbered from 0, with all the store's columns: runs of earlier versions may lack some."""
    frame = frame.reset_index(drop=True)
    for column, kind in columns.items():
        if column not in frame:
            frame[column] = None if kind == "string" else float("nan")
    return frame
