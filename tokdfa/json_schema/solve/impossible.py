"""Which part of a schema without a value makes it impossible.

From the root on, the search goes to the first part that has no value itself and that every value needs: a required
member, an item that must be there, a schema that must hold, the first of alternatives that are all impossible. What is
impossible although all such parts are possible, such as a minimum above the maximum, is the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokdfa.json_schema.read.document import DRAFT_2020

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.json_schema.read.document import Node
    from tokdfa.json_schema.solve.shape_builder import ShapeBuilder


def find_impossible(oracle: ShapeBuilder) -> str:
    """The JSON pointer of the innermost part that makes the root of a document impossible. O(parts on the way)."""
    node, seen = oracle.document.root, set[int]()
    while node.number not in seen:
        seen.add(node.number)
        node = next((part for part in _needed(oracle, node) if not oracle.has_value(oracle.state(part))), node)
    return node.pointer


def _needed(oracle: ShapeBuilder, node: Node) -> Iterator[Node]:
    """The parts of which every value of a schema needs a value."""
    document, schema = oracle.document, node.schema
    if not isinstance(schema, dict):
        return

    def child(keyword: str, key: str | int | None = None) -> Node:
        part: Any = schema[keyword] if key is None else schema[keyword][key]
        return document.child(node, part, (keyword, key))

    for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        if keyword in schema:
            yield document.target(node, keyword, schema[keyword])
    for keyword in ("allOf", "anyOf", "oneOf"):
        parts = [child(keyword, place) for place in range(len(schema.get(keyword, ())))]
        if keyword == "allOf" or not any(oracle.has_value(oracle.state(part)) for part in parts):
            yield from parts
    for name in schema.get("required", ()):
        if name in schema.get("properties", ()):
            yield child("properties", name)
    listed = "prefixItems" if node.draft >= DRAFT_2020 else "items"
    first = schema[listed] if isinstance(schema.get(listed), list) else []
    needed = schema.get("minItems", 0)
    for place in range(min(len(first), int(needed))):
        yield child(listed, place)
    if needed > len(first) and isinstance(schema.get("items"), dict | bool):
        yield child("items")
    if "contains" in schema:
        yield child("contains")
