"""What calls of 10 and 500 tools in free text cost, in processor time: ``python docs/examples/tools_cost.py 10 500``.

Compiled with schemas that no grammar had before, and again; then masks along a text with a call, by each engine.
xgrammar gets the same calls as structural tags, its own notation for them: it reads no terminals with ``&`` and ``~``.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import time
from typing import Any

import tokdfa
from tokdfa.errors import MissingDependency

WORDS = ("city", "unit", "date", "query", "limit", "user_id", "filter", "sort", "path", "content")
TYPES: list[dict[str, Any]] = [
    {"type": "string", "description": "What is looked for, in the user's words"},
    {"type": "integer", "minimum": 0},
    {"enum": ["a", "b", "c"]},
    {"type": "array", "items": {"type": "string"}},
    {"type": "boolean"},
    {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x", "y"]},
]


def make_tool(number: int, seed: str) -> dict[str, Any]:
    """A tool with two to seven arguments, two of them required."""
    rng = random.Random(f"{seed} {number}")
    properties = {f"{rng.choice(WORDS)}_{k}": rng.choice(TYPES) for k in range(rng.randint(2, 7))}
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties)[:2],
        "additionalProperties": False,
    }
    return {"name": f"tool_{number}", "description": "Does something", "parameters": schema}


def compile_tools(engine: str, described: list[dict[str, Any]], vocab: tokdfa.Vocabulary) -> Any:
    """What has the methods `fill_mask` and `advance`: a matcher for calls in free text."""
    if engine == "xgrammar":
        return XgrammarTags(described, vocab)
    grammar = tokdfa.Grammar(str(tokdfa.tools("hermes", described, vocab)))
    return tokdfa.compile(grammar, vocab, engine).start()


class XgrammarTags:
    """Calls in the format hermes as structural tags of xgrammar."""

    def __init__(self, described: list[dict[str, Any]], vocab: tokdfa.Vocabulary) -> None:
        from tokdfa.backends.registry import create_backend

        peer: Any = create_backend("xgrammar", vocab)  # with its tokenizer, made once for a vocabulary
        tags = [
            {
                "type": "tag",
                "begin": f'<tool_call>\n{{"name": {json.dumps(tool["name"])}, "arguments": ',
                "content": {"type": "json_schema", "json_schema": tool["parameters"]},
                "end": "}\n</tool_call>",
            }
            for tool in described
        ]
        calls = {"type": "triggered_tags", "triggers": ["<tool_call>"], "tags": tags}
        compiled = peer.compiler.compile_structural_tag({"type": "structural_tag", "format": calls})
        self._matcher = peer.module.GrammarMatcher(compiled)

    def fill_mask(self, out: Any) -> None:
        self._matcher.fill_next_token_bitmask(out)

    def advance(self, token: int) -> None:
        assert self._matcher.accept_token(token)


def main(counts: list[int], tokenizer_name: str = "llama3") -> None:
    """Print a row for each engine and count."""
    tokenizer = tokdfa.load_tokenizer(tokenizer_name)
    vocab, mask = tokenizer.vocabulary, tokdfa.allocate_mask(tokenizer.vocabulary.size)
    for engine in ("pushdown_trie", "earley_trie", "llguidance", "xgrammar"):
        try:
            compile_tools(engine, [make_tool(0, "first")], vocab)
        except MissingDependency as error:
            print(f"{engine}: {error}")
            continue
        for count in counts:
            described = [make_tool(number, engine) for number in range(count)]
            seconds, masks = [], []
            for _ in range(2):
                begin = time.process_time()
                matcher = compile_tools(engine, described, vocab)
                seconds.append(time.process_time() - begin)
            for token in tokenizer.encode(f'Let me see. <tool_call>\n{{"name": "tool_{count - 1}", "arguments": {{"'):
                begin = time.process_time()
                matcher.fill_mask(mask)
                masks.append(time.process_time() - begin)
                matcher.advance(token)
            row = {
                "tools": count,
                "compile_ms": round(1e3 * seconds[0], 1),
                "again_ms": round(1e3 * seconds[1], 1),
                "mask_median_us": round(1e6 * statistics.median(masks), 1),
                "mask_worst_us": round(1e6 * max(masks), 1),
            }
            print(engine, json.dumps(row))


if __name__ == "__main__":
    main([int(count) for count in sys.argv[1:]] or [10, 500])
