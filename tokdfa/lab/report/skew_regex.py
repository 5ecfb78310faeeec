"""Reports on runs of kind ``skew_regex``: the estimated skew of each engine on languages too large to list.

An estimate with fewer than `FEW_EFFECTIVE` effective samples is *weak*: a few samples carry nearly all weight, so its
interval says little about what was never drawn. Weak estimates are marked and drawn hollow, and no difference is ever
told of them. Two engines differ where the run's own test of their paired samples says so (``verdict``); nothing else is
called a difference. Total variation is that of each engine from its own target, over sequences of tokens.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.lab.declare.cells import NOTHING, Cell, Table, count_cell, share_cell, text_cell
from tokdfa.lab.report import style
from tokdfa.lab.report.metrics import Metric, format_share, significant
from tokdfa.lab.report.model_rows import failure_sentences, failures_table, models, models_table, part
from tokdfa.lab.report.plots import Plot, left_out, slug
from tokdfa.skew.measured import FEW_EFFECTIVE

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from tokdfa.lab.report.data import RunData

#: At most so many languages in one plot, evenly spread over the order by total variation.
MAX_SHOWN = 24
#: A text that is longer is cut in tables.
MAX_TEXT = 60
TV = Metric(
    *("tv", "total variation", "of the masked distribution from its target", "share", "results", "total_variation"),
    scale="linear",
)
#: Column -> head; all with standard errors and intervals.
_DIVERGENCES = {
    "kl_backward": "KL(Q || P)",
    "kl_forward": "KL(P || Q)",
    "jensen_shannon": "Jensen-Shannon",
    "log_mass": "ln Z",
}
_SHARES = {"improper_masked": "improper under Q", "improper_target": "improper under P", "forced_share": "forced"}
_MEASURED = ("total_variation", *_DIVERGENCES, *_SHARES, "mean_tokens")
_ENDS = [f"{name}{end}" for name in _MEASURED for end in ("", "_se", "_low", "_high")]
_NUMBERS = (
    *(*_ENDS, "kept", "kept_low", "kept_high", "samples", "effective", "cut_share"),
    *("rows", "rows_computed", "seconds"),
)
_PLACE = ["model", "language"]


def estimates(data: RunData) -> pd.DataFrame:
    """The estimates: one row for each model, language and engine."""
    rows = part(data, "estimate", ("language", "engine", "backend", "sequences", "drawn", "meant"), _NUMBERS)
    rows["weak"] = rows["effective"] < FEW_EFFECTIVE
    first = rows[rows["engine"] == _first_engine(rows)].set_index(_PLACE)["weak"]
    places = zip(rows["model"], rows["language"], strict=True)
    rows["kept_known"] = ~rows["weak"] & ~np.array([first.get(place, True) for place in places], dtype=bool)
    return rows


def differences(data: RunData) -> pd.DataFrame:
    """The comparisons: one row for each model, language, pair of engines and measure."""
    return part(data, "difference", ("language", "engine", "other", "measure", "verdict"), ("value", "other_value"))


def build_tables(data: RunData) -> list[Table]:
    """Engines over all languages, every estimate, what differs, named events, texts, models, failures."""
    found = estimates(data)
    return [
        overview(data, found),
        all_estimates(found),
        all_differences(data, found),
        events(data),
        texts(found),
        models_table(data),
        failures_table(data, ("language", "engine")),
    ]


def overview(data: RunData, found: pd.DataFrame) -> Table:
    """One row per model and engine: medians over the languages that all engines have, and how it compares."""
    first = _first_engine(found)
    compared = _verdicts(data, first, "total_variation")
    entries = []
    for (model, engine), group in common(found).groupby(["model", "engine"], sort=False):
        verdicts = compared[(compared["model"] == model) & (compared["engine"] == engine)]["verdict"]
        cells = [count_cell(len(group)), count_cell(int(group["weak"].sum()))]
        cells += [share_cell(float(group["total_variation"].median())), share_cell(float(group["cut_share"].mean()))]
        cells += [share_cell(float(group["improper_masked"].median()))]
        cells += [share_cell(float(group["improper_target"].median()))]
        cells += [share_cell(float(group["forced_share"].median())), count_cell(float(group["rows"].sum()))]
        told = [int((verdicts == verdict).sum()) for verdict in ("lower", "higher", "no", "unknown")]
        cells += [NOTHING] * 4 if engine == first else list(map(count_cell, told))
        entries.append((text_cell(model), text_cell(engine), *cells))
    columns = (
        *("model", "engine", "languages", "weak", "median TV", "cut", "improper under Q", "improper under P", "forced"),
        *("model rows", f"TV below {first}", "above", "no difference", "undecided"),
    )
    note = (
        "Medians over the languages that all engines have an estimate for (cut: the mean share). TV: total variation "
        "of what sampling through the masks gives (Q) from the model restricted to the engine's own sequences (P). "
        f"Weak: fewer than {FEW_EFFECTIVE} effective samples. Model rows: what the engine would have needed by itself; "
        f"the run shares rows between engines. The last columns count languages by the test of paired samples against "
        f"{first}, at 95%; undecided: weak estimates, or too many samples cut."
    )
    brief = ("model", "engine", "languages", "weak", "median TV", f"TV below {first}", "above")
    return Table("skew_regex", "Skew on large languages, by engine", note, columns, tuple(entries), brief)


def all_estimates(found: pd.DataFrame) -> Table:
    """One row per model, language and engine: every measure with its error."""
    entries = []
    for _, row in found.iterrows():
        cells = [text_cell(row[name]) for name in ("model", "language", "engine")]
        cells += [_with_error(row, "total_variation", format_share)]
        cells += [_with_error(row, name, significant) for name in _DIVERGENCES]
        cells += [_kept_cell(row), count_cell(row["effective"])._replace(detail="weak" if row["weak"] else "")]
        cells += [share_cell(row["cut_share"]), _with_error(row, "mean_tokens", significant)]
        cells += [_with_error(row, name, format_share) for name in _SHARES]
        entries.append((*cells, count_cell(row["rows"]), count_cell(row["rows_computed"])))
    columns = (
        *("model", "language", "engine", "total variation", *_DIVERGENCES.values(), "kept share"),
        *("effective samples", "cut", "mean tokens", *_SHARES.values(), "model rows", "rows computed"),
    )
    samples = sorted({f"{count:,.0f}" for count in found["samples"]})
    note = (
        f"Estimates from {' or '.join(samples)} samples, each with its interval of 95%. Divergences in nats. Z: the "
        "model's probability of the engine's sequences; kept share: Z relative to the first engine's, where neither is "
        f"weak. Weak: fewer than {FEW_EFFECTIVE} effective samples. Cut: samples longer than the limit. Rows computed: "
        "those that no engine before had asked for."
    )
    brief = ("model", "language", "engine", "total variation", "effective samples", "cut")
    return Table("skew_regex_estimates", "All estimates", note, columns, tuple(entries), brief)


def _with_error(row: pd.Series[Any], name: str, write: Any) -> Cell:
    """A value with its interval of 95 %."""
    value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
    if np.isnan(value):
        return NOTHING
    detail = f"{write(low)} to {write(high)}" if low < high else ""
    return Cell(write(value), float(value), detail=detail)


def _kept_cell(row: pd.Series[Any]) -> Cell:
    if not row["kept_known"]:
        return NOTHING
    detail = f"{significant(row['kept_low'])} to {significant(row['kept_high'])}"
    return Cell(
        significant(row["kept"]), float(row["kept"]), detail=detail if row["kept_low"] < row["kept_high"] else ""
    )


def all_differences(data: RunData, found: pd.DataFrame) -> Table:
    """One row for each difference that exceeds its error; of engines with equal samples, the first stands for all."""
    rows = differences(data)
    shown = {model: [group[0] for group in _equal_samples(mine).values()] for model, mine in found.groupby("model")}
    apart = [
        row["engine"] in shown.get(row["model"], ()) and row["other"] in shown.get(row["model"], ())
        for _, row in rows.iterrows()
    ]
    rows = rows[np.array(apart, dtype=bool)]
    entries = []
    for _, row in rows[rows["verdict"] == "yes"].iterrows():
        texts_of = [text_cell(row[name]) for name in ("model", "language")]
        measure = TV.title if row["measure"] == TV.column else _DIVERGENCES.get(row["measure"], row["measure"])
        values = [Cell(significant(row[name]), float(row[name])) for name in ("value", "other_value")]
        entries.append((*texts_of, text_cell(measure.replace("_", " ")), text_cell(row["engine"]), values[0],
                        text_cell(row["other"]), values[1]))  # fmt: skip
    counts = rows["verdict"].value_counts()
    note = (
        f"Of {len(rows):,} comparisons, {counts.get('yes', 0):,} differ by more than the error of the difference, "
        f"{counts.get('no', 0):,} do not, and {counts.get('unknown', 0):,} are undecided. Each test is at 95%, so "
        "about one in twenty of those between equals would show here by chance. Of engines that drew equal samples in "
        "every language, the first stands for all."
    )
    columns = ("model", "language", "measure", "engine", "value", "other engine", "its value")
    return Table("skew_regex_differences", "Differences beyond their errors", note, columns, tuple(entries))


def events(data: RunData) -> Table:
    """One row for each named event: its probability under Q and under P."""
    numbers = [f"{name}{end}" for name in ("masked", "target") for end in ("", "_low", "_high")]
    entries = []
    for _, row in part(data, "event", ("language", "engine", "event", "pattern"), numbers).iterrows():
        cells = [text_cell(row[name]) for name in ("model", "language", "event", "engine")]
        cells += [_with_error(row, name, format_share) for name in ("masked", "target")]
        apart = row["masked_high"] < row["target_low"] or row["target_high"] < row["masked_low"]
        entries.append((*cells, text_cell("yes" if apart else "no"), text_cell(row["pattern"])))
    columns = ("model", "language", "event", "engine", "under Q", "under P", "intervals apart", "as a regex")
    note = (
        "The probability that a text is in the named set: under the masked distribution Q, and under the target P that "
        "the same samples, weighted, stand for."
    )
    return Table("skew_regex_events", "Named events", note, columns, tuple(entries))


def texts(found: pd.DataFrame) -> Table:
    """One row for each language and distinct set of samples: what is drawn, and what should be."""
    entries = []
    for (model, language), group in found.groupby(_PLACE, sort=False):
        for sequences, same in group.groupby("sequences", sort=False):
            row = same[same["sequences"] == sequences].iloc[0]
            lists = [_listed(row["drawn"], 1), _listed(row["meant"], 2)]
            entries.append(tuple(map(text_cell, (model, language, ", ".join(same["engine"]), *lists))))
    note = (
        "The most frequent texts among the samples (with their share), and those with most of the weight (with their "
        "share of it): what the masks make of the model, and what the model means as far as the samples tell."
    )
    columns = ("model", "language", "engines with these samples", "drawn", "meant")
    return Table("skew_regex_texts", "What is drawn and what is meant", note, columns, tuple(entries))


def _listed(written: str, place: int) -> str:
    entries = [(str(entry[0]), format_share(entry[place])) for entry in json.loads(written)]
    return "\n".join(
        f"{text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + '…'!r} {share}" for text, share in entries
    )


def common(found: pd.DataFrame) -> pd.DataFrame:
    """The estimates of the languages that all engines of the run have one for, by model."""
    engines = found["engine"].nunique()
    return found[found.groupby(_PLACE, sort=False)["engine"].transform("nunique") == engines]


def _first_engine(found: pd.DataFrame) -> str:
    return str(found["engine"].iloc[0]) if len(found) else ""


def _verdicts(data: RunData, first: str, measure: str) -> pd.DataFrame:
    """How every engine compares with `first`: ``lower``, ``higher``, ``no`` or ``unknown``, by model and language."""
    rows = differences(data)
    rows = rows[(rows["measure"] == measure) & (rows["engine"] == first)].copy()
    rows["engine"] = rows["other"]
    direction = np.where(rows["other_value"] < rows["value"], "lower", "higher")
    rows["verdict"] = np.where(rows["verdict"] == "yes", direction, rows["verdict"])
    return rows


def build_plots(data: RunData) -> list[Plot]:
    """For each model: total variation with its interval, a line per language, a point per engine."""
    found = estimates(data)
    if found.empty:
        return [left_out("skew_regex", "Total variation by language", "nothing was estimated")]
    look = style.looks(dict(zip(found["engine"].astype(str), found["backend"].astype(str), strict=True)))
    with style.drawing():
        return [_intervals(mine, str(name), look) for name, mine in found.groupby("model", sort=False)]


def _intervals(rows: pd.DataFrame, model: str, look: Mapping[str, style.Look]) -> Plot:
    order = rows.groupby("language")["total_variation"].max().sort_values(ascending=False, kind="stable").index
    shown = list(order)
    if len(order) > MAX_SHOWN:
        shown = [order[i] for i in np.linspace(0, len(order) - 1, MAX_SHOWN).round().astype(int)]
    groups = _equal_samples(rows)
    figure, (axes,) = style.new_figure(1, (0.1 + 0.1 * len(groups)) * len(shown) + 0.4)
    places = {language: place for place, language in enumerate(shown)}
    for index, group in enumerate(groups.values()):
        one = look[group[0]]
        mine = rows[(rows["engine"] == group[0]) & rows["language"].isin(shown)]
        heights = np.array([places[language] for language in mine["language"]], dtype=float)
        heights += (index - (len(groups) - 1) / 2) * 0.72 / len(groups)
        axes.hlines(heights, mine["total_variation_low"], mine["total_variation_high"], color=one.colour, linewidth=1.1)
        points = style.points(one) | {"color": None, "edgecolors": one.colour, "linewidths": 1.1, "zorder": 3}
        faces = [style.PAPER if weak else one.colour for weak in mine["weak"]]
        axes.scatter(mine["total_variation"], heights, facecolors=faces, clip_on=False, **points)
    axes.set_yticks(range(len(shown)), [style.drawable(str(name), 24) for name in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(0, 1)
    axes.tick_params(axis="y", length=0)
    style.set_axis(axes, "x", TV, "total variation (lower is better)")
    style.legend(figure, list(groups), {name: look[group[0]] for name, group in groups.items()}, "points")
    alike = "; ".join(", ".join(group) for group in groups.values() if len(group) > 1)
    caption = (
        "Of each engine's masked distribution from the engine's own target. Lines: intervals of 95%. Hollow: fewer "
        f"than {FEW_EFFECTIVE} effective samples, so that the interval may be too narrow."
    )
    caption += f" Engines that drew equal samples share a point: {alike}." if alike else ""
    if len(shown) < len(order):
        caption += f" {len(shown)} of {len(order)} languages, evenly spread in this order; all are in the table."
    return Plot(f"skew_regex_{slug(model)}", f"Total variation by language: {model}", caption, figure)


def _equal_samples(rows: pd.DataFrame) -> dict[str, list[str]]:
    """Legend -> engines of one model; each drew what the first drew, in every language that it has an estimate for."""
    groups: list[list[str]] = []
    table = rows.pivot_table(index="language", columns="engine", values="sequences", aggfunc="first", sort=False)
    for engine in dict.fromkeys(rows["engine"].astype(str)):
        for group in groups:
            own = table[engine].dropna()
            if (table.loc[own.index, group[0]] == own).all():
                group.append(engine)
                break
        else:
            groups.append([engine])
    return {group[0] if len(group) == 1 else f"{group[0]} and {len(group) - 1} alike": group for group in groups}


def headlines(data: RunData) -> list[str]:
    """Median skew, differences beyond their errors, equal samples, weak estimates, and what failed, for each model."""
    if data.results.empty:
        return ["The run has no results yet."]
    found = estimates(data)
    sentences = []
    for model in models(data):
        mine = found[found["model"] == model]
        if len(mine):
            sentences += _of_model(data, model, mine)
    return [*sentences, *failure_sentences(data)]


def _of_model(data: RunData, model: str, mine: pd.DataFrame) -> list[str]:
    everywhere = common(mine)
    medians = everywhere.groupby("engine", sort=False)["total_variation"].median()
    told = ", ".join(f"{format_share(value)} {engine}" for engine, value in medians.items())
    count = everywhere["language"].nunique()
    sentences = [f"{model}, {_languages(count)}: median total variation from the own target {told}."] if count else []
    first = _first_engine(mine)
    compared = _verdicts(data, first, "total_variation")
    compared = compared[compared["model"] == model]
    for engines in _equal_samples(mine).values():
        if len(engines) > 1:
            alike = mine[mine["engine"].isin(engines)].groupby("language")["engine"].nunique() == len(engines)
            asked = _languages(int(alike.sum()))
            sentences.append(f"{model}: {', '.join(engines)} drew equal sequences in each of {asked}.")
        verdicts = compared[compared["engine"] == engines[0]]["verdict"]
        if engines[0] != first and len(verdicts):
            counts = {name: int((verdicts == name).sum()) for name in ("lower", "higher", "no", "unknown")}
            sentences.append(
                f"{model}: beyond its error, the total variation of {engines[0]} is below that of {first} in "
                f"{counts['lower']} of {_languages(len(verdicts))} and above it in {counts['higher']}; no difference "
                f"beyond the error in {counts['no']}, undecided in {counts['unknown']}."
            )
        masses = mine[(mine["engine"] == engines[0]) & (mine["kept_low"] > 1)]
        if engines[0] != first and len(masses):
            sentences.append(
                f"{model}: in {_languages(len(masses))} the mass of {engines[0]} is estimated above that of {first}, "
                f"beyond the error; if {first} admits all spellings that cannot be, so its samples have missed where "
                "the mass is there."
            )
    weak, cut = int(mine["weak"].sum()), int((mine["cut_share"] > 0.05).sum())
    if weak or cut:
        sentences.append(
            f"{model}: {weak} of {len(mine)} estimates rest on fewer than {FEW_EFFECTIVE} effective samples, and {cut} "
            "on samples of which more than 5% were cut."
        )
    return sentences


def _languages(count: int) -> str:
    return f"{count} language{'s' if count != 1 else ''}"
