"""The constraint of whatever people write one as: a pydantic class, a schema, a pattern, choices; and reading answers.

- A constraint of tokdfa is itself; a part of `tokdfa.grammar.parts` is its grammar, of `tokdfa.tools` one whose answers
  are read as calls.
- A pydantic model class, a ``pydantic.TypeAdapter`` or any type that one takes (``int``, ``Literal["a", "b"]``,
  ``list[int]``, an Enum, a dataclass, a TypedDict, ``date``) is its JSON schema, objects closed unless they say
  otherwise. A function is the object of its arguments, by name.
- A dict, or a str that is a JSON object with a keyword of JSON Schema, is a JSON schema.
  Schemas get the profile ``generation``: answers as people write JSON, and not every text that JSON allows.
- A list, tuple or set of texts is choices.
- Any other str is a regex.

A str that might be a grammar, a file's name, or JSON that is no schema is refused with what to write instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_origin

from tokdfa.constraint import Choice, Constraint, Grammar, JsonSchema, Regex, option_names
from tokdfa.core import notices
from tokdfa.decoding.answer_readers import CallsReader, JsonReader, TypeReader, is_function, is_type
from tokdfa.decoding.omitted_checks import omitted_checks
from tokdfa.errors import ArgumentError, a_noun
from tokdfa.grammar.tool_calls import ToolCalls

if TYPE_CHECKING:
    from tokdfa.decoding.answer_readers import Reader

_REMEDY = (
    "pass a pydantic class or another type, a function, a schema as a dict or JSON text, a list of choices, a pattern, "
    "or a constraint of tokdfa (Regex, Choice, JsonSchema, Grammar)"
)
#: A keyword that a schema has: one of these makes a JSON object a schema.
_KEYWORDS = {
    *("$schema", "$ref", "$defs", "definitions", "type", "properties", "items", "prefixItems", "enum", "const"),
    *("anyOf", "oneOf", "allOf", "not", "if", "required", "additionalProperties", "patternProperties", "pattern"),
    *("format", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"),
}
#: The beginning of a rule in Lark's notation, in GBNF or in EBNF.
_RULE = re.compile(r"^\s*(%ignore\b|%import\b|[?!]?[A-Za-z_][\w-]*\s*(::=|:(?![:/])))", re.M)
_FILE = re.compile(r"[\w./~-]+\.(json|ya?ml|lark|gbnf|ebnf|txt|py)")


@dataclass(frozen=True)
class GivenConstraint:
    """A constraint, and what reads a text of it: `read` is None where the text is the answer."""

    constraint: Constraint
    read: Reader | None = None


def read_constraint(what: Any, options: Mapping[str, Any]) -> GivenConstraint:
    """The constraint that `what` stands for, see the module. `options`: those of its class, such as ``order``.

    Raises ArgumentError for anything else, and what the constraint raises.
    """
    if isinstance(what, Constraint) and type(what) is not Constraint:
        return GivenConstraint(what, JsonReader() if isinstance(what, JsonSchema) else None)
    if hasattr(what, "as_grammar"):
        return GivenConstraint(Grammar(what, **options), CallsReader(what) if isinstance(what, ToolCalls) else None)
    if _is_typed(what):
        reader = TypeReader(what)
        is_named = get_origin(what) is None and (isinstance(what, type) or is_function(what))
        name = what.__name__ if is_named else str(what)
        for omitted in omitted_checks(getattr(reader.adapter, "core_schema", None), name):
            notices.note(omitted)
        return GivenConstraint(_schema(_closed(reader.schema()), options), reader)
    if isinstance(what, Mapping):
        return GivenConstraint(_schema(dict(what), options), JsonReader())
    if isinstance(what, str):
        return _of_text(what, options)
    if isinstance(what, Collection) and not isinstance(what, bytes):
        return GivenConstraint(Choice(tuple(what), **options))
    raise _refusal(what)


def _is_typed(what: Any) -> bool:
    """Whether pydantic is asked for the schema."""
    is_adapter = callable(getattr(what, "json_schema", None)) and callable(getattr(what, "validate_json", None))
    return is_adapter or is_type(what) or is_function(what)


def options_of(what: Any) -> frozenset[str]:
    """The names of the options that `read_constraint` takes for `what`; none for a constraint of tokdfa."""
    if isinstance(what, Constraint):
        return frozenset()
    if hasattr(what, "as_grammar"):
        return frozenset({"label"})
    if isinstance(what, str) and not _is_schema(what):
        return option_names(Regex)
    if isinstance(what, Collection) and not isinstance(what, Mapping):
        return frozenset({"label"})
    return option_names(JsonSchema)


def _schema(schema: Any, options: Mapping[str, Any]) -> JsonSchema:
    """The one place where a schema becomes a constraint, and with it where the profile of `constrain` is chosen."""
    return JsonSchema(schema, **{"profile": "generation", **options})


def _of_text(text: str, options: Mapping[str, Any]) -> GivenConstraint:
    if _is_schema(text):
        return GivenConstraint(_schema(text, options), JsonReader())
    value = _json_value(text)
    if text.lstrip().startswith("{") or isinstance(value, list):
        what = "is JSON, but no schema (a list of choices is passed as a list)"
        if not isinstance(value, dict | list):
            what = f"begins like a schema, but is not JSON ({value})"
        raise ArgumentError(
            f"{text[:60]!r} {what}: write tokdfa.JsonSchema(text) for a schema, or tokdfa.Regex(text) for a pattern"
        )
    if _RULE.search(text) and ("\n" in text.strip() or "::=" in text or re.match(r"\s*\??start\s*:", text)):
        raise ArgumentError(
            f"{text.strip()[:60]!r} may be a grammar or a pattern: write tokdfa.Grammar(text), in Lark's notation, or "
            "tokdfa.Regex(text)"
        )
    if _FILE.fullmatch(text):
        raise ArgumentError(
            f"{text!r} may be a file or a pattern: write pathlib.Path({text!r}).read_text() for what the file holds "
            "(of a grammar: tokdfa.Grammar(...)), or tokdfa.Regex(text)"
        )
    if not text:
        raise ArgumentError("the pattern is empty, so that nothing could be generated; tokdfa.Regex('') insists on it")
    return GivenConstraint(Regex(text, **options))


def _is_schema(text: str) -> bool:
    value = _json_value(text)
    return isinstance(value, dict) and not _KEYWORDS.isdisjoint(value)


def _json_value(text: str) -> Any:
    """The value of a text that begins like a JSON object or array, the error if it is none; None for other texts."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        return error


