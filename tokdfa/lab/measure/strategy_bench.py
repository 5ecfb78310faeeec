"""One prompt with its choices, decoded by every strategy: distances from the ideal, and what an answer costs.

Skew. Constraints are finite, so the ideal distribution and that of local masking are exact (`tokdfa.skew.exact`, texts
without an end token). That of the other strategies is estimated from `runs` runs (`tokdfa.lab.measure.drawn_skew`).

Cost of an answer: (number of questions of each kind, mean over runs) times (nanoseconds of such a question, median over
runs), which keeps the rare dear runs and leaves out the hiccups of the machine. The first run of each strategy warms up
and is not timed. Strategies take turns, run by run. What is done with the model's rows (exponentials, sums, random
numbers), in numpy over the whole vocabulary, is the *arithmetic*, reckoned likewise by masks and checks.

While strategies run, kept rows stand in for the model. What it would have cost is reckoned from the numbers of rows and
calls, with seconds for each (`tokdfa.lab.measure.model_price`). A prefix that is asked for again within a run counts
once: a loop can keep rows. Local masking needs no row where a step is forced; its rows are the mean tokens times the
share of steps that are not forced, both exact up to the unresolved mass. The weights of the other strategies need the
row there too.

Rows of the part ``entry``: ``topic``, ``choices`` (how many), ``log_mass``, ``unresolved``, ``prefixes`` (rows that the
ideal took), ``proper_tv`` (of the model's distribution over proper sequences from the ideal), ``seconds``.

Rows of ``point``: ``strategy``, ``method``, ``engine``, ``backend``, ``size``; ``tv``: exact (the middle of ``tv_low``
and ``tv_high``) or cross-fitted, ``tv_se``, ``plug_in``, ``noise_floor``; ``runs``, ``answered`` (runs with an answer);
per answer: ``tokens``, ``texts``, ``rows``, ``rows_asked`` (with those asked for again), ``calls``, ``masks``,
``checks``, ``advances``, ``others`` (starts, forks, whether it may end), ``engine_us`` (masks, checks and advances),
``others_us``, ``arithmetic_us``, ``model_us``; ``mask_us``, ``check_us``, ``advance_us``: of one; ``compile_ms``. A
strategy with less than `LEAST_RUNS` answers has the status `NOTHING_DRAWN`, or `TIMEOUT` if its time was over.
"""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from tokdfa.constraint import Choice
from tokdfa.decoding.adaptive_rejection import draw_by_adaptive_rejection
from tokdfa.decoding.asap import draw_by_asap
from tokdfa.decoding.rejection import draw_by_rejection
from tokdfa.decoding.sampling import log_total
from tokdfa.decoding.smc import draw_by_smc
from tokdfa.lab.measure.clock import collector_off, time_call
from tokdfa.lab.measure.counting_model import CountingModel
from tokdfa.lab.measure.drawn_skew import LEAST_RUNS, drawn_distance
from tokdfa.lab.measure.engines import Engines, EngineSet  # noqa: TC001 (pydantic reads the annotation)
from tokdfa.lab.measure.limits import OK, Failure, attempt
from tokdfa.lab.measure.model_bench import Count, ModelSettings, Prompt, Seconds
from tokdfa.lab.measure.settings import Strict
from tokdfa.lab.measure.timed_matcher import Meter, TimedConstraint
from tokdfa.lab.measure.workloads import derive_seed
from tokdfa.models.cache import CachedModel
from tokdfa.skew.distances import compare, total_variation
from tokdfa.skew.exact import ideal_distribution, masked_distribution

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from tokdfa.decoding.draws import Draws
    from tokdfa.lab.measure.model_entries import Loaded
    from tokdfa.lab.measure.model_price import Price
    from tokdfa.models.base import LanguageModel

    Floats = npt.NDArray[np.float64]
    Row = dict[str, Any]

LOCAL = "local masking"
#: Methods beyond local masking, as settings call them -> the word for their size; None: they have none.
SIZES: dict[str, str | None] = {
    "rejection": None,
    "smc": "particles",
    "adaptive_rejection": "particles",
    "asap": "samples",
}
#: A strategy with fewer answers on an entry has no distance there.
NOTHING_DRAWN, TIMEOUT = "nothing_drawn", "timeout"


class Strategy(Strict):
    """A method beyond local masking, composed with an engine (a label). `size`: of its particles or samples."""

    method: Literal["rejection", "smc", "adaptive_rejection", "asap"]
    engine: str
    size: Count | None = None

    @property
    def name(self) -> str:
        """``smc 16, token_index``."""
        words = self.method.replace("_", " ") + (f" {self.size}" if self.size is not None else "")
        return f"{words}, {self.engine}"


