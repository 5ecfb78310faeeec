"""The settings of ``kind: skew``: prompts with choices, large languages with prompts, and what is refused of them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from tokdfa.decoding.draws import Eos  # noqa: TC001 (pydantic reads the annotation)
from tokdfa.errors import OptionError
from tokdfa.lab.measure.engines import Engines  # noqa: TC001 (pydantic reads the annotation)
from tokdfa.lab.measure.model_bench import DISTINCT_LABELS, Count, ModelSettings, Prompt
from tokdfa.lab.measure.prompted_task import Prompted  # noqa: TC001 (pydantic reads the annotation)
from tokdfa.lab.measure.skew_rows import IDEAL
from tokdfa.regex.parse import parse
from tokdfa.skew.eos import check_texts


class Settings(ModelSettings):
    """The settings of the experiment.

    `engines`: the others are compared with the first, which should admit all spellings. `only`: labels of prompts and
    languages, all if empty. `cache_mb`: it should hold all rows of a prompt (8 V bytes each), see `exact_rows`.

    Of choices: `eos`, `tolerance`, `max_prefixes` and `follow_spellings` are those of `tokdfa.skew.exact`. Of
    languages: `samples` of each engine, drawn `batch` at a time.
    """

    engines: Engines
    prompts: Annotated[list[Prompt], DISTINCT_LABELS] = Field(default_factory=list)
    languages: Annotated[list[Prompted], DISTINCT_LABELS] = Field(default_factory=list)
    only: list[str] = Field(default_factory=list)
    eos: Eos = "ignored"
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 1e-3
    max_prefixes: Count = 4_000
    follow_spellings: bool = True
    samples: Annotated[int, Field(ge=2, le=1_000_000)] = 100
    batch: Count = 64

    def chosen(self) -> list[Prompt | Prompted]:
        """What is measured."""
        asked: list[Prompt | Prompted] = [*self.prompts, *self.languages]
        return [one for one in asked if not self.only or one.label in self.only]

    @model_validator(mode="after")
    def _can_be_asked(self) -> Settings:
        if IDEAL in {engine.name for engine in self.engines}:
            raise OptionError(f"settings.engines: the label {IDEAL!r} is that of the model's own distribution")
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


def check_language(language: Prompted) -> None:
    """Raise TokdfaError for what cannot be measured."""
    if language.max_tokens is None:
        raise OptionError("a language needs max_tokens, where a sample is cut")
    language.build()
    if language.regex is not None:
        parse(language.regex, language.flags, language.ascii_classes)
