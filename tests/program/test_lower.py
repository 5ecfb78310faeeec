"""Keys and errors of texts, and what is shared. What programs mean is checked by the machine that runs them."""

from __future__ import annotations

import pytest

from tokdfa.automata.dfa import Dfa
from tokdfa.constraint import Choice, Regex
from tokdfa.errors import EmptyLanguageError, RegexSyntaxError
from tokdfa.grammar.cfg import Cfg, Lexeme
from tokdfa.grammar.lark_reader import read_lark
from tokdfa.program.lower import EXPLICIT_STATES, ExpressionKeys, lower_grammar, lower_regular
from tokdfa.program.program import ANY
from tokdfa.regex.compile import lower_constraint
from tokdfa.regex.expression import ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa


def key_of(pattern, store=None):
    store = store or ExpressionStore()
    return ExpressionKeys(store).of(lower_constraint(Regex(pattern, ascii_classes=True), store))


# Regular constraints.


def test_equal_constraints_have_equal_keys():
    constraints = [
        Regex("a"),
        Regex("a", search=True),
        Regex("a", flags="i"),
        Regex("b"),
        Choice(["a"]),
        Choice(["a", "b"]),
    ]
    keys = [lower_regular(constraint).terminals[0].key for constraint in constraints]
    assert len(set(keys)) == len(keys)
    assert lower_regular(Regex("a")).terminals[0].key == keys[0]
    assert lower_regular(Choice(["a", "b"])).terminals[0].key == keys[-1]


def test_errors_come_when_a_text_is_made():
    bad, empty = lower_regular(Regex("(a")).terminals[0], lower_regular(Regex("a(?!a)(?=a)")).terminals[0]
    with pytest.raises(RegexSyntaxError):
        bad.make()
    with pytest.raises(EmptyLanguageError, match="no text matches"):
        empty.make()


def test_large_automata_stay_lazy():
    small, large = (lower_regular(Regex(f"a{{{count}}}")).terminals[0].make() for count in (100, EXPLICIT_STATES + 1))
    assert isinstance(small, Dfa)
    assert isinstance(large, LazyDfa)


# Keys.


def test_keys_do_not_depend_on_the_store():
    used = ExpressionStore()
    for other in ("x|y", "[a-z]{3,9}", "ab", "(b|c)*d"):
        lower_constraint(Regex(other), used)
    for pattern in ("ab|c", "[a-f]{2,7}x?", "a(?=b)b", r"\bab\b", "(a|b)*abb", "é"):
        assert key_of(pattern) == key_of(pattern, used), pattern


def test_keys_do_not_depend_on_the_order_of_alternatives():
    for one, other in (("ab|cd|ef", "ef|ab|cd"), ("(a+|b+)c", "(b+|a+)c")):
        assert key_of(one) == key_of(other)
        first = ExpressionStore()
        lower_constraint(Regex(other), first)
        assert key_of(one, first) == key_of(one)


def test_different_languages_have_different_keys():
    patterns = [
        *("", "a", "b", "ab", "ba", "a|b", "a*", "a+", "a?", "a{2}", "a{2,}", "a{2,3}", "(ab)*", "a*b*", "[ab]*"),
        *("a(?=b)b|c", "a(?!b)c|c", r"a\b.*", r"a\B.*", "aab", "aba", "a(a|b)", "(a|b)a", "(?i:a)b", "[^a]"),
    ]
    assert len({key_of(pattern) for pattern in patterns}) == len(patterns)


def test_keys_of_deep_expressions():
    """No recursion: a chain of 20,000 parts, and alternatives 3,000 deep."""
    assert key_of("ab" * 10_000) == key_of("ab" * 10_000)
    assert key_of("ab" * 10_000) != key_of("ab" * 9_999 + "aa")
    store = ExpressionStore()
    deep = store.literal(b"x")
    for _ in range(3000):
        deep = store.union([store.concat(store.literal(b"a"), deep), store.literal(b"b")])
    assert len(ExpressionKeys(store).of(deep)) == 16


# Grammars.


def test_equal_ends_of_rules_are_shared():
    once = lower_grammar(read_lark('start: "a" x "." | "b"\nx: "c" "d"\n'), longest=False)
    twice = lower_grammar(read_lark('start: "a" x "." | "b" | "c" "a" x "."\nx: "c" "d"\n'), longest=False)
    assert len(twice.code) == len(once.code) + 1


def test_equal_texts_are_one_unless_one_is_lazy():
    grammar = 'start: A "x" | b "y" | c "z"\nA: /a+/\nb[lazy]: /a+/\nc: /a+/\n'
    texts = lower_grammar(read_lark(grammar), longest=True).terminals
    assert sorted(text.shortest for text in texts if text.make().accepts(b"aa")) == [False, True]


def test_a_frame_without_rules_reads_nothing_ever():
    store = ExpressionStore()
    cfg = Cfg((Lexeme("a", store.literal(b"a")),), ("a", "s", "dead"), ((1, (0,)), (1, (2, 0))), 1, -1, store)
    program = lower_grammar(cfg, longest=False)
    operation, begin, end = program.code[program.entries[1]].tolist()
    assert (operation, begin) == (ANY, end)


def test_a_terminal_that_matches_nothing_is_named():
    store = ExpressionStore()
    nothing = store.intersection([store.literal(b"a"), store.literal(b"b")])
    cfg = Cfg((Lexeme("NONE", nothing, False, 7),), ("NONE", "s"), ((1, (0,)),), 1, -1, store)
    with pytest.raises(EmptyLanguageError, match=r"the terminal NONE \(line 7\)"):
        lower_grammar(cfg, longest=False).terminals[0].make()
