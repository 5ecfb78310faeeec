"""The names of keywords: which type of value each looks at, and the drafts that have it."""

from __future__ import annotations

from tokdfa.json_schema.read.document import DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020

NUMBER_KEYWORDS = frozenset(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"])
CONTENT_KEYWORDS = ("contentEncoding", "contentMediaType")
STRING_KEYWORDS = frozenset(["minLength", "maxLength", "pattern", "format", *CONTENT_KEYWORDS])
COUNT_KEYWORDS = frozenset(["minItems", "maxItems", "contains", "minContains", "maxContains", "uniqueItems"])
ARRAY_KEYWORDS = COUNT_KEYWORDS | {"items", "additionalItems", "prefixItems"}
MEMBER_KEYWORDS = frozenset(["properties", "patternProperties", "additionalProperties", "propertyNames"])
OBJECT_KEYWORDS = MEMBER_KEYWORDS | {"required", "minProperties", "maxProperties"}
#: What most objects have at most, in the order in which it is read.
PLAIN_OBJECT_KEYWORDS = frozenset(["properties", "required", "additionalProperties"])
TYPED_KEYWORDS = NUMBER_KEYWORDS | STRING_KEYWORDS | ARRAY_KEYWORDS | OBJECT_KEYWORDS
#: The first draft that has a keyword, and the last (None: still there), where that is not all of them.
SPAN = {
    "const": (DRAFT_6, None),
    "contains": (DRAFT_6, None),
    "propertyNames": (DRAFT_6, None),
    "minContains": (DRAFT_2019, None),
    "maxContains": (DRAFT_2019, None),
    "prefixItems": (DRAFT_2020, None),
    "additionalItems": (DRAFT_4, DRAFT_2019),
}
#: Keywords that apply schemas to the same value -> the first draft that has them, the last.
APPLICATORS: dict[str, tuple[int, int]] = {
    "enum": (0, 9),
    "const": (DRAFT_6, 9),
    "allOf": (0, 9),
    "anyOf": (0, 9),
    "oneOf": (0, 9),
    "not": (0, 9),
    "if": (DRAFT_7, 9),
    "$ref": (0, 9),
    "$recursiveRef": (DRAFT_2019, DRAFT_2019),
    "$dynamicRef": (DRAFT_2020, 9),
    "dependencies": (0, DRAFT_7),
    "dependentRequired": (DRAFT_2019, 9),
    "dependentSchemas": (DRAFT_2019, 9),
    "unevaluatedProperties": (DRAFT_2019, 9),
    "unevaluatedItems": (DRAFT_2019, 9),
}

#: A schema without any of these demands its `type` and nothing else.
DEMANDING = TYPED_KEYWORDS | APPLICATORS.keys() | {"$schema"}

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
