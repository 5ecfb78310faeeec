"""What a Python type checks and its JSON schema does not say, so that an answer of the schema may fail to parse.

pydantic builds a validator, the *core schema*, and from it a JSON schema, which leaves out what JSON Schema has no
keyword for. The core schema is walked, and the parts that are known to be left out are told with the place of the
field: functions that validate, schemes of URLs, keys of dicts that are no strings, digits of decimals, dates before or
after now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_FUNCTIONS = ("function-before", "function-after", "function-wrap", "function-plain")
#: Keys of a core schema that hold no schemas that read a value.
_OTHER_KEYS = frozenset(["metadata", "serialization", "function", "cls", "config", "computed_fields", "ref"])
#: Types of keys of which the schema says what they are.
_TEXTS = frozenset(["str", "any", "literal", "enum"])


class OmittedCheck(NamedTuple):
    """A field, as ``Class.field``, and what it checks beside its JSON schema."""

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}, which its JSON schema does not say; answers may fail to parse"


def omitted_checks(core_schema: Any, place: str) -> Iterator[OmittedCheck]:
    """The checks of a pydantic core schema that no JSON schema has, in the order of the fields. O(size).

    `place`: the name of the type.
    """
    if isinstance(core_schema, list | tuple):
        for part in core_schema:
            yield from omitted_checks(part, place)
        return
    if not isinstance(core_schema, dict):
        return
    if core_schema.get("type") == "model":
        place = core_schema["cls"].__name__
    elif core_schema.get("type") == "dataclass-field":
        place = f"{place}.{core_schema['name']}"
    reason = _reason(core_schema)
    if reason:
        yield OmittedCheck(place, reason)
    for key, part in core_schema.items():
        if key == "fields" and isinstance(part, dict):
            for name, field in part.items():
                yield from omitted_checks(field, f"{place}.{name}")
        elif key not in _OTHER_KEYS:
            yield from omitted_checks(part, place)


def _reason(schema: dict[Any, Any]) -> str:
    """What a part of a core schema checks beside the JSON schema; nothing if that says it all."""
    kind = schema.get("type")
    if kind in _FUNCTIONS:
        function = schema["function"].get("function")
        name, module = getattr(function, "__name__", "a function"), getattr(function, "__module__", "") or ""
        return "" if module.partition(".")[0] in ("pydantic", "pydantic_core") else f"{name}() validates the value"
    if kind in ("url", "multi-host-url") and schema.get("allowed_schemes"):
        return f"the scheme is one of {', '.join(schema['allowed_schemes'])}"
    if kind == "dict" and schema.get("keys_schema", {}).get("type", "any") not in _TEXTS:
        return f"keys are of type {schema['keys_schema']['type']}"
    if kind == "decimal" and ("max_digits" in schema or "decimal_places" in schema):
        return "the number of digits is bounded"
    if kind in ("date", "datetime") and "now_op" in schema:
        return f"the date is in the {schema['now_op']}"
    return ""
