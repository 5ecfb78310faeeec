"""Compile times of a constraint with and without muted literals, and of constraints whose literals grow."""

from __future__ import annotations

import random
import string
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tokdfa.constraint import Regex
from tokdfa.errors import OptionError
from tokdfa.lab.measure.compile_race import Entrant, compile_in_turns
from tokdfa.lab.measure.engines import Engine
from tokdfa.lab.measure.limits import OK
from tokdfa.lab.measure.workloads import derive_seed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tokdfa.vocabulary.vocabulary import Vocabulary

#: Where the words go in the pattern of a growth constraint, and a word in `Shape.each`.
WORDS, WORD = "WORDS", "WORD"
#: Phases and sizes that have a column, whether a variant has them or not. `token_classes` is an option too, so the
#: number of classes has another name.
PHASES = ("parse", "automaton", "minimize", "classes", "walks", "reduce", "masks", "index")
SIZES = ("states", "byte_classes", "class_strings", "graph_nodes", "literals", "ghosts")
Count = Annotated[int, Field(ge=1, le=10_000)]
Classes = Literal["strings", "none", "transformations"]


class Shape(BaseModel):
    """What ``WORDS`` becomes: `each` with ``WORD`` as the word, joined by `join`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    each: Annotated[str, Field(pattern=WORD)] = WORD
    join: str = "|"


class Growth(BaseModel):
    """Which constraints grow, and how far; see `measure_growth`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    shapes: dict[str, Shape] = Field(default_factory=dict)
    token_classes: list[Classes] = Field(default=["strings", "transformations"], min_length=1)
    counts: list[Count] = Field(default=[1, 2, 4, 8, 16, 32, 64])
    count: Count = 16
    lengths: list[Annotated[int, Field(ge=1, le=200)]] = Field(default=[2, 4, 8, 16, 32])
    length: Annotated[int, Field(ge=1, le=200)] = 8
    repeats: Count = 3


def muting_variants(token_classes: Sequence[str]) -> list[Engine]:
    """tokdfa's backend tokens_dfa with each of the `token_classes`, literals plain and muted."""
    return [
        Engine(
            backend="tokens_dfa",
            options={"token_classes": classes, "mute_literals": muted},
            label=f"{classes}, muted" if muted else classes,
        )
        for classes in token_classes
        for muted in (False, True)
    ]


def measure_cost(
    constraint: Regex, vocab: Vocabulary, variants: list[Engine], repeats: int, most: float
) -> list[dict[str, Any]]:
    """A row for each variant: medians of the compile time and of its phases, and sizes."""
    entrants = [Entrant.of(variant, vocab) for variant in variants]
    compile_in_turns(entrants, constraint, 1, most)
    entrants = [one.again() for one in entrants]
    compile_in_turns(entrants, constraint, repeats, most)
    return [_cost_row(one) for one in entrants]


def _cost_row(one: Entrant[Engine]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "variant": one.engine.name,
        "backend": one.engine.backend,
        "token_classes": one.engine.options.get("token_classes", ""),
        "muted": one.engine.options.get("mute_literals", False),
        "status": one.failure.kind if one.failure else OK,
        "message": one.failure.message if one.failure else "",
        "samples": len(one.compile_s),
        "seconds": median(one.compile_s) if one.compile_s else None,
        **{name: one.sizes.get(name) for name in SIZES},
        "token_classes_made": one.sizes.get("token_classes"),
    }
    for name in PHASES:
        samples = [phases[name] for phases in one.phases if name in phases]
        row[f"{name}_s"] = median(samples) if samples else None
    return row


def measure_growth(
    constraint: Regex, vocab: Vocabulary, growth: Growth, most: float, seed: int
) -> list[dict[str, Any]]:
    """Rows as of `measure_cost` for each number and length of words. Raises OptionError if the pattern has no place
    for them, or if there are not so many words of a length.
    """
    shape = growth.shapes[constraint.label]
    if WORDS not in constraint.pattern:
        raise OptionError(f"{constraint.label!r} is to grow, but its regex has no {WORDS} to put words in")
    rows = []
    for axis, count, length in _sizes(growth):
        words = random_words(count, length, derive_seed(seed, length))
        pattern = constraint.pattern.replace(WORDS, shape.join.join(shape.each.replace(WORD, word) for word in words))
        grown = Regex(pattern, constraint.search, constraint.ascii_classes, constraint.flags, label=constraint.label)
        cost = measure_cost(grown, vocab, muting_variants(growth.token_classes), growth.repeats, most)
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
