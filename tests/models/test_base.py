"""What every model's rows go through: prefixes checked before, rows checked after, work counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tokdfa.errors import ModelError
from tokdfa.models.base import SUM_TOLERANCE, LanguageModel, check_rows
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.models.base import LogProbabilities

VOCABULARY = Vocabulary([b"a", b"b", b""], end_tokens=[2])


class Scripted(LanguageModel):
    """Returns what it was given, and remembers what it was asked."""

    def __init__(self, answer: LogProbabilities | None = None) -> None:
        super().__init__("scripted", VOCABULARY)
        self.answer = answer
        self.asked: list[tuple[int, ...]] = []

    @property
    def fingerprint(self) -> str:
        return "0" * 32

    def _log_probabilities(self, prefixes: Sequence[tuple[int, ...]]) -> LogProbabilities:
        self.asked += prefixes
        self.counts.tokens += sum(map(len, prefixes))
        return np.full((len(prefixes), 3), -np.log(3.0)) if self.answer is None else self.answer


def test_prefixes_become_tuples_of_int_and_work_is_counted() -> None:
    model = Scripted()
    rows = model.log_probabilities([[0, 1], (), np.array([2, 2, 0], dtype=np.int32)])  # type: ignore[list-item]
    assert rows.shape == (3, 3)
    assert model.asked == [(0, 1), (), (2, 2, 0)]
    assert {type(token) for prefix in model.asked for token in prefix} == {int}
    model.log_probabilities(np.array([[0], [1]]))  # type: ignore[arg-type]
    assert (model.counts.batches, model.counts.rows, model.counts.tokens) == (2, 5, 7)
    assert model.counts.seconds > 0


def test_no_prefixes_are_no_call() -> None:
    model = Scripted()
    assert model.log_probabilities([]).shape == (0, 3)
    assert model.counts.batches == 0
    assert not model.asked


@pytest.mark.parametrize("prefixes", [[0, 1], [[0.0]], [["a"]], ["ab"], [None], [[[0]]], 7])
def test_what_is_no_list_of_prefixes(prefixes: object) -> None:
    model = Scripted()
    with pytest.raises(ModelError, match=r"for one prefix give \[prefix\]"):
        model.log_probabilities(prefixes)  # type: ignore[arg-type]
    assert not model.asked


@pytest.mark.parametrize(("prefix", "token"), [([0, 3], 3), ([-1], -1), ([0, 10**20, 5], 10**20)])
def test_tokens_outside_the_vocabulary(prefix: list[int], token: int) -> None:
    model = Scripted()
    with pytest.raises(ModelError, match=rf"token {token} is outside the vocabulary of scripted, which has 3 tokens"):
        model.log_probabilities([[0], prefix])
    assert not model.asked


def test_the_limit_of_a_context() -> None:
    model = Scripted()
    model.context_limit = 2
    assert model.log_probabilities([[0, 1]]).shape == (1, 3)
    with pytest.raises(ModelError, match="a prefix of 3 tokens is longer than the 2 that scripted takes"):
        model.log_probabilities([[0, 1], [0, 1, 1]])


GOOD = np.log([0.5, 0.25, 0.25])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([0.0, np.nan, -1.0], "NaN"),
        ([np.inf, -1.0, -1.0], "sum to inf"),
        ([800.0, -1.0, -1.0], "sum to inf"),
        ([-np.inf, -np.inf, -np.inf], "sum to 0"),
        ([2.0, 1.0, -1.0], "sum to 10.4752"),  # logits
        ([0.5, 0.25, 0.25], "sum to 4.21677"),  # probabilities, not logarithms
        (np.log([0.5, 0.25, 0.25 + 2 * SUM_TOLERANCE]), r"sum to 1\.0002"),
    ],
)
def test_rows_that_are_no_distribution(wrong: list[float], message: str) -> None:
    model = Scripted(np.array([GOOD, wrong]))
    with pytest.raises(ModelError, match=f"scripted .*{message} in row 1"):
        model.log_probabilities([[0], [1]])


def test_rows_that_are_one() -> None:
    near = np.log([0.5, 0.25, 0.25 + 0.5 * SUM_TOLERANCE])
    for row in (GOOD, near, np.array([0.0, -np.inf, -np.inf]), np.array([np.log(0.5), np.log(0.5), -2000.0])):
        check_rows(row[None], (1, 3), "model")


@pytest.mark.parametrize(
    "rows", [np.log(np.full((2, 4), 0.25)), GOOD[None], np.stack([GOOD, GOOD]).astype(np.float32), GOOD]
)
def test_rows_of_another_shape_or_type(rows: LogProbabilities) -> None:
    with pytest.raises(ModelError, match="for 2 prefixes over 3 tokens; do the model and the tokenizer belong"):
        Scripted(rows).log_probabilities([[0], [1]])
