"""Grammars that the longest match leads astray: no mask allows what no text goes on with."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING
from unittest.mock import patch

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.grammar_walks import NAMES, grammar_of, tokenizer_of
from tests.grammar.lexed_cfgs import PATTERNS, lexed_cfgs, make_cfg
from tests.naive.lexed_earley import LexedEarley
from tests.walks import accepts, advance_all, mask_of
from tokdfa.backends import lexeme_borders
from tokdfa.backends.base import Phases
from tokdfa.backends.clean_derivations import CleanDerivations
from tokdfa.backends.earley_trie.strategy import CompiledEarley, EarleyTrie
from tokdfa.backends.lexeme_follows import gather
from tokdfa.backends.longest_match import find_blocked
from tokdfa.backends.pushdown_trie.strategy import CompiledPushdown, PushdownTrie
from tokdfa.backends.registry import compile as compile_constraint
from tokdfa.constraint import Grammar
from tokdfa.core.budget import Budget, spending
from tokdfa.errors import EmptyLanguageError, GrammarUnsupported
from tokdfa.grammar.lark_reader import read_grammar
from tokdfa.program.lower import lower_grammar
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

ENGINES = [
    ("earley_trie", {"lexer": "longest"}),
    ("earley_trie", {"lexer": "longest", "ignore": "between"}),
    ("earley_trie", {"lexer": "one_byte"}),
    ("pushdown_trie", {"lexer": "longest"}),
]
BYTES = tokenizer_of("bytes").vocabulary
#: Grammars that no reader has read get texts of their own, by which it is kept what is known of them.
_numbers = itertools.count()


def compiled(cfg, backend, options):
    """What a backend makes of a grammar that no reader has read, with all that it does for a Grammar."""
    constraint = Grammar(f'start: "{next(_numbers)}"')
    if backend == "earley_trie":
        return CompiledEarley(constraint, BYTES, cfg, dict(EarleyTrie(BYTES, **options).settings), Phases())
    chosen, program = dict(PushdownTrie(BYTES, **options).settings), lower_grammar(cfg, longest=True)
    return CompiledPushdown(constraint, BYTES, program, chosen, Phases(), cfg=cfg)


def start(text, backend, options, vocab=BYTES):
    return compile_constraint(Grammar(text), vocab, backend=backend, **options).start()


# One by one.

#: A grammar, what may come after some text ($: an end), and letters; None: no text is left, False: it is refused.
ASTRAY = [
    ('start: "x" | A A\nA: /(ab)+/\n', {"": "x"}, b"abx"),
    ('start: "x" | A ["!"] A\nA: /(ab)+/\n', {"": "ax", "ab": "a!", "ab!ab": "a$", "abab": "a!"}, b"ab!"),
    ('start: "x" | A "a"\nA: /a+/\n', {"": "x"}, b"ax"),
    ('start: A "a"\nA: /a+/\n', None, b"aa"),
    ("start: /(ab)+/~2 | /b*a/ start\n", None, b"abab"),
    ('start: "x" | "y" pair\npair: A A | "[" pair "]"\nA: /a+/\n', False, b"y[aa]"),
    # a lexeme may begin well and go wrong
    ('start: A "c"\nA: /a|bc*|bdc?/\n', {"": "ab", "a": "c", "b": "d", "bd": "c", "bdc": "c"}, b"abcd"),
    # texts that only a longer lexeme has
    ('start: "x" | ("a" | "ab") B\nB: /b+c?/\n', {"": "ax", "a": "b", "ab": "b", "abb": "bc$"}, b"abcx"),
    # a lazy lexeme cuts the other off
    ('start: "x" | any "!" | AB "?"\nany[lazy]: /a/\nAB: /ab/\n', {"": "ax", "a": "!"}, b"ab!?x"),
    # what is skipped keeps lexemes apart, or swallows them
    ('start: "x" | A A\nA: /(ab)+/\n%ignore " "\n', {"": " ax", "ab": " a", "ab ": " a"}, b"abx "),
    ('start: "x" | A A\nA: /(ab)+/\n%ignore /[ab]b/\n', {"": "abx"}, b"abx"),
]


@pytest.mark.parametrize(("backend", "options"), ENGINES, ids=str)
@pytest.mark.parametrize(("grammar", "allowed", "letters"), ASTRAY, ids=lambda value: str(value)[:40])
def test_what_leads_to_no_end_is_not_allowed(grammar, allowed, letters, backend, options):
    """Against the definitions, too: no allowed letter is one after which all texts of some letters are refused."""
    if not isinstance(allowed, dict):
        with pytest.raises(EmptyLanguageError if allowed is None else GrammarUnsupported) as caught:
            start(grammar, backend, options)
        assert "swallow" in str(caught.value)
        assert "lexer=any" in str(caught.value)
        assert accepts(start(grammar, "pushdown_trie", {"lexer": "any"}), letters)
        return
    check(read_grammar(Grammar(grammar)), backend, options, Counter(), letters)
    if options == {"lexer": "longest"}:
        for text, letters in allowed.items():
            matcher = start(grammar, backend, options)
            advance_all(matcher, text.encode())
            found = {chr(byte) for byte in mask_of(matcher) if byte < 128} | ({"$"} if matcher.can_end() else set())
            assert found == set(letters), text


def test_the_two_lexemes_are_named():
    """With their place: the first is what swallows, wherever the dead end is met."""
    grammar = 'start: a A "a" | "z"\na: "(" a ")" | "y"\nA: /a+/\n'
    with pytest.raises(GrammarUnsupported, match='A may swallow "a"') as caught:
        start(grammar, "earley_trie", {})
    assert (caught.value.line, caught.value.column) == (3, 1)


# Random grammars, against the definitions.


@pytest.mark.parametrize(("backend", "options"), ENGINES, ids=str)
def test_no_dead_ends(backend, options):
    """Of random grammars: what is allowed leads to a text, what is left out to none that is a little longer."""
    outcomes = Counter()

    @settings(max_examples=100)
    @given(lexed_cfgs() | sequences())
    def run(cfg):
        check(cfg, backend, options, outcomes)

    run()
    assert outcomes["grammars"] > 40
    assert outcomes["refused"] < 10
    assert outcomes["left out"] > 2
    assert outcomes["finished"] > 500
    assert outcomes["too far"] < outcomes["finished"] / 20


def sequences():
    """Some sequences of lexemes, which are in each other's way more often."""
    patterns = st.lists(st.sampled_from(PATTERNS), min_size=2, max_size=3, unique=True)
    rules = patterns.flatmap(
        lambda each: st.tuples(
            st.just(each), st.lists(st.lists(st.sampled_from(each), min_size=1, max_size=3), min_size=2)
        )
    )
    return rules.map(lambda both: make_cfg(tuple(both[0]), {"s": list(dict.fromkeys(map(tuple, both[1])))}))


