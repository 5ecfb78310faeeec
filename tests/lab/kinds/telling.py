"""What a kind says of rows: its tables, its sentences, its charts' points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tokdfa.lab.declare import Kind

MODEL = {"part": "model", "model": "small", "tokenizer": "tiny", "status": "ok", "message": "", "rows": 10}


class Told:
    """The declarations of `kind`, built from `rows`. By name: `built`, all tables; `tables`, frames of those with rows;
    `charts`; `panels`, title -> points of each chart.
    """

    def __init__(self, kind: Kind, rows: Iterable[Mapping[str, Any]], **config: Any) -> None:
        results = kind.results(pd.DataFrame(list(rows)), config)
        self.built = {table.name: table.build(results) for table in kind.tables}
        self.tables = {name: table.frame for name, table in self.built.items() if table.rows}
        self.sentences = [line for sentence in kind.sentences for line in sentence.sentences(results)]
        self.charts = {chart.name: chart.build(results) for chart in kind.charts}
        self.panels = {
            name: {panel.title: panel.spec["data"]["values"] for panel in chart.panels}
            for name, chart in self.charts.items()
        }

    def values(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """Columns of a table, row by row."""
        return list(self.tables[table][list(columns)].itertuples(index=False, name=None))

    def texts(self, table: str) -> list[list[str]]:
        """The cells of a table as people read them; none of a table without rows."""
        return [[cell.text for cell in row] for row in self.built[table].rows]
