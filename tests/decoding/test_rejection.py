"""Rejection sampling, and the draws and targets that all strategies share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.decoding.models import (
    APART,
    LETTERS,
    SPECIAL,
    WORDS,
    A,
    B,
    by_text,
    compile_words,
    distance,
    masked_sequences,
    noise,
    skewed_model,
    target_sequences,
)
from tests.proper.small_tokenizers import merge_list
from tokdfa.backends.registry import compile as compile_constraint
from tokdfa.backends.token_index import TokenIndex
from tokdfa.constraint import Choice
from tokdfa.decoding.rejection import draw_by_rejection
from tokdfa.errors import ModelError, NothingDrawn, OptionError
from tokdfa.models.table import TableModel, random_table
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.decoding.draws import Draws, Eos

COMPILED = compile_words(WORDS)
MANY = {"samples": 3000, "max_drafts": 200_000, "batch": 512}


@pytest.mark.parametrize("eos", ["counted", "ignored"])
def test_draws_are_the_target(eos: Eos) -> None:
    model, context = skewed_model(), (SPECIAL, B)
    words = WORDS if eos == "counted" else APART
    target = target_sequences(model, words, context, eos=eos)
    truth = by_text(target)
    draws = draw_by_rejection(model, compile_words(words), context, eos=eos, **MANY)
    assert len(draws.sequences) == MANY["samples"]
    assert distance(draws.text_probabilities(), truth) < noise(truth, MANY["samples"])
    if eos == "counted":  # local masking would not pass
        assert distance(by_text(masked_sequences(model, words, context)), truth) > 2 * noise(truth, MANY["samples"])
    mass = sum(target.values())
    error = math.sqrt((1 - mass) / MANY["samples"])
    assert draws.log_mass == pytest.approx(math.log(mass), abs=5 * error)
    assert draws.effective_sample_size == pytest.approx(MANY["samples"])
    # masks only to see that a text cannot go on, one for each complete draft
    assert draws.masks == 0 if eos == "counted" else draws.masks >= MANY["samples"]


def test_what_is_drawn_depends_on_the_seed_only() -> None:
    model = skewed_model()

    def run(**options: object) -> Draws:
        return draw_by_rejection(model, COMPILED, samples=40, max_drafts=4000, max_tokens=6, **options)

    usual = run(batch=16)
    assert run(batch=1).sequences == usual.sequences == run(batch=100).sequences
    assert run(batch=16, seed=1).sequences != usual.sequences
    whole = run(batch=16, prefix_rejection=False)
    assert whole.sequences == usual.sequences
    assert whole.log_mass == usual.log_mass
    assert whole.model_rows > usual.model_rows
    assert run(batch=1).model_calls > usual.model_calls


def test_costs_are_what_the_model_and_the_matchers_saw() -> None:
    model = skewed_model()
    draws = draw_by_rejection(model, COMPILED, samples=50, max_drafts=4000)
    assert (draws.model_rows, draws.model_calls) == (model.counts.rows, model.counts.batches)
    assert draws.single_token_checks >= sum(len(sequence) + 1 for sequence in draws.sequences)
    assert draws.seconds > draws.model_seconds >= model.counts.seconds > 0
    assert draws.drafts >= 50


def test_the_mass_is_estimated_without_bias() -> None:
    model = skewed_model()
    mass = sum(target_sequences(model, WORDS).values())
    for samples, max_drafts in ((2, 1000), (5, 12)):
        masses = [
            math.exp(draw_by_rejection(model, COMPILED, samples=samples, max_drafts=max_drafts, seed=seed).log_mass)
            for seed in range(400)
        ]
        # a standard normal variable, nearly: beyond 4 with probability 6e-5
        assert abs(np.mean(masses) - mass) < 4 * np.std(masses) / math.sqrt(len(masses))
    assert draw_by_rejection(model, COMPILED, samples=1, max_drafts=1000).log_mass is None


def test_nothing_kept() -> None:
    nowhere = TableModel(LETTERS, lambda prefix: np.eye(LETTERS.size)[A])
    draws = draw_by_rejection(nowhere, COMPILED, samples=3, max_drafts=7, batch=4, prefix_rejection=False, max_tokens=9)
    assert (draws.sequences, draws.log_mass, draws.drafts) == ((), -math.inf, 7)
    assert draws.model_calls == 2 * 9
    assert draws.effective_sample_size == 0
    with pytest.raises(NothingDrawn, match="none of 7 drafts"):
        draws.text_probabilities()


def test_long_texts_are_outside() -> None:
    model = skewed_model()
    draws = draw_by_rejection(model, COMPILED, samples=300, max_drafts=20_000, max_tokens=3, batch=64)
    target = {tokens: p for tokens, p in target_sequences(model, WORDS).items() if len(tokens) <= 2}
    assert distance(draws.text_probabilities(), by_text(target)) < noise(by_text(target), 300)


def test_a_backend_of_proper_sequences_has_its_own_target(tmp_path: Path) -> None:
    name = merge_list(tmp_path / "tokenizer.json", "abc", [("a", "b"), ("b", "c"), ("ab", "c")])
    tokenizer = load_tokenizer(name)
    words = ("abc", "bca", "bcab", "c")
    model = random_table(tokenizer.vocabulary, 3, 2.0)
    compiled = compile_constraint(Choice(words), tokenizer.vocabulary, backend="direct_merge")
    every = target_sequences(model, [word.encode() for word in words])
    proper = {tuple(tokenizer.encode(word)) for word in words}
    target = {tokens: p for tokens, p in every.items() if tokens in proper}
    assert len(target) == 4 < len(every)
    draws = draw_by_rejection(model, compiled, samples=500, max_drafts=50_000, batch=256)
    assert set(draws.sequences) == proper
    truth = by_text(target, tokenizer.vocabulary)
    assert distance(draws.text_probabilities(), truth) < noise(truth, 500)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 0}, "samples"),
        ({"max_drafts": 0}, "max_drafts"),
        ({"batch": 1.5}, "batch"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"eos": "maybe"}, "eos is 'ignored' or 'counted'"),
        ({"eos": "ignored", "prefix_rejection": False}, "needs prefix_rejection"),
        ({"seed": -3}, "seed"),
    ],
)
def test_options_out_of_range(options: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        draw_by_rejection(skewed_model(), COMPILED, **{"samples": 3, "max_drafts": 10, **options})


def test_other_errors() -> None:
    with pytest.raises(OptionError, match="may end and may also go on with token 2"):
        draw_by_rejection(skewed_model(), COMPILED, samples=100, max_drafts=1000, eos="ignored")
    wider = Vocabulary([b"a", b"b"], end_tokens=[2], size=12)
    compiled = TokenIndex(wider).compile(Choice(["ab"]))
    with pytest.raises(ModelError, match="compile the constraint for"):
        draw_by_rejection(skewed_model(), compiled, samples=1, max_drafts=1)
