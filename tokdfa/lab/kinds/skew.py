"""The experiment ``kind: skew``: how far each engine bends a model's distribution over a prompt's choices, exactly.

The claim under test (002, challenge 1): masks that admit every spelling of a choice give much of the probability to
choices that begin with a common word; masks that admit the proper spelling only stay near the ideal, as models write
properly by themselves. `tokdfa.lab.measure.skew_comparison` has the words and the walk. There is one item; its rows
have a ``part``:

- ``model``: one for each model, see `tokdfa.lab.measure.model_entries`;
- ``strategy``: one for each model, prompt and engine, the first of each prompt being the ideal: ``prompt`` (label),
  ``text`` (the prompt itself), ``topic``, ``choices`` (JSON list), ``count`` (how many), ``expected``; ``strategy``,
  ``backend``, ``language``; ``probabilities`` (JSON list in the order of the choices, resolved mass) and
  ``unresolved``; ``top`` and ``top_probability``, ``top_certain`` (no other choice can have more, wherever the
  unresolved mass belongs), ``expected_top`` (1 or 0, missing where it is not certain or nothing is expected);
  ``total_variation_low``, ``..._high`` and so on for ``kl_forward`` (KL(ideal || engine)), ``kl_backward`` and
  ``jensen_shannon``, bounds in nats, and ``top_differs`` (1 or 0, missing where one of the two is not certain);
  ``improper_mass``, ``mean_tokens``, ``forced_share``, ``log_mass_low`` and ``log_mass_high``; ``proper_shares`` (JSON
  list: the share of the proper spelling in each choice's mass); ``rows`` (model rows that it needs by itself),
  ``rows_computed`` (those that nobody before it had asked for), ``seconds``, ``compile_seconds``;
- ``agreement``: one for each engine but the first of its language: ``first``, ``other`` and their largest
  ``difference`` in any choice's probability, with the status `MISMATCH` above 1e-9.

A prompt whose ideal fails has no other rows; one whose turn comes after `seconds` has one, with status ``not_asked``.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from tokdfa.decoding.draws import Eos  # noqa: TC001 (pydantic reads the annotation)
from tokdfa.errors import OptionError
from tokdfa.lab.kinds.saved_calls import NOT_ASKED
from tokdfa.lab.measure.engines import Engine, Workshop, check_engines, spread
from tokdfa.lab.measure.limits import OK, Failure
from tokdfa.lab.measure.model_entries import MAX_MESSAGE, Models, check_models, finish_row, load_models
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.lab.measure.skew_comparison import AGREEMENT, IDEAL, Limits, agreements, compare_engines
from tokdfa.models.cache import CachedModel
from tokdfa.skew.eos import check_texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.lab.measure.model_entries import Loaded
    from tokdfa.lab.measure.skew_comparison import Entrant
    from tokdfa.skew.distribution import Distribution
    from tokdfa.skew.exact import ExactResult

#: The parts of the rows, besides that of the models.
STRATEGY, AGREEING = "strategy", "agreement"
#: Two engines of one language do not agree.
MISMATCH = "mismatch"
#: Probabilities that are nearer to each other are a tie: rounding may have decided it.
TIE = 1e-12

Count = Annotated[int, Field(ge=1, le=1_000_000)]


class Prompt(BaseModel):
    """A prompt with the choices for what comes next. `expected`: the right choice, where there is one."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    label: str
    prompt: str
    choices: list[str] = Field(min_length=2)
    topic: str = ""
    expected: str | None = None


class Settings(BaseModel):
    """The settings of the experiment.

    `only`: labels of prompts, all if empty; `min_choices`: prompts with fewer are left out; `limit`: at most so many of
    these, evenly spread. `eos`, `tolerance`, `max_prefixes` and `follow_spellings` are those of `tokdfa.skew.exact`;
    without the last an engine's row has no ``improper_mass``, ``mean_tokens``, ``forced_share``. `threads`: of torch.
    `cache_mb`: for the rows of one prompt; it should hold them all (8 V bytes each), see `compare_engines`. `seconds`
    belong below the experiment's limit on an item.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    models: Models
    engines: list[Engine] = Field(min_length=1)
    prompts: list[Prompt] = Field(min_length=1)
    only: list[str] = Field(default_factory=list)
    min_choices: Annotated[int, Field(ge=2)] = 2
    limit: Count | None = None
    eos: Eos = "ignored"
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 1e-3
    max_prefixes: Count = 4_000
    follow_spellings: bool = True
    threads: Annotated[int, Field(ge=1, le=256)] = 2
    cache_mb: Annotated[float, Field(gt=0)] = 2000.0
    seconds: Annotated[float, Field(gt=0)] = 600.0

    def chosen(self) -> list[Prompt]:
        """The prompts that are measured."""
        asked = [one for one in self.prompts if not self.only or one.label in self.only]
        return spread([one for one in asked if len(one.choices) >= self.min_choices], self.limit)


def check_settings(settings: dict[str, Any]) -> Settings:
    """The typed settings of an experiment. Raises OptionError or UnknownNameError, which name what is wrong."""
    typed = typed_settings(Settings, settings)
    check_models(typed.models)
    check_engines(typed.engines)
    if IDEAL in {engine.name for engine in typed.engines}:
        raise OptionError(f"settings.engines: the label {IDEAL!r} is that of the model's own distribution")
    labels = [one.label for one in typed.prompts]
    if len(set(labels)) < len(labels):
        raise OptionError("settings.prompts: two prompts have the same label")
    for label in typed.only:
        if label not in labels:
            raise OptionError(f"settings.only: there is no prompt {label!r}")
    if not typed.chosen():
        raise OptionError(f"settings.prompts: none of the prompts has {typed.min_choices} choices")
    for one in typed.chosen():
        try:
            check_texts(one.choices, typed.eos)
        except OptionError as error:
            raise OptionError(f"settings.prompts: {one.label}: {error}") from None
        if one.expected is not None and one.expected not in one.choices:
            raise OptionError(f"settings.prompts: {one.label}: {one.expected!r} is expected, but none of its choices")
    return typed


def run_item(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure every model on every prompt; `settings` are those of `Settings`. `seed` is not used: nothing is random.

    Raises OptionError where the experiment has tokenizers or constraints of its own.
    """
    if {"tokenizer", "label"} & set(settings):
        raise OptionError("skew takes no tokenizers and no constraints; models and prompts are in its settings")
    typed = check_settings(settings)
    limits = Limits(typed.eos, typed.tolerance, typed.max_prefixes, typed.follow_spellings)
    started = time.monotonic()
    rows: list[dict[str, Any]] = []
    for loaded in load_models(typed.models, typed.threads, rows):
        workshop = Workshop(typed.engines, loaded.model.vocabulary)
        for prompt in typed.chosen():
            place = {**loaded.place, **_about(prompt)}
            if time.monotonic() - started > typed.seconds:
                failure = {"status": NOT_ASKED, "message": f"the {typed.seconds:g} s for all prompts are over"}
                rows.append({"part": STRATEGY, **place, "strategy": IDEAL, **failure})
                continue
            rows += [{**place, **row} for row in _measure(prompt, loaded, typed, workshop, limits)]
        finish_row(loaded)
    return rows


