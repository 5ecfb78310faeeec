"""Columns: how numbers and texts are written."""

import math

import pytest

from tokdfa.lab.declare.columns import MISSING, Column, text


@pytest.mark.parametrize(
    ("column", "value", "written"),
    [
        (Column("x", unit="s"), 0.00123, "1.23 ms"),
        (Column("x", unit="B"), 4_200_000, "4.20 MB"),
        (Column("x", unit="ratio"), 3.25, "3.25x"),
        (Column("x"), 12_345, "12,345"),
        (Column("x"), math.nan, MISSING),
        (text("x"), "as it is", "as it is"),
    ],
)
def test_values_are_written_with_their_unit(column, value, written):
    assert column.format(value) == written
