"""Tokens with equal bytes: masks on a vocabulary that has some twice are those on one that has each once.

The contract's laws say so of strategies; here is everything else that reads tokens by their bytes.
"""

from __future__ import annotations

import json as json_texts
import random
from typing import TYPE_CHECKING, Any

import pytest

import tokdfa
from tests.walks import mask_of
from tokdfa.backends.token_healing import HealedConstraint
from tokdfa.constraint import Choice, Grammar, JsonSchema, Regex
from tokdfa.errors import TokenRefused
from tokdfa.grammar.parts import choice, json
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.backends.base import Matcher

LONG = [
    *(b'","', b'["', b'"]', b'a"', b"b,", b"1,", b",1", b'["a","a"', b'{"', b'":', b'": ', b'"a"', b'"a":', b"tru"),
    *(b"<t", b"</", b"a</think>", b"ab", b"bc", "é".encode(), b'", "', b"[1", b"1]", b'"ab', b'abc"', b"}}", b"}]"),
    *(b'{"a"', b'["a",', b"</think>t", b'"]}', b"1}", b"]]", b"null", b'","b","a"'),
]
ONCE = [*(bytes([byte]) for byte in range(256)), *LONG]
SPECIAL = ("<s>", "<e>")


def vocabulary(order: list[int]) -> Vocabulary:
    """The tokens of `ONCE` in an order, an end token and two special ones."""
    count = len(order)
    special = {count + 1: SPECIAL[0], count + 2: SPECIAL[1]}
    return Vocabulary([*(ONCE[token] for token in order), b"", b"", b""], [count], special)


def compiled(constraint: Any, **options: Any) -> Callable[[Vocabulary], Any]:
    return lambda vocab: tokdfa.compile(constraint, vocab, **options)


def limited(constraint: Any, most: int, **options: Any) -> Callable[[Vocabulary], Any]:
    class Limited:
        def __init__(self, vocab: Vocabulary) -> None:
            self.inner = tokdfa.compile(constraint, vocab, **options)

        def start(self) -> Matcher:
            return self.inner.start(max_tokens=most)

    return Limited


def unique(items: dict[str, Any], **more: Any) -> JsonSchema:
    return JsonSchema({"type": "array", "items": items, "uniqueItems": True, **more})


