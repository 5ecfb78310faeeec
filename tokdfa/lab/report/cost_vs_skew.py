"""Reports on runs of kind ``cost_vs_skew``: what strategies cost against how far their answers are from the ideal.

A *point* is a strategy, its total variation the mean over the entries where it was measured. Of local masking it is
exact. Of strategies that were only drawn from, the mean of the cross-fitted estimates is too small in expectation and
that of the plug-in estimates too large (`tokdfa.lab.measure.drawn_skew`); a sentence that one is above or below another
is told only if it holds at the unfavourable end, 1.96 standard errors away. The errors are those of sampling: the
entries are taken as they are. Not every strategy has an answer to every entry, so each is compared with local masking
by the same engine on the same entries.

Costs are for one answer (a text), medians over the entries: the engine's time for masks, single-token checks and
advances, by token of the answer; and all time, with the model's rows and calls, by answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokdfa.lab.declare.cells import NOTHING, Cell, Table, count_cell, number_cell, share_cell, text_cell
from tokdfa.lab.report import style
from tokdfa.lab.report.metrics import Metric, format_seconds, format_share, short_factor
from tokdfa.lab.report.model_rows import failure_sentences, failures_table, models, models_table, part
from tokdfa.lab.report.plots import Plot, left_out, slug

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from tokdfa.lab.report.data import RunData

#: Standard errors to each side.
Z_95 = 1.959963984540054
#: Distributions whose total variation is nearer than this are the same up to what the exact walk left open.
EQUAL = 1e-3

LOCAL = "local masking"
ENGINE = Metric(
    "engine_token", "engine's time a token", "masks, checks, advances", "s", "results", "engine_us", factor=1e-6
)
TOTAL = Metric("total_answer", "time of an answer", "with the model", "s", "results", "total_us", factor=1e-6)
_TV = Metric("tv", "total variation", "from the ideal distribution", "share", "results", "tv", scale="linear")
_PER_ANSWER = ("tokens", "texts", "rows", "rows_asked", "calls", "masks", "checks")
_SPENT = ("engine_us", "others_us", "arithmetic_us", "model_us")
_EACH = ("mask_us", "check_us", "advance_us")
_NUMBERS = (
    *("size", "tv", "tv_low", "tv_high", "tv_se", "plug_in", "noise_floor", "runs", "answered"),
    *(*_PER_ANSWER, *_SPENT, *_EACH, "compile_ms", "exact_rows"),
)
_MARKERS = {LOCAL: "o", "rejection": "s", "smc": "^", "adaptive_rejection": "D", "asap": "v"}


class Point(NamedTuple):
    """A strategy over its entries.

    `low` and `high`: ends of the total variation at the unfavourable sides; `local_tv`: of local masking by the same
    engine on the same entries; `times_local`: all time of an answer over that of local masking, median over entries.
    """

    strategy: str
    method: str
    engine: str
    size: float
    entries: int
    tv: float
    error: float
    plug_in: float
    noise_floor: float
    low: float
    high: float
    local_tv: float
    engine_s: float
    total_s: float
    times_local: float


def points(data: RunData) -> pd.DataFrame:
    """The measured strategies: one row for each model, entry and strategy, in the order of the strategies.

    Added are `token_us`, `total_us`, and what local masking by the same engine has on the same entry.
    """
    rows = part(data, "point", ("entry", "strategy", "method", "engine", "backend"), _NUMBERS)
    asked = dict.fromkeys(data.results.reindex(columns=["strategy"])["strategy"])  # failed ones keep their place
    order = {name: place for place, name in enumerate(asked)}
    rows = rows.sort_values("strategy", key=lambda names: names.map(order), kind="stable", ignore_index=True)
    rows["token_us"] = rows["engine_us"] / rows["tokens"]
    rows["total_us"] = rows[list(_SPENT)].sum(axis=1)
    local = rows[rows["method"] == LOCAL].set_index(["model", "entry", "engine"])
    same = [(row["model"], row["entry"], row["engine"]) for _, row in rows.iterrows()]
    rows["local_tv"] = [local["tv"].get(place, np.nan) for place in same]
    rows["times_local"] = rows["total_us"] / [local["total_us"].get(place, np.nan) for place in same]
    return rows


def summary(rows: pd.DataFrame) -> list[Point]:
    """The points of one model, in the order of the run."""
    found = []
    for strategy, group in rows.groupby("strategy", sort=False):
        first, count = group.iloc[0], len(group)
        exact = first["method"] == LOCAL
        tv = float(group["tv"].mean())
        error = 0.0 if exact else float(np.sqrt((group["tv_se"] ** 2).sum())) / count
        plug_in = tv if exact else float(group["plug_in"].mean())
        low = float(group["tv_low"].mean()) if exact else tv - Z_95 * error
        high = float(group["tv_high"].mean()) if exact else plug_in + Z_95 * error
        found.append(
            Point(
                *(str(strategy), str(first["method"]), str(first["engine"]), float(first["size"]), count),
                *(tv, error, plug_in, float(group["noise_floor"].mean()), low, high, float(group["local_tv"].mean())),
                *(float(group["token_us"].median()) * 1e-6, float(group["total_us"].median()) * 1e-6),
                float(group["times_local"].median()),
            )
        )
    return found


def build_tables(data: RunData) -> list[Table]:
    """Strategies over all entries, what an answer takes, entries, models, failures."""
    rows = points(data)
    return [
        overview(rows),
        costs(rows),
        entries(data),
        prices(data),
        models_table(data),
        failures_table(data, ("entry", "strategy")),
    ]


def overview(rows: pd.DataFrame) -> Table:
    """One row per model and strategy: skew and cost."""
    cells_of = []
    for model, mine in rows.groupby("model", sort=False):
        for one in summary(mine):
            cells = [text_cell(model), text_cell(one.strategy), count_cell(one.entries), _tv_cell(one)]
            drawn = one.method != LOCAL
            cells += [share_cell(one.plug_in), share_cell(one.noise_floor)] if drawn else [NOTHING, NOTHING]
            cells += [share_cell(one.local_tv) if drawn else NOTHING]
            cells += [text_cell(_verdict(one)) if drawn else NOTHING]
            cells_of.append((*cells, number_cell(ENGINE, one.engine_s), number_cell(TOTAL, one.total_s)))
    columns = (
        *("model", "strategy", "entries", "total variation", "plug-in", "noise floor", "local masking, same entries"),
        *("against that", "engine, a token", "all, an answer"),
    )
    note = (
        "Total variation of the answers from the ideal distribution, mean over the entries: exact for local masking; "
        "otherwise cross-fitted (too small in expectation, may be negative) with 1.96 standard errors, and plug-in "
        "(too large in expectation). Noise floor: what the plug-in shows for as many exact draws from the ideal. "
        "Against that: lower or higher than local masking by the same engine on the same entries, if beyond the error. "
        "Engine: masks, single-token checks and advances of all that an answer takes, by token of the answer; all: "
        "with forks and starts, arithmetic on the model's rows, and the model. Medians over entries."
    )
    brief = ("model", "strategy", "entries", "total variation", "engine, a token", "all, an answer")
    return Table("cost_vs_skew", "Skew and cost of each strategy", note, columns, tuple(cells_of), brief)


def _tv_cell(one: Point) -> Cell:
    if one.method == LOCAL:
        open_part = one.high - one.low
        return Cell(
            format_share(one.tv), one.tv, detail=f"± {format_share(open_part / 2)}" if open_part > EQUAL else ""
        )
    return Cell(format_share(one.tv), one.tv, detail=f"± {format_share(Z_95 * one.error)}")


def _verdict(one: Point) -> str:
    """How a drawn strategy compares with local masking by its engine on the same entries."""
    if np.isnan(one.local_tv):
        return ""
    if one.high < one.local_tv:
        return "lower"
    return "higher" if one.low > one.local_tv else "not beyond the error"


def costs(rows: pd.DataFrame) -> Table:
    """One row per model and strategy: what an answer takes, means over the entries, and times of single questions."""
    listed = []
    for (model, strategy), group in rows.groupby(["model", "strategy"], sort=False):
        cells = [text_cell(model), text_cell(strategy)]
        cells += [count_cell(float(group[name].mean())) for name in _PER_ANSWER]
        cells += [share_cell(float(group["answered"].sum() / group["runs"].sum()))]
        cells += [_time(group[f"{name}"]) for name in (*_EACH, *_SPENT)]
        listed.append((*cells, _time(group["compile_ms"] * 1e3)))
    columns = (
        *("model", "strategy", "tokens", "texts", "model rows", "rows asked", "calls", "masks", "checks"),
        *("runs with an answer", "a mask", "a check", "an advance"),
        *("engine", "forks and starts", "arithmetic", "model", "compile"),
    )
    note = (
        "What one answer takes: counts are means over entries, times medians. Texts: what a run has at its end, the "
        "answer among them. Model rows: different prefixes, as many as the strategy would need by itself if it kept "
        "its rows within a run (the run shared rows between all strategies); rows asked: with repetitions. Local "
        "masking needs none where a step is forced. Model: rows and calls at their calibrated prices. Compile: once "
        "for a constraint, in none of the sums."
    )
    return Table("cost_vs_skew_costs", "What an answer takes", note, columns, tuple(listed))


def _time(microseconds: pd.Series[float]) -> Cell:
    value = float(microseconds.median()) * 1e-6
    return NOTHING if np.isnan(value) else Cell(format_seconds(value), value)


def entries(data: RunData) -> Table:
    """One row per model and entry: the constraint's mass, and total variation of local masking by each engine."""
    rows = points(data)
    local = rows[rows["method"] == LOCAL]
    engines = list(dict.fromkeys(local["engine"].astype(str)))
    numbers = ("choices", "log_mass", "unresolved", "prefixes", "proper_tv", "seconds")
    listed = []
    for _, row in part(data, "entry", ("entry", "topic"), numbers).iterrows():
        cells = [text_cell(row[name]) for name in ("model", "entry", "topic")]
        cells += [count_cell(row["choices"]), share_cell(float(np.exp(row["log_mass"]))), share_cell(row["unresolved"])]
        cells += [count_cell(row["prefixes"]), share_cell(row["proper_tv"])]
        here = local[(local["model"] == row["model"]) & (local["entry"] == row["entry"])].set_index("engine")["tv"]
        listed.append((*cells, *(share_cell(float(here.get(engine, np.nan))) for engine in engines)))
    columns = (
        *("model", "entry", "topic", "choices", "mass", "unresolved", "rows of the ideal"),
        *("proper sequences alone", *engines),
    )
    note = (
        "Mass: the model's probability of the choices. Unresolved: the share of it that the exact walk has not divided "
        "among them. Proper sequences alone: the total variation, from the ideal, of the model restricted to the "
        "proper sequence of each choice: what strategies beyond local masking approach over an engine that admits only "
        "these. Then that of local masking by each engine."
    )
    return Table("cost_vs_skew_entries", "The entries", note, columns, tuple(listed))


