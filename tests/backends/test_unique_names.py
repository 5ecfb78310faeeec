"""Names that no object has twice: masks against all texts of finite languages, and texts against `json`."""

from __future__ import annotations

import copy
import pickle
import random
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from tests.json_schema.schemas import library_validator
from tests.json_schema.test_distinct import Repeated, read
from tests.walks import accepts, advance_all, mask_of, takes
from tokdfa import mask as masks
from tokdfa.backends.batch import fill_masks, fill_tree
from tokdfa.backends.pushdown_trie.strategy import CompiledPushdown, PushdownTrie
from tokdfa.backends.registry import create_backend
from tokdfa.backends.token_healing import heal
from tokdfa.backends.unique_items import UniqueItems
from tokdfa.constraint import JsonSchema
from tokdfa.errors import ArgumentError, EmptyLanguageError, SchemaUnsupported, TokenRefused
from tokdfa.json_schema.solve import object_plan
from tokdfa.serving.batch_matcher import BatchMatcher
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.backends.matcher import Matcher

#: Any value, in every spelling of its strings.
GENERATED = JsonSchema(True, profile="generation", escapes="all")
ENGINES = ("pushdown_trie", "earley_trie")
INTEGER = {"type": "integer"}
#: Tokens that cross names, some of two members, some with equal bytes.
LONG = [
    *(
        b'{"',
        b'"a"',
        b'a"',
        b'": ',
        b'": 0',
        b', "',
        b', "a',
        b', "a"',
        b'"a": 0, "a"',
        b'"a": 0, "b"',
        b'", "',
        b"\\u0061",
    ),
    *(
        b"\\u006",
        b"0, ",
        b'{"a": 0',
        b'"b',
        b'"b',
        b'{"a": 0, "a": 0}',
        b'{"a": 0, "b": 0}',
        b'": {"',
        b'"}',
        b"}}",
        b"aa",
    ),
]
VOCAB = Vocabulary([*(bytes([byte]) for byte in range(256)), *LONG, b""], end_tokens=[256 + len(LONG)])
END = 256 + len(LONG)


def matcher_of(schema: Any, engine: str = "pushdown_trie", vocab: Vocabulary = VOCAB, **options: Any) -> Matcher:
    options = {"profile": "generation", **options}
    return create_backend(engine, vocab).compile(JsonSchema(schema, **options)).start()


def is_distinct(text: bytes) -> bool:
    try:
        read(text.decode())
    except Repeated:
        return False
    return True


# Finite languages: every text, and with that every mask, is known.


def named(pattern: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "patternProperties": {pattern: {"const": 0}}, "additionalProperties": False, **more}


#: No name is few enough to be a state (the limit is set to 0); each has a few hundred texts.
FINITE: list[tuple[Any, list[bytes], dict[str, Any]]] = [
    (named("^[ab]$", maxProperties=3), [b'"', b"a", b"b", b"{", b"}", b":", b",", b" ", b"0"], {}),
    (
        named("^[ab]$", minProperties=2, maxProperties=3),
        [b'{"', b'a": 0', b'"b": 0', b'"', b"a", b"b", b", ", b', "', b"}", b'": 0', b'a"', b": 0", b'"a": 0, "a": 0'],
        {},
    ),
    # tokens that spell few of the names: what is left are dead ends of tokens, not of bytes
    (
        named("^[a-c]{1,2}$", maxProperties=2),
        [b'{"', b'a"', b'b"', b'"b"', b": 0", b", ", b', "', b"}", b'"', b"a"],
        {},
    ),
    (
        named("^(ab|ac|b)$", minProperties=1, maxProperties=3),
        [b'{"a', b'{"b', b'b"', b'c"', b'"', b": 0", b', "a', b', "b', b"}", b", "],
        {},
    ),
    # equal names in two spellings, and tokens with equal bytes
    (
        named("^[aé]$", maxProperties=2),
        [
            b"{",
            b'"a"',
            b'"\\u0061"',
            b'"',
            b"a",
            b"\\u00",
            b"61",
            b"e9",
            b"\\u00e9",
            b"\xc3",
            b"\xa9",
            b": 0",
            b", ",
            b"}",
            b'"',
        ],
        {"escapes": "all"},
    ),
    (
        named("^(😀|a)$", maxProperties=2),
        [b'{"', b"\\ud83d", b"\\uD83D", b"\\ude00", b"\xf0\x9f\x98\x80", b"a", b'"', b": 0", b', "', b"}"],
        {"escapes": "all"},
    ),
    # an object in an object, one after another
    (
        {"type": "array", "items": named("^[ab]$", maxProperties=2), "maxItems": 2},
        [
            b"[",
            b'{"a": 0',
            b'{"b": 0',
            b', "a": 0',
            b', "',
            b'a"',
            b'b"',
            b": 0",
            b"}",
            b"]",
            b", ",
            b'{"a": 0, "b": 0}, {"',
        ],
        {},
    ),
    # names of either of two objects: the one begun decides
    (
        {"anyOf": [named("^[ab]$", minProperties=2), named("^[bc]$", minProperties=1, maxProperties=1)]},
        [b'{"', b"a", b"b", b"c", b'"', b": 0", b", ", b'"a"', b"}"],
        {},
    ),
]


