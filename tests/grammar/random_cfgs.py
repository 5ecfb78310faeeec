"""Hypothesis strategy for grammars that are nothing but numbers: any shape, useless symbols and cycles included."""

from __future__ import annotations

from hypothesis import strategies as st

from tokdfa.grammar.cfg import Cfg, Lexeme
from tokdfa.regex.expression import ExpressionStore


def cfgs(nonterminals: int = 5) -> st.SearchStrategy[Cfg]:
    """Grammars with the lexemes a, b and c (which is skipped or not), up to `nonterminals` others and few rules."""
    symbols = st.sampled_from([0, 1, *range(3, 3 + nonterminals)])
    right = st.lists(symbols, max_size=4).map(tuple)
    rules = st.lists(st.tuples(st.integers(3, 2 + nonterminals), right), max_size=3 * nonterminals)
    return st.builds(lambda rules, skip: make_cfg(rules, nonterminals, skip), rules, st.booleans())


def make_cfg(rules: list[tuple[int, tuple[int, ...]]], nonterminals: int, skip: bool = False) -> Cfg:
    """Lexemes 0 (a), 1 (b), 2 (c, skipped if `skip`, else unused); nonterminals from 3 on; 3 is the start."""
    store = ExpressionStore()
    lexemes = tuple(Lexeme(letter, store.literal(letter.encode())) for letter in "abc")
    names = ("a", "b", "c", *(f"n{number}" for number in range(nonterminals)))
    return Cfg(lexemes, names, tuple(dict.fromkeys(rules)), 3, 2 if skip else -1, store)
