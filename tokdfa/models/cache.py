"""Rows kept by prefix, for any model: the strategies of a comparison ask for the same rows again and again.

Exact: a row comes back as the model gave it, float64, bit for bit. It takes 8 V bytes (0.4 MB for 49,152 tokens), so
the rows that were not used for the longest time make room when `capacity_mb` is full.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.errors import OptionError
from tokdfa.models.base import LanguageModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.models.base import LogProbabilities


class CachedModel(LanguageModel):
    """`model`, with its rows kept up to `capacity_mb` megabytes (10 ** 6 bytes), the least recently used leaving first.

    Name, vocabulary, limits and fingerprint are the model's. `counts` counts what was asked for: batches and rows with
    the kept ones, but only the tokens that the model ran; ``.model.counts`` counts what the model did. `hits` and
    `misses` are in rows; a prefix that occurs twice in one batch is computed once. A fault of the model leaves the kept
    rows as they are. Raises OptionError for a capacity below one row.
    """

    rows_are_checked = True

    def __init__(self, model: LanguageModel, capacity_mb: float = 512) -> None:
        super().__init__(model.name, model.vocabulary)
        self.model = model
        self.context_limit = model.context_limit
        self.start_tokens = model.start_tokens
        self.hits = 0
        self.misses = 0
        row_bytes = 8 * model.vocabulary.size
        if not capacity_mb * 1e6 >= row_bytes:
            raise OptionError(f"capacity_mb is {capacity_mb}, but one row of {model.name} takes {row_bytes / 1e6:g} MB")
        self._most_bytes = capacity_mb * 1e6
        self._row_bytes = row_bytes
        self._kept: OrderedDict[tuple[int, ...], LogProbabilities] = OrderedDict()

    @property
    def fingerprint(self) -> str:
        return self.model.fingerprint

    @property
    def kept_bytes(self) -> int:
        """The bytes of the rows kept now."""
        return len(self._kept) * self._row_bytes

    def holds(self, prefixes: Sequence[tuple[int, ...]]) -> bool:
        """Whether the rows of all `prefixes` are kept now."""
        return all(prefix in self._kept for prefix in prefixes)

    def clear(self) -> None:
        """Forget all rows."""
        self._kept.clear()

    def _log_probabilities(self, prefixes: Sequence[tuple[int, ...]]) -> LogProbabilities:
        missing = [prefix for prefix in dict.fromkeys(prefixes) if prefix not in self._kept]
        before = self.model.counts.tokens
        computed = self.model.log_probabilities(missing)
        self.counts.tokens += self.model.counts.tokens - before
        self.misses += len(missing)
        self.hits += len(prefixes) - len(missing)
        if len(missing) == len(prefixes):  # the batch is what the model returned, in its order
            rows = computed
        else:
            place = {prefix: index for index, prefix in enumerate(missing)}
            rows = np.empty((len(prefixes), self.vocabulary.size))
            for index, prefix in enumerate(prefixes):
                rows[index] = computed[place[prefix]] if prefix in place else self._kept[prefix]
        for prefix in prefixes:
            if prefix in self._kept:
                self._kept.move_to_end(prefix)
        for prefix, row in zip(missing, computed, strict=True):
            self._keep(prefix, row)
        return rows

    def _keep(self, prefix: tuple[int, ...], row: LogProbabilities) -> None:
        while self._kept and self.kept_bytes + self._row_bytes > self._most_bytes:
            self._kept.popitem(last=False)
        self._kept[prefix] = row.copy()  # a view would keep its whole batch alive
