"""Grammars of schemas against the forms they are read from, the labels of the corpus, and random schemas."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.json_schema.schemas import COMMON_VALUES, documents, library_validator, small_values
from tests.json_schema.test_lower import CASES, NOT_SPELLED, REFUSED, machine_of
from tests.json_schema.test_lower import accepts as program_takes
from tokdfa.backends.earley_trie import machine as recogniser
from tokdfa.constraint import JsonSchema
from tokdfa.errors import LimitExceeded, OptionError, RegexSyntaxError, SchemaUnsupported, TokdfaError
from tokdfa.json_schema.solve import clauses
from tokdfa.json_schema.write.lower import lower_schema
from tokdfa.json_schema.write.program_grammar import schema_grammar

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from tokdfa.backends.pushdown_trie.machine import Machine

EVERY_BYTE = np.arange(256, dtype=np.uint8)


def grammar_machine(schema: Any, *, longest: bool = True, **options: Any) -> recogniser.Machine:
    return recogniser.Machine(schema_grammar(JsonSchema(schema, **options))[0], longest=longest)


def accepts(machine: recogniser.Machine, text: str) -> bool:
    data = np.frombuffer(text.encode(), dtype=np.uint8)
    situation = machine.run(machine.start, data, 0, len(data))
    return situation >= 0 and machine.can_end(situation)


def spellings(text: str) -> Iterator[str]:
    """A text, and others of its value."""
    yield text
    value = json.loads(text)
    if json.dumps(value, ensure_ascii=False) == text:
        yield json.dumps(value, indent=2)
        yield json.dumps(value, separators=(",", ":"))


def walk_together(grammar: recogniser.Machine, program: Machine, draw: random.Random, steps: int) -> int:
    """Read random bytes with both; after each, the same bytes must be allowed. How many there were."""
    situation, row = grammar.start, 0
    for step in range(steps):
        rows = program.following_rows(row).tolist()
        found = [grammar.run(situation, EVERY_BYTE, byte, byte + 1) for byte in range(256)]
        assert [byte for byte in range(256) if found[byte] >= 0] == [byte for byte in range(256) if rows[byte] >= 0]
        assert grammar.can_end(situation) == program.can_end(row)
        following = [byte for byte in range(256) if found[byte] >= 0]
        if not following:
            return step
        plain = [byte for byte in following if 32 < byte < 127]
        byte = draw.choice(plain if plain and draw.random() < 0.9 else following)
        situation, row = found[byte], rows[byte]
    return steps


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_corpus_instances_are_judged_as_labelled(case: Any) -> None:
    """Of all schemas of the corpus that are not refused every label is met, in other spellings too, by both forms."""
    if case.name in REFUSED:
        for lower in (lower_schema, schema_grammar):
            with pytest.raises(SchemaUnsupported) as caught:
                lower(JsonSchema(case.schema_text))
            assert caught.value.keyword == REFUSED[case.name]
        return
    grammar, program = grammar_machine(case.schema_text), machine_of(case.schema_text)
    for test in case.tests:
        for text in spellings(test.text):
            assert accepts(grammar, text) == (test.valid and text not in NOT_SPELLED), text
            assert program_takes(program, text) == (test.valid and text not in NOT_SPELLED), text


@pytest.mark.parametrize("multiplied", [clauses.MULTIPLIED, 1])
def test_random_schemas(multiplied: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both forms allow the same bytes, whichever rule ends lexemes. In any order of members they take what the library
    finds valid; in the schema's order, nothing else.

    `multiplied`: so many clauses before there are choices; 1: nothing that can be a choice is multiplied out.
    """
    monkeypatch.setattr(clauses, "MULTIPLIED", multiplied)
    count = Counter[Any]()

    @settings(max_examples=60)
    @given(
        documents(), st.lists(small_values, max_size=4), st.randoms(use_true_random=False), st.booleans(), st.booleans()
    )
    def check(schema: dict[str, Any], drawn: list[Any], draw: random.Random, any_order: bool, longest: bool) -> None:
        options = {"order": "any" if any_order else "schema", "escapes": draw.choice(["all", "needed"])}
        is_valid = library_validator(schema).is_valid
        try:
            program = machine_of(schema, **options)
        except TokdfaError as error:
            with pytest.raises(type(error)):
                schema_grammar(JsonSchema(schema, **options))
            if not isinstance(error, SchemaUnsupported):
                assert not any(map(is_valid, (*drawn, *COMMON_VALUES)))
            count[type(error)] += 1
            return
        grammar = grammar_machine(schema, longest=longest, **options)
        for value in (*drawn, *COMMON_VALUES):
            text = json.dumps(value, ensure_ascii=False)
            taken = program_takes(program, text)
            assert accepts(grammar, text) == taken, text
            if "multipleOf" not in str(schema):  # the library divides floats
                assert taken == is_valid(value) or (not any_order and not taken), text
                count[taken, any_order] += 1
        for _ in range(3):
            walk_together(grammar, program, draw, 12)

    check()
    assert count[SchemaUnsupported] < 12
    assert min(count[taken, any_order] for taken in (True, False) for any_order in (True, False)) > 100


