"""The settings of an experiment, typed: what all kinds of experiments say about those that are wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from tokdfa.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Typed = TypeVar("Typed", bound=BaseModel)


class Strict(BaseModel):
    """Settings: no other keys, no conversions, immutable."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def check_distinct(what: str, names: Sequence[str]) -> None:
    """Raise OptionError if a name of `what` is given twice."""
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise OptionError(f"settings: two {what} have the same label {twice[0]!r}")


def distinct(what: str, name_of: Callable[[Any], str] = lambda one: str(one.name)) -> AfterValidator:
    """For a list of settings: refuses two of `what` with the same name, as `check_distinct` does."""

    def check(given: list[Any]) -> list[Any]:
        check_distinct(what, [name_of(one) for one in given])
        return given

    return AfterValidator(check)


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
