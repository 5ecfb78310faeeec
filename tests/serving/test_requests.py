"""Requests of serving engines as constraints."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tokdfa
from tokdfa.errors import ArgumentError, GrammarSyntaxError, OptionError, UnknownNameError
from tokdfa.serving.requests import KINDS, read_request

TAGS = {
    "structures": [
        {"begin": "<call=a>", "schema": {"type": "integer"}, "end": "</call>"},
        {"begin": "<call=b>", "schema": {"type": "boolean"}, "end": "</call>"},
    ],
    "triggers": ["<call="],
}
#: kind, text, texts that are of it, and texts that are not even the beginning of one, by their last byte.
CASES = [
    ("json", '{"type": "integer"}', ["12", "-3"], ["-0", "a"]),
    ("json_object", "", ['{"a": 1}', "{}"], ["[", "1"]),
    ("regex", "a+b?", ["aa", "ab"], ["b", "abb"]),
    ("choice", '["yes", "no"]', ["yes", "no"], ["yn", "x"]),
    ("grammar", 'start: "a" start?', ["aaa"], ["b"]),
    ("ebnf", 'root ::= "a" root | "b"', ["aab", "b"], ["bb"]),
    ("grammar", '# a comment: x\n# and another\n root\n ::= "a" root | "b"', ["aab", "b"], ["bb"]),
    ("grammar", 'start: A "::=" B\nA: /[a-z]+/\nB: /[a-z]+/\n', ["a::=b"], ["a:="]),
    ("ebnf", 'start: "a" // not ::=\n', ["a"], ["b"]),
    ("grammar", '// root ::= "x"\n# root ::= "y"\nstart: "a"\n', ["a"], ["x", "y"]),
    ("grammar", '?start: A\nA: "a ::= b" | /c::=/', ["a ::= b", "c::="], ["a ::= c"]),
    (
        "structural_tag",
        json.dumps(TAGS),
        ["", "<call=a>12</call>x", "<call <call=b>true</call>"],
        ["<call=c", "<call=a>t"],
    ),
]


@pytest.mark.parametrize(("kind", "text", "members", "others"), CASES)
def test_a_request_is_its_constraint(kind: str, text: str, members: list[str], others: list[str]) -> None:
    compiled = tokdfa.compile(read_request(kind, text), tokdfa.load_tokenizer("bytes"))
    for member in members:
        matcher = compiled.start()
        for token in member.encode():
            matcher.advance(token)
        assert matcher.can_end(), member
    for other in others:
        matcher = compiled.start()
        for token in other.encode()[:-1]:
            matcher.advance(token)
        assert not matcher.allows(other.encode()[-1]), other


def test_what_says_no_more_than_its_kind_is_taken() -> None:
    assert len({read_request("json_object", text) for text in ("", "{}", '{"type": "object"}', "$$ANY$$")}) == 1
    assert read_request("choice", ["yes", "no"]) == read_request("choice", '["yes", "no"]')


def test_every_kind_has_a_case() -> None:
    assert set(KINDS) == {case[0] for case in CASES}


@pytest.mark.parametrize(
    ("kind", "text", "error", "message"),
    [
        ("jsn", "{}", UnknownNameError, "did you mean 'json'"),
        ("json_schema", "{}", UnknownNameError, "write 'json' for a schema"),
        ("json", "{", OptionError, "not JSON"),
        ("json_object", '{"type": "integer"}', ArgumentError, "takes no schema"),
        ("structural_tag", TAGS, ArgumentError, "the text of structural_tag takes a str"),
        ("choice", "yes", ArgumentError, "choice: its text is not JSON"),
        ("choice", '{"a": 1}', ArgumentError, "JSON array"),
        ("ebnf", 'root ::= ("a"', GrammarSyntaxError, "line 1, column 10"),
        ("structural_tag", "{}", ArgumentError, 'write {"type": "structural_tag"'),
        ("structural_tag", json.dumps({**TAGS, "triggers": ["<x"]}), ArgumentError, "no trigger begins '<call=a>'"),
        ("structural_tag", json.dumps({**TAGS, "triggers": "<call="}), ArgumentError, "triggers is a list of texts"),
        ("structural_tag", json.dumps({**TAGS, "triggers": [None]}), ArgumentError, "triggers takes a str"),
    ],
)
def test_errors(kind: str, text: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_request(kind, text)