def prices(data: RunData) -> Table:
    """One row per model: seconds of a call and of a row."""
    listed = [
        (text_cell(row["model"]), number_cell(TOTAL, row["call_seconds"]), number_cell(TOTAL, row["row_seconds"]))
        for _, row in part(data, "model", (), ("call_seconds", "row_seconds")).iterrows()
    ]
    note = "From batches of 1 and 16 prefixes, one token beyond a prompt that the model had read; medians."
    return Table("cost_vs_skew_prices", "What the model costs", note, ("model", "a call", "a row in it"), tuple(listed))


def build_plots(data: RunData) -> list[Plot]:
    """For each model: total variation against the engine's time a token, and against all time of an answer."""
    rows = points(data)
    if rows.empty:
        return [left_out("cost_vs_skew", "Cost against skew", "no strategy was measured")]
    look = _looks(dict(zip(rows["engine"].astype(str), rows["backend"].astype(str), strict=True)))
    with style.drawing():
        return [_scatter(summary(mine), str(model), look) for model, mine in rows.groupby("model", sort=False)]


def _looks(backend_of: Mapping[str, str]) -> dict[str, style.Look]:
    """Every engine in a colour of its own, since markers stand for methods; the first of a backend in the backend's."""
    found = style.looks(backend_of)
    free = iter(light for light, _ in style.PALETTE if light not in {one.colour for one in found.values()})
    return {
        name: one if one.variant == 0 else one._replace(colour=next(free, one.colour)) for name, one in found.items()
    }


