r"""The experiment ``kind: literal_muting``: what muting literals costs and saves, and what it does to token sequences.

The claim under test (001, part 5): muting makes the index of ``(https?:\/\/)?...``, the "HTTPS" regex, 20 times faster
to build (27.68 s -> 1.41 s; the plain index 22.31 s; debug builds, as its author says later). The ratio is the claim.
Nothing is said there about the token sequences that a muted constraint no longer takes.

One item is a tokenizer and a constraint. Its rows have a `part`:

- ``cost``: one row a variant: ``tokens_dfa`` with each of the `token_classes`, plain and muted, and for the
  constraints in `baselines_for` the `BASELINES`. Seconds to compile, and of each phase: medians; sizes of what is made.
- ``text``: one row a text of the language, from the `texts` given and those drawn from the pattern
  (`tokdfa.lab.measure.drawn_texts`): see `tokdfa.lab.measure.muting_tokenizations`.
- ``growth``: rows as in ``cost`` for constraints named in `growth.shapes`, in whose pattern ``WORDS`` stands for n
  random lower-case words of l letters: n = each of `counts` with l = `length`, l = each of `lengths` with n = `count`.
  Such a constraint has rows of this part only.

Compiling is timed as in the other experiments (`tokdfa.lab.measure.measure.measure_compiles`): variants take turns, the
first round is not counted. A variant whose compiles have taken `seconds` in all takes no further turn, but has one at
least. A variant that cannot compile has a row with its failure.
"""

from __future__ import annotations

import random
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from tokdfa.backends.registry import create_backend
from tokdfa.backends.tokens_dfa.strategy import CompiledTokensDfa
from tokdfa.constraint import Regex
from tokdfa.errors import OptionError, TokdfaError
from tokdfa.lab.measure.drawn_texts import draw_texts
from tokdfa.lab.measure.limits import failure_of
from tokdfa.lab.measure.measure import Contender, Outcome, check_support, measure_compiles, rotated
from tokdfa.lab.measure.muting_tokenizations import MutedSpellings, follow_text
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.lab.measure.warm_up import warm_up
from tokdfa.lab.measure.workloads import derive_seed
from tokdfa.regex.compile import compile_dfa
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.backends.base import Backend
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: What a constraint in `baselines_for` is also compiled with.
BASELINES = ("token_index", "outlines_core")
#: Where the words go in the pattern of a growth constraint, and a word in `Shape.each`.
WORDS, WORD = "WORDS", "WORD"
#: Phases and sizes that have a column, whether a variant has them or not. `token_classes` is an option too, so the
#: number of classes has another name.
PHASES = ("parse", "automaton", "minimize", "classes", "walks", "reduce", "masks", "index")
SIZES = {
    **{name: name for name in ("states", "dfa_states", "byte_classes", "tokens_left", "class_strings", "graph_nodes")},
    "token_classes_made": "token_classes",
    **{name: name for name in ("literals", "ghosts", "transitions", "bytes")},
}
_CONSTRAINT_KEYS = ("tokenizer", "label", "regex", "search", "ascii_classes", "flags")

Count = Annotated[int, Field(ge=1, le=10_000)]
Classes = Literal["strings", "none", "transformations"]


class Shape(BaseModel):
    """What ``WORDS`` becomes: `each` with ``WORD`` as the word, joined by `join`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    each: Annotated[str, Field(pattern=WORD)] = WORD
    join: str = "|"


class Growth(BaseModel):
    """Which constraints grow, and how far; see the module's page."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    shapes: dict[str, Shape] = Field(default_factory=dict)
    token_classes: list[Classes] = Field(default=["strings", "transformations"], min_length=1)
    counts: list[Count] = Field(default=[1, 2, 4, 8, 16, 32, 64])
    count: Count = 16
    lengths: list[Annotated[int, Field(ge=1, le=200)]] = Field(default=[2, 4, 8, 16, 32])
    length: Annotated[int, Field(ge=1, le=200)] = 8
    repeats: Count = 3


