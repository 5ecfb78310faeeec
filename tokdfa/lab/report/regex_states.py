"""Reports on runs of kind ``regex_states``: how many states a regex's automaton has, by the way it is built.

Derivatives give one state per distinct expression, so every simplification law that makes two expressions one saves
states; subset construction gives one per set of positions of an NFA; the minimal DFA is the least there is. The claim
under test (000): with simplification the derivative automaton, while not minimal, is typically much smaller than the
unminimised result of subset construction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.lab.declare.cells import NOTHING, Table, number_cell, status_cell, text_cell
from tokdfa.lab.report import style
from tokdfa.lab.report.metrics import METRICS, short_factor, spread
from tokdfa.lab.report.plots import MAX_GROUPS, Plot, grouped_bars, left_out
from tokdfa.lab.report.tables import failure_counts

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.lab.report.data import RunData
    from tokdfa.lab.report.metrics import Metric

MINIMAL = "minimal"
ALL_LAWS = "all laws"
WITHOUT = "without "
#: A law matters where leaving it out multiplies the states by this or more.
MATTERS = 1.25


def variants(data: RunData) -> list[str]:
    """The ways of building, in the order of the run."""
    return [str(variant) for variant in dict.fromkeys(data.results["variant"])] if len(data.results) else []


def state_counts(data: RunData) -> pd.DataFrame:
    """States: one row per constraint, one column per variant, NaN where a variant did not finish."""
    results = data.results
    done = results[results["status"] == "ok"]
    table = done.pivot_table(index="constraint", columns="variant", values="states", aggfunc="first", sort=False)
    order = list(dict.fromkeys(results["constraint"]))
    return table.astype("float64").reindex(index=order, columns=variants(data))


def over_minimal(data: RunData) -> pd.DataFrame:
    """States over those of the minimal DFA, for the constraints whose minimal DFA is known; else empty."""
    counts = state_counts(data)
    if MINIMAL not in counts:
        return counts.iloc[:0]
    return counts.div(counts[MINIMAL], axis=0).dropna(subset=[MINIMAL])


def build_tables(data: RunData) -> list[Table]:
    """States and seconds: one row per constraint, one column per variant, or why there is no number."""
    return [
        _by_variant(data, METRICS["dfa_states"], "States of the byte automaton that each variant builds."),
        _by_variant(data, METRICS["build_time"], "Time to build all states of the automaton."),
    ]


def _by_variant(data: RunData, metric: Metric, note: str) -> Table:
    rows = []
    for constraint, group in data.results.groupby("constraint", sort=False):
        found = {str(entry["variant"]): entry for _, entry in group.iterrows()}
        row = [text_cell(constraint)]
        for variant in variants(data):
            if variant not in found:
                row.append(NOTHING)
            elif found[variant]["status"] != "ok":
                row.append(status_cell(found[variant]["status"]))
            else:
                row.append(number_cell(metric, float(found[variant][metric.column])))
        rows.append(tuple(row))
    title, columns = f"{metric.title} by variant".capitalize(), ("constraint", *variants(data))
    brief = tuple(column for column in columns if column not in laws(data))
    return Table(metric.name, title, note, columns, tuple(rows), brief)


def build_plots(data: RunData) -> list[Plot]:
    """The factor over the minimal DFA by variant, and the states of each constraint."""
    if data.results.empty:
        return [left_out("regex_states", "States by variant", "the run has no results yet")]
    with style.drawing():
        return [factor_bars(data), state_bars(data)]


def factor_bars(data: RunData) -> Plot:
    """Per variant the median over constraints of states over minimal states, with a line to the extremes."""
    name, title = "states_over_minimal", "States over those of the minimal DFA"
    factors = over_minimal(data).drop(columns=MINIMAL, errors="ignore").dropna(axis=1, how="all")
    if factors.empty or not len(factors.columns):
        return left_out(name, title, f"no constraint has both a {MINIMAL!r} DFA and another variant")
    look = style.looks_in_order(list(variants(data)))
    figure, (axes,) = style.new_figure(1, 0.4 + 0.27 * len(factors.columns))
    axes.set_xscale("log")
    for place, variant in enumerate(map(str, factors.columns)):
        column = factors[variant].dropna()
        axes.barh(place, column.median(), height=0.7, **style.bars(look[variant]))
        style.draw_range(axes, column.min(), column.max(), place)
        unfinished = len(factors) - len(column)
        note = f"{short_factor(column.median())}x" + (f" ({unfinished} unfinished)" if unfinished else "")
        style.annotate_end(axes, column.max(), place, note)
    axes.set_yticks(range(len(factors.columns)), [style.drawable(str(variant), 32) for variant in factors.columns])
    axes.set_ylim(len(factors.columns) - 0.4, -0.6)
    style.bare_rows(axes)
    axes.margins(x=0.25)
    style.set_axis(axes, "x", METRICS["state_factor"])
    caption = "Bars and numbers: median over the constraints that the variant finished; lines: lowest to highest."
    return Plot(name, title, caption, figure)


def state_bars(data: RunData) -> Plot:
    """The states of every constraint, one bar per variant; laws that hardly matter anywhere have none."""
    name, title = "states_by_constraint", "States by constraint"
    counts = state_counts(data)
    shown = counts.dropna(how="all").head(MAX_GROUPS)
    if shown.empty:
        return left_out(name, title, "no variant has finished on any constraint")
    idle = [law for law in laws(data) if (counts[law] < MATTERS * counts[ALL_LAWS]).all()]
    shown = shown.drop(columns=idle)
    figure = grouped_bars(shown, METRICS["dfa_states"], style.looks_in_order(variants(data)), {})
    caption = "A missing bar did not finish: see the table." if shown.isna().to_numpy().any() else ""
    if idle:
        caption += f" Not drawn, as they nowhere add a quarter to the states of all laws: {', '.join(idle)}."
    if len(counts) > len(shown):
        caption += f" {len(shown)} of {len(counts)} constraints; all are in the table."
    return Plot(name, title, caption.strip(), figure)


def laws(data: RunData) -> list[str]:
    """The variants that leave out one law, if there is a variant with all of them to compare with."""
    return [name for name in variants(data) if name.startswith(WITHOUT)] if ALL_LAWS in variants(data) else []


def headlines(data: RunData) -> list[str]:
    """The variants' states over the minimal DFA's, the law whose absence costs most, and what did not finish."""
    if data.results.empty:
        return ["The run has no results yet."]
    factors = over_minimal(data)
    sentences = []
    for variant in variants(data):
        column = factors[variant].dropna()
        if variant != MINIMAL and variant not in laws(data) and len(column):
            sentences.append(
                f"{variant}: {short_factor(column.median())} times the states of the minimal DFA"
                f"{spread(column.min(), column.max())}, median of {len(column)} constraints."
            )
    sentences += _costliest_law(data)
    failed = data.results[data.results["status"] != "ok"]
    if len(failed):
        sentences.append(f"{len(failed)} of {len(data.results)} builds did not finish: {failure_counts(failed)}.")
    return sentences


def _costliest_law(data: RunData) -> list[str]:
    """Which law, left out, adds most states over all constraints. A build that did not finish counts as its limit."""
    results = data.results
    total = results.groupby("variant", sort=False)["states"].sum()
    ranked = total[laws(data)].sort_values(ascending=False)
    if ranked.empty or ranked.iloc[0] <= total[ALL_LAWS]:
        return []
    law, states = str(ranked.index[0]), ranked.iloc[0]
    unfinished = int(((results["variant"] == law) & (results["status"] != "ok")).sum())
    more = f", {unfinished} of them unfinished and counted as their limit" if unfinished else ""
    return [
        f"Of single laws the costliest to leave out: {law}, with {states:,.0f} states over all constraints{more}, "
        f"against {total[ALL_LAWS]:,.0f} {ALL_LAWS}."
    ]