def check(cfg, backend, options, outcomes, letters=b"abc"):
    """Follow the masks of a grammar for four letters."""
    twin = LexedEarley(cfg, options["lexer"] == "longest", options.get("ignore") != "between")
    outcomes["grammars"] += 1
    try:
        matcher = compiled(cfg, backend, options).start()
    except EmptyLanguageError:
        assert not finishes(twin, b"", 6, letters)
        return
    except GrammarUnsupported:
        outcomes["refused"] += 1
        return
    agenda = [(matcher, b"")]
    for here, text in agenda:  # grows on the way
        for letter in letters:
            longer = text + bytes([letter])
            if here.allows(letter):
                there = here.fork()
                there.advance(letter)
                rest = way_to_end(there, letters)
                outcomes["too far" if rest is None else "finished"] += 1
                assert rest is None or twin.accepts(longer + rest), (longer, rest)
                if len(longer) < 4:
                    agenda.append((there, longer))
            elif twin.goes_on(longer):
                assert not finishes(twin, longer, 7 - len(longer), letters), longer
                outcomes["left out"] += 1


def way_to_end(matcher, letters):
    """Letters that lead from a matcher to an end, by its own masks; None: 300 situations are too few to find one."""
    agenda, met = [(matcher, b"")], {matcher.state}
    for here, text in agenda:  # grows on the way
        if here.can_end():
            return text
        for letter in letters:
            if here.allows(letter):
                there = here.fork()
                there.advance(letter)
                if there.state not in met:
                    met.add(there.state)
                    agenda.append((there, text + bytes([letter])))
        if len(met) > 300:
            return None
    raise AssertionError("a dead end")


