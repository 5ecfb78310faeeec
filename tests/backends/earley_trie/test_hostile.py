"""Adversarial grammars beside those that every engine reads (`tests.backends.test_hostile_grammars`): bounded in time
and memory, or refused by a limit, and the matcher is usable afterwards.
"""

from __future__ import annotations

import random

import pytest

from tests.grammar.lexed_cfgs import accepts, compile_cfg, run
from tests.walks import advance_all, mask_of
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Grammar
from tokdfa.errors import LimitExceeded
from tokdfa.grammar.cfg import Cfg, Lexeme
from tokdfa.regex.expression import ExpressionStore
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

MEGABYTE = 1 << 20


@pytest.mark.parametrize("mask", ["effects", "slices", "walk"])
def test_a_limit_on_rows_met_while_a_mask_is_made(mask):
    """No mask that needs more rows; whatever needs rows that there are goes on to work."""
    vocab = Vocabulary([b"(", b")", b"(" * 300, b"x", b""], end_tokens=[4])
    compiled = create_backend("earley_trie", vocab, max_rows=100, mask=mask).compile(
        Grammar('start: "(" start ")" | "x"\n')
    )
    known = compiled.start()
    advance_all(known, [0, 0, 3, 1, 1])
    matcher = compiled.start()
    for _ in range(2):
        with pytest.raises(LimitExceeded, match="deeply nested"):
            mask_of(matcher)
        advance_all(matcher, [0, 0, 3, 1])
        assert mask_of(matcher) == [1]
        matcher.advance(1)
        assert mask_of(matcher) == [4]
        matcher.rollback(5)
    assert compiled.machine.rows.row_count == 100


def literals_cfg(words):
    """A rule for each word, made without a notation to read."""
    store = ExpressionStore()
    lexemes = tuple(Lexeme(word, store.literal(word.encode())) for word in words)
    rules = tuple((len(words), (symbol,)) for symbol in range(len(words)))
    return Cfg(lexemes, (*words, "start"), rules, len(words), -1, store)


def test_a_hundred_thousand_lexemes():
    """All of them are alive in the first lexer state, and items of one row."""
    words = [f"w{number:x}" for number in range(100_000)]
    compiled = compile_cfg(literals_cfg(words), load_tokenizer("bytes").vocabulary, mask="walk")
    machine = compiled.machine
    assert machine.nbytes < 200 * MEGABYTE
    rng = random.Random(0)
    for word in [words[0], words[-1], *rng.sample(words, 200)]:
        assert accepts(machine, word.encode())
    for text in (b"wg", b"w186a0", b"x"):
        assert run(machine, machine.start, text) == -1
    matcher = compiled.start()
    assert mask_of(matcher) == [ord("w")]
    advance_all(matcher, b"w1869")
    assert mask_of(matcher) == [*b"0123456789abcdef", 256]
    assert machine.nbytes < 200 * MEGABYTE


def test_counters_in_counters(monkeypatch):
    """Written out they would be a billion, and ambiguous. Past the limit there are masks where names see no count."""
    monkeypatch.setattr("tokdfa.masks.builder.NODES_PER_NAME", 0)
    backend = create_backend("earley_trie", load_tokenizer("bytes").vocabulary, max_lexer_states=3000)
    matcher = backend.compile(Grammar("start: A\nA: /(([ab]{1,1000}c?){1,1000}d?){1,1000}/\n")).start()
    assert matcher._compiled.machine.nbytes < 20 * MEGABYTE
    advance_all(matcher, b"abcabdab")
    assert mask_of(matcher) == [*b"abcd", 256]
    with pytest.raises(LimitExceeded) as caught:
        advance_all(matcher, b"abcd" * 100_000)
    assert caught.value.limit == "max_lexer_states"
    mask_of(matcher.fork())
    matcher.rollback(1)
    assert matcher.can_end()
