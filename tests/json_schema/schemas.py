"""Hypothesis strategies of JSON schemas, and values that meet their keywords: both are made of the same few names,
strings and numbers, so that neither "valid" nor "invalid" is rare.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from tests.naive.schema_values import holds
from tokdfa.json_schema.read.document import DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020, DRAFTS, Document
from tokdfa.json_schema.solve.clauses import EVERYTHING, NEVER, NOTHING, State
from tokdfa.json_schema.solve.shape_builder import ShapeBuilder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SCHEMA_URI = {draft: uri for uri, draft in DRAFTS.items()}

NAMES = ("a", "b", "c", "ab", "ba", "")
STRINGS = (*NAMES, "aab", "é", "😀😀", "1.2.3.4")
NUMBERS = (0, 1, 2, 3, -1, 6, 0.5, 1.0, 1.5, 2.5, -3.0)
CONSTANTS = (None, True, False)
PATTERNS = ("^a", "b", "^.$", "^$", "a$", "^[ab]*$", "(?!a)^.")
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
DEFINITIONS = 3

scalars = st.sampled_from(CONSTANTS + NUMBERS + STRINGS)
small_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=5,
)
values = st.one_of(
    scalars,
    st.lists(small_values, max_size=4),
    st.dictionaries(st.sampled_from(NAMES), small_values, max_size=4),
)
#: Values for every schema, beside those that are drawn.
COMMON_VALUES: tuple[Any, ...] = (
    *(*CONSTANTS, *NUMBERS, *STRINGS, [], [1], [1, 1], [1, 1.0], [True, 1], ["a"], ["a", "b"], [0, 1, 2], [[]], [{}]),
    *({}, {"a": 1}, {"b": 1}, {"a": "a"}, {"a": 1, "b": 2}, {"ab": 1}, {"": 1}, {"a": 1, "b": 2, "c": 3}, {"c": None}),
    *({"a": {}}, {"a": []}, {"a": {"a": 1}}, {"ba": 1, "b": 1}),
)


def exact(value: Any) -> Any:
    """A value with its fractions as Decimal, as `Document` reads them."""
    return json.loads(json.dumps(value), parse_float=Decimal)


def expand(schema: Any, registry: str = "") -> tuple[ShapeBuilder, State, State]:
    """The shape_builder of a schema (text, or what `json.dumps` takes), the state of its root, that of the negation.

    Equal schemas are one node, as in `lower_schema`.
    """
    document = Document(schema if isinstance(schema, str) else json.dumps(schema), registry, shares=True)
    shape_builder = ShapeBuilder(document)
    root = shape_builder.state(document.root)
    if not root or NEVER in root:
        return shape_builder, root, EVERYTHING if root else NOTHING
    return shape_builder, root, frozenset(literal ^ 1 for literal in root)


def held(schema: Any, candidates: Iterable[Any], registry: str = "") -> list[Any]:
    """Which of some values a schema holds."""
    shape_builder, root, _ = expand(schema, registry)
    return [value for value in candidates if holds(shape_builder, root, exact(value))]


def library_validator(schema: Any, registry: Any = None) -> Any:
    """The validator of the library `jsonschema` for the declared draft, formats asserted."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    made = validator_for(schema, default=Draft202012Validator)
    given = {} if registry is None else {"registry": registry}
    return made(schema, format_checker=Draft202012Validator.FORMAT_CHECKER, **given)


def agreed(schema: Any, candidates: Iterable[Any]) -> list[Any]:
    """`held`, if the library says the same."""
    found, valid = held(schema, candidates), list(filter(library_validator(schema).is_valid, candidates))
    assert found == valid
    return found


