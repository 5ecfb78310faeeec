"""A tiny vocabulary, models over it, and exact distributions over token sequences by enumeration, without masks."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from tests.skew.enumeration import all_spellings, masked_masses, model_masses
from tokdfa.backends.base import CompiledConstraint, Matcher
from tokdfa.backends.token_index import TokenIndex
from tokdfa.constraint import Choice
from tokdfa.models.table import TableModel, random_table
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tokdfa.mask import Mask
    from tokdfa.models.base import LanguageModel

Sequences = dict[tuple[int, ...], float]

A, B, C, AB, BC, END, OTHER_END, SPECIAL = range(8)
#: Two end tokens, a special token, and padding.
LETTERS = Vocabulary(
    [b"a", b"b", b"c", b"ab", b"bc", b"", b"", b""],
    end_tokens=[END, OTHER_END],
    special_tokens={END: "</s>", OTHER_END: "<eot>", SPECIAL: "<s>"},
    size=9,
    name="letters",
)
#: "ab" begins "abc": fit for eos="counted" only.
WORDS = (b"ab", b"abc", b"ba", b"caab", b"cb")
#: No word begins another.
APART = (b"ab", b"ba", b"caab", b"cabb", b"cb")


class DeadEnd(CompiledConstraint):
    """A constraint with a fault: all masks are empty, but for the first unless `at_once`."""

    def __init__(self, inner: CompiledConstraint, at_once: bool = False) -> None:
        super().__init__(inner.constraint, inner.vocab, inner.backend_name)
        self._inner, self._at_once = inner, at_once

    def _start(self, context: tuple[int, ...]) -> Matcher:
        return _Closing(self._inner.start(context), self._at_once)


class _Closing(Matcher):
    """A matcher whose masks are empty, if `closed` or after its first token."""

    def __init__(self, inner: Matcher, closed: bool) -> None:
        super().__init__(inner.vocab)
        self._inner, self._closed = inner, closed

    def can_end(self) -> bool:
        return self._inner.can_end()

    def is_finished(self) -> bool:
        return self._inner.is_finished()

    def _fill_mask(self, out: Mask) -> None:
        if self._closed:
            out.fill(0)
        else:
            self._inner.fill_mask(out)

    def _advance(self, token: int) -> None:
        self._inner.advance(token)
        self._closed = True

    def _allows(self, token: int) -> bool:
        return self._inner.allows(token)

    def _rollback(self, count: int) -> None:
        self._inner.rollback(count)

    def _fork(self) -> Matcher:
        return _Closing(self._inner.fork(), self._closed)


def compile_words(words: Iterable[bytes], vocabulary: Vocabulary = LETTERS) -> CompiledConstraint:
    return TokenIndex(vocabulary).compile(Choice(words))


def skewed_model(seed: int = 1, concentration: float = 0.4) -> TableModel:
    """A model for which local masking is far from the target."""
    return random_table(LETTERS, seed, concentration)


def target_sequences(
    model: LanguageModel, words: Iterable[bytes], context: tuple[int, ...] = (), *, eos: str = "counted"
) -> Sequences:
    """Every spelling of every word -> its probability under the model."""
    return model_masses(model, context, all_spellings(model.vocabulary, words), eos)


def masked_sequences(model: LanguageModel, words: Iterable[bytes], context: tuple[int, ...] = ()) -> Sequences:
    """Every spelling -> its probability under local masking with eos counted: what may come next is what some has."""
    return masked_masses(model, context, all_spellings(model.vocabulary, words), "counted")


def by_text(sequences: Mapping[tuple[int, ...], float], vocabulary: Vocabulary = LETTERS) -> dict[bytes, float]:
    """Normalised probabilities of texts."""
    total = sum(sequences.values())
    shares: dict[bytes, float] = defaultdict(float)
    for tokens, value in sequences.items():
        shares[vocabulary.spell(tokens)] += value / total
    return dict(shares)


def distance(one: Mapping[bytes, float], other: Mapping[bytes, float]) -> float:
    """Total variation."""
    return sum(abs(one.get(text, 0.0) - other.get(text, 0.0)) for text in {*one, *other}) / 2


def noise(truth: Mapping[bytes, float], samples: int) -> float:
    """What the total variation of `samples` independent draws from `truth` exceeds with probability 1e-6 at most.

    Its mean is at most half the sum of sqrt(p / n), and McDiarmid's inequality bounds what comes on top.
    """
    mean = sum(math.sqrt(p / samples) for p in truth.values()) / 2
    return mean + math.sqrt(math.log(1e6) / (2 * samples))


def explore(
    run: Callable[[Callable[[np.ndarray], int]], object], negligible: float = 0.0
) -> list[tuple[float, object]]:
    """All outcomes of a random procedure with their probabilities, exactly.

    `run` gets a function that draws an index, given cumulative weights, and is run once for each series of indices.
    """

    class Branch(Exception):
        pass

    outcomes, agenda = [], [((), 1.0)]
    while agenda:
        script, probability = agenda.pop()
        rest = iter(script)

        def draw(cumulative: np.ndarray, rest=rest, script=script, probability=probability) -> int:
            index = next(rest, None)
            if index is None:
                weights = np.diff(cumulative, prepend=0) / cumulative[-1]
                agenda.extend(((*script, int(i)), probability * weights[i]) for i in np.flatnonzero(weights))
                raise Branch
            return index

        try:
            outcomes.append((probability, run(draw)))
        except Branch:
            continue
    return outcomes
