"""Adaptive weighted rejection sampling: all of its randomness enumerated. Whole sequences are in `test_draws`."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

import numpy as np
import pytest

from tests.decoding.models import (
    explore,
)
from tokdfa.decoding import adaptive_rejection
from tokdfa.decoding.adaptive_rejection import adaptive_step

ROWS = ([0.1, 0.2, 0.3, 0.4], [0.7, 0.0, 0.25, 0.05], [1e-9, 0.5, 0.5 - 1e-9, 0.0], [0.25] * 4)


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("allowed", [set(c) for size in range(5) for c in combinations(range(4), size)])
def test_weights_are_proper_over_all_outcomes(
    row: list[float], allowed: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with np.errstate(divide="ignore"):
        log_row = np.log(np.array(row))

    def run(draw: object) -> tuple[int | None, float, list[int]]:
        asked: list[int] = []

        def draw_no_refused(cumulative: np.ndarray, generator: object) -> int:
            # a refused token is passed over: that is a draw under the condition that it is another
            weights = np.diff(cumulative, prepend=0)
            weights[[token for token in asked if token not in allowed]] = 0
            return draw(np.cumsum(weights))

        monkeypatch.setattr(adaptive_rejection, "draw_index", draw_no_refused)

        def allows(token: int) -> bool:
            asked.append(token)
            return token in allowed

        return (*adaptive_step(log_row, allows, np.random.default_rng()), asked)

    means: dict[int | None, float] = defaultdict(float)
    chances: dict[int | None, float] = defaultdict(float)
    mass = sum(row[token] for token in allowed)
    for probability, (token, weight, asked) in explore(run):
        means[token] += probability * weight
        chances[token] += probability
        assert len(asked) == len(set(asked)), "no token is asked about twice"
        assert weight > 0 if token is not None else weight == 0
    assert sum(chances.values()) == pytest.approx(1, abs=1e-12)
    for token in range(4):
        expected = row[token] if token in allowed else 0.0
        assert means[token] == pytest.approx(expected, abs=1e-12)
        if mass:
            assert chances[token] == pytest.approx(expected / mass, abs=1e-12)
    assert (None in chances) == (mass == 0)


def test_a_long_search_is_bounded_by_the_vocabulary() -> None:
    row = np.log(np.full(20_000, 1 / 20_000))
    asked: list[int] = []
    step = adaptive_step(row, lambda token: bool(asked.append(token)), np.random.default_rng(0))
    assert step == (None, 0)
    assert sorted(asked) == list(range(20_000))


def test_a_small_rest_is_not_lost_to_rounding() -> None:
    tiny = 1e-30
    row = np.log(np.array([0.6, 0.4 - tiny, tiny]))
    token, weight = adaptive_step(row, lambda token: token == 2, np.random.default_rng(0))
    assert (token, weight) == (2, pytest.approx(tiny / 3))
