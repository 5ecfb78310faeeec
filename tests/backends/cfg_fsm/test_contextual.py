"""Which grammars need no search: no lexeme can break what was promised of the one before."""

from __future__ import annotations

import pytest

from tokdfa.backends.cfg_fsm.contextual import Context, Contextual
from tokdfa.backends.cfg_fsm.match_automata import match_automaton


def lexer_of(*patterns: str, ignored=()) -> Contextual:
    """A lexer with one context, all patterns in this order; any may follow any."""
    context = Context(tuple(range(len(patterns))), {}, frozenset(range(len(patterns))) - set(ignored))
    automata = [match_automaton(pattern) for pattern in patterns]
    return Contextual(automata, [context], ignored, [[0]] * len(patterns), 0, 1_000)


@pytest.mark.parametrize(
    ("patterns", "ignored", "certified"),
    [
        (("a", "b"), (), True),
        (("a+", "b"), (), False),
        (("a+", "b", " "), (2,), True),
        (("a", "ab"), (), False),
        (("ab", "a"), (), True),
        (("[ab]", "a"), (), False),
        (("a+", " a|b"), (), False),
    ],
)
def test_what_is_certified(patterns: tuple[str, ...], ignored: tuple[int, ...], certified: bool) -> None:
    """Any terminal can follow any: not if the one before goes on, or if another one is always first."""
    assert lexer_of(*patterns, ignored=ignored).is_certified == certified
