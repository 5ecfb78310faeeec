"""One prompt with its choices, decoded by every strategy: distances from the ideal, and what an answer costs.

`tokdfa.lab.kinds.cost_vs_skew` has the words and the columns of the rows.
"""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from tokdfa.constraint import Choice
from tokdfa.decoding.adaptive_rejection import draw_by_adaptive_rejection
from tokdfa.decoding.asap import draw_by_asap
from tokdfa.decoding.rejection import draw_by_rejection
from tokdfa.decoding.sampling import log_total
from tokdfa.decoding.smc import draw_by_smc
from tokdfa.lab.measure.asked_model import AskedModel
from tokdfa.lab.measure.clock import collector_off
from tokdfa.lab.measure.drawn_skew import LEAST_RUNS, drawn_distance
from tokdfa.lab.measure.engines import Engine, Workshop, attempt
from tokdfa.lab.measure.limits import OK, Failure
from tokdfa.lab.measure.model_entries import MAX_MESSAGE
from tokdfa.lab.measure.timed_matcher import Meter, TimedConstraint
from tokdfa.lab.measure.workloads import derive_seed
from tokdfa.models.cache import CachedModel
from tokdfa.skew.distances import compare, total_variation
from tokdfa.skew.exact import ExactResult, ideal_distribution, masked_distribution

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tokdfa.decoding.draws import Draws
    from tokdfa.lab.measure.model_entries import Loaded
    from tokdfa.lab.measure.model_price import Price
    from tokdfa.models.base import LanguageModel

    Floats = npt.NDArray[np.float64]

LOCAL = "local masking"
#: A strategy with fewer answers on an entry has no distance there.
NOTHING_DRAWN, TIMEOUT = "nothing_drawn", "timeout"

Count = Annotated[int, Field(ge=1, le=1_000_000)]
Seconds = Annotated[float, Field(gt=0)]


class Strategy(BaseModel):
    """A method beyond local masking, composed with an engine (a label). `size`: of its particles or samples."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    method: Literal["rejection", "smc", "adaptive_rejection", "asap"]
    engine: str
    size: Count | None = None

    @property
    def name(self) -> str:
        """``smc 16, token_index``."""
        words = self.method.replace("_", " ") + (f" {self.size}" if self.size is not None else "")
        return f"{words}, {self.engine}"


class Entry(BaseModel):
    """A prompt with the texts that may follow."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    label: str
    prompt: str
    choices: list[str] = Field(min_length=2)
    topic: str = ""
    expected: str | None = None


