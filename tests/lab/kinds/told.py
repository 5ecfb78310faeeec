"""What a kind says of made-up rows: its tables and charts by name, and its sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

if TYPE_CHECKING:
    from tokdfa.lab.declare import Chart, Kind
    from tokdfa.lab.declare.cells import Table


class Told(NamedTuple):
    """The declared report of some rows."""

    tables: dict[str, Table]
    charts: dict[str, Chart]
    sentences: list[str]

    def values(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """Columns of a table, row by row."""
        return list(self.tables[table].frame[list(columns)].itertuples(index=False, name=None))

    def texts(self, table: str) -> list[list[str]]:
        """The cells of a table as people read them."""
        return [[cell.text for cell in row] for row in self.tables[table].rows]


def tell(kind: Kind, rows: list[dict[str, Any]], config: dict[str, Any] | None = None) -> Told:
    """The report of `kind` on `rows`."""
    results = kind.results(pd.DataFrame(rows), config or {})
    tables = {table.name: table.build(results) for table in kind.tables}
    charts = {chart.name: chart.build(results) for chart in kind.charts}
    return Told(tables, charts, [line for sentence in kind.sentences for line in sentence.sentences(results)])
