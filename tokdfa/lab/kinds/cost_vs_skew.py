"""The experiment ``kind: cost_vs_skew``: what a strategy costs, against how far its answers are from the ideal.

Strategies. *Local masking* draws each token through a mask: one strategy for each of the `engines`. Those beyond local
masking (`tokdfa.decoding`) are *composed* with one of the engines, which answers their questions, and which fixes what
they approach: the ideal if it admits all spellings, the model's distribution over proper sequences if it admits these.

An *answer* is one text. Local masking and rejection end with one. Of weighted particles, one is taken by its weight; of
ASAp's sequences, the last one. A *run* is all that one answer takes, so nothing is shared between answers; that is the
dearest way to use strategies that have several texts at the end (``texts`` says how many).

Skew. Constraints are finite, so the ideal distribution and that of local masking are exact (`tokdfa.skew.exact`, texts
without an end token). That of the other strategies is estimated from `runs` runs, see `tokdfa.lab.measure.drawn_skew`.

Cost of an answer: (number of questions of each kind, mean over runs) times (nanoseconds of such a question, median over
runs), which keeps the rare dear runs and leaves out the hiccups of the machine. The first run of each strategy warms up
and is not timed. Strategies take turns, run by run. What is done with the model's rows (exponentials, sums, random
numbers), in numpy over the whole vocabulary, is the *arithmetic*, reckoned likewise by masks and checks.

While strategies run, kept rows stand in for the model. What it would have cost is reckoned from the numbers of rows and
calls, with seconds for each (`tokdfa.lab.measure.model_price`). A prefix that is asked for again within a run counts
once: a loop can keep rows. Local masking needs no row where a step is forced; its rows are the mean tokens times the
share of steps that are not forced, both exact up to the unresolved mass. The weights of the other strategies need the
row there too.

Rows, by ``part``:

- ``model``: see `tokdfa.lab.measure.model_entries`; also ``call_seconds`` and ``row_seconds``;
- ``entry``: a constraint with its prompt: ``entry``, ``topic``, ``choices``, ``log_mass``, ``unresolved`` (mass of the
  ideal), ``prefixes`` (rows that the ideal took), ``proper_tv`` (of the model's distribution over proper sequences from
  the ideal), ``seconds``;
- ``point``: entry, ``strategy`` (label), ``method`` (`METHODS`), ``engine`` and its ``backend``, ``size``; ``tv``:
  exact (the middle of ``tv_low`` and ``tv_high``) or cross-fitted, ``tv_se``, ``plug_in``, ``noise_floor``; ``runs``,
  ``answered`` (runs with an answer); per answer: ``tokens``, ``texts``, ``rows``, ``rows_asked`` (with those asked for
  again), ``calls``, ``masks``, ``checks``, ``advances``, ``others`` (starts, forks, whether it may end), ``engine_us``
  (masks, checks and advances), ``others_us``, ``arithmetic_us``, ``model_us``; ``mask_us``, ``check_us``,
  ``advance_us``: of one; ``compile_ms``, ``exact_rows`` (that Q took).

A strategy with less than `LEAST_RUNS` answers has the status ``nothing_drawn``; one that could not make so many runs
within `seconds_each` on an entry has ``timeout``; entries whose turn comes after `seconds` are not asked.

Told is the mean total variation over the entries where a strategy was measured. Cross-fitted estimates are too small in
expectation and plug-in estimates too large, so a strategy is above or below local masking by its engine, on the same
entries, only if that holds at the unfavourable end, 1.96 standard errors away.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from tokdfa.errors import OptionError
from tokdfa.lab.declare import Column, Kind, Pivot, Points, Say, Stat, Summary
from tokdfa.lab.declare.columns import format_seconds, seconds, text
from tokdfa.lab.declare.models import COLUMNS, FAILURES, MODELS, not_measured, parts
from tokdfa.lab.measure.engines import Workshop, attempt, check_engines, spread
from tokdfa.lab.measure.limits import NOT_ASKED, Failure
from tokdfa.lab.measure.model_entries import MAX_MESSAGE, Models, check_models, finish_row, load_models
from tokdfa.lab.measure.model_price import calibrate
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.lab.measure.strategy_bench import LOCAL, BenchSettings, Count, Entry, EntryBench, Seconds
from tokdfa.skew.eos import check_texts
from tokdfa.skew.measured import Z_95

if TYPE_CHECKING:
    import pandas as pd

#: Methods beyond local masking, as settings call them -> the word for their size; None: they have none.
METHODS: dict[str, str | None] = {
    "rejection": None,
    "smc": "particles",
    "adaptive_rejection": "particles",
    "asap": "samples",
}
#: Distributions whose total variation is nearer than this are the same up to what the exact walk left open.
EQUAL = 1e-3


class Settings(BenchSettings):
    """The settings of the experiment.

    `entries`: at most `limit` of them are measured, evenly spread. `threads`: of torch. `seconds` belong below the
    experiment's limit on an item.
    """

    models: Models
    entries: list[Entry] = Field(min_length=1)
    limit: Count | None = None
    threads: Annotated[int, Field(ge=1, le=256)] = 2
    seconds: Seconds = 600.0


def complete(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings as they are. Raises OptionError or UnknownNameError, which name what is wrong."""
    typed = typed_settings(Settings, settings)
    check_models(typed.models)
    check_engines(typed.engines)
    engines = [engine.name for engine in typed.engines]
    for strategy in typed.strategies:
        word = METHODS[strategy.method]
        if strategy.engine not in engines:
            raise OptionError(f"settings.strategies: there is no engine {strategy.engine!r}; there are {engines}")
        if (strategy.size is None) != (word is None):
            raise OptionError(
                f"settings.strategies: {strategy.method} {f'needs size, its {word}' if word else 'has no size'}"
            )
    names = [strategy.name for strategy in typed.strategies]
    if len(set(names)) < len(names):
        raise OptionError(f"settings.strategies: a strategy is given twice: {'; '.join(names)}")
    labels = [entry.label for entry in typed.entries]
    if len(set(labels)) < len(labels):
        raise OptionError("settings.entries: two entries have the same label")
    for entry in typed.entries:
        check_texts(entry.choices, "ignored")
    return settings


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure everything; `settings`: those of `Settings`."""
    typed = typed_settings(Settings, settings)
    started = time.monotonic()
    rows: list[dict[str, Any]] = []
    for loaded in load_models(typed.models, typed.threads, rows):
        workshop = Workshop(typed.engines, loaded.model.vocabulary)
        chosen = spread(typed.entries, typed.limit)
        prompt = (*loaded.model.start_tokens, *loaded.tokenizer.encode(chosen[0].prompt))
        price = calibrate(loaded.model, prompt, seed)
        loaded.row.update(call_seconds=price.call, row_seconds=price.row)
        for entry in chosen:
            place = {**loaded.place, "entry": entry.label}
            if time.monotonic() - started > typed.seconds:
                message = f"the {typed.seconds:g} s for all entries are over"
                rows.append({"part": "entry", **place, "status": NOT_ASKED, "message": message})
                continue
            bench = attempt(EntryBench, entry, loaded, typed, seed)
            if isinstance(bench, Failure):
                status = {"status": bench.kind, "message": bench.message[:MAX_MESSAGE]}
                rows.append({"part": "entry", **place, **status})
            else:
                rows += [{**row, **place} for row in bench.measure(workshop, price)]
        finish_row(loaded)
    return rows


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The points with what local masking has on the same entry; each strategy's means; local masking by entry."""
    import pandas as pd

    found = parts(rows, "point")
    points = found[""]
    if points.empty:
        return found
    order = {name: place for place, name in enumerate(rows["strategy"].dropna().unique())}  # failed ones count too
    points = points.sort_values("strategy", key=lambda names: names.map(order), kind="stable", ignore_index=True)
    points["token_us"] = points["engine_us"] / points["tokens"]
    points["total_us"] = points[["engine_us", "others_us", "arithmetic_us", "model_us"]].sum(axis=1)
    points["answers"] = points["answered"] / points["runs"]
    place = ["model", "entry", "engine"]
    local = points[points["method"] == LOCAL]
    same = local[[*place, "tv", "total_us"]].rename(columns={"tv": "local_tv", "total_us": "local_us"})
    points = points.merge(same, on=place, how="left")
    points["times_local"] = points["total_us"] / points["local_us"]
    told = pd.DataFrame([_mean_point(group) for _, group in points.groupby(["model", "strategy"], sort=False)])
    entries = found["entry"].assign(mass=np.exp(found["entry"]["log_mass"].astype("float64")))
    about = ["model", "entry", "topic", "choices", "mass", "unresolved", "prefixes", "proper_tv"]
    exact = told[told["method"] == LOCAL]
    together = exact.groupby(["model", (exact["tv"] / EQUAL).round()], sort=False)
    engines = [
        {
            **group.iloc[0][["model", "entries", "tv"]],
            "engines": ", ".join(
                f"{name} {format_seconds(us * 1e-6)}"
                for name, us in zip(group["engine"], group["token_us"], strict=True)
            ),
        }
        for _, group in together
    ]
    return {
        **found,
        "": points,
        "told": told,
        "drawn": told[told["method"] != LOCAL],
        "local": pd.DataFrame(engines),
        "entries": local[[*place, "tv"]].merge(entries[about], on=["model", "entry"]),
    }


