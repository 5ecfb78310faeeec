"""The keywords that look at one type of value: from a node to a shape with at most one clause of each type.

`type` chooses the types; the keywords of a type make its clause. A keyword binds only values of its type, so a node
without `type` leaves all other values alone. Values that the drafts do not allow for a keyword are a SchemaError.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tokdfa.core.budget import is_spent, spend
from tokdfa.errors import LimitExceeded, RegexSyntaxError, SchemaError, SchemaUnsupported, UnsupportedConstraint
from tokdfa.json_schema.read.document import DRAFT_4, DRAFT_7, DRAFT_2020, Node
from tokdfa.json_schema.read.keyword_names import (
    ARRAY_KEYWORDS,
    CONTENT_KEYWORDS,
    COUNT_KEYWORDS,
    NUMBER_KEYWORDS,
    OBJECT_KEYWORDS,
    PLAIN_OBJECT_KEYWORDS,
    SPAN,
    STRING_KEYWORDS,
    TYPED_KEYWORDS,
    TYPES,
    is_in_draft,
)
from tokdfa.json_schema.sets.formats import ASSERTED, CONTENTS
from tokdfa.json_schema.sets.number_set import DIGITS, NumberSet
from tokdfa.json_schema.sets.patterns import parse_pattern
from tokdfa.json_schema.sets.string_set import StringSet
from tokdfa.json_schema.solve.clauses import (
    ANY_ARRAY,
    ANY_NUMBER,
    ANY_OBJECT,
    ANY_STRING,
    ANYTHING,
    EVERYTHING,
    FALSE,
    FEW,
    LOOKUP_WORK,
    NULL,
    TRUE,
    ArrayClause,
    Count,
    ObjectClause,
    Scope,
    Shape,
)
from tokdfa.json_schema.solve.plain_types import INTEGERS, PLAIN_INTEGERS, plain_shape

if TYPE_CHECKING:
    from tokdfa.json_schema.solve.oracle import Oracle

#: The largest lower bound of a length or a number of parts: it is an int32. No upper bound from there on is one.
MAX_COUNT = (1 << 31) - 1
#: Work and memory (`tokdfa.core.budget`) of reading one member or item of a schema.
MEMBER_WORK, MEMBER_BYTES = 2_000, 200


def local_shape(oracle: Oracle, node: Node) -> Shape:
    """What `type` and the keywords of the types demand."""
    schema = node.schema
    given = schema.keys() & TYPED_KEYWORDS
    name = schema.get("type")
    if not given:  # the shapes of plain types are shared, which spares work on every one
        if name is None and "type" not in schema:
            return ANYTHING
        shape = plain_shape(name, node.draft)
        if shape is not None:
            return shape
    elif name == "object" and given <= PLAIN_OBJECT_KEYWORDS and not oracle.dropped:
        return Shape(objects=(Keywords(oracle, node).objects(is_plain=True),))  # as below, of most of a schema
    reader = Keywords(oracle, node)
    types = [name] if isinstance(name, str) and name in TYPES and not oracle.dropped else reader.types()
    constants = 0
    if types is None or "null" in types:
        constants |= NULL
    if types is None or "boolean" in types:
        constants |= TRUE | FALSE
    numbers: tuple[NumberSet, ...] = ()
    if types is None or "number" in types or "integer" in types:
        numbers = (reader.numbers(types is not None and "number" not in types),)
    strings: tuple[StringSet, ...] = ()
    if types is None or "string" in types:
        strings = (reader.strings() if given & STRING_KEYWORDS else ANY_STRING,)
    arrays: tuple[ArrayClause, ...] = ()
    if types is None or "array" in types:
        arrays = (reader.arrays() if given & ARRAY_KEYWORDS else ANY_ARRAY,)
    objects: tuple[ObjectClause, ...] = ()
    if types is None or "object" in types:
        objects = (reader.objects() if given & OBJECT_KEYWORDS else ANY_OBJECT,)
    return Shape(constants, numbers, strings, arrays, objects)


class Keywords:
    """Reads the keywords of one node, checked."""

    def __init__(self, oracle: Oracle, node: Node) -> None:
        self.oracle, self.node, self.schema = oracle, node, node.schema
        self.draft = node.draft

    def get(self, keyword: str, *others: str) -> Any:
        """The value of a keyword; None if it is not given, unknown to the draft, or dropped.

        `others`: keywords that it is about what is left over of; if one of them is dropped nobody knows what that is.
        """
        value = self.schema.get(keyword)
        if value is None and keyword not in self.schema:
            return None
        if keyword in SPAN and not is_in_draft(keyword, self.draft):
            return None
        if self.oracle.dropped and any(self.oracle.is_dropped(self.node, each) for each in (keyword, *others)):
            return None
        if value is None:
            raise self.broken(keyword, "null is no value for it")
        return value

    def broken(self, keyword: str, message: str) -> SchemaError:
        """The error for a value that the drafts do not allow."""
        return SchemaError(message, self.node.pointer, keyword)

    def types(self) -> list[str] | None:
        """The types that `type` allows; None for all."""
        value = self.get("type")
        if value is None:
            return None
        types = value if isinstance(value, list) else [value]
        if len(types) > FEW:
            spend(LOOKUP_WORK * len(types))
        for name in types:
            if name not in TYPES:
                raise self.broken("type", f"{name!r} is no type; known: {', '.join(TYPES)}")
        return types

    def count(self, keyword: str) -> int | None:
        """The value of a keyword that takes a count; None, too, for an upper bound that no text comes to."""
        value = self.get(keyword)
        if value is None:
            return None
        if isinstance(value, Decimal) and value.adjusted() >= DIGITS:  # int() would write all of its zeros
            raise SchemaUnsupported(f"{value} has more than {DIGITS} digits", self.node.pointer, keyword)
        if isinstance(value, bool) or not isinstance(value, int | Decimal) or value != int(value) or value < 0:
            raise self.broken(keyword, f"{value!r} is not a count (an integer, 0 or more)")
        if keyword.startswith("min") and value > MAX_COUNT:
            raise SchemaUnsupported(f"no text is as long as to have {value}", self.node.pointer, keyword)
        return None if keyword.startswith("max") and value >= MAX_COUNT else int(value)

    def number(self, keyword: str) -> int | Decimal | None:
        """The value of a keyword that takes a number."""
        value = self.get(keyword)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | Decimal)):
            raise self.broken(keyword, f"{value!r} is not a number")
        return value

    def numbers(self, only_integers: bool) -> NumberSet:
        """The clause of numbers."""
        if not self.schema.keys() & NUMBER_KEYWORDS:
            if not only_integers:
                return ANY_NUMBER
            return PLAIN_INTEGERS if self.draft == DRAFT_4 else INTEGERS
        low, high = self.number("minimum"), self.number("maximum")
        low_open = high_open = False
        if self.draft == DRAFT_4:
            low_open, high_open = bool(self.get("exclusiveMinimum")), bool(self.get("exclusiveMaximum"))
        else:
            above, below = self.number("exclusiveMinimum"), self.number("exclusiveMaximum")
            if above is not None and (low is None or above >= low):
                low, low_open = above, True
            if below is not None and (high is None or below <= high):
                high, high_open = below, True
        factor = self.number("multipleOf")
        if factor is not None and factor <= 0:
            raise self.broken("multipleOf", f"{factor} is not above 0")
        return self._number_set(
            low=low,
            low_open=low_open and low is not None,
            high=high,
            high_open=high_open and high is not None,
            integer=True if only_integers and self.draft != DRAFT_4 else None,
            plain=True if only_integers and self.draft == DRAFT_4 else None,
            multiples=() if factor is None else (factor,),
        )

    def _number_set(self, **demands: Any) -> NumberSet:
        try:
            return NumberSet(**demands)
        except LimitExceeded as error:
            if is_spent(error):
                raise
            keyword = next(key for key in self.schema if key in NUMBER_KEYWORDS)
            raise SchemaUnsupported(str(error), self.node.pointer, keyword) from None

    def strings(self) -> StringSet:
        """The clause of strings."""
        pattern, name = self.get("pattern"), self.get("format")
        if pattern is not None:
            self._check_pattern("pattern", pattern)
        asserts, formats = self.oracle.document.asserts, []
        if isinstance(name, str) and asserts != "required" and name in ASSERTED:
            formats.append(name)
        if asserts == "all" and self.draft == DRAFT_7:
            formats += self._contents()
        return StringSet(
            patterns=() if pattern is None else (pattern,),
            formats=tuple(formats),
            min_length=self.count("minLength") or 0,
            max_length=self.count("maxLength"),
        )

    def _contents(self) -> list[str]:
        """What the keywords about the content of strings say, each by the name of a format."""
        given = {keyword: self.get(keyword) for keyword in CONTENT_KEYWORDS if self.get(keyword) is not None}
        for keyword, name in given.items():
            if not isinstance(name, str):
                raise self.broken(keyword, f"{name!r} is not a string")
            if name not in CONTENTS or len(given) > 1:
                known = "what is encoded is not looked into" if len(given) > 1 else f"known: {', '.join(CONTENTS)}"
                raise SchemaUnsupported(f"{name!r} is not asserted; {known}", self.node.pointer, keyword)
        return list(given.values())

    def _check_pattern(self, keyword: str, pattern: Any) -> None:
        """Refuse what is no pattern, or none that an automaton can follow."""
        if not isinstance(pattern, str):
            raise self.broken(keyword, f"{pattern!r} is not a string")
        try:
            parse_pattern(pattern)
        except RegexSyntaxError as error:
            raise self.broken(keyword, str(error)) from None
        except (UnsupportedConstraint, LimitExceeded) as error:
            if isinstance(error, LimitExceeded) and is_spent(error):
                raise
            raise SchemaUnsupported(str(error), self.node.pointer, keyword) from None

    def arrays(self) -> ArrayClause:
        """The clause of arrays."""
        prefix, rest, child_state = [], EVERYTHING, self.oracle.child_state
        items = self.get("items")
        tuple_keyword = "prefixItems" if self.draft >= DRAFT_2020 else "items"
        listed = self.get("prefixItems") if self.draft >= DRAFT_2020 else items if isinstance(items, list) else None
        if listed is not None:
            if not isinstance(listed, list):
                raise self.broken(tuple_keyword, "it must be a list of schemas")
            spend(MEMBER_WORK * len(listed), MEMBER_BYTES * len(listed))
            prefix = [child_state(self.node, schema, tuple_keyword, k) for k, schema in enumerate(listed)]
        if self.draft >= DRAFT_2020 or listed is None:
            items = self.get("items", tuple_keyword)
            if items is not None:
                rest = child_state(self.node, items, "items")
        elif (additional := self.get("additionalItems", "items")) is not None:
            rest = child_state(self.node, additional, "additionalItems")
        if self.schema.keys().isdisjoint(COUNT_KEYWORDS):  # most are
            return ArrayClause(tuple(prefix), rest)
        unique = self.get("uniqueItems")
        if unique is not None and not isinstance(unique, bool):
            raise self.broken("uniqueItems", f"{unique!r} is not a boolean")
        counts: tuple[Count, ...] = ()
        contains = self.get("contains")
        if contains is not None:
            least, most = self.count("minContains"), self.count("maxContains")
            least = 1 if least is None else least
            if least > 0 or most is not None:
                counts = (Count(0, child_state(self.node, contains, "contains"), least, most),)
        demanded_by = self.node.number + 1 if unique else 0
        return ArrayClause(
            tuple(prefix), rest, self.count("minItems") or 0, self.count("maxItems"), counts, demanded_by
        )

    def objects(self, is_plain: bool = False) -> ObjectClause:
        """The clause of objects. `is_plain`: of PLAIN_OBJECT_KEYWORDS alone."""
        schema, child_state = self.schema, self.oracle.child_state
        properties = self._schemas("properties") if "properties" in schema else {}
        patterns = self._schemas("patternProperties") if "patternProperties" in schema else {}
        for pattern in patterns:
            self._check_pattern("patternProperties", pattern)
        rest = EVERYTHING
        if "additionalProperties" in schema:
            additional = self.get("additionalProperties", "properties", "patternProperties")
            if additional is not None:
                rest = child_state(self.node, additional, "additionalProperties")
        scopes: tuple[Scope, ...] = ()
        if properties or patterns or rest:
            scopes = (Scope(properties, tuple(patterns.items()), rest),)
        required = self.get("required")
        names: tuple[str, ...] = ()
        if required is not None:
            if not isinstance(required, list) or not {str}.issuperset(map(type, required)):
                raise self.broken("required", "it must be a list of names")
            if len(required) > FEW:
                spend(LOOKUP_WORK * len(required))
            names = tuple(dict.fromkeys(required))
        if is_plain:
            return ObjectClause(scopes, names)
        naming = self.get("propertyNames")
        return ObjectClause(
            scopes,
            names,
            self.count("minProperties") or 0,
            self.count("maxProperties"),
            EVERYTHING if naming is None else child_state(self.node, naming, "propertyNames"),
        )

    def _schemas(self, keyword: str):  # type: ignore[no-untyped-def]
        """The states of a keyword whose value is an object of schemas."""
        value = self.get(keyword)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.broken(keyword, "it must be an object whose values are schemas")
        child_state, node = self.oracle.child_state, self.node
        if len(value) > FEW:
            spend(MEMBER_WORK * len(value), MEMBER_BYTES * len(value))
        return {name: child_state(node, schema, keyword, name) for name, schema in value.items()}
