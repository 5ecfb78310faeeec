"""Which tables, plots and sentences a run of each kind gets. A new kind of experiment adds a module and a line here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.report import (
    canonicity,
    headlines,
    literal_muting,
    plots,
    proper_scaling,
    proper_table2,
    regex_states,
    saved_calls,
    scaling,
    tables,
    tokens_dfa_ablation,
    trie_walk,
    vegas,
)

if TYPE_CHECKING:
    from tokdfa.report.cells import Table
    from tokdfa.report.data import RunData
    from tokdfa.report.plots import Plot

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
}


def build_tables(data: RunData) -> list[Table]:
    """All tables of a run that have a row, the main one first; the environment comes last, even if nothing is known."""
    built: list[Table] = []
    if data.kind == "backends":
        built += tables.build_tables(data) if len(data.items) else []
    else:
        if len(data.results):
            built += _SPECIAL[data.kind].build_tables(data) if data.kind in _SPECIAL else [tables.plain_results(data)]
        built += [tables.failures(data)] if len(data.failures) else []
    return [*(table for table in built if table.rows), tables.environment(data)]


def build_plots(data: RunData) -> list[Plot]:
    """All plots of a run, drawn or with the reason why not; none for a kind that nothing is known of."""
    if data.kind in _SPECIAL:
        return _SPECIAL[data.kind].build_plots(data)
    return plots.build_plots(data) if data.kind == "backends" else []


def build_headlines(data: RunData) -> list[str]:
    """What the run found, in sentences computed from its data, after a warning if it was interrupted."""
    if data.kind == "backends":
        sentences = headlines.headlines(data)
    else:
        known = _SPECIAL[data.kind].headlines(data) if data.kind in _SPECIAL else []
        sentences = [*known, *([headlines.success(data)] if len(data.failures) else [])]
    unfinished = (
        ["The run was interrupted: this is what it had finished."] if data.provenance.get("interrupted") else []
    )
    return [*unfinished, *sentences]
