"""The rows of one prompt of ``kind: skew``: exact ones of a few choices, estimated ones of a large language.

A row is an engine. ``method``; ``engine``, ``backend``, ``language``; `DISTANCES`, each as ``NAME`` with ``NAME_low``
and ``NAME_high``; ``improper`` (mass of improper sequences), ``mean_tokens``, ``forced_share``; ``rows`` (model rows
that it needs by itself), ``rows_computed`` (those that nobody before it had asked for), ``seconds``,
``compile_seconds``;
``first``: the first engine with its token language, if that is another one, and ``same``: whether both have the same
distribution (to 1e-9), or drew the same sequences; ``against``: the first of all engines, and ``verdict``: whether this
one is ``nearer`` to its target beyond the bounds or the error, ``farther``, of ``no difference``, or ``undecided``.

- Exact (`tokdfa.skew.exact`, 002 challenge 1): the first row is that of the *ideal*, the model's own distribution over
  the choices, given that one of them comes next; an engine's is what sampling through its masks gives. Two engines of
  one language have equal masks, so with equal rows of the model they have equal distributions, to rounding.
  ``text``, ``topic``, ``choices`` (JSON list), ``count``, ``expected``; ``probabilities`` (JSON list in the order of
  the choices, resolved mass), ``unresolved``, ``proper_shares`` (of each choice's mass, what the proper spelling has);
  ``top``, ``top_certain`` (no other choice can have more, wherever the unresolved mass belongs), ``expected_top`` and
  ``top_differs`` (1 or 0, missing where it is not certain); ``difference`` (the largest of any choice's probability
  from that of ``first``).
- Estimated (`tokdfa.skew.estimate`): ``effective`` samples, ``cut_share``; ``improper_target``: the improper mass of
  the target; ``kept``: the mass relative to that of ``against``, with ``kept_low`` and ``kept_high``, where neither
  rests on fewer than `FEW_EFFECTIVE` samples.
"""

from __future__ import annotations

import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.constraint import Choice
from tokdfa.errors import LimitExceeded
from tokdfa.lab.measure.clock import time_call
from tokdfa.lab.measure.counting_model import CountingModel
from tokdfa.lab.measure.limits import Failure, attempt
from tokdfa.skew.distances import compare
from tokdfa.skew.estimate import Estimate, estimate_skew
from tokdfa.skew.exact import ideal_distribution, masked_distribution
from tokdfa.skew.measured import FEW_EFFECTIVE, Z_95, differs, standard_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tokdfa.backends.base import Backend
    from tokdfa.lab.measure.engines import Engine, EngineSet
    from tokdfa.lab.measure.model_bench import Prompt
    from tokdfa.models.base import LanguageModel
    from tokdfa.models.cache import CachedModel
    from tokdfa.skew.distances import Distances
    from tokdfa.skew.distribution import Distribution
    from tokdfa.skew.exact import ExactResult
    from tokdfa.skew.measured import Measured
    from tokdfa.vocabulary.tokenizers import Tokenizer

    Row = dict[str, Any]

EXACT, ESTIMATED = "exact", "estimated"
#: The name of the ideal distribution among the engines.
IDEAL = "ideal"
#: The language of an engine that mutes literals; those of the others are in `Backend.token_language`.
MUTED = "muted"
#: How far the probabilities of two engines of one language may be apart: rounding, and no more.
AGREEMENT = 1e-9
DISTANCES = ("total_variation", "kl_forward", "kl_backward", "jensen_shannon")
NEARER, FARTHER, SAME, UNDECIDED = "nearer", "farther", "no difference", "undecided"
#: No sample was complete within the limit on tokens.
ALL_CUT = "all_cut"
#: Probabilities that are nearer to each other are a tie: rounding may have decided it.
TIE = 1e-12


def language_of(backend: Backend) -> str:
    """What a backend admits of the spellings of a text: ``all``, ``proper`` or ``muted``."""
    return MUTED if backend.settings.get("mute_literals") else backend.token_language


