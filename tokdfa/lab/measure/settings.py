"""The settings of an experiment, typed: what all kinds of experiments say about those that are wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from tokdfa.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

Typed = TypeVar("Typed", bound=BaseModel)


def typed_settings(kind: type[Typed], settings: Mapping[str, Any], place: str = "settings.") -> Typed:
    """`settings` as a `kind`. Raises OptionError, which begins with `place` and names the key that is wrong."""
    try:
        return kind.model_validate(settings)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise OptionError(f"{place}{key}: {first['msg'][0].lower()}{first['msg'][1:]}") from None


def own_settings(kind: type[Typed], settings: Mapping[str, Any]) -> Typed:
    """The settings of a kind out of what `measure` gets, where the tokenizer and the constraint's fields are, too."""
    return typed_settings(kind, {name: settings[name] for name in kind.model_fields if name in settings})
