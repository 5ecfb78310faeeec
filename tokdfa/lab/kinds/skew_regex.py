"""The experiment ``kind: skew_regex``: the skew of backends on languages with too many texts to list, estimated.

Theory and words are those of `tokdfa.skew.estimate`: Q is what sampling through a backend's masks gives, the target P
is the model restricted to the sequences that the backend admits, Z their probability, the *mass*. P is the backend's
own target. A backend that admits only some spellings may be near to a target that is itself far from the ideal: of the
ideal's mass it keeps ``Z of the backend / Z of one that admits all spellings`` (the *kept share*), and if that is s,
then its target is 1 - s in total variation from the target of all spellings. So both are reported. The distances are
between distributions over sequences of tokens; over texts they are at most as large.

One item is the whole experiment: every model, language (a constraint with a prompt) and engine. All engines draw
with the same random numbers, so their estimates are paired; those with equal masks draw equal sequences. Rows of the
model are kept between the engines of a language (`tokdfa.models.cache`); ``rows`` says how many an engine would have
needed by itself, each prefix once, ``rows_computed`` how many were new.

Rows, by ``part``:

- ``model``: see `tokdfa.lab.measure.model_entries`;
- ``estimate``: one for each model, language and engine. Each of `MEASURES` as ``NAME`` with ``NAME_se`` (standard
  error), ``NAME_low`` and ``NAME_high`` (95 %); ``kept``, ``kept_low``, ``kept_high``: the kept share, relative to the
  first engine; ``effective``: effective samples; ``cut_share``; ``seconds`` and ``compile_seconds``; ``sequences``: a
  hash of what was drawn; ``drawn`` and ``meant``: JSON lists of [text, share under Q, share under P], the texts that
  are most probable under Q and under P, by the samples;
- ``event``: a named set of texts, with its probability under Q (``masked`` ...) and under P (``target`` ...);
- ``difference``: two engines and a measure, both values, and ``verdict``: ``yes`` if they differ by more than the error
  of the difference, ``no``, or ``unknown`` (`tokdfa.skew.measured.differs`).

``status`` and ``message`` are of the model or the estimate. Languages whose turn comes after `seconds` are `NOT_ASKED`;
where no sample was complete, the status is `ALL_CUT`.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from tokdfa.constraint import Regex
from tokdfa.decoding.sampling import log_total
from tokdfa.errors import LimitExceeded, OptionError
from tokdfa.lab.measure.asked_model import AskedModel
from tokdfa.lab.measure.constraint_entry import ConstraintEntry, fault_of_keys
from tokdfa.lab.measure.engines import Engine, Workshop, attempt, check_engines, spread
from tokdfa.lab.measure.limits import NOT_ASKED, OK, Failure
from tokdfa.lab.measure.model_entries import MAX_MESSAGE, Models, check_models, finish_row, load_models
from tokdfa.lab.measure.schema_corpus import read_cases
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.models.cache import CachedModel
from tokdfa.regex.parse import parse
from tokdfa.skew.estimate import Estimate, estimate_skew
from tokdfa.skew.measured import Z_95, Measured, differs, standard_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.lab.measure.model_entries import Loaded
    from tokdfa.models.base import LanguageModel

#: What is measured of every engine, and compared between engines: attributes of `Estimate`.
MEASURES = (
    *("total_variation", "kl_forward", "kl_backward", "jensen_shannon"),
    *("log_mass", "mean_tokens", "forced_share"),
)
#: No sample was complete within the language's limit on tokens.
ALL_CUT = "all_cut"
#: How many of the most probable texts are kept of each distribution.
SHOWN_TEXTS = 3

Count = Annotated[int, Field(ge=1, le=1_000_000)]


class Language(ConstraintEntry):
    """A constraint with a prompt: a regex, a JSON schema, or whatever else an entry may be.

    `max_tokens`: where a sample is cut; `events`: name -> the regex of a set of texts.
    """

    label: str
    prompt: str
    max_tokens: Count
    events: dict[str, str] = Field(default_factory=dict)


class Settings(BaseModel):
    """The settings of the experiment, completed (`complete_settings`).

    `engines`: the kept share is relative to the first, which should admit all spellings. `only`: labels of languages,
    all if empty; `limit`: at most so many of these, evenly spread. `events`: label -> events beside the language's own.
    `samples` of each engine on each language, drawn `batch` at a time. `threads`: of torch. `cache_mb`: for rows of the
    model. `seconds` belong below the experiment's limit on an item.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    models: Models
    languages: list[Language] = Field(min_length=1)
    engines: list[Engine] = Field(min_length=1)
    only: list[str] = Field(default_factory=list)
    limit: Count | None = None
    events: dict[str, dict[str, str]] = Field(default_factory=dict)
    samples: Annotated[int, Field(ge=2, le=1_000_000)] = 100
    batch: Count = 64
    threads: Annotated[int, Field(ge=1, le=256)] = 2
    cache_mb: Annotated[float, Field(gt=0)] = 1500.0
    seconds: Annotated[float, Field(gt=0)] = 600.0

    def chosen(self) -> list[Language]:
        """The languages that are measured, with all their events."""
        asked = [one for one in self.languages if not self.only or one.label in self.only]
        return [
            one.model_copy(update={"events": one.events | self.events.get(one.label, {})})
            for one in spread(asked, self.limit)
        ]


