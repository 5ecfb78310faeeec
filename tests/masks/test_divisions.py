"""Divisions against a plain reading of each token, and what the builder keeps and forgets."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.grammar.lexed_cfgs import lexed_cfgs, make_cfg, run, short_texts
from tests.vocabulary.vocabularies import vocabularies
from tokdfa import mask as masks
from tokdfa.backends.earley_trie.machine import Machine
from tokdfa.backends.earley_trie.walks import EarleyMasks
from tokdfa.errors import ArgumentError
from tokdfa.masks.divisions import WHOLE
from tokdfa.vocabulary.vocabulary import Vocabulary

TOKENS = [*short_texts(b"abc", 3)[1:], b"ab", b"abababab", b"cacb"]


def read_plainly(machine, state, text):
    """What a lexer state makes of a text: "inside", "refused", or (accepting set, where reading goes on)."""
    lexer = machine.lexer
    met = (lexer.accepting_set(state), 0) if lexer.accepting_set(state) >= 0 else None
    here = state
    for place, byte in enumerate(text, 1):
        here = lexer.step(here, byte) if here >= 0 else -1
        if here < 0:
            return met or "refused"
        ended = lexer.completing_set(here)
        if ended >= 0:
            met, here = (ended, place), -1
        elif lexer.accepting_set(here) >= 0:
            met = (lexer.accepting_set(here), place)
        elif not machine.longest:
            met = None
    return "inside"


def tokens_of(builder, trie, rest):
    """(token, where its reading goes on) of all tokens of a rest."""
    nodes = [(node, begin) for first, past, begin in builder.divisions.ranges(rest) for node in range(first, past)]
    return {(token, begin) for node, begin in nodes if (token := trie.token(node)) >= 0}


def check_division(builder, vocab, state):
    """The division of whole tokens by a state, and those of its rests, as far as they are made."""
    inside, left = builder.divisions.view(WHOLE, state)
    expected, by_tag = set(), defaultdict(set)
    for token in range(vocab.size):
        text = vocab.token_bytes(token)
        if text:
            said = read_plainly(builder.machine, state, text)
            if said == "inside":
                expected.add(token)
            elif said != "refused":
                by_tag[said[0]].add((token, said[1]))
    assert set(inside) == expected
    assert len({tag for tag, _ in left}) == len(left)
    assert {tag: tokens_of(builder, vocab.trie, rest) for tag, rest in left} == dict(by_tag)


@settings(max_examples=60)
@given(lexed_cfgs(), vocabularies(b"abc", 20), st.booleans(), st.text("abc", max_size=3))
def test_divisions_are_what_reading_each_token_says(cfg, drawn, longest, text):
    tokens = [*(drawn.token_bytes(token) for token in range(drawn.size)), *TOKENS, b""]
    vocab = Vocabulary(tokens, end_tokens=[len(tokens) - 1])
    machine = Machine(cfg, longest=longest)
    situation = run(machine, machine.start, text.encode())
    if situation < 0:
        return
    builder = EarleyMasks(machine, vocab.trie, patience=0, names=False)
    builder.fill(situation, masks.allocate_mask(vocab.size))
    states = builder.divisions.states()
    assert states
    for state in states:
        check_division(builder, vocab, state)


def test_past_the_limit_all_divisions_are_made_anew():
    vocab = Vocabulary([*TOKENS, b""], end_tokens=[len(TOKENS)])
    machine = Machine(make_cfg(("[ab]+", "c"), {"s": [("[ab]+", "c", "s"), ("c",)]}))
    found = []
    for limit in (1, 1 << 20):
        builder = EarleyMasks(machine, vocab.trie, patience=0, limit=limit)
        for _ in range(2):
            mask = masks.allocate_mask(vocab.size)
            builder.fill(machine.start, mask)
            found.append(mask)
        found.append(builder.divisions.made)
    assert all(np.array_equal(found[0], mask) for mask in (found[1], found[3], found[4]))
    assert found[2] == 2 * found[5] > 0


def test_a_walk_of_a_part_of_the_vocabulary():
    vocab = Vocabulary([*TOKENS, b""], end_tokens=[len(TOKENS)])
    machine = Machine(make_cfg(("[ab]+", "c"), {"s": [("[ab]+", "c")]}))
    builder, whole, part = EarleyMasks(machine, vocab.trie), *(masks.allocate_mask(vocab.size) for _ in range(2))
    builder.walk(machine.start, whole)
    chosen = np.arange(vocab.size) % 2 == 0
    known = masks.mask_from_bool(~chosen)
    builder.walk(machine.start, part, vocab.trie.filter(chosen), known)
    assert np.array_equal(part, whole | known)
    with pytest.raises(ArgumentError):
        builder.walk(machine.start, masks.allocate_mask(3), None)
    with pytest.raises(ArgumentError):
        builder.walk(machine.start, whole, None, np.zeros(99, dtype=np.int32))
    with pytest.raises(IndexError):
        builder.fill(1 << 40, whole)
