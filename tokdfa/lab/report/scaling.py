"""Reports on runs of kind ``scaling``: growth of compile cost with DFA states, vocabulary size and token length.

For each *series* (axis, tokenizer, family) and engine the power law cost = c * size^p is fitted by least squares of the
logarithms. The exponent p says how cost grows: 1 is proportional, 0 is not at all, 2 is four times for twice the size.
Its standard error is that of the slope; R2 is the share of the logarithms' variance that the line explains.

Two kinds of points are measured and shown, but take no part in a fit:

- sizes up to the last one whose point lies below the *noise floor*, which is `FLOOR` times what the same engine needs
  for a one-letter regex on the single bytes: there, the fixed cost of a compile would hide the growth. (Taking single
  points by their height instead would choose those that noise has lifted);
- on the axis of token length, points with clearly fewer tokens than the others of their series (there are few short
  tokens), since they would be cheaper for that reason alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokdfa.lab.declare.cells import NOTHING, Cell, Table, count_cell, number_cell, status_cell, text_cell
from tokdfa.lab.report import style
from tokdfa.lab.report.metrics import METRICS, Metric
from tokdfa.lab.report.plots import Plot, left_out, slug
from tokdfa.lab.report.tables import failure_counts

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from tokdfa.lab.report.data import RunData

#: Points below this many times the engine's fixed cost are not fitted.
FLOOR = 2.0
#: A line through fewer points than these says nothing.
FEWEST_POINTS = 4
#: On the axis of token length, the share of the largest vocabulary of the series that a point must have.
EQUAL_TOKENS = 0.9

INDEX = Metric("index_time", "index part", "compile time without what all share", "s", "results", "index_s")
COMPILE = Metric("whole_compile", "whole compile", "compile time, median", "s", "results", "compile_s")
_RETAINED = Metric("index_bytes", "compiled size", "bytes of the compiled tables", "B", "results", "bytes")
#: axis -> what its series grow in: the column that is fitted against, and what to call it.
AXES: dict[str, Metric] = {
    "states": METRICS["dfa_states"],
    "vocabulary": Metric("tokens", "tokens", "tokens that spell", "", "results", "vocab_tokens", better="neither"),
    "token_length": Metric(
        "token_bytes", "mean token bytes", "mean bytes of a token", "", "results", "mean_token_bytes", better="neither"
    ),
}
_AGAINST = {"states": "DFA states", "vocabulary": "vocabulary size", "token_length": "mean token bytes"}
_SERIES = ["axis", "tokenizer", "family"]
_NUMBERS = (
    *("parameter", "states", "vocab_tokens", "mean_token_bytes", "compile_s", "index_s"),
    *("fixed_compile_s", "fixed_index_s", "bytes", "token_classes"),
)


class PowerFit(NamedTuple):
    """cost = c * size^exponent. `error`: standard error of the exponent, NaN for two points; `points` were fitted."""

    exponent: float
    error: float
    r2: float
    points: int


def fit_power(sizes: npt.ArrayLike, costs: npt.ArrayLike) -> PowerFit:
    """Least squares of log(cost) against log(size). Needs two different sizes; all values are above 0."""
    x, y = np.log(np.asarray(sizes, dtype=np.float64)), np.log(np.asarray(costs, dtype=np.float64))
    spread = float(((x - x.mean()) ** 2).sum())
    exponent = float(((x - x.mean()) * (y - y.mean())).sum()) / spread
    unexplained = float(((y - y.mean() - exponent * (x - x.mean())) ** 2).sum())
    total = float(((y - y.mean()) ** 2).sum())
    error = float(np.sqrt(unexplained / (len(x) - 2) / spread)) if len(x) > 2 else float("nan")
    return PowerFit(exponent, error, 1 - unexplained / total if total else float("nan"), len(x))


def measured(data: RunData) -> pd.DataFrame:
    """The rows of the run, axis by axis, with floating-point numbers (NaN where there is none) and three more columns.

    ``comparable``: the point has a cost, and a vocabulary like the others of its series; ``fitted``: it is also above
    the noise floor; ``fitted_compile``: the same for the whole compile.
    """
    rows = data.results.sort_values("axis", key=lambda axis: axis.map(list(AXES).index), kind="stable")
    for column in (*_NUMBERS, "index_part"):
        if column not in rows:  # nothing was measured
            rows[column] = float("nan")
    for column in _NUMBERS:
        rows[column] = rows[column].astype("float64")
    most = rows.groupby(_SERIES)["vocab_tokens"].transform("max")
    equal = (rows["axis"] != "token_length") | (rows["vocab_tokens"] >= EQUAL_TOKENS * most)
    rows["comparable"] = equal & rows["index_s"].notna()
    for name, cost in (("fitted", "index_s"), ("fitted_compile", "compile_s")):
        rows[name] = rows["comparable"] & ~_buried(rows, rows[cost] <= FLOOR * rows[f"fixed_{cost}"])
    return rows


def _buried(rows: pd.DataFrame, below: pd.Series[bool]) -> pd.Series[bool]:
    """Which points are at most as large as one of their series and engine that lies below the noise floor."""
    last = rows["parameter"].where(below).groupby([rows[column] for column in [*_SERIES, "engine"]]).transform("max")
    return rows["parameter"] <= last


def fits(rows: pd.DataFrame, cost: Metric = INDEX) -> dict[tuple[str, str, str, str], PowerFit | None]:
    """(axis, tokenizer, family, engine) -> the fit of `INDEX` or `COMPILE`; None if too few points are above the floor.

    `rows` is what `measured` gives.
    """
    found: dict[tuple[str, str, str, str], PowerFit | None] = {}
    for (axis, tokenizer, family, engine), group in rows.groupby([*_SERIES, "engine"], sort=False):
        used = group[group["fitted" if cost is INDEX else "fitted_compile"]]
        sizes = used[AXES[str(axis)].column]
        known = sizes.notna()
        enough = sizes.nunique() >= FEWEST_POINTS
        fit = fit_power(sizes[known], used.loc[known, cost.column]) if enough else None
        found[str(axis), str(tokenizer), str(family), str(engine)] = fit
    return found


def build_tables(data: RunData) -> list[Table]:
    """The exponents by axis and by series, the sizes of the largest compiled tables, and every series."""
    rows = measured(data)
    series = [_series_table(rows, axis) for axis in _axes(rows)]
    return [_growth(rows), _exponents(rows, INDEX), _exponents(rows, COMPILE), _largest(rows), *series]


def _axes(rows: pd.DataFrame) -> list[str]:
    return [axis for axis in AXES if (rows["axis"] == axis).any()]


def _engines(rows: pd.DataFrame) -> list[str]:
    return [str(engine) for engine in dict.fromkeys(rows["engine"])]


def _whole(rows: pd.DataFrame) -> str:
    """Those whose index part is the whole compile."""
    return ", ".join(dict.fromkeys(rows.loc[rows["index_part"] == "whole compile", "engine"].astype(str)))


def _peers_note(rows: pd.DataFrame) -> str:
    whole = _whole(rows)
    return f" Of {whole} it is the whole compile." if whole else ""


def _growth(rows: pd.DataFrame) -> Table:
    """One row per axis, one column per engine: the median of the exponents over the series."""
    found, entries = fits(rows), []
    for axis in _axes(rows):
        cells = []
        for engine in _engines(rows):
            exponents, series = _of_axis(found, axis, engine)
            detail = f"{_range(exponents)}, {len(exponents)} of {series}" if exponents else f"0 of {series}"
            middle = float(np.median(exponents)) if exponents else float("nan")
            cells.append(Cell(f"{middle:.2f}", middle, detail=detail) if exponents else NOTHING._replace(detail=detail))
        entries.append((text_cell(_AGAINST[axis]), *cells))
    note = (
        f"Exponent p of cost = c * size^p, cost being the index part.{_peers_note(rows)} Median over the series (a "
        "tokenizer and a family) that can be fitted, their range, and how many of how many they are."
    )
    title = "Growth of the index part: exponents by axis"
    return Table("growth", title, note, ("against", *_engines(rows)), tuple(entries))


def _of_axis(
    found: dict[tuple[str, str, str, str], PowerFit | None], axis: str, engine: str
) -> tuple[list[float], int]:
    """The exponents of an engine on an axis, and the number of series, fitted or not."""
    mine = [fit for (on, _, _, by), fit in found.items() if (on, by) == (axis, engine)]
    return [fit.exponent for fit in mine if fit is not None], len(mine)


def _range(exponents: list[float]) -> str:
    return f"{min(exponents):.2f} to {max(exponents):.2f}"


def _exponents(rows: pd.DataFrame, cost: Metric) -> Table:
    """One row per series, one column per engine: the exponent with its standard error."""
    found = fits(rows, cost)
    entries = []
    for where, group in rows.groupby(_SERIES, sort=False):
        axis, tokenizer, family = map(str, where)
        cells = [
            _exponent_cell(found.get((axis, tokenizer, family, engine)), group[group["engine"] == engine], cost)
            for engine in _engines(rows)
        ]
        entries.append((text_cell(_AGAINST[axis]), text_cell(tokenizer), text_cell(family), *cells))
    what = "the compile without parse, automaton and minimisation" if cost is INDEX else "all of the compile"
    note = (
        f"Exponent p of cost = c * size^p with its standard error; cost is {what}.{_peers_note(rows) * (cost is INDEX)}"
        f" Fitted over the points above {FLOOR:g} times the engine's fixed cost (a one-letter regex on the single "
        f"bytes); where fewer than {FEWEST_POINTS} are left, the reason and the highest cost stand instead."
    )
    if "token_length" in _axes(rows):
        note += " Against the length, only over vocabularies of equal size."
    columns = ("against", "tokenizer", "family", *_engines(rows))
    name, title = f"exponents_{cost.column.removesuffix('_s')}", f"Growth of the {cost.title}: exponents"
    return Table(name, title, note, columns, tuple(entries))


def _exponent_cell(fit: PowerFit | None, points: pd.DataFrame, cost: Metric) -> Cell:
    if fit is not None:
        return Cell(
            f"{fit.exponent:.2f} ± {fit.error:.2f}", fit.exponent, detail=f"R² {fit.r2:.2f}, {fit.points} points"
        )
    highest = points[cost.column].max()
    if np.isnan(highest):
        return status_cell(points["status"].iloc[0]) if len(points) else NOTHING
    return Cell(_why_no_fit(points), float("nan"), detail=f"up to {cost.format(highest)}")


def _why_no_fit(points: pd.DataFrame) -> str:
    """Why the points of one engine and series give no exponent."""
    return "too few sizes" if points["comparable"].sum() < FEWEST_POINTS else "too cheap"


def _largest(rows: pd.DataFrame) -> Table:
    """One row per series: the bytes and token classes of each engine's tables at the largest size that it reached."""
    entries = []
    for where, group in rows.groupby(_SERIES, sort=False):
        axis, tokenizer, family = map(str, where)
        largest = group["parameter"].max()
        cells = []
        for engine in _engines(rows):
            done = group[(group["engine"] == engine) & (group["status"] == "ok")]
            cells.append(_size_cell(done.sort_values("parameter").iloc[-1], largest) if len(done) else NOTHING)
        entries.append(
            (text_cell(_AGAINST[axis]), text_cell(tokenizer), text_cell(family), count_cell(largest), *cells)
        )
    note = "Bytes of the compiled tables, as the engine counts them, at the largest size; or at the size that is named."
    columns = ("against", "tokenizer", "family", "largest size", *_engines(rows))
    return Table("largest", "Compiled size at the end of each series", note, columns, tuple(entries))


