"""Values of keywords that are on the border of what is taken."""

from __future__ import annotations

import json

import pytest

import tokdfa
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
