"""Values of `enum` and `const`: the shape that holds exactly some values."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tokdfa.core.budget import is_spent, spend
from tokdfa.errors import LimitExceeded, SchemaUnsupported
from tokdfa.json_schema.read.document import Node, escape_key
from tokdfa.json_schema.sets.number_set import NumberSet
from tokdfa.json_schema.sets.string_set import StringSet
from tokdfa.json_schema.solve.clauses import (
    CLAUSE_BYTES,
    CLAUSE_WORK,
    EVERYTHING,
    FALSE,
    NOTHING,
    NULL,
    TRUE,
    ArrayClause,
    ObjectClause,
    Scope,
    Shape,
)

if TYPE_CHECKING:
    from tokdfa.json_schema.solve.oracle import Oracle


def shape_of_values(oracle: Oracle, node: Node, keyword: str, values: list[Any]) -> Shape:
    """The shape that holds exactly these values. Numbers are equal by value, whatever their spelling."""
    constants = 0
    numbers: dict[int | Decimal, NumberSet] = {}
    strings: list[str] = []
    arrays: list[ArrayClause] = []
    objects: list[ObjectClause] = []
    spend(CLAUSE_WORK * len(values))
    for place, value in enumerate(values):
        if isinstance(value, str):
            strings.append(value)
        elif value is None:
            constants |= NULL
        elif isinstance(value, bool):
            constants |= TRUE if value else FALSE
        elif isinstance(value, int | Decimal):
            # an integer that no double is equal to is read as such only if it is spelled plainly
            plain = True if isinstance(value, int) and not _is_double(value) else None
            try:
                numbers[value] = NumberSet(low=value, high=value, plain=plain)
            except LimitExceeded as error:
                if is_spent(error):
                    raise
                raise SchemaUnsupported(str(error), node.pointer, keyword) from None
        else:
            where = escape_key(keyword) + (escape_key(place) if keyword == "enum" else "")
            if isinstance(value, list):
                arrays.append(_array_of(oracle, node, where, value))
            else:
                objects.append(_object_of(oracle, node, where, value))
    return Shape(
        constants,
        tuple(numbers.values()),
        (StringSet(values=frozenset(strings)),) if strings else (),
        tuple(arrays),
        tuple(objects),
    )


def _is_double(value: int) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False


def _state_of(oracle: Oracle, node: Node, where: str, value: Any):  # type: ignore[no-untyped-def]
    return oracle.state(oracle.synthesize(node, where, {"enum": [value]}))


def _array_of(oracle: Oracle, node: Node, where: str, value: list[Any]) -> ArrayClause:
    spend(CLAUSE_WORK * len(value), CLAUSE_BYTES * len(value))
    states = tuple(_state_of(oracle, node, where + escape_key(k), item) for k, item in enumerate(value))
    return ArrayClause(states, EVERYTHING, len(value), len(value))


def _object_of(oracle: Oracle, node: Node, where: str, value: dict[str, Any]) -> ObjectClause:
    spend(CLAUSE_WORK * len(value), CLAUSE_BYTES * len(value))
    states = {name: _state_of(oracle, node, where + escape_key(name), item) for name, item in value.items()}
    return ObjectClause((Scope(states, (), NOTHING),), tuple(value))
