"""Masks of schemas by divisions against walks of the whole trie: counted strings, names among other strings."""

import random

import pytest

from tests.walks import walk_along
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
def test_masks_are_those_of_a_walk(schema):
    """Along a text, with slices where a state reads one."""
    vocab = load_tokenizer("mistral-v1").vocabulary
    ways = {}, {"partition": False}
    matchers = [PushdownTrie(vocab, shared=False, **way).compile(JsonSchema(schema)).start() for way in ways]
    text = b'{"ab_1": 12, "c": 3}' if "patternProperties" in schema else b'"abc def@x.yz"'
    single = [vocab.trie.prefixes_of(bytes([byte]))[0] for byte in text]
    assert walk_along(matchers, vocab, single, len(text), random.Random(0)) > 3
