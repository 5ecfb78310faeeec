"""The tables that every report may end with: what failed, rows of a kind without declarations, the environment, and
what differs between the environments of two runs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare import Listing, Results, Stat, Summary
from tokdfa.lab.declare.cells import Table, text_cell
from tokdfa.lab.declare.columns import MISSING, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pandas as pd

    from tokdfa.lab.report.data import RunData

#: What of the provenance comes first, as a page shows no more than the beginning of a long table.
SHOWN_FIRST = ("experiment", "fingerprint", "way", "tokdfa", "code", "git", "machine")
#: Lists and mappings of the provenance that are longer are shown by their length.
MAX_LISTED = 40
#: What differs between any two runs and says nothing: times, process, load, seeds by group, the experiment itself.
_OWN = (
    "experiment",
    "fingerprint",
    "process",
    "started",
    "ended",
    "beside",
    "interrupted",
    "seeds",
    "earlier",
    "tokenizers",
)
_MOMENTARY = ("machine · load_average", "machine · memory_available_bytes")


#: What is told of the items of every run.
FAILURES = Summary(
    "failures",
    "Failures",
    "Items that gave no result, with the reason.",
    by=("label", "constraint", "status", "tokenizer", "message"),
    values=(Stat("item_id", "count", "items"),),
)
#: The results of a kind that has declared nothing.
PLAIN = Listing("results", "Results", "As stored.")


def of_items(items: pd.DataFrame) -> Results:
    """Some items of a run, for the declarations that are of every run."""
    heads = {"label": "backend", "constraint": "", "status": "kind", "tokenizer": "", "message": "reason"}
    return Results({"": items}, {name: text(name, title) for name, title in heads.items()})


def environment(data: RunData) -> Table:
    """Versions, commit, machine and seeds, flattened to one row per key; long lists only by their length."""
    told = {name: data.provenance[name] for name in SHOWN_FIRST if name in data.provenance} | dict(data.provenance)
    rows = tuple((text_cell(key), text_cell(value)) for key, value in _flatten(told))
    note = "Recorded with the run; the whole record is provenance.json in its folder."
    return Table("environment", "Environment", note, ("what", "value"), rows)


def _flatten(entries: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in entries.items():
        if isinstance(value, dict | list) and (len(value) > MAX_LISTED or _has_records(value)):
            yield f"{above}{key}", f"{len(value)} entries"
        elif isinstance(value, dict) and value:
            yield from _flatten(value, f"{above}{key} · ")
        else:
            plain = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
            yield f"{above}{key}", plain


def _has_records(value: Mapping[str, Any] | list[Any]) -> bool:
    return isinstance(value, list) and any(isinstance(entry, dict) for entry in value)


def compare_environments(runs: Sequence[RunData]) -> dict[str, list[str]]:
    """key of the provenance -> what each run has there, for those in which two runs differ.

    What a run does not know (a package it has no use for) is a dash, and no difference by itself.
    """
    known = [{row[0].text: row[1].text for row in environment(run).rows} for run in runs]
    found = {}
    for key in dict.fromkeys(key for entries in known for key in entries):
        if key.split(" · ")[0] in _OWN or key in _MOMENTARY:
            continue
        values = [entries.get(key, MISSING) for entries in known]
        if len(set(values) - {MISSING}) > 1:
            found[key] = values
    return found


def environment_table(runs: Sequence[RunData], names: Sequence[str]) -> Table:
    """The differences as a table, one column a run; a single row says so if there are none."""
    rows = [(text_cell(key), *map(text_cell, values)) for key, values in compare_environments(runs).items()]
    if not rows:
        rows = [(text_cell("all that is recorded"), *(text_cell("the same") for _ in runs))]
    note = "What was recorded with the runs and is not the same; times, load and seeds are left out."
    return Table("environments", "Differences between the environments", note, ("what", *names), tuple(rows))
