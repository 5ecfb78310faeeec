"""Masks and steps of lazy states against an automaton that is run token by token."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from tests.strategies import regex_patterns
from tests.vocabulary.vocabularies import vocabularies
from tokdfa import mask as masks
from tokdfa.backends.lazy_states import LazyStates
from tokdfa.backends.numbered_states import NumberedMatcher
from tokdfa.constraint import Regex
from tokdfa.core import budget
from tokdfa.errors import EmptyLanguageError, LimitExceeded
from tokdfa.regex.compile import compile_lazy
from tokdfa.vocabulary.mask_store import NARROW, MaskStore
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokdfa.regex.lazy_dfa import LazyDfa

HEXADECIMAL = ["".join(digits).encode() for digits in itertools.product("0123456789abcdef", repeat=3)]
#: More nodes than a walk visits before it lets go of the interpreter's lock; two end tokens.
WIDE = Vocabulary([*(bytes([byte]) for byte in range(256)), *HEXADECIMAL, b"", b""], end_tokens=[4352, 4353])
OPTIONS = {"kept": {}, "not kept": {"keep": False}, "per token": {"per_token": True}}


def lazy_states(vocab: Vocabulary, pattern: str, options: dict[str, Any]) -> LazyStates:
    store = MaskStore(1 << 20, masks.mask_words(vocab.size))
    return LazyStates(vocab, compile_lazy(Regex(pattern)), store, budget.spending(budget.STEP, "a step"), **options)


def allowed(vocab: Vocabulary, twin: LazyDfa, text: bytes) -> list[int]:
    found = {token for token in range(vocab.size) if vocab.token_bytes(token)}
    found = {token for token in found if twin.run(text + vocab.token_bytes(token)) >= 0}
    return sorted(found | (set(vocab.end_tokens) if twin.accepts(text) else set()))


@given(
    vocabularies(b"ab-\n"),
    regex_patterns(boundaries=False),
    st.sampled_from(sorted(OPTIONS)),
    st.lists(st.integers(0, 50)),
)
def test_masks_and_steps(vocab: Vocabulary, pattern: str, options: str, choices: list[int]) -> None:
    try:
        twin = compile_lazy(Regex(pattern))
    except EmptyLanguageError:
        reject()
    states = lazy_states(vocab, pattern, OPTIONS[options])
    matcher, text = NumberedMatcher(states), b""
    for choice in [0, *choices]:
        expected = allowed(vocab, twin, text)
        for _ in range(2):
            out = np.full(masks.mask_words(vocab.size), -1, dtype=np.int32)
            matcher.fill_mask(out)
            assert masks.mask_to_ids(out).tolist() == expected
        assert (matcher.state in states.masks) == (options != "not kept")
        assert matcher.can_end() == states.accepts(matcher.state) == twin.accepts(text)
        for token in range(vocab.size):
            if token not in vocab.end_token_set:
                assert (states.step(matcher.state, token) >= 0) == (token in expected)
        targets = states.targets(matcher.state)
        assert np.flatnonzero(targets >= 0).tolist() == [one for one in expected if one not in vocab.end_token_set]
        going_on = [token for token in expected if token not in vocab.end_token_set]
        if not going_on:
            break
        token = going_on[choice % len(going_on)]
        assert targets[token] == states.step(matcher.state, token)
        matcher.advance(token)
        text += vocab.token_bytes(token)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize(
    ("pattern", "count"),
    {
        "[0-9a-f]{2}0": 16 + 256,  # few tokens of many nodes
        "[0-9a-f]*": 16 + 4096 + 2,
        "[0-7][0-9a-f]{0,2}": 8 + 2048,  # many tokens of few nodes
        "[01][0-9a-e]{2}": 2 + 450,
        "([01][0-9a-f]{2})?": 2 + 512 + 2,  # just too many, by the end tokens
        "([01][0-9a-f]{2}|-)": 3 + 512,
        "(z|y)?": 2 + 2,
    }.items(),
)
def test_masks_of_any_width(pattern: str, count: int, options: dict[str, bool]) -> None:
    states = lazy_states(WIDE, pattern, options)
    out = np.full(masks.mask_words(WIDE.size), -1, dtype=np.int32)
    work = states.fill(0, out)
    expected = allowed(WIDE, compile_lazy(Regex(pattern)), b"")
    assert masks.mask_to_ids(out).tolist() == expected
    assert len(expected) == count
    assert work["masks_made"] == 1
    out[:] = -1
    assert bool(states.fill(0, out)) == ("keep" in options)
    assert masks.mask_to_ids(out).tolist() == expected
    if "keep" not in options:
        assert (states.masks.place(0)[1] >= 0) == (count <= NARROW)


def test_wrong_states_and_masks_are_refused() -> None:
    states, out = lazy_states(WIDE, "ab?", {}), masks.allocate_mask(WIDE.size)
    for state in (-1, 1 << 30, 1 << 40):
        assert states.step(state, 0) == -1
        for do in (states.accepts, lambda state: states.fill(state, out)):
            with pytest.raises(IndexError, match="no state"):
                do(state)
    with pytest.raises(ValueError, match="words"):
        states.fill(0, out[1:])
    with pytest.raises(ValueError, match="another vocabulary"):
        LazyStates(WIDE, states.automaton, MaskStore(1, 1), budget.spending(budget.STEP, "a step"))


def test_what_the_budget_ends_can_be_tried_again() -> None:
    """Half of a mask is neither kept nor told to be one."""
    states, out = lazy_states(WIDE, "[0-9a-f]*", {}), masks.allocate_mask(WIDE.size)
    with budget.spending(budget.Budget(1e-6, 1.0, "step"), "a step"), pytest.raises(LimitExceeded, match="a step"):
        states.fill(0, out)
    assert 0 not in states.masks
    states.fill(0, out)
    assert masks.mask_to_ids(out).tolist() == allowed(WIDE, compile_lazy(Regex("[0-9a-f]*")), b"")
