"""unevaluatedProperties and unevaluatedItems, where they reduce to what the schema says in any case.

Both look at what other keywords have looked at, in place applicators included. What properties, items, allOf and
``$ref`` look at does not depend on the value, so the keyword is then an additionalProperties (or items) beside the
union of their names. Where a choice (anyOf, oneOf, if, dependentSchemas, contains) looks at more than that, what is
left over depends on the value, and the keyword is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.errors import SchemaUnsupported
from tokdfa.json_schema.clauses import ANYTHING, EVERYTHING, ArrayClause, ObjectClause, Scope, Shape
from tokdfa.json_schema.document import DRAFT_2020, Node, escape_key

if TYPE_CHECKING:
    from tokdfa.json_schema.expand import Expander

UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")


class _Seen:
    """What keywords look at: names, patterns and a number of first items; `all_names`, `all_items`: everything."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.patterns: dict[str, None] = {}
        self.items = 0
        self.all_names = self.all_items = False

    def holds(self, other: _Seen) -> bool:
        """Whether all that `other` looks at is looked at here, too."""
        names = self.all_names or (
            not other.all_names
            and other.names.keys() <= self.names.keys()
            and other.patterns.keys() <= self.patterns.keys()
        )
        return names and (self.all_items or (not other.all_items and other.items <= self.items))


def unevaluated_shape(expander: Expander, node: Node, keyword: str) -> Shape:
    """What the keyword demands. Raises SchemaUnsupported where it depends on the value."""
    seen = _Seen()
    try:
        _look(expander, node, seen, seen, set(), keyword)
    except SchemaUnsupported as error:  # the keyword at fault stands here
        raise SchemaUnsupported(f"#{error.pointer}: {error.reason}", node.pointer, keyword) from None
    state = expander.part(node, node.schema[keyword], keyword)
    if not state:
        return ANYTHING
    if keyword == "unevaluatedItems":
        if seen.all_items:
            return ANYTHING
        array = ArrayClause((EVERYTHING,) * seen.items, state)
        return Shape(ANYTHING.constants, ANYTHING.numbers, ANYTHING.strings, (array,), ANYTHING.objects)
    if seen.all_names:
        return ANYTHING
    scope = Scope(dict.fromkeys(seen.names, EVERYTHING), tuple((name, EVERYTHING) for name in seen.patterns), state)
    clause = ObjectClause(scopes=(scope,))
    return Shape(ANYTHING.constants, ANYTHING.numbers, ANYTHING.strings, ANYTHING.arrays, (clause,))


def _look(expander: Expander, node: Node, seen: _Seen, certain: _Seen, met: set[int], keyword: str) -> None:
    """Add to `seen` what a node's keywords look at, and check that its choices look at nothing beyond `certain`."""
    schema, outermost = node.schema, not met
    if not isinstance(schema, dict) or node.number in met:
        return
    met.add(node.number)
    document = expander.document
    seen.names.update(dict.fromkeys(schema.get("properties", {})))
    seen.patterns.update(dict.fromkeys(schema.get("patternProperties", {})))
    seen.all_names |= "additionalProperties" in schema or (not outermost and "unevaluatedProperties" in schema)
    listed = schema.get("prefixItems" if node.draft >= DRAFT_2020 else "items")
    if isinstance(listed, list):
        seen.items = max(seen.items, len(listed))
        seen.all_items |= ("items" if node.draft >= DRAFT_2020 else "additionalItems") in schema
    else:
        seen.all_items |= "items" in schema
    seen.all_items |= not outermost and "unevaluatedItems" in schema
    for place, part in enumerate(schema.get("allOf", ())):
        child = document.child(node, part, f"/allOf/{place}")
        _look(expander, child, seen, certain, met, keyword)
    if "$ref" in schema:
        _look(expander, document.target(node, "$ref", schema["$ref"]), seen, certain, met, keyword)
    if "$dynamicRef" in schema or "$recursiveRef" in schema:
        raise SchemaUnsupported("what a dynamic reference looks at is not known", node.pointer, keyword)
    choices = []
    for name in ("anyOf", "oneOf"):
        choices += [document.child(node, part, f"/{name}/{k}") for k, part in enumerate(schema.get(name, ()))]
    choices += [document.child(node, schema[name], f"/{name}") for name in ("if", "then", "else") if name in schema]
    for name, part in schema.get("dependentSchemas", {}).items():
        choices.append(document.child(node, part, f"/dependentSchemas{escape_key(name)}"))
    if node.draft >= DRAFT_2020 and "contains" in schema and keyword == "unevaluatedItems":
        raise SchemaUnsupported("which items contains looks at depends on the value", node.pointer, keyword)
    for choice in choices:
        branch = _Seen()
        _look(expander, choice, branch, certain, met, keyword)
        if not certain.holds(branch):
            raise SchemaUnsupported("a choice looks at parts that the rest does not", choice.pointer, keyword)
