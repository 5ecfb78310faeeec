"""Choosing one token: a model's row, restricted to a mask, reshaped by temperature and top-p, and a random number.

The order is fixed: first the mask, then the temperature, then top-p on what is left, as it is where a mask is applied
to logits before the usual sampling options. So top-p never empties a mask: its share is one of the allowed mass.

- *temperature* t: probabilities to the power of 1 / t, renormalised.
- *top-p* (nucleus sampling; Holtzman et al. 2020, arXiv 1904.09751): the fewest tokens, the most probable first, whose
  probabilities add up to at least p; on equal probabilities the lowest ids first.
- *greedy*: the most probable token, the lowest id of several; the other two options do not matter then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa import mask as masks
from tokdfa.core.arguments import as_bool, as_number
from tokdfa.errors import EmptyMask, ModelError, OptionError

if TYPE_CHECKING:
    from tokdfa.mask import Mask

Floats = npt.NDArray[np.float64]


class Drawn(NamedTuple):
    """A chosen token, its log-probability in the model's own row, and the log of the allowed mass of that row."""

    token: int
    log_probability: float
    log_allowed: float


@dataclass(eq=False)
class Sampler:
    """Draws tokens from masked rows, one random number a token; the stream of numbers goes on from call to call.

    `temperature` > 0, `top_p` in (0, 1], `greedy`, `seed` from 0 up. Raises OptionError for values out of range.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    greedy: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        self.temperature, self.top_p = as_number(self.temperature, "temperature"), as_number(self.top_p, "top_p")
        self.greedy = as_bool(self.greedy, "greedy")
        if not 0 < self.temperature < float("inf"):
            hint = "; greedy=True takes the most probable token" if self.temperature == 0 else ""
            raise OptionError(f"the temperature is a finite number above 0, not {self.temperature!r}{hint}")
        if not 0 < self.top_p <= 1:
            raise OptionError(f"top_p is above 0 and at most 1, not {self.top_p!r}")
        self._generator = random_generator(self.seed)

    def spawn(self, count: int) -> list[Sampler]:
        """`count` samplers with these options and independent streams; each call gives new ones."""
        spawned = []
        for generator in self._generator.spawn(count):
            sampler = replace(self)
            sampler._generator = generator
            spawned.append(sampler)
        return spawned

    def choose(self, row: Floats, mask: Mask) -> int:
        """The next token. `row`: log-probabilities, float64, shape (V,); `mask`: over V tokens. See `draw`."""
        return self.draw(row, mask).token

    def draw(self, row: Floats, mask: Mask) -> Drawn:
        """The next token with what it means under the model, whatever temperature and top-p have made of the row.

        Takes a random number unless only one token is allowed, or with greedy. O(V), and O(n log n) for n allowed
        tokens with top_p < 1. Raises EmptyMask if no token is allowed, ModelError if each of them has probability 0,
        OptionError if the mask is not one over V tokens.
        """
        tokens, logs = _allowed_logs(row, mask)
        place = int(logs.argmax())
        highest = float(logs[place])
        # in place: a wide mask costs more in fresh memory than in arithmetic
        weights = np.exp(np.subtract(logs, highest, out=logs), out=logs)
        log_allowed = highest + float(np.log(weights.sum()))
        if len(tokens) > 1 and not self.greedy:
            place = draw_index(np.cumsum(self._reshape(weights)), self._generator)
        token = int(tokens[place])
        return Drawn(token, float(row[token]), log_allowed)

    def _reshape(self, weights: Floats) -> Floats:
        """Temperature and top-p, on weights of which the largest is 1. Leaves its argument as it is."""
        if self.temperature != 1:
            weights = weights ** (1 / self.temperature)
        if self.top_p < 1:
            order = np.argsort(-weights, kind="stable")
            cumulative = np.cumsum(weights[order])
            needed = int(np.searchsorted(cumulative, self.top_p * cumulative[-1])) + 1
            weights = weights.copy()
            weights[order[needed:]] = 0
        return weights


def draw_index(cumulative: Floats, generator: np.random.Generator) -> int:
    """An index with the probability of its share of `cumulative[-1]`: float64, shape (n,), sums of weights. O(log n).

    An index of weight 0 is never drawn. Takes one random number. The last sum must be positive.
    """
    point = generator.random() * cumulative[-1]
    place = int(np.searchsorted(cumulative, point, side="right"))
    # a product just below the last sum may round to it; the first index that reaches it has a positive weight
    return place if place < len(cumulative) else int(np.searchsorted(cumulative, cumulative[-1]))


def log_total(log_values: Floats) -> float:
    """log(sum(exp(log_values))) without overflow, -inf for none. `log_values`: float64, shape (n,)."""
    highest = float(log_values.max(initial=-np.inf))
    return highest if highest == -np.inf else highest + float(np.log(np.exp(log_values - highest).sum()))


def random_generator(seed: int) -> np.random.Generator:
    """The stream of random numbers of a seed. Raises OptionError for what is no number from 0 up."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise OptionError(f"a seed is a whole number from 0 up, not {seed!r}")
    return np.random.default_rng(int(seed))


def allowed_tokens(mask: Mask, size: int) -> npt.NDArray[np.int64]:
    """The allowed tokens, ascending, int64. Raises EmptyMask for none, OptionError if the mask is not over `size`."""
    if np.shape(mask) != (masks.mask_words(size),):
        raise OptionError(f"a mask over {size} tokens has the shape ({masks.mask_words(size)},), not {np.shape(mask)}")
    tokens = np.flatnonzero(masks.mask_to_bool(mask, size))
    if not len(tokens):
        raise EmptyMask("the mask is empty: the text is finished, or the backend has run into a dead end")
    return tokens


def _allowed_logs(row: Floats, mask: Mask) -> tuple[npt.NDArray[np.int64], Floats]:
    """The allowed tokens and their log-probabilities; ModelError if each has probability 0."""
    tokens = allowed_tokens(mask, len(row))
    logs = row[tokens]
    if logs.max() == -np.inf:
        shown = ", ".join(map(str, tokens[:5])) + (", ..." if len(tokens) > 5 else "")
        raise ModelError(
            f"the model gives probability 0 to every allowed token ({shown}), so there is nothing to choose from;"
            " is an end token missing from what the model can generate?"
        )
    return tokens, logs
