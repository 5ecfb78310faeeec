"""``profile="generation"``: its options, and that its texts are clean, valid, and some of those of ``all``."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.json_schema.schemas import documents, library_validator
from tests.json_schema.test_lower import (
    CASES,
    FAR_FROM_AN_END,
    REFUSED,
    accepts,
    machine_of,
    random_text,
)
from tests.json_schema.test_program_grammar import grammar_machine, walk_together
from tests.walks import walk_along
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import PROFILES, JsonSchema
from tokdfa.errors import OptionError, TokdfaError
from tokdfa.program.program_file import describe_constraint, rebuild_constraint
from tokdfa.vocabulary.vocabulary import Vocabulary

GENERATION = {"profile": "generation"}
#: What one program reads of it: names that come twice are for a matcher to refuse.
SPELLED = {**GENERATION, "duplicates": "declared"}
TAKEN = [case for case in CASES if case.name not in REFUSED]
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
#: A value of each kind, for engines to agree on; nesting has an end.
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "short": {"type": "string", "maxLength": 3},
        "legs": {"type": "integer", "minimum": 0},
        "share": {"type": "number", "minimum": 0, "maximum": 1},
        "kind": {"enum": ["a b", 1, 2.50, None]},
        "tags": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
        "z\U00050000": {"type": "boolean"},  # F1 is a byte of its name, and no token of every vocabulary
    },
    "required": ["name", "legs"],
    "additionalProperties": False,
}


def test_a_profile_sets_options_and_nothing_else() -> None:
    assert JsonSchema(True) == JsonSchema(True, profile="all") == JsonSchema(True, **PROFILES["all"])
    made = JsonSchema(True, profile="generation")
    assert made == JsonSchema(True, **PROFILES["generation"]) != JsonSchema(True)
    assert (made.escapes, made.blanks, made.numbers, made.number_digits) == ("needed", "few", "natural", 15)
    assert (made.order, made.whitespace, made.item_separator, made.key_separator) == ("schema", "compact", ", ", ": ")
    assert rebuild_constraint(describe_constraint(made)) == made


def test_every_option_can_be_set_beside_a_profile() -> None:
    changed = {"escapes": "all", "blanks": "all", "numbers": "all", "number_digits": 0, "order": "any"}
    for name, value in changed.items():
        made = JsonSchema(True, profile="generation", **{name: value})
        for other in changed:
            expected = value if other == name else getattr(JsonSchema(True, profile="generation"), other)
            assert getattr(made, other) == expected
    flexible = JsonSchema(True, profile="generation", whitespace="flexible")
    compact = JsonSchema(True, profile="generation", whitespace="compact")
    assert {(one.item_separator, one.key_separator) for one in (flexible, compact)} == {(",", ":")}


@pytest.mark.parametrize(
    ("name", "value", "known"),
    [("profile", "pretty", "all, generation"), ("blanks", "none", "all, few"), ("numbers", "short", "all, natural")],
)
def test_wrong_options_are_named(name: str, value: str, known: str) -> None:
    with pytest.raises(OptionError, match=f"{name} .* {known}"):
        JsonSchema(True, **{name: value})


@pytest.mark.parametrize(
    ("schema", "taken", "refused"),
    [
        ({"type": "integer"}, ["0", "-1", "123456789012345"], ["-0", "1.0", "1e0", "1E0", "1234567890123456", " 1"]),
        ({"type": "number"}, ["0", "-1.5", "12.50", "0.0"], ["-0", "-0.0", "1e3", "0.000000000000000"]),
        ({"type": "integer", "minimum": 1e30}, [str(10**30)], ["1e+30", "1" + 31 * "0"]),
        ({"type": "number", "minimum": 1e30}, ["1e+30", "2.5e+31"], [str(10**30), "1e30", "1E+30", "1.0e+30"]),
        ({"const": 1.0}, ["1"], ["1.0", "1e0", "10e-1"]),
        ({"enum": [2.50, 1e3, -0.0]}, ["2.5", "1000", "0"], ["2.50", "1e3", "1000.0", "-0", "-0.0"]),
        (
            {"type": "string"},
            ['""', '"a b"', '"a\\n\\n  b"', '"\u00e9"'],
            ['" a"', '"a     b"', '"a\\n\\n\\nb"', '"\\u0061"'],
        ),
        ({"type": "string", "pattern": "^ +$"}, ['"   "'], ['""']),
        ({"enum": ["  a", "\n\n\n"]}, ['"  a"', '"\\n\\n\\n"'], ['"a"']),
        ({"type": "array"}, ["[]", '[1, "a", {"b": [2]}]'], ["[ ]", "[1,2]", "[1 ,2]", '[{"b":2}]', '[" a"]']),
    ],
    ids=str,
)
def test_what_is_written(schema: Any, taken: list[str], refused: list[str]) -> None:
    machine, every = machine_of(schema, **SPELLED), machine_of(schema)
    assert [text for text in taken if not accepts(machine, text)] == []
    assert [text for text in taken if not accepts(every, text)] == []
    assert [text for text in refused if accepts(machine, text)] == []


class _Written(str):
    """A number as it was written."""


class _Members(list[tuple[str, Any]]):
    """The members of an object, equal names among them."""


def dump(value: Any) -> str:
    """What `json.dumps` writes, with numbers as they were written."""
    if isinstance(value, _Written):
        assert not value.startswith("-") or float(value) < 0, "a negative zero"
        return value
    if isinstance(value, _Members):
        return "{" + ", ".join(f"{dump(name)}: {dump(member)}" for name, member in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(dump, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def check_random_text(schema: Any, draw: random.Random) -> bool:
    """A random text of a schema is clean, valid, and one of all; whether there was one."""
    written = random_text(machine_of(schema, **SPELLED), draw)
    if not written:
        return False
    text = written.decode()
    assert accepts(machine_of(schema), text), text
    respelled = STRING.sub(lambda found: dump(json.loads(found[0])), text)
    read = json.loads(text, parse_int=_Written, parse_float=_Written, object_pairs_hook=_Members)
    assert respelled == dump(read), text
    if "multipleOf" not in json.dumps(schema):  # the library divides floats
        assert library_validator(schema).is_valid(json.loads(text)), text
    return True


@pytest.mark.parametrize("case", TAKEN, ids=lambda case: case.name)
def test_random_texts_of_the_corpus_are_clean_and_valid(case: Any) -> None:
    draw, schema = random.Random(case.name), json.loads(case.schema_text)
    found = [check_random_text(schema, draw) for _ in range(4)]
    assert any(found) or case.name in FAR_FROM_AN_END


@settings(max_examples=60)
@given(documents(), st.randoms(use_true_random=False))
def test_random_schemas_have_texts_in_both_profiles_or_in_none(schema: dict[str, Any], draw: random.Random) -> None:
    try:
        machine_of(schema)
    except TokdfaError as error:
        with pytest.raises(type(error)):
            machine_of(schema, **SPELLED)
        return
    check_random_text(schema, draw)


@pytest.mark.parametrize("case", TAKEN[::3], ids=lambda case: case.name)
def test_the_grammar_allows_the_same_bytes(case: Any) -> None:
    grammar = grammar_machine(case.schema_text, **SPELLED)
    form = machine_of(case.schema_text, **SPELLED)
    assert walk_together(grammar, form, random.Random(case.name), 30) > 0


ENGINES = [
    ("pushdown_trie", {}),
    ("earley_trie", {}),
    ("earley_trie", {"lexer": "one_byte"}),
    ("token_index", {"lazy": True}),
    ("tokens_dfa", {}),
    ("brute_force", {}),
]


@pytest.mark.parametrize("missing", [b"", bytes([4, 20, 0xC0, 0xF1, 0xF2, 0xFF])], ids=["every byte", "some missing"])
def test_engines_have_equal_masks(missing: bytes) -> None:
    """Also over a vocabulary that lacks the bytes that those of GPT-2's kind lack."""
    words = [*(b'{"', b'": ', b", ", b'", "', b"  ", b"\\n"), *b'name legs 12 0. 00 tru e] "} -'.split()]
    single = [bytes([byte]) for byte in range(256) if byte not in missing]
    vocabulary = Vocabulary([*single, *words, b""], end_tokens=[len(single) + len(words)])
    constraint = JsonSchema(SCHEMA, profile="generation", max_nesting=2)
    compiled = [create_backend(name, vocabulary, **options).compile(constraint) for name, options in ENGINES]
    draw = random.Random(0)
    for _ in range(12):
        walk_along([one.start() for one in compiled], vocabulary, (), 60, draw)
