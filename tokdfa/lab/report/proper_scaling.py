"""Reports on runs of kind ``proper_scaling``: growth of states, time and memory, and where an engine ends.

For each *series* (a tokenizer and a family) and engine the power law cost = c * states^p is fitted (`fit_power` of
`tokdfa.lab.report.scaling`), the states being those of the minimal byte DFA. A fit needs `FEWEST_POINTS` sizes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.lab.declare.cells import NOTHING, Cell, Table, count_cell, number_cell, status_cell, text_cell
from tokdfa.lab.report import style
from tokdfa.lab.report.data import complete_columns
from tokdfa.lab.report.metrics import METRICS, Metric
from tokdfa.lab.report.plots import Plot, left_out, slug
from tokdfa.lab.report.scaling import FEWEST_POINTS, fit_power
from tokdfa.lab.report.tables import failure_counts

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.lab.report.data import RunData

TIME = Metric("proper_time", "time", "compile time without byte DFA and tokenizer", "s", "results", "own_s")
MEMORY = Metric("proper_bytes", "memory", "memory of the compiled constraint", "B", "results", "bytes")
TRANSITIONS = Metric("proper_transitions", "transitions", "transitions of the automaton", "", "results", "transitions")
COSTS = (TIME, MEMORY, TRANSITIONS)
_NUMBERS = ("parameter", "states", "compile_s", "own_s", "index_states", "transitions", "bytes")
_SERIES = ["tokenizer", "family"]


def measured(data: RunData) -> pd.DataFrame:
    """The rows of the run with every column there, numbers as floating-point numbers (NaN where there is none)."""
    return complete_columns(data.results, (), _NUMBERS)


def exponents(rows: pd.DataFrame, cost: Metric) -> dict[tuple[str, str, str], float]:
    """(tokenizer, family, engine) -> the exponent of a cost against the states, where enough sizes are known."""
    found = {}
    for where, group in rows.groupby([*_SERIES, "engine"], sort=False):
        known = group[(group[cost.column] > 0) & (group["states"] > 0)]
        if known["states"].nunique() >= FEWEST_POINTS:
            tokenizer, family, engine = map(str, where)
            found[tokenizer, family, engine] = fit_power(known["states"], known[cost.column]).exponent
    return found


def build_tables(data: RunData) -> list[Table]:
    """Where each engine ends; exponents; every size."""
    rows = measured(data)
    return [_ends(rows), *(_exponents(rows, cost) for cost in COSTS), *(_series(rows, cost) for cost in COSTS)]


def _engines(rows: pd.DataFrame) -> list[str]:
    return [str(engine) for engine in dict.fromkeys(rows["engine"])]


def _ends(rows: pd.DataFrame) -> Table:
    """One row per series: the largest size of each engine, and what kept it from a larger one."""
    lines = []
    for where, group in rows.groupby(_SERIES, sort=False):
        cells = [_end_cell(group[group["engine"] == engine]) for engine in _engines(rows)]
        lines.append((*map(text_cell, map(str, where)), count_cell(group["parameter"].max()), *cells))
    note = "The largest n that the engine finished, with its states, and why it was asked for no larger one."
    columns = ("tokenizer", "family", "largest n", *_engines(rows))
    return Table("proper_scaling_ends", "How far each engine gets", note, columns, tuple(lines))


def _end_cell(mine: pd.DataFrame) -> Cell:
    done = mine[mine["status"] == "ok"]
    if done.empty:
        return status_cell(str(mine["status"].iloc[0])) if len(mine) else NOTHING
    last = done.sort_values("parameter").iloc[-1]
    later = mine[(mine["parameter"] > last["parameter"]) & (mine["status"] != "ok")]
    parts = [f"{last['index_states']:,.0f} states"] if last["index_states"] == last["index_states"] else []
    if len(later):
        status = str(later["status"].iloc[0])
        parts.append("then too slow" if status == "not_asked" else f"then {status}")
    return count_cell(last["parameter"])._replace(detail=", ".join(parts))


def _exponents(rows: pd.DataFrame, cost: Metric) -> Table:
    """One row per series, one column per engine."""
    found = exponents(rows, cost)
    lines = []
    for where in dict.fromkeys(zip(rows["tokenizer"].astype(str), rows["family"].astype(str), strict=True)):
        values = [found.get((*where, engine)) for engine in _engines(rows)]
        cells = [NOTHING if value is None else Cell(f"{value:.2f}", value) for value in values]
        lines.append((*map(text_cell, where), *cells))
    note = (
        f"Exponent p of {cost.title} = c * states^p, the states being those of the minimal byte DFA. "
        f"Missing where fewer than {FEWEST_POINTS} sizes are known."
    )
    title = f"Growth of {cost.title}: exponents"
    return Table(f"{cost.name}_exponents", title, note, ("tokenizer", "family", *_engines(rows)), tuple(lines))


def _series(rows: pd.DataFrame, cost: Metric) -> Table:
    """One row per size."""
    lines = []
    for _, group in rows.groupby([*_SERIES, "parameter"], sort=False):
        one, found = group.iloc[0], {str(row["engine"]): row for _, row in group.iterrows()}
        best = group[cost.column].min()
        cells = [_cost_cell(found[engine], cost, best) if engine in found else NOTHING for engine in _engines(rows)]
        place = (text_cell(one["tokenizer"]), text_cell(one["family"]))
        lines.append((*place, count_cell(one["parameter"]), count_cell(one["states"]), *cells))
    columns = ("tokenizer", "family", "n", "states", *_engines(rows))
    note = f"{cost.description[0].upper()}{cost.description[1:]}. The lowest is bold."
    return Table(f"{cost.name}_series", f"All sizes: {cost.title}", note, columns, tuple(lines))


def _cost_cell(row: pd.Series[Any], cost: Metric, best: float) -> Cell:
    if row["status"] != "ok":
        return status_cell(str(row["status"]))
    return number_cell(cost, float(row[cost.column]), best=row[cost.column] == best)


def build_plots(data: RunData) -> list[Plot]:
    """For each cost and tokenizer a plot, a panel per family, both axes logarithmic."""
    if data.results.empty:
        return [left_out("proper_scaling", "Growth with the constraint", "the run has no results yet")]
    rows = measured(data)
    look = style.looks(dict(zip(rows["engine"].astype(str), rows["backend"].astype(str), strict=True)))
    with style.drawing():
        return [
            _lines(mine, str(tokenizer), cost, look)
            for tokenizer, mine in rows.groupby("tokenizer", sort=False)
            for cost in COSTS
        ]


def _lines(rows: pd.DataFrame, tokenizer: str, cost: Metric, look: dict[str, style.Look]) -> Plot:
    name = f"{cost.name}_{slug(tokenizer)}"
    title = f"{cost.title.capitalize()} against DFA states: {tokenizer}"
    known = rows[(rows[cost.column] > 0) & (rows["states"] > 0)]
    if known.empty:
        return left_out(name, title, "no engine has finished a size")
    families = [str(family) for family in dict.fromkeys(known["family"])]
    figure, panels = style.new_figure(len(families), 1.75, sharex=True, sharey=True)
    for axes, family in zip(panels, families, strict=True):
        for engine, one in look.items():
            mine = known[(known["family"] == family) & (known["engine"] == engine)].sort_values("states")
            axes.plot(mine["states"], mine[cost.column], marker=one.marker, markersize=4, **style.curve(one))
        axes.set_title(style.drawable(family, 40))
        axes.set_xscale("log")
        style.set_axis(axes, "y", cost, "", log=True)
    figure.supylabel(f"{cost.title} (lower is better)", fontsize=style.RC["axes.labelsize"])
    style.set_axis(panels[-1], "x", METRICS["dfa_states"], "states of the minimal byte DFA")
    style.legend(figure, list(look), look, "curves")
    ended = [str(engine) for engine in dict.fromkeys(rows.loc[rows["status"] != "ok", "engine"])]
    caption = f"{cost.description[0].upper()}{cost.description[1:]}; both axes are logarithmic."
    if ended:
        caption += f" Lines that end early, see the table: {', '.join(ended)}."
    return Plot(name, title, caption, figure)


def headlines(data: RunData) -> list[str]:
    """How far each engine gets, how its costs grow, and what has no number."""
    if data.results.empty:
        return ["The run has no results yet."]
    rows = measured(data)
    sentences = []
    for tokenizer, group in rows.groupby("tokenizer", sort=False):
        series = group["family"].nunique()
        parts = []
        for engine in _engines(group):
            mine = group[group["engine"] == engine]
            whole = sum(bool((family["status"] == "ok").all()) for _, family in mine.groupby("family"))
            most = mine.loc[mine["status"] == "ok", "transitions"].max()
            parts.append(f"{engine} {whole}" + ("" if np.isnan(most) else f" (up to {most:,.0f} transitions)"))
        sentences.append(f"{tokenizer}: of {series} families, finished up to the largest size: {', '.join(parts)}.")
    for cost in (TIME, MEMORY):
        found = exponents(rows, cost)
        parts = []
        for engine in _engines(rows):
            values = [value for (_, _, by), value in found.items() if by == engine]
            if values:
                span = f"{min(values):.2f} to {max(values):.2f}, {len(values)} series"
                parts.append(f"{engine} {np.median(values):.2f} ({span})")
        if parts:
            sentences.append(f"{cost.title.capitalize()} against DFA states, median exponent: {'; '.join(parts)}.")
    failed = rows[rows["status"] != "ok"]
    if len(failed):
        sentences.append(f"{len(failed)} of {len(rows)} measurements have no number: {failure_counts(failed)}.")
    return sentences
