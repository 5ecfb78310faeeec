"""The experiment ``kind: cost_vs_skew``: what a strategy costs, against how far its answers are from the ideal.

Strategies. *Local masking* draws each token through a mask: one strategy for each of the `engines`. Those beyond local
masking (`tokdfa.decoding`) are *composed* with one of the engines, which answers their questions, and which fixes what
they approach: the ideal if it admits all spellings, the model's distribution over proper sequences if it admits these.

An *answer* is one text. Local masking and rejection end with one. Of weighted particles, one is taken by its weight; of
ASAp's sequences, the last one. A *run* is all that one answer takes, so nothing is shared between answers; that is the
dearest way to use strategies that have several texts at the end (``texts`` says how many).

`tokdfa.lab.measure.strategy_bench` says how distances and costs are measured. Rows, by ``part``: ``model``, also with
the model's price; ``entry``, a constraint with its prompt; ``point``, a strategy on an entry.

Told is the mean total variation over the entries where a strategy was measured. Cross-fitted estimates are too small in
expectation and plug-in estimates too large, so a strategy is above or below local masking by its engine, on the same
entries, only if that holds at the unfavourable end, 1.96 standard errors away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from tokdfa.errors import OptionError
from tokdfa.lab.declare import Column, Pivot, Points, Say, Stat, Summary
from tokdfa.lab.declare.columns import format_seconds, seconds, text
from tokdfa.lab.measure.engines import EngineSet, spread
from tokdfa.lab.measure.model_bench import Count, Prompt, distinct_labels, model_kind
from tokdfa.lab.measure.model_price import calibrate
from tokdfa.lab.measure.strategy_bench import LOCAL, SIZES, BenchSettings, measure_entry
from tokdfa.skew.eos import check_texts
from tokdfa.skew.measured import Z_95

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from tokdfa.lab.measure.model_bench import Turn
    from tokdfa.lab.measure.model_entries import Loaded

#: Distributions whose total variation is nearer than this are the same up to what the exact walk left open.
EQUAL = 1e-3


class Settings(BenchSettings):
    """The settings of the experiment: at most `limit` of the `entries` are measured, evenly spread."""

    entries: Annotated[list[Prompt], Field(min_length=1), AfterValidator(distinct_labels)]
    limit: Count | None = None

    @model_validator(mode="after")
    def _strategies_are_possible(self) -> Settings:
        engines = [engine.name for engine in self.engines]
        for one in self.strategies:
            word = SIZES[one.method]
            if one.engine not in engines:
                raise OptionError(f"settings.strategies: there is no engine {one.engine!r}; there are {engines}")
            if (one.size is None) != (word is None):
                wanted = f"needs size, its {word}" if word else "has no size"
                raise OptionError(f"settings.strategies: {one.method} {wanted}")
        names = [strategy.name for strategy in self.strategies]
        if len(set(names)) < len(names):
            raise OptionError(f"settings.strategies: a strategy is given twice: {'; '.join(names)}")
        for entry in self.entries:
            check_texts(entry.choices, "ignored")
        return self


def turns(loaded: Loaded, settings: Settings, seed: int) -> Iterator[Turn]:
    """One for each entry, after the model's price is known."""
    engine_set = EngineSet(settings.engines, loaded.model.vocabulary)
    chosen = spread(settings.entries, settings.limit)
    prompt = (*loaded.model.start_tokens, *loaded.tokenizer.encode(chosen[0].prompt))
    price = calibrate(loaded.model, prompt, seed)
    loaded.row.update(call_seconds=price.call, row_seconds=price.row)
    for entry in chosen:
        yield {"entry": entry.label}, measure_entry(entry, loaded, settings, engine_set, price, seed)


