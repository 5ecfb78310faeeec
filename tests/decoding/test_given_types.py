"""Types, functions and tools as constraints: pydantic itself says which values their texts have, and pickles hold."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import pickle
from typing import Annotated, Any, Literal, Optional, TypeVar

import numpy as np
import pydantic
import pytest
import typing_extensions

import tokdfa
from tokdfa.errors import ArgumentError, ParseError
from tokdfa.grammar.tool_calls import ToolCall
from tokdfa.grammar.tool_formats import FORMATS
from tokdfa.vocabulary.vocabulary import Vocabulary

BYTES = tokdfa.load_tokenizer("bytes")
END = 256


class Colour(enum.Enum):
    RED, BLUE = "red", "blue"


@dataclasses.dataclass
class Point:
    x: int
    names: list[str] = dataclasses.field(default_factory=list)


class Movie(typing_extensions.TypedDict):
    title: str
    year: typing_extensions.NotRequired[int]


class Recursive(pydantic.BaseModel):
    children: list[Recursive]


def weather(city: str, days: int = 3, *, unit: Literal["C", "F"] = "C") -> str:
    """Not called."""
    raise AssertionError


class Station:
    def read(self, sensor: Colour) -> None:
        raise AssertionError


@pytest.mark.parametrize(
    ("what", "text", "value"),
    [
        (int, "12", 12),
        (bool, "true", True),
        (str, '"a"', "a"),
        (float, "1.5", 1.5),
        (Literal["a", "b"], '"b"', "b"),
        (Colour, '"red"', Colour.RED),
        (Point, '{"x": 1, "names": ["a"]}', Point(1, ["a"])),
        (Movie, '{"title": "Up"}', {"title": "Up"}),
        (list[int], "[1, 2]", [1, 2]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (tuple[int, str], '[1, "a"]', (1, "a")),
        (int | None, "null", None),
        (Optional[int], "3", 3),  # noqa: UP045 - people write it
        (Annotated[int, pydantic.Field(ge=3)], "7", 7),
        (datetime.date, '"2024-02-29"', datetime.date(2024, 2, 29)),
        (Recursive, '{"children": [{"children": []}]}', Recursive(children=[Recursive(children=[])])),
        (weather, '{"city": "Oslo", "unit": "F"}', {"city": "Oslo", "unit": "F"}),
        (Station().read, '{"sensor": "blue"}', {"sensor": Colour.BLUE}),
        (pydantic.TypeAdapter(list[Point]), '[{"x": 2}]', [Point(2)]),
    ],
)
def test_every_type_that_pydantic_takes(what: Any, text: str, value: Any) -> None:
    constrained = tokdfa.constrain(what, BYTES)
    assert constrained.parse(text) == value
    assert constrained.parse([*text.encode(), END, END, 7]) == value
    with pytest.raises(ParseError):
        constrained.parse(list(text[:-1].encode() + b"["))


@pytest.mark.parametrize(
    "what", [Colour, Point, list[int], weather, Recursive, Literal["a"], {"type": "integer"}, "a+"]
)
def test_pickles_parse_as_before(what: Any) -> None:
    constrained = tokdfa.constrain(what, BYTES, leading=" ")
    twin = pickle.loads(pickle.dumps(constrained))
    text = {Colour: '"red"', Point: '{"x": 1}', weather: '{"city": "x"}', Recursive: '{"children": []}'}.get(
        what if callable(what) and not hasattr(what, "__args__") else None,
        '"a"' if what == Literal["a"] else "[1]" if what == list[int] else "1" if isinstance(what, dict) else "aa",
    )
    for given in (text, list(f" {text}".encode()), list(text.encode())):
        assert twin.parse(given) == constrained.parse(given)
    assert twin.end_tokens == constrained.end_tokens


def test_what_cannot_be_pickled_is_named() -> None:
    class Local(pydantic.BaseModel):
        x: int

    with pytest.raises(pickle.PicklingError, match=r"pickle constrained\.compiled"):
        pickle.dumps(tokdfa.constrain(Local, BYTES))


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (tokdfa.Tokenizer, "pydantic has no JSON schema for Tokenizer"),
        (TypeVar, "pydantic has no JSON schema for TypeVar"),
        (print, "the parameter '\\*args' has no name"),
        (len, "the parameter 'obj' has no name"),
        (lambda *a: a, "the parameter '\\*a' has no name"),
    ],
)
def test_types_without_a_schema_are_refused(what: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        tokdfa.constrain(what, BYTES)


def test_answers_are_parsed_from_any_form_of_tokens() -> None:
    constrained = tokdfa.constrain(["yes", "no"], BYTES)
    tokens = list(b"yes")
    for given in (tokens, tuple(tokens), np.array(tokens), "yes", b"yes", [*tokens, END]):
        assert constrained.parse(given) == "yes"
    for wrong in (None, 3, [tokens], np.array([tokens]), [1.5], [1 << 40]):
        with pytest.raises(ArgumentError, match="answer is the generated tokens of one sequence"):
            constrained.parse(wrong)
    for cut in (list(b"ye"), "ye", [], [END]):
        with pytest.raises(ParseError, match="not complete"):
            constrained.parse(cut)
    with pytest.raises(ParseError, match="is not a text of"):
        constrained.parse(list(b"yet"))


def test_a_first_blank_that_a_decoder_dropped() -> None:
    constrained = tokdfa.constrain([" a", " ab"], BYTES)
    assert (constrained.parse("ab"), constrained.parse(" ab")) == (" ab", " ab")
    with pytest.raises(ParseError):
        constrained.parse("b")
    with pytest.raises(ParseError):
        constrained.parse(list(b"ab"))


def test_the_order_of_members_is_named() -> None:
    schema = {"properties": {"a": {"type": "integer"}, "b": {}, "c": {}}, "required": ["a", "c"], "type": "object"}
    constrained = tokdfa.constrain({**schema, "additionalProperties": False}, BYTES)
    assert constrained.parse(list(b'{"a": 1, "c": 2, "b": 3}')) == {"a": 1, "b": 3, "c": 2}
    with pytest.raises(ParseError, match=r"members come in the order of the schema's properties.*order='any'"):
        constrained.parse(list(b'{"b": 1, "a": 2, "c": 3}'))
    anyhow = tokdfa.constrain({**schema, "additionalProperties": False}, BYTES, order="any")
    assert anyhow.parse(list(b'{"b": 1, "a": 2, "c": 3}')) == {"a": 2, "b": 1, "c": 3}


@pytest.mark.parametrize(
    ("text", "after", "token"),
    [
        ('{"a": 1, "b": 9}', '{"a": 1, "b": ', "9"),
        ('{"a":1, "b": 2}', '{"a":', "1"),
        ('{"a": 1, "c', '{"a": 1, "', "c"),
    ],
)
def test_the_order_is_named_only_where_it_is_to_blame(text: str, after: str, token: str) -> None:
    members = {"a": {"type": "integer"}, "b": {"type": "integer", "maximum": 5}}
    schema = {"type": "object", "properties": members, "required": ["a", "b"], "additionalProperties": False}
    with pytest.raises(ParseError) as caught:
        tokdfa.constrain(schema, BYTES).parse(list(text.encode()))
    assert f"after {after!r}, {token!r} is not allowed\n" in str(caught.value)
    assert "max_new_tokens" not in str(caught.value)
    assert str(caught.value).count(text) == 1


@pytest.mark.parametrize(
    ("text", "is_cut"),
    [
        *((text, True) for text in ('{"a": 1', '{"a', '{"a": tr', '{"a": "\\u12', '{"a": -', '{"a": 1.', "")),
        *((text, False) for text in ('{"a": 1]', '{"a": x}', '{"a": 1}<|end|>', "a spider: {}", '{"a": "\n"}')),
    ],
)
def test_more_tokens_are_advised_for_beginnings_only(text: str, is_cut: bool) -> None:
    with pytest.raises(ParseError, match="max_new_tokens" if is_cut else "skip_special_tokens"):
        tokdfa.constrain({"type": "object"}, BYTES).parse(text)


def test_choices_that_are_no_text_are_read_as_bytes() -> None:
    constrained = tokdfa.constrain([b"\xff", b"a\xfe", "b"], BYTES)
    for given in (b"\xff", [255], np.array([255, 256])):
        assert constrained.parse(given) == b"\xff"
    assert (constrained.parse(b"a\xfe"), constrained.parse("b"), constrained.parse(b"b")) == (b"a\xfe", "b", "b")
    for wrong in (b"\xfe", b"a\xff", "\ud800"):
        with pytest.raises(ParseError, match="is not allowed"):
            constrained.parse(wrong)
    lacking = tokdfa.Vocabulary([b"a", b""], [1])
    with pytest.raises(ParseError, match="no tokens spell it"):
        tokdfa.constrain("a", lacking).parse(b"\xff")


TOOLS = [
    {"name": "f", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}},
    {"type": "function", "function": {"name": "f_more", "parameters": None}},
]
HARD = '} </tool_call>", "name": "f"'


def written(format_name: str, calls: list[ToolCall]) -> str:
    """Calls as the description of a format has them, with free text around."""
    made = FORMATS[format_name]

    def plain(text: str) -> str:
        import re

        return re.sub("⟦.*?⟧", "", text)

    each = [
        plain(made.call).replace("NAME", call.name).replace("ARGUMENTS", json.dumps(call.arguments)) for call in calls
    ]
    if made.opening:
        return "hi " + plain(made.opening) + made.between.join(each) + made.closing
    return "hi " + "".join(each)


@pytest.mark.parametrize("format_name", FORMATS)
def test_calls_of_tools_are_read(format_name: str) -> None:
    vocabulary = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], end_tokens=[END])
    constrained = tokdfa.constrain(tokdfa.tools(format_name, TOOLS, vocabulary), vocabulary)
    calls = [ToolCall("f", {"q": HARD}), ToolCall("f_more", {}), ToolCall("f", {"q": ""})]
    text = written(format_name, calls)
    assert constrained.parse(list(text.encode())) == constrained.parse(text) == calls
    assert constrained.parse("no call at all") == []
    for cut in range(len(text) - 12, len(text) - len(FORMATS[format_name].closing)):
        try:
            found = constrained.parse(list(text[:cut].encode()))
        except ParseError:
            continue
        assert found == calls[: len(found)], "a part of a call is none"


def test_markers_of_calls_may_be_special_tokens() -> None:
    vocabulary = Vocabulary(
        [*(bytes([byte]) for byte in range(256)), b"", b"", b""], [END], {257: "<tool_call>", 258: "</tool_call>"}
    )
    constrained = tokdfa.constrain(tokdfa.tools("hermes", TOOLS, vocabulary), vocabulary)
    call = b'\n{"name": "f", "arguments": {"q": "x"}}\n'
    assert constrained.parse([257, *call, 258, END]) == [ToolCall("f", {"q": "x"})]
    # which a decoder that skips special tokens loses
    assert constrained.parse(call.decode()) == []


def test_a_text_before_the_answer() -> None:
    """A vocabulary with tokens that reach across: the masks are those of the choices written out."""
    vocabulary = Vocabulary([b"y", b"n", b"o", b" ", b" y", b" no", b"no", b""], [7])
    led, both = tokdfa.constrain(["y", "no"], vocabulary, leading=" "), tokdfa.Choice(["y", "no", " y", " no"])
    other = tokdfa.compile(both, vocabulary)

    def same(one: Any, two: Any, depth: int) -> int:
        masks = tokdfa.allocate_mask(vocabulary.size, 2)
        for matcher, mask in zip((one, two), masks, strict=True):
            matcher.fill_mask(mask)
        assert masks[0].tolist() == masks[1].tolist()
        assert (one.can_end(), one.is_finished()) == (two.can_end(), two.is_finished())
        met = 1
        if one.is_finished() or not depth:
            return met
        for token in tokdfa.mask_to_ids(masks[0]).tolist():
            for matcher in (one, two):
                matcher.advance(token)
            assert one.fork().tokens == one.tokens
            met += same(one.fork(), two.fork(), depth - 1)
            for matcher in (one, two):
                matcher.rollback(1)
        return met

    assert same(led.start(), other.start(), 5) > 10
    assert led.parse([5, 7]) == led.parse([6]) == led.parse([3, 6]) == led.parse(" no") == "no"
    assert led.start().shortest_completion() == [0]
    for most in (1, 2):
        assert same(led.start(max_tokens=most), other.start(max_tokens=most), 4) > 3
    matcher = led.start()
    matcher.advance(3)
    assert pickle.loads(pickle.dumps(matcher)).tokens == (3,)
    assert led.start().forced_bytes() == b""
