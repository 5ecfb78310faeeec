"""Items that must differ: masks against the same language with its values as states, and texts against `jsonschema`."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.json_schema.schemas import library_validator
from tests.walks import accepts, advance_all, mask_of, takes
from tokdfa.backends import unique_scanner
from tokdfa.backends.pushdown_trie.strategy import CompiledPushdown, PushdownTrie
from tokdfa.backends.unique_items import UniqueItems, UniqueItemsMatcher
from tokdfa.constraint import JsonSchema
from tokdfa.errors import EmptyLanguageError, SchemaUnsupported, UnsupportedConstraint
from tokdfa.json_schema.read.document import Document
from tokdfa.json_schema.solve import array_states
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path


#: Tokens that cross items, among them such that end a string and go on behind it.
LONG = [
    *(b'","', b'["', b'"]', b'a"', b"b,", b"1,", b",1", b"0,0", b'["a","a"', b'["a","b"', b"\\u0061", b'"a","b","a"'),
    *(b"true,", b'", "', b'"],["', b'","b","b"', b'b","b"', b'","c","b"', b'",\n', b'\\","', b'\\","b"', b'","b"'),
    *(b'","b', b'"],"', b',"', b'",1,"', b'","b",1'),
    *(b",-", b"-0", b"27", b"1e", b"e0", b".5", b".0", b"1.", b"0.0", b"0,-", b" ,1"),
]  # fmt: skip
VOCAB = Vocabulary([*(bytes([byte]) for byte in range(256)), *LONG, b""], end_tokens=[256 + len(LONG)])
END = 256 + len(LONG)
BLANKS, PLAIN = set(b" \t\n\r"), set(b'",]}[01ab:')


def matcher_of(schema: Any, **options: Any) -> Any:
    return PushdownTrie(VOCAB).compile(JsonSchema(schema, **options)).start()


def unique(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, "uniqueItems": True, **more}


def closed(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


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
            tokens = mask_of(one)
            assert tokens == mask_of(other), one.tokens
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
    unique({"type": "object"}, minItems=2),
    unique({"type": "array", "items": {"enum": [0, 1]}}, minItems=2),
    unique({"properties": {"a": {"enum": [0, 1]}}, "required": ["a"], "type": "object"}),
    unique({"type": "object", "patternProperties": {"^[ab]": {"const": 1}}, "additionalProperties": False}, minItems=2),
    unique({"type": ["array", "object", "integer", "null"], "items": {"type": "integer"}}, minItems=1),
    unique({"type": "object", "properties": {"a": unique({"type": "array"})}, "required": ["a"]}),
    unique({"type": "string"}, prefixItems=[{"type": "integer"}, {"enum": ["a", 1]}, {"type": "object"}], minItems=3),
    unique(False, prefixItems=[{"type": "number"}] * 3),
    unique(closed({"a": {"type": "string"}}), minItems=2),
    unique(closed({"a": {"enum": [0, 1]}, "b": {"type": "string"}}, required=["a", "b"]), minItems=2),
    unique(closed({"a": {"type": "boolean"}, "b": {"type": "array", "items": {"const": 0}}}), minItems=3),
    unique(closed({"a": {"type": "integer"}, "b": {"type": ["object", "string"]}}), minItems=2),
    unique(
        {
            "oneOf": [
                closed({"k": {"const": 1}, "b": {"type": "string"}}, required=["k"]),
                closed({"k": {"const": 2}, "c": {"type": "array"}}, required=["k"]),
            ]
        },
        minItems=2,
    ),
]  # fmt: skip


@pytest.mark.parametrize("schema", TEXTS, ids=lambda schema: json.dumps(schema)[:60])
def test_walks_are_valid_and_have_no_dead_end(schema: Any) -> None:
    library, finished = library_validator(schema), 0
    compiled = PushdownTrie(VOCAB).compile(JsonSchema(schema))
    assert isinstance(compiled, UniqueItems)
    for seed in range(8):
        draw, matcher = random.Random(seed), compiled.start()
        for step in range(300):
            tokens = mask_of(matcher)
            assert tokens, b"".join(map(VOCAB.token_bytes, matcher.tokens))
            if END in tokens and (step > 30 or len(tokens) == 1):
                matcher.advance(END)
                text = b"".join(map(VOCAB.token_bytes, matcher.tokens)).decode()
                assert library.is_valid(json.loads(text)), text
                finished += 1
                break
            tokens = [token for token in tokens if token != END]
            few = [token for token in tokens if token in PLAIN or token >= 256]
            token = draw.choice(few if few and draw.random() < 0.9 else tokens)
            way = compiled.plain.shortest_completion(matcher.text)[:1] if step > 60 else []
            if way and matcher.allows(way[0]):  # to the end, but for repetitions
                token = way[0]
            matcher.advance(token)
    assert finished >= 4


def test_fork_and_rollback() -> None:
    matcher = matcher_of(unique({"type": "string"}))
    advance_all(matcher, b'["a","b"')
    before, fork = mask_of(matcher), matcher.fork()
    advance_all(matcher, b',"c"]')
    matcher.advance(END)
    assert matcher.is_finished()
    assert mask_of(fork) == before
    matcher.rollback(6)
    assert mask_of(matcher) == before
    advance_all(matcher, b',"b')
    assert not matcher.allows(ord('"'))
    assert matcher.allows(ord("b"))


def test_arrays_are_no_longer_than_what_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unique_scanner, "MAX_REMEMBERED", 2)
    monkeypatch.setattr(array_states, "MAX_REMEMBERED", 2)
    matcher = matcher_of(unique({"type": "integer"}))
    advance_all(matcher, b"[1,2")
    assert not matcher.allows(ord(","))
    with pytest.raises(SchemaUnsupported, match="at most 2 items"):
        matcher_of(unique({"type": "integer"}, minItems=3))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (unique({"type": "object", "maxProperties": 9}), "another part"),
        (
            unique(
                {
                    "anyOf": [
                        closed({"a": {"type": kind}, name: {"type": kind}})
                        for kind, name in (("string", "b"), ("array", "a"))
                    ]
                }
            ),
            "another part",
        ),
        (
            unique({"anyOf": [closed({"a": {"type": "string"}}), {"type": "object", "minProperties": 1}]}),
            "another part",
        ),
        (unique(closed({"a": {"type": "object", "maxProperties": 1}})), "another part"),
        (unique({"type": "object", "propertyNames": {"maxLength": 3}}), "another part"),
        (unique({"type": "object", "propertyNames": {"enum": ["a"]}}), "another part"),
        (unique({"type": "object", "patternProperties": {"^a?$": {}}, "additionalProperties": False}), "another part"),
        (unique({"type": "array", "maxItems": 9}), "another part"),
        (unique({"type": "array", "items": False}), "another part"),
        (unique(unique({"enum": [1, 2]})), "another part"),
        (unique({"type": "string"}, contains={"minLength": 2}), "contains"),
        (unique({"type": "string"}, prefixItems=[{"enum": [0, 1]}] * 3, minItems=3), "not known how many"),
        ({"anyOf": [unique({"type": "string"}), {"type": "array", "minItems": 2}]}, "depends on what else"),
        ({"anyOf": [{"properties": {"a": unique({"type": "string"})}}, {"required": ["b"]}]}, "depends on what else"),
        (unique({"type": "string"}, **{"not": {"uniqueItems": True}}), "cannot be demanded"),
    ],
    ids=str,
)
def test_what_is_refused(schema: Any, reason: str) -> None:
    with pytest.raises((SchemaUnsupported, EmptyLanguageError), match=reason):
        matcher_of({"type": ["array", "object"], **schema})


def test_long_names_have_another_one() -> None:
    matcher = matcher_of(unique({"type": "object", "propertyNames": {"pattern": "^[a-z]{300,}$"}}))
    assert takes(matcher, b'[{},{"' + 300 * b"a" + b'":1}]')


def test_integers_between_huge_bounds_are_many() -> None:
    matcher = matcher_of(unique({"type": "integer", "minimum": 0, "maximum": 10**400}))
    advance_all(matcher, b"[1,1")
    assert not matcher.allows(ord("]"))
    assert matcher.allows(ord("0"))


def spelled(draw: random.Random, value: Any) -> str:
    """A value as JSON, by a way to write it that is drawn."""
    blank = draw.choice(["", "", " "])
    if isinstance(value, dict):
        members = [f"{spelled(draw, name)}{blank}:{blank}{spelled(draw, part)}" for name, part in value.items()]
        draw.shuffle(members)
        return "{" + blank + f"{blank},{blank}".join(members) + "}"
    if isinstance(value, list):
        return "[" + f"{blank},{blank}".join(spelled(draw, part) for part in value) + blank + "]"
    if isinstance(value, str):
        return '"' + "".join(draw.choice([sign, f"\\u{ord(sign):04x}"]) for sign in value) + '"'
    if type(value) is int:
        return draw.choice(["", "-"] if value == 0 else [""]) + json.dumps(value) + draw.choice(["", ".0", ".00"])
    return json.dumps(value)


def drawn(draw: random.Random, depth: int) -> Any:
    kind = draw.randrange(7 if depth else 5)
    if kind < 5:
        return [0, 1, True, None, "a"][kind]
    if kind == 5:
        return [drawn(draw, depth - 1) for _ in range(draw.randrange(3))]
    return {name: drawn(draw, depth - 1) for name in "ab"[draw.randrange(2) :][: draw.randrange(3)]}


ANYTHING: list[Any] = [
    unique({}),
    unique({}, prefixItems=[{"type": "boolean"}, {}]),
    unique({}, prefixItems=[{"type": ["object", "null", "integer"]}, {"enum": [0, 1, True, "a"]}], minItems=2),
]
CLOSED = unique(closed({"a": {"enum": [0, 1]}, "b": {"type": "string"}}))


def alike(draw: random.Random, value: Any) -> Any:
    """A value again, or one that Python takes for equal, and JSON Schema does not."""
    if isinstance(value, dict):
        return {name: alike(draw, part) for name, part in value.items()}
    if isinstance(value, list):
        return [alike(draw, part) for part in value]
    return bool(value) if value in (0, 1) and draw.random() < 0.1 else value


def drawn_members(draw: random.Random, depth: int) -> Any:
    """A value of the items of CLOSED."""
    return {name: draw.choice([0, 1] if name == "a" else ["", "x"]) for name in "ab" if draw.random() < 0.6}


@pytest.mark.parametrize(
    ("schema", "order", "item"),
    [*((schema, "any", drawn) for schema in ANYTHING), (CLOSED, "schema", drawn_members)],
    ids=lambda part: part.__name__ if callable(part) else str(part),
)
def test_items_are_equal_by_value(schema: Any, order: Any, item: Any) -> None:
    """In any spelling: what is taken, byte by byte, is what the library takes."""
    compiled, library = PushdownTrie(VOCAB).compile(JsonSchema(schema, order=order)), library_validator(schema)
    draw, said = random.Random(4), []
    for _ in range(400):
        items = [item(draw, 2) for _ in range(draw.randrange(1, 5))]
        if draw.random() < 0.5:
            items.append(alike(draw, draw.choice(items)))
        matcher = compiled.start()
        text = spelled(draw, items) if order == "any" else json.dumps(items)
        taken = accepts(matcher, text)
        assert taken == library.is_valid(items), items
        said.append(taken)
    assert 20 < sum(said) < 350


STRINGS = b'["b","x', b'["x","b', b'["b", "c", "x', b'[["b","x', b'[["b"],["x', b'["b","\\'
NUMBERS = b"[-0,5,7", b"[12,7,1", b"[1,29.0,10", b"[1,0,100.0"
OBJECTS = b'[{"a":1},{"a":1', b'[["a","b"],["a","b"', b'[[],{},[{"a":[]},[', b'[{"b":{}},"a",{"b":{}'


@pytest.mark.parametrize(
    ("schema", "texts"),
    [
        (unique({"type": "string"}), STRINGS),
        (unique({"type": ["string", "integer"]}, minItems=2), STRINGS),
        (unique({"type": "string"}, prefixItems=[{"type": "string"}, {"enum": ["x", "b"]}]), STRINGS),
        ({"type": "array", "items": unique({"type": "string"})}, STRINGS),
        (unique({"type": ["array", "string"], "items": {"type": "string"}}), STRINGS),
        (unique({"type": "number"}), NUMBERS),
        (unique({"type": "integer", "minimum": 0}), NUMBERS),
        (unique({"type": "number", "minimum": -5}), (*NUMBERS, b"[-2,-17", b"[0,-3,-0")),
        (unique({"type": "number", "maximum": 5}), (*NUMBERS, b"[2,17", b"[0,-3,-3")),
        (unique({"type": ["integer", "string"], "multipleOf": 1}, prefixItems=[{"type": "number"}]), NUMBERS),
        (unique({"type": "integer", "minimum": 0, "multipleOf": 5}), (*NUMBERS, b"[5,10.0,5")),
        (unique({"type": ["integer", "string"], "pattern": "^(a|b)$"}), (b'["a","b', b'[1,"b",2,"a')),
        (unique({}), OBJECTS),
        (CLOSED, (b'[{"a":0,"b":"a"},{"a":0,"b":"',)),
    ],
    ids=str,
)
def test_a_token_is_allowed_iff_its_bytes_are(schema: Any, texts: tuple[bytes, ...]) -> None:
    """At every place of texts that are about to repeat an item; masks, which are made otherwise, say the same."""
    compiled, refused = PushdownTrie(VOCAB).compile(JsonSchema(schema)), 0
    for text in texts:
        matcher = compiled.start()
        for byte in text:
            if not matcher.allows(byte):
                break
            matcher.advance(byte)
            fits = [token for token in range(END) if takes(matcher.fork(), VOCAB.token_bytes(token))]
            assert [token for token in range(END) if matcher.allows(token)] == fits
            assert [token for token in mask_of(matcher) if token != END] == fits
            refused += sum(matcher.text.allows(token) for token in range(END)) - len(fits)
    assert refused


def test_numbers_of_many_digits_are_compared() -> None:
    matcher = matcher_of(unique({"type": "integer"}))
    digits = b"1" * 5_000
    assert takes(matcher, b"[" + digits + b"," + digits[1:])
    assert not takes(matcher, b"1,")


def test_a_saved_constraint_remembers(tmp_path: Path) -> None:
    compiled = PushdownTrie(VOCAB).compile(JsonSchema(unique({"type": "string"})))
    assert isinstance(compiled, UniqueItems)
    compiled.save(tmp_path / "unique")
    loaded = CompiledPushdown.load(tmp_path / "unique", VOCAB)
    for text in (b'["a","b"', b'["a","', b'["a"'):
        ours, theirs = compiled.start(), loaded.start()
        assert takes(ours, text)
        assert takes(theirs, text)
        assert mask_of(ours) == mask_of(theirs)
    assert not takes(loaded.start(), b'["a","a"')


def test_tokens_to_an_end_are_not_counted() -> None:
    matcher = matcher_of(unique({"type": "string"}))
    for ask in (matcher.shortest_completion, lambda: matcher.origin[0].start(max_tokens=5)):
        with pytest.raises(UnsupportedConstraint, match="items that were"):
            ask()


def test_items_are_compared_when_other_arrays_had_more_values_than_are_kept() -> None:
    """A long string is compared by an automaton whose states get numbers as they are met, which many others follow."""
    matcher, others = matcher_of(unique({"type": "string"})), matcher_of(unique({"type": "integer"}))
    advance_all(matcher, b'["' + 100 * b"a" + b'","' + 95 * b"a")
    for number in range(300):
        assert takes(others.fork(), b"[%d,1" % number)
    assert takes(matcher.fork(), b'"')
    advance_all(matcher, b"aaaaa")
    assert not takes(matcher, b'"')


def chain(length: int, last: Any) -> dict[str, Any]:
    """Arrays of arrays, so deep, each a definition with a URI; the last one is `last`."""
    definitions = {
        f"d{k}": {"$id": f"http://e.org/{k}", "items": {"$ref": f"http://e.org/{k + 1}"}} for k in range(length)
    }
    return {"$defs": {**definitions, "last": {"$id": f"http://e.org/{length}", **last}}, "$ref": "http://e.org/0"}


def test_a_schema_of_many_places_is_not_refused() -> None:
    for count in (6_000, 12_000):
        assert takes(matcher_of(chain(count, {"type": "null"})), b"[[[]")
    far, near = 6_000, 3
    compiled = PushdownTrie(VOCAB).compile(JsonSchema(chain(far, unique({"type": "string"}))))
    assert isinstance(compiled, UniqueItems)
    assert not takes(compiled.start(), b"[" * far + b'["a","a"')
    assert not takes(matcher_of(chain(near, unique({"type": "string"}))), b"[" * near + b'["a","a"')


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"$ref": "http://e.org/x", "$defs": {"x": {"$id": "http://e.org/x"}}}, False),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "array"}, False),
        ({"$ref": "http://json-schema.org/draft-07/schema#"}, True),
        ({"$schema": "http://json-schema.org/schema", "$ref": "http://json-schema.org/draft-04/schema"}, True),
        ({"$id": "http://json-schema.org/draft-07/own", "$ref": "schema"}, True),
        ({"items": {"uniqueItems": True}}, True),
    ],
)  # fmt: skip
def test_which_documents_may_have_items_that_must_differ(schema: Any, expected: bool) -> None:
    assert Document(json.dumps(schema)).may_have("uniqueItems") == expected
    hidden = json.dumps(schema).replace("uniqueItems", "unique\\u0049tems")
    assert Document(hidden).may_have("uniqueItems") == expected