class BenchSettings(BaseModel):
    """How strategies are run.

    `tolerance`, `max_prefixes`: of the exact distributions. `runs`: of each strategy on each entry, or fewer if it
    takes `seconds_each` before; local masking is run so often to be timed only. `max_drafts`: of one run of rejection
    sampling, made `batch` at a time. `cache_mb`: for rows of the model.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    engines: list[Engine] = Field(min_length=1)
    strategies: list[Strategy] = Field(default_factory=list)
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 1e-4
    max_prefixes: Count = 3_000
    runs: Annotated[int, Field(ge=LEAST_RUNS, le=100_000)] = 40
    seconds_each: Seconds = 1.0
    max_drafts: Count = 2_000
    batch: Count = 8
    cache_mb: Annotated[float, Field(gt=0)] = 1500.0


@dataclass(frozen=True)
class _Run:
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
    """A strategy on an entry, its row, and its runs so far; `timed` is None once it has failed."""

    row: dict[str, Any]
    timed: TimedConstraint | None
    runs: list[_Run] = field(default_factory=list)
    seconds: float = 0.0


class EntryBench:
    """One entry with one model: the exact distributions, and the runs of all strategies. Raises what the ideal does."""

    def __init__(self, entry: Entry, loaded: Loaded, settings: BenchSettings, seed: int) -> None:
        self.entry, self.settings = entry, settings
        self.started = time.perf_counter_ns()
        self.model = CachedModel(loaded.model, settings.cache_mb)
        self.context = tuple(loaded.tokenizer.encode(entry.prompt))
        self.seed = derive_seed(seed, entry.label, loaded.row["model"])
        self.exact: dict[str, Any] = {"eos": "ignored", "tolerance": settings.tolerance}
        self.exact["max_prefixes"] = settings.max_prefixes
        self.ideal = ideal_distribution(self.model, self.context, entry.choices, **self.exact)
        self.places = {text: place for place, text in enumerate(self.ideal.distribution.texts)}
        self.goal = self.ideal.distribution.normalised
        self.max_tokens = max(map(len, self.places)) + 1

    def measure(self, workshop: Workshop, price: Price) -> list[dict[str, Any]]:
        """The rows of the entry."""
        contenders = self._contenders(workshop)
        with collector_off():
            for turn in range(self.settings.runs):
                for one in contenders:
                    if one.timed is not None and one.seconds <= self.settings.seconds_each:
                        self._run(one, derive_seed(self.seed, str(turn)))
        points = [one.row | self._summary(one, price) if one.row["status"] == OK else one.row for one in contenders]
        spellings = self.ideal.spellings
        about = {
            "part": "entry",
            "status": OK,
            "message": "",
            "topic": self.entry.topic,
            "choices": len(self.places),
            "log_mass": self.ideal.log_mass.lower,
            "unresolved": self.ideal.distribution.unresolved,
            "prefixes": self.ideal.prefixes,
            "proper_tv": _proper_distance([spelling.log_proper for spelling in spellings], self.goal),
            "seconds": (time.perf_counter_ns() - self.started) * 1e-9,
        }
        return [about, *points]

    def _contenders(self, workshop: Workshop) -> list[_Contender]:
        found: list[_Contender] = []
        timed: dict[str, TimedConstraint | Failure] = {}
        about: dict[str, dict[str, Any]] = {}
        constraint = Choice(self.entry.choices, label=self.entry.label)
        for engine in self.settings.engines:
            begun = time.perf_counter_ns()
            compiled = workshop.compile(engine.name, constraint)
            compile_ms = (time.perf_counter_ns() - begun) * 1e-6
            timed[engine.name] = compiled if isinstance(compiled, Failure) else TimedConstraint(compiled)
            about[engine.name] = {"engine": engine.name, "backend": engine.backend, "compile_ms": compile_ms}
            row = {"strategy": engine.name, "method": LOCAL, "size": None, **about[engine.name]}
            found.append(self._contender(row, timed[engine.name]))
        for one in self.settings.strategies:
            row = {"strategy": one.name, "method": one.method, "size": one.size, **about[one.engine]}
            found.append(self._contender(row, timed[one.engine]))
        return found

    def _contender(self, about: dict[str, Any], timed: TimedConstraint | Failure) -> _Contender:
        """A strategy before its first run; that of local masking has its exact distance already."""
        row: dict[str, Any] = {"part": "point", "status": OK, "message": "", **about}
        found: TimedConstraint | ExactResult | Failure = timed
        if isinstance(timed, TimedConstraint) and row["method"] == LOCAL:
            found = attempt(masked_distribution, timed, self.model, self.context, self.entry.choices, **self.exact)
        if isinstance(found, Failure):
            return _Contender(row | {"status": found.kind, "message": found.message[:MAX_MESSAGE]}, None)
        if isinstance(found, ExactResult):
            low, high = compare(self.ideal.distribution, found.distribution).total_variation
            assert found.forced_share is not None
            unforced = found.mean_tokens * (1 - found.forced_share)
            row |= {"tv": (low + high) / 2, "tv_low": low, "tv_high": high, "rows": unforced, "calls": unforced}
            row |= {"exact_rows": found.prefixes}
        assert isinstance(timed, TimedConstraint)
        return _Contender(row, timed)

    def _run(self, one: _Contender, seed: int) -> None:
        """One more run of a strategy; a failure ends it."""
        assert one.timed is not None
        one.timed.meter = Meter()
        model = AskedModel(self.model)
        started = time.perf_counter_ns()
        draws = attempt(self._draw, one.row, one.timed, model, seed)
        one.seconds += (time.perf_counter_ns() - started) * 1e-9
        if isinstance(draws, Failure):
            one.row |= {"status": draws.kind, "message": draws.message[:MAX_MESSAGE]}
            one.timed = None
            return
        shares, tokens = self._answer(draws, one.row["method"])
        arithmetic = max(0.0, (draws.seconds - draws.model_seconds) * 1e9 - one.timed.meter.ns)
        asked = (model.different_rows, draws.model_rows, model.calls)
        one.runs.append(_Run(shares, tokens, len(draws.sequences), *asked, arithmetic, one.timed.meter))

    def _draw(self, row: dict[str, Any], timed: TimedConstraint, model: LanguageModel, seed: int) -> Draws:
        limits: dict[str, Any] = {"max_tokens": self.max_tokens, "eos": "ignored", "seed": seed}
        method, size = row["method"], row["size"]
        if method == "rejection":
            drafts: dict[str, Any] = {"max_drafts": self.settings.max_drafts, "batch": self.settings.batch}
            return draw_by_rejection(model, timed, self.context, samples=1, **drafts, **limits)
        if method == LOCAL:  # one particle, never resampled
            return draw_by_smc(model, timed, self.context, particles=1, threshold=0.0, **limits)
        if method == "asap":
            return draw_by_asap(model, timed, self.context, samples=size, **limits)
        draw = draw_by_smc if method == "smc" else draw_by_adaptive_rejection
        return draw(model, timed, self.context, particles=size, **limits)

    def _answer(self, draws: Draws, method: str) -> tuple[Floats | None, float]:
        """The probabilities of the answers of a run, and the mean tokens of an answer."""
        sequences, log_weights = draws.sequences, draws.log_weights
        if method == "asap":
            sequences, log_weights = sequences[-1:], log_weights[-1:]
        log_sum = log_total(log_weights)
        if log_sum == -np.inf:
            return None, math.nan
        shares, tokens = np.zeros(len(self.places)), 0.0
        for sequence, share in zip(sequences, np.exp(log_weights - log_sum).tolist(), strict=True):
            if share > 0:
                shares[self.places[draws.vocabulary.spell(sequence)]] += share
                tokens += share * len(sequence)
        return shares, tokens

    def _summary(self, one: _Contender, price: Price) -> dict[str, Any]:
        """What the runs of a strategy amount to; see the module for how costs are averaged."""
        answers = [run for run in one.runs if run.shares is not None]
        row: dict[str, Any] = {"runs": len(one.runs), "answered": len(answers)}
        if len(answers) < LEAST_RUNS:
            all_run = len(one.runs) == self.settings.runs
            status = NOTHING_DRAWN if all_run or len(answers) < len(one.runs) else TIMEOUT
            said = f"{len(answers)} answers in {len(one.runs)} runs and {one.seconds:.1f} s; {LEAST_RUNS} are needed"
            return row | {"status": status, "message": said}
        if one.row["method"] != LOCAL:
            distance = drawn_distance(np.array([run.shares for run in answers]), self.goal)
            row |= {"tv": distance.cross_fitted, "tv_se": distance.standard_error}
            row |= {"plug_in": distance.plug_in, "noise_floor": distance.noise_floor}
            row |= {"rows": _per_answer(one.runs, "rows"), "calls": _per_answer(one.runs, "calls")}
        else:
            row |= {"rows": one.row["rows"], "calls": one.row["calls"]}
        row |= {"tokens": statistics.fmean(run.tokens for run in answers)}
        row |= {name: _per_answer(one.runs, name) for name in ("texts", "rows_asked")}
        spent = {}
        for name in ("masks", "checks", "advances", "others"):
            tallies = [getattr(run.meter, name) for run in one.runs]
            each = [tally.ns * 1e-3 / tally.count for tally in tallies[1:] if tally.count]
            one_us = statistics.median(each) if each else math.nan
            row[name] = sum(tally.count for tally in tallies) / len(answers)
            spent[name] = row[name] * one_us if each else 0.0
            if name != "others":
                row[f"{name.removesuffix('s')}_us"] = one_us
        row |= {"engine_us": spent["masks"] + spent["checks"] + spent["advances"], "others_us": spent["others"]}
        questions = [run.meter.masks.count + run.meter.checks.count for run in one.runs]
        arithmetic = statistics.median(
            run.arithmetic_ns * 1e-3 / max(1, count) for run, count in zip(one.runs[1:], questions[1:], strict=True)
        )
        row |= {"arithmetic_us": arithmetic * sum(questions) / len(answers)}
        return row | {"model_us": 1e6 * (row["calls"] * price.call + row["rows"] * price.row)}


def _per_answer(runs: list[_Run], name: str) -> float:
    """The sum over all runs, those without an answer included, by the number of answers."""
    answered = sum(run.shares is not None for run in runs)
    return float(sum(getattr(run, name) for run in runs)) / answered


def _proper_distance(log_proper: Sequence[float | None], goal: Floats) -> float:
    """The total variation of the model's distribution over the texts' proper sequences from `goal`; NaN if unknown."""
    known = np.array([-np.inf if value is None else value for value in log_proper])
    log_sum = log_total(known)
    return math.nan if log_sum == -np.inf else total_variation(np.exp(known - log_sum), goal)
