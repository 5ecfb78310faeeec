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
- ``estimate``: one for each model, language and engine. Each of `MEASURES` as ``NAME`` with ``NAME_low`` and
  ``NAME_high`` (95 %); ``kept``, ``kept_low``, ``kept_high``: the kept share, relative to the
  first engine; ``effective``: effective samples; ``cut_share``; ``seconds`` and ``compile_seconds``; ``sequences``: a
  hash of what was drawn; ``drawn`` and ``meant``: JSON lists of [text, share under Q, share under P], the texts that
  are most probable under Q and under P, by the samples;
- ``event``: a named set of texts, with its probability under Q (``masked`` ...) and under P (``target`` ...);
- ``difference``: two engines and a measure, both values, and ``verdict``: ``yes`` if they differ by more than the error
  of the difference, ``no``, or ``unknown`` (`tokdfa.skew.measured.differs`).

``status`` and ``message`` are of the model or the estimate. Languages whose turn comes after `seconds` are `NOT_ASKED`;
where no sample was complete, the status is `ALL_CUT`.

An estimate with fewer than `FEW_EFFECTIVE` effective samples is *weak*: a few samples carry nearly all weight, so its
interval says little about what was never drawn. Two engines differ where the test of their paired samples says so.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from tokdfa.constraint import Regex
from tokdfa.errors import LimitExceeded, OptionError
from tokdfa.lab.declare import Bars, Column, Kind, Listing, Pivot, Say, Stat, Summary
from tokdfa.lab.declare.columns import format_share, text
from tokdfa.lab.declare.models import COLUMNS, FAILURES, MODELS, not_measured, parts
from tokdfa.lab.measure.asked_model import AskedModel
from tokdfa.lab.measure.constraint_entry import ConstraintEntry, fault_of_keys
from tokdfa.lab.measure.engines import Engine, Workshop, attempt, check_engines, spread
from tokdfa.lab.measure.limits import NOT_ASKED, OK, Failure
from tokdfa.lab.measure.model_entries import MAX_MESSAGE, Models, check_models, finish_row, load_models
from tokdfa.lab.measure.schema_corpus import read_cases
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.lab.measure.skew_estimates import difference_rows, event_rows, figures, kept_share, probable_texts
from tokdfa.models.cache import CachedModel
from tokdfa.regex.parse import parse
from tokdfa.skew.estimate import Estimate, estimate_skew
from tokdfa.skew.measured import FEW_EFFECTIVE

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.lab.measure.model_entries import Loaded
    from tokdfa.models.base import LanguageModel

#: No sample was complete within the language's limit on tokens.
ALL_CUT = "all_cut"
#: A text that is longer is cut in tables.
MAX_TEXT = 60

Count = Annotated[int, Field(ge=1, le=1_000_000)]


class Language(ConstraintEntry):
    """A constraint with a prompt: a regex, a JSON schema, or whatever else an entry may be.

    `max_tokens`: where a sample is cut; `events`: name -> the regex of a set of texts; `schema_name`: the name of a
    case in the folder `Settings.schemas`, in place of a schema.
    """

    label: str
    prompt: str
    max_tokens: Count
    events: dict[str, str] = Field(default_factory=dict)
    schema_name: str | None = None