def _size_cell(entry: pd.Series[Any], largest: float) -> Cell:
    cell = number_cell(_RETAINED, float(entry["bytes"]))
    parts = [f"{entry['token_classes']:,.0f} classes"] if entry["token_classes"] == entry["token_classes"] else []
    parts += [f"at {entry['parameter']:,.0f}"] if entry["parameter"] < largest else []
    return cell._replace(detail=", ".join(parts)) if cell is not NOTHING else cell


def _series_table(rows: pd.DataFrame, axis: str) -> Table:
    """One row per size of a series: what every engine needed, or why there is no number."""
    mine = rows[rows["axis"] == axis]
    entries = []
    for _, group in mine.groupby(["tokenizer", "family", "parameter"], sort=False):
        one, found = group.iloc[0], {str(entry["engine"]): entry for _, entry in group.iterrows()}
        best = group["index_s"].min()
        cells = [_time_cell(found[engine], best) if engine in found else NOTHING for engine in _engines(rows)]
        counts = (one["parameter"], one["states"], one["vocab_tokens"], one["mean_token_bytes"])
        entries.append((text_cell(one["tokenizer"]), text_cell(one["family"]), *map(count_cell, counts), *cells))
    columns = ("tokenizer", "family", "size", "states", "tokens", "mean bytes", *_engines(rows))
    note = (
        f"Index part, median of the repeats, with the whole compile behind it.{_peers_note(rows)} The lowest is bold."
    )
    return Table(f"series_{axis}", f"Cost against {_AGAINST[axis]}", note, columns, tuple(entries))


