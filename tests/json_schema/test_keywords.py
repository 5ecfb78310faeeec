"""Values of keywords that are on the border of what is taken."""

from __future__ import annotations

import json

import pytest

import tokdfa
from tests.walks import accepts
from tokdfa.errors import EmptyLanguageError, SchemaError, SchemaUnsupported

LARGEST = 2**31 - 1


def compile_schema(schema: object) -> object:
    return tokdfa.compile(
        tokdfa.JsonSchema(json.dumps(schema)), tokdfa.load_tokenizer("bytes").vocabulary, backend="pushdown_trie"
    )


@pytest.mark.parametrize("keyword", ["maxLength", "maxItems", "maxProperties"])
@pytest.mark.parametrize("bound", [LARGEST - 1, LARGEST, 10**10, 10**100, 1e15])
def test_upper_bounds_that_no_text_comes_to(keyword: str, bound: float) -> None:
    compile_schema({keyword: bound})
    negated = {"not": {keyword: bound}}
    if bound >= LARGEST:
        with pytest.raises(EmptyLanguageError):
            compile_schema(negated)


def test_the_largest_length() -> None:
    compile_schema({"not": {"maxLength": LARGEST - 1}})
    compile_schema({"type": "string", "minLength": LARGEST})
    with pytest.raises(SchemaUnsupported, match="minLength at #: no text is as long as to have 2147483648"):
        compile_schema({"type": "string", "minLength": LARGEST + 1})


@pytest.mark.parametrize("part", [{"$ref": "a"}, {"$id": "a"}, {"$dynamicAnchor": "x"}])
def test_an_id_that_is_no_text(part: dict[str, str]) -> None:
    with pytest.raises(SchemaError, match=r"\$id at #: an id is a text, not \{\}"):
        compile_schema({"$id": {}, "properties": {"": part}})


DRAFT_7, DRAFT_2020 = "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"
DEPENDENCIES = {"dependencies": {"a": ["b"], "c": {"required": ["a"]}, "d": False}}


@pytest.mark.parametrize(
    ("keywords", "draft", "values", "refused"),
    [
        ({"contentEncoding": "base64"}, DRAFT_7, ["", "QQ==", "Q", 1], ["Q"]),
        ({"contentMediaType": "application/json"}, DRAFT_7, ['{"a": [1]}', "{:}", 1], ["{:}"]),
        ({"contentMediaType": "application/json"}, DRAFT_2020, ["{:}"], []),
        (DEPENDENCIES, DRAFT_2020, [{"a": 1}, {"a": 1, "b": 1}, {"c": 1}, {"d": 1}, 1], [{"a": 1}, {"c": 1}, {"d": 1}]),
        ({"format": "date"}, DRAFT_2020, ["x"], ["x"]),
    ],
)
@pytest.mark.parametrize("asserts", ["required", "formats", "all"])
def test_what_drafts_leave_open(asserts: str, keywords: dict, draft: str, values: list, refused: list) -> None:
    constraint = tokdfa.JsonSchema({"$schema": draft, **keywords}, asserts=asserts, order="any")
    compiled = tokdfa.compile(constraint, tokdfa.load_tokenizer("bytes").vocabulary, backend="pushdown_trie")
    wrong = [value for value in values if not accepts(compiled.start(), json.dumps(value))]
    is_asserted = asserts == "all" or (asserts == "formats" and "format" in keywords)
    assert wrong == (refused if is_asserted else [])


@pytest.mark.parametrize("keyword", ["contentEncoding", "contentMediaType"])
def test_contents_that_are_not_asserted(keyword: str) -> None:
    vocab = tokdfa.load_tokenizer("bytes").vocabulary
    for more in ({keyword: "8bit"}, {"contentEncoding": "base64", "contentMediaType": "application/json"}):
        schema = {"properties": {"a": {"type": "string", **more}}, "$schema": DRAFT_7}
        tokdfa.compile(tokdfa.JsonSchema(schema), vocab)
        with pytest.raises(SchemaUnsupported, match=r"at #/properties/a: .*not asserted"):
            tokdfa.compile(tokdfa.JsonSchema(schema, asserts="all"), vocab)
