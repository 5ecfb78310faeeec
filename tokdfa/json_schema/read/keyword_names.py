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
#: Keywords that apply schemas to the same value, or list values.
APPLICATORS = frozenset(["enum", "const", "allOf", "anyOf", "oneOf", "not", "if"]) | {
    *("$ref", "$recursiveRef", "$dynamicRef", "dependencies", "dependentRequired", "dependentSchemas"),
    *("unevaluatedProperties", "unevaluatedItems"),
}
#: The first draft that has a keyword, and the last, where that is not all of them.
SPAN = {
    **dict.fromkeys(("const", "contains", "propertyNames"), (DRAFT_6, DRAFT_2020)),
    "if": (DRAFT_7, DRAFT_2020),
    **dict.fromkeys(("minContains", "maxContains", "dependentRequired", "dependentSchemas"), (DRAFT_2019, DRAFT_2020)),
    **dict.fromkeys(("unevaluatedProperties", "unevaluatedItems"), (DRAFT_2019, DRAFT_2020)),
    **dict.fromkeys(("prefixItems", "$dynamicRef"), (DRAFT_2020, DRAFT_2020)),
    "additionalItems": (DRAFT_4, DRAFT_2019),
    "$recursiveRef": (DRAFT_2019, DRAFT_2019),
    "dependencies": (DRAFT_4, DRAFT_7),
}

#: A schema without any of these demands its `type` and nothing else.
DEMANDING = TYPED_KEYWORDS | APPLICATORS | {"$schema"}

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")


def is_in_draft(keyword: str, draft: int) -> bool:
    """Whether a draft has a keyword."""
    first, last = SPAN.get(keyword, (draft, draft))
    return first <= draft <= last
