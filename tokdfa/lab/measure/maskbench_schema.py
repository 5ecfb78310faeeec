r"""What the benchmark reads of a schema without compiling it: the keyword that a refusal names, and orders of members.

Engines fix the order of an object's members: that of ``properties``. JSON does not, so a valid instance whose members
come in another order is rejected by them, which says nothing about the rest of the schema. `reordered` writes the same
JSON value with its members in other orders. An engine that rejects an instance and accepts a spelling of the same value
has met an *order artefact*; the spelling that it accepts is the proof, so the orders may be guessed.

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
    from collections.abc import Iterator

#: What is asserted or applied; annotations such as `title` decide no mask.
KEYWORDS = frozenset({
    "not", "if", "then", "else", "items", "additionalItems", "unevaluatedItems", "contains", "propertyNames",
    "additionalProperties", "unevaluatedProperties", "contentSchema", "allOf", "anyOf", "oneOf", "prefixItems",
    "properties", "patternProperties", "dependentSchemas", "dependencies", "dependentRequired", "type", "enum", "const",
    "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf", "minItems", "maxItems", "uniqueItems", "minContains", "maxContains", "required", "minProperties",
    "maxProperties", "$ref", "$dynamicRef", "$recursiveRef",
})  # fmt: skip
#: Keywords in small letters that stand for nothing else in a message, as `not`, `if` or `items` would.
_TECHNICAL = frozenset({"const", "enum", "format", "pattern"})
#: Orders of the members of a value, all of which are tried.
MAX_ORDERS = 120


def keyword_in(message: str) -> str:
    """The keyword that a message of an engine names: the first in quotes, or else the first that is no everyday word;
    "" if none.
    """
    quoted = re.findall(r"['\"`](\$?[A-Za-z]+)['\"`]", message)
    words = re.findall(r"(?<![\w$])\$?[A-Za-z]+(?!\w)", message)
    named = (word for word in words if word in _TECHNICAL or not word.islower())
    return next((word for word in (*quoted, *named) if word in KEYWORDS), "")


def reordered(schema: Any, text: str) -> list[str]:
    """Other spellings of the JSON value in `text`: with the members of each object in the order of those
    ``properties`` anywhere in the schema that list most of them, and in every order if these are few (`MAX_ORDERS`).
    Empty if `text` cannot be written again with certainty.
    """
    try:
        value = json.loads(text)
        if json.dumps(value, ensure_ascii=False) != text:
            return []
        found = [_in_order(value, list(_listed(schema)))]
        if 1 < _count_orders(value) <= MAX_ORDERS:
            found += _orders(value)
    except (ValueError, RecursionError):
        return []
    spellings = dict.fromkeys(json.dumps(one, ensure_ascii=False) for one in found)
    return [spelling for spelling in spellings if spelling != text]


def _listed(node: Any) -> Iterator[list[str]]:
    """The names of every ``properties``, in the order of the document."""
    if isinstance(node, dict):
        names = node.get("properties")
        if isinstance(names, dict) and names:
            yield list(names)
    for part in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _listed(part)


def _in_order(value: Any, listed: list[list[str]]) -> Any:
    """`value` with the members of all objects in the order of the lists that have most of them, the best first."""
    if isinstance(value, list):
        return [_in_order(item, listed) for item in value]
    if not isinstance(value, dict):
        return value
    best = sorted(listed, key=lambda names: -len(value.keys() & set(names)))
    order = dict.fromkeys(name for names in (*best, list(value)) for name in names if name in value)
    return {name: _in_order(value[name], listed) for name in order}


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
