"""Reports on runs of kind ``improper_mass``: how likely a model is to write improper tokens by itself.

The mass of a position is the probability of all its improper next tokens. It spans many orders of magnitude, so it is
shown by quantiles and on logarithmic axes; its mean is made by few positions. Intervals are bootstraps over texts
(`tokdfa.lab.report.intervals`), as positions of one text are not independent of each other.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.lab.declare.cells import Cell, Table, count_cell, text_cell
from tokdfa.lab.report import style
from tokdfa.lab.report.intervals import Interval, bootstrap
from tokdfa.lab.report.metrics import format_share, significant
from tokdfa.lab.report.model_rows import failure_sentences, failures_table, models_table, part
from tokdfa.lab.report.plots import Plot, left_out

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from tokdfa.lab.report.data import RunData

#: Shares of positions whose quantile of the mass is shown.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
#: Masses below this stand in the histogram's first bar, together with those of 0.
SMALLEST = -12
BARS_PER_DECADE = 2
#: How many of the positions with the largest mass are listed for each model.
LISTED = 15
#: A mass above this is called large in the sentences.
LARGE = 0.01

_POSITIONS = ("log_mass", "log_special", "log_chosen", "improper_count", "position")


def positions(data: RunData) -> pd.DataFrame:
    """One row for each model, text and position, with its ``mass``."""
    rows = part(data, "position", ("label", "kind", "before", "token", "preferred"), _POSITIONS)
    rows["mass"] = np.exp(rows["log_mass"])
    return rows


def texts(data: RunData) -> pd.DataFrame:
    """One row for each model and text."""
    return part(data, "text", ("label", "kind"), ("positions", "mean", "any_improper", "perplexity"))


def mean_mass(rows: pd.DataFrame) -> Interval:
    """The mean over positions, with its interval over texts."""
    masses = rows["mass"].to_numpy()
    return bootstrap(lambda chosen: float(masses[chosen].mean()), rows["label"].tolist())


def build_tables(data: RunData) -> list[Table]:
    """Quantiles by model and kind of text, the texts, the positions with the largest mass, models, failures."""
    rows = positions(data)
    return [_quantiles(rows), _texts_table(texts(data)), _largest(rows), models_table(data), _failures(data)]


def _failures(data: RunData) -> Table:
    return failures_table(data, ("label",))


def mass(value: float) -> str:
    """A probability with three digits, as ``1.23e-7`` where it is small."""
    if value == 0 or value >= 1e-3:
        return significant(value)
    return f"{value:.2e}".replace("e-0", "e-")


def _mass_cell(value: float) -> Cell:
    return Cell(mass(value), float(value))


def _quantiles(rows: pd.DataFrame) -> Table:
    """One row per model, and one per model and kind of text."""
    entries = []
    for model, mine in rows.groupby("model", sort=False):
        kinds = {"all": mine} | {str(kind): group for kind, group in mine.groupby("kind", sort=False)}
        for kind, group in kinds.items():
            found = mean_mass(group)
            ends = "" if np.isnan(found.low) else f"{mass(found.low)} to {mass(found.high)}"
            cells = [_mass_cell(value) for value in np.quantile(group["mass"], QUANTILES, method="lower")]
            large = Cell(format_share(float((group["mass"] > LARGE).mean())), float((group["mass"] > LARGE).mean()))
            counts = (count_cell(group["label"].nunique()), count_cell(len(group)))
            mean = _mass_cell(found.value)._replace(detail=ends)
            entries.append(
                (text_cell(model), text_cell(kind), *counts, *cells, _mass_cell(group["mass"].max()), mean, large)
            )
    heads = ("median" if share == 0.5 else f"p{100 * share:g}" for share in QUANTILES)
    note = (
        "The probability of all improper next tokens, at the positions of properly tokenized texts: the mass that so "
        "many positions do not exceed. The mean has its 95% interval, by bootstrap over texts, where there are enough; "
        f"large: above {LARGE:g}."
    )
    columns = ("model", "kind", "texts", "positions", *heads, "largest", "mean", "large")
    brief = ("model", "kind", "positions", "median", "p95", "mean")
    return Table("improper_mass", "Improper mass by kind of text", note, columns, tuple(entries), brief)


def _texts_table(rows: pd.DataFrame) -> Table:
    """One row per model and text."""
    entries = [
        (
            *(text_cell(row["model"]), text_cell(row["label"]), text_cell(row["kind"]), count_cell(row["positions"])),
            *(_mass_cell(row["mean"]), Cell(format_share(row["any_improper"]), row["any_improper"])),
            Cell(significant(row["perplexity"]), row["perplexity"]),
        )
        for _, row in rows.iterrows()
    ]
    note = (
        "At least one: the probability that an improper token is drawn somewhere if one is drawn at each position. The "
        "perplexity of the text itself tells how well the model knows such texts."
    )
    columns = ("model", "text", "kind", "positions", "mean mass", "at least one", "perplexity")
    return Table("improper_mass_texts", "Improper mass of each text", note, columns, tuple(entries))


def _largest(rows: pd.DataFrame) -> Table:
    """The positions with the largest mass of each model, at most so many; those that name the improper tokens."""
    entries = []
    for model, mine in rows[rows["preferred"].fillna("") != ""].groupby("model", sort=False):
        for _, row in mine.sort_values("mass", ascending=False, kind="stable").head(LISTED).iterrows():
            improper = ", ".join(f"{_quoted(text)} {mass(value)}" for text, value in json.loads(row["preferred"]))
            own = f"{_quoted(row['token'])} {mass(float(np.exp(row['log_chosen'])))}"
            cells = (_mass_cell(row["mass"]), text_cell(_quoted(row["before"])), text_cell(own), text_cell(improper))
            entries.append((text_cell(model), text_cell(row["label"]), *cells))
    note = (
        "What stands before the position, the token that follows there in the text, and the improper tokens that the "
        "model prefers, with their probabilities."
    )
    columns = ("model", "text", "mass", "before", "token of the text", "improper tokens")
    title = "Positions with the largest improper mass"
    return Table("improper_mass_largest", title, note, columns, tuple(entries))


def _quoted(text: str) -> str:
    """In quotes, so that spaces and line ends are seen."""
    return json.dumps(text, ensure_ascii=False)


def build_plots(data: RunData) -> list[Plot]:
    """The histogram of the mass, its spread by kind of text, and the mass along the text where it is largest."""
    if data.results.empty:
        return [left_out("improper_mass", "Improper mass", "the run has no results yet")]
    rows = positions(data)
    if rows.empty:
        return [left_out("improper_mass", "Improper mass", "no text was measured")]
    with style.drawing():
        return [_histogram(rows), _by_kind(rows), _along(rows)]


def _histogram(rows: pd.DataFrame) -> Plot:
    known = [str(model) for model in dict.fromkeys(rows["model"])]
    look = style.looks_in_order(known)
    edges = np.linspace(SMALLEST, 0, -SMALLEST * BARS_PER_DECADE + 1)
    figure, panels = style.new_figure(len(known), 1.7, sharex=True)
    for axes, model in zip(panels, known, strict=True):
        values = rows.loc[rows["model"] == model, "log_mass"].to_numpy() / np.log(10)
        counts, _ = np.histogram(np.clip(values, SMALLEST, 0), edges)
        axes.bar(10.0 ** edges[:-1], counts, np.diff(10.0**edges), align="edge", **style.bars(look[model]))
        axes.axvline(10 ** np.median(values), color=style.INK, linewidth=1.2, linestyle=(0, (4, 2)))
        axes.set_title(style.drawable(model, 40))
        axes.set(ylabel="positions", xscale="log", xlim=(10.0**SMALLEST, 1))
    _mass_axis(panels[-1])
    caption = (
        f"Positions by their improper mass, {BARS_PER_DECADE} bars for each power of ten; the dashed line is the "
        f"median. The first bar also holds what is below 1e{SMALLEST}."
    )
    return Plot("improper_mass", "Improper mass of the next token", caption, figure)


def _mass_axis(axes: Axes) -> None:
    axes.set_xlabel("probability of all improper next tokens (left is better)")
    axes.set_xticks(*_decades())


def _decades() -> tuple[list[float], list[str]]:
    """Ticks and their labels, some powers of ten apart."""
    powers = range(SMALLEST, 1, 3)
    return [10.0**power for power in powers], [f"1e{power}" if power else "1" for power in powers]


def _by_kind(rows: pd.DataFrame) -> Plot:
    known = [str(model) for model in dict.fromkeys(rows["model"])]
    look = style.looks_in_order(known)
    kinds = [str(kind) for kind in dict.fromkeys(rows["kind"])]
    figure, (axes,) = style.new_figure(1, 0.2 * len(kinds) * (len(known) + 0.5) + 0.3)
    step = len(known) + 0.8
    for offset, model in enumerate(known):
        for place, kind in enumerate(kinds):
            group = rows.loc[(rows["model"] == model) & (rows["kind"] == kind), "mass"]
            if group.empty:
                continue
            values = np.maximum(np.quantile(group, (0.05, 0.25, 0.5, 0.75, 0.95), method="lower"), 10.0**SMALLEST)
            height = place * step + offset
            axes.plot(values[[0, 4]], [height] * 2, color=look[model].colour, linewidth=1)
            axes.plot(values[[1, 3]], [height] * 2, color=look[model].colour, linewidth=3.5, solid_capstyle="butt")
            axes.scatter(values[2:3], [height], zorder=3, **style.points(look[model]) | {"s": 34})
    axes.set_yticks(np.arange(len(kinds)) * step + (len(known) - 1) / 2, [style.drawable(kind) for kind in kinds])
    axes.set_ylim(len(kinds) * step - 0.6, -0.9)
    style.bare_rows(axes)
    axes.set(xscale="log", xlim=(10.0**SMALLEST, 1))
    _mass_axis(axes)
    style.legend(figure, known, look, "points")
    caption = "Points: the median position; thick lines: the middle half; thin lines: the middle 90%."
    return Plot("improper_mass_kinds", "Improper mass by kind of text", caption, figure)


def _along(rows: pd.DataFrame) -> Plot:
    """One panel per model: the text with the largest mean."""
    known = [str(model) for model in dict.fromkeys(rows["model"])]
    look = style.looks_in_order(known)
    figure, panels = style.new_figure(len(known), 1.8)
    for axes, model in zip(panels, known, strict=True):
        mine = rows[rows["model"] == model]
        label = mine.groupby("label", sort=False)["mass"].mean().idxmax()
        chosen = mine[mine["label"] == label]
        heights = np.maximum(chosen["mass"], 10.0**SMALLEST)
        axes.scatter(chosen["position"], heights, **style.points(look[model]) | {"s": 7})
        axes.set(yscale="log", ylim=(10.0**SMALLEST, 1), ylabel="improper mass")
        axes.set_yticks(*_decades())
        axes.set_title(style.drawable(f"{model}: {label}", 44))
    panels[-1].set_xlabel("position in the text (tokens)")
    caption = "For each model the text with the largest mean mass, position by position."
    return Plot("improper_mass_along", "Improper mass along a text", caption, figure)


def headlines(data: RunData) -> list[str]:
    """For each model the mass of a typical position, its mean, and where it is largest; what failed."""
    if data.results.empty:
        return ["The run has no results yet."]
    sentences = []
    rows = positions(data)
    for model, mine in rows.groupby("model", sort=False):
        found = mean_mass(mine)
        share = float((mine["mass"] > LARGE).mean())
        sentences.append(
            f"{model}: of {len(mine):,} positions in {mine['label'].nunique()} texts half have an improper mass of at "
            f"most {mass(float(np.quantile(mine['mass'], 0.5, method='lower')))}, and {format_share(share)} one above "
            f"{LARGE:g}; the mean is {found.describe(mass)}."
        )
        sentences += _largest_sentence(str(model), mine)
    known = texts(data)
    for model, mine in known.groupby("model", sort=False):
        low, middle, high = (format_share(float(mine["any_improper"].quantile(share))) for share in (0, 0.5, 1))
        sentences.append(
            f"{model}: drawn freely at every position of a text, at least one improper token comes with a probability "
            f"of {middle} (median of {len(mine)} texts, {low} to {high})."
        )
    return [*sentences, *failure_sentences(data)]


def _largest_sentence(model: str, rows: pd.DataFrame) -> list[str]:
    """Where the largest mass is, and what it is made of."""
    top = rows.sort_values("mass", ascending=False, kind="stable").iloc[0]
    if not top["preferred"]:
        return []
    text, value = json.loads(top["preferred"])[0]
    return [
        f"{model}: the largest mass, {mass(top['mass'])}, is in {top['label']} after {_quoted(top['before'][-20:])}. "
        f"The text goes on with {_quoted(top['token'])}; the likeliest improper token is {_quoted(text)} "
        f"({mass(value)})."
    ]
