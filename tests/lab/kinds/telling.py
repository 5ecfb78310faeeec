"""What a kind says of rows: its tables as frames, its sentences, its charts' points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tokdfa.lab.declare import Kind

MODEL = {"part": "model", "model": "small", "tokenizer": "tiny", "status": "ok", "message": "", "rows": 10}


class Told:
    """The declarations of `kind`, built from `rows`; `tables` and `panels` by name."""

    def __init__(self, kind: Kind, rows: Iterable[Mapping[str, Any]], **config: Any) -> None:
        results = kind.results(pd.DataFrame(list(rows)), config)
        built = [table.build(results) for table in kind.tables]
        self.tables = {table.name: table.frame for table in built if table.rows}
        self.sentences = [line for sentence in kind.sentences for line in sentence.sentences(results)]
        charts = [chart.build(results) for chart in kind.charts]
        self.panels = {
            chart.name: {panel.title: panel.spec["data"]["values"] for panel in chart.panels} for chart in charts
        }


def check_lost(kind: Kind) -> None:
    """A run none of whose models could be loaded says so, and has no numbers."""
    told = Told(kind, [MODEL | {"status": "error", "message": "pip install it"}])
    assert told.sentences == ["small was not measured: pip install it"]
    assert list(told.tables) == ["models"]
    assert not any(told.panels.values())
