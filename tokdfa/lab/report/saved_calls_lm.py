"""Reports on runs of kind ``saved_calls_lm``: model calls saved, and what masks cost, while a model writes.

Engines are compared on the constraints and samples that all of them went through. Texts differ between engines that
allow different token sequences, so differences between engines are differences between random texts too: shares have
95% intervals by bootstrap over constraints (`tokdfa.lab.report.intervals`), those of differences being paired, and a
difference is told only if its interval leaves out 0. The *mask share* is the seconds of masks, of advancing and of
starting matchers, over the seconds of the model, prompts apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.lab.declare.cells import NOTHING, Cell, Table, count_cell, number_cell, share_cell, text_cell
from tokdfa.lab.report import style
from tokdfa.lab.report.intervals import Interval, bootstrap
from tokdfa.lab.report.metrics import Metric, format_share
from tokdfa.lab.report.model_rows import failure_sentences, failures_table, models_table, part
from tokdfa.lab.report.plots import Plot, left_out, slug

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from tokdfa.lab.report.data import RunData

#: The aim for the mask share.
AIM = 0.02

SAVED = Metric(
    "saved", "calls saved", "forced steps over steps", "share", "results", "forced", None, "higher", "linear"
)
_SECONDS = Metric("lm_seconds", "time of a text", "mean over texts", "s", "results", "model_seconds", scale="linear")
_COMPILE = Metric("lm_compile", "compile time", "median over constraints", "s", "results", "compile_seconds")
_TEXTS = ("constraint", "engine", "backend", "language", "text", "sequence")
_NUMBERS = (
    *("sample", "tokens", "finished", "steps", "model_calls", "forced", "bytes"),
    *("model_seconds", "mask_seconds", "sampling_seconds", "prompt_tokens", "prompt_seconds"),
)
#: column -> what plots call it.
_PARTS = {"model_seconds": "model", "mask_seconds": "masks", "sampling_seconds": "sampling"}


class Equality(NamedTuple):
    """How many texts an engine wrote like the first one with its token language, token by token. `example`: one that it
    did not, as (constraint, its text, the other's).
    """

    language: str
    engine: str
    first: str
    texts: int
    equal: int
    example: tuple[str, str, str] | None


def engines(data: RunData) -> dict[str, str]:
    """engine -> backend, in the order of the run, for those that wrote a text."""
    rows = part(data, "text", _TEXTS, ())
    return dict(zip(rows["engine"].astype(str), rows["backend"].astype(str), strict=True))


def compared(data: RunData) -> pd.DataFrame:
    """The texts of the constraints and samples that every engine of the model went through."""
    rows = part(data, "text", _TEXTS, _NUMBERS)
    wanted = rows.groupby("model")["engine"].transform("nunique")
    return rows[rows.groupby(["model", "constraint", "sample"])["engine"].transform("nunique") == wanted]


def share(rows: pd.DataFrame, above: str, below: str) -> Interval:
    """The sum of a column over that of another, over constraints."""
    one, other = (rows[name].to_numpy() for name in (above, below))
    return bootstrap(lambda chosen: float(one[chosen].sum() / other[chosen].sum()), rows["constraint"].tolist())


def saved_gap(rows: pd.DataFrame, engine: str, first: str) -> Interval:
    """The share of calls saved by `engine` less that by `first`, paired by constraint and sample."""
    sums = rows.pivot_table(index=["constraint", "sample"], columns="engine", values=["forced", "steps"])
    names = sums.index.get_level_values("constraint").tolist()
    forced, steps = (
        {name: sums[column][name].to_numpy() for name in (engine, first)} for column in ("forced", "steps")
    )

    def gap(chosen: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
        shares = [forced[name][chosen].sum() / steps[name][chosen].sum() for name in (engine, first)]
        return float(shares[0] - shares[1])

    return bootstrap(gap, names)


def equalities(rows: pd.DataFrame) -> Iterator[Equality]:
    """For one model: each engine against the first with its token language. Texts of the same seed are compared."""
    for language, group in rows.groupby("language", sort=False):
        sequences = group.pivot_table(
            index=["constraint", "sample"], columns="engine", values="sequence", aggfunc="first"
        )
        names = [str(name) for name in dict.fromkeys(group["engine"])]
        for name in names[1:]:
            pairs = sequences[[names[0], name]].dropna()
            differ = pairs[pairs[names[0]] != pairs[name]]
            example = None
            if len(differ):
                constraint, sample = differ.index[0]
                found = group[(group["constraint"] == constraint) & (group["sample"] == sample)].set_index("engine")
                example = (str(constraint), str(found.loc[name, "text"]), str(found.loc[names[0], "text"]))
            yield Equality(str(language), name, names[0], len(pairs), len(pairs) - len(differ), example)


def build_tables(data: RunData) -> list[Table]:
    """Calls, then seconds, of each engine; every constraint; equal texts; models; failures."""
    rows = compared(data)
    return [
        _calls(rows),
        _costs(data, rows),
        _by_constraint(data, rows),
        _equal_texts(rows),
        models_table(data),
        failures_table(data, ("constraint", "engine")),
    ]


def _calls(rows: pd.DataFrame) -> Table:
    """One row per model and engine."""
    entries = []
    for (model, engine), mine in rows.groupby(["model", "engine"], sort=False):
        found = share(mine, "forced", "steps")
        calls = Cell(
            f"{mine['model_calls'].sum():,.0f}", mine["model_calls"].sum(), detail=f"of {mine['steps'].sum():,.0f}"
        )
        cells = (
            *(text_cell(mine["language"].iloc[0]), count_cell(len(mine)), share_cell(float(mine["finished"].mean()))),
            *(count_cell(float(mine["bytes"].mean())), count_cell(float(mine["tokens"].mean())), calls),
            count_cell(mine["forced"].sum()),
            number_cell(SAVED, found.value)._replace(detail=_ends(found)),
        )
        entries.append((text_cell(model), text_cell(engine), *cells))
    note = (
        "A step appends a token or ends the text; a forced step has one allowed token, or end tokens only, and needs "
        "no call of the model. Unfinished texts were cut at the limit on tokens. Calls saved: forced steps over steps, "
        "with the 95% interval by bootstrap over constraints. Engines that allow other sequences write other texts."
    )
    columns = (
        *("model", "engine", "sequences", "texts", "finished", "bytes a text", "tokens a text", "calls", "forced"),
        "calls saved",
    )
    brief = ("model", "engine", "tokens a text", "calls", "calls saved")
    return Table("saved_calls_lm", "Model calls in real generation", note, columns, tuple(entries), brief)


def _ends(found: Interval) -> str:
    return "" if np.isnan(found.low) else f"{format_share(found.low)} to {format_share(found.high)}"


def _with_ends(found: Interval) -> str:
    return format_share(found.value) + (f" ({_ends(found)})" if _ends(found) else "")


def _costs(data: RunData, rows: pd.DataFrame) -> Table:
    """One row per model and engine: seconds per text."""
    compiles = part(data, "compile", ("constraint", "engine"), ("compile_seconds",))
    entries = []
    for (model, engine), mine in rows.groupby(["model", "engine"], sort=False):
        own = compiles[(compiles["model"] == model) & (compiles["engine"] == engine)]
        found = share(mine, "mask_seconds", "model_seconds")
        first, later = mine[mine["sample"] == 0], mine[mine["sample"] > 0]
        cells = (
            *(number_cell(_SECONDS, float(mine[column].mean())) for column in _PARTS),
            number_cell(_SECONDS, float(mine["model_seconds"].sum() / max(1.0, mine["model_calls"].sum()))),
            number_cell(_SECONDS, float(mine["mask_seconds"].sum() / mine["steps"].sum())),
            share_cell(found.value)._replace(detail=_ends(found)),
            *(_mask_share(group) for group in (first, later)),
            number_cell(_COMPILE, float(own["compile_seconds"].median())),
        )
        entries.append((text_cell(model), text_cell(engine), *cells))
    note = (
        "Means over texts; the prompt's run and compiling are not in them. Masks: filling masks, advancing, and "
        "starting a matcher. Their share is that of the model's time, with its 95% interval by bootstrap over "
        "constraints; the first text of a constraint pays for masks that are made when they are asked for."
    )
    columns = (
        *("model", "engine", "model, a text", "masks, a text", "sampling, a text", "model, a call", "masks, a step"),
        *("mask share", "first text", "later texts", "compile"),
    )
    brief = ("model", "engine", "model, a text", "masks, a text", "mask share")
    return Table("saved_calls_lm_costs", "What a text costs", note, columns, tuple(entries), brief)


def _mask_share(rows: pd.DataFrame) -> Cell:
    total = float(rows["model_seconds"].sum())
    return share_cell(float(rows["mask_seconds"].sum()) / total) if total > 0 else NOTHING


def _by_constraint(data: RunData, rows: pd.DataFrame) -> Table:
    """One row per model and constraint, one column per engine: share of calls saved."""
    names = list(engines(data))
    entries = []
    for (model, constraint), group in rows.groupby(["model", "constraint"], sort=False):
        sums = group.groupby("engine", sort=False)[["forced", "steps", "model_calls"]].sum()
        shares = sums["forced"] / sums["steps"]
        cells = []
        for name in names:
            if name not in shares.index:
                cells.append(NOTHING)
                continue
            mine = sums.loc[name]
            detail = f"{mine['model_calls']:,.0f} of {mine['steps']:,.0f} calls"
            cells.append(
                number_cell(SAVED, float(shares[name]), best=0 < shares[name] == shares.max())._replace(detail=detail)
            )
        entries.append((text_cell(model), text_cell(constraint), count_cell(group["sample"].nunique()), *cells))
    note = "Share of steps that need no call, then the calls of all steps; the highest share is bold."
    columns = ("model", "constraint", "texts", *names)
    return Table("saved_calls_lm_constraints", "Calls saved by constraint", note, columns, tuple(entries))


def _equal_texts(rows: pd.DataFrame) -> Table:
    """One row per model and engine that is not the first with its token language."""
    entries = []
    for model, mine in rows.groupby("model", sort=False):
        for found in equalities(mine):
            example = f"{found.example[0]}: {found.example[1]!r}, not {found.example[2]!r}" if found.example else ""
            cells = (
                text_cell(found.language),
                text_cell(found.engine),
                text_cell(found.first),
                count_cell(found.texts),
            )
            entries.append((text_cell(model), *cells, count_cell(found.equal), text_cell(example)))
    note = "Engines that allow the same token sequences must write the same text from the same seed, token by token."
    columns = ("model", "sequences", "engine", "against", "texts", "equal", "first that differs")
    return Table("saved_calls_lm_equal", "Equal texts from equal seeds", note, columns, tuple(entries))


def build_plots(data: RunData) -> list[Plot]:
    """For each model the calls saved, a line per constraint; and the seconds of a text, a bar per engine."""
    title = "Model calls saved in real generation"
    if data.results.empty:
        return [left_out("saved_calls_lm", title, "the run has no results yet")]
    rows = compared(data)
    if rows.empty:
        return [left_out("saved_calls_lm", title, "there is no text that all engines went through")]
    look = style.looks(engines(data))
    with style.drawing():
        groups = list(rows.groupby("model", sort=False))
        return [
            *(_dumbbells(mine, str(model), look) for model, mine in groups),
            *(_bars(mine, str(model)) for model, mine in groups),
        ]


def _dumbbells(rows: pd.DataFrame, model: str, look: dict[str, style.Look]) -> Plot:
    sums = rows.groupby(["constraint", "engine"], sort=False)[["forced", "steps"]].sum()
    shares = (sums["forced"] / sums["steps"]).unstack("engine")
    names = [name for name in look if name in shares]
    shares = shares[names].sort_values(names[::-1], ascending=False, kind="stable")
    figure, (axes,) = style.new_figure(1, 0.22 * len(shares) + 0.3)
    places = np.arange(len(shares))
    axes.hlines(places, shares.min(axis=1), shares.max(axis=1), color=style.MUTED, linewidth=1.2)
    # equal shares lie on each other; a little apart, all of them are seen
    for offset, name in zip(np.linspace(-0.24, 0.24, len(names)) if len(names) > 1 else [0.0], names, strict=True):
        axes.scatter(shares[name], places + offset, clip_on=False, zorder=3, **style.points(look[name]) | {"s": 14})
    axes.set_yticks(places, [style.drawable(str(name), 24) for name in shares.index])
    axes.set_ylim(len(shares) - 0.4, -0.6)
    axes.set_xlim(left=0, right=max(0.01, 1.03 * float(np.nanmax(shares.to_numpy()))))
    axes.tick_params(axis="y", length=0)
    style.set_axis(axes, "x", SAVED, "model calls saved (higher is better)")
    style.legend(figure, names, look, "points")
    caption = "Forced steps over all steps of the constraint's texts, the end of a text being a step."
    return Plot(f"saved_calls_lm_{slug(model)}", f"Model calls saved in real generation: {model}", caption, figure)


def _bars(rows: pd.DataFrame, model: str) -> Plot:
    means = rows.groupby("engine", sort=False)[[*_PARTS]].mean()
    look = style.looks_in_order(list(_PARTS.values()))
    figure, (axes,) = style.new_figure(1, 0.34 * len(means) + 0.3)
    left = np.zeros(len(means))
    for column, name in _PARTS.items():
        axes.barh(range(len(means)), means[column], left=left, height=0.66, **style.bars(look[name]))
        left += means[column].to_numpy()
    for place, (_, row) in enumerate(means.iterrows()):
        note = f"masks {format_share(row['mask_seconds'] / row['model_seconds'])}" if row["model_seconds"] > 0 else ""
        style.annotate_end(axes, left[place], place, note)
    axes.set_yticks(range(len(means)), [style.drawable(str(name)) for name in means.index])
    axes.set_ylim(len(means) - 0.4, -0.6)
    axes.set_xlim(0, 1.3 * left.max())
    style.bare_rows(axes)
    style.set_axis(axes, "x", _SECONDS, "seconds of a text, mean (lower is better)")
    style.legend(figure, list(look), look, "bars")
    caption = "Prompts and compiling apart. The numbers are the masks' seconds over the model's."
    return Plot(f"saved_calls_lm_seconds_{slug(model)}", f"What a text costs: {model}", caption, figure)


def headlines(data: RunData) -> list[str]:
    """For each model: the mask share against the aim, the calls saved, the equal texts; what failed."""
    if data.results.empty:
        return ["The run has no results yet."]
    sentences = []
    for model, rows in compared(data).groupby("model", sort=False):
        sentences += [_mask_sentence(str(model), rows), *_saved_sentences(str(model), rows)]
        found = list(equalities(rows))
        if found:
            equal, total = sum(one.equal for one in found), sum(one.texts for one in found)
            differ = ", ".join(f"{one.engine} in {one.texts - one.equal}" for one in found if one.equal < one.texts)
            sentences.append(
                f"{model}: {equal:,} of {total:,} texts equal that of the first engine with the same token sequences "
                f"and the same seed{f'; others: {differ}' if differ else ''}."
            )
    return [*sentences, *failure_sentences(data)]


def _mask_sentence(model: str, rows: pd.DataFrame) -> str:
    """``smollm2, masks over the model's time: 0.5% with token_index (...), ...; below the aim of 2%: ...``."""
    parts: list[str] = []
    verdicts: dict[str, list[str]] = {"below": [], "above": [], "not told apart from it": []}
    for engine, mine in rows.groupby("engine", sort=False):
        found = share(mine, "mask_seconds", "model_seconds")
        parts.append(f"{_with_ends(found)} with {engine}")
        open_question = np.isnan(found.low) or found.low < AIM <= found.high
        word = "not told apart from it" if open_question else "below" if found.high < AIM else "above"
        verdicts[word].append(str(engine))
    told = "; ".join(f"{word}: {', '.join(names)}" for word, names in verdicts.items() if names)
    calls = rows["model_seconds"].sum() / max(1.0, rows["model_calls"].sum())
    return (
        f"{model} ({_SECONDS.format(float(calls))} a call): masks take {', '.join(parts)} of the model's time. Against "
        f"the aim of {format_share(AIM)}, beyond the error: {told}."
    )


def _saved_sentences(model: str, rows: pd.DataFrame) -> Iterator[str]:
    names = [str(name) for name in dict.fromkeys(rows["engine"])]
    parts = []
    for name in names:
        found = share(rows[rows["engine"] == name], "forced", "steps")
        parts.append(f"{_with_ends(found)} with {name}")
    texts = len(rows[["constraint", "sample"]].drop_duplicates())
    yield f"{model}: of the calls for {texts:,} texts are saved {', '.join(parts)}."
    for name in names[1:]:
        gap = saved_gap(rows, name, names[0])
        if gap.sign:
            word = "more" if gap.sign > 0 else "fewer"
            low, high = sorted((abs(gap.low), abs(gap.high)))
            yield (
                f"{model}: {name} saves {word} calls than {names[0]}, by {_points(abs(gap.value))} percentage points "
                f"(95% interval {_points(low)} to {_points(high)})."
            )
        elif gap.value == 0 and not gap.high > gap.low:
            yield f"{model}: {name} saves the same share of calls as {names[0]}."
        else:
            yield f"{model}: {name} saves no more and no fewer calls than {names[0]} beyond the error."


def _points(value: float) -> str:
    return format_share(value).removesuffix("%")
