"""The grammars of experiments/tags.yaml are what `tokdfa.tools` prints, and have the texts that stand beside them.

``python -m tests.test_tools_inputs`` writes them.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

import tokdfa
from tests.packages import backend
from tests.walks import accepts

TOOLS = Path(__file__).parents[1] / "experiments" / "inputs" / "tools"
COUNTS = (10, 100, 500)
WORDS = ("city", "unit", "date", "query", "limit", "user_id", "filter", "sort", "path", "content")
TYPES: list[dict[str, Any]] = [
    {"type": "string", "description": "What is looked for, in the user's words"},
    {"type": "integer", "minimum": 0},
    {"enum": ["a", "b", "c"]},
    {"type": "array", "items": {"type": "string"}},
    {"type": "boolean"},
    {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x", "y"]},
]


def make_tool(number: int) -> dict[str, Any]:
    """A tool with two to seven arguments, two of them required."""
    rng = random.Random(f"tags {number}")
    properties = {f"{rng.choice(WORDS)}_{k}": rng.choice(TYPES) for k in range(rng.randint(2, 7))}
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties)[:2],
        "additionalProperties": False,
    }
    return {"name": f"tool_{number}", "description": "Does something", "parameters": schema}


def written(count: int) -> str:
    """The calls of so many tools in the format hermes, and the same as structural tags of xgrammar in a comment."""
    described = [make_tool(number) for number in range(count)]
    part = tokdfa.tools("hermes", described, tokdfa.load_tokenizer("bytes"))
    tags = [
        {
            "type": "tag",
            "begin": f'<tool_call>\n{{"name": "{tool["name"]}", "arguments": ',
            "content": {"type": "json_schema", "json_schema": tool["parameters"]},
            "end": "}\n</tool_call>",
        }
        for tool in described
    ]
    calls = {"type": "triggered_tags", "triggers": ["<tool_call>"], "tags": tags}
    return f"// xgrammar: {json.dumps({'type': 'structural_tag', 'format': calls})}\n{part}\n"


@pytest.mark.parametrize("count", COUNTS)
def test_the_grammar_is_printed_by_tools(count: int) -> None:
    assert (TOOLS / f"hermes_{count}.lark").read_text() == written(count)


@pytest.mark.parametrize("engine", ["pushdown_trie", "earley_trie", backend("llguidance"), backend("xgrammar")])
@pytest.mark.parametrize("count", COUNTS[:2])
def test_engines_take_its_texts(engine: str, count: int) -> None:
    texts = yaml.safe_load((TOOLS / "hermes.yaml").read_text())
    grammar = tokdfa.Grammar((TOOLS / f"hermes_{count}.lark").read_text())
    compiled = tokdfa.compile(grammar, tokdfa.load_tokenizer("bytes"), engine)
    assert [accepts(compiled.start(), text) for text in texts["accepted"]] == [True] * 3
    assert [accepts(compiled.start(), text) for text in texts["refused"]] == [False] * 2


if __name__ == "__main__":
    for size in COUNTS:
        (TOOLS / f"hermes_{size}.lark").write_text(written(size))
