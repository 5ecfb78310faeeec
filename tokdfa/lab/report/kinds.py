"""Which tables, plots and sentences a run of each kind gets. A new kind of experiment adds a module and a line here."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tokdfa.lab.kinds import find_kind, targets
from tokdfa.lab.report import (
    batch,
    cfg_fsm,
    cold_start,
    cost_vs_skew,
    engine_ablation,
    headlines,
    improper_mass,
    intoxication,
    maskbench,
    plots,
    saved_calls,
    saved_calls_lm,
    scaling,
    skew,
    skew_regex,
    slices,
    tables,
    tokens_dfa_ablation,
)

if TYPE_CHECKING:
    from tokdfa.lab.declare.cells import Table
    from tokdfa.lab.declare.charts import Chart
    from tokdfa.lab.declare.results import Results
    from tokdfa.lab.report.data import RunData
    from tokdfa.lab.report.plots import Plot

_SPECIAL = {
    "scaling": scaling,
    "tokens_dfa_ablation": tokens_dfa_ablation,
    "saved_calls": saved_calls,
    "engine_ablation": engine_ablation,
    "slices": slices,
    "batch": batch,
    "skew_regex": skew_regex,
    "cost_vs_skew": cost_vs_skew,
    "skew": skew,
    "intoxication": intoxication,
    "improper_mass": improper_mass,
    "saved_calls_lm": saved_calls_lm,
    "maskbench": maskbench,
    "cfg_fsm": cfg_fsm,
    "cold_start": cold_start,
}


def build_tables(data: RunData) -> list[Table]:
    """All tables of a run that have a row, the main one first; the environment comes last, even if nothing is known.

    What an experiment on backends has measured beside them follows its own tables, sentences and plots.
    """
    built: list[Table] = []
    if data.kind == "backends":
        built += tables.build_tables(data) if len(data.items) else []
        for kind, section in data.sections.items():
            built += (_of_section(kind, table) for table in _special_tables(section))
    else:
        built += _special_tables(data)
    return [*(table for table in built if table.rows), tables.environment(data)]


def _of_section(kind: str, table: Table) -> Table:
    """`table` under a name that no other table of the page has."""
    return table if table.name.startswith(kind) else replace(table, name=f"{kind}_{table.name}")


def _special_tables(data: RunData) -> list[Table]:
    built: list[Table] = []
    if (results := _declared(data)) is not None:
        built += (table.build(results) for table in find_kind(data.kind).tables)
    elif len(data.results):
        built += _SPECIAL[data.kind].build_tables(data) if data.kind in _SPECIAL else [tables.plain_results(data)]
    return [*built, *([tables.failures(data)] if len(data.failures) else [])]


def _declared(data: RunData) -> Results | None:
    """The results of a kind that has declared how they are told; None of others."""
    kind = find_kind(data.kind) if data.kind in targets() and data.kind not in _SPECIAL else None
    if kind is None or not kind.columns:
        return None
    return kind.results(data.results, data.config)


def build_plots(data: RunData) -> list[Plot | Chart]:
    """All plots of a run, drawn or with the reason why not; none for a kind that nothing is known of."""
    if data.kind in _SPECIAL:
        return _SPECIAL[data.kind].build_plots(data)
    if (results := _declared(data)) is not None:
        return [chart.build(results) for chart in find_kind(data.kind).charts]
    if data.kind != "backends":
        return []
    return [*plots.build_plots(data), *(plot for section in data.sections.values() for plot in build_plots(section))]


def build_headlines(data: RunData) -> list[str]:
    """What the run found, in sentences computed from its data, after a warning if it was interrupted."""
    if data.kind == "backends":
        sentences = headlines.headlines(data)
        for section in data.sections.values():
            sentences += _special_headlines(section)
    else:
        sentences = _special_headlines(data)
    unfinished = (
        ["The run was interrupted: this is what it had finished."] if data.provenance.get("interrupted") else []
    )
    return [*unfinished, *sentences]


def _special_headlines(data: RunData) -> list[str]:
    known = _SPECIAL[data.kind].headlines(data) if data.kind in _SPECIAL else []
    if (results := _declared(data)) is not None:
        known = [line for sentence in find_kind(data.kind).sentences for line in sentence.sentences(results)]
        known = known if len(data.results) else ["The run has no results yet."]
    return [*known, *([headlines.success(data)] if len(data.failures) else [])]