def _refusal(what: Any) -> ArgumentError:
    """What to raise for something that is no constraint."""
    kind = type(what).__name__
    if hasattr(what, "model_dump_json"):
        return ArgumentError(f"{kind} is given as an object; pass its class: constrain({kind}, ...)")
    if isinstance(what, re.Pattern):
        return ArgumentError("a compiled re.Pattern has flags and a dialect of its own; write tokdfa.Regex(it.pattern)")
    if hasattr(what, "read_text"):
        return ArgumentError("a Path is not read here; pass its text, path.read_text(), of a grammar tokdfa.Grammar()")
    if type(what).__module__.partition(".")[0] == "lark":
        return ArgumentError("a Lark parser does not give its grammar back; write tokdfa.Grammar(text)")
    return ArgumentError(f"the constraint is {a_noun(kind)}; {_REMEDY}")


def _closed(schema: Any) -> Any:
    """A schema of pydantic with no members but the declared: the others it would drop when it reads the answer.

    Classes with ``extra="allow"`` say so in their schemas, and stay open.
    """
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed_part(key, value) for key, value in schema.items()}
    if "properties" in closed:
        closed.setdefault("additionalProperties", False)
    return closed


def _closed_part(key: str, value: Any) -> Any:
    if key in ("const", "enum", "default", "examples"):
        return value
    if key in ("$defs", "properties", "patternProperties"):
        return {name: _closed(part) for name, part in value.items()}
    return _closed(value)
