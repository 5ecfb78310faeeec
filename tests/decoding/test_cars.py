"""Constrained adaptive rejection: exact over all outcomes, draft by draft, and what going back saves."""

from __future__ import annotations

import math
from collections import defaultdict

import pytest

from tests.decoding.models import (
    WORDS,
    by_text,
    compile_words,
    distance,
    explore,
    noise,
    skewed_model,
    target_sequences,
)
from tokdfa.decoding import prefix_tree
from tokdfa.decoding.cars import draw_by_cars
from tokdfa.decoding.prefix_tree import TreeSampler
from tokdfa.errors import OptionError
from tokdfa.models.cache import CachedModel

COMPILED = compile_words(WORDS)
#: Few words, so that all ways to draw can be enumerated.
FEW = (b"ab", b"cb", b"cca")


def test_what_is_kept_is_exact_whatever_was_refused_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over all outcomes of the random numbers of two drafts; three tokens are enough for two of the words only."""
    model, max_tokens = skewed_model(3), 3
    target = {tokens: p for tokens, p in target_sequences(model, FEW).items() if len(tokens) < max_tokens}
    compiled, total = compile_words(FEW), sum(target.values())

    def run(draw: object) -> tuple[tuple[int, ...], ...]:
        monkeypatch.setattr(prefix_tree, "draw_index", lambda cumulative, generator: draw(cumulative))
        return draw_by_cars(model, compiled, samples=1, max_tokens=max_tokens, max_drafts=2).sequences

    chances: dict[tuple[tuple[int, ...], ...], float] = defaultdict(float)
    for probability, sequences in explore(run):
        chances[sequences] += probability
    kept = 1 - chances.pop((), 0.0)
    assert kept > 0.02
    assert set(chances) == {(tokens,) for tokens in target}
    for tokens, p in target.items():
        assert chances[(tokens,)] == pytest.approx(kept * p / total, rel=1e-9)


def test_draws_are_the_target_from_the_first_one_on() -> None:
    model = skewed_model()
    truth = by_text(target_sequences(model, WORDS))
    many = draw_by_cars(model, COMPILED, samples=1500)
    assert distance(many.text_probabilities(), truth) < noise(truth, 1500)
    counts: dict[bytes, float] = defaultdict(float)
    for seed in range(200):
        (text,) = draw_by_cars(model, COMPILED, samples=1, seed=seed).texts
        counts[text] += 1 / 200
    assert distance(counts, truth) < noise(truth, 200)


def test_bounds_fall_to_the_mass() -> None:
    model = skewed_model(9)
    mass = sum(target_sequences(model, WORDS).values())
    sampler, before = TreeSampler(model, COMPILED, refuses=True), 0.0
    for _ in range(60):
        sampler.draw(1, 1000)
        assert math.log(mass) - 1e-9 <= sampler.log_bound() <= before + 1e-9
        before = sampler.log_bound()
    assert math.exp(sampler.log_bound()) == pytest.approx(mass, rel=0.02)


def test_going_back_draws_the_same_with_fewer_rows() -> None:
    model = skewed_model()
    restart, back = (draw_by_cars(model, COMPILED, samples=300, backtrack=back) for back in (False, True))
    assert back.sequences == restart.sequences
    assert back.drafts == restart.drafts
    assert back.log_mass == restart.log_mass
    assert back.model_rows < restart.model_rows
    # kept rows of a cache are the other way to save them: it holds each prefix once, a path may come again
    cached = CachedModel(skewed_model())
    draw_by_cars(cached, COMPILED, samples=300)
    assert cached.misses <= back.model_rows
    assert cached.misses + cached.hits == restart.model_rows


def test_a_sampler_goes_on_and_learns() -> None:
    sampler = TreeSampler(skewed_model(), COMPILED, refuses=True)
    first, later = sampler.draw(5, 5000), sampler.draw(5, 5000)
    whole = draw_by_cars(skewed_model(), COMPILED, samples=10)
    assert (*first.sequences, *later.sequences) == whole.sequences
    assert first.begun + later.begun == whole.drafts


def test_options_out_of_range() -> None:
    with pytest.raises(OptionError, match="max_drafts"):
        draw_by_cars(skewed_model(), COMPILED, samples=1, max_drafts=0)
