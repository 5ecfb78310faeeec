"""What is printed is the language: patterns without bytes that the notation names otherwise compile back to it."""

from __future__ import annotations

import pytest

from tokdfa.automata.algebra import distinguishing_word
from tokdfa.constraint import Regex
from tokdfa.regex.compile import compile_dfa, lower_constraint
from tokdfa.regex.expression import EMPTY, NOTHING, ExpressionStore
from tokdfa.regex.printing import expression_text, expression_tree


@pytest.mark.parametrize(
    "pattern", ["ab|c", "(ab|cd)*e", "a{2,5}b{3}(c{2,})?", "((a|b)c+)?d", "(a(b|c)d|e)+", "[a-c]x|[x-z]{1,2}"]
)
def test_printed_patterns_mean_the_same(pattern: str) -> None:
    store = ExpressionStore()
    printed = expression_text(store, lower_constraint(Regex(pattern), store))
    assert distinguishing_word(compile_dfa(Regex(printed)), compile_dfa(Regex(pattern))) is None


def test_what_has_no_notation_in_patterns() -> None:
    store = ExpressionStore()
    a, bs = store.literal(b"a"), store.repeat(store.literal(b"b"), 0, None)
    assert [expression_text(store, one) for one in (NOTHING, EMPTY)] == ["∅", "ε"]
    both = store.intersection([store.complement(store.concat(a, bs)), store.concat(bs, a)])
    assert set(expression_text(store, both).split("&")) == {"~(ab*)", "b*a"}
    assert expression_text(store, store.look_ahead(a, negative=True)) == "(?!a)"


def test_the_tree_has_each_part_below_the_whole() -> None:
    store = ExpressionStore()
    printed = expression_tree(store, store.concat(store.literal(b"a"), store.repeat(store.literal(b"b"), 0, None)))
    assert printed.splitlines() == ["concat  ab*", "  a", "  repeat  b*", "    b"]
