"""What holds for every engine of grammars, by each way to cut a text into lexemes."""

from __future__ import annotations

import random

import pytest

from tests.backends.grammar_walks import (
    NAMES,
    accepts,
    advance_all,
    bytes_start,
    compile_with,
    grammar_of,
    texts_of,
    tokenizer_of,
    walk_all,
)
from tests.grammar.lexed_cfgs import mask_of
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Choice, Grammar, Regex
from tokdfa.errors import (
    LimitExceeded,
    TokdfaError,
    TokenRefused,
    UnsupportedConstraint,
    VocabularyCannotSpell,
    VocabularyError,
)
from tokdfa.vocabulary.vocabulary import Vocabulary

EVERY = [("earley_trie", "longest"), ("pushdown_trie", "longest"), ("pushdown_trie", "any")]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("backend", "lexer"), EVERY)
def test_texts_of_the_grammars(backend, lexer, name):
    """By Lark's rules, all that the grammar's texts say of it; cut in any way, more texts are taken."""
    compiled = compile_with(grammar_of(name), tokenizer_of("bytes").vocabulary, backend, lexer=lexer)
    assert [text for text in texts_of(name)["accepted"] if not accepts(compiled.start(), text)] == []
    if lexer == "longest":
        assert [text for text in texts_of(name)["refused"] if accepts(compiled.start(), text)] == []


#: Every switch leaves the masks as they are.
SWITCHES = {
    "earley_trie": [
        {"mask": "walk", "memo": False, "memo_steps": False},
        {"mask": "partition", "memo": False, "shared_partitions": False},
        {"mask": "partition", "mask_mb": 1},
        {"mask": "slices"},
    ],
    "pushdown_trie": [
        {"partition": False, "subtrees": False, "memo": False, "shared": False},
        {"first_bytes": False, "shared_automata": False},
        {"partition": True, "subtrees": False, "memo": False},
        {"partition": True, "subtrees": True, "memo": True},
        {"partition": True, "subtrees": True, "memo": True, "shared": False, "mask_mb": 1},
        {"partition": False, "memo": True},
    ],
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("backend", "lexer"), [*EVERY, ("earley_trie", "one_byte")])
def test_switches_change_no_mask(backend, lexer, name):
    tokenizer, rng = tokenizer_of("mistral-v1"), random.Random(2)
    ways = [{"lexer": lexer, **switches} for switches in SWITCHES[backend]]
    every = [compile_with(grammar_of(name), tokenizer.vocabulary, backend, **way) for way in ways]
    for text in (rng.choice(texts_of(name)["accepted"]), ""):
        matchers = [compiled.start() for compiled in every]
        walk_all(matchers, tokenizer, text, 12, rng)
        allowed = set(mask_of(matchers[0]))
        some = rng.sample(sorted(allowed), min(50, len(allowed)))
        for token in rng.sample(range(tokenizer.vocabulary.size), 100) + some:
            assert [matcher.allows(token) for matcher in matchers] == [token in allowed] * len(matchers)


# Vocabularies that lack bytes.


@pytest.mark.parametrize(("backend", "lexer"), EVERY)
def test_gaps_by_hand(backend, lexer):
    """No b alone: what is begun with a must go on to ab, and a text of b is out of reach."""
    vocab = Vocabulary([b"a", b"ab", b"(", b")", b""], end_tokens=[4])
    grammar = Grammar('start: "(" start ")" | "a" "b" | "a" "ab" | "bc"\n')
    matcher = compile_with(grammar, vocab, backend, lexer=lexer).start()
    assert mask_of(matcher) == [0, 1, 2]
    matcher.advance(0)
    assert mask_of(matcher) == [1]
    matcher.rollback(1)
    matcher.advance(1)
    assert mask_of(matcher) == [4]
    with pytest.raises(VocabularyCannotSpell, match="lacks bytes"):
        compile_with(Grammar('start: "b" | "a" "b"\n'), Vocabulary([b"a", b""], [1]), backend, lexer=lexer)


@pytest.mark.parametrize(("backend", "lexer"), EVERY[:2])
def test_a_search_without_end_is_given_up(backend, lexer):
    """Brackets can be opened for ever and never closed."""
    vocab = Vocabulary([b"(", b"a", b""], end_tokens=[2])
    compiled = compile_with(Grammar('start: "(" start ")" | "a"\n'), vocab, backend, lexer=lexer, max_search=100)
    for _ in range(2):
        with pytest.raises(LimitExceeded, match="lacks some bytes") as caught:
            mask_of(compiled.start())
        assert (caught.value.limit, caught.value.value) == ("max_search", 100)