def _mean_point(rows: pd.DataFrame) -> dict[str, Any]:
    """A strategy over its entries: mean distances with their ends, median costs, and how it compares."""
    first, exact = rows.iloc[0], rows["method"].iloc[0] == LOCAL
    tv, local_tv = float(rows["tv"].mean()), float(rows["local_tv"].mean())
    point = {name: first[name] for name in ("model", "strategy", "method", "engine")}
    point |= {name: float(rows[name].median()) for name in ("token_us", "total_us", "times_local")}
    point |= {"entries": float(len(rows)), "tv": tv}
    if exact:
        low, high = float(rows["tv_low"].mean()), float(rows["tv_high"].mean())
        return point | ({"tv_from": low, "tv_to": high} if high - low > EQUAL else {})
    margin = Z_95 * float(np.sqrt((rows["tv_se"] ** 2).sum())) / len(rows)
    plug_in = float(rows["plug_in"].mean())
    verdict = "not beyond the error from"
    if plug_in + margin < local_tv:
        verdict = "below"
    elif tv - margin > local_tv:
        verdict = "above"
    point |= {"tv_from": tv - margin, "tv_to": tv + margin, "plug_in": plug_in, "verdict": verdict}
    return point | {"noise_floor": float(rows["noise_floor"].mean()), "local_tv": local_tv}


