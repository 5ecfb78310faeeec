"""``schema``: JSON schemas, compiled and walked along.

The head is the backend, the vocabulary, and options of `JsonSchema` as JSON.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import tokdfa
from tests.fuzz.case import Case
from tests.fuzz.mutations import mutated_json, mutated_texts, odd_values
from tests.fuzz.walk import NEED_A_TOKENIZER, bounded, vocabulary, walk

FOLDER = Path(__file__).parents[2] / "experiments" / "inputs" / "schemas"

OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"whitespace": "compact"},
    {"order": "any"},
    {"duplicates": "refused"},
    {"duplicates": "refused", "order": "any", "lenient": True},
    {"escapes": "needed"},
    {"lenient": True},
    {"whitespace_pattern": "[ \n]?", "item_separator": ", ", "key_separator": ": "},
)
#: Those that read bounded nesting only get it.
BACKENDS = ("pushdown_trie", "pushdown_trie", "pushdown_trie", "token_index lazy", "tokens_dfa", "cartesian_merge")

_PLAIN_WORDS = r"""
type enum const properties required additionalProperties patternProperties propertyNames minProperties maxProperties
dependentRequired dependentSchemas dependencies items prefixItems additionalItems contains minContains maxContains
minItems maxItems uniqueItems unevaluatedItems unevaluatedProperties minLength maxLength pattern format minimum
maximum exclusiveMinimum exclusiveMaximum multipleOf allOf anyOf oneOf not if then else $ref $id id $anchor
$dynamicRef $dynamicAnchor $recursiveRef $recursiveAnchor $schema $defs definitions $comment default title $vocabulary
contentMediaType x-unknown null boolean integer number string array object any a b ^a b$ (?!a).* [ \d+ # #/ #/$defs/a
#/properties/a #/items/0 #a other.json http://x/y#/z #/%25 #/~2 urn:x date date-time time duration email uri uuid ipv4
ipv6 hostname regex json-pointer http://json-schema.org/draft-03/schema# http://json-schema.org/draft-04/schema#
http://json-schema.org/draft-07/schema# https://json-schema.org/draft/2019-09/schema
"""
#: What is put in, renamed to, and made into texts.
WORDS = tuple(_PLAIN_WORDS.split())

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")


@st.composite
def _small_schemas(draw: st.DrawFn, depth: int = 2) -> Any:
    """Keywords with values of the types that they take, or nearly."""
    if not depth:
        return draw(
            st.sampled_from(
                ({}, True, False, {"type": "string"}, {"type": "integer"}, {"$ref": "#"}, {"enum": [1, "a"]})
            )
        )
    inner = _small_schemas(depth - 1)
    numbers = st.sampled_from((0, 1, 2, 3, 7, 1000, 10**12, -1, 0.1, 1.5, 1e-9, 1e300, 1e-320))
    counts = st.sampled_from((0, 1, 2, 3, 7, 1000, 10**6, 2**31 - 1, 2**31, 10**12, 1.0, 1e300)) | st.just("2")
    lists, words = st.lists(inner, max_size=3), st.sampled_from(WORDS)
    maps = st.dictionaries(words, inner, max_size=3)
    values = {
        **dict.fromkeys(("items", "contains", "not", "if", "then", "else", "propertyNames"), inner),
        **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties", "additionalItems"), inner),
        **dict.fromkeys(("additionalProperties",), inner),
        **dict.fromkeys(("properties", "patternProperties", "dependentSchemas", "$defs", "dependencies"), maps),
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), lists),
        **dict.fromkeys(("minItems", "maxItems", "minLength", "maxLength", "minContains"), counts),
        **dict.fromkeys(("minProperties", "maxProperties", "maxContains"), counts),
        **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), numbers),
        **dict.fromkeys(("format", "pattern", "$ref", "$id", "$anchor", "$dynamicRef", "$schema"), words),
        "type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), max_size=3),
        **dict.fromkeys(("const",), odd_values(WORDS)),
        **dict.fromkeys(("enum", "required"), st.lists(odd_values(WORDS), max_size=4)),
        "uniqueItems": st.booleans(),
    }  # fmt: skip
    chosen = draw(st.lists(st.sampled_from(sorted(values)), max_size=4, unique=True))
    return {keyword: draw(values[keyword]) for keyword in chosen}


class SchemaEntry:
    """See the module's docstring."""

    name = "schema"

    def __init__(self) -> None:
        self.seeds: tuple[str, ...] = ()

    def prepare(self) -> None:
        found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))]
        self.seeds = tuple(json.dumps(case["schema"]) for case in found)
        for backend in dict.fromkeys(BACKENDS):
            for text in (
                '{"type": "integer", "maximum": 5}',
                '{"properties": {"a": {"type": "string", "minLength": 2}}}',
            ):
                self.run(Case(self._head(backend, "words", {"escapes": "needed"}), text))

    def _head(self, backend: str, words: str, options: dict[str, Any]) -> str:
        nesting = {} if backend == "pushdown_trie" else {"max_nesting": 2}
        return f"{backend.replace(' ', '+')} {words} {json.dumps({**options, **nesting})}"

    def cases(self) -> st.SearchStrategy[Case]:
        texts = st.one_of(
            *[mutated_json(self.seeds, WORDS).map(json.dumps)] * 3,
            *[_small_schemas().map(json.dumps)] * 3,
            mutated_texts(self.seeds, WORDS),
        )
        words = st.sampled_from(("bytes", "words", "words"))
        head = st.builds(self._head, st.sampled_from(BACKENDS), words, st.sampled_from(OPTIONS))
        return st.builds(Case, head, texts)

    def run(self, case: Case) -> str:
        backend, words, options = case.head.split(" ", 2)
        name, _, lazy = backend.partition("+")
        words = "bytes" if name in NEED_A_TOKENIZER else words
        schema = tokdfa.JsonSchema(str(case.body), **json.loads(options))
        walk(tokdfa.compile(schema, vocabulary(words), backend=name, **bounded(name, lazy)))
        return "accepted"


ENTRY = SchemaEntry()