class Settings(BaseModel):
    """The settings of the experiment; see the module's page.

    `texts`: texts that are followed on every constraint whose language they are in; `drawn`: how many more are drawn
    for each constraint, of at most `max_bytes` each; `repeats`: timed compiles of each variant; `seconds`: see there.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    token_classes: list[Classes] = Field(default=["strings", "none", "transformations"], min_length=1)
    repeats: Count = 5
    seconds: Annotated[float, Field(gt=0)] = 2.0
    baselines_for: list[str] = Field(default_factory=list)
    texts: list[str] = Field(default_factory=list)
    drawn: Annotated[int, Field(ge=0, le=100_000)] = 200
    max_bytes: Annotated[int, Field(ge=1, le=10_000)] = 300
    growth: Growth = Field(default_factory=Growth)


@dataclass(frozen=True)
class Variant:
    """A backend with its options. `token_classes`: empty for baselines."""

    backend: str
    token_classes: str = ""
    muted: bool = False

    def __str__(self) -> str:
        return f"{self.token_classes}, muted" if self.muted else self.token_classes or self.backend

    def build(self, vocab: Vocabulary) -> Backend:
        """The backend for a vocabulary. Raises MissingDependency for a peer that is not installed."""
        options = {"token_classes": self.token_classes, "mute_literals": self.muted} if self.token_classes else {}
        return create_backend(self.backend, vocab, **options)


def check_settings(settings: dict[str, Any]) -> Settings:
    """The typed settings of an experiment; OptionError names the key that is wrong."""
    return typed_settings(Settings, settings)


def run_item(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one tokenizer and one constraint. `settings`: those of `Settings`; tokenizer (name), label, regex (and
    search, ascii_classes, flags). The words and the drawn texts follow from `seed`.
    """
    if "tokenizer" not in settings or "regex" not in settings:
        raise OptionError("literal_muting needs a tokenizer and a regex: literals are looked for in patterns")
    typed = check_settings({key: value for key, value in settings.items() if key not in _CONSTRAINT_KEYS})
    tokenizer = load_tokenizer(settings["tokenizer"])
    names = ("search", "ascii_classes", "flags", "label")
    options = {name: settings[name] for name in names if name in settings}
    constraint = Regex(settings["regex"], **options)
    place = {"tokenizer": tokenizer.name, "vocab_size": tokenizer.vocabulary.size, "constraint": constraint.name}
    if constraint.label in typed.growth.shapes:
        rows = measure_growth(constraint, tokenizer.vocabulary, typed, seed)
    else:
        variants = _variants(typed.token_classes)
        if constraint.label in typed.baselines_for:
            variants += [Variant(name) for name in BASELINES]
        cost = measure_cost(constraint, tokenizer.vocabulary, variants, typed.repeats, typed.seconds)
        rows = [{"part": "cost", **row} for row in cost] + follow_texts(constraint, tokenizer, typed, seed)
    return [place | row for row in rows]


def _variants(token_classes: list[Classes]) -> list[Variant]:
    return [Variant("tokens_dfa", classes, muted) for classes in token_classes for muted in (False, True)]


def measure_cost(
    constraint: Regex, vocab: Vocabulary, variants: list[Variant], repeats: int, seconds: float
) -> list[dict[str, Any]]:
    """A row for each variant: medians of the compile time and of its phases, and sizes. See the module's page."""
    contenders = []
    outcomes = [Outcome(str(variant)) for variant in variants]
    for index, (variant, outcome) in enumerate(zip(variants, outcomes, strict=True)):
        try:
            contenders.append(Contender(index, variant.build(vocab), outcome))
        except TokdfaError as error:
            outcome.fail(failure_of(error))
    check_support(contenders, constraint)
    for contender in contenders:
        if not contender.dropped:
            warm_up(contender.backend)
    for turn in range(-1, repeats):
        racing = [one for one in contenders if not one.dropped and sum(one.outcome.ns("compile")) < seconds * 1e9]
        measure_compiles(rotated(racing, turn), constraint, 1, _watch_nothing, first_mask=False)
        if turn < 0:
            for contender in racing:
                contender.outcome.samples.clear()
                contender.outcome.phases.clear()
    return [_cost_row(variant, outcome) for variant, outcome in zip(variants, outcomes, strict=True)]


