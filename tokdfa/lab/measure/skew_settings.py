"""The settings of ``kind: skew``: prompts with choices, large languages with prompts, and what is refused of them."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from tokdfa.decoding.draws import Eos  # noqa: TC001 (pydantic reads the annotation)
from tokdfa.errors import OptionError
from tokdfa.lab.measure.constraint_entry import ConstraintEntry, fault_of_keys
from tokdfa.lab.measure.drawn_skew import LEAST_RUNS, MASKS, EngineWay
from tokdfa.lab.measure.engines import Engines, spread
from tokdfa.lab.measure.model_bench import Count, ModelSettings, Prompt, Seconds, distinct_labels
from tokdfa.lab.measure.skew_rows import IDEAL
from tokdfa.lab.measure.ways import distinct_names
from tokdfa.regex.parse import parse
from tokdfa.skew.eos import check_texts


class Language(ConstraintEntry):
    """A constraint with a prompt: a regex, a JSON schema, or whatever else an entry may be.

    `max_tokens`: where a sample is cut.
    """

    label: str
    prompt: str
    max_tokens: Count


class Settings(ModelSettings):
    """The settings of the experiment.

    `engines`: the others are compared with the first, which should admit all spellings. `only`: labels of prompts and
    languages, all if empty; `limit`: at most so many of these, evenly spread. `cache_mb`: it should hold all rows of a
    prompt (8 V bytes each), see `exact_rows`.

    Of choices: `eos`, `tolerance`, `max_prefixes` and `follow_spellings` are those of `tokdfa.skew.exact`. `ways`:
    other ways to decode than local masking, each run `runs` times, or fewer if it takes `seconds_each` before.

    Of languages: `samples` of each engine, drawn `batch` at a time.
    """

    engines: Engines
    prompts: Annotated[list[Prompt], AfterValidator(distinct_labels)] = Field(default_factory=list)
    languages: Annotated[list[Language], AfterValidator(distinct_labels)] = Field(default_factory=list)
    only: list[str] = Field(default_factory=list)
    limit: Count | None = None
    eos: Eos = "ignored"
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 1e-3
    max_prefixes: Count = 4_000
    follow_spellings: bool = True
    ways: Annotated[list[EngineWay], AfterValidator(distinct_names)] = Field(default_factory=list)
    runs: Annotated[int, Field(ge=LEAST_RUNS, le=100_000)] = 40
    seconds_each: Seconds = 1.0
    samples: Annotated[int, Field(ge=2, le=1_000_000)] = 100
    batch: Count = 64

    def chosen(self) -> list[Prompt | Language]:
        """What is measured."""
        asked: list[Prompt | Language] = [*self.prompts, *self.languages]
        return spread([one for one in asked if not self.only or one.label in self.only], self.limit)

    @model_validator(mode="after")
    def _can_be_asked(self) -> Settings:
        if IDEAL in {engine.name for engine in self.engines}:
            raise OptionError(f"settings.engines: the label {IDEAL!r} is that of the model's own distribution")
        engines = [engine.name for engine in self.engines]
        for way in self.ways:
            if way.engine not in engines:
                raise OptionError(f"settings.ways: there is no engine {way.engine!r}; there are {engines}")
            if way.method in ("none", MASKS, "reason"):
                raise OptionError(f"settings.ways: {way.method} draws no sequences; local masking is by every engine")
        labels = [one.label for one in self.prompts] + [one.label for one in self.languages]
        for label in self.only:
            if label not in labels:
                raise OptionError(f"settings.only: there is no prompt {label!r}; there are {', '.join(labels)}")
        if not self.chosen():
            raise OptionError("settings: there is no prompt, and no language")
        for one in self.chosen():
            try:
                check_prompt(one, self.eos) if isinstance(one, Prompt) else check_language(one)
            except OptionError as error:
                raise OptionError(f"settings: {one.label}: {error}") from None
        return self


def check_prompt(prompt: Prompt, eos: Eos) -> None:
    """Raise OptionError for choices that are no distribution, or an expected one that is none of them."""
    check_texts(prompt.choices, eos)
    if prompt.expected is not None and prompt.expected not in prompt.choices:
        raise OptionError(f"{prompt.expected!r} is expected, but none of its choices")


def check_language(language: Language) -> None:
    """Raise TokdfaError for what is no constraint."""
    if fault := fault_of_keys(language.model_fields_set):
        raise OptionError(fault[0])
    language.build()
    if language.regex is not None:
        parse(language.regex, language.flags, language.ascii_classes)
