"""Reports on runs of kind ``batch``: what the masks of many matchers take, by size, and what calls for batches gain.

A *case* is a tokenizer and a constraint; a *contender* is a way to fill a batch with its number of threads. A gain is
the time of the loop over that of another contender of the same engine, within a case, size and phase.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare.cells import NOTHING, Cell, Table, count_cell, number_cell, readable, text_cell
from tokdfa.lab.report import style
from tokdfa.lab.report.metrics import Metric, format_seconds, short_factor, spread
from tokdfa.lab.report.plots import Plot, left_out
from tokdfa.lab.report.tables import failure_counts

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.lab.report.data import RunData

CASE = ["tokenizer", "constraint"]
#: Phase -> its words.
PHASES = {
    "seen": "masks that the constraint has filled before",
    "first": "first masks of a constraint that was just compiled",
}
#: Phase -> its words where there is little room.
SHORT = {"seen": "masks filled before", "first": "first masks"}
#: The call of the contender that others of its engine are compared with.
LOOP = "loop"
WHOLE = Metric("batch_time", "time of a batch", "time of filling all masks", "s", "results", "ns_median", factor=1e-9)
EACH = Metric(
    "batch_each", "time of a mask", "time of filling all masks over their number", "s", "results", "ns_median"
)
GAIN = Metric(
    "over_loop",
    "times as fast as the loop",
    "time of the engine's loop over that of its batch call",
    "ratio",
    "results",
    "ns_median",
    better="higher",
)
SIZE = Metric("batch_size", "matchers", "matchers whose masks are filled together", "", "results", "size")


def measured(data: RunData) -> pd.DataFrame:
    """The rows that succeeded with three more columns: ``contender``, ``seconds`` of a batch, ``each`` of a mask."""
    import pandas as pd

    rows = data.results[data.results["status"] == "ok"].reset_index(drop=True)
    seconds = pd.to_numeric(rows["ns_median"]).astype("float64") * WHOLE.factor
    return rows.assign(contender=_names(rows), seconds=seconds, each=seconds / rows["size"].astype("float64"))


def _names(rows: pd.DataFrame) -> list[str]:
    """``pushdown_trie batch, 2 threads``; one thread is not told."""
    return [
        f"{way}, {threads} threads" if threads > 1 else str(way)
        for way, threads in zip(rows["way"], rows["threads"].astype(int), strict=True)
    ]


def by_contender(data: RunData, column: str, phase: str) -> pd.DataFrame:
    """A column of `measured` in a phase: one row per case and size, one column per contender, NaN where none."""
    rows = measured(data)
    rows = rows[rows["phase"] == phase]
    table = rows.pivot_table(index=[*CASE, "size"], columns="contender", values=column, aggfunc="median", sort=False)
    return table[[name for name in dict.fromkeys(rows["contender"]) if name in table]]


def loops(data: RunData) -> dict[str, str]:
    """Contender -> the loop of its engine, of all contenders that are no loop and whose engine has one."""
    rows = measured(data)
    loop_of = {one["engine"]: one["contender"] for _, one in rows[rows["call"] == LOOP].iterrows()}
    others = rows[rows["call"] != LOOP]
    return {one["contender"]: loop_of[one["engine"]] for _, one in others.iterrows() if one["engine"] in loop_of}


def gains(data: RunData, phase: str) -> pd.DataFrame:
    """How many times as fast as their engine's loop: one row per case and size, one column per contender."""
    table = by_contender(data, "seconds", phase)
    pairs = {name: loop for name, loop in loops(data).items() if name in table and loop in table}
    found = table[list(pairs)].copy()
    for name, loop in pairs.items():
        found[name] = table[loop] / table[name]
    return found


def build_tables(data: RunData) -> list[Table]:
    """Times of batches in each phase, what calls for batches gain, and what failed."""
    return [*(times(data, phase) for phase in PHASES), gained(data), broken(data)]


