"""``tokdfa show --backend cfg_fsm`` and the backend's other commands, run as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

GRAMMARS = Path(__file__).parents[2] / "experiments" / "inputs" / "grammars"
JSON = ("--grammar", str(GRAMMARS / "json.lark"), "--backend", "cfg_fsm", "--tokenizer", "mistral-v1")


def test_the_situation_and_its_tree(tokdfa) -> None:
    status, text = tokdfa("show", *JSON, "--prefix", '{"a": ')
    assert status == 0
    for name in ("STRING", "NUMBER", "BLANKS"):
        assert name in text
    mask = tokdfa("mask", *JSON, "--prefix", '{"a": ')[1]
    assert "allowed 163 of 32,000 tokens" in mask
    assert "163 tokens" in text
    assert 'past "]": 1 token;' in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-b", "cfg_fsm"), "give --tokenizer"),
        (("-b", "cfg_fsm", "-t", "bytes", "--lexer", "any"), "cfg_fsm lexes as Lark does"),
        (("-b", "cfg_fsm", "-t", "bytes", "--prefix", "[}"), "after b'[', token 125 (b'}') is not allowed"),
        (("-b", "token_index"), "--backend is one of pushdown_trie, cfg_fsm here, not 'token_index'"),
        (("--prefix", "["), "are for --backend cfg_fsm"),
    ],
)
def test_what_cannot_be_shown(tokdfa, arguments: tuple[str, ...], message: str) -> None:
    status, text = tokdfa("show", "-g", str(GRAMMARS / "json.lark"), *arguments)
    assert status == 1
    assert message in text


@pytest.mark.parametrize("command", ["mask", "show"])
def test_a_grammar_with_conflicts_gets_larks_report_and_advice(tokdfa, command: str) -> None:
    status, text = tokdfa(command, "-g", str(GRAMMARS / "sql.lark"), "-b", "cfg_fsm", "-t", "bytes")
    assert status == 1
    assert "Reduce/Reduce" in text
    assert "<atom : column>" in text
    assert "earley_trie" in text


def test_conflicts_are_shifted_or_refused(tokdfa, tmp_path: Path) -> None:
    file = tmp_path / "dangling.lark"
    file.write_text('start: "if" start ["else" start] | "x"\n%ignore " "\n')
    given = ("mask", "-g", str(file), "-b", "cfg_fsm", "-t", "bytes", "--prefix", "if x ")
    status, text = tokdfa(*given, "-o", "conflicts=shift")
    assert status == 0
    assert "32 ' ' 101 'e'" in text
    status, text = tokdfa(*given)
    assert status == 1
    assert "Shift/Reduce" in text
    assert "earley_trie" in text


def test_masks_of_a_schema_are_those_of_constrain(tokdfa, tmp_path: Path) -> None:
    """The same profile; an option names another."""
    import tokdfa as package
    from tokdfa import mask as masks

    schema = {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(schema))
    counts = set()
    for profile in ("generation", "all"):
        constrained = package.constrain(schema, "bytes", profile=profile)
        for prefix in ("", "{", '{"a": ', '{"a":', '{"a": -'):
            matcher, mask = constrained.start(), package.allocate_mask(257)
            if not all(matcher.allows(byte) and matcher.advance(byte) is None for byte in prefix.encode()):
                continue
            matcher.fill_mask(mask)
            given = () if profile == "generation" else ("--schema-option", "profile=all")
            status, text = tokdfa("mask", "-s", str(file), "-t", "bytes", "--prefix", prefix, *given)
            assert status == 0
            assert f"allowed {masks.count(mask)} of 257 tokens" in " ".join(text.split())
            counts.add((profile, masks.count(mask)))
    assert len(counts) > 4
