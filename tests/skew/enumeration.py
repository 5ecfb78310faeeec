"""The plain twin of the exact walk: list every sequence of tokens, multiply, add up. It shares no code with it.

A *language* here is a set of sequences of tokens: all spellings of some texts, or the one encoding of each. What a mask
would allow is read off that set. Exponential; for texts of a few bytes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tokdfa.models.base import LanguageModel
    from tokdfa.vocabulary.vocabulary import Vocabulary

Tokens = tuple[int, ...]


def spellings(vocabulary: Vocabulary, text: bytes) -> list[Tokens]:
    """Every sequence of tokens that spells `text`."""
    if not text:
        return [()]
    found = []
    for token in range(vocabulary.size):
        spelled = vocabulary.token_bytes(token)
        if spelled and text.startswith(spelled):
            found += [(token, *rest) for rest in spellings(vocabulary, text[len(spelled) :])]
    return found


def all_spellings(vocabulary: Vocabulary, texts: Iterable[bytes]) -> set[Tokens]:
    return {tokens for text in texts for tokens in spellings(vocabulary, text)}


def probability(model: LanguageModel, before: Tokens, tokens: Tokens) -> float:
    """The model's probability that `tokens` come after `before`, without an end."""
    return math.prod(
        math.exp(model.log_probabilities([before + tokens[:place]])[0, token]) for place, token in enumerate(tokens)
    )


def ending(model: LanguageModel, before: Tokens) -> float:
    """The model's probability that an end token comes after `before`."""
    row = model.log_probabilities([before])[0]
    return math.fsum(math.exp(row[token]) for token in model.vocabulary.end_tokens)


def model_masses(model: LanguageModel, context: Tokens, language: set[Tokens], eos: str) -> dict[Tokens, float]:
    """sequence -> its probability under the model after `context`."""
    before = (*model.start_tokens, *context)
    return {
        tokens: probability(model, before, tokens) * (ending(model, before + tokens) if eos == "counted" else 1.0)
        for tokens in language
    }


def masked_masses(model: LanguageModel, context: Tokens, language: set[Tokens], eos: str) -> dict[Tokens, float]:
    """sequence -> its probability when each step is renormalised over what goes on to a sequence of `language`."""
    before = (*model.start_tokens, *context)
    following = defaultdict(set)
    for tokens in language:
        for place, token in enumerate(tokens):
            following[tokens[:place]].add(token)

    def step(prefix: Tokens, chosen: Sequence[int]) -> float:
        row = np.exp(model.log_probabilities([before + prefix])[0])
        ends = model.vocabulary.end_tokens if eos == "counted" and prefix in language else ()
        return math.fsum(row[list(chosen)]) / math.fsum(row[[*following[prefix], *ends]])

    return {
        tokens: math.prod(step(tokens[:place], [token]) for place, token in enumerate(tokens))
        * (step(tokens, model.vocabulary.end_tokens) if eos == "counted" else 1.0)
        for tokens in language
    }


def forced_share(model: LanguageModel, context: Tokens, language: set[Tokens], eos: str) -> float:
    """The share of forced steps in the steps of masked sampling, both as expected numbers."""
    masses = masked_masses(model, context, language, eos)
    steps = forced = 0.0
    for tokens, mass in masses.items():
        for place in range(len(tokens) + (eos == "counted")):
            prefix = tokens[:place]
            onward = {other[place] for other in language if len(other) > place and other[:place] == prefix}
            choices = len(onward) + (eos == "counted" and prefix in language)
            steps += mass
            forced += mass * (choices == 1)
    return forced / steps


def by_text(vocabulary: Vocabulary, texts: Sequence[bytes], masses: dict[Tokens, float]) -> list[float]:
    """The masses of sequences added up for each text."""
    return [math.fsum(mass for tokens, mass in masses.items() if vocabulary.spell(tokens) == text) for text in texts]
