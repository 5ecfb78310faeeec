"""Calls of tools in free text: where a peer's mask differs from ours, `json` and `jsonschema` on the finished text say
who is right.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import tokdfa
from tokdfa import mask as masks

INPUTS = Path(__file__).parents[2] / "experiments/inputs/tools"
GRAMMAR = (INPUTS / "hermes_10.lark").read_text()
TEXTS: list[str] = yaml.safe_load((INPUTS / "hermes.yaml").read_text())["accepted"]
CALL = re.compile(rb"<tool_call>\n(.*?)\n</tool_call>", re.DOTALL)


def schemas_by_tool() -> dict[str, Any]:
    """What each tool takes, from the structural tags in the grammar's first line."""
    tags = json.loads(GRAMMAR.splitlines()[0].removeprefix("// xgrammar: "))["format"]["tags"]
    return {re.findall(r'"name": "(\w+)"', tag["begin"])[0]: tag["content"]["json_schema"] for tag in tags}


def is_right(text: bytes, schemas: dict[str, Any]) -> bool:
    """Whether a finished text is UTF-8 and each call in it one of the tools'."""
    try:
        text.decode()
        for call in CALL.findall(text):
            said = json.loads(call)
            jsonschema.validate(said["arguments"], schemas[said["name"]])
    except (ValueError, KeyError, jsonschema.ValidationError):
        return False
    return b"<tool_call>" not in CALL.sub(b"", text)


@pytest.mark.parametrize("peer", ["llguidance", "xgrammar"])
def test_tokens_that_only_we_allow_lead_to_calls_and_those_that_only_a_peer_allows_do_not(peer: str) -> None:
    pytest.importorskip(peer)
    tokenizer, schemas = tokdfa.load_tokenizer("llama3"), schemas_by_tool()
    vocab = tokenizer.vocabulary
    ours = tokdfa.compile(tokdfa.Grammar(GRAMMAR), vocab, "pushdown_trie")
    theirs = tokdfa.compile(tokdfa.Grammar(GRAMMAR), vocab, peer)
    differing, judged = 0, set()
    for text in TEXTS:
        mine, other = ours.start(), theirs.start()
        assert is_right(text.encode(), schemas)
        for token in tokenizer.encode(text):
            here, there = masks.allocate_mask(vocab.size), masks.allocate_mask(vocab.size)
            mine.fill_mask(here)
            other.fill_mask(there)
            differing += bool((here != there).any())
            before = b"".join(map(vocab.token_bytes, mine.tokens))
            for extra in masks.mask_to_ids(here & ~there).tolist():
                if (mine.whereabouts(), extra) in judged:
                    continue
                judged.add((mine.whereabouts(), extra))
                after = mine.fork()
                after.advance(extra)
                spelled = [extra, *after.shortest_completion()]
                assert is_right(before + b"".join(map(vocab.token_bytes, spelled)), schemas)
            for extra in masks.mask_to_ids(there & ~here).tolist():
                assert CALL.sub(b"", before).count(b"<tool_call>") == 0  # in free text, where any text is right
                assert not begins_text(vocab.token_bytes(extra))
            mine.advance(token)
            other.advance(token)
    assert differing > 40
    assert len(judged) > 20


def begins_text(beginning: bytes) -> bool:
    """Whether some UTF-8 text begins so."""
    try:
        beginning.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True
