"""Masks of schemas by partitions against walks of the whole trie: counted strings, names among other strings."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokdfa import mask as masks
from tokdfa.backends.pushdown_trie.strategy import PushdownTrie
from tokdfa.constraint import JsonSchema
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

LIKELY = [bytes([byte]) for byte in b'ab"{:,1\\']


@st.composite
def spelled_vocabularies(draw):
    """All bytes, and tokens in which names of `a`, `b` and quotes end and go on, with escapes."""
    pieces = st.sampled_from(
        ["a", "b", '"', "\\", "\\u006", "\\u0062", "1", '\\"', ":", ",", " ", "}", '":', '","', '{"']
    )
    words = draw(st.lists(st.lists(pieces, min_size=2, max_size=5).map("".join), max_size=60))
    return Vocabulary(
        [*(bytes([byte]) for byte in range(256)), *(word.encode() for word in words), b""], [256 + len(words)]
    )


@settings(max_examples=40)
@given(spelled_vocabularies(), st.data())
def test_names_among_other_strings(vocab, data):
    """A token that ends a name is decided by what follows the name, or by its being there already."""
    names = data.draw(st.lists(st.text('ab"', max_size=3), max_size=4, unique=True))
    other = data.draw(st.sampled_from([True, {"type": "integer"}, {"const": "b"}]))
    schema = {
        "type": "object",
        "properties": {key: {"type": "integer"} for key in names},
        "required": data.draw(st.lists(st.sampled_from(names), max_size=2, unique=True)) if names else [],
        "additionalProperties": other,
    }
    constraint = JsonSchema(json.dumps(schema), order=data.draw(st.sampled_from(["schema", "any"])))
    ways = {"partition": False}, {}
    compiled = [PushdownTrie(vocab, shared=False, **way).compile(constraint) for way in ways]
    matchers, out = [each.start() for each in compiled], [masks.allocate_mask(vocab.size) for _ in ways]
    for _ in range(12):
        for matcher, mask in zip(matchers, out, strict=True):
            matcher.fill_mask(mask)
        assert np.array_equal(out[0], out[1])
        tokens = [token for token in masks.mask_to_ids(out[0]).tolist() if token not in vocab.end_token_set]
        likely = [token for token in tokens if vocab.token_bytes(token) in LIKELY or token >= 256]
        if not tokens:
            break
        token = data.draw(st.sampled_from(likely or tokens))
        for matcher in matchers:
            matcher.advance(token)


SLICED = [
    {"type": "string", "pattern": "^[a-z0-9_-]{1,60}$"},
    {"anyOf": [{"type": "string", "pattern": "^[A-Za-z ]+$"}, {"type": "string", "minLength": 3}]},
    {"type": "object", "patternProperties": {"^\\w+$": {"type": "integer"}}, "additionalProperties": False},
    {"anyOf": [{"const": "abc"}, {"type": "string", "pattern": "^a.*c$"}, {"type": "string", "format": "email"}]},
]


@pytest.mark.parametrize("schema", SLICED)
def test_masks_with_slices_are_those_without(schema):
    """Along a text, and equal to a plain walk's."""
    vocab = load_tokenizer("mistral-v1").vocabulary
    ways = {}, {"slices": False}, {"partition": False}
    matchers = [PushdownTrie(vocab, shared=False, **way).compile(JsonSchema(schema)).start() for way in ways]
    out = [masks.allocate_mask(vocab.size) for _ in ways]
    text = '{"ab_1": 12, "c": 3}' if "patternProperties" in schema else '"abc def@x.yz"'
    for byte in text.encode():
        for matcher, mask in zip(matchers, out, strict=True):
            matcher.fill_mask(mask)
        assert (out[0] == out[1]).all()
        assert (out[0] == out[2]).all()
        tokens = masks.mask_to_ids(out[0]).tolist()
        token = next((token for token in tokens if vocab.token_bytes(token) == bytes([byte])), None)
        if token is None:
            break
        for matcher in matchers:
            matcher.advance(token)
