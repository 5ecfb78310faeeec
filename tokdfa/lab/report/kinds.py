"""Which tables, plots and sentences a run of each kind gets. A new kind of experiment adds a module and a line here."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tokdfa.lab.report import (
    batch,
    canonicity,
    cfg_fsm,
    cold_start,
    cost_vs_skew,
    engine_ablation,
    headlines,
    improper_mass,
    intoxication,
    literal_muting,
    maskbench,
    plots,
    proper_scaling,
    proper_table2,
    regex_states,
    saved_calls,
    saved_calls_lm,
    scaling,
    skew,
    skew_regex,
    slices,
    tables,
    tokens_dfa_ablation,
    trie_walk,
    vegas,
)

if TYPE_CHECKING:
    from tokdfa.lab.report.cells import Table
    from tokdfa.lab.report.data import RunData
    from tokdfa.lab.report.plots import Plot

_SPECIAL = {
    "trie_walk": trie_walk,
    "regex_states": regex_states,
    "literal_muting": literal_muting,
    "scaling": scaling,
    "tokens_dfa_ablation": tokens_dfa_ablation,
    "saved_calls": saved_calls,
    "canonicity": canonicity,
    "proper_table2": proper_table2,
    "proper_scaling": proper_scaling,
    "vegas": vegas,
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
    if len(data.results):
        built += _SPECIAL[data.kind].build_tables(data) if data.kind in _SPECIAL else [tables.plain_results(data)]
    return [*built, *([tables.failures(data)] if len(data.failures) else [])]


def build_plots(data: RunData) -> list[Plot]:
    """All plots of a run, drawn or with the reason why not; none for a kind that nothing is known of."""
    if data.kind in _SPECIAL:
        return _SPECIAL[data.kind].build_plots(data)
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
    return [*known, *([headlines.success(data)] if len(data.failures) else [])]
