"""A language model, as far as constraints are concerned: log-probabilities of the next token, for a batch of prefixes.

Words. A *prefix* is all tokens that the model has seen: a *context* (the prompt, with whatever the model wants before
it) and the tokens generated so far. A *call* is one evaluation of a batch of prefixes. The model's *logit width* is
the length of a row; it equals `vocabulary.size`, and padding beyond the real tokens has probability 0 or nearly so.

Every row that a model returns is checked: a NaN, +inf or a row that does not sum to one is a fault of the model or of
its weights, and a distribution computed from it would look as good as any other.
"""

from __future__ import annotations

import operator
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tokdfa.vocabulary.vocabulary import Vocabulary

    #: Natural logarithms of probabilities, -inf for what is impossible. Shape (rows, V).
    LogProbabilities = npt.NDArray[np.float64]

#: How far a row's total may be from 1. Rows are normalised in float64; a model's own softmax in float32 is near 1e-6.
SUM_TOLERANCE = 1e-4


@dataclass
class CallCounts:
    """The work that a model has done: batches evaluated, rows returned, tokens run through it, seconds.

    `tokens` counts what was really computed: tokens whose states were cached are not in it.
    """

    batches: int = 0
    rows: int = 0
    tokens: int = 0
    seconds: float = 0.0


class LanguageModel(ABC):
    """Log-probabilities for a batch of prefixes. Subclasses write `_log_probabilities` and count `tokens`.

    `name`: what loads it again; `vocabulary`: its tokens, whose size is the length of a row; `context_limit`: the most
    tokens a prefix may have, None if there is no limit; `start_tokens`: what belongs before every context (a begin
    token), often nothing. Not to be shared between threads.
    """

    context_limit: int | None = None
    start_tokens: tuple[int, ...] = ()
    #: Whether the rows of `_log_probabilities` come from another model, which has checked them.
    rows_are_checked: bool = False

    def __init__(self, name: str, vocabulary: Vocabulary) -> None:
        self.name = name
        self.vocabulary = vocabulary
        self.counts = CallCounts()

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A hash of everything the probabilities depend on. 32 hex digits."""

    @abstractmethod
    def _log_probabilities(self, prefixes: Sequence[tuple[int, ...]]) -> LogProbabilities:
        """What `log_probabilities` returns, unchecked; adds to ``self.counts.tokens``."""

    def log_probabilities(self, prefixes: Sequence[Sequence[int]]) -> LogProbabilities:
        """log p(next token | prefix), natural, float64, shape (len(prefixes), V); the caller owns the array.

        A prefix is given whole, context included; `start_tokens` are not added. Prefixes that share a beginning share
        its computation where the model can. The rows take 8 V bytes each, so large batches are for the caller to split.
        Raises ModelError for what are no prefixes, for a token outside the vocabulary, for a prefix longer than
        `context_limit`, and for output that is no distribution.
        """
        size = self.vocabulary.size
        try:
            checked = [tuple(map(operator.index, prefix)) for prefix in prefixes]
        except TypeError:
            raise ModelError(
                f"{self.name} takes a list of prefixes, each a sequence of token ids; for one prefix give [prefix]"
            ) from None
        for prefix in checked:
            if self.context_limit is not None and len(prefix) > self.context_limit:
                raise ModelError(
                    f"a prefix of {len(prefix)} tokens is longer than the {self.context_limit} that {self.name} takes;"
                    " shorten the context or the texts"
                )
            if prefix and not (min(prefix) >= 0 and max(prefix) < size):
                wrong = next(token for token in prefix if not 0 <= token < size)
                raise ModelError(
                    f"token {wrong} is outside the vocabulary of {self.name}, which has {size} tokens;"
                    " was the text encoded with another tokenizer?"
                )
        if not checked:
            return np.empty((0, size))
        started = time.perf_counter_ns()
        rows = self._log_probabilities(checked)
        self.counts.seconds += (time.perf_counter_ns() - started) * 1e-9
        self.counts.batches += 1
        self.counts.rows += len(rows)
        if not self.rows_are_checked:
            check_rows(rows, (len(checked), size), self.name)
        return rows


def check_rows(rows: LogProbabilities, shape: tuple[int, int], name: str) -> None:
    """Raise ModelError unless `rows` are distributions: float64 of `shape`, no NaN, each sums to 1. O(rows * V)."""
    if rows.shape != shape or rows.dtype != np.float64:
        raise ModelError(
            f"{name} returned {rows.dtype} of shape {rows.shape} for {shape[0]} prefixes over {shape[1]} tokens;"
            " do the model and the tokenizer belong together?"
        )
    probabilities = np.empty(shape[1])  # row by row, so that a large batch needs no second array of its size
    for index, row in enumerate(rows):
        with np.errstate(over="ignore"):  # exp of a huge value is inf, and refused as such
            total = float(np.exp(row, out=probabilities).sum())
        if not abs(total - 1) <= SUM_TOLERANCE:  # a NaN is never near
            found = "NaN" if np.isnan(row).any() else f"probabilities that sum to {total:.6g}"
            raise ModelError(f"{name} returned {found} in row {index} of {shape[0]}; its output is no distribution")