class BenchSettings(ModelSettings):
    """How strategies are run.

    `tolerance`, `max_prefixes`: of the exact distributions. `runs`: of each strategy on each entry, or fewer if it
    takes `seconds_each` before; local masking is run so often to be timed only. `max_drafts`: of one run of rejection
    sampling, made `batch` at a time.
    """

    engines: Engines
    strategies: list[Strategy] = Field(default_factory=list)
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 1e-4
    max_prefixes: Count = 3_000
    runs: Annotated[int, Field(ge=LEAST_RUNS, le=100_000)] = 40
    seconds_each: Seconds = 1.0
    max_drafts: Count = 2_000
    batch: Count = 8


class _Run(NamedTuple):
    """One run. `shares`: float64, shape (choices,), None without an answer; `tokens`: of the answer, on average."""

    shares: Floats | None
    tokens: float
    texts: int
    rows: int
    rows_asked: int
    calls: int
    arithmetic_ns: float
    meter: Meter


@dataclass
class _Contender:
    """A strategy on an entry, and its runs so far; `timed` is None once it has failed."""

    method: str
    size: int | None
    timed: TimedConstraint | None
    row: Row
    runs: list[_Run] = field(default_factory=list)
    seconds: float = 0.0

    def fail(self, failure: Failure) -> None:
        """It takes no further turns."""
        self.timed = None
        self.row |= failure.columns


def measure_entry(
    entry: Prompt, loaded: Loaded, settings: BenchSettings, engine_set: EngineSet, price: Price, seed: int
) -> Iterator[Row]:
    """The rows of one entry with one model. Raises what the ideal distribution does."""
    started = time.perf_counter_ns()
    bench = _EntryBench(entry, loaded, settings)
    contenders = list(bench.contenders(engine_set))
    seed = derive_seed(seed, entry.label, loaded.row["model"])
    with collector_off():
        for turn in range(settings.runs):
            for one in contenders:
                if one.timed is not None and one.seconds <= settings.seconds_each:
                    bench.run(one, one.timed, derive_seed(seed, str(turn)))
    about = bench.about()
    yield about | {"seconds": (time.perf_counter_ns() - started) * 1e-9}
    for order, one in enumerate(contenders):
        yield {"order": order} | one.row | (bench.summary(one, price) if one.timed is not None else {})