def _scatter(found: list[Point], model: str, look: Mapping[str, style.Look]) -> Plot:
    figure, panels = style.new_figure(2, 3.3)
    floors = [one.noise_floor for one in found if not np.isnan(one.noise_floor)]
    most = max(one.entries for one in found)
    sizes = {one.strategy: 22 + 16 * place for place, one in enumerate([one for one in found if one.method == LOCAL])}
    for axes, cost, metric, label in (
        (panels[0], "engine_s", ENGINE, "masks, checks and advances, by token"),
        (panels[1], "total_s", TOTAL, "all time of an answer, with the model"),
    ):
        for one in reversed(found):
            colour, x = look[one.engine].colour, getattr(one, cost)
            face = colour if one.entries == most else style.PAPER
            mark = {"marker": _MARKERS[one.method], "s": sizes.get(one.strategy, 28)}
            axes.plot([x, x], [one.low, one.high], color=colour, linewidth=1)
            axes.scatter(x, one.tv, edgecolors=colour, facecolors=face, linewidths=1.1, zorder=3, **mark)
            if not np.isnan(one.size):
                axes.annotate(f"{one.size:.0f}", (x, one.tv), xytext=(4, 2), textcoords="offset points", fontsize=8)
        if floors:
            axes.axhline(float(np.median(floors)), color=style.MUTED, linewidth=1, linestyle=(0, (1.5, 1.5)))
        axes.axhline(0, color=style.MUTED, linewidth=0.8)
        style.set_axis(axes, "x", metric, label, log=True)
        style.set_axis(axes, "y", _TV, "total variation (lower is better)")
    _legend(figure, found, look)
    caption = (
        f"One point per strategy, mean total variation over its entries (at most {most}; hollow: fewer). Numbers: "
        "particles or samples. Lines: from the cross-fitted estimate less 1.96 standard errors to the plug-in estimate "
        "plus 1.96; local masking is exact, and its circles are nested where engines coincide. Dotted: the noise "
        "floor, the median over strategies of what the plug-in estimate shows for exact draws."
    )
    return Plot(f"cost_vs_skew_{slug(model)}", f"Cost against skew: {model}", caption, figure)


