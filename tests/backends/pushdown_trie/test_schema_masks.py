"""Masks of schemas by partitions against walks of the whole trie: counted strings, names among other strings."""

import pytest

from tokdfa import mask as masks
from tokdfa.backends.pushdown_trie.strategy import PushdownTrie
from tokdfa.constraint import JsonSchema
from tokdfa.vocabulary.tokenizers import load_tokenizer

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
