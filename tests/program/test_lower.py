"""Keys and errors of texts, and what is shared. What programs mean is checked by the machine that runs them."""

from __future__ import annotations

import pytest

from tokdfa.constraint import Choice, Regex
from tokdfa.errors import EmptyLanguageError, RegexSyntaxError
from tokdfa.grammar.cfg import Cfg, Lexeme
from tokdfa.program.lower import lower_grammar, lower_regular
from tokdfa.program.program import ANY
from tokdfa.regex.compile import lower_constraint
from tokdfa.regex.expression import ExpressionStore
from tokdfa.regex.state_names import ExpressionNames


def key_of(pattern, store=None):
    store = store or ExpressionStore()
    return ExpressionNames(store).key(lower_constraint(Regex(pattern, ascii_classes=True), store))


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
    keys = [lower_regular(constraint).source.terminals[0].key for constraint in constraints]
    assert len(set(keys)) == len(keys)
    assert lower_regular(Regex("a")).source.terminals[0].key == keys[0]
    assert lower_regular(Choice(["a", "b"])).source.terminals[0].key == keys[-1]


def test_errors_come_when_a_text_is_made():
    bad, empty = lower_regular(Regex("(a")).source.terminals[0], lower_regular(Regex("a(?!a)(?=a)")).source.terminals[0]
    with pytest.raises(RegexSyntaxError):
        bad.make()
    with pytest.raises(EmptyLanguageError, match="no text matches"):
        empty.make()


# Keys.


def test_different_languages_have_different_keys():
    patterns = [
        *("", "a", "b", "ab", "ba", "a|b", "a*", "a+", "a?", "a{2}", "a{2,}", "a{2,3}", "(ab)*", "a*b*", "[ab]*"),
        *("a(?=b)b|c", "a(?!b)c|c", r"a\b.*", r"a\B.*", "aab", "aba", "a(a|b)", "(a|b)a", "(?i:a)b", "[^a]"),
    ]
    assert len({key_of(pattern) for pattern in patterns}) == len(patterns)


def test_keys_do_not_depend_on_what_a_store_has_already():
    """Members of unions lie in the order of their numbers, which differs."""
    patterns = [*("[bx]y|a|cd|e{2,5}", "(?:cd|[bx]y)+", "e{2,5}(?:a|cd)?"), "~"]
    one, other = ExpressionStore(), ExpressionStore()
    keys = {pattern: key_of(pattern, one) for pattern in patterns}
    assert {pattern: key_of(pattern, other) for pattern in reversed(patterns)} == keys
    assert len(set(keys.values())) == len(keys)


def test_clipped_names_do_not_see_past_a_token():
    store = ExpressionStore()
    names = ExpressionNames(store, 4)
    near, *far = (store.repeat(store.byte_set(b"ab"), *bounds) for bounds in ((3, 3), (4, 9), (5, 300), (7, None)))
    assert len(set(map(names.describe, far))) == 1
    assert names.describe(near) != names.describe(far[0])
    assert len(set(map(names.key, [near, *far]))) == 4


def test_keys_of_deep_expressions():
    """No recursion: a chain of 20,000 parts, and alternatives 3,000 deep."""
    assert key_of("ab" * 10_000) == key_of("ab" * 10_000)
    assert key_of("ab" * 10_000) != key_of("ab" * 9_999 + "aa")
    store = ExpressionStore()
    deep = store.literal(b"x")
    for _ in range(3000):
        deep = store.union([store.concat(store.literal(b"a"), deep), store.literal(b"b")])
    assert len(ExpressionNames(store).key(deep)) == 16


# Grammars.


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
        lower_grammar(cfg, longest=False).source.terminals[0].make()
