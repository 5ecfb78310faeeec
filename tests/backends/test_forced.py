"""Forced bytes and tokens: the tokenizers' own libraries encode whole texts, which must begin with what was forced."""

from __future__ import annotations

import json
import random
import re
from typing import TYPE_CHECKING, Any

import pytest

import tokdfa
from tests.packages import needs, needs_smollm2
from tokdfa.constraint import Choice, JsonSchema, Regex

if TYPE_CHECKING:
    from collections.abc import Sequence

needs_llama3, needs_mistral = needs("llama-models", "tiktoken"), needs("mistral-common", "sentencepiece")
TOKENIZERS = [
    pytest.param("llama3", marks=needs_llama3),
    pytest.param("mistral-v1", marks=needs_mistral),
    pytest.param("smollm2", marks=needs_smollm2),
    "bytes",
]


def forced_along(compiled: Any, tokens: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Along a text, how many tokens were there and which were forced then."""
    matcher, found = compiled.start(), []
    for place, token in enumerate(tokens):
        found.append((place, matcher.forced_tokens()))
        matcher.advance(token)
    return found


NAMED = {
    "type": "object",
    "properties": {"some_long_name": {"type": "integer"}, "another one": {"enum": ["é", "éa", "日本", "日本語"]}},
    "required": ["some_long_name", "another one"],
    "additionalProperties": False,
}
TEXTS = [
    json.dumps({"some_long_name": n, "another one": one}, ensure_ascii=False)
    for n in (0, 12)
    for one in ("é", "日本語")
]


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("backend", ["pushdown_trie", "earley_trie"])
def test_a_text_begins_with_what_is_forced(name: str, backend: str) -> None:
    """Wherever the model is in the tokenizer's own encoding of a text, what is forced is how that goes on."""
    tokenizer = tokdfa.load_tokenizer(name)
    compiled = tokdfa.compile(JsonSchema(NAMED, profile="generation"), tokenizer, backend)
    forced = 0
    for text in TEXTS:
        tokens = tokenizer.encode(text)
        for place, found in forced_along(compiled, tokens):
            found = [token for token in found if token not in tokenizer.vocabulary.end_token_set]
            assert tokens[place : place + len(found)] == found, (text, place)
            forced += len(found)
        assert tokenizer.vocabulary.spell(compiled.start().forced_tokens()).startswith(b'{"some_long_name')
    assert forced > 20


@pytest.mark.parametrize("name", TOKENIZERS)
def test_no_continuation_moves_what_is_forced(name: str) -> None:
    """Of random choices with a common beginning, every text is encoded whole."""
    tokenizer, choose = tokdfa.load_tokenizer(name), random.Random(name)
    pieces = [
        "the ",
        "other",
        "s",
        " ",
        "  ",
        "\n",
        "123",
        "4",
        "'s",
        "naïve",
        "日本",
        "語",
        "é",
        "\u0301",
        "://",
        "x",
        '"',
        '",',
        " an",
    ]
    forced = shorter = 0
    for _ in range(200):
        common = "".join(choose.choices(pieces, k=choose.randint(1, 6)))
        texts = [common + "".join(choose.choices(pieces, k=choose.randint(1, 3))) for _ in range(choose.randint(2, 5))]
        compiled = tokdfa.compile(Choice(texts), tokenizer)
        matcher = compiled.start()
        found = matcher.forced_tokens()
        for text in texts:
            encoded = tokenizer.encode(text)
            if tokenizer.vocabulary.spell(encoded) == text.encode():
                length = min(len(found), len(encoded))  # an end token may be forced, too
                assert encoded[:length] == found[:length], (texts, found)
        assert matcher.forced_bytes().startswith(tokenizer.vocabulary.spell(found)[: len(matcher.forced_bytes())])
        forced += len(found)
        shorter += len(tokenizer.vocabulary.spell(found)) < len(matcher.forced_bytes())
    assert forced > 200
    assert shorter or name == "bytes", "no border was ever moved"


@pytest.mark.parametrize("name", TOKENIZERS)
def test_proper_masks_force_the_same(name: str) -> None:
    """Where proper masks have one bit, the oracle: what all tokenizations share is what the tokenizer writes."""
    tokenizer = tokdfa.load_tokenizer(name)
    for pattern in ("(some_long_name: [0-9]+|some_long_night)!", "a{30}b{3,5}", "naïve (日本|日語)[a-z]"):
        any_way = tokdfa.compile(Regex(pattern), tokenizer).start().forced_tokens()
        proper = tokdfa.compile(Regex(pattern), tokenizer, proper=True).start().forced_tokens()
        assert any_way == proper[: len(any_way)]
        assert len(any_way) >= len(proper) - 2, pattern  # borders that only some continuations move


def test_limits_and_ends() -> None:
    compiled = tokdfa.compile(Regex("abc(d|e)"), tokdfa.load_tokenizer("bytes"))
    matcher = compiled.start()
    assert matcher.forced_tokens(0) == []
    assert matcher.forced_tokens(2) == list(b"ab")
    assert matcher.forced_tokens() == list(b"abc")
    for token in b"abcd":
        matcher.advance(token)
    assert matcher.forced_tokens() == [256]
    matcher.advance(256)
    assert (matcher.forced_tokens(), matcher.forced_bytes(), matcher.shortest_completion()) == ([], b"", [])


@needs_llama3
def test_a_limit_on_tokens_is_kept() -> None:
    """With as few tokens as a text needs, forced tokens are those of a text that ends in time."""
    compiled = tokdfa.compile(Choice(["http://example.org/a", "http://example.org/b"]), tokdfa.load_tokenizer("llama3"))
    least = len(compiled.start().shortest_completion())
    matcher = compiled.start(max_tokens=least)
    for token in matcher.forced_tokens():
        assert matcher.allows(token)
        matcher.advance(token)


def test_without_a_tokenizer_masks_alone_force() -> None:
    vocab = tokdfa.Vocabulary([b"a", b"b", b"ab", b"c", b""], [4])
    assert tokdfa.compile(Regex("abc"), vocab).start().forced_tokens() == []
    assert tokdfa.compile(Regex("cab"), vocab).start().forced_tokens() == [3]
    assert re.fullmatch(b"abc", tokdfa.compile(Regex("abc"), vocab).start().forced_bytes())