# Special tokens.

SPECIAL = Vocabulary(
    [*(bytes([byte]) for byte in range(128)), b"", b"", b"", b"ab"],
    end_tokens=[130],
    special_tokens={128: "<|tool|>", 129: "<|end|>", 130: "</s>"},
)


@pytest.mark.parametrize(("backend", "lexer"), EVERY)
def test_special_tokens_stand_between_lexemes(backend, lexer):
    grammar = Grammar("start: (TEXT | call)*\ncall: <|tool|> /[a-z]+(:[0-9]+)?/ <|end|>\nTEXT: /[^:]+/\n")
    matcher = compile_with(grammar, SPECIAL, backend, lexer=lexer).start()
    assert {128, 130} <= set(mask_of(matcher))
    assert 129 not in mask_of(matcher)
    advance_all(matcher, (*b"hi", 128, *b"run"))
    assert [token for token in mask_of(matcher) if token > 127] == [129, 131]
    matcher.advance(ord(":"))
    assert mask_of(matcher) == list(b"0123456789")
    advance_all(matcher, (ord("7"), 129))
    assert {128, 130} <= set(mask_of(matcher))
    matcher.advance(130)
    assert matcher.is_finished()
    matcher.rollback(9)
    assert {128, 130} <= set(mask_of(matcher))
    with pytest.raises(TokenRefused):
        matcher.advance(129)


@pytest.mark.parametrize(("backend", "lexer"), EVERY)
def test_special_tokens_after_a_shorter_match(backend, lexer):
    """At a border that only a fallback knows: "1." may become 1.5, and it may be 1 and a point."""
    grammar = Grammar('start: NUMBER "."? <|end|>\nNUMBER: /[0-9]+(\\.[0-9]+)?/\n')
    matcher = compile_with(grammar, SPECIAL, backend, lexer=lexer).start()
    advance_all(matcher, b"1.")
    assert mask_of(matcher) == [*b"0123456789", 129]
    matcher.advance(129)
    assert mask_of(matcher) == [130]


@pytest.mark.parametrize(("backend", "lexer"), EVERY[:2])
def test_special_tokens_that_are_none(backend, lexer):
    with pytest.raises(VocabularyError, match="no special token"):
        compile_with(Grammar("start: <|nothing|>"), SPECIAL, backend, lexer=lexer)


# Large input, and what is refused.


@pytest.mark.parametrize(("backend", "lexer"), EVERY[:2])
def test_hundred_thousand_choices(backend, lexer):
    choices = [f"{number * 7919 % 1_000_003:x}-{number}" for number in range(100_000)]
    matcher = bytes_start(Choice(choices), backend, lexer=lexer)
    assert accepts(matcher, choices[77_777])
    assert mask_of(matcher)[-1] == 256
    other = matcher.fork()
    other.rollback(1)
    assert not other.can_end()


@pytest.mark.parametrize(("backend", "lexer"), EVERY[:2])
def test_proper_sequences_need_a_tokenizer(backend, lexer):
    vocab = Vocabulary([b"a", b""], end_tokens=[1])
    with pytest.raises(UnsupportedConstraint, match="tokenizer"):
        compile_with(Regex("a+"), vocab, backend, lexer=lexer, proper=True)
    assert create_backend(backend, vocab, proper=True).token_language == "proper"


@pytest.mark.parametrize(("backend", "lexer"), EVERY)
def test_refused_tokens_leave_no_trace(backend, lexer):
    """In a text and after its end: nothing is allowed by them, and the way back is that of the tokens taken."""
    matcher = bytes_start(Regex("ab?"), backend, lexer=lexer)
    for token, following in ((97, [98, 256]), (256, [])):
        matcher.advance(token)
        for refused in (97, 255, 257, -1, 1 << 31, 1 << 40):
            assert not matcher.allows(refused)
            with pytest.raises(TokenRefused):
                matcher.advance(refused)
        assert mask_of(matcher) == following
    assert not matcher.can_end()
    matcher.rollback(1)
    assert mask_of(matcher) == [98, 256]
    matcher.rollback(1)
    assert mask_of(matcher) == [97]
    with pytest.raises(TokdfaError):
        matcher.rollback(1)
    with pytest.raises(TokdfaError):
        matcher.rollback(-1)