def _about(prompt: Prompt) -> dict[str, Any]:
    return {
        "prompt": prompt.label,
        "text": prompt.prompt,
        "topic": prompt.topic,
        "choices": json.dumps(prompt.choices, ensure_ascii=False),
        "count": len(set(prompt.choices)),
        "expected": prompt.expected,
    }


def _measure(
    prompt: Prompt, loaded: Loaded, settings: Settings, workshop: Workshop, limits: Limits
) -> Iterator[dict[str, Any]]:
    """The rows of one prompt."""
    model = CachedModel(loaded.model, settings.cache_mb)
    context = loaded.tokenizer.encode(prompt.prompt)
    entrants = []
    ideal_top: str | None = None
    for entrant in compare_engines(model, context, prompt.choices, settings.engines, workshop, limits):
        entrants.append(entrant)
        row = {"part": STRATEGY, "status": OK, "message": "", **strategy_row(entrant, prompt.expected)}
        if entrant.name == IDEAL:
            ideal_top = row["top"] if row.get("top_certain") else None
        elif row.get("top_certain") and ideal_top is not None:
            row["top_differs"] = float(row["top"] != ideal_top)
        yield row
    for one in agreements(entrants):
        row = {"part": AGREEING, "language": one.language, "first": one.first, "other": one.other}
        row |= {"status": OK, "message": "", "difference": one.difference}
        if not one.holds:
            said = f"{one.other} is {one.difference:.3g} from {one.first}, more than {AGREEMENT:g}"
            row |= {"status": MISMATCH, "message": f"{said}, with the same token language"}
        yield row


def strategy_row(entrant: Entrant, expected: str | None = None) -> dict[str, Any]:
    """The columns of one entrant; see the module. Without `status` if it went well."""
    row: dict[str, Any] = {
        "strategy": entrant.name,
        "backend": entrant.backend,
        "language": entrant.language,
        "compile_seconds": entrant.compile_seconds,
        "seconds": entrant.seconds,
        "rows_computed": entrant.rows_computed,
    }
    if isinstance(entrant.result, Failure):
        return row | {"status": entrant.result.kind, "message": entrant.result.message[:MAX_MESSAGE]}
    row |= _figures(entrant.result) | _top(entrant.result.distribution, expected)
    if entrant.distances is not None:
        for name, bounds in entrant.distances._asdict().items():
            row |= {f"{name}_low": bounds.lower, f"{name}_high": bounds.upper}
    return row


def _figures(result: ExactResult) -> dict[str, Any]:
    return {
        "probabilities": json.dumps(result.distribution.probabilities.tolist()),
        "unresolved": result.distribution.unresolved,
        "improper_mass": result.improper_mass,
        "mean_tokens": result.mean_tokens,
        "forced_share": result.forced_share,
        "log_mass_low": result.log_mass.lower,
        "log_mass_high": result.log_mass.upper,
        "proper_shares": json.dumps([spelling.proper_share for spelling in result.spellings]),
        "rows": result.prefixes,
    }


def _top(distribution: Distribution, expected: str | None) -> dict[str, Any]:
    """The most probable choice, and whether it is certain that it is that."""
    probabilities = distribution.probabilities
    second, first = np.sort(probabilities)[-2:]
    certain = bool(first - second > distribution.unresolved + TIE)
    top = distribution.texts[int(probabilities.argmax())].decode()
    row: dict[str, Any] = {"top": top, "top_probability": float(first), "top_certain": certain}
    return row | ({"expected_top": float(top == expected)} if certain and expected is not None else {})
