"""Grammars from parts and tags in free text, against `re` on finished texts; which masks engines make of them."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.cfg_recogniser import CfgRecogniser
from tests.strategies import short_texts
from tests.walks import mask_of
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Grammar
from tokdfa.errors import ArgumentError, OptionError, SchemaError, UnknownNameError
from tokdfa.grammar.lark_reader import read_grammar
from tokdfa.grammar.parts import (
    Tag,
    choice,
    imported,
    json,
    regex,
    repeat,
    seq,
    special,
    tag,
    tags,
    text,
    text_until,
    text_without,
)
from tokdfa.grammar.tool_formats import FORMATS, ToolFormat, tools
from tokdfa.vocabulary.vocabulary import Vocabulary

ENGINES = ("pushdown_trie", "earley_trie")
LETTERS = Vocabulary([b"a", b"b", b"<", b"ab", b"<a", b"b<", b"a<b", b"<<", b"abba", b""], end_tokens=[9])


def as_regex(members, at_least_one=False, stop_after_first=False, free_text=True):
    """The regex of tags that are (trigger, what follows it as a regex)."""
    triggers = "|".join(re.escape(trigger) for trigger, _ in members)
    free = f"(?:(?!{triggers}).)*" if free_text else ""
    body = f"{free}(?:{'|'.join(re.escape(trigger) + rest for trigger, rest in members)})"
    if stop_after_first:
        return body if at_least_one else f"(?:{body}|{free})"
    return f"(?:{body}){'+' if at_least_one else '*'}{free}"


WAYS = [
    {"at_least_one": first, "stop_after_first": second, "free_text": third}
    for first, second, third in itertools.product((False, True), repeat=3)
]


@st.composite
def members_of_tags(draw, longest=3):
    """Tags whose triggers overlap themselves and each other as they like, but are not inside each other."""
    triggers = draw(st.lists(st.text("ab<", min_size=1, max_size=longest), min_size=1, max_size=3, unique=True))
    triggers = [one for one in triggers if not any(one != other and other in one for other in triggers)]
    rests = st.tuples(st.text("ab<", max_size=1), st.sampled_from(["", "a", "b|<", "[ab]"]), st.text("ab<", max_size=1))
    return [(trigger, draw(rests)) for trigger in triggers]


def made(members, **way):
    found = [
        tag(trigger + begin, regex(content) if content else "", end, trigger=trigger)
        for trigger, (begin, content, end) in members
    ]
    judge = as_regex(
        [(trigger, f"{re.escape(begin)}(?:{content}){re.escape(end)}") for trigger, (begin, content, end) in members],
        **way,
    )
    return tags(*found, **way), re.compile(judge)


@settings(max_examples=30, deadline=None)
@given(members_of_tags(), st.sampled_from(WAYS))
def test_texts_with_tags_are_those_of_a_regex(members, way):
    part, judge = made(members, **way)
    recogniser = CfgRecogniser(read_grammar(Grammar(part)))
    for one in short_texts(5, "ab<"):
        assert recogniser.accepts(one.encode()) == bool(judge.fullmatch(one)), one


@pytest.mark.parametrize("engine", ENGINES)
def test_masks_with_tags_are_those_of_all_texts(engine):
    """Tokens over the border of free text and tags too: a token is allowed if some text goes on with it."""

    @settings(max_examples=25, deadline=None)
    @given(members_of_tags(2), st.sampled_from(WAYS))
    def check(members, way):
        part, judge = made(members, **way)
        options = {"lexer": "any"} if engine == "pushdown_trie" else {}
        compiled = create_backend(engine, LETTERS, **options).compile(Grammar(part))
        accepted = [one for one in short_texts(9, "ab<") if judge.fullmatch(one)]
        begun = {one[:end] for one in accepted for end in range(len(one) + 1)}
        spelled = [LETTERS.token_bytes(token).decode() for token in range(9)]
        agenda = [()]
        while agenda:
            tokens = agenda.pop()
            matcher, before = compiled.start(), "".join(spelled[token] for token in tokens)
            for token in tokens:
                matcher.advance(token)
            fork = matcher.fork()
            # behind these there is room for the rest of a tag
            short = [token for token, one in enumerate(spelled) if len(before + one) <= 4]
            found = [token for token in short if before + spelled[token] in begun]
            mask = mask_of(matcher)
            assert [token for token in mask if token in short] == found, before
            assert (9 in mask) == bool(judge.fullmatch(before)), before
            agenda += [(*tokens, token) for token in found if len(tokens) < 3]
            for token in found[:2]:
                fork.advance(token)
                fork.rollback(1)
            assert mask_of(fork) == mask_of(matcher)

    check()


SPECIAL = Vocabulary(
    [*(bytes([byte]) for byte in range(256)), b"", b"", b"", b"", b""],
    end_tokens=[256],
    special_tokens={256: "<|call|>", 257: "<|channel|>", 258: "<|message|>", 259: "[TOOL_CALLS]", 260: "<think>"},
)


def runs(compiled, pieces):
    """Whether tokens (bytes of a str, or ids) are taken, and the text may end there."""
    matcher = compiled.start()
    for piece in pieces:
        for token in piece.encode() if isinstance(piece, str) else (piece,):
            if not matcher.allows(token):
                return False
            matcher.advance(token)
    return matcher.can_end()


@pytest.mark.parametrize("engine", ENGINES)
def test_special_tokens_are_triggers(engine):
    part = tags(tag(special("<|channel|>"), "x", special("<|message|>")), tag("<b>", json({"type": "null"}), "</b>"))
    compiled = create_backend(engine, SPECIAL).compile(Grammar(part))
    assert runs(compiled, ["hi", 257, "x", 258, " <|channel|>", "<b>null</b>", 257, "x", 258])
    assert not runs(compiled, ["hi", 257, "y"])
    assert not runs(compiled, ["hi", 257, "x"])
    assert not runs(compiled, [258])


@pytest.mark.parametrize("engine", ENGINES)
def test_reason_first_then_answer(engine):
    """What is a trigger elsewhere is text inside a region; the region may begin with a special token."""
    call = tags(tag("<call>", json({"type": "integer"}), "</call>"), at_least_one=True)
    for begin, first in (("<think>", ["<think>"]), (special("<think>"), [260])):
        compiled = create_backend(engine, SPECIAL).compile(Grammar(seq(tag(begin, end="</think>"), call)))
        assert runs(compiled, [*first, "<call>? </thin </think>so <call>12</call>"])
        assert not runs(compiled, [*first, "</think>so "])
        assert not runs(compiled, [*first, "<call>12</call>"])
        assert not runs(compiled, ["<call>12</call>"])


def test_parts_mean_what_they_say():
    part = seq(
        'a\n"\\/é\x00',
        choice("x", text("")),
        repeat(regex("[/]\\/\n?b", "i"), 1, 2),
        imported("m.r"),
        text_without("b"),
    )
    recogniser = CfgRecogniser(read_grammar(Grammar(part, sources={"m": 'r: "r"'})))
    for one in ('a\n"\\/é\x00x//bra', 'a\n"\\/é\x00//\nB//br'):
        assert recogniser.accepts(one.encode()), one
    for one in ('a\n"\\/é\x00x//brb', 'a\n"\\/é\x00r'):
        assert not recogniser.accepts(one.encode()), one
    assert str(part) == part.as_grammar() == Grammar(part).text
    until = CfgRecogniser(read_grammar(Grammar(text_until("ab", "ba"))))
    found = [one for one in short_texts(5, "ab") if until.accepts(one.encode())]
    assert found == [one for one in short_texts(5, "ab") if re.fullmatch("(?:(?!ab|ba).)*(?:ab|ba)", one)]


BAD = {
    "an empty trigger": (lambda: tags(tag("", "x")), OptionError, "trigger ''"),
    "an empty trigger of its own": (lambda: tag("<a>", "x", trigger=""), OptionError, "trigger ''"),
    "no beginning": (lambda: tag("<a>", "x", trigger="a"), OptionError, "starts with"),
    "an end that is lacking": (lambda: tag("<a>"), OptionError, "needs an end"),
    "a begin that is no text": (lambda: tag(regex("a"), "x"), OptionError, "begin is a text"),
    "a tag inside itself": (lambda: tag("<a>", seq("x", tag("<a>", "y")), "<b>"), OptionError, "inside itself"),
    "free text inside": (lambda: tag("<a>", tags(tag("<b>", "y")), "<b>"), OptionError, "swallow"),
    "a trigger in another": (lambda: tags(tag("<ab", "x"), tag("ab", "y")), OptionError, "'<ab' has 'ab' inside"),
    "a tag twice": (lambda: tags(tag("<a>", "x"), tag("<a>", "x")), OptionError, "none twice"),
    "no tags": (tags, OptionError, "one tag"),
    "no tag": (lambda: tags("<a>"), ArgumentError, "not a str"),
    "no part": (lambda: seq(1), ArgumentError, "not an int"),
    "no choice": (choice, OptionError, "at least one"),
    "a stop that is empty": (lambda: text_until("a", ""), OptionError, "empty"),
    "an empty stop": (lambda: text_without("a", ""), OptionError, "empty"),
    "half a character": (lambda: text("\ud800"), OptionError, "UTF-8"),
    "a name without brackets": (lambda: special("[TOOL]"), OptionError, "give its id"),
    "high below low": (lambda: repeat("a", 2, 1), OptionError, "below low"),
    "an import that is none": (lambda: imported("a"), OptionError, "name.rule"),
    "an empty regex": (lambda: regex(""), OptionError, "pattern"),
    "a format that is unknown": (lambda: tools("hermess", [], SPECIAL), UnknownNameError, "'hermes'"),
    "no tools": (lambda: tools("hermes", [], SPECIAL), OptionError, "one tool"),
    "a tool without a name": (lambda: tools("hermes", [{"parameters": {}}], SPECIAL), ArgumentError, "'name'"),
    "a name twice": (lambda: tools("hermes", [{"name": "a"}, {"name": "a"}], SPECIAL), OptionError, "no name twice"),
    "a name with a quote": (lambda: tools("hermes", [{"name": '"'}], SPECIAL), OptionError, "escapes"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused(name):
    make, kind, message = BAD[name]
    with pytest.raises(kind, match=re.escape(message)):
        make()


def test_a_schema_of_a_tool_that_is_refused_has_its_pointer():
    part = tools("hermes", [{"name": "a"}, {"name": "b", "parameters": {"properties": {"x": {"type": "no"}}}}], SPECIAL)
    with pytest.raises(SchemaError, match=r"type at #/properties/x.*line 1, column") as caught:
        create_backend("pushdown_trie", SPECIAL).compile(Grammar(part))
    assert caught.value.pointer == "/properties/x"


@pytest.mark.parametrize("parameters", [None, {}, {"properties": {"x": {"type": "integer"}}}])
def test_arguments_are_an_object(parameters):
    compiled = create_backend("pushdown_trie", SPECIAL).compile(
        Grammar(tools("hermes", [{"name": "f", "parameters": parameters}], SPECIAL))
    )
    matcher = compiled.start()
    for byte in b'<tool_call>\n{"name": "f", "arguments": ':
        matcher.advance(byte)
    assert matcher.allows(ord("{"))
    assert not any(map(matcher.allows, b'5"[tfn'))


# Formats of tools.

TOOLS = [
    {"name": "get", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}},
    {"type": "function", "function": {"name": "stop"}},
]
CALLS = {
    "llama3": ['{"name": "get", "parameters": {"a": 1}}'],
    "llama3_function": ['<function=get>{"a": 1}</function>'],
    "hermes": ['<tool_call>\n{"name": "get", "arguments": {"a": 1}}\n</tool_call>'],
    "mistral": [259, '[{"name": "get", "arguments": {"a": 1}}, {"name": "stop", "arguments": {}}]'],
    "mistral_args": [259, 'get[ARGS]{"a": 1}', 259, "stop[ARGS]{}"],
    "deepseek": [
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get\n```json\n{"a": 1}\n'
        "```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ],
    "deepseek_v31": [
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get<｜tool▁sep｜>{"a": 1}<｜tool▁call▁end｜>'
        "<｜tool▁call▁begin｜>stop<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ],
    "harmony": [257, "commentary to=functions.get <|constrain|>json", 258, '{"a": 1}'],
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("engine", ENGINES)
def test_formats_take_their_calls_and_no_others(engine, name):
    pieces = CALLS[name]
    compiled = create_backend(engine, SPECIAL).compile(Grammar(tools(name, TOOLS, SPECIAL, at_least_one=True)))
    assert runs(compiled, ["Let me see. ", *pieces])
    assert not runs(compiled, ["Let me see. "])
    for wrong in ({'"a": 1': '"a": "1"'}, {"get": "got"}, {'{"a": 1}': "{}"}):
        [(right, other)] = wrong.items()
        broken = [piece.replace(right, other) if isinstance(piece, str) else piece for piece in pieces]
        assert not runs(compiled, ["Let me see. ", *broken]), broken
    stops = create_backend(engine, SPECIAL).compile(Grammar(tools(name, TOOLS, SPECIAL, stop_after_first=True)))
    first = pieces[:2] if name == "mistral_args" else pieces
    assert runs(stops, ["Let me see. ", *first])
    assert not runs(stops, ["Let me see. ", *first, "x"])


def test_harmony_has_other_channels():
    part = tools("harmony", TOOLS, SPECIAL)
    compiled = create_backend("pushdown_trie", SPECIAL).compile(Grammar(part))
    assert runs(compiled, [257, "analysis", 258, "Hm.<|end|><|start|>assistant", *CALLS["harmony"]])
    assert runs(compiled, [257, "final", 258, "Done."])
    assert not runs(compiled, [257, "other", 258, "Done."])


def test_a_format_of_ones_own():
    own = ToolFormat("call NAME with ARGUMENTS.", "call ")
    part = tools(own, TOOLS, SPECIAL, free_text=False, whitespace="compact")
    assert isinstance(tag("a", "b"), Tag)
    compiled = create_backend("pushdown_trie", SPECIAL).compile(Grammar(part))
    assert runs(compiled, ['call get with {"a":1}.call stop with {}.'])
    assert not runs(compiled, ['call get with {"a": 1}.'])
    odd = tools(own, [{"name": "ARGUMENTS"}, {"name": "⟦NAME⟧"}], SPECIAL, free_text=False)
    assert runs(
        create_backend("pushdown_trie", SPECIAL).compile(Grammar(odd)),
        ["call ARGUMENTS with {}.", "call ⟦NAME⟧ with {}."],
    )