class Settings(BaseModel):
    """The settings of the experiment.

    `engines`: the kept share is relative to the first, which should admit all spellings. `only`: labels of languages,
    all if empty; `limit`: at most so many of these, evenly spread. `events`: label -> events beside the language's own.
    `samples` of each engine on each language, drawn `batch` at a time. `threads`: of torch. `cache_mb`: for rows of the
    model. `seconds` belong below the experiment's limit on an item. `schemas`: a folder of cases
    (`tokdfa.lab.measure.schema_corpus`); `json_schema`: options for all schemas that do not say otherwise.
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
    schemas: str | None = None
    json_schema: dict[str, Any] = Field(default_factory=dict)

    def chosen(self) -> list[Language]:
        """The languages that are measured, with all their events."""
        asked = [one for one in self.languages if not self.only or one.label in self.only]
        return [
            one.model_copy(update={"events": one.events | self.events.get(one.label, {})})
            for one in spread(asked, self.limit)
        ]


def complete(settings: dict[str, Any]) -> dict[str, Any]:
    """`settings` with the schemas themselves in the place of their names, and the options of schemas with each.

    Raises ConfigError or UnknownNameError for a case that is not there or cannot be read, OptionError or
    UnknownNameError for what else is wrong.
    """
    typed = typed_settings(Settings, settings)
    languages = [_with_schema(one, typed) for one in settings["languages"]]
    settings = {key: value for key, value in settings.items() if key not in ("schemas", "json_schema")}
    settings["languages"] = languages
    typed = typed_settings(Settings, settings)
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
    return settings


def _with_schema(language: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """A language as it is given, or with its schema and the options."""
    if not {"schema_name", "json_schema"} & language.keys():
        return language
    completed = {**settings.json_schema, **language}
    if "schema_name" not in language:
        return completed
    place, name = f"settings.languages: {language['label']}", completed.pop("schema_name")
    if "json_schema" in language:
        raise OptionError(f"{place}: give either json_schema or the name of a case as schema_name")
    if settings.schemas is None:
        raise OptionError(f"{place}: schema_name needs settings.schemas, a folder of schemas")
    (case,) = read_cases(Path(settings.schemas), [name])
    return {**completed, "json_schema": case.schema_text}


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure everything; `settings`: those of `Settings`, completed."""
    typed = typed_settings(Settings, settings)
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
        texts = probable_texts(found, loaded.model.vocabulary)
        yield row | figures(found) | texts | ({} if first is None else kept_share(found, first))
        yield from event_rows(found, language.events, engine.name)
    yield from difference_rows(estimates)


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


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The estimates with how each compares with the first engine's; those of all engines; what differs; texts."""
    import pandas as pd

    found = parts(rows, "estimate")
    estimates = found[""]
    if estimates.empty:
        return found
    place, first = ["model", "language"], estimates["engine"].iloc[0]
    estimates = estimates.assign(weak=estimates["effective"] < FEW_EFFECTIVE, first=first)
    base = estimates[estimates["engine"] == first].set_index(place)
    sure = ~estimates["weak"] & ~estimates[place].apply(tuple, axis=1).map(base["weak"]).fillna(True).astype(bool)
    for name in ("kept", "kept_low", "kept_high"):
        estimates[f"sure_{name}"] = estimates[name].where(sure)
    compared = found.get("difference", pd.DataFrame(columns=[*place, "engine", "other", "measure", "verdict"]))
    leaders = _leaders(estimates)
    apart = compared[
        (compared["verdict"] == "yes") & compared["engine"].isin(leaders) & compared["other"].isin(leaders)
    ]
    mine = compared[(compared["measure"] == "total_variation") & (compared["engine"] == first)]
    mine = mine.drop(columns="engine").rename(columns={"other": "engine"})
    kept = [*place, "engine", *(name for name in ("verdict", "value", "other_value") if name in mine)]
    columns = estimates.columns.difference(["verdict", "value", "other_value"])
    estimates = estimates[columns].merge(mine[kept], on=[*place, "engine"], how="left")
    if "value" in estimates:
        differs = estimates["verdict"] == "yes"
        estimates["below"] = differs & (estimates["other_value"] < estimates["value"])
        estimates["above"] = differs & (estimates["other_value"] > estimates["value"])
        estimates["equal"], estimates["undecided"] = (estimates["verdict"] == one for one in ("no", "unknown"))
        for name in ("below", "above", "equal", "undecided"):
            estimates[name] = estimates[name].astype("float64").where(estimates["engine"] != first)
    everywhere = estimates.groupby(place)["engine"].transform("nunique") == estimates["engine"].nunique()
    alike = [{"alike": ", ".join(same)} for same in leaders.values() if len(same) > 1]
    labels = {one: f"{one} (and {len(same) - 1} alike)" if len(same) > 1 else one for one, same in leaders.items()}
    leading = estimates[estimates["engine"].isin(leaders)]
    samples = estimates.groupby([*place, "sequences"], sort=False)
    return {
        **found,
        "": estimates,
        "common": estimates[everywhere],
        "leading": leading.assign(engine=leading["engine"].map(labels)),
        "above_all": leading[(leading["kept_low"] > 1) & (leading["engine"] != first)],
        "alike": pd.DataFrame(alike),
        "apart": apart,
        "texts": samples.first()
        .assign(same=samples["engine"].agg(", ".join))
        .reset_index()
        .assign(
            drawn=lambda one: one["drawn"].map(lambda listed: _listed(listed, 1)),
            meant=lambda one: one["meant"].map(lambda listed: _listed(listed, 2)),
        ),
    }


def _leaders(rows: pd.DataFrame) -> dict[str, list[str]]:
    """Engine -> those that drew what it drew, itself included, in every language that they have an estimate for."""
    found: dict[str, list[str]] = {}
    table = rows.pivot_table(
        index=["model", "language"], columns="engine", values="sequences", aggfunc="first", sort=False
    )
    for engine in dict.fromkeys(rows["engine"]):
        own = table[engine].dropna()
        leader = next((one for one in found if (table.loc[own.index, one] == own).all()), engine)
        found.setdefault(leader, []).append(engine)
    return found


def _listed(written: str, place: int) -> str:
    """Texts with their shares, one below the other."""
    entries = [(str(entry[0]), format_share(entry[place])) for entry in json.loads(written)]
    return "\n".join(
        f"{one if len(one) <= MAX_TEXT else one[: MAX_TEXT - 1] + '…'!r} {share}" for one, share in entries
    )


def _with_ends(name: str, title: str = "") -> Stat:
    return Stat(name, title=title, ends=(f"{name}_low", f"{name}_high"))


_BY = ("model", "engine")

