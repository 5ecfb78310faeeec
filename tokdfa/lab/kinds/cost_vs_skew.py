"""The experiment ``kind: cost_vs_skew``: what a way of decoding costs, against how far its answers are from the ideal.

Each way (`tokdfa.lab.measure.ways`) is composed with one of the `engines`, which answers its questions. *Local masking*
draws each token through a mask; the other ways approach the ideal if their engine admits all spellings, the model's
distribution over proper sequences if it admits these.

Constraints are finite, so the *ideal*, the model's own distribution over the choices, and local masking are exact
(`tokdfa.skew.exact`, texts without an end token). Other ways are run `runs` times and estimated
(`tokdfa.lab.measure.drawn_skew`). A *run* is all that one answer takes, so nothing is shared between answers; of
weighted sequences an answer has the share of its weight, of ASAp's the last one is the answer. Ways take turns, run by
run. Kept rows stand in for the model; a run's seconds are those of the loop and the model's by its price
(`tokdfa.lab.measure.model_price`), of which the median over the runs is taken.

Rows, by ``part``: ``model``, also with its price; ``entry``, a prompt with its choices; ``point``, a way on an entry:
``tv`` (exact, or cross-fitted with ``tv_se``), ``plug_in``, ``noise_floor``, ``answered``, ``tokens``, ``passes``,
``seconds``, ``mask_seconds``. A way with less than `LEAST_RUNS` answers has the status `NOTHING_DRAWN`, or ``timeout``.

Told is the mean total variation over the entries where a way was measured. Cross-fitted estimates are too small in
expectation and plug-in estimates too large, so a way is above or below local masking by its engine, on the same
entries, only if that holds at the unfavourable end, 1.96 standard errors away.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from tokdfa.constraint import Choice
from tokdfa.decoding.sampling import log_total
from tokdfa.errors import OptionError
from tokdfa.lab.declare import Column, Pivot, Points, Say, Stat, Summary
from tokdfa.lab.declare.columns import format_seconds, seconds, text
from tokdfa.lab.measure.clock import collector_off
from tokdfa.lab.measure.drawn_skew import LEAST_RUNS, drawn_distance
from tokdfa.lab.measure.engines import Engines, EngineSet, spread
from tokdfa.lab.measure.limits import OK, Failure, attempt
from tokdfa.lab.measure.model_bench import Count, ModelSettings, Prompt, Seconds, distinct_labels, model_kind
from tokdfa.lab.measure.model_price import calibrate
from tokdfa.lab.measure.ways import Answer, Way, decode, distinct_names
from tokdfa.lab.measure.workloads import derive_seed
from tokdfa.models.cache import CachedModel
from tokdfa.skew.distances import compare, total_variation
from tokdfa.skew.eos import check_texts
from tokdfa.skew.exact import ideal_distribution, masked_distribution
from tokdfa.skew.measured import Z_95

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    import pandas as pd

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.lab.measure.model_bench import Turn
    from tokdfa.lab.measure.model_entries import Loaded
    from tokdfa.lab.measure.model_price import Price
    from tokdfa.skew.exact import ExactResult

    Row = dict[str, Any]

#: The method of local masking, among ways and in rows.
MASKS, LOCAL = "masks", "local masking"
#: A way with fewer answers on an entry has no distance there.
NOTHING_DRAWN, TIMEOUT = "nothing_drawn", "timeout"
#: Distributions whose total variation is nearer than this are the same up to what the exact walk left open.
EQUAL = 1e-3


class EngineWay(Way):
    """A way, composed with an engine (a label)."""

    engine: str

    @property
    def name(self) -> str:
        """``smc 16, token_index``; of local masking the engine."""
        if self.method == MASKS:
            return self.label or self.engine
        return self.label or f"{self.method} {self.size}, {self.engine}"


class Settings(ModelSettings):
    """The settings of the experiment: at most `limit` of the `entries` are measured, evenly spread.

    `tolerance`, `max_prefixes`: of the exact distributions. `runs`: of each way on each entry, or fewer if it takes
    `seconds_each` before; local masking, by each of the engines, is run so often for its costs only.
    """

    engines: Engines
    entries: Annotated[list[Prompt], Field(min_length=1), AfterValidator(distinct_labels)]
    ways: Annotated[list[EngineWay], AfterValidator(distinct_names)] = Field(default_factory=list)
    limit: Count | None = None
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 1e-4
    max_prefixes: Count = 3_000
    runs: Annotated[int, Field(ge=LEAST_RUNS, le=100_000)] = 40
    seconds_each: Seconds = 1.0

    @model_validator(mode="after")
    def _ways_are_possible(self) -> Settings:
        engines = [engine.name for engine in self.engines]
        for way in self.ways:
            if way.engine not in engines:
                raise OptionError(f"settings.ways: there is no engine {way.engine!r}; there are {engines}")
            if way.method in ("none", MASKS, "reason"):
                raise OptionError(f"settings.ways: {way.method} draws no sequences; local masking is by every engine")
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
        yield {"entry": entry.label}, _measure_entry(entry, loaded, settings, engine_set, price, seed)


def _measure_entry(
    entry: Prompt, loaded: Loaded, settings: Settings, engine_set: EngineSet, price: Price, seed: int
) -> Iterator[Row]:
    """The rows of one entry with one model. Raises what the ideal distribution does."""
    model, context = CachedModel(loaded.model, settings.cache_mb), tuple(loaded.tokenizer.encode(entry.prompt))
    exact: dict[str, Any] = {"tolerance": settings.tolerance, "max_prefixes": settings.max_prefixes, "eos": "ignored"}
    ideal = ideal_distribution(model, context, entry.choices, **exact)
    yield _about(entry, ideal)
    constraint = Choice(entry.choices, label=entry.label)
    compiled = {engine.name: engine_set.compile(engine.name, constraint) for engine in settings.engines}
    local = [EngineWay(method="masks", engine=engine.name) for engine in settings.engines]
    ways = {way.name: way for way in (*local, *settings.ways)}
    rows: dict[str, Row] = {}
    for name, way in ways.items():
        rows[name] = {"strategy": name, "method": LOCAL if way.method == MASKS else way.method, "engine": way.engine}
        found = compiled[way.engine]
        rows[name] |= found.columns if isinstance(found, Failure) else {"status": OK}
        if not isinstance(found, Failure) and way.method == MASKS:
            masked = attempt(masked_distribution, found, model, context, entry.choices, **exact)
            if isinstance(masked, Failure):
                rows[name] |= masked.columns
            else:
                low, high = compare(ideal.distribution, masked.distribution).total_variation
                rows[name] |= {"tv": (low + high) / 2, "tv_low": low, "tv_high": high}
    runs: dict[str, list[Row]] = {name: [] for name in ways}
    spent = dict.fromkeys(ways, 0.0)
    places = {written: place for place, written in enumerate(ideal.distribution.texts)}
    longest = max(map(len, places)) + 1
    with collector_off():
        for turn in range(settings.runs):
            drawn = derive_seed(seed, entry.label, loaded.row["model"], turn)
            for name, way in ways.items():
                one = compiled[way.engine]
                if rows[name]["status"] != OK or spent[name] > settings.seconds_each or isinstance(one, Failure):
                    continue
                begun = time.perf_counter()
                run = attempt(_run, way, model, one, entry, loaded, longest, drawn, price, places)
                spent[name] += time.perf_counter() - begun
                if isinstance(run, Failure):
                    rows[name] |= run.columns
                else:
                    runs[name].append(run)
    for order, (name, row) in enumerate(rows.items()):
        done = row["status"] == OK
        yield {"order": order} | row | (_summary(runs[name], row, ideal, settings.runs) if done else {})


def _about(entry: Prompt, ideal: ExactResult) -> Row:
    """The row of the entry itself."""
    known = [spelling.log_proper for spelling in ideal.spellings]
    log_proper = np.array([-np.inf if value is None else value for value in known])
    log_sum = log_total(log_proper)
    goal = ideal.distribution.normalised
    return {
        **{"part": "entry", "topic": entry.topic, "choices": len(ideal.distribution.texts)},
        **{"log_mass": ideal.log_mass.lower, "unresolved": ideal.distribution.unresolved, "prefixes": ideal.prefixes},
        "proper_tv": None if log_sum == -np.inf else total_variation(np.exp(log_proper - log_sum), goal),
    }


def _run(
    way: EngineWay,
    model: CachedModel,
    compiled: CompiledConstraint,
    entry: Prompt,
    loaded: Loaded,
    longest: int,
    seed: int,
    price: Price,
    places: dict[bytes, int],
) -> Row:
    """One run: its costs, and the ``shares`` of the choices among its answers (float64, (choices,)), None without."""
    found, costs = decode(way, model, compiled, entry.prompt, loaded.tokenizer, longest, seed, price, "ignored")
    shares, tokens = np.zeros(len(places)), 0.0
    if isinstance(found, Answer):
        return {**costs, "tokens": len(found.tokens), "shares": shares}
    last = -1 if way.method == "asap" else 0
    sequences, log_weights = found.sequences[last:], found.log_weights[last:]
    log_sum = log_total(log_weights)
    if log_sum == -np.inf:
        return {**costs, "tokens": 0.0, "shares": None}
    for sequence, share in zip(sequences, np.exp(log_weights - log_sum).tolist(), strict=True):
        if share > 0:
            shares[places[found.vocabulary.spell(sequence)]] += share
            tokens += share * len(sequence)
    return {**costs, "tokens": tokens, "shares": shares}


def _summary(runs: list[Row], row: Row, ideal: ExactResult, asked: int) -> Row:
    """What the runs of a way amount to: counts and seconds by answer; without enough answers the reason."""
    answers: list[npt.NDArray[np.float64]] = [run["shares"] for run in runs if run["shares"] is not None]
    found: Row = {"runs": len(runs), "answered": len(answers)}
    if len(answers) < LEAST_RUNS:
        status = NOTHING_DRAWN if len(runs) == asked or len(answers) < len(runs) else TIMEOUT
        said = f"{len(answers)} answers in {len(runs)} runs; {LEAST_RUNS} are needed"
        return {**found, "status": status, "message": said}
    each = len(runs) / len(answers)
    found |= {name: each * float(np.mean([run[name] for run in runs])) for name in ("passes", "tokens")}
    found |= {name: each * float(np.median([run[name] for run in runs[1:]])) for name in ("seconds", "mask_seconds")}
    if "tv" in row:
        return found
    distance = drawn_distance(np.array(answers), ideal.distribution.normalised)
    found |= {"tv": distance.cross_fitted, "tv_se": distance.standard_error}
    return found | {"plug_in": distance.plug_in, "noise_floor": distance.noise_floor}


def frames(found: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The points with what local masking has on the same entry; each strategy's means; local masking by entry."""
    import pandas as pd

    points = found[""]
    points = points.assign(
        token_seconds=points["mask_seconds"] / points["tokens"], answers=points["answered"] / points["runs"]
    )
    place = ["model", "entry", "engine"]
    local = points[points["method"] == LOCAL]
    same = local[[*place, "tv", "seconds"]].rename(columns={"tv": "local_tv", "seconds": "local_seconds"})
    points = points.merge(same, on=place, how="left").sort_values("order", kind="stable")
    points["times_local"] = points["seconds"] / points["local_seconds"]
    told = pd.DataFrame([_mean_point(group) for _, group in points.groupby(["model", "strategy"], sort=False)])
    exact = told[told["method"] == LOCAL]
    taken = exact["engine"] + " " + exact["token_seconds"].map(format_seconds)
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
    point |= {
        name: float(rows[name].median()) for name in ("token_seconds", "seconds", "times_local", "tokens", "passes")
    }
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
        Column("passes", "passes", "", "lower", "different prefixes that the model was asked about, for an answer"),
        Column("prefixes", "rows of the ideal"),
        Column("answers", "runs with an answer", "share", "higher"),
        Column("mass", "mass", "share", "neither", "the model's probability of the choices"),
        Column("unresolved", "unresolved", "share"),
        Column("proper_tv", "proper sequences alone", "share", "lower", "of the model restricted to them"),
        seconds("token_seconds", "engine, a token", "all questions to matchers, by token of the answer"),
        seconds("seconds", "all, an answer", "with the loop and the model"),
        *(seconds("call_seconds", "a call"), seconds("row_seconds", "a row in it")),
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
            "Costs: medians over entries. Passes: different prefixes that the model was asked about.",
            by=_BY,
            values=(
                *("entries", _TV, "plug_in", "noise_floor", "local_tv", "verdict", "token_seconds", "seconds"),
                *("times_local", "tokens", "passes"),
            ),
            frame="told",
            brief=(*_BY, "entries", "total variation", "engine, a token", "all, an answer"),
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
            x=name,
            y="tv",
            by="method",
            panels="model",
            hover=("strategy", "entries", "tv_from", "tv_to", "noise_floor"),
            frame="told",
        )
        for name, title in (
            ("token_seconds", "Skew against questions to matchers, by token"),
            ("seconds", "Skew against all time of an answer, with the model"),
        )
    ),
    sentences=(
        Say(
            "{model}, {entries} entries: local masking is {tv} in total variation from the ideal with these engines, "
            "whose matchers take, by token: {engines}.",
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