@cache
def all_texts(index: int) -> frozenset[tuple[int, ...]]:
    """The token sequences of all texts of a language, by the strategy that remembers no names and Python's `json`."""
    schema, tokens, options = FINITE[index]
    vocab = vocabulary_of(index)
    plain = matcher_of(schema, vocab=vocab, duplicates="declared", **options)
    found: list[tuple[int, ...]] = []

    def visit(matcher: Matcher) -> None:
        for token in mask_of(matcher):
            if token == len(tokens):
                if is_distinct(vocab.spell(matcher.tokens)):
                    found.append(matcher.tokens)
                continue
            spelled = vocab.spell((*matcher.tokens, token))
            if spelled.count(b":") <= 4:
                matcher.advance(token)
                visit(matcher)
                matcher.rollback(1)

    visit(plain)
    return frozenset(found)


def vocabulary_of(index: int) -> Vocabulary:
    tokens = FINITE[index][1]
    return Vocabulary([*tokens, b""], end_tokens=[len(tokens)])


def prefixes(texts: frozenset[tuple[int, ...]]) -> set[tuple[int, ...]]:
    return {text[:length] for text in texts for length in range(len(text) + 1)}


@pytest.fixture
def no_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are remembered by matchers, however few they are."""
    monkeypatch.setattr(object_plan, "MAX_REMEMBERED", 0)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("index", range(len(FINITE)))
def test_masks_are_those_of_all_texts(index: int, engine: str, no_states: None) -> None:
    schema, tokens, options = FINITE[index]
    texts, vocab = all_texts(index), vocabulary_of(index)
    alive = prefixes(texts)
    matcher = matcher_of(schema, engine, vocab, **options)
    assert type(matcher).__name__ == "UniqueItemsMatcher"
    for prefix in sorted(alive):
        matcher.rollback(len(matcher.tokens))
        advance_all(matcher, prefix)
        expected = {token for token in range(len(tokens)) if (*prefix, token) in alive}
        expected |= {len(tokens)} if prefix in texts else set()
        assert set(mask_of(matcher)) == expected, vocab.spell(prefix)
        for token in range(len(tokens) + 1):
            assert matcher.allows(token) == (token in expected)
            twin = matcher.fork()
            if token in expected:
                twin.advance(token)
            else:
                with pytest.raises(TokenRefused):
                    twin.advance(token)
                assert twin.tokens == prefix
    assert len(texts) >= 5


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("index", range(len(FINITE)))
def test_limited_masks_are_those_of_all_texts(index: int, engine: str, no_states: None) -> None:
    schema, tokens, options = FINITE[index]
    texts, vocab = all_texts(index), vocabulary_of(index)
    alive = prefixes(texts)
    #: How many tokens lead from a beginning to an end.
    fewest: dict[tuple[int, ...], int] = {}
    for text in texts:
        for length in range(len(text) + 1):
            fewest[text[:length]] = min(fewest.get(text[:length], 99), len(text) - length)
    shortest = min(map(len, texts))
    compiled = create_backend(engine, vocab).compile(JsonSchema(schema, profile="generation", **options))
    assert len(compiled.start().shortest_completion()) == shortest
    with pytest.raises(ArgumentError, match=f"the shortest has {shortest}"):
        compiled.start(max_tokens=shortest - 1)
    draw = random.Random(index)
    for limit in range(shortest, max(map(len, texts)) + 1):
        matcher = compiled.start(max_tokens=limit)
        reachable = sorted(p for p in alive if len(p) + fewest[p] <= limit)
        for prefix in draw.sample(reachable, min(len(reachable), 60)):
            matcher.rollback(len(matcher.tokens))
            advance_all(matcher, prefix)
            expected = {
                token for token in range(len(tokens)) if len(prefix) + 1 + fewest.get((*prefix, token), 99) <= limit
            }
            expected |= {len(tokens)} if prefix in texts else set()
            assert set(mask_of(matcher)) == expected, (vocab.spell(prefix), limit)
            assert len(matcher.shortest_completion()) == fewest[prefix]


# Open objects.

OPEN: dict[str, Any] = {
    "any value": True,
    "any object": {"type": "object"},
    "members of one type": {"type": "object", "additionalProperties": INTEGER},
    "beside declared names": {"type": "object", "properties": {"a": INTEGER, "b": INTEGER}, "required": ["a"]},
    "counted": {"type": "object", "minProperties": 3, "maxProperties": 4},
    "patterns": {"type": "object", "patternProperties": {"^a": INTEGER, "b$": {"type": "null"}}},
    "names of a pattern": {"type": "object", "propertyNames": {"pattern": "^a+$"}, "minProperties": 2},
    "short names": {"type": "object", "propertyNames": {"maxLength": 1}, "minProperties": 3},
    "inside an array": {"type": "array", "items": {"type": "object"}, "minItems": 1},
    "of either kind": {
        "anyOf": [{"type": "object", "additionalProperties": INTEGER}, {"type": "object", "required": ["a"]}]
    },
    "some member": {"type": "object", "not": {"additionalProperties": INTEGER}},
    "unevaluated": {"type": "object", "properties": {"a": INTEGER}, "unevaluatedProperties": INTEGER},
    "recursive": {"type": "object", "additionalProperties": {"$ref": "#"}},
}
PLAIN = {END, *b'",:{}[]0ab\\ ', *range(256, END)}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("name", OPEN)
def test_walks_are_valid_and_have_no_dead_end(name: str, order: str, engine: str) -> None:
    draw, compiled = (
        random.Random(name),
        create_backend(engine, VOCAB).compile(JsonSchema(OPEN[name], profile="generation", order=order)),
    )
    validator, ended = library_validator(OPEN[name]), 0
    for _ in range(10):
        matcher = compiled.start()
        for _ in range(40):
            tokens = mask_of(matcher)
            assert tokens
            if END in tokens:
                assert validator.is_valid(read(VOCAB.spell(matcher.tokens).decode()))
                ended += 1
                if draw.random() < 0.3:
                    break
            token = draw.choice([token for token in tokens if token in PLAIN and token != END] or tokens)
            matcher.advance(token)
            if token == END:
                break
            others = draw.sample(range(END), 20)
            assert [matcher.allows(other) for other in others] == [masks.contains(_mask(matcher), t) for t in others]
    assert ended


def _mask(matcher: Matcher) -> Any:
    out = masks.allocate_mask(VOCAB.size)
    matcher.fill_mask(out)
    return out


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "text", [b'{"a": 0, "a', b'{"b": {"a": 0, "', b'[{"a": 0}, {"a": 0, ', b'{"\\u0061": 0, "', b'{"a": "x']
)
def test_a_token_is_allowed_iff_its_bytes_are(text: bytes, engine: str) -> None:
    matcher = matcher_of(True, engine, escapes="all")
    for byte in text:
        matcher.advance(byte)
        fits = [token for token in range(END) if takes(matcher.fork(), VOCAB.token_bytes(token))]
        assert [token for token in range(END) if matcher.allows(token)] == fits
        assert [token for token in mask_of(matcher) if token != END] == fits


WAYS = {
    **{"a": ["a", "\\u0061"], "é": ["é", "\\u00e9", "\\u00E9"], "😀": ["😀", "\\ud83d\\ude00", "\\uD83D\\uDE00"]},
    **{"/": ["/", "\\/", "\\u002f"], '"': ['\\"', "\\u0022"], "\n": ["\\n", "\\u000a"], "\\": ["\\\\", "\\u005c"]},
}


def test_names_are_equal_if_their_decoded_texts_are() -> None:
    draw, seen, compiled = random.Random(5), {True: 0, False: 0}, PushdownTrie(VOCAB).compile(GENERATED)
    for _ in range(400):
        names = ["".join(draw.choices(list(WAYS), k=draw.randrange(3))) for _ in range(draw.randrange(2, 5))]
        written = ["".join(draw.choice(WAYS[character]) for character in name) for name in names]
        text = "{" + ", ".join(f'"{name}": 0' for name in written) + "}"
        took = takes(compiled.start(), text.encode())
        assert took == is_distinct(text.encode()), text
        seen[took] += 1
    assert min(seen.values()) > 50


def test_all_keeps_todays_rule() -> None:
    text = b'{"a":1,"a":2}'
    assert accepts(create_backend("pushdown_trie", VOCAB).compile(JsonSchema(True)).start(), text)
    assert not takes(matcher_of(True, key_separator=":", item_separator=","), text)
    assert takes(matcher_of(True, key_separator=":", item_separator=",", duplicates="declared"), text)


def test_what_has_no_open_object_pays_nothing() -> None:
    closed = {"type": "object", "properties": {"a": INTEGER}, "additionalProperties": False}
    for schema in (INTEGER, closed, {"type": "array", "items": closed}, {"enum": [{"x": 1}, [{}]]}):
        compiled = PushdownTrie(VOCAB).compile(JsonSchema(schema, profile="generation"))
        assert type(compiled) is CompiledPushdown
    assert isinstance(PushdownTrie(VOCAB).compile(JsonSchema({}, profile="generation")), UniqueItems)


def test_code_that_is_written_later_may_open_names() -> None:
    names = {f"p{k}": {"$ref": "#/$defs/closed"} for k in range(300)}
    deep = {"type": "object", "properties": {"x": {"type": "object"}}, "additionalProperties": False}
    closed = {"type": "object", "properties": {"d": deep}, "additionalProperties": False}
    schema = {"$defs": {"closed": closed}, "type": "object", "properties": names, "additionalProperties": False}
    matcher = matcher_of(schema)
    assert takes(matcher, b'{"p1": {"d": {"x": {"k": 1, "l": {"k": 1')
    assert not matcher.allows(ord('"'))
    assert takes(matcher, b', "k')
    assert not matcher.allows(ord('"'))
    assert takes(matcher, b'2": 1}}}}, "p2": {"d": {"x": {"k": 1}}}}')
    assert matcher.can_end()


# Names that may run out.


@pytest.mark.parametrize("engine", ENGINES)
def test_names_of_a_bounded_pattern_are_used_up(engine: str) -> None:
    pattern, count = "^[a-t]{2}$", 400
    assert count > object_plan.MAX_REMEMBERED
    with pytest.raises(EmptyLanguageError):
        matcher_of(named(pattern, minProperties=count + 1), engine)
    matcher = matcher_of(named(pattern, minProperties=count), engine)
    names = [one + other for one in "abcdefghijklmnopqrst" for other in "abcdefghijklmnopqrst"]
    random.Random(1).shuffle(names)
    assert takes(matcher, ("{" + ", ".join(f'"{name}": 0' for name in names[:-1])).encode())
    assert {VOCAB.token_bytes(token)[:1] for token in mask_of(matcher)} == {b","}
    assert takes(matcher, b', "')
    assert {VOCAB.token_bytes(token)[:1] for token in mask_of(matcher)} == {names[-1][:1].encode()}
    assert matcher.forced_bytes(20) == f'{names[-1]}": 0}}'.encode()
    assert takes(matcher, f'{names[-1]}": 0'.encode())
    assert not matcher.allows(ord(","))
    assert takes(matcher, b"}")
    assert matcher.can_end()


def test_members_that_need_more_names_than_there_are() -> None:
    declared = {"properties": {"zz": {"const": 0}}, "required": ["zz"]}
    assert takes(matcher_of(named("^[a-t]{2}$", minProperties=401, **declared)), b'{"zz": 0, ')
    with pytest.raises(EmptyLanguageError):
        matcher_of(named("^[a-t]{2}$", minProperties=402, **declared))
    # in the schema's order the optional name could have been passed
    with pytest.raises(SchemaUnsupported, match="more members than there are undeclared names"):
        matcher_of(named("^[a-t]{2}$", minProperties=401, properties={"zz": {"const": 0}}))


# What else a matcher does.


@pytest.mark.parametrize("engine", ENGINES)
def test_rollback_fork_trees_batches_and_copies(engine: str) -> None:
    matcher = matcher_of({"type": "object"}, engine)
    text = b'{"a": {"b": 0, "a": 0}, "b": 0, "c'
    advance_all(matcher, list(text))
    before = mask_of(matcher)
    twin, copied, restored = matcher.fork(), copy.copy(matcher), pickle.loads(pickle.dumps(matcher))
    advance_all(matcher, list(b'": 0, "c'))
    assert not matcher.allows(ord('"'))
    for other in (twin, copied, restored):
        assert mask_of(other) == before
        assert other.whereabouts()[1] == twin.whereabouts()[1]
        assert other.allows(ord('"'))
    matcher.rollback(len(matcher.tokens) - 4)
    assert matcher.tokens == tuple(b'{"a"')
    assert takes(matcher, b': 0, "b')
    assert matcher.allows(ord('"'))
    # a tree of drafts: c ends the name, a after a comma does not
    drafted = list(b'": 0, "a"')
    out = masks.allocate_mask(VOCAB.size, len(drafted))
    allowed = fill_tree(twin, drafted, range(-1, len(drafted) - 1), out)
    assert allowed.tolist() == [True] * (len(drafted) - 1) + [False]
    rows = masks.allocate_mask(VOCAB.size, 2)
    fill_masks([twin, matcher], rows, threads=2)
    assert [masks.mask_to_ids(row).tolist() for row in rows] == [mask_of(twin), mask_of(matcher)]
    batch = BatchMatcher(VOCAB, 2)
    batch.put(0, twin)
    batch.put(1, matcher)
    assert [masks.mask_to_ids(row).tolist() for row in batch.fill()] == [mask_of(twin), mask_of(matcher)]


def test_equal_names_in_any_order_are_one_state() -> None:
    one, other = matcher_of({"type": "object"}), matcher_of({"type": "object"})
    advance_all(one, list(b'{"a": 0, "b": 0, '))
    advance_all(other, list(b'{"b": 0, "a": 0, '))
    assert one.whereabouts() == other.whereabouts()
    assert hash(one.whereabouts()) == hash(other.whereabouts())
    advance_all(one, list(b'"c": 0, '))
    assert one.whereabouts() != other.whereabouts()


@pytest.mark.parametrize("lengths", ["plain", "limited"])
def test_a_saved_constraint_remembers(tmp_path: Path, lengths: str) -> None:
    schema = {"type": "object"} if lengths == "plain" else {"type": "object", "propertyNames": {"maxLength": 1}}
    compiled = PushdownTrie(VOCAB).compile(JsonSchema(schema, profile="generation"))
    assert isinstance(compiled, UniqueItems)
    compiled.save(tmp_path / "saved")
    for again in (CompiledPushdown.load(tmp_path / "saved", VOCAB), pickle.loads(pickle.dumps(compiled))):
        assert isinstance(again, UniqueItems)
        assert again.names == compiled.names == ("endless" if lengths == "plain" else "limited")
        matcher = again.start()
        assert takes(matcher, b'{"a": 0, "')
        assert takes(matcher, b"a") == (lengths == "plain")  # no name is left behind that letter
        assert not (matcher.tokens[-1] == ord("a") and matcher.allows(ord('"')))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "name", ["any value", "any object", "members of one type", "beside declared names", "recursive"]
)
def test_limited_texts_end_in_time(name: str, engine: str) -> None:
    compiled = create_backend(engine, VOCAB).compile(JsonSchema(OPEN[name], profile="generation"))
    validator = library_validator(OPEN[name])
    least = len(compiled.start().shortest_completion())
    for seed in range(12):
        draw, limit = random.Random(seed), least + seed % 6 * 3
        matcher = compiled.start(max_tokens=limit)
        while not matcher.is_finished():
            tokens = mask_of(matcher)
            assert tokens, VOCAB.spell(matcher.tokens)
            matcher.advance(draw.choice([token for token in tokens if token in PLAIN and token != END] or tokens))
        assert len(matcher.tokens) <= limit + 1
        assert validator.is_valid(read(VOCAB.spell(matcher.tokens[:-1]).decode()))


def test_a_healed_prompt_is_limited_too() -> None:
    compiled = PushdownTrie(VOCAB).compile(JsonSchema({"type": "object", "minProperties": 2}, profile="generation"))
    healed = heal(compiled, [ord("x"), ord("a")], 1)
    least = len(healed.start().shortest_completion())
    for limit in range(least, least + 8):
        draw, matcher = random.Random(limit), healed.start(max_tokens=limit)
        while not matcher.is_finished():
            tokens = mask_of(matcher)
            matcher.advance(draw.choice([t for t in tokens if t in PLAIN and t != END] or tokens))
        assert len(matcher.tokens) <= limit + 1
        assert len(read(VOCAB.spell(matcher.tokens[:-1]).decode().removeprefix("a"))) >= 2