def times(data: RunData, phase: str) -> Table:
    """One row per case and size, one column per contender: the time of the batch, and of a mask of it."""
    table, rows = by_contender(data, "seconds", phase), []
    counts = _counts(data)
    for where, line in zip(table.index.tolist(), table.to_dict("records"), strict=True):
        known = [value for value in line.values() if not math.isnan(value)]
        best = min(known) if len(known) > 1 else math.nan
        cells = []
        for name in table.columns:
            cell = number_cell(WHOLE, line[name], line[name] == best)
            if cell is not NOTHING:
                cell = cell._replace(detail=f"{format_seconds(line[name] / where[-1])} each")
            cells.append(cell)
        places, distinct = counts[where]
        rows.append((*map(text_cell, where[:-1]), *map(count_cell, (where[-1], places, distinct)), *cells))
    note = (
        f"Of {PHASES[phase]}: median time of filling all masks of a batch, and of one of them. Places: different ones "
        "of the random walks; masks: how many of those filled by the first way differ from each other. The lowest is "
        "bold."
    )
    columns = (*CASE, "matchers", "places", "masks", *map(str, table.columns))
    return Table(f"batch_{phase}", f"Time of a batch: {PHASES[phase]}", note, columns, tuple(rows))


def _counts(data: RunData) -> dict[tuple[Any, ...], tuple[float, float]]:
    """(tokenizer, constraint, size) -> how many places and masks are different."""
    return {
        (*(one[name] for name in CASE), one["size"]): (float(one["places"]), float(one["distinct_masks"]))
        for _, one in data.results.iterrows()
    }


def gained(data: RunData) -> Table:
    """One row per phase and contender that is no loop, one column per size: how many times as fast as the loop."""
    sizes = sorted(set(measured(data)["size"].astype(int)))
    rows = []
    for phase in PHASES:
        found = gains(data, phase)
        for name in found:
            ratios = found[name].dropna()
            if ratios.empty:
                continue
            sizes_of = ratios.index.get_level_values("size")
            cells = [_factor_cell(ratios[sizes_of == size]) for size in sizes]
            rows.append((text_cell(phase), text_cell(name), *cells))
    note = (
        "How many times as fast as the same engine's loop over single masks: median over the cases, and their range. "
        "Phases: " + "; ".join(f"{phase}, {words}" for phase, words in PHASES.items()) + "."
    )
    columns = ("phase", "way", *(f"{size} matchers" for size in sizes))
    return Table("gains", "What a call for the whole batch gains", note, columns, tuple(rows))


def _factor_cell(ratios: pd.Series[Any]) -> Cell:
    if ratios.empty:
        return NOTHING
    middle = float(ratios.median())
    return Cell(
        f"{short_factor(middle)}x", middle, detail=spread(float(ratios.min()), float(ratios.max())).strip(" ()")
    )


def broken(data: RunData) -> Table:
    """Every way that failed, or filled other masks than those of its lexing rule, with the reason."""
    failed = data.results[(data.results["status"] != "ok") & (data.results["phase"] == next(iter(PHASES)))]
    rows = [
        (
            *(text_cell(one[name]) for name in CASE),
            count_cell(float(one["size"])),
            text_cell(name),
            text_cell(readable(one["status"])),
            text_cell(one["message"]),
        )
        for name, (_, one) in zip(_names(failed), failed.iterrows(), strict=True)
    ]
    note = "Ways without a result, or whose masks are not those of the others; they are in no other table."
    columns = (*CASE, "matchers", "way", "status", "message")
    return Table("broken", "Failed ways", note, columns, tuple(rows))


def build_plots(data: RunData) -> list[Plot]:
    """The time of a mask by batch size in each phase, and what calls for batches gain."""
    if data.results.empty:
        return [left_out("batch", "Masks of many matchers", "the run has no results yet")]
    rows = measured(data)
    look = style.looks(dict(zip(rows["contender"], rows["engine"].astype(str), strict=True)))
    with style.drawing():
        return [each_plot(data, look), gains_plot(data, look)]


def each_plot(data: RunData, look: dict[str, style.Look]) -> Plot:
    """A curve per contender, a panel per phase: the time of a mask by batch size, median over the cases."""
    name, title = "each", "Time of a mask by batch size"
    tables = {phase: by_contender(data, "each", phase).groupby(level="size").median() for phase in PHASES}
    return _curves(name, title, tables, look, EACH, "Median over the cases. Lower is better.")