def exact_rows(
    prompt: Prompt,
    model: CachedModel,
    tokenizer: Tokenizer,
    engines: Sequence[Engine],
    engine_set: EngineSet,
    follow_spellings: bool = True,
    **limits: Any,
) -> Iterator[Row]:
    """The ideal's row and one for each engine in turn; the ideal's alone if that has failed.

    `limits`: eos, tolerance and max_prefixes of `tokdfa.skew.exact`. The rows that `model` keeps are shared by all; its
    capacity should hold all rows of a prompt, since a row that is computed again may differ by the model's noise (1e-5
    in float32).
    """
    context, choices = tokenizer.encode(prompt.prompt), prompt.choices
    about = {
        **{"method": EXACT, "text": prompt.prompt, "topic": prompt.topic, "expected": prompt.expected},
        **{"choices": json.dumps(choices, ensure_ascii=False), "count": len(set(choices))},
    }
    ideal, spent = _timed(model, partial(ideal_distribution, model, context, choices, **limits))
    row: Row = {"engine": IDEAL, "backend": "", "language": "all", **about, "compile_seconds": 0.0, **spent}
    if isinstance(ideal, Failure):
        yield row | ideal.columns
        return
    row |= _of_result(ideal) | _top(ideal.distribution, prompt.expected)
    ideal_top = row["top"] if row["top_certain"] else None
    yield row
    firsts: dict[str, tuple[str, Distribution]] = {}
    against: tuple[str, Distances] | None = None
    for engine in engines:
        backend = engine_set.backend(engine.name)
        compiled, ns = time_call(partial(engine_set.compile, engine.name, Choice(choices)))
        language = "" if isinstance(backend, Failure) else language_of(backend)
        row = {"engine": engine.name, "backend": engine.backend, "language": language, **about}
        row["compile_seconds"] = ns * 1e-9
        if isinstance(compiled, Failure):
            yield row | compiled.columns
            continue
        walk = partial(masked_distribution, compiled, model, context, choices)
        found, spent = _timed(model, partial(walk, follow_spellings=follow_spellings, **limits))
        row |= spent
        if isinstance(found, Failure):
            yield row | found.columns
            continue
        row |= _of_result(found) | _top(found.distribution, prompt.expected)
        if row["top_certain"] and ideal_top is not None:
            row["top_differs"] = float(row["top"] != ideal_top)
        distances = compare(ideal.distribution, found.distribution)
        for distance, (low, high) in distances._asdict().items():
            middle = (low + high) / 2 if np.isfinite(high) else low
            row |= {distance: middle, f"{distance}_low": low, f"{distance}_high": high}
        if against is None:
            against = engine.name, distances
        else:
            mine, other = distances.total_variation, against[1].total_variation
            verdict = NEARER if mine.upper < other.lower else FARTHER if mine.lower > other.upper else UNDECIDED
            row |= {"against": against[0], "verdict": verdict}
        first, same = firsts.setdefault(language, (engine.name, found.distribution))
        if first != engine.name:
            apart = float(np.abs(same.probabilities - found.distribution.probabilities).max())
            row |= {"first": first, "difference": apart, "same": apart <= AGREEMENT}
        yield row


def _timed(model: CachedModel, walk: Callable[[], ExactResult]) -> tuple[ExactResult | Failure, Row]:
    """A distribution, or how it failed, with the seconds and the model's rows that nobody before had asked for."""
    misses = model.misses
    result, ns = time_call(partial(attempt, walk))
    return result, {"seconds": ns * 1e-9, "rows_computed": model.misses - misses}


def _of_result(result: ExactResult) -> Row:
    return {
        "probabilities": json.dumps(result.distribution.probabilities.tolist()),
        "unresolved": result.distribution.unresolved,
        "improper": result.improper_mass,
        "mean_tokens": result.mean_tokens,
        "forced_share": result.forced_share,
        "proper_shares": json.dumps([spelling.proper_share for spelling in result.spellings]),
        "rows": result.prefixes,
    }


def _top(distribution: Distribution, expected: str | None) -> Row:
    """The most probable choice, and whether it is certain that it is that."""
    probabilities = distribution.probabilities
    second, first = np.sort(probabilities)[-2:]
    certain = bool(first - second > distribution.unresolved + TIE)
    top = distribution.texts[int(probabilities.argmax())].decode()
    row: Row = {"top": top, "top_certain": certain}
    return row | ({"expected_top": float(top == expected)} if certain and expected is not None else {})


