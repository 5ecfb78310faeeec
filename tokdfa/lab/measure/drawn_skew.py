r"""How far the answers of a way to decode are from a known distribution, by draws, and what they cost.

Ways are run in turns on a prompt whose exact distributions are known (`tokdfa.lab.measure.skew_rows`); local masking by
each engine, too, for its costs. A *run* is all that one answer takes, so nothing is shared between answers; of weighted
sequences an answer has the share of its weight, of ASAp's the last one is the answer. Kept rows stand in for the model;
a run's seconds are those of the loop and the model's by its price (`tokdfa.lab.measure.model_price`), of which the
median over the runs is taken.

A *run* of a strategy leads to one answer; its *shares* are the probabilities of the answers given what the run has
drawn (for weighted particles the weights; otherwise one answer has it all). The mean of the shares over R independent
runs is an unbiased estimate q' of the strategy's distribution q, and the total variation of q from the ideal p is
wanted, half the sum of |q - p|. Two estimates have it between them, in expectation:

- *plug-in*: that of q' from p. Too large on average, since the absolute value is convex: even exact draws from p show
  the *noise floor*, for R draws half the sum of E|X - Rp| / R with X binomial (De Moivre's closed form).
- *cross-fitted*: TV is the largest value of half the sum of s (q - p) over signs s. One half of the runs says which
  signs, the other half estimates the sum with them, and the other way round. For fixed signs that is unbiased and at
  most TV; so it is too small on average, by what wrong signs cost, and its mean is 0 if q is p. It may be negative.

The standard error is that of the cross-fitted value over runs, on the safe side: both halves are taken as fully
correlated, and each has two more values, the ends of the range that an answer may have (so Agresti and Coull 1998 treat
shares). Otherwise some runs with the same answer would look like certainty.
"""

from __future__ import annotations

import json
import time
from math import exp, floor, lgamma, log
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokdfa.constraint import Choice
from tokdfa.decoding.sampling import log_total
from tokdfa.errors import OptionError
from tokdfa.lab.measure.clock import collector_off
from tokdfa.lab.measure.limits import OK, Failure, attempt
from tokdfa.lab.measure.ways import Answer, Way, decode
from tokdfa.lab.measure.workloads import derive_seed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.decoding.draws import Eos
    from tokdfa.lab.measure.engines import EngineSet
    from tokdfa.lab.measure.model_bench import Prompt
    from tokdfa.lab.measure.model_price import Price
    from tokdfa.models.cache import CachedModel
    from tokdfa.vocabulary.tokenizers import Tokenizer

    Floats = npt.NDArray[np.float64]
    Row = dict[str, Any]

#: The method of local masking, among ways and in rows.
MASKS, LOCAL = "masks", "local masking"
#: A way with fewer answers on a prompt has no distance there.
NOTHING_DRAWN, TIMEOUT = "nothing_drawn", "timeout"

#: With fewer runs, five in each half, an error is anybody's guess.
LEAST_RUNS = 10


class DrawnDistance(NamedTuple):
    """The total variation from the ideal, by draws; see the module. All four are shares."""

    cross_fitted: float
    standard_error: float
    plug_in: float
    noise_floor: float


def drawn_distance(shares: Floats, ideal: Floats) -> DrawnDistance:
    """The distance of the strategy with these runs from `ideal`. O(R k).

    `shares`: float64, shape (R, k), each row adding up to 1, in the order of independent runs; `ideal`: float64, shape
    (k,). Raises OptionError for fewer than `LEAST_RUNS` runs.
    """
    runs = len(shares)
    if runs < LEAST_RUNS:
        raise OptionError(f"a distance with an error needs at least {LEAST_RUNS} runs, not {runs}")
    plug_in = float(np.abs(shares.mean(axis=0) - ideal).sum()) / 2
    halves = shares[::2], shares[1::2]
    values, variances = [], []
    for fitted, judged in (halves, halves[::-1]):
        signs = np.sign(fitted.mean(axis=0) - ideal)
        each = (judged - ideal) @ signs / 2
        values.append(float(each.mean()))
        ends = (np.array([signs.min(), signs.max()]) - ideal @ signs) / 2
        variances.append(float(np.append(each, ends).var(ddof=1)) / len(each))
    return DrawnDistance(
        float(np.mean(values)), float(np.sqrt(np.mean(variances))), plug_in, expected_distance(ideal, runs)
    )


def expected_distance(ideal: Floats, draws: int) -> float:
    """The mean total variation between `ideal` and the shares of so many exact draws from it. O(k).

    E|X - np| = 2 (m + 1) C(n, m + 1) p^(m+1) (1 - p)^(n - m) with m = floor(np), for X binomial (De Moivre 1730;
    Diaconis and Zabell 1991).
    """
    total = 0.0
    for p in ideal.tolist():
        if 0 < p < 1:
            m = floor(draws * p)
            log_choose = lgamma(draws + 1) - lgamma(m + 2) - lgamma(draws - m)
            total += 2 * exp(log(m + 1) + log_choose + (m + 1) * log(p) + (draws - m) * log(1 - p))
    return total / draws / 2


