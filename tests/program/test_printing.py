"""Printing: every instruction is written once. What programs mean is checked by the machine that runs them."""

from __future__ import annotations

import re

import pytest

from tokdfa.grammar.lark_reader import read_lark
from tokdfa.program.lower import lower_grammar
from tokdfa.program.printing import format_program


@pytest.mark.parametrize("longest", [False, True])
def test_printing(longest):
    cfg = read_lark('start: "(" start ")" | A x | <|end|>\nx[lazy]: /.*;/\nA: "a"+\n%ignore " "\n')
    program = lower_grammar(cfg, longest=longest)
    printed = format_program(program)
    assert printed.splitlines()[0].startswith(f"{len(program.code)} instructions, {len(program.entries)} frames")
    assert ("longest match" in printed) == longest
    assert ("between lexemes:" in printed) == longest
    assert sorted(map(int, re.findall(r"^ +(\d+) ", printed, flags=re.MULTILINE))) == list(range(len(program.code)))
    for said in ("call start", "any of", "the shortest", "token <|end|>", "return", "terminal A"):
        assert said in printed, said
