"""The names of keywords: which type of value each looks at, the drafts that have it, and what `type` alone demands."""

from __future__ import annotations

from typing import Any

from tokdfa.json_schema.clauses import ANY_ARRAY, ANY_NUMBER, ANY_OBJECT, ANY_STRING, FALSE, NULL, TRUE, Shape, State
from tokdfa.json_schema.document import DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020
from tokdfa.json_schema.number_set import NumberSet

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
INTEGERS, PLAIN_INTEGERS = NumberSet(integer=True), NumberSet(plain=True)
#: The shapes of `type` alone.
PLAIN_SHAPES = {
    "null": Shape(NULL),
    "boolean": Shape(TRUE | FALSE),
    "integer": Shape(numbers=(INTEGERS,)),
    "number": Shape(numbers=(ANY_NUMBER,)),
    "string": Shape(strings=(ANY_STRING,)),
    "array": Shape(arrays=(ANY_ARRAY,)),
    "object": Shape(objects=(ANY_OBJECT,)),
}
PLAIN_INTEGER_SHAPE = Shape(numbers=(PLAIN_INTEGERS,))


def plain_shape(name: Any, draft: int) -> Shape | None:
    """What `type` alone demands; None if its value is not the name of a type."""
    if name == "integer" and draft == DRAFT_4:
        return PLAIN_INTEGER_SHAPE
    return PLAIN_SHAPES.get(name) if isinstance(name, str) else None


#: Numbers of nodes before those of a document, by name and shape: of schemas that demand a plain type and nothing else.
PLAIN_NODES = dict(zip(range(-9, -1), [*PLAIN_SHAPES.items(), ("integer", PLAIN_INTEGER_SHAPE)], strict=True))
#: Their states -> their shapes.
PLAIN_STATES: dict[State, Shape] = {frozenset([2 * number]): shape for number, (_, shape) in PLAIN_NODES.items()}
#: Name and draft of a plain type of scalars -> its state, which is that of all documents.
SCALAR_STATES = {
    (name, draft): frozenset([2 * number])
    for number, (name, shape) in PLAIN_NODES.items()
    for draft in (DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020)
    if not (shape.arrays or shape.objects) and plain_shape(name, draft) is shape
}
