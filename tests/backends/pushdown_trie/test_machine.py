"""Which texts the machine takes, against recognisers that share nothing with it; growth, limits, and hostile grammars.

Oracles: `tests.naive.cfg_recogniser` (a table of spans) for every way to cut a text, and Lark's Earley parser. The
longest match is in `tests.backends.test_grammar_engines`.
"""

from __future__ import annotations

from collections import Counter

import lark
import pytest
from hypothesis import given, settings

from tests.backends.grammar_walks import NAMES, grammar_of, texts_of
from tests.backends.pushdown_trie import LEXERS, accepts, machine_of
from tests.grammar import random_cfgs
from tests.grammar.lexed_cfgs import byte_cfgs, lexed_cfgs, make_cfg, short_texts
from tests.naive.cfg_recogniser import CfgRecogniser
from tests.naive.lexed_earley import LexedEarley
from tokdfa.backends.pushdown_trie import bound_program, steps
from tokdfa.errors import LimitExceeded
from tokdfa.grammar.cfg import Cfg, Lexeme, SpecialTokens
from tokdfa.regex.expression import ExpressionStore

# Every way to cut a text: against a table of spans.


def check_texts(cfg, texts, outcomes):
    machine, twin = machine_of(cfg), CfgRecogniser(cfg, outer_skip=True)
    for text in texts:
        taken = accepts(machine, text)
        assert taken == twin.accepts(text), text
        outcomes[taken] += 1


@pytest.mark.parametrize(
    ("grammars", "texts", "least"),
    [
        (byte_cfgs(), short_texts(b"ab", 5), 200),
        (lexed_cfgs(), short_texts(b"abc", 4), 200),
        (random_cfgs.cfgs(), short_texts(b"abc", 4), 50),
    ],
    ids=["bytes", "lexemes", "useless symbols"],
)
def test_texts_are_cut_in_every_way(grammars, texts, least):
    """Recursion of every kind, nullable loops, cycles of unit rules, ambiguity, skipped and lazy lexemes."""
    outcomes = Counter()

    @settings(max_examples=50)
    @given(grammars)
    def check(cfg):
        check_texts(cfg, texts, outcomes)

    check()
    assert outcomes[True] > least
    assert outcomes[False] > least


#: Lark takes ignored text as long as it matches even where terminals may be cut short; here a comment may be cut, too.
CUT_COMMENTS = {"c_like": ["int x = 1 // ;"], "sexpr": ["(a ; b)"]}


@pytest.mark.parametrize("name", [name for name in NAMES if name != "tool_call_lazy"])
def test_texts_of_real_grammars_are_larks(name):
    """Lark's `dynamic_complete` takes them by any cut."""
    grammar = grammar_of(name).source
    machine = machine_of(grammar)
    judge = lark.Lark(grammar, parser="earley", lexer="dynamic_complete", ambiguity="forest")
    texts = texts_of(name)
    short = [text for said in texts for text in texts[said] if len(text) < 120]
    assert len(short) > 12
    differ = []
    for text in short:
        try:
            judge.parse(text)
            taken = True
        except lark.exceptions.UnexpectedInput:
            taken = False
        if accepts(machine, text.encode()) != taken:
            differ.append(text)
    assert differ == CUT_COMMENTS.get(name, [])


# Special tokens.


@pytest.mark.parametrize("lexer", LEXERS)
def test_special_tokens(lexer):
    """All sequences of up to six of three letters and a token, with skipped text and fallbacks."""
    store = ExpressionStore()
    names = ("<x>", "a|abc", "b", "c", "s", "t")
    letters = [store.literal(letter) for letter in (b"a", b"b", b"c")]
    expressions = [store.union([letters[0], store.literal(b"abc")]), letters[1], letters[2]]
    pairs = zip(names[1:], expressions, strict=False)
    lexemes = (SpecialTokens(names=("<x>",), name="<x>"), *(Lexeme(name, expression) for name, expression in pairs))
    rules = ((4, (5, 0, 5)), (4, ()), (5, (1,)), (5, (1, 2)), (5, (5, 0)))
    cfg = Cfg(lexemes, names, rules, 4, 3, store)
    machine = machine_of(cfg, lexer)
    token = frozenset({0}) if lexer == "longest" else "<x>"
    twin = LexedEarley(cfg) if lexer == "longest" else CfgRecogniser(cfg, outer_skip=True)
    taken, agenda = 0, [((), 0)]
    while agenda:
        text, row = agenda.pop()
        assert machine.can_end(row) == twin.accepts(text), text
        taken += machine.can_end(row)
        following = [(letter, machine.step(row, letter)) for letter in b"abc"]
        following.append((token, machine.take(row, {0})))
        assert (following[-1][1] >= 0) == (machine.token_sets(row) == {0})
        assert machine.take(row, set()) == -1
        for symbol, target in following:
            if lexer == "longest":
                assert (target >= 0) == twin.goes_on((*text, symbol)), (text, symbol)
            if target >= 0 and len(text) < (6 if lexer == "longest" else 5):
                agenda.append(((*text, symbol), target))
    assert taken > 30


# Growth and limits.


def test_too_many_instructions(monkeypatch):
    monkeypatch.setattr(bound_program, "MAX_PLACES", 10)
    with pytest.raises(LimitExceeded, match="instructions; at most 10 fit"):
        machine_of('start: "a" "b" "c" "d" "e" "f" "g" "h" "i" "j" "k"\n')


def test_too_long_chains(monkeypatch):
    monkeypatch.setattr(steps, "MAX_CHAIN", 100)
    machine = machine_of(make_cfg(("a|a+b", "c"), {"s": [("a|a+b", "s", "c"), ("a|a+b", "c")]}), "longest")
    for _ in range(2):
        with pytest.raises(LimitExceeded, match="cut into lexemes") as caught:
            machine.run_text(b"a" * 2000)
        assert caught.value.limit == "max_chain"
        assert accepts(machine, b"a" * 20 + b"c" * 20)
