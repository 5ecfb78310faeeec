"""Which tables, plots and sentences a run of each kind gets. A new kind of experiment adds a module and a line here."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tokdfa.lab.kinds import find_kind, targets
from tokdfa.lab.report import (
    headlines,
    tables,
)

if TYPE_CHECKING:
    from tokdfa.lab.declare.cells import Table
    from tokdfa.lab.declare.charts import Chart
    from tokdfa.lab.declare.results import Results
    from tokdfa.lab.report.data import RunData
    from tokdfa.lab.report.plots import Plot

_SPECIAL: dict[str, Any] = {}


def build_tables(data: RunData) -> list[Table]:
    """All tables of a run that have a row, the main one first; the environment comes last, even if nothing is known.

    What an experiment on backends has measured beside them follows its own tables, sentences and plots.
    """
    built = _own_tables(data)
    for kind, section in data.sections.items():
        built += (_of_section(kind, table) for table in _own_tables(section))
    return [*(table for table in built if table.rows), tables.environment(data)]


def _of_section(kind: str, table: Table) -> Table:
    """`table` under a name that no other table of the page has."""
    return table if table.name.startswith(kind) else replace(table, name=f"{kind}_{table.name}")


def _own_tables(data: RunData) -> list[Table]:
    built: list[Table] = []
    if (results := declared_results(data)) is not None:
        built += (table.build(results) for table in find_kind(data.kind).tables)
    elif len(data.results):
        built += _SPECIAL[data.kind].build_tables(data) if data.kind in _SPECIAL else [tables.plain_results(data)]
    return [*built, *([tables.failures(data)] if len(data.failures) else [])]


def declared_results(data: RunData) -> Results | None:
    """The results of a kind that has declared how they are told; None of others."""
    kind = find_kind(data.kind) if data.kind in targets() and data.kind not in _SPECIAL else None
    if kind is None or not kind.columns:
        return None
    rows = data.items.merge(data.samples, on="item_id", how="left") if data.kind == "backends" else data.results
    return kind.results(rows, data.config, data.reference or "", data.items)


def build_plots(data: RunData) -> list[Plot | Chart]:
    """All plots of a run, drawn or with the reason why not; none for a kind that nothing is known of."""
    if data.kind in _SPECIAL:
        return list(_SPECIAL[data.kind].build_plots(data))
    if (results := declared_results(data)) is None:
        return []
    own = [chart.build(results) for chart in find_kind(data.kind).charts]
    return [*own, *(plot for section in data.sections.values() for plot in build_plots(section))]


def build_headlines(data: RunData) -> list[str]:
    """What the run found, in sentences computed from its data, after a warning if it was interrupted."""
    if not (len(data.items) or len(data.results) or data.sections):
        return ["The run has no items yet."]
    sentences = [line for one in (data, *data.sections.values()) for line in _own_headlines(one)]
    unfinished = (
        ["The run was interrupted: this is what it had finished."] if data.provenance.get("interrupted") else []
    )
    return [*unfinished, *sentences]


def _own_headlines(data: RunData) -> list[str]:
    known = _SPECIAL[data.kind].headlines(data) if data.kind in _SPECIAL else []
    if (results := declared_results(data)) is not None:
        known = [line for sentence in find_kind(data.kind).sentences for line in sentence.sentences(results)]
        if data.kind != "backends" and not len(data.results):
            known = ["The run has no results yet."]
    return [*known, *([headlines.success(data)] if len(data.failures) or data.kind == "backends" else [])]
