"""What `type` alone demands: a shape for each name, and states that all documents share."""

from __future__ import annotations

from typing import Any

from tokdfa.json_schema.read.document import DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020
from tokdfa.json_schema.sets.number_set import NumberSet
from tokdfa.json_schema.solve.clauses import (
    ANY_ARRAY,
    ANY_NUMBER,
    ANY_OBJECT,
    ANY_STRING,
    FALSE,
    NULL,
    TRUE,
    Shape,
    State,
)

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