NAMES = {"a": {"type": "integer"}, "ab": {"type": "boolean"}}
OPEN = {"type": "object", "properties": NAMES, "additionalProperties": {"type": "null"}, "required": ["a"]}
FREE = {"type": "object", "minProperties": 2}
COUNTED = {"type": "string", "minLength": 2, "maxLength": 4}
MARKED = Grammar('start: <s> "a" <e> | "ab" start\n')
#: Constraint -> texts that walks start from, up to the first refused token.
CASES: dict[str, tuple[Callable[[Vocabulary], Any], list[bytes]]] = {
    "strings that differ": (compiled(unique({"type": "string"})), [b'["a","a', b'["ab","b", "a', b'["\\u0061",']),
    "few strings that differ": (
        compiled(unique({"type": "string", "pattern": "^(a|b|ab)$"})),
        [b'["a","a', b'["a","b","ab"', b'["ab","a'],
    ),
    "integers that differ": (compiled(unique({"type": "integer"})), [b"[1,1", b"[12,1", b"[1, 1"]),
    "few integers that differ": (
        compiled(unique({"type": "integer", "minimum": 0, "maximum": 2})),
        [b"[1,2,0", b"[1,1", b"[1,"],
    ),
    "arrays that differ": (compiled(unique({"type": "array"})), [b'[["a"],["a"', b"[[],[", b"[[1],[1"]),
    "objects that differ": (compiled(unique({"type": "object"})), [b'[{"a":1},{"a":1', b"[{},{", b'[{"a":{}},{"a":{}']),
    "closed objects that differ": (
        compiled(unique({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False})),
        [b'[{"a":"b"},{"a":"b"', b'[{"a":""},{"a":"'],
    ),
    "any names": (compiled(JsonSchema(OPEN)), [b'{"a":1,"a', b'{"a":1,"b": nu', b'{"ab":true,"']),
    "names that differ": (
        compiled(JsonSchema(OPEN, profile="generation")),
        [b'{"a": 1, "b": null, "b', b'{"a": 1, "ab": true, "ab', b'{"a": 1, "": null, "'],
    ),
    "names that differ, by rows": (
        compiled(JsonSchema(FREE, profile="generation"), backend="earley_trie"),
        [b'{"a": 1, "b": 2, "a', b'{"ab": "", "ab'],
    ),
    "a limit on names that differ": (
        limited(JsonSchema(FREE, profile="generation", whitespace="compact"), 9),
        [b'{"a":1,"', b'{"":1,"'],
    ),
    "names in any order": (
        compiled(JsonSchema({**OPEN, "additionalProperties": False}, order="any")),
        [b'{"a":1,"', b'{"ab":true,"a'],
    ),
    "names by a pattern": (
        compiled(JsonSchema({"type": "object", "propertyNames": {"pattern": "^a[bc]*$"}})),
        [b'{"ab', b'{"a":{"a'],
    ),
    "names that are not": (
        compiled(JsonSchema({"type": "object", "propertyNames": {"not": {"enum": ["a", "abc"]}}})),
        [b'{"a', b'{"abc', b'{"ab'],
    ),
    "texts that are not": (compiled(JsonSchema({"type": "string", "not": {"enum": ["a"]}})), [b'"a', b'"abc']),
    "names by rows": (compiled(JsonSchema(OPEN), backend="earley_trie"), [b'{"a":1,"a', b'{"ab":true,"']),
    "counted characters": (compiled(JsonSchema(COUNTED)), [b'"ab', b'"abca']),
    "a limit on counted characters": (limited(JsonSchema(COUNTED), 5), [b'"a', b'"ab', b"", b'"']),
    "a limit on names": (limited(JsonSchema({**OPEN, "additionalProperties": False}), 8), [b'{"a":1']),
    "a limit on items": (limited(Regex("(ab|a)*c?[a-z]{1,3}"), 3), [b"a", b"ab"]),
    "special tokens": (compiled(MARKED), [b"ab", b"abab"]),
    "special tokens by rows": (compiled(MARKED, backend="earley_trie"), [b"ab"]),
    "thoughts": (
        lambda vocab: tokdfa.think_first(json({"type": "boolean"}), vocab, 9),
        [b"<think>a", b"<think></thin"],
    ),
    "thoughts between special tokens": (
        lambda vocab: tokdfa.think_first(choice("ab", "a"), vocab, 3, begin=SPECIAL[0], end=SPECIAL[1]),
        [b""],
    ),
    "a healed prompt": (
        lambda vocab: HealedConstraint(tokdfa.compile(Choice(["abc", 'b"a', "ab"]), vocab), b'a"'),
        [b"", b"a", b'a"ab'],
    ),
    "a healed prompt before items that differ": (
        lambda vocab: HealedConstraint(tokdfa.compile(unique({"type": "integer"}), vocab), b'a"'),
        [b'a"[1,1', b"a"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_equal_tokens_have_equal_bits(case: str) -> None:
    make, texts = CASES[case]
    chance, compared = random.Random(case), 0
    once = make(vocabulary(list(range(len(ONCE)))))
    for _ in range(2):
        order = [*range(len(ONCE)), *chance.choices(range(len(ONCE)), k=len(ONCE)), *b'"],}:1a</']
        chance.shuffle(order)
        twice_of = [*order, *(len(ONCE) + k for k in range(3))]
        twins: dict[int, list[int]] = {}
        for twin, token in enumerate(twice_of):
            twins.setdefault(token, []).append(twin)
        twice = make(vocabulary(order))
        for text in [*texts, *texts]:
            one, other = once.start(), twice.start()
            for step in range(16):
                allowed, found = mask_of(one), mask_of(other)
                where = one.vocab.spell(one.tokens)
                assert found == sorted(twin for token in allowed for twin in twins[token]), where
                assert [t for t in range(other.vocab.size) if other.allows(t)] == found, where
                for twin in (twin for token in {*b'"],}1a'} - set(allowed) for twin in twins[token]):
                    with pytest.raises(TokenRefused):
                        other.advance(twin)
                compared += 1
                if one.is_finished():
                    break
                fitting = [t for t in allowed if t < len(ONCE) and text[len(where) :].startswith(ONCE[t])]
                token = chance.choice(fitting or allowed)
                one.advance(token)
                other.advance(chance.choice(twins[token]))
                if step % 4 == 3:
                    check_trees(one, other, allowed=mask_of(one), twins=twins)
    assert compared > 20


def check_trees(one: Matcher, other: Matcher, allowed: list[int], twins: dict[int, list[int]]) -> None:
    """A tree of all tokens that may follow, each twin a node, has the masks of the tree of single tokens."""
    drafted = allowed[:6]
    few = tokdfa.mask.allocate_mask(one.vocab.size, len(drafted))
    tokdfa.fill_tree(one, drafted, [-1] * len(drafted), few)
    nodes = [(place, twin) for place, token in enumerate(drafted) for twin in twins[token]]
    many = tokdfa.mask.allocate_mask(other.vocab.size, len(nodes))
    assert tokdfa.fill_tree(other, [twin for _, twin in nodes], [-1] * len(nodes), many).all()
    for (place, _), mask in zip(nodes, many, strict=True):
        expected = [twin for token in tokdfa.mask_to_ids(few[place]).tolist() for twin in twins[token]]
        assert tokdfa.mask_to_ids(mask).tolist() == sorted(expected)
    assert one.forced_bytes(8) == other.forced_bytes(8)


@pytest.mark.parametrize(("items", "begin", "byte"), [("string", '["a","a', b'"'), ("integer", "[1,1", b"]")])
def test_a_real_vocabulary_with_bytes_twice(items: str, begin: str, byte: bytes) -> None:
    """Mistral v1 has bytes, as fallback, and tokens that spell the same."""
    tokenizer = tokdfa.load_tokenizer("mistral-v1")
    matcher = tokdfa.compile(unique({"type": items}), tokenizer).start()
    for token in tokenizer.encode(begin):
        matcher.advance(token)
    vocab, allowed = tokenizer.vocabulary, set(mask_of(matcher))
    equal = [token for token in vocab.trie.prefixes_of(byte) if vocab.token_bytes(token) == byte]
    assert len(equal) == 2
    for token in equal:
        assert token not in allowed
        assert not matcher.allows(token)
        with pytest.raises(TokenRefused):
            matcher.advance(token)


def test_what_is_repeated_is_a_value() -> None:
    """The texts above are JSON that repeats an item, so the token that closes it must be refused."""
    for text in ('["a","a"]', "[1,1]", '[["a"],["a"]]', '[{"a":1},{"a":1}]'):
        items = json_texts.loads(text)
        assert items[0] == items[1]