def estimated_rows(
    language: Any,
    model: CachedModel,
    tokenizer: Tokenizer,
    engines: Sequence[Engine],
    engine_set: EngineSet,
    **options: Any,
) -> Iterator[Row]:
    """A row for each engine. All draw with the same random numbers, so they are paired.

    `language`: a constraint entry with ``prompt`` and ``max_tokens``; `options`: samples, batch and seed of
    `estimate_skew`.
    """
    constraint = language.build()
    context = (*model.start_tokens, *tokenizer.encode(language.prompt))
    firsts: dict[str, tuple[str, Estimate]] = {}
    against: tuple[str, Estimate] | None = None
    for engine in engines:
        row: Row = {"engine": engine.name, "backend": engine.backend, "method": ESTIMATED}
        misses, asked, begun = model.misses, CountingModel(model), time.perf_counter_ns()
        compiled, ns = time_call(lambda name=engine.name: engine_set.compile(name, constraint))  # type: ignore[misc]
        found: Estimate | Failure = (
            compiled
            if isinstance(compiled, Failure)
            else attempt(_estimate, compiled, asked, context, max_tokens=language.max_tokens, **options)
        )
        backend = engine_set.backend(engine.name)
        if isinstance(found, Failure) or isinstance(backend, Failure):
            yield row | (found if isinstance(found, Failure) else Failure("error", "")).columns
            continue
        row |= {"language": language_of(backend), "compile_seconds": ns * 1e-9}
        row |= {"seconds": (time.perf_counter_ns() - begun) * 1e-9}
        row |= {"rows": asked.different_rows, "rows_computed": model.misses - misses}
        row |= _of_estimate(found)
        first, other = firsts.setdefault(row["language"], (engine.name, found))
        if first != engine.name:
            row |= {"first": first, "same": found.sequences == other.sequences}
        if against is None:
            against = engine.name, found
        else:
            row |= {"against": against[0], "verdict": _verdict(found.total_variation, against[1].total_variation)}
        yield row | _kept(found, against[1])


def _estimate(compiled: Any, model: LanguageModel, context: tuple[int, ...], **options: Any) -> Estimate | Failure:
    """The estimate, or that all samples were cut."""
    try:
        return estimate_skew(compiled, model, context, **options)
    except LimitExceeded as error:
        if error.limit == "max_tokens":  # not the memory that a limit stands for elsewhere
            return Failure(ALL_CUT, str(error))
        raise


def _of_estimate(found: Estimate) -> Row:
    row: Row = {"effective": found.effective_samples, "cut_share": found.cut_share}
    for name in DISTANCES:
        row |= _columns(name, getattr(found, name))
    row |= {"mean_tokens": found.mean_tokens.value, "forced_share": found.forced_share.value}
    if found.improper is not None:
        row |= {"improper": found.improper.masked.value, "improper_target": found.improper.target.value}
    return row


def _columns(name: str, measured: Measured) -> dict[str, float]:
    return {name: float(measured.value), f"{name}_low": float(measured.low), f"{name}_high": float(measured.high)}


def _verdict(mine: Measured, first: Measured) -> str:
    """By the test of paired samples."""
    is_apart = differs(mine, first)
    if is_apart is None:
        return UNDECIDED
    return SAME if not is_apart else NEARER if mine.value < first.value else FARTHER


def _kept(found: Estimate, first: Estimate) -> Row:
    """The mass relative to that of `first`, with an interval of 95 %: paired, or wide where samples were cut."""
    if min(found.effective_samples, first.effective_samples) < FEW_EFFECTIVE:
        return {}
    one, other = found.log_mass, first.log_mass
    difference = one.value - other.value
    if one.is_cut or other.is_cut:
        low, high = one.low - other.high, one.high - other.low
    else:
        margin = Z_95 * standard_error(one.influence - other.influence)
        low, high = difference - margin, difference + margin
    return {"kept": float(np.exp(difference)), "kept_low": float(np.exp(low)), "kept_high": float(np.exp(high))}