def gains_plot(data: RunData, look: dict[str, style.Look]) -> Plot:
    """A curve per contender that is no loop, a panel per phase: times as fast as the loop, median over the cases."""
    name, title = "gains", "What a call for the whole batch gains"
    tables = {phase: gains(data, phase).groupby(level="size").median() for phase in PHASES}
    plot = _curves(
        name, title, tables, look, GAIN, "Over the same engine's loop; median over the cases. Higher is better."
    )
    if plot.figure is not None:
        for axes in plot.figure.axes:
            axes.axhline(1, color=style.INK, linewidth=1)
    return plot


def _curves(
    name: str, title: str, tables: dict[str, pd.DataFrame], look: dict[str, style.Look], metric: Metric, caption: str
) -> Plot:
    """A panel per table with a row in it: its columns against its index, both axes logarithmic."""
    shown = {phase: table.dropna(axis=1, how="all") for phase, table in tables.items()}
    shown = {phase: table for phase, table in shown.items() if not table.empty and len(table.columns)}
    if not shown:
        return left_out(name, title, "no way has a result to show")
    figure, panels = style.new_figure(len(shown), 2.3, sharex=True)
    for axes, (phase, table) in zip(panels, shown.items(), strict=True):
        for column in table.columns:
            one = look[str(column)]
            axes.plot(table.index.to_numpy(dtype=float), table[column], **style.curve(one), marker=one.marker)
        axes.set_title(SHORT[phase])
        style.set_axis(axes, "y", metric, metric.title, log=True)
        style.set_axis(axes, "x", SIZE, "matchers", log=True)
        axes.set_xticks(table.index.to_numpy(dtype=float))
        axes.minorticks_off()
    for axes in panels[:-1]:
        axes.set_xlabel("")
    names = list(dict.fromkeys(str(column) for table in shown.values() for column in table.columns))
    style.legend(figure, names, look, "curves")
    return Plot(name, title, caption, figure)


def headlines(data: RunData) -> list[str]:
    """What a mask of the largest batch takes by contender, what batch calls and threads gain, and whether all agree."""
    if data.results.empty:
        return ["The run has no results yet."]
    sentences = []
    for phase, words in PHASES.items():
        table = by_contender(data, "each", phase)
        if table.empty:
            continue
        size = table.index.get_level_values("size").max()
        largest = table[table.index.get_level_values("size") == size]
        medians = largest.median().dropna().sort_values()
        parts = [f"{name} {format_seconds(value)}" for name, value in medians.items()]
        sentences.append(f"A mask of a batch of {size}, {words} (median of the cases): {'; '.join(parts)}.")
        found = gains(data, phase)
        found = found[found.index.get_level_values("size") == size]
        parts = [
            f"{name} {short_factor(ratios.median())}{spread(ratios.min(), ratios.max())}"
            for name, ratios in ((name, found[name].dropna()) for name in found)
            if len(ratios)
        ]
        if parts:
            sentences.append(f"Times as fast as the engine's own loop: {'; '.join(parts)}.")
    return [*sentences, *_other_masks(data), _same_masks(data)]


def _other_masks(data: RunData) -> list[str]:
    """Which engines of another lexing rule have filled other masks than the first way."""
    rows = data.results[(data.results["status"] == "ok") & (data.results["phase"] == next(iter(PHASES)))]
    rows = rows[(rows["call"] == LOOP) & (rows["differing"] > 0)]
    return [
        f"{engine} has another lexing rule: {int(group['differing'].sum()):,} of its {int(group['size'].sum()):,} "
        f"masks of these grammars are not those of {data.results['way'].iloc[0]}."
        for engine, group in rows.groupby("engine", sort=False)
    ]


def _same_masks(data: RunData) -> str:
    rows = data.results[data.results["phase"] == next(iter(PHASES))]
    counted = failure_counts(rows)
    if not counted:
        return f"All {len(rows):,} batches were filled: ways of one lexing rule gave the same masks."
    return f"Of {len(rows):,} batches these failed: {counted}."
