"""Reports on runs of kind ``proper_table2``: 002's Table 2, our algorithms and those of 002, on one machine.

Step by step a row for each engine, with the median over the constraints it finished. What 002 published was measured on
another machine, with other JSON texts; so it is shown, but ratios are taken only between engines of this run, on the
constraints that both finished.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.lab.declare.cells import NOTHING, Cell, Table, count_cell, status_cell, text_cell
from tokdfa.lab.report import style
from tokdfa.lab.report.data import complete_columns
from tokdfa.lab.report.metrics import Metric, format_bytes, format_seconds, short_factor
from tokdfa.lab.report.plots import Plot, left_out, slug
from tokdfa.lab.report.tables import failure_counts

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.lab.report.data import RunData

#: step -> what it does, and the seconds that 002 reports for it.
STEPS: dict[int, tuple[str, float]] = {
    1: ("proper sequences of the tokenizer", 20.9),
    2: ("token DFA of the constraint", 0.687),
    3: ("relevant pairs, or what takes their place", 27.3),
    4: ("a mask", 0.00153),
}
TIME = Metric("step_time", "time", "time of a step, median", "s", "results", "seconds")
_COLUMNS = (
    *("seconds", "compile_s", "p99_s", "again_s", "call_s", "masks", "differing", "pairs", "edges", "bytes"),
    *("states", "transitions"),
)


def measured(data: RunData) -> pd.DataFrame:
    """The rows of the run with every column there, and times as floating-point numbers (NaN where there is none)."""
    return complete_columns(data.results, (), _COLUMNS)


def entries(rows: pd.DataFrame) -> list[tuple[int, str]]:
    """(step, engine) in the order of the table."""
    found = dict.fromkeys(zip(rows["step"].astype(int), rows["engine"].astype(str), strict=True))
    return sorted(found, key=lambda entry: entry[0])


def of_engine(rows: pd.DataFrame, tokenizer: str, step: int, engine: str) -> pd.DataFrame:
    """The rows of one engine in one step, one for each constraint."""
    same = (rows["tokenizer"] == tokenizer) & (rows["step"] == step) & (rows["engine"] == engine)
    return rows[same]


def finished(mine: pd.DataFrame) -> pd.Series[float]:
    """The seconds of the rows that are all right."""
    return mine.loc[mine["status"] == "ok", "seconds"].dropna()


def build_tables(data: RunData) -> list[Table]:
    """Table 2; masks; relevance, masks and automata of every constraint; what went wrong."""
    rows = measured(data)
    tokenizers = [str(name) for name in dict.fromkeys(rows["tokenizer"])]
    return [
        _table2(rows, tokenizers),
        _masks(rows, tokenizers),
        _by_constraint(rows, 3, "Relevance by constraint"),
        _by_constraint(rows, 4, "Masks by constraint"),
        _automata(rows),
        _failures(rows),
    ]


def _table2(rows: pd.DataFrame, tokenizers: list[str]) -> Table:
    lines: list[tuple[Cell, ...]] = []
    for step, engine in entries(rows):
        activity, published = STEPS[step]
        first = not lines or lines[-1][0].value != str(step)
        cells = [_median_cell(of_engine(rows, tokenizer, step, engine)) for tokenizer in tokenizers]
        of_seed = Cell(format_seconds(published), published) if first else NOTHING
        lines.append((text_cell(str(step)), text_cell(activity), text_cell(engine), of_seed, *cells))
    note = (
        "Seconds: median over the constraints that the engine finished, with their range and number. Published: 002, "
        "on another machine, 1,000 JSON strings, Mistral's tokenizer; shown once a step. Step 2 is the whole compile. "
        "Step 3 leaves the byte DFA and the tokenizer's table out. Step 4 is the median mask of a constraint, "
        "Python call included."
    )
    columns = ("step", "activity", "engine", "published", *tokenizers)
    return Table("proper_table2", "The steps of CartesianMerge", note, columns, tuple(lines))


def _median_cell(mine: pd.DataFrame) -> Cell:
    """``0.61 s``, with the range and how many of how many finished; the status of the first if none did."""
    if mine.empty:
        return NOTHING
    good = finished(mine)
    if good.empty:
        return status_cell(str(mine["status"].iloc[0]))
    middle = float(good.median())
    if len(mine) == 1:
        return Cell(format_seconds(middle), middle)
    detail = f"{format_seconds(float(good.min()))} to {format_seconds(float(good.max()))}, {len(good)} of {len(mine)}"
    return Cell(format_seconds(middle), middle, detail=detail)


def _masks(rows: pd.DataFrame, tokenizers: list[str]) -> Table:
    lines = []
    for tokenizer in tokenizers:
        for step, engine in entries(rows):
            mine = of_engine(rows, tokenizer, step, engine)
            done = mine[mine["seconds"].notna()]
            if step != 4 or done.empty:
                continue
            times = [_seconds_cell(done[column].median()) for column in ("seconds", "p99_s", "again_s", "call_s")]
            counts = [count_cell(float(done[column].sum())) for column in ("masks", "differing")]
            lines.append((text_cell(tokenizer), text_cell(engine), count_cell(len(done)), *times, *counts))
    note = (
        "Medians over the constraints of: the median mask, the 99th percentile, the median when the walks are gone "
        "again, and what timing an empty Python call reports. Compared: masks that were compared with those of the "
        "first engine, bit by bit."
    )
    columns = ("tokenizer", "engine", "constraints", "median", "p99", "again", "empty call", "compared", "differ")
    return Table("proper_table2_masks", "Masks along texts and random walks", note, columns, tuple(lines))


def _seconds_cell(value: float) -> Cell:
    return NOTHING if np.isnan(value) else Cell(format_seconds(float(value)), float(value))


def _by_constraint(rows: pd.DataFrame, step: int, title: str) -> Table:
    """One row per tokenizer and constraint, one column per engine."""
    mine = rows[rows["step"] == step]
    engines = [engine for at, engine in entries(rows) if at == step]
    lines = []
    for (tokenizer, constraint), group in mine.groupby(["tokenizer", "constraint"], sort=False):
        found = {str(row["engine"]): row for _, row in group.iterrows()}
        best = group.loc[group["status"] == "ok", "seconds"].min()
        cells = [_time_cell(found[engine], best) if engine in found else NOTHING for engine in engines]
        lines.append((text_cell(tokenizer), text_cell(constraint), *cells))
    note = (
        "Seconds of the step, the visited pairs of a search, the memory of the compiled constraint. The lowest is bold."
        if step == 3
        else "Median mask, with the 99th percentile. The lowest is bold."
    )
    return Table(f"proper_table2_step{step}", title, note, ("tokenizer", "constraint", *engines), tuple(lines))


def _time_cell(row: pd.Series[Any], best: float) -> Cell:
    if row["status"] != "ok":
        return status_cell(str(row["status"]))
    if row["step"] == 4:
        detail = f"p99 {format_seconds(row['p99_s'])}"
    else:
        parts = [f"{row['pairs']:,.0f} pairs"] if row["pairs"] == row["pairs"] else []
        parts += [format_bytes(row["bytes"])] if row["bytes"] == row["bytes"] else []
        detail = ", ".join(parts)
    return Cell(format_seconds(row["seconds"]), row["seconds"], best=row["seconds"] == best, detail=detail)


def _automata(rows: pd.DataFrame) -> Table:
    """One row per tokenizer and constraint, one column per engine that compiles: how large, and made in what time."""
    mine = rows[rows["step"].isin((2, 3))]
    engines = [engine for step, engine in entries(rows) if step in (2, 3)]
    lines = []
    for (tokenizer, constraint), group in mine.groupby(["tokenizer", "constraint"], sort=False):
        found = {str(row["engine"]): row for _, row in group.iterrows()}
        cells = [_automaton_cell(found[engine]) if engine in found else NOTHING for engine in engines]
        lines.append((text_cell(tokenizer), text_cell(constraint), *cells))
    note = (
        "States, transitions, and the whole compile. An engine that settles states when a mask needs them has the "
        "transitions of those that it has settled."
    )
    return Table(
        "proper_table2_automata", "Automata by constraint", note, ("tokenizer", "constraint", *engines), tuple(lines)
    )


def _automaton_cell(row: pd.Series[Any]) -> Cell:
    if row["status"] != "ok":
        return status_cell(str(row["status"]))
    if np.isnan(row["states"]):
        return Cell(format_seconds(row["compile_s"]), row["compile_s"])
    parts = [] if np.isnan(row["transitions"]) else [f"{row['transitions']:,.0f} transitions"]
    return Cell(f"{row['states']:,.0f}", row["states"], detail=", ".join([*parts, format_seconds(row["compile_s"])]))


def _failures(rows: pd.DataFrame) -> Table:
    """One row per step, engine and reason, with the constraints it stands for."""
    failed = rows[rows["status"] != "ok"]
    lines = []
    for where, group in failed.groupby(["tokenizer", "step", "engine", "status", "message"], sort=False):
        tokenizer, step, engine, status, message = map(str, where)
        listed = ", ".join(dict.fromkeys(group["constraint"].astype(str)))
        cells = (text_cell(tokenizer), text_cell(step), text_cell(engine), status_cell(status))
        lines.append((*cells, text_cell(listed), text_cell(message)))
    columns = ("tokenizer", "step", "engine", "kind", "constraints", "reason")
    note = "An engine that fails in step 3 makes no masks, so it is listed for step 4 as well."
    return Table("proper_table2_failures", "What went wrong", note, columns, tuple(lines))


def build_plots(data: RunData) -> list[Plot]:
    """For each tokenizer: every engine's time in every step, a point per constraint."""
    title = "The steps of CartesianMerge"
    if data.results.empty:
        return [left_out("proper_table2", title, "the run has no results yet")]
    rows = measured(data)
    with style.drawing():
        return [_steps(rows, str(tokenizer)) for tokenizer in dict.fromkeys(rows["tokenizer"])]