class EngineWay(Way):
    """A way, composed with an engine (a label)."""

    engine: str

    @property
    def name(self) -> str:
        """``smc 16, token_index``; of local masking the engine."""
        if self.method == MASKS:
            return self.label or self.engine
        return self.label or f"{self.method} {self.size}, {self.engine}"


def drawn_rows(
    prompt: Prompt,
    exact: Mapping[str, Row],
    model: CachedModel,
    tokenizer: Tokenizer,
    ways: Sequence[EngineWay],
    engine_set: EngineSet,
    price: Price,
    *,
    runs: int,
    seconds_each: float,
    eos: Eos,
    seed: int,
) -> Iterator[Row]:
    """A row of the part ``point`` for local masking by each engine and for each way; none without an ideal.

    `exact`: the rows of the ideal and of the engines, by name; `runs`: of each way, or fewer if it takes `seconds_each`
    before. ``tv`` (exact, or cross-fitted with ``tv_se``), ``plug_in``, ``noise_floor``; by answer ``tokens``,
    ``passes``, ``seconds``, ``mask_seconds``.
    """
    (name, ideal), *engines = exact.items()
    if ideal.get("status", OK) != OK:
        return
    found = np.array(json.loads(ideal["probabilities"]))
    goal = found / found.sum()
    places = {text.encode(): place for place, text in enumerate(dict.fromkeys(prompt.choices))}
    longest = max(map(len, places)) + 1
    every = {way.name: way for way in (*(EngineWay(method="masks", engine=name) for name, _ in engines), *ways)}
    compiled = {name: engine_set.compile(name, Choice(prompt.choices, label=prompt.label)) for name, _ in engines}
    rows: dict[str, Row] = {}
    for name, way in every.items():
        method = LOCAL if way.method == MASKS else way.method
        rows[name] = {"part": "point", "strategy": name, "method": method, "engine": way.engine, "status": OK}
        rows[name] |= {key: exact[way.engine][key] for key in ("status", "message") if key in exact[way.engine]}
    done: dict[str, list[Row]] = {name: [] for name in every}
    spent = dict.fromkeys(every, 0.0)
    with collector_off():
        for turn in range(runs):
            drawn = derive_seed(seed, prompt.label, model.name, turn)
            for name, way in every.items():
                one = compiled[way.engine]
                if rows[name]["status"] != OK or spent[name] > seconds_each or isinstance(one, Failure):
                    continue
                begun = time.perf_counter()
                run = attempt(_run, way, model, one, prompt.prompt, tokenizer, longest, drawn, price, eos, places)
                spent[name] += time.perf_counter() - begun
                if isinstance(run, Failure):
                    rows[name] |= run.columns
                else:
                    done[name].append(run)
    for name, row in rows.items():
        if row["status"] == OK:
            row |= _summary(done[name], runs, goal, exact[row["engine"]] if row["method"] == LOCAL else None)
        yield row


def _run(
    way: EngineWay,
    model: CachedModel,
    compiled: CompiledConstraint,
    prompt: str,
    tokenizer: Tokenizer,
    longest: int,
    seed: int,
    price: Price,
    eos: Eos,
    places: dict[bytes, int],
) -> Row:
    """One run: its costs, and the ``shares`` of the choices among its answers (float64, (choices,)), None without."""
    found, costs = decode(way, model, compiled, prompt, tokenizer, longest, seed, price, eos)
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


def _summary(runs: list[Row], asked: int, goal: Floats, exact: Row | None) -> Row:
    """What the runs of a way amount to: counts and seconds by answer; without enough answers the reason."""
    answers = [run["shares"] for run in runs if run["shares"] is not None]
    found: Row = {"runs": len(runs), "answered": len(answers)}
    if len(answers) < LEAST_RUNS:
        status = NOTHING_DRAWN if len(runs) == asked or len(answers) < len(runs) else TIMEOUT
        said = f"{len(answers)} answers in {len(runs)} runs; {LEAST_RUNS} are needed"
        return {**found, "status": status, "message": said}
    each = len(runs) / len(answers)
    found |= {name: each * float(np.mean([run[name] for run in runs])) for name in ("passes", "tokens")}
    found |= {name: each * float(np.median([run[name] for run in runs[1:]])) for name in ("seconds", "mask_seconds")}
    if exact is not None:
        return found | {"tv": exact["total_variation"]}
    distance = drawn_distance(np.array(answers), goal)
    found |= {"tv": distance.cross_fitted, "tv_se": distance.standard_error}
    return found | {"plug_in": distance.plug_in, "noise_floor": distance.noise_floor}