def _time_cell(entry: pd.Series[Any], best: float) -> Cell:
    if entry["status"] != "ok":
        return status_cell(entry["status"])
    cell = number_cell(INDEX, entry["index_s"], best=entry["index_s"] == best)
    whole = COMPILE.format(entry["compile_s"])
    return cell if entry["index_part"] == "whole compile" else cell._replace(detail=f"of {whole}")


def build_plots(data: RunData) -> list[Plot]:
    """For each axis and tokenizer: the index part against the size, a panel per family, both axes logarithmic."""
    if data.results.empty:
        return [left_out("scaling", "Compile cost by size", "the run has no results yet")]
    rows = measured(data)
    look = style.looks(dict(zip(rows["engine"].astype(str), rows["backend"].astype(str), strict=True)))
    with style.drawing():
        return [
            _lines(mine, str(tokenizer), axis, look)
            for axis in _axes(rows)
            for tokenizer, mine in rows[rows["axis"] == axis].groupby("tokenizer", sort=False)
        ]


def _lines(rows: pd.DataFrame, tokenizer: str, axis: str, look: dict[str, style.Look]) -> Plot:
    name, title = f"scaling_{axis}_{slug(tokenizer)}", f"Index part against {_AGAINST[axis]}: {tokenizer}"
    metric = AXES[axis]
    known = rows[(rows["index_s"] > 0) & rows[metric.column].notna()]
    if known.empty:
        return left_out(name, title, "no engine has finished a size")
    families = [str(family) for family in dict.fromkeys(known["family"])]
    figure, panels = style.new_figure(len(families), 1.75, sharex=True, sharey=True)
    for axes, family in zip(panels, families, strict=True):
        mine = known[known["family"] == family]
        for engine, one in look.items():
            points = mine[mine["engine"] == engine].sort_values(metric.column)
            sizes, costs, fitted = points[metric.column], points["index_s"], points["fitted"]
            axes.plot(sizes, costs, **style.curve(one))
            marks = {"color": one.colour, "marker": one.marker, "linestyle": "", "markersize": 4}
            axes.plot(sizes[fitted], costs[fitted], **marks)
            axes.plot(sizes[~fitted], costs[~fitted], **marks, markerfacecolor=style.PAPER)
        axes.set_title(style.drawable(family, 40))
        axes.set_yscale("log")
        axes.set_xscale("log")
    low, high = known[metric.column].min(), known[metric.column].max()
    for axes in panels:
        bottom, top = axes.get_ylim()
        start = known["index_s"].min()
        axes.plot([low, high], [start, start * high / low], color=style.MUTED, linestyle=":", linewidth=1)
        axes.set_ylim(bottom, top)
        style.set_axis(axes, "y", INDEX, "", log=True)
    figure.supylabel("index part (lower is better)", fontsize=style.RC["axes.labelsize"])
    style.set_axis(panels[-1], "x", metric, _AGAINST[axis])
    style.legend(figure, list(look), look, "curves")
    caption = (
        "Medians of the repeats; both axes are logarithmic. Hollow points are not fitted: they are near the engine's "
        "fixed cost, or have fewer tokens than the others. Dotted: proportional to the size." + _unfinished(rows)
    )
    return Plot(name, title, caption, figure)


