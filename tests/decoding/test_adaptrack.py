"""AdapTrack: its own rule for going back, over all outcomes; where it is exact, and by how much it is not."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.decoding.models import (
    END,
    LETTERS,
    WORDS,
    A,
    B,
    C,
    by_text,
    compile_words,
    distance,
    explore,
    masked_sequences,
    skewed_model,
    target_sequences,
)
from tokdfa.decoding import adaptrack, cars, prefix_tree
from tokdfa.decoding.adaptrack import draw_by_adaptrack
from tokdfa.decoding.cars import draw_by_cars
from tokdfa.errors import OptionError
from tokdfa.models.table import TableModel

if TYPE_CHECKING:
    from collections.abc import Callable


def table(rows: dict[tuple[int, ...], dict[int, float]]) -> TableModel:
    """A model by its rows; the end token after every other prefix."""

    def row(prefix: tuple[int, ...]) -> np.ndarray:
        found = np.zeros(LETTERS.size)
        for token, probability in rows.get(tuple(prefix), {END: 1.0}).items():
            found[token] = probability
        return found

    return TableModel(LETTERS, row)


def first_answer(
    module: object, draw_by: Callable[..., object], model: TableModel, words: object, monkeypatch: pytest.MonkeyPatch
) -> dict[bytes, float]:
    """The exact distribution of the first answer."""
    compiled = compile_words(words)

    def run(draw: object) -> bytes:
        for place in (module, prefix_tree):
            if hasattr(place, "draw_index"):
                monkeypatch.setattr(place, "draw_index", lambda cumulative, generator: draw(cumulative))
        (text,) = draw_by(model, compiled, samples=1).texts
        return text

    chances: dict[bytes, float] = defaultdict(float)
    for probability, text in explore(run):
        chances[text] += probability
    assert sum(chances.values()) == pytest.approx(1, abs=1e-9)
    return chances


def test_one_token_deep_it_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two first tokens, after which a half and a fifth are forbidden."""
    model = table({(): {A: 0.3, C: 0.7}, (A,): {B: 0.8, A: 0.2}, (C,): {B: 0.5, A: 0.5}})
    words = (b"ab", b"cb")
    truth = by_text(target_sequences(model, words))
    assert truth[b"cb"] == pytest.approx(0.35 / 0.59)
    assert first_answer(adaptrack, draw_by_adaptrack, model, words, monkeypatch) == pytest.approx(truth, abs=1e-9)
    assert distance(by_text(masked_sequences(model, words)), truth) > 0.1, "local masking would not pass"


def test_two_tokens_deep_it_is_not_and_cars_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of the module's docstring, where its theorem 5.2 fails."""
    model = table({(): {A: 0.5, C: 0.5}, (A,): {B: 0.5, C: 0.5}, (A, B): {A: 0.5, B: 0.5}})
    words = (b"c", b"ac", b"aba")
    truth = by_text(target_sequences(model, words))
    assert truth == pytest.approx({b"c": 4 / 7, b"ac": 2 / 7, b"aba": 1 / 7})
    found = first_answer(adaptrack, draw_by_adaptrack, model, words, monkeypatch)
    assert found == pytest.approx({b"c": 15 / 28, b"ac": 9 / 28, b"aba": 1 / 7}, abs=1e-9)
    assert distance(found, truth) < abs(0.5 - truth[b"c"]), "local masking has 1/2, all of the first row being allowed"
    for back in (False, True):
        exact = first_answer(cars, partial(draw_by_cars, backtrack=back), model, words, monkeypatch)
        assert exact == pytest.approx(truth, abs=1e-9)


def test_it_takes_most_of_the_skew_away() -> None:
    model, compiled = skewed_model(), compile_words(WORDS)
    truth, local = by_text(target_sequences(model, WORDS)), by_text(masked_sequences(model, WORDS))
    counts: dict[bytes, float] = defaultdict(float)
    for seed in range(200):
        (text,) = draw_by_adaptrack(model, compiled, samples=1, seed=seed).texts
        counts[text] += 1 / 200
    assert distance(counts, truth) < distance(local, truth) / 2


def test_an_answer_that_takes_too_long_is_none() -> None:
    draws = draw_by_adaptrack(skewed_model(), compile_words(WORDS), samples=50, max_looks=2)
    assert len(draws.sequences) < 50
    assert draws.log_mass < 0
    with pytest.raises(OptionError, match="max_looks"):
        draw_by_adaptrack(skewed_model(), compile_words(WORDS), samples=1, max_looks=0)


def test_each_prefix_of_a_path_is_asked_about_once() -> None:
    model = skewed_model()
    draws = draw_by_adaptrack(model, compile_words(WORDS), samples=1)
    assert draws.model_rows == draws.masks == model.counts.rows >= len(draws.sequences[0]) + 1