def check_settings(settings: dict[str, Any]) -> Settings:
    """The typed settings of an experiment. Raises OptionError or UnknownNameError, which name what is wrong."""
    typed = typed_settings(Settings, complete_settings(settings))
    check_models(typed.models)
    check_engines(typed.engines)
    labels = [one.label for one in typed.languages]
    if len(set(labels)) < len(labels):
        raise OptionError("settings.languages: two languages have the same label")
    for name, given in (("only", typed.only), ("events", typed.events)):
        for label in given:
            if label not in labels:
                raise OptionError(f"settings.{name}: there is no language {label!r}; there are {', '.join(labels)}")
    for one in typed.chosen():
        fault = fault_of_keys(one.model_fields_set)
        if fault is not None:
            raise OptionError(f"settings.languages: {one.label}: {fault[0]}")
        try:
            one.build()
        except OptionError as error:
            raise OptionError(f"settings.languages: {one.label}: {error}") from None
        if one.regex is not None:
            parse(one.regex, one.flags, one.ascii_classes)
        for pattern in one.events.values():
            parse(pattern, "", False)
    return typed


def complete_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """`settings` with the schemas themselves in the place of their names, and the options of schemas with each.

    Beside those of `Settings` there may be ``schemas``: a folder of cases (`tokdfa.lab.measure.schema_corpus`), of
    which ``schema_name`` in a language names one; and ``json_schema``: options for all schemas that do not say
    otherwise. Raises ConfigError or UnknownNameError for a case that is not there or cannot be read, OptionError for
    what else is wrong with these.
    """
    settings = dict(settings)
    folder, options = settings.pop("schemas", None), settings.pop("json_schema", {})
    if not isinstance(options, dict):
        raise OptionError("settings.json_schema: this is a mapping from options of JSON schemas to values")
    if not isinstance(folder, str | None):
        raise OptionError("settings.schemas: this is a folder of schemas")
    languages = settings.get("languages")
    if isinstance(languages, list):
        settings["languages"] = [_with_schema(one, folder, options) for one in languages]
    return settings


def _with_schema(language: Any, folder: str | None, options: dict[str, Any]) -> Any:
    """A language as it is given, or with its schema and the options."""
    if not isinstance(language, dict) or not {"schema_name", "json_schema"} & language.keys():
        return language
    completed = {**options, **language}
    if "schema_name" not in language:
        return completed
    place, name = f"settings.languages: {language.get('label')}", completed.pop("schema_name")
    if "json_schema" in language or not isinstance(name, str):
        raise OptionError(f"{place}: give either json_schema or the name of a case as schema_name")
    if folder is None:
        raise OptionError(f"{place}: schema_name needs settings.schemas, a folder of schemas")
    (case,) = read_cases(Path(folder), [name])
    return {**completed, "json_schema": case.schema_text}


