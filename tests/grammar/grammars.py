"""Hypothesis strategies for grammars, and Lark as the judge of which texts they accept."""

from __future__ import annotations

import lark
from hypothesis import strategies as st

LITERALS = ('"a"', '"b"', '"ab"', '"aa"', "/[ab]/", "/b+/", '"a".."b"', "T", "U")
#: T is finite, U infinite; Python's `re`, which Lark asks, finds all of their matches (it would not of (T | "b")+).
TERMINALS = 'T: "a" | "ab" | "ba"\nU: ("b" "a"+)+\n'


def lark_grammars(max_rules: int = 4, ignore: bool = False) -> st.SearchStrategy[str]:
    """Grammars over the letters a and b that Lark reads, too: recursion of every kind, nullable rules, repetitions.

    Every rule derives some text: its first alternative has rules behind it only. With `ignore`, the letter c (or cc)
    is ignored.
    """
    return (
        st.integers(1, max_rules)
        .flatmap(
            lambda count: st.tuples(*(_rule(number, count) for number in range(count))).map(
                lambda rules: "\n".join(rules) + "\n" + TERMINALS + ('%ignore "c"\n' if ignore else "")
            )
        )
        .filter(is_read_by_lark)
    )


def is_read_by_lark(grammar: str) -> bool:
    """Whether Lark reads it: not if one alternative comes twice when repetitions are written out."""
    try:
        lark.Lark(grammar, parser="earley", maybe_placeholders=False)
    except lark.exceptions.GrammarError as error:
        if "Rules defined twice" not in str(error):
            raise
        return False
    return True


def _rule(number: int, count: int) -> st.SearchStrategy[str]:
    names = ["start", *(f"r{other}" for other in range(1, count))]
    later, every = _sequence(names[number + 1 :]), _sequence(names)
    alternatives = st.tuples(later, st.lists(every, max_size=2)).map(lambda pair: [pair[0], *pair[1]])
    return alternatives.map(lambda options: f"{names[number]}: " + " | ".join(options))


def _sequence(names: list[str]) -> st.SearchStrategy[str]:
    leaves = st.sampled_from(LITERALS)
    if names:
        leaves = st.one_of(leaves, st.sampled_from(names))
    parts = st.recursive(leaves, _extend, max_leaves=3)
    return st.lists(parts, max_size=3).map(" ".join)


def _extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    joined = st.lists(inner, min_size=1, max_size=2)
    group = st.one_of(joined.map(" ".join), joined.map(" | ".join)).map(lambda body: f"({body})")
    suffix = st.sampled_from(("?", "*", "+", "~2", "~0..2", "~1..3"))
    return st.one_of(group, group.map(lambda body: f"[{body[1:-1]}]"), st.tuples(group, suffix).map("".join))


class LarkJudge:
    """Lark's Earley parser with every match of every terminal."""

    def __init__(self, grammar: str, start: str = "start") -> None:
        self.parser = lark.Lark(
            grammar,
            start=start,
            parser="earley",
            lexer="dynamic_complete",
            ambiguity="forest",
            maybe_placeholders=False,
        )

    def accepts(self, text: str) -> bool:
        try:
            self.parser.parse(text)
        except lark.exceptions.UnexpectedInput:
            return False
        return True