def _watch_nothing(_contender: int, _phase: str) -> None:
    """The limit on time is that of the item; there is no board to write to."""


def _cost_row(variant: Variant, outcome: Outcome) -> dict[str, Any]:
    nanoseconds = outcome.ns("compile")
    row: dict[str, Any] = {
        "variant": str(variant),
        "backend": variant.backend,
        "token_classes": variant.token_classes,
        "muted": variant.muted,
        "status": outcome.status,
        "message": outcome.message,
        "samples": len(nanoseconds),
        "seconds": float(np.median(nanoseconds)) * 1e-9 if nanoseconds else None,
        "seconds_min": min(nanoseconds) * 1e-9 if nanoseconds else None,
        "seconds_max": max(nanoseconds) * 1e-9 if nanoseconds else None,
    }
    for name in PHASES:
        samples = [phases[name] for phases in outcome.phases if name in phases]
        row[f"{name}_s"] = float(np.median(samples)) if samples else None
    return row | {column: outcome.sizes.get(name) for column, name in SIZES.items()}


def measure_growth(constraint: Regex, vocab: Vocabulary, settings: Settings, seed: int) -> list[dict[str, Any]]:
    """Rows as of `measure_cost` for each number and length of words. Raises OptionError if the pattern has no place
    for them, or if there are not so many words of a length.
    """
    growth = settings.growth
    shape = growth.shapes[constraint.label]
    if WORDS not in constraint.pattern:
        raise OptionError(f"{constraint.label!r} is to grow, but its regex has no {WORDS} to put words in")
    rows = []
    for axis, count, length in _sizes(growth):
        words = random_words(count, length, derive_seed(seed, length))
        pattern = constraint.pattern.replace(WORDS, shape.join.join(shape.each.replace(WORD, word) for word in words))
        grown = Regex(pattern, constraint.search, constraint.ascii_classes, constraint.flags, label=constraint.label)
        cost = measure_cost(grown, vocab, _variants(growth.token_classes), growth.repeats, settings.seconds)
        rows += [{"part": "growth", "axis": axis, "words": count, "length": length, **row} for row in cost]
    return rows


def _sizes(growth: Growth) -> Iterator[tuple[str, int, int]]:
    """(what varies, number of words, their length); a pair that lies on both axes is measured on each."""
    yield from (("words", count, growth.length) for count in growth.counts)
    yield from (("length", growth.count, length) for length in growth.lengths)


def random_words(count: int, length: int, seed: int) -> list[str]:
    """`count` distinct words of `length` lower-case letters; fewer words are the first of more. OptionError if there
    are not twice as many words of this length.
    """
    if 2 * count > len(string.ascii_lowercase) ** length:
        raise OptionError(f"there are hardly {count} distinct words of {length} letters: take longer ones, or fewer")
    choose = random.Random(seed)
    words: dict[str, None] = {}
    while len(words) < count:
        words["".join(choose.choices(string.ascii_lowercase, k=length))] = None
    return list(words)


def follow_texts(constraint: Regex, tokenizer: Tokenizer, settings: Settings, seed: int) -> list[dict[str, Any]]:
    """A row for each given text in the language and each drawn one; a single row with the reason if literals cannot be
    muted here, or no texts be drawn.
    """
    vocab = tokenizer.vocabulary
    try:
        language = compile_dfa(constraint)
        drawn = draw_texts(constraint, settings.drawn, settings.max_bytes, seed)
        plain = create_backend("tokens_dfa", vocab).compile(constraint)
        muted = create_backend("tokens_dfa", vocab, mute_literals=True).compile(constraint)
    except TokdfaError as error:
        failure = failure_of(error)
        return [{"part": "text", "source": "", "status": failure.kind, "message": failure.message}]
    assert isinstance(muted, CompiledTokensDfa)
    given = [text for text in settings.texts if language.accepts(text.encode())]
    spellings = MutedSpellings(muted)
    literals = muted.sizes["literals"]
    return [
        {"part": "text", "source": source, "literals": literals, **row}
        for source, texts in (("given", given), ("drawn", drawn))
        for row in (follow_text(text, tokenizer, plain, muted, spellings) for text in texts)
    ]