_BY = ("model", "strategy")
_TV = Stat("tv", ends=("tv_from", "tv_to"))

KIND = Kind(
    measure=measure,
    settings=Settings,
    complete=complete,
    threads=2,
    columns=(
        *COLUMNS,
        *(text(name) for name in ("strategy", "method", "engine", "engines", "entry", "topic")),
        text("verdict", "against local masking", "by the same engine on the same entries"),
        Column("tv", "total variation", "share", "lower", "of the answers from the ideal distribution"),
        Column("plug_in", "plug-in", "share", "lower", "too large in expectation"),
        Column("noise_floor", "noise floor", "share", "neither", "what the plug-in shows for exact draws"),
        Column("local_tv", "local masking, same entries", "share"),
        Column("times_local", "times local masking", "ratio", "lower", "all time of an answer"),
        Column("entries"),
        *(Column(name, title) for name, title in (("choices", ""), ("tokens", ""), ("texts", ""), ("calls", ""))),
        *(Column(name) for name in ("masks", "checks")),
        Column("rows", "model rows", meaning="different prefixes of an answer"),
        Column("rows_asked", "rows asked", meaning="with repetitions"),
        Column("prefixes", "rows of the ideal"),
        Column("answers", "runs with an answer", "share", "higher"),
        Column("mass", "mass", "share", "neither", "the model's probability of the choices"),
        Column("unresolved", "unresolved", "share"),
        Column("proper_tv", "proper sequences alone", "share", "lower", "of the model restricted to them"),
        seconds("token_us", "engine, a token", "masks, checks and advances, by token of the answer"),
        seconds("total_us", "all, an answer", "with forks, arithmetic and the model"),
        *(seconds(f"{name}_us", title) for name, title in (("mask", "a mask"), ("check", "a check"))),
        *(seconds(f"{name}_us", title) for name, title in (("advance", "an advance"), ("engine", "engine"))),
        *(seconds(f"{name}_us", title) for name, title in (("others", "forks and starts"), ("arithmetic", ""))),
        *(seconds("model_us", "model"), seconds("compile_ms", "compile")),
        *(seconds("call_seconds", "a call"), seconds("row_seconds", "a row in it")),
    ),
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
                *(
                    Stat(name, "mean", title)
                    for name, title in (
                        *(("tokens", "tokens"), ("texts", "texts"), ("rows", "model rows"), ("calls", "calls")),
                        *(("rows_asked", "rows asked"), ("masks", "masks"), ("checks", "checks")),
                        ("answers", "runs with an answer"),
                    )
                ),
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
        MODELS,
        not_measured("entry", "strategy"),
    ),
    charts=tuple(
        Points(
            f"cost_vs_skew_{name}",
            title,
            "One point per strategy, mean total variation over its entries.",
            x=cost,
            y="tv",
            by="method",
            panels="model",
            hover=("strategy", "entries", "tv_from", "tv_to", "noise_floor"),
            frame="told",
        )
        for name, title, cost in (
            ("token", "Skew against masks, checks and advances, by token", "token_us"),
            ("answer", "Skew against all time of an answer, with the model", "total_us"),
        )
    ),
    sentences=(
        Say(
            "{model}, {entries} entries: local masking is {tv} in total variation from the ideal with these engines, "
            "whose masks and advances take, by token: {engines}.",
            per=("model", "engines"),
            blanks={"entries": "entries", "tv": "tv"},
            frame="local",
        ),
        Say(
            "{model}: {strategy} ({entries} entries): {tv} (plug-in {plug_in}, noise floor {noise}), {verdict} local "
            "masking by {engine} on the same entries ({local}); an answer takes {times} its time.",
            per=_BY,
            blanks={
                **{"entries": "entries", "tv": _TV, "plug_in": "plug_in", "noise": "noise_floor", "verdict": "verdict"},
                **{"engine": "engine", "local": "local_tv", "times": "times_local"},
            },
            frame="drawn",
        ),
        *FAILURES,
    ),
)
