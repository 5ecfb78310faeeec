"""Checks of Python types that their JSON schemas omit: one warning that names the field."""

from __future__ import annotations

import dataclasses
import datetime
import decimal  # noqa: TC003 (pydantic reads the annotations)
import enum
import uuid  # noqa: TC003
import warnings
from typing import Annotated, Any, Literal

import pydantic
import pytest

import tokdfa
from tokdfa.errors import ConstraintWarning


def positive(value: int) -> int:
    if value <= 0:
        raise ValueError("not above 0")
    return value


class Color(enum.Enum):
    RED = "red"


class Inner(pydantic.BaseModel):
    site: pydantic.HttpUrl


class Order(pydantic.BaseModel):
    price: decimal.Decimal = pydantic.Field(max_digits=4, decimal_places=2)
    inner: Inner
    counts: dict[int, str]
    due: pydantic.FutureDate
    amount: Annotated[int, pydantic.AfterValidator(positive)]


class Plain(pydantic.BaseModel):
    name: str
    price: decimal.Decimal
    when: datetime.date
    known: dict[str, int]
    colors: dict[Color, int]
    choice: Literal["a"]
    key: uuid.UUID
    address: pydantic.IPvAnyAddress


@dataclasses.dataclass
class Point:
    x: Annotated[int, pydantic.AfterValidator(positive)]


def told(what: Any) -> tuple[list[str], list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        constrained = tokdfa.constrain(what, "bytes")
    assert {each.category for each in caught} <= {ConstraintWarning}
    return [str(each.message) for each in caught], [str(each) for each in constrained.compiled.warnings]


def test_what_a_schema_omits_is_told_once() -> None:
    said, listed = told(Order)
    assert len(said) == 1
    expected = ("Order.price: the number", "Inner.site: the scheme", "Order.counts: keys", "Order.due: the date")
    assert [line.startswith(begin) for line, begin in zip(listed, expected, strict=False)] == [True] * 4
    assert listed[4].startswith("Order.amount: positive() validates")
    assert len(listed) == 5
    assert said[0].startswith("Order.price: ")
    assert "2 more" in said[0]


@pytest.mark.parametrize("what", [Plain, int, list[int], Literal["a", "b"], Color, datetime.date, {"type": "integer"}])
def test_what_a_schema_says_whole(what: Any) -> None:
    assert told(what) == ([], [])


def test_types_that_are_no_models() -> None:
    assert told(Point)[0][0].startswith("Point.x: positive()")
    assert told(dict[int, str])[0][0].startswith("dict[int, str]: keys")


def test_suspects_of_a_schema_come_in_the_same_warning() -> None:
    class Named(pydantic.BaseModel):
        model_config = {"json_schema_extra": {"requred": ["a"]}}
        site: pydantic.HttpUrl

    said, listed = told(Named)
    assert len(said) == 1
    assert len(listed) == 2
    assert "requred" in said[0]
    assert "Named.site" in said[0]