class _Maker:
    """Draws the schemas of one document. `depth` bounds the nesting. `level`: only definitions from there on may be
    referred to at this place, so that there is no loop in place; parts of a value begin at 0 again.
    """

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any], draft: int, unevaluated: bool) -> None:
        self.draw, self.draft = draw, draft
        self.ingredients = [
            self.type, self.values, self.numbers, self.strings, self.arrays, self.tuples, self.contains,
            self.members, self.members, self.names, self.counts, self.combined, self.combined, self.negated,
            self.reference, self.conditional, self.dependencies,
        ]  # fmt: skip
        if unevaluated:
            self.ingredients += [self.unevaluated] * 4

    def choose(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def some(self, options: tuple[Any, ...], least: int, most: int) -> list[Any]:
        return self.draw(st.lists(st.sampled_from(options), min_size=least, max_size=most, unique=True))

    def schema(self, depth: int, level: int) -> Any:
        if self.draft >= DRAFT_6 and self.draw(st.integers(0, 9)) == 0:
            return self.draw(st.booleans())
        ingredients = self.ingredients if depth > 0 else [self.type, self.values, self.numbers, self.strings]
        schema: dict[str, Any] = {}
        for make in self.draw(st.lists(st.sampled_from(ingredients), min_size=depth > 0, max_size=3)):
            schema.update(make(depth - 1, level))
        if isinstance(schema.get("items"), bool):
            schema.pop("additionalItems", None)  # the library fails at both
        return schema

    def part(self, depth: int) -> Any:
        return self.schema(depth, 0)

    def type(self, depth: int, level: int) -> dict[str, Any]:
        return {"type": self.choose(*TYPES) if self.draw(st.booleans()) else self.some(TYPES, 1, 4)}

    def values(self, depth: int, level: int) -> dict[str, Any]:
        if self.draw(st.booleans()):
            return {"const": self.draw(small_values)}
        # draft 4 wants each value once; 1 and 1.0 are one
        alike = (lambda value: str(value).replace(".0", "")) if self.draft == DRAFT_4 else None
        return {"enum": self.draw(st.lists(small_values, min_size=1, max_size=4, unique_by=alike))}

    def numbers(self, depth: int, level: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for keyword in self.some(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), 1, 2):
            if keyword.startswith("exclusive") and self.draft == DRAFT_4:
                found[keyword] = self.draw(st.booleans())
                found[keyword[9:].lower()] = self.choose(*NUMBERS)
            else:
                found[keyword] = self.choose(*NUMBERS) if keyword != "multipleOf" else self.choose(1, 2, 3, 0.5, 1.5)
        return found

    def strings(self, depth: int, level: int) -> dict[str, Any]:
        keyword = self.choose("minLength", "maxLength", "pattern", "pattern", "format")
        if keyword == "pattern":
            return {"pattern": self.choose(*PATTERNS)}
        if keyword == "format":
            return {"format": self.choose("ipv4", "unknown")}
        return {keyword: self.choose(0, 1, 2, 2.0)}

    def arrays(self, depth: int, level: int) -> dict[str, Any]:
        keyword = self.choose("items", "items", "minItems", "maxItems", "uniqueItems")
        if keyword == "items":
            return {"items": self.part(depth)}
        return {keyword: self.draw(st.booleans()) if keyword == "uniqueItems" else self.choose(0, 1, 2, 3)}

    def tuples(self, depth: int, level: int) -> dict[str, Any]:
        listed = [self.part(depth) for _ in range(self.choose(1, 2))]
        rest = self.draw(st.booleans()) if self.draw(st.booleans()) else self.part(depth)
        if self.draft >= DRAFT_2020:
            return {"prefixItems": listed, "items": rest}
        return {"items": listed, "additionalItems": rest}

    def contains(self, depth: int, level: int) -> dict[str, Any]:
        found = {"contains": self.part(depth)}
        for keyword in self.some(("minContains", "maxContains"), 0, 2):
            found[keyword] = self.choose(0, 1, 2)
        return found

    def members(self, depth: int, level: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for keyword in self.some(("properties", "patternProperties", "additionalProperties", "required"), 1, 3):
            if keyword == "properties":
                found[keyword] = {name: self.part(depth) for name in self.some(NAMES, 1, 3)}
            elif keyword == "patternProperties":
                found[keyword] = {pattern: self.part(depth) for pattern in self.some(PATTERNS, 1, 2)}
            elif keyword == "required":
                found[keyword] = self.some(NAMES, 1, 2)
            else:
                found[keyword] = self.draw(st.booleans()) if self.draw(st.booleans()) else self.part(depth)
        return found

    def names(self, depth: int, level: int) -> dict[str, Any]:
        return {"propertyNames": self.part(min(depth, 1))}

    def counts(self, depth: int, level: int) -> dict[str, Any]:
        return {self.choose("minProperties", "maxProperties"): self.choose(0, 1, 2, 3)}

    def combined(self, depth: int, level: int) -> dict[str, Any]:
        keyword = self.choose("allOf", "anyOf", "oneOf")
        return {keyword: [self.schema(depth, level) for _ in range(self.choose(1, 2, 2, 3))]}

    def negated(self, depth: int, level: int) -> dict[str, Any]:
        return {"not": self.schema(depth, level)}

    def reference(self, depth: int, level: int) -> dict[str, Any]:
        if level >= DEFINITIONS:
            return {}
        place = self.choose(*range(level, DEFINITIONS))
        return {"$ref": f"#/{definitions_of(self.draft)}/d{place}"}

    def conditional(self, depth: int, level: int) -> dict[str, Any]:
        found = {"if": self.schema(depth, level)}
        for keyword in self.some(("then", "else"), 0, 2):
            found[keyword] = self.schema(depth, level)
        return found

    def dependencies(self, depth: int, level: int) -> dict[str, Any]:
        keyword = self.choose("dependentRequired", "dependentSchemas") if self.draft >= DRAFT_2019 else "dependencies"
        is_listed = keyword == "dependentRequired" or (keyword == "dependencies" and self.draw(st.booleans()))
        names = self.some(NAMES, 1, 2)
        return {keyword: {name: self.some(NAMES, 1, 2) if is_listed else self.schema(depth, level) for name in names}}

    def unevaluated(self, depth: int, level: int) -> dict[str, Any]:
        keyword = self.choose("unevaluatedProperties", "unevaluatedItems")
        return {keyword: False if self.draw(st.booleans()) else self.part(depth)}


def definitions_of(draft: int) -> str:
    return "definitions" if draft <= DRAFT_7 else "$defs"


@st.composite
def documents(
    draw: Callable[[st.SearchStrategy[Any]], Any],
    drafts: tuple[int, ...] = (DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020),
    depth: int = 3,
    unevaluated: bool = False,
) -> dict[str, Any]:
    """Whole schemas with ``$schema``, and with definitions that may refer to each other (never in place in a loop).

    `unevaluated`: with one of the keywords that look at what others have looked at, in the root at least.
    """
    draft = draw(st.sampled_from(drafts))
    maker = _Maker(draw, draft, unevaluated)
    root = maker.schema(depth, 0)
    if not isinstance(root, dict):
        root = {"allOf": [root]}
    if unevaluated:
        root.update(maker.unevaluated(1, 0))
    definitions: dict[str, Any] = {}
    for place in range(DEFINITIONS):
        is_used = f"/d{place}'" in str((root, definitions))
        definitions[f"d{place}"] = maker.schema(1, place + 1) if is_used else {"type": "integer"}
    return {"$schema": SCHEMA_URI[draft], **root, definitions_of(draft): definitions}