def frames(found: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The points with what local masking has on the same entry; each strategy's means; local masking by entry."""
    import pandas as pd

    points = found[""]
    points = points.assign(
        token_us=points["engine_us"] / points["tokens"],
        total_us=points[["engine_us", "others_us", "arithmetic_us", "model_us"]].sum(axis=1),
        answers=points["answered"] / points["runs"],
    )
    place = ["model", "entry", "engine"]
    local = points[points["method"] == LOCAL]
    same = local[[*place, "tv", "total_us"]].rename(columns={"tv": "local_tv", "total_us": "local_us"})
    points = points.merge(same, on=place, how="left").sort_values("order", kind="stable")
    points["times_local"] = points["total_us"] / points["local_us"]
    told = pd.DataFrame([_mean_point(group) for _, group in points.groupby(["model", "strategy"], sort=False)])
    exact = told[told["method"] == LOCAL]
    taken = exact["engine"] + " " + exact["token_us"].map(lambda us: format_seconds(us * 1e-6))
    alike = exact.assign(engines=taken, near=(exact["tv"] / EQUAL).round()).groupby(["model", "near"], sort=False)
    entries = found["entry"].assign(mass=np.exp(found["entry"]["log_mass"].astype("float64")))
    about = ["model", "entry", "topic", "choices", "mass", "unresolved", "prefixes", "proper_tv"]
    return {
        "": points,
        "told": told,
        "drawn": told[told["method"] != LOCAL],
        "local": alike.agg({"entries": "first", "tv": "first", "engines": ", ".join}).reset_index(),
        "entries": local[[*place, "tv"]].merge(entries[about], on=["model", "entry"]),
    }


def _mean_point(rows: pd.DataFrame) -> dict[str, Any]:
    """A strategy over its entries: mean distances with their ends, median costs, and how it compares."""
    first = rows.iloc[0]
    point = {name: first[name] for name in ("model", "strategy", "method", "engine")}
    point |= {name: float(rows[name].median()) for name in ("token_us", "total_us", "times_local")}
    means = {name: float(rows[name].mean()) for name in ("tv", "local_tv", "tv_low", "tv_high") if name in rows}
    point |= {"entries": float(len(rows)), "tv": means["tv"]}
    if first["method"] == LOCAL:
        low, high = means["tv_low"], means["tv_high"]
        return point | ({"tv_from": low, "tv_to": high} if high - low > EQUAL else {})
    margin = Z_95 * float(np.sqrt((rows["tv_se"] ** 2).sum())) / len(rows)
    plug_in = float(rows["plug_in"].mean())
    verdict = "not beyond the error from"
    if plug_in + margin < means["local_tv"]:
        verdict = "below"
    elif means["tv"] - margin > means["local_tv"]:
        verdict = "above"
    point |= {"tv_from": means["tv"] - margin, "tv_to": means["tv"] + margin, "plug_in": plug_in, "verdict": verdict}
    return point | {"noise_floor": float(rows["noise_floor"].mean()), "local_tv": means["local_tv"]}


_BY = ("model", "strategy")
_TV = Stat("tv", ends=("tv_from", "tv_to"))

KIND = model_kind(
    Settings,
    turns,
    "point",
    columns=(
        *(text(name) for name in ("strategy", "method", "engine", "engines", "entry", "topic")),
        text("verdict", "against local masking", "by the same engine on the same entries"),
        Column("tv", "total variation", "share", "lower", "of the answers from the ideal distribution"),
        Column("plug_in", "plug-in", "share", "lower", "too large in expectation"),
        Column("noise_floor", "noise floor", "share", "neither", "what the plug-in shows for exact draws"),
        Column("local_tv", "local masking, same entries", "share"),
        Column("times_local", "times local masking", "ratio", "lower", "all time of an answer"),
        Column("rows", "model rows", meaning="different prefixes of an answer"),
        Column("rows_asked", "rows asked", meaning="with repetitions"),
        Column("prefixes", "rows of the ideal"),
        Column("answers", "runs with an answer", "share", "higher"),
        Column("mass", "mass", "share", "neither", "the model's probability of the choices"),
        Column("unresolved", "unresolved", "share"),
        Column("proper_tv", "proper sequences alone", "share", "lower", "of the model restricted to them"),
        seconds("token_us", "engine, a token", "masks, checks and advances, by token of the answer"),
        seconds("total_us", "all, an answer", "with forks, arithmetic and the model"),
        *(seconds(f"{name}_us", f"{name}, each") for name in ("mask", "check", "advance")),
        *(seconds(f"{name}_us") for name in ("engine", "arithmetic", "model")),
        seconds("others_us", "forks and starts"),
        *(seconds("compile_ms"), seconds("call_seconds", "a call"), seconds("row_seconds", "a row in it")),
    ),
    places=("entry", "strategy"),
    engine="strategy",
    case=("model", "entry"),
    frames=frames,
    tables=(
        Summary(
            "cost_vs_skew",
            "Skew and cost of each strategy",
            "Total variation of the answers from the ideal distribution, mean over the entries: exact for local "
            "masking; otherwise cross-fitted (too small in expectation, may be negative) with 1.96 standard errors. "
            "Costs: medians over entries.",
            by=_BY,
            values=(
                *("entries", _TV, "plug_in", "noise_floor", "local_tv", "verdict", "token_us", "total_us"),
                "times_local",
            ),
            frame="told",
            brief=(*_BY, "entries", "total variation", "engine, a token", "all, an answer"),
        ),
        Summary(
            "cost_vs_skew_costs",
            "What an answer takes",
            "Counts are means over entries, times medians. Texts: what a run has at its end, the answer among them. "
            "Model: rows and calls at their calibrated prices. Compile: once for a constraint, in none of the sums.",
            by=_BY,
            values=(
                *(Stat(name, "mean", name) for name in ("tokens", "texts", "calls", "masks", "checks")),
                *(Stat("rows", "mean", "model rows"), Stat("rows_asked", "mean", "rows asked")),
                Stat("answers", "mean", "runs with an answer"),
                *("mask_us", "check_us", "advance_us", "engine_us", "others_us", "arithmetic_us", "model_us"),
                "compile_ms",
            ),
        ),
        Pivot(
            "cost_vs_skew_entries",
            "The entries: local masking by each engine",
            "Proper sequences alone: the total variation, from the ideal, of the model restricted to the proper "
            "sequence of each choice, which is what strategies approach over an engine that admits only these.",
            rows=("model", "entry", "topic"),
            value="tv",
            across="engine",
            beside=("choices", "mass", "unresolved", "prefixes", "proper_tv"),
            frame="entries",
        ),
        Summary(
            "cost_vs_skew_prices",
            "What the model costs",
            "From batches of 1 and 16 prefixes, one token beyond a prompt that the model had read; medians.",
            by=("model",),
            values=("call_seconds", "row_seconds"),
            frame="models",
            where="status == 'ok'",
        ),
    ),
    charts=tuple(
        Points(
            f"cost_vs_skew_{name}",
            title,
            "One point per strategy, mean total variation over its entries.",
            x=f"{name}_us",
            y="tv",
            by="method",
            panels="model",
            hover=("strategy", "entries", "tv_from", "tv_to", "noise_floor"),
            frame="told",
        )
        for name, title in (
            ("token", "Skew against masks, checks and advances, by token"),
            ("total", "Skew against all time of an answer, with the model"),
        )
    ),
    sentences=(
        Say(
            "{model}, {entries} entries: local masking is {tv} in total variation from the ideal with these engines, "
            "whose masks and advances take, by token: {engines}.",
            per=("model", "engines"),
            frame="local",
        ),
        Say(
            "{model}: {strategy} ({entries} entries): {tv} (plug-in {plug_in}, noise floor {noise_floor}), {verdict} "
            "local masking by {engine} on the same entries ({local_tv}); an answer takes {times_local} its time.",
            per=_BY,
            blanks={"tv": _TV},
            frame="drawn",
        ),
    ),
)