class _EntryBench:
    """The exact distributions of one entry, and the runs of all strategies."""

    def __init__(self, entry: Prompt, loaded: Loaded, settings: BenchSettings) -> None:
        self.entry, self.settings = entry, settings
        self.model = CachedModel(loaded.model, settings.cache_mb)
        self.context = tuple(loaded.tokenizer.encode(entry.prompt))
        self.exact: dict[str, Any] = {"tolerance": settings.tolerance, "max_prefixes": settings.max_prefixes}
        self.exact["eos"] = "ignored"
        self.ideal = ideal_distribution(self.model, self.context, entry.choices, **self.exact)
        self.places = {text: place for place, text in enumerate(self.ideal.distribution.texts)}
        self.goal = self.ideal.distribution.normalised

    def about(self) -> Row:
        """The row of the entry itself."""
        known = [spelling.log_proper for spelling in self.ideal.spellings]
        log_proper = np.array([-np.inf if value is None else value for value in known])
        log_sum = log_total(log_proper)
        proper_tv = math.nan if log_sum == -np.inf else total_variation(np.exp(log_proper - log_sum), self.goal)
        return {
            "part": "entry",
            "topic": self.entry.topic,
            "choices": len(self.places),
            "log_mass": self.ideal.log_mass.lower,
            "unresolved": self.ideal.distribution.unresolved,
            "prefixes": self.ideal.prefixes,
            "proper_tv": proper_tv,
        }

    def contenders(self, engine_set: EngineSet) -> Iterator[_Contender]:
        """All strategies before their first run: local masking by each engine first."""
        constraint = Choice(self.entry.choices, label=self.entry.label)
        timed: dict[str, TimedConstraint | Failure] = {}
        about: dict[str, Row] = {}
        for engine in self.settings.engines:
            found, ns = time_call(lambda name=engine.name: engine_set.compile(name, constraint))  # type: ignore[misc]
            timed[engine.name] = found if isinstance(found, Failure) else TimedConstraint(found)
            about[engine.name] = {"engine": engine.name, "backend": engine.backend, "compile_ms": ns * 1e-6}
            row = {"strategy": engine.name, "method": LOCAL, "size": None, **about[engine.name]}
            yield self._local(row, timed[engine.name])
        for one in self.settings.strategies:
            row = {"strategy": one.name, "method": one.method, "size": one.size, **about[one.engine]}
            contender, answered = _Contender(one.method, one.size, None, row), timed[one.engine]
            if isinstance(answered, Failure):
                contender.fail(answered)
            else:
                contender.timed = answered
            yield contender

    def _local(self, row: Row, timed: TimedConstraint | Failure) -> _Contender:
        """Local masking, with its exact distance."""
        found = timed if isinstance(timed, Failure) else attempt(self._masked, timed)
        contender = _Contender(LOCAL, None, timed if isinstance(timed, TimedConstraint) else None, row)
        if isinstance(found, Failure):
            contender.fail(found)
        else:
            row |= found
        return contender

    def _masked(self, timed: TimedConstraint) -> Row:
        found = masked_distribution(timed, self.model, self.context, self.entry.choices, **self.exact)
        low, high = compare(self.ideal.distribution, found.distribution).total_variation
        assert found.forced_share is not None
        unforced = found.mean_tokens * (1 - found.forced_share)
        return {"tv": (low + high) / 2, "tv_low": low, "tv_high": high, "rows": unforced, "calls": unforced}

    def run(self, one: _Contender, timed: TimedConstraint, seed: int) -> None:
        """One more run of a strategy; a failure ends it."""
        timed.meter = Meter()
        model = CountingModel(self.model)
        draws, ns = time_call(lambda: attempt(self._draw, one, timed, model, seed))
        one.seconds += ns * 1e-9
        if isinstance(draws, Failure):
            one.fail(draws)
            return
        shares, tokens = self._answer(draws, one.method)
        arithmetic = max(0.0, (draws.seconds - draws.model_seconds) * 1e9 - timed.meter.ns)
        texts, rows = len(draws.sequences), model.different_rows
        one.runs.append(_Run(shares, tokens, texts, rows, draws.model_rows, model.calls, arithmetic, timed.meter))

    def _draw(self, one: _Contender, timed: TimedConstraint, model: LanguageModel, seed: int) -> Draws:
        limits: dict[str, Any] = {"max_tokens": max(map(len, self.places)) + 1, "eos": "ignored", "seed": seed}
        asked = (model, timed, self.context)
        if one.method == "rejection":
            limits |= {"max_drafts": self.settings.max_drafts, "batch": self.settings.batch}
            return draw_by_rejection(*asked, samples=1, **limits)
        if one.size is None:  # local masking: one particle, never resampled
            return draw_by_smc(*asked, particles=1, threshold=0.0, **limits)
        if one.method == "asap":
            return draw_by_asap(*asked, samples=one.size, **limits)
        draw = draw_by_smc if one.method == "smc" else draw_by_adaptive_rejection
        return draw(*asked, particles=one.size, **limits)

    def _answer(self, draws: Draws, method: str) -> tuple[Floats | None, float]:
        """The probabilities of the answers of a run, and the mean tokens of an answer."""
        last = -1 if method == "asap" else 0
        sequences, log_weights = draws.sequences[last:], draws.log_weights[last:]
        log_sum = log_total(log_weights)
        if log_sum == -np.inf:
            return None, math.nan
        shares, tokens = np.zeros(len(self.places)), 0.0
        for sequence, share in zip(sequences, np.exp(log_weights - log_sum).tolist(), strict=True):
            if share > 0:
                shares[self.places[draws.vocabulary.spell(sequence)]] += share
                tokens += share * len(sequence)
        return shares, tokens

    def summary(self, one: _Contender, price: Price) -> Row:
        """What the runs of a strategy amount to; see the module for how costs are averaged."""
        answers = [run for run in one.runs if run.shares is not None]
        row: Row = {"status": OK, "runs": len(one.runs), "answered": len(answers)}
        if len(answers) < LEAST_RUNS:
            all_run = len(one.runs) == self.settings.runs
            status = NOTHING_DRAWN if all_run or len(answers) < len(one.runs) else TIMEOUT
            said = f"{len(answers)} answers in {len(one.runs)} runs and {one.seconds:.1f} s; {LEAST_RUNS} are needed"
            return row | {"status": status, "message": said}

        def per_answer(name: str) -> float:
            return float(sum(getattr(run, name) for run in one.runs)) / len(answers)

        row |= {name: per_answer(name) for name in ("texts", "rows", "calls", "rows_asked")}
        if one.method != LOCAL:
            distance = drawn_distance(np.array([run.shares for run in answers]), self.goal)
            row |= {"tv": distance.cross_fitted, "tv_se": distance.standard_error}
            row |= {"plug_in": distance.plug_in, "noise_floor": distance.noise_floor}
        else:
            row |= {name: one.row[name] for name in ("rows", "calls")}  # exact
        row["tokens"] = statistics.fmean(run.tokens for run in answers)
        spent = {}
        for name in ("masks", "checks", "advances", "others"):
            tallies = [getattr(run.meter, name) for run in one.runs]
            each = [tally.ns * 1e-3 / tally.count for tally in tallies[1:] if tally.count]
            one_us = statistics.median(each) if each else math.nan
            row[name] = sum(tally.count for tally in tallies) / len(answers)
            spent[name] = row[name] * one_us if each else 0.0
            row[f"{name.removesuffix('s')}_us"] = one_us
        questions = [run.meter.masks.count + run.meter.checks.count for run in one.runs]
        each = [run.arithmetic_ns * 1e-3 / max(1, count) for run, count in zip(one.runs, questions, strict=True)]
        return row | {
            "engine_us": spent["masks"] + spent["checks"] + spent["advances"],
            "others_us": spent["others"],
            "arithmetic_us": statistics.median(each[1:]) * sum(questions) / len(answers),
            "model_us": 1e6 * (row["calls"] * price.call + row["rows"] * price.row),
        }