def _unfinished(rows: pd.DataFrame) -> str:
    stopped = [str(engine) for engine in dict.fromkeys(rows.loc[rows["status"] != "ok", "engine"])]
    return f" Lines that end early, see the table: {', '.join(stopped)}." if stopped else ""


def headlines(data: RunData) -> list[str]:
    """Exponents by axis and engine, as medians over the series, and what was not measured."""
    if data.results.empty:
        return ["The run has no results yet."]
    rows = measured(data)
    found = fits(rows)
    what = "Index part" + (f" (whole compile of {_whole(rows)})" if _whole(rows) else "")
    sentences = []
    for axis in _axes(rows):
        parts = [part for engine in _engines(rows) if (part := _grows(engine, axis, rows, found))]
        if parts:
            heading = f"{what} against {_AGAINST[axis]}, exponent (median of the series, range)"
            sentences.append(f"{heading}: {'; '.join(parts)}.")
    failed = rows[rows["status"] != "ok"]
    if len(failed):
        sentences.append(f"{len(failed)} of {len(rows)} measurements have no number: {failure_counts(failed)}.")
    return sentences


def _grows(engine: str, axis: str, rows: pd.DataFrame, found: dict[tuple[str, str, str, str], PowerFit | None]) -> str:
    """``token_index 0.98 (0.51 to 1.10, 8 series)``; empty if the engine measured nothing on this axis."""
    mine = rows[(rows["axis"] == axis) & (rows["engine"] == engine)]
    if mine["index_s"].isna().all():
        return ""
    exponents, series = _of_axis(found, axis, engine)
    if not exponents:
        reasons = dict.fromkeys(_why_no_fit(points) for _, points in mine.groupby(_SERIES, sort=False))
        return f"{engine} {' or '.join(reasons)} to tell, up to {INDEX.format(mine['index_s'].max())}"
    count = f"{len(exponents)} of {series} series" if len(exponents) < series else f"{series} series"
    return f"{engine} {np.median(exponents):.2f} ({_range(exponents)}, {count})"
