"""Divisions between grammars: what is taken over is what would have been made."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.grammar.lexed_cfgs import compile_cfg, lexed_cfgs, make_cfg, short_texts
from tests.threads import run_together
from tests.vocabulary.vocabularies import vocabularies
from tests.walks import mask_of, masks_along
from tokdfa.masks.shared_divisions import shared_divisions
from tokdfa.vocabulary.vocabulary import Vocabulary

TOKENS = [*short_texts(b"ab", 4)[1:], b"abababab", b"aab\xff", b"ab"]


def vocabulary(tokens=TOKENS):
    """A new one each time, since divisions are shared by all grammars of one."""
    return Vocabulary([*tokens, b""], end_tokens=[len(tokens)])


@pytest.fixture(autouse=True)
def all_states_are_named(monkeypatch):
    """Though they read few nodes."""
    monkeypatch.setattr("tokdfa.masks.builder.NODES_PER_NAME", 0)


def filled(vocab, pattern="a+b|(ab)+", skip="b+"):
    """Divisions of a few states, kept for a vocabulary."""
    compiled = compile_cfg(make_cfg((pattern, skip), {"s": [(pattern,), ("s", pattern)]}, skip=1), vocab, patience=0)
    masks_along(compiled, 5, 6)
    assert len(shared_divisions(vocab)) >= 3
    return shared_divisions(vocab)


# Between grammars.


@settings(max_examples=30)
@given(st.lists(lexed_cfgs(), min_size=2, max_size=4), vocabularies(b"abc", 12), st.integers(0, 99))
def test_one_grammar_after_another(cfgs, drawn, seed):
    """Each takes what the others have left, of which it may be nearly all; its masks are those of walks."""
    tokens = [b"a", b"b", b"c", *(drawn.token_bytes(token) for token in range(drawn.size))]
    vocab = vocabulary(tokens)
    for cfg in [*cfgs, cfgs[0]]:
        found = [masks_along(compile_cfg(cfg, vocab, mask=way), seed, 6) for way in ("effects", "walk")]
        assert found[0] == found[1]


def test_counters_of_other_lengths_are_shared():
    """Room for many more letters is the same in both, and room for few is met again; so is a list without end."""
    vocab = vocabulary()
    made, store = [], shared_divisions(vocab)
    for size, pattern in ((30, "a{0,30}b"), (60, "a{0,60}b"), (70, "a*b"), (9, "a{0,9}b")):
        compiled = compile_cfg(make_cfg((pattern,), {"s": [(pattern,)]}), vocab, patience=0)
        matcher, before = compiled.start(), store.misses
        for _ in range(size):
            assert 0 in mask_of(matcher)
            matcher.advance(0)
        made.append(store.misses - before)
    assert made[0] > 3
    assert made[1:] == [0, 0, 0]


def test_the_oldest_goes_first():
    vocab = vocabulary()
    store = filled(vocab)
    before, kept = store.nbytes, len(store)
    store.limit = before - 1
    filled(vocab, "b+a|(ba)+", "a+")
    assert 0 < store.nbytes <= store.limit
    misses = store.misses
    filled(vocab)
    assert 0 < store.misses - misses <= kept


def test_threads_share():
    """Grammars in threads; masks are those of one alone."""
    vocab = vocabulary()
    patterns = [f"a{{1,{size}}}b|b{{{size}}}" for size in range(2, 12)]
    cfgs = [make_cfg((pattern,), {"s": [(pattern,), ("s", pattern)]}) for pattern in patterns]
    expected = [masks_along(compile_cfg(cfg, vocabulary(), mask="walk"), 1, 6) for cfg in cfgs]
    jobs = [lambda cfg=cfg: masks_along(compile_cfg(cfg, vocab, patience=0), 1, 6) for cfg in cfgs]
    assert run_together(jobs) == expected
