"""One page of several runs: a table of contents, the runs side by side, their environments, and a section for each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tokdfa.lab.declare.cells import Cell, Table, text_cell
from tokdfa.lab.report import html
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.environments import environment_table
from tokdfa.lab.report.page import Page, readable_time
from tokdfa.lab.report.tables import failure_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.lab.report.data import StoredRun


def write_together(runs: Sequence[StoredRun], path: Path) -> None:
    """Write the page of `runs`, in their order, to `path`, whose folder is made if need be.

    Cost: that of each run's own page. Raises ValueError for no runs at all.
    """
    if not runs:
        raise ValueError("a page needs a run")
    read = [RunData.read(run) for run in runs]
    pages = [Page.of_data(data, Path(run.folder)) for data, run in zip(read, runs, strict=True)]
    names = run_names(read)
    tables = [_runs_table(read, names), environment_table(read, names)]
    named = ", ".join(dict.fromkeys(data.name for data in read)) if len(runs) <= 4 else ""
    title = f"{len(runs)} runs: {named}" if named else f"{len(runs)} runs"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(html.render_together(title, pages, tables), encoding="utf-8")


def run_names(runs: Sequence[RunData]) -> list[str]:
    """A name for each run: the experiment's, with a number where several runs have it."""
    names = [data.name for data in runs]
    return [
        f"{name} {names[: place + 1].count(name)}" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]


def _runs_table(runs: Sequence[RunData], names: Sequence[str]) -> Table:
    rows = []
    for data, name in zip(runs, names, strict=True):
        provenance = data.provenance
        items = [data.items, *(section.items for section in data.sections.values())]
        count, done = sum(map(len, items)), sum(int((one["status"] == "ok").sum()) for one in items)
        failures = ", ".join(filter(None, map(failure_counts, items)))
        commit = str((provenance.get("git") or {}).get("commit") or "")[:10]
        times = (readable_time(provenance.get(key)) for key in ("started", "ended"))
        facts = (data.kind, *times, commit)
        rows.append(
            (text_cell(name), *map(text_cell, facts), Cell(f"{done}/{count}", float(done)), text_cell(failures))
        )
    columns = ("run", "kind", "started", "ended", "commit", "done", "failures")
    note = "Done are the items that gave a result, of all that were measured. Each run has a section below."
    return Table("runs", "The runs", note, columns, tuple(rows))
