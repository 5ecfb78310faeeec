"""Grammar-aligned decoding: bounds never below the truth and ever tighter, later sequences nearer to the target."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.decoding.models import (
    APART,
    WORDS,
    by_text,
    compile_words,
    distance,
    masked_sequences,
    noise,
    skewed_model,
    target_sequences,
)
from tokdfa.decoding.asap import draw_by_asap
from tokdfa.decoding.prefix_tree import TreeSampler

if TYPE_CHECKING:
    from tokdfa.decoding.draws import Eos
    from tokdfa.models.table import TableModel

COMPILED = compile_words(WORDS)


def future_masses(model: TableModel, words: tuple[bytes, ...], eos: Eos) -> dict[tuple[int, ...], float]:
    """The mass that completes each prefix of a spelling, given the prefix."""
    futures: dict[tuple[int, ...], float] = {}
    for tokens, probability in target_sequences(model, words, eos=eos).items():
        reached = 1.0
        for place in range(len(tokens) + 1):
            prefix = tokens[:place]
            if place:
                reached *= math.exp(model.log_probabilities([prefix[:-1]])[0][prefix[-1]])
            futures[prefix] = futures.get(prefix, 0.0) + probability / reached
    return futures


@pytest.mark.parametrize("eos", ["counted", "ignored"])
@pytest.mark.parametrize("seed", [1, 2, 9])
def test_bounds_fall_to_the_true_future_and_not_below(seed: int, eos: Eos) -> None:
    words = WORDS if eos == "counted" else APART
    model = skewed_model(seed)
    futures = future_masses(model, words, eos)
    sampler = TreeSampler(model, compile_words(words), refuses=False, eos=eos, seed=seed)
    before = dict.fromkeys(futures, 0.0)
    for _ in range(150):
        sampler.draw(1, 10)
        for prefix, future in futures.items():
            bound = sampler.log_bound(prefix)
            assert math.log(future) - 1e-9 <= bound <= before[prefix] + 1e-9
            before[prefix] = bound
    assert math.exp(before[()]) == pytest.approx(futures[()], rel=0.02)
    sampler.draw(1, 10)
    assert sampler.log_bound() <= before[()] + 1e-12


def test_later_sequences_are_nearer_to_the_target() -> None:
    model = skewed_model()
    truth, local = by_text(target_sequences(model, WORDS)), by_text(masked_sequences(model, WORDS))
    first: Counter[bytes] = Counter()
    late: Counter[bytes] = Counter()
    for seed in range(300):
        sampler = TreeSampler(model, COMPILED, refuses=False, seed=seed)
        first.update(map(COMPILED.vocab.spell, sampler.draw(1, 10).sequences))
        sampler.draw(25, 250)
        late.update(map(COMPILED.vocab.spell, sampler.draw(1, 10).sequences))
    first_shares, late_shares = ({text: n / 300 for text, n in counts.items()} for counts in (first, late))
    assert distance(first_shares, local) < noise(local, 300) < distance(local, truth) / 2
    assert distance(late_shares, truth) < distance(first_shares, truth) / 3


def test_importance_weights_are_unbiased_at_any_stage() -> None:
    model = skewed_model(9)
    target = target_sequences(model, WORDS)
    first = draw_by_asap(model, COMPILED, samples=1, weighted=True)
    masked = masked_sequences(model, WORDS)
    ((tokens,), (log_weight,)) = first.sequences, first.log_weights
    assert math.exp(log_weight) == pytest.approx(target[tokens] / masked[tokens])
    truth = by_text(target)
    many = draw_by_asap(model, COMPILED, samples=2000, weighted=True)
    assert distance(many.text_probabilities(), truth) < noise(truth, 2000)


def test_what_is_too_long_is_dropped_and_not_tried_again() -> None:
    model = skewed_model()
    target = {tokens: p for tokens, p in target_sequences(model, WORDS).items() if len(tokens) <= 2}
    draws = draw_by_asap(model, COMPILED, samples=300, max_drafts=3000, max_tokens=3)
    assert len(draws.sequences) == 300
    assert set(draws.sequences) <= set(target)
    longer = [tokens for tokens in target_sequences(model, WORDS) if len(tokens) > 2]
    assert 0 < draws.drafts - 300 <= len({tokens[:3] for tokens in longer})
    assert math.exp(draws.log_mass) == pytest.approx(sum(target.values()), rel=0.02)


def test_a_dropped_draft_counts_in_the_estimate_of_the_mass() -> None:
    """The mean weight of all drafts begun is unbiased for the mass of the sequences that are short enough."""
    model, masses, dropped = skewed_model(), list[float](), 0
    truth = sum(p for tokens, p in target_sequences(model, WORDS).items() if len(tokens) <= 2)
    for seed in range(600):
        draws = draw_by_asap(model, COMPILED, samples=2, max_drafts=2, max_tokens=3, weighted=True, seed=seed)
        assert draws.drafts == 2
        masses.append(math.exp(draws.log_mass))
        assert masses[-1] == pytest.approx(sum(map(math.exp, draws.log_weights)) / 2)
        dropped += 2 - len(draws.sequences)
    assert dropped > 60
    error = statistics.stdev(masses) / math.sqrt(len(masses))
    assert abs(statistics.mean(masses) - truth) < 4 * error < truth / 4
