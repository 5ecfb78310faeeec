"""The tables, charts and sentences of a run, as its kind declares them, and those that every run gets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tokdfa.lab.declare.cells import readable
from tokdfa.lab.declare.sentences import Tally
from tokdfa.lab.kinds import find_kind
from tokdfa.lab.measure.machine import QUIET
from tokdfa.lab.report import speed_and_skew, tables

if TYPE_CHECKING:
    from tokdfa.lab.declare.cells import Table
    from tokdfa.lab.declare.charts import Chart
    from tokdfa.lab.report.data import RunData


def build_tables(data: RunData) -> list[Table]:
    """All tables of a run that have a row, the main one first; the environment comes last, even if nothing is known.

    What an experiment on backends has measured beside them follows its own tables, sentences and charts.
    """
    beside = speed_and_skew.together(data)
    built = [table.build(beside) for table in speed_and_skew.TABLES] if beside else []
    built += _own_tables(data)
    for kind, section in data.sections.items():
        built += (_of_section(kind, table) for table in _own_tables(section))
    return [*(table for table in built if table.rows), tables.environment(data)]


def _of_section(kind: str, table: Table) -> Table:
    """`table` under a name that no other table of the page has."""
    return table if table.name.startswith(kind) else replace(table, name=f"{kind}_{table.name}")


def _own_tables(data: RunData) -> list[Table]:
    declared = find_kind(data.kind).tables if data.declared.columns else (tables.PLAIN,)
    failed = data.failures.assign(status=data.failures["status"].map(readable))
    return [*(table.build(data.declared) for table in declared), tables.FAILURES.build(tables.of_items(failed))]


def build_charts(data: RunData) -> list[Chart]:
    """All charts of a run, drawn or with the reason why not; none for a kind that nothing is known of."""
    declared = find_kind(data.kind).charts if data.declared.columns else ()
    own = [built for chart in declared if (built := chart.build(data.declared)).panels or not chart.optional]
    beside = speed_and_skew.together(data)
    first = [chart.build(beside) for chart in speed_and_skew.CHARTS] if beside else []
    return [*first, *own, *(chart for section in data.sections.values() for chart in build_charts(section))]


def build_headlines(data: RunData) -> list[str]:
    """What the run found, in sentences computed from its data, after a warning if it was interrupted."""
    if not (len(data.items) or len(data.results) or data.sections):
        return ["The run has no items yet."]
    sentences = [line for one in (data, *data.sections.values()) for line in _own_headlines(one)]
    unfinished = (
        ["The run was interrupted: this is what it had finished."] if data.provenance.get("interrupted") else []
    )
    return [*unfinished, *_busy(data), *sentences]


def _busy(data: RunData) -> list[str]:
    """A warning of times that were taken beside others' work; of every start of the run that was."""
    starts = [*data.provenance.get("earlier", []), data.provenance]
    busy = [beside for one in starts if (beside := one.get("beside")) and beside["others_share"] > QUIET]
    if not busy:
        return []
    worst = max(busy, key=lambda beside: float(beside["others_share"]))
    who = f", {', '.join(worst['others'][:5])} at its start" if worst["others"] else ""
    loads = " and ".join(f"{load[0]:.1f}" for load in worst["load_average"] if load)
    return [
        f"The machine was busy: other processes took {worst['others_share']:.0%} of its processors while this was "
        f"measured{who} (load {loads} before and after). Times are not to be quoted."
    ]


def _own_headlines(data: RunData) -> list[str]:
    known: list[str] = []
    if data.declared.columns:
        known = [line for sentence in find_kind(data.kind).sentences for line in sentence.sentences(data.declared)]
        if data.kind != "backends" and not len(data.results):
            known = ["The run has no results yet."]
    if len(data.failures) or data.kind == "backends":
        known += Tally("items").sentences(tables.of_items(data.items))
    return known