KIND = Kind(
    measure=measure,
    settings=Settings,
    complete=complete,
    threads=2,
    columns=(
        *COLUMNS,
        *(text(name) for name in ("language", "engine", "event", "first", "alike")),
        text("pattern", "as a regex"),
        *(text("same", "engines with these samples"), text("drawn"), text("meant")),
        *(text("measure"), text("other", "other engine"), text("verdict")),
        Column("total_variation", "total variation", "share", "lower", "of Q from the target P"),
        Column("sure_kept", "kept share", "", "higher", "the mass relative to that of the first engine"),
        Column("effective", "effective samples", "", "higher"),
        Column("cut_share", "cut", "share", "lower", "samples longer than the limit"),
        Column("improper_masked", "improper under Q", "share"),
        Column("improper_target", "improper under P", "share"),
        Column("forced_share", "forced", "share", "neither", "steps with one allowed token"),
        Column("masked", "under Q", "share"),
        Column("target", "under P", "share"),
        Column("value"),
        Column("other_value", "its value"),
    ),
    case=("model", "language"),
    frames=frames,
    tables=(
        Summary(
            "skew_regex",
            "Skew on large languages, by engine",
            "Medians over the languages that all engines have an estimate for. Total variation of what sampling "
            "through the masks gives (Q) from the model restricted to the engine's own sequences (P). The last columns "
            "count languages by the test of paired samples against the first engine, at 95%; weak: fewer than "
            f"{FEW_EFFECTIVE} effective samples.",
            by=_BY,
            values=(
                *(Stat("language", "distinct", "languages"), Stat("weak", "sum", "weak"), "total_variation"),
                *(Stat("cut_share", "mean", "cut"), "improper_masked", "improper_target", "forced_share"),
                *(Stat("rows", "sum", "model rows"), Stat("below", "sum", "below"), Stat("above", "sum", "above")),
                *(Stat("equal", "sum", "no difference"), Stat("undecided", "sum", "undecided")),
            ),
            frame="common",
            brief=(*_BY, "languages", "weak", "total variation", "below", "above"),
        ),
        Pivot(
            "skew_regex_estimates",
            "Total variation by language",
            "Of each engine's Q from its own P, with 95% intervals.",
            rows=("model", "language"),
            value=_with_ends("total_variation"),
            beside=(Stat("effective", "min", "least effective samples"),),
            ratio=False,
        ),
        Pivot(
            "skew_regex_kept",
            "Share of the first engine's mass that is kept",
            "With 95% intervals, where neither estimate is weak: an engine may be near to a target that is far away.",
            rows=("model", "language"),
            value=_with_ends("sure_kept"),
            ratio=False,
        ),
        Listing(
            "skew_regex_differences",
            "Differences beyond their errors",
            "Each test is at 95%, so about one in twenty of those between equals would show here by chance. Of engines "
            "that drew equal samples in every language, the first stands for all.",
            shown=("model", "language", "measure", "engine", "value", "other", "other_value"),
            frame="apart",
        ),
        Summary(
            "skew_regex_events",
            "Named events",
            "The probability that a text is in the named set: under the masked distribution Q, and under the target P "
            "that the same samples, weighted, stand for.",
            by=("model", "language", "event", "engine"),
            values=(_with_ends("masked"), _with_ends("target"), "pattern"),
            frame="event",
        ),
        Listing(
            "skew_regex_texts",
            "What is drawn and what is meant",
            "The most frequent texts among the samples, and those with most of the weight: what the masks make of the "
            "model, and what the model means as far as the samples tell.",
            shown=("model", "language", "same", "drawn", "meant"),
            frame="texts",
        ),
        MODELS,
        not_measured("language", "engine"),
    ),
    charts=(
        Bars(
            "skew_regex",
            "Total variation by language",
            "Of each engine's masked distribution from the engine's own target.",
            x="total_variation",
            rows="language",
            panels="model",
            hover=("total_variation_low", "total_variation_high", "effective"),
            frame="leading",
            log=False,
        ),
    ),
    sentences=(
        Say(
            "{model}, {engine}: median total variation from its own target {tv} over {languages} languages.",
            per=_BY,
            blanks={"tv": "total_variation", "languages": "language:distinct"},
            frame="common",
        ),
        Say(
            "{model}: beyond its error, the total variation of {engine} is below that of {first} in {below} of "
            "{languages} languages and above it in {above}; no difference beyond the error in {equal}, undecided in "
            "{undecided}.",
            per=_BY,
            blanks={
                **{"languages": "below:count", "first": "first"},
                **{name: f"{name}:sum" for name in ("below", "above", "equal", "undecided")},
            },
            frame="leading",
        ),
        Say("{alike} drew equal sequences in every language.", per=("alike",), frame="alike"),
        Say(
            "{model}: in {languages} languages the mass of {engine} is estimated above that of {first}, beyond the "
            "error; if {first} admits all spellings that cannot be, so its samples missed where the mass is there.",
            per=_BY,
            blanks={"languages": "language:distinct", "first": "first"},
            frame="above_all",
        ),
        Say(
            "{model}: {weak} of {count} estimates rest on fewer than "
            f"{FEW_EFFECTIVE} effective samples, and {{cut}} on samples of which more than 5% were cut.",
            per=("model",),
            blanks={
                **{"weak": "weak:sum", "count": "weak:count"},
                "cut": Stat("weak", "count", where="cut_share > 0.05"),
            },
        ),
        *FAILURES,
    ),
)
