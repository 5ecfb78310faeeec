"""The settings of an experiment, typed: what all kinds of experiments say about those that are wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from tokdfa.errors import OptionError
from tokdfa.lab.measure.constraint_entry import ConstraintEntry

if TYPE_CHECKING:
    from collections.abc import Mapping

Typed = TypeVar("Typed", bound=BaseModel)


def _rising(values: list[int]) -> list[int]:
    if sorted(set(values)) != values:
        raise ValueError(f"rising numbers are expected, not {values}")
    return values


#: Sizes of something that grows.
Rising = Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1), AfterValidator(_rising)]


def typed_settings(kind: type[Typed], settings: Mapping[str, Any]) -> Typed:
    """`settings` as a `kind`. Raises OptionError, which names the key that is wrong."""
    try:
        return kind.model_validate(settings)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise OptionError(f"settings.{key}: {first['msg'][0].lower()}{first['msg'][1:]}") from None


def item_settings(kind: type[Typed], settings: Mapping[str, Any]) -> Typed:
    """The typed settings of an item, which stand beside its tokenizer and the fields of its constraint."""
    others = {"tokenizer", *ConstraintEntry.model_fields} - {*kind.model_fields}
    return typed_settings(kind, {key: value for key, value in settings.items() if key not in others})


def item_constraint(settings: Mapping[str, Any]) -> ConstraintEntry:
    """The constraint of an item. Raises OptionError for settings with none."""
    return typed_settings(
        ConstraintEntry, {key: settings[key] for key in ConstraintEntry.model_fields if key in settings}
    )