def finishes(twin, text, more, letters):
    """Whether a text of at most `more` letters more is complete; of many texts some are tried."""
    layer = [text]
    for _ in range(more + 1):
        if any(map(twin.accepts, layer)):
            return True
        layer = [one + bytes([letter]) for one in layer for letter in letters if twin.goes_on(one + bytes([letter]))]
        layer = layer[:: 1 + len(layer) // 100]
    return False


# What is proved.


@pytest.mark.parametrize("longest", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_grammars_in_use_are_proved(name, longest):
    """Without a search, and with the bytes of SmolLM2, which lacks 21."""
    cfg = read_grammar(grammar_of(name))
    assert find_blocked(cfg, longest=longest) is None
    available = np.ones(256, dtype=np.bool_)
    available[[*range(8), *range(14, 27)]] = False
    assert find_blocked(cfg, longest=longest, available=available) is None


#: What people write without a blank between words: nothing is wrong with these.
HARMLESS = [
    'start: (WORD | "(" start ")")*\nWORD: /[a-z]+/\n',
    "start: WORD? WORD\nWORD: /[a-z]+/\n",
    'start: "if" NAME | NAME "=" NAME\nNAME: /[a-z]+/\n%ignore " "\n',
    'start: "<" TEXT* start? ">"\nTEXT: /[^<>]+/\n',
    'start: (NUMBER "." NAME ";" | "(" start ")")*\nNUMBER: /[0-9]+(\\.[0-9]+)?/\nNAME: /[a-z]+/\n',
    'start: STRING ("," start)?\nSTRING: /"[^"]{0,5000}"/\n%ignore /\\s+/\n',
    'start: call* TEXT?\ncall: tag start "}"\ntag[lazy]: /[^<}]*<t>/\nTEXT: /[^<}]+/\n',
    'start: KEY ":" (start | "1")\nKEY: /x[a-z]{1,3000}/\n',
    'start: "a" <|tool|> start | A A <|tool|>\nA: "a"\n',
]


@pytest.mark.parametrize("grammar", HARMLESS, ids=lambda text: text[:30])
def test_harmless_grammars_are_proved(grammar):
    assert find_blocked(read_grammar(Grammar(grammar))) is None


#: Not proved, as a lexeme that meets another goes on for some bytes, and yet nothing is wrong.
SEARCHED = [
    ('start: call* TEXT?\ncall: tag start "</t>"\ntag[lazy]: /[^<]*<t>/\nTEXT: /[^<]+/\n', "a<t>b</t>c"),
    ('start: ("b" | BA | "(" start ")" "b" "b")*\nBA: /b+a/\n', "b(b)bbba"),
]


@pytest.mark.parametrize(("backend", "options"), ENGINES[::3], ids=str)
@pytest.mark.parametrize(("grammar", "text"), SEARCHED, ids=lambda value: value[:20])
def test_grammars_with_places_that_are_not_proved(grammar, text, backend, options):
    assert find_blocked(read_grammar(Grammar(grammar))) is not None
    matcher = start(grammar, backend, options)
    for letter in text.encode():
        assert letter in mask_of(matcher)
        matcher.advance(letter)
    assert matcher.can_end()


def test_what_meets_in_too_many_ways_is_searched(monkeypatch):
    monkeypatch.setattr(lexeme_borders, "MOST_STATES", -5)
    cfg = make_cfg(("a", "b+", "ab"), {"s": [("a", "b+"), ("ab", "a")]})
    assert "too many ways" in find_blocked(cfg).reason
    assert mask_of(compiled(cfg, *ENGINES[0]).start()) == [ord("a")]


@pytest.mark.parametrize("backend", ["earley_trie", "pushdown_trie"])
def test_bytes_that_are_no_tokens_keep_nothing_apart(backend):
    """A blank would; without one the words are one word."""
    grammar = 'start: "x" | A A\nA: /a+/\n%ignore " "\n'
    for texts, allowed in (([b"a", b"x", b" ", b""], [0, 1, 2]), ([b"a", b"x", b""], [1])):
        vocab = Vocabulary(texts, end_tokens=[len(texts) - 1])
        assert mask_of(start(grammar, backend, {}, vocab)) == allowed


def test_what_is_saved_is_checked_again(tmp_path: Path):
    grammar = Grammar(ASTRAY[0][0])
    saved = compile_constraint(grammar, BYTES, backend="pushdown_trie")
    saved.save(tmp_path / "astray")
    matcher = type(saved).load(tmp_path / "astray", BYTES).start()
    assert mask_of(matcher) == [ord("x")]
    assert matcher.forced_bytes() == b"x"


#: Grammars of any number of rules. In most the A could swallow an A behind it, if there were one.
MANY_RULES = {
    "a chain": lambda n: "start: r0\n" + "".join(f'r{k}: "a{k}" | r{k + 1}\n' for k in range(n)) + f'r{n}: "z"\n',
    "the last first": lambda n: (
        "start: r0\n" + "".join(f'r{k}: "a{k}." A | r{k + 1}\n' for k in reversed(range(n))) + f'r{n}: "b" A\nA: /a+/\n'
    ),
    "the rest is optional": lambda n: (
        "start: r0\n" + "".join(f'r{k}: "b{k}." r{k + 1}?\n' for k in range(n)) + f'r{n}: "b" A\nA: /a+/\n'
    ),
    "one long rule": lambda n: "start: " + " ".join(f'"b{k}." "a{k}."?' for k in range(n)) + ' "b" A\nA: /a+/\n',
    "prefixes": lambda n: "start: e\ne: " + "|".join(f'"b{k}." e ";"' for k in range(n)) + ' | "b" A\nA: /a+/\n',
    "levels of operators": lambda n: (
        "start: e0\n"
        + "".join(f'e{k}: e{k} "b{k}." e{k + 1} | e{k + 1}\n' for k in range(n))
        + f'e{n}: "(" e0 ")" | "b" A\nA: /a+/\n'
    ),
    "statements": lambda n: (
        f"start: s*\ns: {'|'.join(f'r{k}' for k in range(n))}\n"
        + "".join(f'r{k}: "b{k}." A ";" e\n' for k in range(n))
        + 'e: "b" A | "c"\nA: /a+/\n'
    ),
}


@pytest.mark.parametrize("kind", MANY_RULES)
def test_work_of_the_proof_grows_with_the_rules_only(kind):
    """Counted: four times as many rules take about four times as much work."""
    work = []
    for count in (100, 400):
        cfg = read_grammar(Grammar(MANY_RULES[kind](count)))
        with spending(Budget(100, 2_000), "a proof") as account:
            assert find_blocked(cfg) is None
        work.append(account.work_done)
    assert work[0] > 1_000_000
    assert work[1] < 6 * work[0]


@given(lexed_cfgs() | sequences(), st.booleans())
def test_places_are_in_no_doubt_where_rules_are_in_none(cfg, longest):
    """The look at each rule is a short cut: without it the answer is the same."""
    with patch.object(CleanDerivations, "_holds_of_rules", lambda self: False):
        expected = find_blocked(cfg, longest=longest)
    assert find_blocked(cfg, longest=longest) == expected


@given(st.lists(st.lists(st.integers(0, 11)), min_size=8, max_size=8))
def test_sets_are_gathered_from_all_that_is_reached(sources):
    """Against the transitive closure of networkx. Symbols from 8 on have no sources."""
    graph = nx.DiGraph([(symbol, source) for symbol, each in enumerate(sources) for source in each])
    found = [1 << symbol for symbol in range(12)]
    gather(found, {symbol: each for symbol, each in enumerate(sources) if each})
    for symbol in graph:
        assert found[symbol] == sum(1 << other for other in {symbol, *nx.descendants(graph, symbol)})
