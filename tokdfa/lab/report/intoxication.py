"""Reports on runs of kind ``intoxication``: how far one improperly spelled word moves the next token.

Divergences are KL(proper || improper) of the next-token distribution, in nats. Those below `FLOOR` are the noise of
float32 and count as nothing. Intervals are bootstraps over texts (`tokdfa.lab.report.intervals`): the spellings of one
text stay together. A dependence on the distance or on the number of extra tokens, and a difference between two ways of
spelling, is told only if its interval leaves out 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.lab.declare.cells import Cell, Table, count_cell, share_cell, text_cell
from tokdfa.lab.report import style
from tokdfa.lab.report.intervals import Interval, bootstrap, rank_correlation
from tokdfa.lab.report.metrics import Metric, format_share, significant
from tokdfa.lab.report.model_rows import failure_sentences, failures_table, models_table, part
from tokdfa.lab.report.plots import Plot, left_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy.typing as npt
    import pandas as pd

    from tokdfa.lab.report.data import RunData

#: A divergence below this counts as none, in nats.
FLOOR = 1e-6
#: A text that moved the next token most: so many of each model are listed.
LISTED = 8
#: Texts with a label, and the least and the most value that belong to it.
DISTANCES: dict[str, tuple[float, float]] = {
    "none": (0, 0),
    "1 to 3": (1, 3),
    "4 to 15": (4, 15),
    "16 and more": (16, np.inf),
}
EXTRAS: dict[str, tuple[float, float]] = {
    "none or fewer": (-np.inf, 0),
    "1": (1, 1),
    "2 or 3": (2, 3),
    "4 and more": (4, np.inf),
}

_KL = Metric("kl", "divergence", "KL(proper || improper)", "", "results", "kl")
_RATIO = Metric("mammal_fish", "ratio", "P( mammal) / P( fish)", "", "results", "ratio", better="neither")
_MEASURES = ("extra_tokens", "kl", "total_variation", "same_top")
_SHARK_NUMBERS = (*_MEASURES, "ratio_proper", "ratio", "mammal", "fish")
_TEXT_NUMBERS = (*_MEASURES, "distance")


class Shark(NamedTuple):
    """An animal and its spellings. `turned`: those whose ratio is on the other side of 1 than that of the proper one;
    `new_top`: those after which another token is the most probable one.
    """

    spellings: int
    proper: float
    low: float
    median: float
    high: float
    turned: int
    new_top: int


def sharks(data: RunData) -> pd.DataFrame:
    """The rows on sharks: one for each model, animal and spelling."""
    return part(data, "shark", ("animal", "spelling"), _SHARK_NUMBERS)


def texts(data: RunData) -> pd.DataFrame:
    """The rows on texts: one for each model, text and way of spelling. `kl` below `FLOOR` is 0."""
    rows = part(data, "text", ("how", "text", "word", "spelling"), _TEXT_NUMBERS)
    rows["kl"] = rows["kl"].where(rows["kl"] >= FLOOR, 0.0)
    return rows


def shark(rows: pd.DataFrame) -> Shark:
    """What the spellings of one animal do, at least one."""
    proper, ratios = float(rows["ratio_proper"].iloc[0]), rows["ratio"]
    turned = int(((ratios > 1) != (proper > 1)).sum())
    new_top = int((rows["same_top"] == 0).sum())
    return Shark(len(rows), proper, ratios.min(), ratios.median(), ratios.max(), turned, new_top)


def binned(rows: pd.DataFrame, column: str, bins: Mapping[str, tuple[float, float]]) -> dict[str, pd.DataFrame]:
    """label -> the rows whose `column` is in that bin; empty bins are left out."""
    found = {label: rows[rows[column].between(*ends)] for label, ends in bins.items()}
    return {label: mine for label, mine in found.items() if len(mine)}


def interval(rows: pd.DataFrame, statistic: Callable[[npt.NDArray[np.float64]], float], column: str) -> Interval:
    """The interval of a statistic of one column, over texts."""
    values = rows[column].to_numpy(dtype=np.float64)
    return bootstrap(lambda chosen: statistic(values[chosen]), rows["text"].tolist())


def _median(values: npt.NDArray[np.float64]) -> float:
    return float(np.median(values))


def dependence(rows: pd.DataFrame, column: str) -> Interval:
    """The rank correlation of the divergence with `column`, over texts."""
    first, second = (rows[name].to_numpy(dtype=np.float64) for name in (column, "kl"))
    return bootstrap(lambda chosen: rank_correlation(first[chosen], second[chosen]), rows["text"].tolist())


def between_ways(rows: pd.DataFrame, one: str, other: str) -> Interval | None:
    """The median, over texts, of the divergence of a way of spelling less that of another; None without pairs."""
    paired = rows.pivot_table(index="text", columns="how", values="kl", aggfunc="first")
    if not {one, other} <= set(paired):
        return None
    gaps = (paired[one] - paired[other]).dropna().to_numpy()
    return bootstrap(lambda chosen: float(np.median(gaps[chosen])), range(len(gaps))) if len(gaps) else None


def build_tables(data: RunData) -> list[Table]:
    """Sharks, texts by way, distance and extra tokens, the texts that were moved most, models, failures."""
    found = texts(data)
    by_way = {str(how): rows for how, rows in found.groupby("how", sort=False)}
    return [
        _sharks_table(sharks(data)),
        _groups_table(found, "how", "spelled with", lambda rows: {h: rows[rows["how"] == h] for h in by_way}),
        _groups_table(found, "distance", "tokens between", lambda rows: binned(rows, "distance", DISTANCES)),
        _groups_table(found, "extra", "extra tokens", lambda rows: binned(rows, "extra_tokens", EXTRAS)),
        _most_moved(found),
        models_table(data),
        failures_table(data, ("part", "how")),
    ]


def _sharks_table(rows: pd.DataFrame) -> Table:
    """One row per model and animal."""
    entries = []
    for (model, animal), group in rows.groupby(["model", "animal"], sort=False):
        found, first = shark(group), group.iloc[0]
        worst = group.sort_values("kl", ascending=False, kind="stable").iloc[0]
        cells = (
            *(share_cell(first["mammal"]), share_cell(first["fish"]), _plain(found.proper), _plain(found.median)),
            Cell(f"{significant(found.low)} to {significant(found.high)}", found.low),
            *(count_cell(found.turned), count_cell(found.new_top), _plain(group["kl"].median())),
            _plain(worst["kl"])._replace(detail=str(worst["spelling"])),
        )
        entries.append((text_cell(model), text_cell(animal), count_cell(found.spellings), *cells))
    note = (
        '"A [animal] shark is a kind of", with every improper spelling of the word shark and of the space before it. '
        "The ratio is P( mammal) / P( fish); turned: spellings whose ratio is on the other side of 1; new first token: "
        "spellings after which another token is the most probable one. Divergences in nats; the largest has its tokens."
    )
    columns = (
        *("model", "animal", "spellings", "P( mammal)", "P( fish)", "ratio, proper", "ratio, improper, median"),
        *("range", "turned", "new first token", "divergence, median", "largest"),
    )
    brief = ("model", "animal", "ratio, proper", "range", "turned", "divergence, median")
    return Table("sharks", "What kind of animal a shark is", note, columns, tuple(entries), brief)


def _plain(value: float) -> Cell:
    return Cell(nats(value), float(value))


def nats(value: float) -> str:
    """A divergence or a ratio with three digits."""
    return significant(value) if value >= FLOOR else "0" if value == 0 else f"< {FLOOR:.6f}"


def _groups_table(
    rows: pd.DataFrame, name: str, head: str, split: Callable[[pd.DataFrame], dict[str, pd.DataFrame]]
) -> Table:
    """One row per model and group of texts."""
    entries = []
    for model, mine in rows.groupby("model", sort=False):
        for label, group in split(mine).items():
            if group.empty:
                continue
            middle = interval(group, _median, "kl")
            kept = interval(group, lambda values: float(values.mean()), "same_top")
            cells = (
                *(
                    count_cell(group["text"].nunique()),
                    count_cell(len(group)),
                    _plain(float(group["extra_tokens"].mean())),
                ),
                _plain(middle.value)._replace(detail=_ends(middle, nats)),
                *(_plain(float(group["kl"].quantile(0.9))), _plain(float(group["kl"].max()))),
                share_cell(group["total_variation"].median()),
                share_cell(1 - kept.value)._replace(detail=_ends(kept, lambda share: format_share(1 - share), True)),
            )
            entries.append((text_cell(model), text_cell(label), *cells))
    note = (
        "Texts with one word respelled; divergences in nats, total variation in percent. The small numbers are 95% "
        "intervals, by bootstrap over texts."
    )
    if name != "how":
        note += " All ways of spelling together."
    columns = (
        *("model", head, "texts", "spellings", "mean extra tokens", "divergence, median", "90th percentile", "largest"),
        *("total variation, median", "new first token"),
    )
    brief = ("model", head, "texts", "divergence, median", "new first token")
    titles = {"how": "way of spelling", "distance": "distance", "extra": "number of extra tokens"}
    return Table(f"texts_by_{name}", f"Texts by {titles[name]}", note, columns, tuple(entries), brief)


def _ends(found: Interval, form: Callable[[float], str], swapped: bool = False) -> str:
    if np.isnan(found.low):
        return ""
    ends = (found.high, found.low) if swapped else (found.low, found.high)
    return f"{form(ends[0])} to {form(ends[1])}"


def _most_moved(rows: pd.DataFrame) -> Table:
    """The texts with the largest divergences of each model."""
    entries = []
    for model, mine in rows.groupby("model", sort=False):
        ranked = mine[mine["kl"] > 0].sort_values("kl", ascending=False, kind="stable").drop_duplicates("text")
        for _, row in ranked.head(LISTED).iterrows():
            cells = (text_cell(row["text"]), text_cell(row["spelling"]), count_cell(row["distance"]), _plain(row["kl"]))
            entries.append((text_cell(model), *cells))
    note = "The word's improper tokens, and how many tokens stand between it and the next one. Each text once."
    columns = ("model", "text", "spelled", "tokens between", "divergence")
    return Table("texts_most_moved", "Texts that move the next token most", note, columns, tuple(entries))


def build_plots(data: RunData) -> list[Plot]:
    """The sharks, and the distribution of the divergence by way of spelling, distance and extra tokens."""
    if data.results.empty:
        return [left_out("intoxication", "Self-intoxication", "the run has no results yet")]
    with style.drawing():
        rows = texts(data)
        ways = [str(how) for how in dict.fromkeys(rows["how"])]
        return [
            _shark_plot(sharks(data)),
            _distribution(rows, "how", ways, lambda mine: {how: mine[mine["how"] == how] for how in ways}),
            _distribution(rows, "distance", [*DISTANCES], lambda mine: binned(mine, "distance", DISTANCES)),
            _distribution(rows, "extra", [*EXTRAS], lambda mine: binned(mine, "extra_tokens", EXTRAS)),
        ]


def _shark_plot(rows: pd.DataFrame) -> Plot:
    name, title = "sharks", "P( mammal) / P( fish) of four sharks"
    if rows.empty:
        return left_out(name, title, "no model was asked about sharks")
    labels = ["improper spellings", "proper tokens"]
    look = style.looks_in_order(labels)
    known = [str(model) for model in dict.fromkeys(rows["model"])]
    figure, panels = style.new_figure(len(known), 1.5, sharex=True)
    for axes, model in zip(panels, known, strict=True):
        mine = rows[rows["model"] == model]
        animals = [str(animal) for animal in dict.fromkeys(mine["animal"])]
        for place, animal in enumerate(animals):
            group = mine[mine["animal"] == animal]
            axes.scatter(group["ratio"], [place] * len(group), alpha=0.6, zorder=3, **style.points(look[labels[0]]))
            axes.scatter(group["ratio_proper"].iloc[:1], [place], zorder=4, **style.points(look[labels[1]]) | {"s": 60})
        axes.axvline(1, color=style.MUTED, linewidth=1)
        axes.set_yticks(range(len(animals)), animals)
        axes.set_ylim(len(animals) - 0.5, -0.5)
        axes.set_title(style.drawable(model, 40))
        axes.set_xscale("log")
        axes.margins(x=0.08)
        style.bare_rows(axes)
    style.set_axis(panels[-1], "x", _RATIO, "P( mammal) / P( fish)", log=True)
    style.legend(figure, labels[::-1], look, "points")
    caption = "One small point for each improper spelling of the word shark. Right of the line a mammal is likelier."
    return Plot(name, title, caption, figure)


def _distribution(
    rows: pd.DataFrame, name: str, labels: list[str], split: Callable[[pd.DataFrame], dict[str, pd.DataFrame]]
) -> Plot:
    titles = {"how": "way of spelling", "distance": "tokens between word and next token", "extra": "extra tokens"}
    title = f"Divergence of the next token by {titles[name]}"
    if rows.empty:
        return left_out(f"intoxication_{name}", title, "no text was measured")
    look = style.looks_in_order(labels)
    known = [str(model) for model in dict.fromkeys(rows["model"])]
    figure, panels = style.new_figure(len(known), 2.1, sharex=True)
    high = max(float(rows["kl"].max()), 10 * FLOOR)
    for axes, model in zip(panels, known, strict=True):
        for label, group in split(rows[rows["model"] == model]).items():
            values = np.sort(np.maximum(group["kl"].to_numpy(), FLOOR))
            shares = np.arange(1, len(values) + 1) / len(values)
            axes.plot([FLOOR, *values, 2 * high], [0, *shares, 1], drawstyle="steps-post", **style.curve(look[label]))
        axes.set_title(style.drawable(model, 40))
        axes.set(ylabel="share of texts", ylim=(0, 1.03), xscale="log", xlim=(FLOOR, 2 * high))
    style.set_axis(panels[-1], "x", _KL, "KL(proper || improper), nats (left: moved less)", log=True)
    panels[-1].set_xticks([FLOOR * 100**power for power in range(4)])
    style.legend(figure, [label for label in labels if label in split(rows)], look, "curves")
    caption = f"Share of texts with at most so much divergence; what is below {FLOOR:.6f} stands at the left edge."
    if name != "how":
        caption += " All ways of spelling together."
    return Plot(f"intoxication_{name}", title, caption, figure)


def headlines(data: RunData) -> list[str]:
    """For each model: its sharks, its texts, and what the divergence depends on as far as that is sure."""
    if data.results.empty:
        return ["The run has no results yet."]
    sentences = []
    for model, rows in sharks(data).groupby("model", sort=False):
        sentences.append(_shark_sentence(str(model), rows))
    for model, rows in texts(data).groupby("model", sort=False):
        sentences += _text_sentences(str(model), rows)
    return [*sentences, *failure_sentences(data)]


def _shark_sentence(model: str, rows: pd.DataFrame) -> str:
    """``smollm2: P( mammal) / P( fish) is 0.11 for a whale shark (0.0094 to 0.52 over 19 improper spellings), ...``."""
    total = len(rows)
    if (rows["kl"] < FLOOR).all():
        return f"{model}: none of {total} improper spellings of the word shark moves the next token."
    parts = []
    for animal, group in rows.groupby("animal", sort=False):
        found = shark(group)
        span = f"{significant(found.low)} to {significant(found.high)}"
        parts.append(f"{significant(found.proper)} for a {animal} shark ({span} over {found.spellings} spellings)")
    found = shark(rows)
    turned = sum(shark(group).turned for _, group in rows.groupby("animal"))
    return (
        f"{model}: P( mammal) / P( fish) is {', '.join(parts)}; {turned} of {total} improper spellings take it to the "
        f"other side of 1, and {found.new_top} change the most probable next token."
    )


def _text_sentences(model: str, rows: pd.DataFrame) -> Iterator[str]:
    parts = []
    for how, group in rows.groupby("how", sort=False):
        middle = interval(group, _median, "kl")
        changed = format_share(1 - float(group["same_top"].mean()))
        parts.append(f"{how} {middle.describe(nats)}, another first token in {changed} of {len(group)} texts")
    moved = float((rows["kl"] > 0).mean())
    yield (
        f"{model}, one word of a text respelled, median divergence of the next token in nats by way of spelling: "
        f"{'; '.join(parts)}. It moves at all in {format_share(moved)} of the cases."
    )
    ways = [str(how) for how in dict.fromkeys(rows["how"])]
    for one, other in zip(ways[1:], ways, strict=False):
        gap = between_ways(rows, one, other)
        if gap is not None and gap.sign:
            word = "more" if gap.sign > 0 else "less"
            yield (
                f"{model}: {one} moves the next token {word} than {other}, by {gap.describe(_signed)} nats in the "
                "median of the same texts."
            )
        elif gap is not None:
            yield f"{model}: no difference between {one} and {other} beyond its error."
    for column, words in (("distance", "tokens between"), ("extra_tokens", "extra tokens")):
        found = dependence(rows, column)
        if found.sign:
            word = "grows" if found.sign > 0 else "falls"
            yield f"{model}: the divergence {word} with {words}, rank correlation {found.describe(_signed)}."
        else:
            yield f"{model}: no dependence of the divergence on {words} beyond its error."


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else ''}{significant(abs(value))}"