def _steps(rows: pd.DataFrame, tokenizer: str) -> Plot:
    name, title = f"proper_table2_{slug(tokenizer)}", f"The steps of CartesianMerge: {tokenizer}"
    mine = rows[(rows["tokenizer"] == tokenizer) & (rows["status"] == "ok") & (rows["seconds"] > 0)]
    if mine.empty:
        return left_out(name, title, "no step was measured")
    shown = entries(mine)
    look = style.looks_in_order([f"step {step}" for step in STEPS])
    figure, (axes,) = style.new_figure(1, 0.6 + 0.27 * len(shown))
    for place, (step, engine) in enumerate(shown):
        seconds = of_engine(mine, tokenizer, step, engine)["seconds"]
        one = look[f"step {step}"]
        axes.scatter(seconds, np.full(len(seconds), place), color=one.colour, s=12, alpha=0.35, linewidths=0)
        axes.scatter([seconds.median()], [place], zorder=3, **(style.points(one) | {"s": 46}))
    for step in dict.fromkeys(step for step, _ in shown):
        places = [place for place, (at, _) in enumerate(shown) if at == step]
        published = STEPS[step][1]
        ends = [places[0] - 0.45, places[-1] + 0.45]
        axes.plot([published, published], ends, color=style.INK, linestyle=":", linewidth=1.6)
    axes.set_yticks(range(len(shown)), [f"{step}  {style.drawable(engine, 24)}" for step, engine in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    style.bare_rows(axes)
    axes.margins(x=0.06)
    style.set_axis(axes, "x", TIME, "time (left is better)", log=True)
    style.legend(figure, [f"step {step}" for step in dict.fromkeys(step for step, _ in shown)], look, "points")
    caption = (
        "Small points: constraints; large ones: their median. Dotted: what 002 published for the step, on another "
        "machine."
    )
    return Plot(name, title, caption, figure)


def headlines(data: RunData) -> list[str]:
    """Each step of each tokenizer, ratios to 002's search, masks compared, and what failed."""
    if data.results.empty:
        return ["The run has no results yet."]
    rows = measured(data)
    sentences = []
    for tokenizer in dict.fromkeys(rows["tokenizer"].astype(str)):
        for step, (activity, published) in STEPS.items():
            parts = [
                f"{engine} {format_seconds(float(good.median()))}"
                + (f" ({len(good)} of {len(mine)} constraints)" if len(good) < len(mine) else "")
                for at, engine in entries(rows)
                if at == step and len(good := finished(mine := of_engine(rows, tokenizer, step, engine)))
            ]
            if parts:
                sentences.append(
                    f"{tokenizer}, step {step} ({activity}): {', '.join(parts)}; 002 published "
                    f"{format_seconds(published)}, on another machine."
                )
        sentences += _ratios(rows, tokenizer)
    masks = rows[rows["step"] == 4]
    compared, differing = float(masks["masks"].sum()), float(masks["differing"].sum())
    sentences.append(f"{compared:,.0f} masks of proper engines compared bit by bit: {differing:,.0f} differ.")
    failed = rows[rows["status"] != "ok"]
    if len(failed):
        counts = failure_counts(failed)
        sentences.append(f"{len(failed)} of {len(rows)} measurements have no number or are wrong: {counts}.")
    return sentences


def _ratios(rows: pd.DataFrame, tokenizer: str) -> list[str]:
    """How the first engine compares with the searches over pairs, constraint by constraint."""
    sentences = []
    for step in (3, 4):
        engines = [engine for at, engine in entries(rows) if at == step]
        if not engines:
            continue
        first = _by_name(of_engine(rows, tokenizer, step, engines[0]))
        parts = []
        for other in engines[1:]:
            ratio = (_by_name(of_engine(rows, tokenizer, step, other)) / first).dropna()
            if len(ratio):
                low, high = short_factor(float(ratio.min())), short_factor(float(ratio.max()))
                middle = short_factor(float(ratio.median()))
                parts.append(
                    f"{other} {middle} times ({low} to {high}, {len(ratio)} constraint{'s' * (len(ratio) > 1)})"
                )
        if parts:
            listed = "; ".join(parts)
            sentences.append(f"{tokenizer}, step {step}, against {engines[0]}, constraint by constraint: {listed}.")
    return sentences


def _by_name(mine: pd.DataFrame) -> pd.Series[float]:
    good = mine[mine["status"] == "ok"]
    seconds: pd.Series[float] = good.set_index("constraint")["seconds"].astype("float64")
    return seconds
