"""Items that must differ: masks against the same language with its values as states, and texts against `jsonschema`."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

import tokdfa
from tests.json_schema.schemas import library_validator
from tokdfa.backends import unique_items
from tokdfa.backends.pushdown_trie.strategy import PushdownTrie
from tokdfa.backends.unique_items import UniqueItems, UniqueItemsMatcher
from tokdfa.constraint import JsonSchema
from tokdfa.errors import EmptyLanguageError, SchemaUnsupported, TokenRefused
from tokdfa.json_schema import array_states
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy as np

LONG = [
    b'","',
    b'["',
    b'"]',
    b'a"',
    b"b,",
    b"1,",
    b",1",
    b"0,0",
    b'["a","a"',
    b'["a","b"',
    b"\\u0061",
    b'"a","b","a"',
    b"true,",
]
VOCAB = Vocabulary([*(bytes([byte]) for byte in range(256)), *LONG, b""], end_tokens=[256 + len(LONG)])
END = 256 + len(LONG)
BLANKS, PLAIN = set(b" \t\n\r"), set(b'",]}[01ab:')


def matcher_of(schema: Any, **options: Any) -> Any:
    return PushdownTrie(VOCAB).compile(JsonSchema(schema, **options)).start()


def unique(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, "uniqueItems": True, **more}


def mask_of(matcher: Any) -> np.ndarray[Any, Any]:
    out = tokdfa.allocate_mask(VOCAB.size)
    matcher.fill_mask(out)
    return out


#: A language of few values that is said without listing them, and the list.
TWINS: list[tuple[Any, list[Any]]] = [
    ({"type": "string", "pattern": "^(a|b|bb)$"}, ["a", "b", "bb"]),
    ({"type": "string", "pattern": "^b{0,3}$"}, ["", "b", "bb", "bbb"]),
    ({"type": "integer", "minimum": 0, "maximum": 120, "multipleOf": 20}, [0, 20, 40, 60, 80, 100, 120]),
    ({"type": "integer", "minimum": 1, "maximum": 100, "multipleOf": 100}, [100]),
    (
        {
            "type": ["string", "boolean", "null", "integer"],
            **{"pattern": "^a?$", "minimum": 0, "maximum": 110, "multipleOf": 11},
        },
        ["", "a", True, False, None, *range(0, 111, 11)],
    ),
]  # fmt: skip


@pytest.mark.parametrize("more", [{}, {"minItems": 2}, {"maxItems": 2}], ids=str)
@pytest.mark.parametrize(("said", "listed"), TWINS, ids=lambda one: str(one)[:40])
def test_masks_are_those_of_states(said: Any, listed: list[Any], more: dict[str, int]) -> None:
    if more.get("minItems", 0) > len(listed):
        with pytest.raises(EmptyLanguageError):
            matcher_of(unique(said, **more), numbers="natural")
        return
    draw, steps = random.Random(str(said)), 0
    for _ in range(12):
        one = matcher_of(unique(said, **more), numbers="natural")
        other = matcher_of(unique({"enum": listed}, **more), numbers="natural")
        assert isinstance(one, UniqueItemsMatcher)
        assert not isinstance(other, UniqueItemsMatcher)
        for _ in range(40):
            mask = mask_of(one)
            assert (mask == mask_of(other)).all(), one.tokens
            tokens = tokdfa.mask_to_ids(mask).tolist()
            assert all(one.allows(token) == (token in tokens) for token in draw.sample(range(VOCAB.size), 30))
            if not tokens:
                break
            token = draw.choice([token for token in tokens if token not in BLANKS] or tokens)
            one.advance(token)
            other.advance(token)
            steps += 1
        assert one.is_finished() or steps
    assert steps > 50


TEXTS: list[Any] = [
    unique({"type": "string"}),
    unique({"type": "string", "maxLength": 1}, minItems=3),
    unique({"type": "string", "format": "date"}),
    unique({"type": "integer"}, minItems=2),
    unique({"type": "number"}, minItems=2),
    unique({"type": ["null", "boolean", "number", "string"]}, minItems=3),
    {"type": "object", "properties": {"a": unique({"type": "string"}), "b": {"type": "array"}}, "required": ["a", "b"]},
    {"type": "array", "items": unique({"type": "integer", "minimum": 0}, minItems=2), "minItems": 1},
    {"type": "object", "additionalProperties": unique({"type": "string", "pattern": "^[ab]+$"}, minItems=2)},
    {"anyOf": [{"type": "object", "properties": {"a": unique({"type": "string"})}}, unique({"type": "integer"})]},
]  # fmt: skip


@pytest.mark.parametrize("schema", TEXTS, ids=lambda schema: json.dumps(schema)[:60])
def test_walks_are_valid_and_have_no_dead_end(schema: Any) -> None:
    library, finished = library_validator(schema), 0
    compiled = PushdownTrie(VOCAB).compile(JsonSchema(schema))
    assert isinstance(compiled, UniqueItems)
    for seed in range(8):
        draw, matcher = random.Random(seed), compiled.start()
        for step in range(120):
            tokens = tokdfa.mask_to_ids(mask_of(matcher)).tolist()
            assert tokens, b"".join(map(VOCAB.token_bytes, matcher.tokens))
            if END in tokens and step > 30:
                matcher.advance(END)
                text = b"".join(map(VOCAB.token_bytes, matcher.tokens)).decode()
                assert library.is_valid(json.loads(text)), text
                finished += 1
                break
            few = [token for token in tokens if token in PLAIN or token >= 256]
            token = draw.choice(few if few and draw.random() < 0.9 else tokens)
            matcher.advance(token if token != END else draw.choice(tokens))
            if matcher.is_finished():
                break
    assert finished or "minItems" in str(schema) or "date" in str(schema)


def takes(matcher: Any, text: bytes) -> bool:
    try:
        for byte in text:
            matcher.advance(byte)
    except TokenRefused:
        return False
    return True


def test_equality_is_of_values() -> None:
    matcher = matcher_of(unique({"type": ["number", "string", "boolean"]}))
    for text, repetitions in (
        (b"[1,", (b"1.0,", b"1]", b"1.00]")),
        (b'"a",', (b'"\\u0061"', b'"a"')),
        (b"true,", (b"true",)),
        (b"-0,", (b"0]", b"0.0,", b"-0.0]")),
        (b'"1",', (b'"1"',)),
        (b'"true"', ()),
    ):
        for byte in text:
            matcher.advance(byte)
        for repetition in repetitions:
            assert not takes(matcher.fork(), repetition)
    assert matcher.allows(ord("]"))


def test_fork_and_rollback() -> None:
    matcher = matcher_of(unique({"type": "string"}))
    for byte in b'["a","b"':
        matcher.advance(byte)
    before, fork = mask_of(matcher), matcher.fork()
    for byte in b',"c"]':
        matcher.advance(byte)
    matcher.advance(END)
    assert matcher.is_finished()
    assert (mask_of(fork) == before).all()
    matcher.rollback(6)
    assert (mask_of(matcher) == before).all()
    for byte in b',"b':
        matcher.advance(byte)
    assert not matcher.allows(ord('"'))
    assert matcher.allows(ord("b"))


def test_arrays_are_no_longer_than_what_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unique_items, "MAX_REMEMBERED", 2)
    monkeypatch.setattr(array_states, "MAX_REMEMBERED", 2)
    matcher = matcher_of(unique({"type": "integer"}))
    for byte in b"[1,2":
        matcher.advance(byte)
    assert not matcher.allows(ord(","))
    with pytest.raises(SchemaUnsupported, match="at most 2 items"):
        matcher_of(unique({"type": "integer"}, minItems=3))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (unique({"type": "object"}), "not arrays or objects"),
        (unique({"type": "string"}, contains={"minLength": 2}), "contains"),
        (unique({"type": "string"}, prefixItems=[{"type": "string"}]), "prefixItems"),
        ({"anyOf": [unique({"type": "string"}), {"type": "array", "minItems": 2}]}, "depends on what else"),
        ({"anyOf": [{"properties": {"a": unique({"type": "string"})}}, {"required": ["b"]}]}, "depends on what else"),
        (unique({"type": "string"}, **{"not": {"uniqueItems": True}}), "cannot be demanded"),
    ],
    ids=str,
)
def test_what_is_refused(schema: Any, reason: str) -> None:
    with pytest.raises((SchemaUnsupported, EmptyLanguageError), match=reason):
        matcher_of({"type": ["array", "object"], **schema})
