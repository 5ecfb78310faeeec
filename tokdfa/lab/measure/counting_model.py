"""A model that counts what a strategy would have to compute by itself, while its rows come from elsewhere.

Experiments keep a model's rows between strategies, so the model's own counts tell what the experiment cost. A strategy
alone would compute every prefix that it asks for once, if it keeps its rows, or each time, if it does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.models.base import LanguageModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.models.base import LogProbabilities


class CountingModel(LanguageModel):
    """`model`, whose rows it passes on, from now on counted.

    `counts.rows`: rows asked for; `different_rows`: prefixes asked for; `calls`: batches with a prefix that had not
    been asked for before. Name, limits and fingerprint are the model's.
    """

    rows_are_checked = True

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(model.name, model.vocabulary)
        self._model = model
        self.context_limit, self.start_tokens = model.context_limit, model.start_tokens
        self._seen: set[tuple[int, ...]] = set()
        self.calls = 0

    @property
    def fingerprint(self) -> str:
        return self._model.fingerprint

    @property
    def different_rows(self) -> int:
        """How many different prefixes have been asked for."""
        return len(self._seen)

    def tokens_read(self, context: int) -> int:
        """How many tokens behind the first `context` of each prefix the model has to read, each beginning once."""
        return len({prefix[:end] for prefix in self._seen for end in range(context + 1, len(prefix) + 1)})

    def _log_probabilities(self, prefixes: Sequence[tuple[int, ...]]) -> LogProbabilities:
        before, ran = len(self._seen), self._model.counts.tokens
        rows = self._model.log_probabilities(prefixes)
        self._seen.update(prefixes)
        self.calls += len(self._seen) > before
        self.counts.tokens += self._model.counts.tokens - ran
        return rows
