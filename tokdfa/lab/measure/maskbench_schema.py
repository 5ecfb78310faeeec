r"""What the benchmark reads of a schema without compiling it: which keywords it uses, and how it orders properties.

Engines fix the order of an object's members: that of ``properties``. JSON does not, so a valid instance whose members
come in another order is rejected by them, which says nothing about the rest of the schema. `respelled` writes the same
JSON value with its members in the order of the schema; `reordered` adds all orders of few members. An engine that
rejects an instance and accepts a spelling of the same value has met an *order artefact*; the spelling that it accepts
is the proof, so the walk through the schema need not be exact, and is not: of ``anyOf`` and the like all branches are
taken together, of ``$ref`` only those into the same document are followed, and no condition is evaluated.

An instance is respelled only if ``json.dumps(json.loads(text), ensure_ascii=False)`` gives `text` back, so that nothing
but the order can change (equal keys and floats of many digits would be lost).
"""

from __future__ import annotations

import json
import math
import re
from itertools import permutations, product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Node = dict[str, Any]

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
#: Schemas that apply to the same value as the one that holds them.
_IN_PLACE = ("allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "dependencies")
#: Members and items below this depth of an instance keep their order.
MAX_DEPTH = 200
#: Orders of the members of a value, all of which are tried.
MAX_ORDERS = 120


def used_keywords(schema: Any) -> list[str]:
    """The assertions and applicators that a schema uses anywhere, unused definitions included; sorted. O(size)."""
    found: set[str] = set()
    left = [schema]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            found |= KEYWORDS & set(node)
            left += _subschemas(node, (*_ONE, *_LIST, *_NAMED))
    return sorted(found)


def keyword_in(message: str) -> str:
    """The keyword that a message of an engine names: the first in quotes, or else the first that is no everyday word;
    "" if none.
    """
    quoted = re.findall(r"['\"`](\$?[A-Za-z]+)['\"`]", message)
    words = re.findall(r"(?<![\w$])\$?[A-Za-z]+(?!\w)", message)
    named = (word for word in words if word in _TECHNICAL or not word.islower())
    return next((word for word in (*quoted, *named) if word in KEYWORDS), "")


def respelled(schema: Any, text: str) -> list[str]:
    """Spellings of the JSON value in `text` that follow the schema's order and are not `text`, the likeliest first.

    They differ in whether a schema's own ``properties`` come before those of its ``allOf`` and the like or where they
    are written, and in whether required properties that it does not list come before other ones. Empty if the members
    have that order already, or if `text` cannot be written again with certainty.
    """
    orders = [_Order(schema, own_first, required) for own_first in (True, False) for required in (False, True)]
    try:
        value = json.loads(text)
        if json.dumps(value, ensure_ascii=False) != text:
            return []
        spellings = [json.dumps(order.apply(value, [schema]), ensure_ascii=False) for order in orders]
    except (ValueError, RecursionError):
        return []
    return [spelling for spelling in dict.fromkeys(spellings) if spelling != text]


def reordered(schema: Any, text: str) -> list[str]:
    """`respelled`, and after that the value in every order of its members if these are few (`MAX_ORDERS`)."""
    found = dict.fromkeys(respelled(schema, text))
    try:
        value = json.loads(text)
        if json.dumps(value, ensure_ascii=False) == text and 1 < _count_orders(value) <= MAX_ORDERS:
            found.update(dict.fromkeys(json.dumps(other, ensure_ascii=False) for other in _orders(value)))
    except (ValueError, RecursionError):
        return []
    return [spelling for spelling in found if spelling != text]


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


class _Order:
    """One way to read an order off the schema in `root`."""

    def __init__(self, root: Any, own_first: bool, required: bool) -> None:
        self.root, self.own_first, self.required = root, own_first, required

    def apply(self, value: Any, schemas: Iterable[Any], depth: int = 0) -> Any:
        """`value` with the members of all objects in order; `schemas` are those that may apply to it."""
        if not isinstance(value, dict | list) or depth > MAX_DEPTH:
            return value
        nodes = self._together(schemas)
        if isinstance(value, list):
            return [self.apply(item, _of_item(nodes, place), depth + 1) for place, item in enumerate(value)]
        listed = dict.fromkeys(name for node in nodes for name in _named(node, "properties"))
        if self.required:
            listed |= dict.fromkeys(name for node in nodes for name in _names(node.get("required")))
        names = [*(name for name in listed if name in value), *(name for name in value if name not in listed)]
        return {name: self.apply(value[name], _of_member(nodes, name), depth + 1) for name in names}

    def _together(self, schemas: Iterable[Any]) -> list[Node]:
        """The schemas with all that apply to the same value, each once, in the order of their properties."""
        found: list[Node] = []
        seen: set[int] = set()

        def add(schema: Any) -> None:
            if not isinstance(schema, dict) or id(schema) in seen:
                return
            seen.add(id(schema))
            if self.own_first:
                found.append(schema)
            for keyword in schema:
                if keyword == "properties" and not self.own_first:
                    found.append(schema)
                elif keyword == "$ref":
                    add(_resolve(self.root, schema["$ref"]))
                elif keyword in _IN_PLACE:
                    for below in _subschemas(schema, (keyword,)):
                        add(below)
            if not self.own_first and "properties" not in schema:
                found.append(schema)

        for schema in schemas:
            add(schema)
        return found


def _of_member(nodes: Iterable[Node], name: str) -> Iterator[Any]:
    """The schemas that may apply to the member called `name`."""
    for node in nodes:
        known = _named(node, "properties")
        if name in known:
            yield known[name]
        matched = [below for pattern, below in _named(node, "patternProperties").items() if _matches(pattern, name)]
        yield from matched
        if name not in known and not matched:
            yield node.get("additionalProperties")
            yield node.get("unevaluatedProperties")


def _of_item(nodes: Iterable[Node], place: int) -> Iterator[Any]:
    """The schemas that may apply to the item at `place`."""
    for node in nodes:
        items = node.get("items")
        tuple_form = items if isinstance(items, list) else node.get("prefixItems")
        first = tuple_form if isinstance(tuple_form, list) else []
        if place < len(first):
            yield first[place]
        else:
            yield node.get("additionalItems") if isinstance(items, list) else items
        yield node.get("contains")


def _subschemas(node: Node, keywords: Iterable[str]) -> Iterator[Any]:
    for keyword in keywords:
        value = node.get(keyword)
        if isinstance(value, dict) and keyword in _NAMED:
            yield from value.values()
        elif isinstance(value, list) and keyword in _LIST:
            yield from value
        elif isinstance(value, dict) and keyword in _ONE:
            yield value


def _named(node: Node, keyword: str) -> Node:
    value = node.get(keyword)
    return value if isinstance(value, dict) else {}


def _names(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return False


def _resolve(root: Any, reference: Any) -> Any:
    """The schema that a ``$ref`` into the same document names; None if it names none."""
    if not isinstance(reference, str) or not reference.startswith("#") or reference[1:2] not in ("", "/"):
        return None
    from urllib.parse import unquote

    node = root
    for part in reference[1:].split("/")[1:]:
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and name in node:
            node = node[name]
        elif isinstance(node, list) and name.isdecimal() and int(name) < len(node):
            node = node[int(name)]
        else:
            return None
    return node
