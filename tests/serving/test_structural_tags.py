"""Structural tags against xgrammar, which defines the form: the same texts are taken and refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tokdfa
from tests.packages import needs
from tokdfa.errors import ArgumentError, OptionError, TokdfaError, UnsupportedConstraint
from tokdfa.serving.requests import read_request
from tokdfa.vocabulary.vocabulary import Vocabulary

BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), b"", b"", b""], [256], {257: "<call>", 258: "</call>"})
SCHEMA = {"type": "object", "properties": {"q": {"type": "integer"}}, "required": ["q"], "additionalProperties": False}
JSON = {"type": "json_schema", "json_schema": SCHEMA}


def tag(name: str, content: Any = JSON, end: Any = "</function>") -> dict[str, Any]:
    return {"type": "tag", "begin": f"<function={name}>", "content": content, "end": end}


def const(value: str) -> dict[str, Any]:
    return {"type": "const_string", "value": value}


CALL, OTHER = '<function=f>{"q": 1}</function>', '<function=g>{"q": 22}</function>'
TAGS = [tag("f"), tag("g")]
TRIGGERED = {"type": "triggered_tags", "triggers": ["<function="], "tags": TAGS}
SEPARATED = {"type": "tags_with_separator", "tags": TAGS, "separator": ","}
REGEX = {"type": "regex", "pattern": "[a-z]+"}
CASES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("const", const("ok"), ["ok", "o", "okk", ""]),
    ("regex", REGEX, ["a", "abc", "", "A"]),
    ("schema", JSON, ['{"q": 1}', '{"q": -12}', "{}", '{"q": "a"}']),
    ("any text", {"type": "any_text"}, ["", "a<b", "x\ny"]),
    ("any text without", {"type": "any_text", "excludes": ["ab"]}, ["", "aab", "ba", "a b", "ab"]),
    ("sequence", {"type": "sequence", "elements": [const("ok "), REGEX]}, ["ok a", "ok ", "a", "ok ab"]),
    ("or", {"type": "or", "elements": [const("ok"), REGEX, const("7")]}, ["ok", "abc", "7", "77", ""]),
    ("optional", {"type": "optional", "content": const("ab")}, ["", "ab", "abab", "a"]),
    ("star", {"type": "star", "content": const("ab")}, ["", "ab", "abab", "aba"]),
    ("plus", {"type": "plus", "content": const("ab")}, ["", "ab", "abab", "aba"]),
    ("repeat", {"type": "repeat", "content": const("ab"), "min": 1, "max": 2}, ["", "ab", "abab", "ababab"]),
    ("repeat on", {"type": "repeat", "content": const("ab"), "min": 2, "max": -1}, ["ab", "abab", "ab" * 7, "aba"]),
    ("tag", tag("f"), [CALL, OTHER, CALL + CALL, CALL[:-1]]),
    (
        "tag of text",
        tag("f", {"type": "any_text"}, "</f>"),
        ["<function=f></f>", "<function=f>a</f>b</f>", "<function=f>a<</f>"],
    ),
    ("ends", tag("f", REGEX, ["</f>", ";"]), ["<function=f>a</f>", "<function=f>a;", "<function=f>a"]),
    (
        "triggered",
        TRIGGERED,
        ["", "hi", CALL, f"a{CALL}b{OTHER}c", f"a{CALL[:-1]}", "<function=h>", "<functio", CALL * 2],
    ),
    ("triggered, one", {**TRIGGERED, "at_least_one": True}, ["", "hi", CALL, f"{CALL}b", CALL * 2]),
    ("first only", {**TRIGGERED, "stop_after_first": True}, ["", "hi", CALL, f"a{CALL}", f"{CALL}b", CALL * 2]),
    ("separated", SEPARATED, ["", CALL, f"{CALL},{OTHER}", f"{CALL}{OTHER}", f"{CALL},", f"a{CALL}"]),
    ("separated, one", {**SEPARATED, "at_least_one": True}, ["", CALL, f"{CALL},{OTHER}"]),
    ("separated, first", {**SEPARATED, "stop_after_first": True}, ["", CALL, f"{CALL},{OTHER}"]),
    ("separated, only", {**SEPARATED, "stop_after_first": True, "at_least_one": True}, ["", CALL, f"{CALL},{OTHER}"]),
    ("ebnf", {"type": "grammar", "grammar": 'root ::= "a" root | "b"'}, ["b", "aab", "a", ""]),
    (
        "dispatch",
        {"type": "dispatch", "rules": [["<n>", {"type": "regex", "pattern": "[0-9]"}]]},
        ["", "a", "<n>1", "a<n>2b<n>3", "<n>x", "<n>"],
    ),
    ("dispatch once", {"type": "dispatch", "rules": [["<n>", REGEX]], "loop": False}, ["", "a", "<n>a", "b<n>a<n>"]),
    (
        "in a sequence",
        {"type": "sequence", "elements": [const("<think>"), tag("f"), {"type": "star", "content": const("!")}]},
        [f"<think>{CALL}", f"<think>{CALL}!!", CALL],
    ),
]


def ours(described: Any) -> tokdfa.Constrained:
    text = json.dumps({"type": "structural_tag", "format": described})
    return tokdfa.constrain(read_request("structural_tag", text), BYTES)


def takes(constrained: tokdfa.Constrained, tokens: list[int]) -> bool:
    matcher = constrained.start()
    for token in tokens:
        if not matcher.allows(token):
            return False
        matcher.advance(token)
    return matcher.can_end()


@needs("xgrammar")
@pytest.mark.parametrize(("name", "described", "texts"), CASES, ids=[name for name, *_ in CASES])
def test_the_texts_that_xgrammar_takes(name: str, described: dict[str, Any], texts: list[str]) -> None:
    import xgrammar

    info = xgrammar.TokenizerInfo([bytes([byte]) for byte in range(256)] + [b"</s>"], stop_token_ids=[256])
    grammar = xgrammar.Grammar.from_structural_tag(json.dumps({"type": "structural_tag", "format": described}))
    compiled = xgrammar.GrammarCompiler(info).compile_grammar(grammar)
    constrained = ours(described)
    verdicts = []
    for text in texts:
        matcher = xgrammar.GrammarMatcher(compiled)
        wanted = matcher.accept_string(text) and matcher.accept_token(256)
        assert takes(constrained, list(text.encode())) == wanted, text
        verdicts.append(wanted)
    assert any(verdicts)


def test_special_tokens_begin_and_end_tags() -> None:
    token = {
        "type": "tag",
        "begin": {"type": "token", "token": "<call>"},
        "content": JSON,
        "end": {"type": "token", "token": 258},
    }
    call = [257, *b'{"q": 1}', 258]
    assert takes(ours(token), call)
    free = ours({"type": "token_triggered_tags", "trigger_tokens": ["<call>"], "tags": [token]})
    assert takes(free, [*b"hi <call>", *call, *b" and ", *call])
    assert not takes(free, [257])
    rules = ours({"type": "token_dispatch", "rules": [["<call>", REGEX]], "loop": False})
    assert takes(rules, [*b"a", 257, *b"b"])
    assert not takes(rules, [*b"a", 257, *b"B"])


def test_markers_in_texts_are_tokens_of_the_vocabulary() -> None:
    """As requests for models such as Qwen write them, whose ``<tool_call>`` is one token."""
    call, called = 257, 258
    one = {"type": "tag", "begin": "<call>\n", "content": JSON, "end": "\n</call>"}
    formats = [
        {"type": "triggered_tags", "triggers": ["<call>"], "tags": [one]},
        {"type": "tags_with_separator", "tags": [one], "separator": ",", "at_least_one": True},
        {"type": "sequence", "elements": [const("<call>\n"), JSON, const("\n</call>")]},
        {"type": "tag", "begin": "<call>", "content": {"type": "any_text"}, "end": ["</call>", "</call>"]},
    ]
    for described in formats:
        text = json.dumps({"type": "structural_tag", "format": described})
        constrained = tokdfa.constrain(read_request("structural_tag", text, BYTES), BYTES)
        assert takes(constrained, [call, *b'\n{"q": 1}\n', called])
        assert not takes(constrained, [call, *b'\n{"q": 1}\n</call>'])
        assert not takes(constrained, [*b'<call>\n{"q": 1}\n', called])
        # without the vocabulary it is all characters, as ever
        assert takes(tokdfa.constrain(read_request("structural_tag", text), BYTES), [*b'<call>\n{"q": 1}\n</call>'])


def test_both_forms_are_one() -> None:
    old = {
        "structures": [{"begin": "<function=f>", "schema": SCHEMA, "end": "</function>"}],
        "triggers": ["<function="],
    }
    new = {"type": "structural_tag", "format": {**TRIGGERED, "tags": [tag("f")]}}
    one, two = (read_request("structural_tag", json.dumps(text)) for text in (old, new))
    assert one == two


WRONG: list[tuple[Any, type[TokdfaError], str]] = [
    ({}, ArgumentError, "format: type is missing"),
    ([], ArgumentError, "format is an object"),
    (
        {"type": "qwen_xml_parameter", "json_schema": {}},
        UnsupportedConstraint,
        "qwen_xml_parameter.*known: const_string",
    ),
    ({**JSON, "style": "qwen_xml"}, UnsupportedConstraint, "style 'qwen_xml'"),
    ({**JSON, "excludes": ["a"]}, UnsupportedConstraint, "format: excludes of json_schema cannot be enforced"),
    ({"type": "any_text", "max_tokens": 5}, UnsupportedConstraint, "max_tokens of any_text"),
    ({**TRIGGERED, "excludes": ["a"]}, UnsupportedConstraint, "excludes of triggered_tags"),
    ({**TRIGGERED, "triggers": ["<x"]}, ArgumentError, r"format\.tags\[0\]: no trigger begins '<function=f>'"),
    ({**TRIGGERED, "tags": "a"}, ArgumentError, r"format\.tags is a list"),
    (
        {"type": "sequence", "elements": [const("a"), {"type": "const_string"}]},
        ArgumentError,
        r"format\.elements\[1\]: value is missing",
    ),
    ({"type": "sequence", "elements": [{"type": "any_tokens"}]}, UnsupportedConstraint, r"format\.elements\[0\]"),
    ({"type": "dispatch", "rules": ["a"]}, ArgumentError, r"format\.rules\[0\] is a pair"),
    ({"type": "grammar", "grammar": "root", "syntax": "gbnf"}, ArgumentError, "ebnf or lark"),
    ({"type": "repeat", "content": const("a"), "min": 2, "max": 1}, OptionError, "high is 1, below low, 2"),
]


@pytest.mark.parametrize(("described", "kind", "said"), WRONG)
def test_what_is_refused_has_a_place(described: Any, kind: type[TokdfaError], said: str) -> None:
    with pytest.raises(kind, match=said):
        ours(described)


def test_the_grammar_says_its_notation() -> None:
    lark = {"type": "grammar", "syntax": "lark", "grammar": 'start: "a" start | "b"'}
    both = ours({"type": "sequence", "elements": [lark, {"type": "grammar", "grammar": 'root ::= "c" | "d"'}]})
    assert [takes(both, list(text)) for text in (b"abc", b"bd", b"ac", b"b")] == [True, True, False, False]
