"""The grammars of experiments/tags.yaml are what `tokdfa.tools` prints, and have the texts that stand beside them."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
import yaml

import tokdfa
from tests.backends.grammar_walks import accepts

ROOT = Path(__file__).parents[1]
TOOLS = ROOT / "experiments" / "inputs" / "tools"
TEXTS = yaml.safe_load((TOOLS / "hermes.yaml").read_text())


@pytest.mark.parametrize("count", [10, 500])
def test_the_grammar_is_printed_by_tools(count: int) -> None:
    make_tool = runpy.run_path(str(ROOT / "docs" / "examples" / "tools_cost.py"))["make_tool"]
    vocab = tokdfa.load_tokenizer("bytes").vocabulary
    part = tokdfa.tools("hermes", [make_tool(number, "tags") for number in range(count)], vocab)
    text = (TOOLS / f"hermes_{count}.lark").read_text()
    assert text == f"{part}\n"
    compiled = tokdfa.compile(tokdfa.Grammar(text), vocab)
    assert [accepts(compiled.start(), text) for text in TEXTS["accepted"]] == [True] * 3
    assert [accepts(compiled.start(), text) for text in TEXTS["refused"]] == [False] * 2
