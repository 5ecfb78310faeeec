"""Texts with more rows than one set of tables holds: masks as ever, rollbacks to rows that are gone, forks."""

from __future__ import annotations

import random
from typing import Any

import pytest

import tokdfa
from tests.walks import mask_of
from tokdfa.backends.pushdown_trie.machine import Machine

BYTES = tokdfa.load_tokenizer("bytes").vocabulary
#: Its least automaton has 2^21 states.
PATTERN = "[ab]*a[ab]{20}"
END = 256
GRAMMAR = tokdfa.Grammar('start: "<" A ">"\nA: /' + PATTERN + "/\n")


def may_end(text: bytes) -> bool:
    return text[-21:-20] == b"a"


def compiled(constraint: tokdfa.Constraint, **options: Any) -> tokdfa.backends.CompiledConstraint:
    return tokdfa.compile(constraint, BYTES, backend="pushdown_trie", table_mb=1, **options)


def test_a_text_of_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    carried = []
    carry = Machine.carry
    monkeypatch.setattr(Machine, "carry", lambda *given: carried.append(0) or carry(*given))
    matcher, draw, text = compiled(tokdfa.Regex(PATTERN)).start(), random.Random(0), bytearray()
    for step in range(6_000):
        if not step % 97:
            assert mask_of(matcher) == [97, 98, *([END] if may_end(text) else [])]
        byte = draw.choice(b"ab")
        matcher.advance(byte)
        text.append(byte)
    assert carried


@pytest.mark.parametrize("count", [1, 70, 3_000, 5_990])
def test_rollback_to_rows_that_are_gone(count: int) -> None:
    matcher, draw = compiled(tokdfa.Regex(PATTERN)).start(), random.Random(1)
    text = bytes(draw.choice(b"ab") for _ in range(6_000))
    for byte in text:
        matcher.advance(byte)
    twin = matcher.fork()
    matcher.rollback(count)
    kept = text[:-count]
    for byte in b"ab" * 15:
        assert mask_of(matcher) == [97, 98, *([END] if may_end(kept) else [])]
        matcher.advance(byte)
        kept += bytes([byte])
    matcher.rollback(20)
    assert mask_of(matcher) == [97, 98, *([END] if may_end(kept[:-20]) else [])]
    assert mask_of(twin) == [97, 98, *([END] if may_end(text) else [])]


@pytest.mark.parametrize(
    ("constraint", "options", "begin"),
    [
        (GRAMMAR, {"lexer": "any"}, b"<"),
        (GRAMMAR, {"lexer": "longest"}, b"<"),
        (
            tokdfa.JsonSchema({"type": "array", "items": {"type": "array", "items": {"pattern": f"^{PATTERN}$"}}}),
            {},
            b'[["',
        ),
        (tokdfa.JsonSchema({"patternProperties": {f"^{PATTERN}$": {}}, "additionalProperties": False}), {}, b'{"'),
    ],
)
def test_rows_with_stacks(constraint: tokdfa.Constraint, options: dict[str, Any], begin: bytes) -> None:
    matcher, draw, text = compiled(constraint, **options).start(), random.Random(2), bytearray()
    for byte in begin:
        matcher.advance(byte)
    closing = b'>"'[begin != b"<"]
    for step in range(4_000):
        if not step % 97:
            assert (closing in mask_of(matcher)) == may_end(text)
        byte = draw.choice(b"ab")
        matcher.advance(byte)
        text.append(byte)
