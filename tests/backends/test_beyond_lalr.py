"""Grammars that LALR(1) does not take: `cfg_fsm` refuses them, and the general engines have exactly their texts."""

from __future__ import annotations

import lark
import pytest

from tests.backends.grammar_walks import EVERY, SHORT, check_every_text, compile_with
from tokdfa.errors import UnsupportedConstraint

#: Ambiguous or not, by their name; palindromes are for no LR(k), and "merged states" is for LR(1).
BEYOND = {
    "ambiguous: every tree": 'start: start start | "a" | "b" start "c"\n',
    "ambiguous: dangling else": 'start: "a" start ["b" start] | "c"\n',
    "ambiguous: two readings": 'start: x "b" | y "b"\nx: "a"\ny: "a" y | "a"\n',
    "palindromes": 'start: "a" start "a" | "b" start "b" | "c"?\n',
    "merged states": 'start: "a" x "a" | "b" x "b" | "a" y "b" | "b" y "a"\nx: "c" x | "c"\ny: "c" "c" y | "c"\n',
}


@pytest.mark.parametrize("name", BEYOND)
def test_cfg_fsm_names_who_takes_it(name):
    with pytest.raises(UnsupportedConstraint, match=r"(?s)not LALR\(1\).*pushdown_trie or earley_trie"):
        compile_with(BEYOND[name], SHORT, "cfg_fsm")


@pytest.mark.parametrize("name", BEYOND)
@pytest.mark.parametrize(("backend", "lexer"), EVERY)
def test_no_token_too_many_and_none_too_few(name, backend, lexer):
    """Lark's Earley parser says which texts there are."""
    parser = lark.Lark(BEYOND[name], parser="earley")

    def accepts(text):
        try:
            parser.parse(text)
        except lark.exceptions.UnexpectedInput:
            return False
        return True

    check_every_text(compile_with(BEYOND[name], SHORT, backend, lexer=lexer), accepts, length=7)


def test_what_shifting_loses():
    """`conflicts="shift"` is Lark's reading, in which abba is no palindrome."""
    even = 'start: "a" start "a" | "b" start "b" |\n'
    with pytest.raises(UnsupportedConstraint, match="Shift/Reduce"):
        compile_with(even, SHORT, "cfg_fsm")
    lost = {}
    for backend, options in (("cfg_fsm", {"conflicts": "shift"}), ("pushdown_trie", {})):
        matcher = compile_with(even, SHORT, backend, **options).start()
        lost[backend] = any(not matcher.allows(token) or matcher.advance(token) for token in (0, 1, 1, 0))
    assert lost == {"cfg_fsm": True, "pushdown_trie": False}