def _legend(figure: Any, found: list[Point], look: Mapping[str, style.Look]) -> None:
    """Colours for engines, markers for methods."""
    from matplotlib.lines import Line2D

    methods = [method for method in _MARKERS if any(one.method == method for one in found)]
    handles = [Line2D([], [], color=one.colour, linestyle="", marker="o", markersize=5.5) for one in look.values()]
    handles += [
        Line2D([], [], color=style.INK, linestyle="", marker=_MARKERS[method], markersize=5.5) for method in methods
    ]
    names = [style.drawable(name, 24) for name in look] + [method.replace("_", " ") for method in methods]
    figure.legend(handles, names, loc="outside upper left", ncols=3, handlelength=1.2, columnspacing=1.0)


def headlines(data: RunData) -> list[str]:
    """Local masking's skew and cost, what each strategy beyond it gains and pays, and what failed, for each model."""
    if data.results.empty:
        return ["The run has no results yet."]
    rows = points(data)
    sentences = []
    for model in models(data):
        found = summary(rows[rows["model"] == model])
        if not found:
            continue
        sentences += _local_sentences(model, [one for one in found if one.method == LOCAL], rows)
        sentences += [_drawn_sentence(model, one) for one in found if one.method != LOCAL]
    return [*sentences, *failure_sentences(data)]


def _local_sentences(model: str, local: list[Point], rows: pd.DataFrame) -> list[str]:
    """One sentence for each set of engines that have the same distribution on the same entries."""
    mine = rows[(rows["model"] == model) & (rows["method"] == LOCAL)]
    table = mine.pivot_table(index="entry", columns="engine", values="tv", sort=False)
    groups: list[list[Point]] = []
    for one in local:
        for group in groups:
            pair = table[[group[0].engine, one.engine]]
            if pair.notna().all().all() and (pair.iloc[:, 0] - pair.iloc[:, 1]).abs().max() < EQUAL:
                group.append(one)
                break
        else:
            groups.append([one])
    sentences = []
    for group in groups:
        times = ", ".join(f"{format_seconds(one.engine_s)} {one.engine}" for one in group)
        sentences.append(
            f"{model}, {_entries(group[0])}: local masking is {format_share(group[0].tv)} in total variation "
            f"from the ideal with {_listed([one.engine for one in group])}; masks and advances take, by token, {times}."
        )
    return sentences


def _drawn_sentence(model: str, one: Point) -> str:
    said = f"{model}: {one.strategy} ({_entries(one)}): {format_share(one.tv)} ± {format_share(Z_95 * one.error)}"
    said += f" (plug-in {format_share(one.plug_in)}, noise floor {format_share(one.noise_floor)})"
    if one.low <= 0:
        said += ", not told from 0 by its error"
    verdict = _verdict(one)
    if verdict in ("lower", "higher"):
        word = "below" if verdict == "lower" else "above"
        said += f", {word} local masking by {one.engine} on the same entries ({format_share(one.local_tv)})"
    elif verdict:
        said += f", no difference from local masking by {one.engine} beyond the error ({format_share(one.local_tv)})"
    if not np.isnan(one.times_local):
        said += f"; an answer takes {short_factor(one.times_local)} times as long (median over entries)"
    return f"{said}."


def _entries(one: Point) -> str:
    return f"{one.entries} {'entry' if one.entries == 1 else 'entries'}"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1]
