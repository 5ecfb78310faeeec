"""What reads an answer: from the text of a constraint to a value, an object of a class, or calls of tools.

A reader is a plain object that pickles, as long as what the user gave does. pydantic is imported when a type is read.
"""

from __future__ import annotations

import inspect
import json
import re
import typing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tokdfa.core.locks import cached_property
from tokdfa.core.packages import import_library
from tokdfa.errors import CUT_OFF, DECODED_BADLY, ArgumentError, ParseError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.grammar.tool_calls import ToolCall, ToolCalls


#: What is left of a JSON text that ends inside a word, a number or an escape, from where json stops reading it.
_UNFINISHED = re.compile(r"(t(ru?)?|f(a(ls?)?)?|n(ul?)?|-|\.|[eE][+-]?|u[0-9a-fA-F]{0,3})?")


class Reader(Protocol):
    """What the value of a text is. Raises ParseError for a text that is none of the constraint."""

    def __call__(self, text: str) -> Any:
        """The value."""


@dataclass(frozen=True)
class JsonReader:
    """The value of a JSON text."""

    def __call__(self, text: str) -> Any:
        """ParseError says where it stops being JSON."""
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            remedy = CUT_OFF if _is_cut(text, error) else DECODED_BADLY
            raise ParseError(f"the answer is not JSON: {error}", text, remedy) from None


def _is_cut(text: str, error: Exception) -> bool:
    """Whether what json says of a text may be because its end is missing."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    rest = text[error.pos :].strip()
    return error.msg.startswith("Unterminated") or _UNFINISHED.fullmatch(rest) is not None


@dataclass(frozen=True)
class TypeReader:
    """Values of a type that pydantic knows: a class, ``int``, ``list[int]``, a dataclass, a TypeAdapter; of a function,
    its arguments by name.
    """

    what: Any

    @cached_property
    def adapter(self) -> Any:
        """What has the schema and reads values: a pydantic class itself, else a TypeAdapter."""
        if hasattr(self.what, "validate_json") and hasattr(self.what, "json_schema"):
            return self.what
        pydantic = import_library("pydantic", f"the type {self.what!r} as a constraint")
        meant = _arguments_of(self.what) if is_function(self.what) else self.what
        try:
            return pydantic.TypeAdapter(meant)
        except Exception as error:  # PydanticSchemaGenerationError, and what a user's own hooks raise
            raise ArgumentError(_no_schema(self.what, error)) from None

    def schema(self) -> Any:
        """Its JSON schema. ArgumentError for a type that has none."""
        adapter = self.adapter
        try:
            return adapter.json_schema()
        except ArgumentError:
            raise
        except Exception as error:  # PydanticInvalidForJsonSchema
            raise ArgumentError(_no_schema(self.what, error)) from None

    def __call__(self, text: str) -> Any:
        """Once the text is JSON, what is wrong with it is for pydantic's ValidationError to say."""
        JsonReader()(text)
        return self.adapter.validate_json(text)

    def __reduce__(self) -> tuple[Callable[..., TypeReader], tuple[Any]]:
        return TypeReader, (self.what,)


@dataclass(frozen=True)
class CallsReader:
    """The calls of tools in a text, in order."""

    tools: ToolCalls

    def __call__(self, text: str) -> list[ToolCall]:
        """ParseError for a call that was cut off."""
        return self.tools.read(text)


def is_type(what: Any) -> bool:
    """Whether something is a type, or stands for one: ``int``, ``list[int]``, ``int | None``, ``Literal["a"]``."""
    if isinstance(what, type) or typing.get_origin(what) is not None:
        return True
    return type(what).__module__ in ("typing", "types", "typing_extensions") and not is_function(what)


def is_function(what: Any) -> bool:
    """Whether something is a function or a method, whose parameters are meant."""
    return inspect.isroutine(what)


def _arguments_of(function: Any) -> Any:
    """A TypedDict of a function's parameters; those with a default may be missing."""
    name = getattr(function, "__qualname__", repr(function))
    extensions: Any = import_library("typing_extensions", "the parameters of a function as a constraint")
    try:
        parameters = inspect.signature(function).parameters
        hints = typing.get_type_hints(function, include_extras=True)
    except (TypeError, ValueError, NameError) as error:
        raise ArgumentError(
            f"the parameters of {name} are not known ({error}); pass a pydantic class of them"
        ) from None
    fields = {}
    for parameter in parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ArgumentError(
                f"{name}: the parameter {str(parameter)!r} has no name that a model could write; pass a function whose "
                "parameters can all be given by name"
            )
        kind = hints.get(parameter.name, Any)
        fields[parameter.name] = kind if parameter.default is parameter.empty else extensions.NotRequired[kind]
    return extensions.TypedDict(re.sub(r"\W", "_", name), fields)


def _no_schema(what: Any, error: Exception) -> str:
    name = getattr(what, "__qualname__", str(what))
    return (
        f"pydantic has no JSON schema for {name} ({str(error).partition(chr(10))[0][:200]}); pass a pydantic class, a "
        "dataclass or another type whose fields have schemas, or a schema as a dict"
    )
