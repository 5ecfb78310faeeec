"""Wrappers that requests put around a JSON schema, and where the schema is in them.

=====================================================================  ============================================
``{"type": "json_schema", "json_schema": {"name", "schema", ...}}``    OpenAI's ``response_format`` of chats
``{"type": "json_schema", "name", "schema", ...}``                     the same of responses
``{"name", "schema", "strict", ...}``                                  what stands in the first
``{"type": "function", "function": {"name", "parameters", ...}}``      a tool: the schema of its arguments
``{"name", "parameters", ...}``, ``input_schema``, ``inputSchema``     the same, in the forms of OpenAI, Anthropic, MCP
``{"type": "json_object"}``                                            any object
=====================================================================  ============================================

None of these is a schema by itself: ``json_schema``, ``function`` and ``json_object`` are no types, and a wrapper by
name has no keyword of any draft. A tool whose parameters are null takes any object.
"""

from __future__ import annotations

import json
from typing import Any

#: Members that may stand beside the schema of a wrapper by name.
_BESIDE = frozenset(["name", "description", "strict", "title", "annotations", "type", "outputSchema", "cache_control"])
_SCHEMA_KEYS = ("schema", "parameters", "input_schema", "inputSchema")
_BLANKS = " \t\n\r"
ANY_OBJECT = {"type": "object"}


def path_to_schema(value: Any) -> tuple[str, ...] | None:
    """The keys that lead to the schema in a wrapper; None if `value` is no wrapper. O(1)."""
    if not isinstance(value, dict):
        return None
    kind = value.get("type")
    for wrapper, key in (("json_schema", "json_schema"), ("function", "function")):
        if kind == wrapper and isinstance(value.get(key), dict):
            inside = path_to_schema(value[key])
            return None if inside is None else (key, *inside)
    if kind not in (None, "json_schema", "function") or not isinstance(value.get("name"), str):
        return None
    found = [key for key in _SCHEMA_KEYS if key in value]
    if len(found) != 1 or not value.keys() - {found[0]} <= _BESIDE:
        return None
    return (found[0],) if isinstance(value[found[0]], dict | bool | None) else None


def unwrapped(schema: Any) -> Any:
    """The schema in a wrapper, or `schema` itself."""
    if isinstance(schema, dict) and schema.get("type") == "json_object" and len(schema) == 1:
        return ANY_OBJECT
    for key in path_to_schema(schema) or ():
        schema = schema[key]
    return ANY_OBJECT if schema is None else schema


def unwrapped_text(text: str, schema: Any) -> str:
    """The text of the schema in a wrapper, numbers as they are spelled; `schema`: what `text` says, decoded."""
    if unwrapped(schema) is schema:
        return text
    for key in path_to_schema(schema) or ():
        text = _member(text, key)
    return json.dumps(ANY_OBJECT) if text.strip(_BLANKS) == "null" or schema.get("type") == "json_object" else text


def _member(text: str, wanted: str) -> str:
    """The text of a member of the object that a JSON text is; of several, the last, as everywhere."""
    decoder, found, at = json.JSONDecoder(), "", text.index("{") + 1
    while True:
        at += len(text[at:]) - len(text[at:].lstrip(_BLANKS + ","))
        if text[at] == "}":
            return found
        name, at = decoder.raw_decode(text, at)
        at = text.index(":", at) + 1
        at += len(text[at:]) - len(text[at:].lstrip(_BLANKS))
        _, past = decoder.raw_decode(text, at)
        found, at = text[at:past] if name == wanted else found, past
