"""The generation loop on models small enough to enumerate."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.decoding.models import (
    AB,
    APART,
    END,
    LETTERS,
    SPECIAL,
    WORDS,
    A,
    B,
    DeadEnd,
    by_text,
    compile_words,
    distance,
    masked_sequences,
    noise,
    skewed_model,
    target_sequences,
)
from tokdfa.backends.base import CompiledConstraint, Matcher
from tokdfa.backends.token_index import TokenIndex
from tokdfa.constraint import Choice, Regex
from tokdfa.decoding.loop import Generation, generate, generate_batch
from tokdfa.decoding.sampling import Sampler
from tokdfa.errors import EmptyMask, ModelError, OptionError
from tokdfa.models.table import TableModel, random_table
from tokdfa.vocabulary.vocabulary import Vocabulary

COMPILED = compile_words(WORDS)


@settings(deadline=None, derandomize=True, max_examples=80)
@given(st.integers(0, 10_000), st.sampled_from([WORDS, APART, (b"abcabcab", b"abcabcba")]), st.integers(1, 12))
def test_skipping_forced_steps_changes_nothing_but_the_calls(
    seed: int, words: tuple[bytes, ...], max_tokens: int
) -> None:
    model, compiled = random_table(LETTERS, seed), compile_words(words)

    def run(skip_forced: bool) -> tuple[Generation, int]:
        before = model.counts.rows
        generation = generate(model, compiled, (SPECIAL,), Sampler(seed=seed), max_tokens, skip_forced)
        return generation, model.counts.rows - before

    (quick, quick_rows), (slow, slow_rows) = run(True), run(False)
    assert (quick.tokens, quick.end_token, quick.forced) == (slow.tokens, slow.end_token, slow.forced)
    steps = len(slow.tokens) + slow.finished
    assert slow.model_calls == slow_rows == steps <= max_tokens
    assert quick.model_calls == quick_rows == steps - quick.forced
    assert slow.log_probability is not None
    assert slow.log_allowed is not None
    assert slow.log_probability <= slow.log_allowed + 1e-12
    assert (quick.log_probability is None) == (quick.log_allowed is None) == (quick.forced > 0)
    known = ~np.isnan(quick.step_log_probabilities)
    assert np.array_equal(quick.step_log_probabilities[known], slow.step_log_probabilities[known])
    assert np.array_equal(quick.step_log_allowed[known], slow.step_log_allowed[known])


def test_logs_are_those_of_the_enumeration() -> None:
    model = skewed_model()
    target, masked = target_sequences(model, WORDS), masked_sequences(model, WORDS)
    seen = set()
    for generation in generate_batch(model, COMPILED, [()] * 60, skip_forced=False):
        seen.add(generation.spelled)
        probability = target[generation.tokens]
        assert math.exp(generation.log_probability) == pytest.approx(probability)
        assert math.exp(generation.log_allowed) == pytest.approx(probability / masked[generation.tokens])
        assert generation.spelled == LETTERS.spell(generation.tokens)
    assert len(seen) >= 3


def test_texts_come_as_often_as_local_masking_says() -> None:
    model = skewed_model()
    masked = by_text(masked_sequences(model, WORDS))
    assert distance(masked, by_text(target_sequences(model, WORDS))) > 0.3
    drawn = generate_batch(model, COMPILED, [()] * 4000, Sampler(seed=5))
    counts = Counter(generation.spelled for generation in drawn)
    assert distance({text: count / len(drawn) for text, count in counts.items()}, masked) < noise(masked, len(drawn))


def test_a_batch_is_its_sequences_one_by_one() -> None:
    model = skewed_model()
    contexts = [(SPECIAL,), (A, B), (), (A, B)]
    together = generate_batch(model, COMPILED, contexts, Sampler(seed=2))
    assert together[0].tokens == generate(model, COMPILED, contexts[0], Sampler(seed=2)).tokens
    sampler = Sampler(seed=2)
    apart = [generate(model, COMPILED, context, sampler) for context in contexts]
    assert [one.tokens for one in together] == [one.tokens for one in apart]
    assert [one.model_calls for one in together] == [one.model_calls for one in apart]
    assert generate_batch(model, COMPILED, []) == []


def test_equal_prefixes_share_a_row() -> None:
    model = skewed_model()
    drawn = generate_batch(model, COMPILED, [()] * 50)
    assert model.counts.rows < sum(generation.model_calls for generation in drawn) / 3
    assert sum(generation.model_seconds for generation in drawn) >= model.counts.seconds
    assert all(generation.mask_seconds > 0 and generation.sampling_seconds > 0 for generation in drawn)


def test_max_tokens_leaves_a_beginning() -> None:
    compiled = TokenIndex(LETTERS).compile(Regex("a{20}"))
    generation = generate(skewed_model(), compiled, max_tokens=7)
    assert (generation.tokens, generation.text, generation.finished) == ((A,) * 7, "a" * 7, False)
    assert (generation.model_calls, generation.forced) == (0, 7)
    assert generate(skewed_model(), compiled, max_tokens=20).end_token is None
    assert generate(skewed_model(), compiled, max_tokens=21).end_token == END


class Watched(CompiledConstraint):
    """Remembers the contexts that its matchers were started with."""

    def __init__(self, inner: CompiledConstraint) -> None:
        super().__init__(inner.constraint, inner.vocab, inner.backend_name)
        self.inner, self.contexts = inner, []

    def _start(self, context: tuple[int, ...]) -> Matcher:
        self.contexts.append(context)
        return self.inner.start(context)


def test_start_tokens_are_for_the_model_and_the_context_for_both() -> None:
    asked = []

    def uniform(prefix: tuple[int, ...]) -> np.ndarray:
        asked.append(prefix)
        return np.full(LETTERS.size, 1 / LETTERS.size)

    model = TableModel(LETTERS, uniform)
    model.start_tokens = (SPECIAL,)
    watched = Watched(COMPILED)
    generation = generate(model, watched, [B, AB], Sampler(greedy=True), skip_forced=False)
    assert watched.contexts == [(B, AB)]
    assert asked == [(SPECIAL, B, AB, *generation.tokens[:length]) for length in range(len(generation.tokens) + 1)]


def test_errors() -> None:
    model = skewed_model()
    with pytest.raises(EmptyMask, match=r"after 1 token, spelling b'\w+', is empty: token_index"):
        generate(model, DeadEnd(COMPILED))
    wider = Vocabulary([b"a", b"b"], end_tokens=[2], size=12)
    other = Vocabulary([b"x"], end_tokens=[2], size=LETTERS.size)
    with pytest.raises(ModelError, match="9 against 12"):
        generate(model, TokenIndex(wider).compile(Choice(["ab"])))
    with pytest.raises(ModelError, match="token 0 spells b'a' against b'x'"):
        generate(model, TokenIndex(other).compile(Choice(["x"])))
    for wrong in (0, -1, 2.5, True):
        with pytest.raises(OptionError, match="max_tokens"):
            generate(model, COMPILED, max_tokens=wrong)
    with pytest.raises(OptionError, match="max_tokens"):
        generate_batch(model, COMPILED, [], max_tokens=0)


def test_a_model_without_an_end_token_is_told() -> None:
    letters = np.array([1 / 5] * 5 + [0] * 4)
    endless = TableModel(LETTERS, lambda prefix: letters)
    compiled = TokenIndex(LETTERS).compile(Regex("c?b{0,2}"))
    # the end is taken where it is forced, and never drawn
    for generation in generate_batch(endless, compiled, [()] * 20):
        assert generation.text in ("bb", "cbb")
    nowhere = TableModel(LETTERS, lambda prefix: np.eye(LETTERS.size)[SPECIAL])
    with pytest.raises(ModelError, match="an end token missing"):
        generate(nowhere, compiled)


def test_a_prefix_too_long_for_the_model() -> None:
    model = skewed_model()
    model.context_limit = 3
    with pytest.raises(ModelError, match="longer than the 3"):
        generate(model, compile_words([b"aaaaaa", b"aaaaab"]), (SPECIAL, SPECIAL), skip_forced=False)
