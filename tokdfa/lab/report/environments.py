"""What differs between the environments of several runs: versions, commit, machine, calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.lab.declare.cells import Table, text_cell
from tokdfa.lab.declare.columns import MISSING
from tokdfa.lab.report import tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.lab.report.data import RunData

#: What differs between any two runs and says nothing: times, process, load, seeds by group, the experiment itself.
_OWN = ("experiment", "fingerprint", "process", "started", "ended", "interrupted", "seeds", "earlier", "tokenizers")
_MOMENTARY = ("machine · load_average", "machine · memory_available_bytes")


def compare_environments(runs: Sequence[RunData]) -> dict[str, list[str]]:
    """key of the provenance -> what each run has there, for those in which two runs differ.

    What a run does not know (a package it has no use for) is a dash, and no difference by itself.
    """
    known = [{row[0].text: row[1].text for row in tables.environment(run).rows} for run in runs]
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
