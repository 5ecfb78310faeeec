"""Meta-schemas: which values the drafts allow for a keyword, checked wherever a schema stands in the document.

The lowering reads what a value can reach, and of that only the keywords of possible types. So an unused definition and
`pattern` beside ``"type": "integer"`` would never be looked at, although the draft forbids their values. Every schema
of the document is visited once, before anything else, and each keyword that its draft has is checked as the meta-schema
demands (https://json-schema.org/specification, one for each draft). Two things are stricter or laxer than the files:
`pattern` and the names of `patternProperties` must be regexes (the files say ``format: regex``), and formats of URIs
are left to whoever follows them.

What stands in `const`, `enum`, `default` and `examples` is data, and no schema. What a draft does not have is not
checked. The walk keeps no places: when a check fails, `find_errors` repeats it with pointers.

Cost: 0.2 µs a keyword; the syntax of a pattern 1 µs a character.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tokdfa.core.budget import is_spent, spend
from tokdfa.errors import LimitExceeded, RegexSyntaxError, SchemaError, UnsupportedConstraint
from tokdfa.json_schema.read.document import (
    DRAFT_4,
    DRAFT_6,
    DRAFT_7,
    DRAFT_2019,
    DRAFT_2020,
    declared_draft,
    escape_key,
    shorten,
)
from tokdfa.json_schema.read.keyword_names import TYPES
from tokdfa.json_schema.sets.patterns import parse_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from tokdfa.json_schema.read.document import Document

    #: Checks the value of a keyword, and returns the schemas in it, if any. Raises ValueError with what is wrong.
    Check = Callable[[Any], Collection[Any] | None]

NAMES_OF_TYPES = frozenset(TYPES)
#: Work (`tokdfa.core.budget`) of a schema and of a keyword in it, in nanoseconds; counted for so many schemas at once.
SCHEMA_WORK, AT_ONCE = 800, 64
_ANCHOR = {
    DRAFT_2019: re.compile(r"[A-Za-z][-A-Za-z0-9.:_]*"),
    DRAFT_2020: re.compile(r"[A-Za-z_][-A-Za-z0-9._]*"),
}


class Found(NamedTuple):
    """A keyword in a document: the pointer and the draft of its schema, and its value."""

    pointer: str
    keyword: str
    value: Any
    draft: int


def check_document(document: Document) -> set[str]:
    """`check_schema` of a document; other documents of its registry are not looked at."""
    return check_schema(document.root.schema, document.draft, is_mixed(document))


def is_mixed(document: Document) -> bool:
    """Whether schemas inside of a document may declare another draft."""
    root = document.root.schema
    return document.text.count('"$schema"') > (isinstance(root, dict) and "$schema" in root)


def check_schema(root: Any, draft: int, mixed: bool = False) -> set[str]:
    """Check all schemas of a document, read with `Decimal` for numbers that are no integers; the keywords that are none
    of their draft.

    `mixed`: whether schemas inside may declare another draft. O(keywords). Raises SchemaError with the place.
    """
    try:
        return _check(root, draft, mixed)
    except ValueError:
        for error in find_errors(root, draft, mixed):
            raise error from None
        raise


def take_nullable(document: Document) -> None:
    """Let ``nullable: true`` beside `type` add null, as OpenAPI 3.0 has it, in a document that declares no draft. It
    changes the document; O(keywords) if the word occurs.
    """
    root = document.root.schema
    if '"nullable"' not in document.text or not isinstance(root, dict) or "$schema" in root:
        return
    for _, schema, _ in _walk(root, document.draft, False):
        if isinstance(schema, dict) and schema.get("nullable") is True and "type" in schema:
            types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            schema["type"] = [*types, *(["null"] if "null" not in types else [])]


def _check(root: Any, draft: int, mixed: bool) -> set[str]:
    """`check_schema`; what is wrong is a ValueError without a place."""
    get, unknown, count = CHECKS[draft].get, set[str](), 0
    waiting = [root]
    while waiting:
        schema = waiting.pop()
        count += 1
        if schema.__class__ is not dict:
            _check_kind(schema, draft)
            continue
        if not count % AT_ONCE:
            spend(AT_ONCE * SCHEMA_WORK)
        if mixed and schema is not root and "$schema" in schema:
            inner = declared_draft(schema, draft, "")
            if inner != draft:
                unknown |= _check(schema, inner, True)
                continue
        for keyword, value in schema.items():
            check = get(keyword)
            if check is None:
                unknown.add(keyword)
            elif value.__class__ is str and (check is _text or (check is _type and value in NAMES_OF_TYPES)):
                continue  # as most are
            elif below := check(value):
                waiting.extend(below)
        if draft == DRAFT_4 and not BOUNDED.keys().isdisjoint(schema):
            _check_bounds(schema)
    return unknown


def find_errors(root: Any, draft: int, mixed: bool = False) -> Iterator[SchemaError]:
    """All values that are wrong, with their places, in the order of the text."""
    for place, schema, at in _walk(root, draft, mixed):
        if not isinstance(schema, dict):
            try:
                _check_kind(schema, at)
            except ValueError as error:
                yield SchemaError(str(error), place, "schema")
            continue
        for keyword, value in schema.items():
            try:
                if check := CHECKS[at].get(keyword):
                    check(value)
                if at == DRAFT_4 and keyword in BOUNDED:
                    _check_bounds(schema)
            except ValueError as error:
                yield SchemaError(f"{error}{_remedy(keyword, value, at)}", place, keyword)


def _walk(root: Any, draft: int, mixed: bool) -> Iterator[tuple[str, Any, int]]:
    """(pointer, schema, draft) of each schema, outer ones first, in the order of the text."""
    waiting = [("", root, draft)]
    while waiting:
        place, schema, at = waiting.pop()
        if mixed and isinstance(schema, dict) and schema is not root and "$schema" in schema:
            at = declared_draft(schema, at, place)
        yield place, schema, at
        if isinstance(schema, dict):
            inside = [(place + key, part, at) for keyword in schema for key, part in _parts(schema, keyword, at)]
            waiting += reversed(inside)


def _parts(schema: dict[str, Any], keyword: str, draft: int) -> list[tuple[str, Any]]:
    """(pointer from the schema on, schema) of the schemas that are the value of a keyword, or stand in it."""
    value, check = schema[keyword], CHECKS[draft].get(keyword)
    try:
        found = check(value) if check else None
    except ValueError:
        return []
    if not found:
        return []
    here = escape_key(keyword)
    if any(value is each for each in found):
        return [(here, value)]
    within = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    kept = set(map(id, found))
    return [(here + escape_key(key), part) for key, part in within if id(part) in kept]


def find_keywords(root: Any, draft: int, mixed: bool = False) -> Iterator[Found]:
    """The keywords of all schemas of a document without errors, in the order of the text."""
    for place, schema, at in _walk(root, draft, mixed):
        if isinstance(schema, dict):
            yield from (Found(place, keyword, value, at) for keyword, value in schema.items())


def _check_kind(schema: Any, draft: int) -> None:
    if not isinstance(schema, dict) and not (isinstance(schema, bool) and draft != DRAFT_4):
        kinds = "an object" if draft == DRAFT_4 else "an object or a boolean"
        raise ValueError(f"a schema is {kinds}, not {shorten(schema)}")


#: Of draft 4: keyword -> the one that it needs beside it.
BOUNDED = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


def _check_bounds(schema: dict[str, Any]) -> None:
    for keyword, needed in BOUNDED.items():
        if keyword in schema and needed not in schema:
            raise ValueError(f"draft 4 has it only beside {needed}")


def _remedy(keyword: str, value: Any, draft: int) -> str:
    """What to do about a value that another draft allows."""
    if keyword == "items" and isinstance(value, list) and draft == DRAFT_2020:
        return (
            "; a list is the form of drafts 4 to 2019-09: declare one"
            ' ("$schema": "http://json-schema.org/draft-07/schema#"), or use prefixItems'
        )
    if keyword in BOUNDED and isinstance(value, bool) and draft != DRAFT_4:
        return (
            '; a boolean is the form of draft 4: declare it ("$schema": "http://json-schema.org/draft-04/schema#"), or'
            f" give the bound itself in place of {BOUNDED[keyword]}"
        )
    if keyword == "required" and isinstance(value, bool):
        return "; a boolean is the form of draft 3: list the names in the object's schema"
    return ""


def _kind(classes: Collection[type], message: str) -> Check:
    """A check that a value is of some classes; `message`: what to say of another one."""

    def check(value: Any) -> None:
        if value.__class__ not in classes:
            raise ValueError(message.format(shorten(value)))

    return check


def _anything(value: Any) -> None:
    pass


_text = _kind({str}, "{} is not a string")
_boolean = _kind({bool}, "{} is not a boolean")
_number = _kind({int, Decimal}, "{} is not a number")
_list = _kind({list}, "it must be a list of values, not {}")
_id = _kind({str}, "an id is a text, not {}")


def _factor(value: Any) -> None:
    _number(value)
    if value <= 0:
        raise ValueError(f"{shorten(value)} is not a number above 0")


def _count(value: Any) -> None:
    is_number = value.__class__ is int or (value.__class__ is Decimal and value == value.to_integral_value())
    if not is_number or value < 0:
        raise ValueError(f"{shorten(value)} is not a count (an integer, 0 or more)")


def _distinct_list(value: Any) -> None:
    """`enum` of draft 4."""
    if value.__class__ is not list or not value:
        raise ValueError(f"it must be a list of at least one value, not {shorten(value)}")
    if len(value) > 1 and len(set(map(_identity, value))) < len(value):
        raise ValueError("draft 4 has each value once")


def _identity(value: Any) -> Any:
    """What equal JSON values have in common."""
    if isinstance(value, list):
        return (list, *map(_identity, value))
    if isinstance(value, dict):
        return dict, frozenset((name, _identity(member)) for name, member in value.items())
    return (bool, value) if isinstance(value, bool) else value


def _type(value: Any) -> None:
    names = [value] if value.__class__ is str else value
    if names.__class__ is not list or not names:
        raise ValueError(f"it must be the name of a type, or a list of such, not {shorten(value)}")
    for name in names:
        if name not in TYPES:
            raise ValueError(f"{shorten(name)} is no type; known: {', '.join(TYPES)}")
    if len(set(names)) < len(names):
        raise ValueError(f"a type comes once, not as in {shorten(value)}")


def _names(value: Any) -> None:
    """`required` and the like."""
    if value.__class__ is not list or not {str}.issuperset(map(type, value)):
        raise ValueError(f"it must be a list of names, not {shorten(value)}")
    if len(set(value)) < len(value):
        twice = next(name for place, name in enumerate(value) if name in value[:place])
        raise ValueError(f"a name comes once, but {shorten(twice)} comes twice")


def _some_names(value: Any) -> None:
    _names(value)
    if not value:
        raise ValueError("draft 4 demands at least one name")


def _names_by_name(value: Any) -> None:
    """`dependentRequired`."""
    for names in _members(value, "lists of names"):
        _names(names)


def _schema(value: Any) -> tuple[Any, ...]:
    return (value,)


def _one(value: Any) -> tuple[Any, ...]:
    """`items` of draft 2020-12."""
    if value.__class__ is list:
        raise ValueError("a list is no schema")
    return (value,)


def _schema_or_boolean(value: Any) -> tuple[Any, ...]:
    """Draft 4, where booleans are no schemas."""
    return () if value.__class__ is bool else (value,)


def _schemas(value: Any) -> Collection[Any]:
    if value.__class__ is not list or not value:
        raise ValueError(f"it must be a list of at least one schema, not {shorten(value)}")
    schemas: list[Any] = value
    return schemas


def _one_or_more(value: Any) -> Collection[Any]:
    """`items` of drafts 4 to 2019-09."""
    return _schemas(value) if value.__class__ is list else (value,)


def _members(value: Any, parts: str = "schemas") -> Collection[Any]:
    if value.__class__ is not dict:
        raise ValueError(f"it must be an object whose values are {parts}, not {shorten(value)}")
    members: dict[str, Any] = value
    return members.values()


def _patterns(value: Any) -> Collection[Any]:
    schemas = _members(value)
    for pattern in value:
        _pattern(pattern)
    return schemas


def _pattern(value: Any) -> None:
    _text(value)
    try:
        parse_pattern(value)
    except RegexSyntaxError as error:
        raise ValueError(str(error)) from None
    except (UnsupportedConstraint, LimitExceeded) as error:
        if isinstance(error, LimitExceeded) and is_spent(error):
            raise


def _dependencies(value: Any, check_names: Check = _names) -> Collection[Any]:
    parts = _members(value, "schemas or lists of names")
    for part in parts:
        if part.__class__ is list:
            check_names(part)
    return [part for part in parts if part.__class__ is not list]


def _id_without_fragment(value: Any) -> None:
    _id(value)
    if "#" in value[:-1]:
        raise ValueError(f"an id has no fragment, as {shorten(value)} has")


def _anchor(draft: int) -> Check:
    def check(value: Any) -> None:
        _text(value)
        if not _ANCHOR[draft].fullmatch(value):
            raise ValueError(f"{shorten(value)} is no name for an anchor: letters, digits, '-', '_' and '.'")

    return check


def _vocabularies(value: Any) -> None:
    for is_required in _members(value, "booleans"):
        _boolean(is_required)


def _tables() -> dict[int, dict[str, Check]]:
    """The checks of each draft; each has what the one before has, but for what is named."""
    draft_4: dict[str, Check] = {
        "id": _id, "$schema": _text, "$ref": _text, "title": _text, "description": _text, "default": _anything,
        "multipleOf": _factor, "maximum": _number, "exclusiveMaximum": _boolean, "minimum": _number,
        "exclusiveMinimum": _boolean, "maxLength": _count, "minLength": _count, "pattern": _pattern,
        "additionalItems": _schema_or_boolean, "items": _one_or_more, "maxItems": _count, "minItems": _count,
        "uniqueItems": _boolean, "maxProperties": _count, "minProperties": _count, "required": _some_names,
        "additionalProperties": _schema_or_boolean, "definitions": _members, "properties": _members,
        "patternProperties": _patterns, "dependencies": partial(_dependencies, check_names=_some_names),
        "enum": _distinct_list, "type": _type, "format": _text, "allOf": _schemas, "anyOf": _schemas, "oneOf": _schemas,
        "not": _schema,
    }  # fmt: skip
    draft_6 = {
        **draft_4, "$id": _id, "examples": _list, "exclusiveMaximum": _number, "exclusiveMinimum": _number,
        "additionalItems": _schema, "contains": _schema, "required": _names, "additionalProperties": _schema,
        "dependencies": _dependencies, "propertyNames": _schema, "const": _anything, "enum": _list,
    }  # fmt: skip
    del draft_6["id"]
    draft_7 = {
        **draft_6, "$comment": _text, "readOnly": _boolean, "writeOnly": _anything, "contentMediaType": _text,
        "contentEncoding": _text, "if": _schema, "then": _schema, "else": _schema,
    }  # fmt: skip
    draft_2019 = {
        **draft_7, "$id": _id_without_fragment, "$anchor": _anchor(DRAFT_2019), "$recursiveRef": _text,
        "$recursiveAnchor": _boolean, "$vocabulary": _vocabularies, "$defs": _members, "unevaluatedItems": _schema,
        "unevaluatedProperties": _schema, "dependentSchemas": _members, "maxContains": _count, "minContains": _count,
        "dependentRequired": _names_by_name, "deprecated": _boolean, "contentSchema": _schema,
        "writeOnly": _boolean,
    }  # fmt: skip
    draft_2020 = {
        **draft_2019, "$anchor": _anchor(DRAFT_2020), "$dynamicRef": _text, "$dynamicAnchor": _anchor(DRAFT_2020),
        "$recursiveAnchor": _anchor(DRAFT_2020), "prefixItems": _schemas, "items": _one,
    }  # fmt: skip
    del draft_2020["additionalItems"]
    return {DRAFT_4: draft_4, DRAFT_6: draft_6, DRAFT_7: draft_7, DRAFT_2019: draft_2019, DRAFT_2020: draft_2020}


#: Draft -> keyword -> its check.
CHECKS = _tables()