SPELLED = {"whitespace_pattern": "(  )?"}, {"whitespace": "compact", "item_separator": ", ", "key_separator": ": "}


@pytest.mark.parametrize("options", SPELLED, ids=lambda options: next(iter(options)))
@pytest.mark.parametrize("longest", [True, False])
def test_blanks_and_separators(options: dict[str, str], longest: bool) -> None:
    grammar, program = grammar_machine(True, longest=longest, **options), machine_of(True, **options)
    taken = 0
    for text in ("[  1.5  ]", "[1.5 ]", '{"a": [1, true]}', '{"a" :1}', "[[],  {}  ]", "[  ]", "[ ]", "[1,2]", " 1"):
        assert accepts(grammar, text) == program_takes(program, text), text
        taken += accepts(grammar, text)
    assert 0 < taken < 9


@pytest.mark.parametrize("pattern", ["x*", "[ x]*", " |\\f", "\\s*", "[\\t ]?\xa0?", " *(?!\n)[^a]?", "(?s:.)?"])
def test_blanks_must_be_blanks(pattern: str) -> None:
    constraint = JsonSchema(True, whitespace_pattern=pattern)
    for lowering in (schema_grammar, lower_schema):
        with pytest.raises(OptionError, match=r"whitespace_pattern .* takes b'.*no JSON text .* may take blanks, tabs"):
            lowering(constraint)


@pytest.mark.parametrize("pattern", [r"[ \t\n\r]*", " ?", "\\n {0,4}", "(?=[ ])[^x]", "(?! *x)[ \\r]+"])
def test_blanks_however_they_are_written(pattern: str) -> None:
    lower_schema(JsonSchema(True, whitespace_pattern=pattern))


def test_a_broken_pattern_of_blanks() -> None:
    with pytest.raises(RegexSyntaxError):
        schema_grammar(JsonSchema(True, whitespace_pattern="("))


@pytest.mark.parametrize(
    ("schema", "options", "place"),
    [
        ({"type": "array", "minItems": 10**6}, {}, "#"),
        ({"properties": {"b": {}, "a": {"items": {"items": {"maxItems": 10**7}}}}}, {}, "#/properties/a/items/items"),
        ({"properties": {"a": {"uniqueItems": True, "items": {"enum": list(range(20))}}}}, {}, "#/properties/a"),
        ({"properties": {"a": {"properties": {n: {} for n in "abcdefghijklm"}}}}, {"order": "any"}, "#/properties/a"),
    ],
)
def test_what_counts_too_far_is_refused_by_its_place(schema: Any, options: dict[str, str], place: str) -> None:
    with pytest.raises(LimitExceeded, match=f"^{place}: all that may be read there comes to more than 3000 ") as caught:
        schema_grammar(JsonSchema(schema, **options), 3_000)
    assert caught.value.limit == "max_instructions"


def test_counted_parts_are_exact_up_to_the_limit() -> None:
    schema = {"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 400}
    grammar = grammar_machine(schema)
    for count in (0, 2, 3, 17, 399, 400, 401):
        assert accepts(grammar, json.dumps([7] * count)) == (3 <= count <= 400)
    unique = grammar_machine({"type": "array", "items": {"enum": [1, 2, "3"]}, "uniqueItems": True, "minItems": 2})
    assert accepts(unique, '[2, 1, "3"]')
    for text in ("[1]", "[1, 1]", "[1, 1.0]", "[1, 2, 1]"):
        assert not accepts(unique, text)


def test_windows_of_names_share_their_rules() -> None:
    """Each member is followed by a window of all later ones; the rules grow with the members, not with their square."""
    sizes = []
    for count in (100, 200, 300):
        properties = {f"name{k}": {"type": "null" if k % 2 else "boolean"} for k in range(count)}
        cfg, _ = schema_grammar(JsonSchema({"type": "object", "properties": properties}))
        sizes.append(len(cfg.rules))
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0]
    grammar = grammar_machine({"type": "object", "properties": properties})
    assert accepts(grammar, '{"name4": true, "name5": null, "name199": null, "other": 1}')
    for text in ('{"name5": null, "name4": true}', '{"name4": null}', '{"other": 1, "name4": true}'):
        assert not accepts(grammar, text)


def test_lists_run_in_a_few_rows_and_brackets_nest_without_end() -> None:
    schema = {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    grammar = grammar_machine(schema)
    item = '{"a": 1, "b": [{}, [2]]}'
    assert accepts(grammar, f"[{item}, {item}]")
    rows = grammar.rows.row_count
    assert accepts(grammar, f"[{', '.join([item] * 300)}]")
    assert grammar.rows.row_count <= rows + 20
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False}
    grammar = grammar_machine(tree)
    assert accepts(grammar, '{"next":' * 2_000 + "{}" + "}" * 2_000)
    assert not accepts(grammar, '{"next":' * 2_000 + "[]" + "}" * 2_000)
