"""The backend as a whole: against Lark, against the Earley walk, one way of making masks against the other."""

from __future__ import annotations

import itertools
import random
import re
from functools import partial

import pytest

from tests.backends.cfg_fsm.oracles import FOLDER, corpus, lark_accepts
from tests.backends.grammar_walks import SHORT, check_every_text, compile_with, tokenizer_of, walk_all
from tests.walks import advance_all, mask_of
from tokdfa.constraint import Grammar
from tokdfa.errors import (
    EmptyLanguageError,
    LimitExceeded,
    TokenRefused,
    UnsupportedConstraint,
    VocabularyCannotSpell,
)
from tokdfa.vocabulary.vocabulary import Vocabulary

compile_grammar = partial(compile_with, backend="cfg_fsm")


@pytest.mark.parametrize(("tokenizer", "steps"), [("bytes", 60), ("mistral-v1", 20)])
def test_masks_of_json_are_those_of_the_earley_walk(tokenizer: str, steps: int) -> None:
    grammar, accepted, _ = corpus("json")
    found, rng = tokenizer_of(tokenizer), random.Random(1)
    ours = compile_grammar(grammar, found.vocabulary)
    theirs = compile_with(grammar, found.vocabulary, "earley_trie")
    for text in (*accepted[-6:], "", ""):
        walk_all([ours.start(), theirs.start()], found, text, steps, rng)


#: Terminals in each other's way, conflicts that Lark resolves, dead ends: masks need the search.
HARD = [
    'start: A A? "b" | "b" start\nA: /a+/\n',
    'start: x "a" | "b" start | "c"\nx: "a"*\n',
    'start: (A | B)* "c"\nA: /a(ba)?/\nB: "b"\n',
    'start: "a" start ["b" start] | "ab"\n',
    'start: e start "a" | "b"\ne: "c"?\n',
]


@pytest.mark.parametrize("grammar", HARD)
@pytest.mark.parametrize("way", ["vectors", "walk"])
def test_no_token_too_many_and_none_too_few(grammar: str, way: str) -> None:
    check_every_text(compile_grammar(grammar, SHORT, masks=way, conflicts="shift"), partial(lark_accepts, grammar))


def test_a_vocabulary_with_gaps() -> None:
    """No b alone: after a the only way on is the token ab, and aa is a dead end."""
    vocab = Vocabulary([b"a", b"ab", b"aa", b"c", b""], end_tokens=[4])
    compiled = compile_grammar('start: ("a" "b" | "c")+\n', vocab)
    assert not compiled.complete
    assert mask_of(compiled.start()) == [1, 3]
    with pytest.raises(VocabularyCannotSpell):
        compile_grammar('start: "a" "b" "b"\n', vocab)


def test_what_is_refused() -> None:
    vocab = tokenizer_of("bytes").vocabulary
    with pytest.raises(UnsupportedConstraint, match=r"(?s)Reduce/Reduce.*earley_trie"):
        compile_grammar((FOLDER / "sql.lark").read_text(), vocab)
    with pytest.raises(EmptyLanguageError):
        compile_grammar("start: A A\nA: /a+/", vocab)


def test_limits() -> None:
    vocab = tokenizer_of("bytes").vocabulary
    nested = 'start: "(" start ")" | "a"\n'
    for option in ("max_stacks", "max_situations"):
        matcher = compile_grammar(nested, vocab, **{option: 16}).start()
        with pytest.raises(LimitExceeded, match=option):
            advance_all(matcher, [ord("(")] * 600)
        assert not matcher.can_end()
        matcher.rollback(1)
        assert matcher.allows(ord("("))
    with pytest.raises(LimitExceeded, match="max_lexer_states"):
        compile_grammar("start: A\nA: /[ab]*a[ab]{9}/", vocab, max_lexer_states=100)


def test_forced_tokens_and_bytes() -> None:
    vocab = tokenizer_of("bytes").vocabulary
    matcher = compile_grammar('start: "begin" (A | "c") \nA: /ab+/', vocab).start()
    assert matcher.forced_bytes() == b"begin"
    assert bytes(matcher.forced_tokens()) == b"begin"
    advance_all(matcher, list(b"begina"))
    assert matcher.forced_bytes() == b"b"
    with pytest.raises(TokenRefused, match="cannot come next"):
        matcher.advance(ord("c"))


# Rules that derive themselves.

#: Grammars, a regex of their texts, and whether Lark's tables take them.
CYCLES = [
    ("start: start | \n", "", True),
    ('start: start | "a"\n', "a", True),
    ('start: b | "a"\nb: start\n', "a", True),
    ('start: b | "a"\nb: c\nc: d\nd: start | "b"\n', "a|b", True),
    ('start: start | start "b" | "a"\n', "ab*", False),
    ('start: empty start | "a"\nempty: \n', "a", False),
    ('start: x\nx: y x | "a"\ny: | "b"\n', "b*a", False),
    ('start: x "b"\nx: x | "a"\n', "ab", False),
    ('start: x\nx: x y | "a"\ny: y | \n', "a", False),
]
ENGINES = [
    *(
        ("cfg_fsm", {"conflicts": conflicts, "masks": masks})
        for conflicts in ("refuse", "shift")
        for masks in ("vectors", "walk")
    ),
    *(("earley_trie", {"lexer": lexer}) for lexer in ("longest", "one_byte")),
    *(("pushdown_trie", {"lexer": lexer}) for lexer in ("longest", "any")),
]


@pytest.mark.parametrize(("backend", "options"), ENGINES, ids=str)
@pytest.mark.parametrize(("grammar", "pattern", "is_lalr"), CYCLES, ids=lambda value: str(value)[:30])
def test_rules_that_derive_themselves(grammar, pattern, is_lalr, backend, options) -> None:
    """Taken or refused at once, by every engine of grammars."""
    budget = {"compile_seconds": 1, "step_seconds": 0.05}
    vocab = tokenizer_of("bytes").vocabulary
    try:
        compiled = compile_with(Grammar(grammar), vocab, backend, **options, **budget)
    except UnsupportedConstraint:
        assert backend == "cfg_fsm"
        assert not is_lalr
        return
    words = ["".join(word) for size in range(6) for word in itertools.product("ab", repeat=size)]
    texts = [word for word in words if re.fullmatch(pattern, word)]
    agenda = [(compiled.start(), "")]
    for matcher, text in agenda:  # grows on the way
        assert matcher.can_end() == (text in texts)
        following = {ord(other[len(text)]) for other in texts if other.startswith(text) and other != text}
        assert set(mask_of(matcher)) == following | (vocab.end_token_set if text in texts else set())
        for letter in following if len(text) < 3 else ():
            agenda.append((matcher.fork(), text + chr(letter)))
            agenda[-1][0].advance(letter)
    if backend == "cfg_fsm":
        assert compiled.machine.hypotheses.stacks.count < 100
