"""Rejection sampling: exact draws, whatever the batch. What all strategies share is in `test_draws`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from tests.decoding.models import (
    APART,
    SPECIAL,
    WORDS,
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
from tokdfa.constraint import Choice
from tokdfa.decoding.rejection import draw_by_rejection
from tokdfa.errors import OptionError
from tokdfa.models.table import random_table
from tokdfa.vocabulary.tokenizers import load_tokenizer

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
    assert run(batch=1).model_calls > usual.model_calls


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
        ({"max_drafts": 0}, "max_drafts"),
        ({"batch": 1.5}, "batch"),
    ],
)
def test_options_out_of_range(options: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        draw_by_rejection(skewed_model(), COMPILED, **{"samples": 3, "max_drafts": 10, **options})
