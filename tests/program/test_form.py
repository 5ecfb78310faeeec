"""Printing: every instruction is written once. What forms mean is checked by the machine that runs them."""

from __future__ import annotations

import re

import pytest

from tokdfa.grammar.lark_reader import read_lark
from tokdfa.program.lower import lower_grammar
from tokdfa.program.printing import format_form


@pytest.mark.parametrize("longest", [False, True])
def test_printing(longest):
    cfg = read_lark('start: "(" start ")" | A x | <|end|>\nx[lazy]: /.*;/\nA: "a"+\n%ignore " "\n')
    form = lower_grammar(cfg, longest=longest)
    printed = format_form(form)
    assert printed.splitlines()[0].startswith(f"{len(form.code)} instructions, {len(form.entries)} frames")
    assert ("longest match" in printed) == longest
    assert ("between lexemes:" in printed) == longest
    assert sorted(map(int, re.findall(r"^ +(\d+) ", printed, flags=re.MULTILINE))) == list(range(len(form.code)))
    for said in ("call start", "any of", "the shortest", "token <|end|>", "return", "text A"):
        assert said in printed, said
