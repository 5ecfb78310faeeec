"""What a kind declares, made of rows: tables as frames by name, charts, sentences. For tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.lab.declare import Chart, Kind


def tables_of(kind: Kind, rows: pd.DataFrame, config: dict[str, Any] | None = None) -> dict[str, pd.DataFrame]:
    """Name -> the values of each table that has a row."""
    results = kind.results(rows, config or {})
    return {table.name: table.frame for one in kind.tables if (table := one.build(results)).rows}


def charts_of(kind: Kind, rows: pd.DataFrame) -> list[Chart]:
    """The charts that have something to draw."""
    results = kind.results(rows, {})
    return [chart for one in kind.charts if (chart := one.build(results)).figure]


def sentences_of(kind: Kind, rows: pd.DataFrame) -> list[str]:
    """All sentences."""
    results = kind.results(rows, {})
    return [line for sentence in kind.sentences for line in sentence.sentences(results)]
