"""What a row of a language model costs in generation: seconds of a call, and seconds of each row in it.

Measured one token after a prompt that the model has read, as a decoding loop asks. A batch of rows is cheaper than as
many calls, which is what favours strategies that grow several sequences side by side; hence two numbers.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tokdfa.models.base import LanguageModel

#: Batches that the model is timed with, each so often.
CALIBRATION_ROWS, CALIBRATION_REPEATS = (1, 16), 5


@dataclass(frozen=True)
class Price:
    """What the model costs: seconds of a call, whatever its size, and of each row in it."""

    call: float
    row: float


def calibrate(model: LanguageModel, prompt: tuple[int, ...], seed: int) -> Price:
    """The price of rows one token after a prompt that the model has read already: as in generation.

    Two sizes of batches (`CALIBRATION_ROWS`), each token another one, medians; the line through both.
    """
    vocabulary = model.vocabulary
    spelling = [token for token in range(vocabulary.size) if vocabulary.token_bytes(token)]
    few, many = CALIBRATION_ROWS
    needed = (few + many) * (CALIBRATION_REPEATS + 1)
    drawn = np.random.default_rng(seed).choice(spelling, needed, replace=len(spelling) < needed).tolist()
    tokens = iter(drawn)
    samples: dict[int, list[float]] = {few: [], many: []}
    for turn in range(CALIBRATION_REPEATS + 1):
        for size, taken in samples.items():
            prefixes = [(*prompt, next(tokens)) for _ in range(size)]
            started = time.perf_counter_ns()
            model.log_probabilities(prefixes)
            if turn:  # the first warms up
                taken.append((time.perf_counter_ns() - started) * 1e-9)
    small, large = (statistics.median(taken) for taken in samples.values())
    row = max(0.0, (large - small) / (many - few))
    return Price(max(0.0, small - few * row), row)
