"""JSON schemas with `earley_trie`: the masks of `pushdown_trie`, whichever way they are made."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.backends.grammar_walks import tokenizer_of
from tests.json_schema.test_lower import CASES, REFUSED
from tests.walks import mask_of, takes, walk_along
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import JsonSchema
from tokdfa.errors import EmptyLanguageError, LimitExceeded, OptionError, SchemaUnsupported
from tokdfa.vocabulary.vocabulary import Vocabulary

TAKEN = [case for case in CASES if case.name not in REFUSED]
#: Every byte, and tokens that begin or end amid names, strings, numbers and punctuation.
PIECES = (
    '{"', '":', '": ', '", "', '"}', "[[", "]]", "},{", '{"a":', "], [", "null", "tru", "12", "0.5", "e+1", "-1", "\\u",
    "\\u00", "0061", '\\"', "é", "ame", '"na', "id", '"id":', "  ", "\n  ", ",\n", "abc", "x" * 20,
)  # fmt: skip
SMALL = Vocabulary(
    [*(bytes([byte]) for byte in range(256)), *map(str.encode, PIECES), b""], end_tokens=[256 + len(PIECES)]
)


def compiled_with(
    backend: str, schema: Any, vocab: Vocabulary, spelling: dict[str, Any] | None = None, **options: Any
) -> Any:
    return create_backend(backend, vocab, **options).compile(JsonSchema(schema, **(spelling or {})))


def walk_all(every: list[Any], vocab: Vocabulary, planned: list[int], steps: int, draw: random.Random) -> int:
    return walk_along([compiled.start() for compiled in every], vocab, planned, steps, draw, stray=0.05)


@pytest.mark.parametrize("case", TAKEN, ids=lambda case: case.name)
def test_masks_are_pushdown_tries(case: Any) -> None:
    """On all schemas of the corpus; one walk begins with a valid instance, byte by byte."""
    draw = random.Random(case.name)
    every = [compiled_with(name, case.schema_text, SMALL) for name in ("earley_trie", "pushdown_trie")]
    planned = list(draw.choice([test.text for test in case.tests if test.valid]).encode())
    assert walk_all(every, SMALL, planned, 60, draw) + walk_all(every, SMALL, [], 20, draw) > 2


@pytest.mark.parametrize("case", TAKEN[::9], ids=lambda case: case.name)
def test_masks_are_pushdown_tries_on_a_real_vocabulary(case: Any) -> None:
    tokenizer, draw = tokenizer_of("mistral-v1"), random.Random(case.name)
    every = [compiled_with(name, case.schema_text, tokenizer.vocabulary) for name in ("earley_trie", "pushdown_trie")]
    for text in [test.text for test in case.tests if test.valid][:2]:
        walk_all(every, tokenizer.vocabulary, tokenizer.encode(text), 24, draw)


def test_no_dead_ends_where_bytes_are_missing() -> None:
    """The vocabulary has no 3, no e and no backslash; n begins no null, and t nothing but true."""
    tokens = [*(bytes([byte]) for byte in b'{":,}.12abn'), b'{"a"', b"12", b"tr", b"ue", b"}}", b""]
    vocab = Vocabulary(tokens, end_tokens=[len(tokens) - 1])
    numbers = {"type": "integer", "minimum": 12, "maximum": 40}
    schema = {"properties": {"a": numbers, "b": {"type": ["null", "boolean", "number"]}}}
    closed = {**schema, "type": "object", "additionalProperties": False}
    every = [compiled_with(name, closed, vocab) for name in ("earley_trie", "pushdown_trie")]
    draw = random.Random(3)
    for _ in range(30):
        walk_all(every, vocab, [], 25, draw)
    matcher = every[0].start()
    for token in (tokens.index(b'{"a"'), tokens.index(b":")):
        matcher.advance(token)
    assert [tokens[token] for token in mask_of(matcher)] == [b"1", b"2", b"12"]


def test_names_that_may_not_come_twice() -> None:
    """Strategies with and without a stack remember the same names."""
    schema = {"type": "object", "patternProperties": {"^[ab]$": {"type": "null"}}, "additionalProperties": False}
    options = {"duplicates": "refused", "max_nesting": 1, "whitespace": "compact"}
    names = ("pushdown_trie", "earley_trie", "token_index", "brute_force")
    every = [compiled_with(name, schema, SMALL, options) for name in names]
    draw = random.Random(6)
    assert walk_all(every, SMALL, list(rb'{"b":null,"\u0061":null}'), 40, draw) > 20
    for _ in range(5):
        walk_all(every, SMALL, [], 40, draw)
    for compiled in every:
        matcher = compiled.start()
        for byte in b'{"b":null,"':
            matcher.advance(byte)
        assert not matcher.allows(ord("b"))
        assert matcher.allows(ord("a"))
    for name in names[:2]:  # their matchers remember undeclared names, however many
        assert not takes(compiled_with(name, {"type": "object"}, SMALL, options).start(), '{"c":1,"c"')
    for name in names[2:]:
        with pytest.raises(SchemaUnsupported, match=r"additionalProperties at #: .* come twice"):
            compiled_with(name, {"type": "object"}, SMALL, options)


def test_refusals() -> None:
    with pytest.raises(EmptyLanguageError):
        compiled_with("earley_trie", False, SMALL)
    with pytest.raises(OptionError, match="whitespace_pattern"):
        compiled_with("earley_trie", True, SMALL, {"whitespace_pattern": "[ /]*"})
    many = {"properties": {"list": {"type": "array", "items": {"type": "null"}, "maxItems": 5_000}}}
    with pytest.raises(LimitExceeded, match="#/properties/list") as caught:
        compiled_with("earley_trie", many, SMALL, max_instructions=2_000)
    assert caught.value.limit == "max_instructions"
    matcher = compiled_with("earley_trie", many, SMALL, max_instructions=40_000).start()
    for byte in json.dumps({"list": [None] * 5}).encode():
        matcher.advance(byte)
    assert matcher.can_end()
