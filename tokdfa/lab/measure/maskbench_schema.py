r"""What the benchmark reads of a schema without compiling it: which keywords it uses, and how it orders properties.

Engines fix the order of an object's members: that of ``properties``. JSON does not, so a valid instance whose members
come in another order is rejected by them, which says nothing about the rest of the schema. `reordered` writes the same
JSON value with its members in other orders. An engine that rejects an instance and accepts a spelling of the same value
has met an *order artefact*; the spelling that it accepts is the proof, so the orders may be guessed: they are read off
all ``properties`` of the document, whichever fit the members best, and all orders of few members are tried, too.

An instance is written again only if ``json.dumps(json.loads(text), ensure_ascii=False)`` gives `text` back, so that
nothing but the order can change (equal keys and floats of many digits would be lost).
"""

from __future__ import annotations

import json
import math
import re
from itertools import permutations, product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Keywords whose value is a schema, a list of schemas, and names with schemas.
_ONE = ("not", "if", "then", "else", "items", "additionalItems", "unevaluatedItems", "contains", "propertyNames",
        "additionalProperties", "unevaluatedProperties", "contentSchema")  # fmt: skip
_LIST = ("allOf", "anyOf", "oneOf", "items", "prefixItems")
_NAMED = ("properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions")
#: What is asserted or applied; annotations such as `title` decide no mask.
KEYWORDS = frozenset({
    *_ONE, *_LIST, "properties", "patternProperties", "dependentSchemas", "dependencies", "dependentRequired",
    "type", "enum", "const", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems", "minContains", "maxContains", "required",
    "minProperties", "maxProperties", "$ref", "$dynamicRef", "$recursiveRef",
})  # fmt: skip
#: Keywords in small letters that stand for nothing else in a message, as `not`, `if` or `items` would.
_TECHNICAL = frozenset({"const", "enum", "format", "pattern"})
#: Orders of the members of a value, all of which are tried.
MAX_ORDERS = 120


def used_keywords(schema: Any) -> list[str]:
    """The assertions and applicators that a schema uses anywhere, unused definitions included; sorted. O(size)."""
    return sorted({keyword for node in _nodes(schema) for keyword in KEYWORDS & set(node)})


def keyword_in(message: str) -> str:
    """The keyword that a message of an engine names: the first in quotes, or else the first that is no everyday word;
    "" if none.
    """
    quoted = re.findall(r"['\"`](\$?[A-Za-z]+)['\"`]", message)
    words = re.findall(r"(?<![\w$])\$?[A-Za-z]+(?!\w)", message)
    named = (word for word in words if word in _TECHNICAL or not word.islower())
    return next((word for word in (*quoted, *named) if word in KEYWORDS), "")


def reordered(schema: Any, text: str) -> list[str]:
    """Other spellings of the JSON value in `text`, the likeliest first: with its members in an order of the schema's,
    and in every order if these are few (`MAX_ORDERS`). Empty if `text` cannot be written again with certainty.

    Which ``properties`` an object follows is guessed: those that list most of its members, or of which most are there,
    or those that come first. Required members that they do not list come last, or before other such.
    """
    try:
        value = json.loads(text)
        if json.dumps(value, ensure_ascii=False) != text:
            return []
        found = []
        for required in (False, True):
            listed = [names for node in _nodes(schema) if (names := _names(node, required))]
            found += [_in_order(value, listed, fit) for fit in range(3)]
        if 1 < _count_orders(value) <= MAX_ORDERS:
            found += _orders(value)
    except (ValueError, RecursionError):
        return []
    spellings = dict.fromkeys(json.dumps(one, ensure_ascii=False) for one in found)
    return [spelling for spelling in spellings if spelling != text]


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """The objects at places of schemas, in the order of the document."""
    left = [schema]
    while left:
        node = left.pop()
        if not isinstance(node, dict):
            continue
        yield node
        below: list[Any] = []
        for keyword in (*_ONE, *_LIST, *_NAMED):
            value = node.get(keyword)
            if isinstance(value, dict) and keyword in _NAMED:
                below += value.values()
            elif isinstance(value, list) and keyword in _LIST:
                below += value
            elif isinstance(value, dict) and keyword in _ONE:
                below.append(value)
        left += reversed(below)


def _names(node: dict[str, Any], required: bool) -> list[str]:
    """The properties that a schema lists, and those that it requires."""
    listed, demanded = node.get("properties"), node.get("required")
    names = list(listed) if isinstance(listed, dict) else []
    if required and isinstance(demanded, list):
        names += [name for name in demanded if isinstance(name, str)]
    return list(dict.fromkeys(names))


def _in_order(value: Any, listed: Sequence[list[str]], fit: int) -> Any:
    """`value` with the members of all objects in the order of the best lists; `fit`: which are these."""
    if isinstance(value, list):
        return [_in_order(item, listed, fit) for item in value]
    if not isinstance(value, dict):
        return value
    shared = [len(value.keys() & set(names)) for names in listed]
    ranks = (shared, [count / len(names) for count, names in zip(shared, listed, strict=True)], [0] * len(listed))[fit]
    best = sorted(range(len(listed)), key=lambda place: -ranks[place])
    order = dict.fromkeys(name for place in best for name in listed[place] if name in value)
    return {name: _in_order(value[name], listed, fit) for name in [*order, *(n for n in value if n not in order)]}


def _count_orders(value: Any) -> int:
    """In how many orders the members of all objects in a value can be written."""
    if not isinstance(value, dict | list):
        return 1
    parts = value.values() if isinstance(value, dict) else value
    own = math.factorial(len(value)) if isinstance(value, dict) else 1
    return own * math.prod(map(_count_orders, parts))


def _orders(value: Any) -> Iterator[Any]:
    """The value in each of these orders."""
    if isinstance(value, dict):
        for names in permutations(value):
            for parts in product(*(list(_orders(value[name])) for name in names)):
                yield dict(zip(names, parts, strict=True))
    elif isinstance(value, list):
        yield from map(list, product(*(list(_orders(part)) for part in value)))
    else:
        yield value