def run_item(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure everything; `settings` are those of `Settings`. Raises OptionError where they take an axis."""
    if {"tokenizer", "label"} & set(settings):
        raise OptionError("skew_regex takes no tokenizers and no constraints; models and languages are in its settings")
    typed = check_settings(settings)
    started = time.monotonic()
    rows: list[dict[str, Any]] = []
    for loaded in load_models(typed.models, typed.threads, rows):
        workshop = Workshop(typed.engines, loaded.model.vocabulary)
        for language in typed.chosen():
            place = {**loaded.place, "language": language.label}
            if time.monotonic() - started > typed.seconds:
                message = f"the {typed.seconds:g} s for all languages are over"
                rows.append({"part": "estimate", **place, "engine": "", "status": NOT_ASKED, "message": message})
            else:
                rows += [{**row, **place} for row in _measure(language, workshop, loaded, typed, seed)]
        finish_row(loaded)
    return rows


def _measure(
    language: Language, workshop: Workshop, loaded: Loaded, settings: Settings, seed: int
) -> Iterator[dict[str, Any]]:
    """The rows of one language."""
    model = CachedModel(loaded.model, settings.cache_mb)
    constraint = language.build()
    context = (*model.start_tokens, *loaded.tokenizer.encode(language.prompt))
    estimates: dict[str, Estimate] = {}
    for engine in settings.engines:
        row: dict[str, Any] = {"part": "estimate", "engine": engine.name, "backend": engine.backend}
        begun, misses, asked = time.perf_counter_ns(), model.misses, AskedModel(model)
        compiled = workshop.compile(engine.name, constraint)
        compile_seconds = (time.perf_counter_ns() - begun) * 1e-9
        found: Estimate | Failure
        if isinstance(compiled, Failure):
            found = compiled
        else:
            found = attempt(_estimate, compiled, asked, context, language, settings, seed)
        if isinstance(found, Failure):
            yield row | {"status": found.kind, "message": found.message[:MAX_MESSAGE]}
            continue
        estimates[engine.name] = found
        seconds = (time.perf_counter_ns() - begun) * 1e-9
        first = estimates.get(settings.engines[0].name)
        row |= {"status": OK, "message": "", "compile_seconds": compile_seconds, "seconds": seconds}
        row |= {"rows": asked.different_rows, "rows_computed": model.misses - misses}
        yield row | _figures(found) | _texts(found, loaded) | ({} if first is None else _kept(found, first))
        yield from _event_rows(found, language, engine.name)
    yield from _differences(estimates)


def _estimate(
    compiled: CompiledConstraint,
    model: LanguageModel,
    context: tuple[int, ...],
    language: Language,
    settings: Settings,
    seed: int,
) -> Estimate | Failure:
    """The estimate, or that all samples were cut."""
    try:
        return estimate_skew(
            compiled,
            model,
            context,
            samples=settings.samples,
            seed=seed,
            max_tokens=language.max_tokens,
            batch=settings.batch,
            events={name: Regex(pattern) for name, pattern in language.events.items()},
        )
    except LimitExceeded as error:
        if error.limit == "max_tokens":  # not the memory that a limit stands for elsewhere
            return Failure(ALL_CUT, str(error))
        raise


def _figures(found: Estimate) -> dict[str, Any]:
    row: dict[str, Any] = {
        "samples": len(found.sequences),
        "effective": found.effective_samples,
        "cut_share": found.cut_share,
        "improper_unknown": found.improper_unknown,
        "sequences": hashlib.sha256(repr(found.sequences).encode()).hexdigest()[:16],
    }
    for name in MEASURES:
        row |= _columns(name, getattr(found, name))
    if found.improper is not None:
        row |= _columns("improper_masked", found.improper.masked) | _columns("improper_target", found.improper.target)
    return row


def _columns(name: str, measured: Measured) -> dict[str, float]:
    return {
        name: float(measured.value),
        f"{name}_se": float(measured.standard_error),
        f"{name}_low": float(measured.low),
        f"{name}_high": float(measured.high),
    }


def _kept(found: Estimate, first: Estimate) -> dict[str, float]:
    """The mass relative to that of `first`, with an interval of 95 %: paired, or wide where samples were cut."""
    one, other = found.log_mass, first.log_mass
    difference = one.value - other.value
    if one.is_cut or other.is_cut:
        low, high = one.low - other.high, one.high - other.low
    else:
        margin = Z_95 * standard_error(one.influence - other.influence)
        low, high = difference - margin, difference + margin
    return {"kept": float(np.exp(difference)), "kept_low": float(np.exp(low)), "kept_high": float(np.exp(high))}


def _texts(found: Estimate, loaded: Loaded) -> dict[str, str]:
    """The most probable texts under Q and under P, as far as the samples show; a cut sample is no text."""
    shares = np.exp(found.log_weights - log_total(found.log_weights))
    masked: Counter[str] = Counter()
    target: Counter[str] = Counter()
    for tokens, share, complete in zip(found.sequences, shares.tolist(), found.complete.tolist(), strict=True):
        if complete:
            text = loaded.model.vocabulary.spell(tokens).decode(errors="backslashreplace")
            masked[text] += 1 / len(shares)  # type: ignore[assignment]
            target[text] += share

    def listed(most: Counter[str]) -> str:
        return json.dumps([[text, masked[text], target[text]] for text, _ in most.most_common(SHOWN_TEXTS)])

    return {"drawn": listed(masked), "meant": listed(target)}


def _event_rows(found: Estimate, language: Language, engine: str) -> Iterator[dict[str, Any]]:
    for name, event in found.events.items():
        row = {"part": "event", "engine": engine, "event": name, "pattern": language.events[name], "status": OK}
        yield row | _columns("masked", event.masked) | _columns("target", event.target)


def _differences(estimates: Mapping[str, Estimate]) -> Iterator[dict[str, Any]]:
    """A row for each pair of engines and each measure."""
    for (name, one), (other_name, other) in itertools.combinations(estimates.items(), 2):
        for measure in MEASURES:
            first, second = getattr(one, measure), getattr(other, measure)
            verdict = {True: "yes", False: "no", None: "unknown"}[differs(first, second)]
            row = {"part": "difference", "engine": name, "other": other_name, "measure": measure, "status": OK}
            yield row | {"value": first.value, "other_value": second.value, "verdict": verdict}
