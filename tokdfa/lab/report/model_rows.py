"""What reports on language models have in common: their rows by part, the table of models, and what failed.

The rows are those of `tokdfa.lab.measure.model_entries`: each has a ``part``, a ``status`` and a ``message``, and those
of the part ``model`` say of each model how it was loaded and what the run asked of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.lab.declare.cells import NOTHING, Table, count_cell, number_cell, readable, text_cell
from tokdfa.lab.report.metrics import Metric
from tokdfa.lab.report.tables import failure_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from tokdfa.lab.report.data import RunData

_MODEL = "model"
_LOADING = Metric("load_seconds", "loading", "from the name to a model that answers", "s", "results", "load_seconds")
_ROW = Metric("row_seconds", "a row", "seconds of the model over rows", "s", "results", "seconds")
#: The columns that every row has.
_ALWAYS = ("part", "model", "tokenizer", "status", "message")


def part(data: RunData, name: str, texts: Sequence[str], numbers: Sequence[str]) -> pd.DataFrame:
    """The measured rows of a part, with these columns (numbers as float64, NaN where there is none)."""
    import pandas as pd

    rows = data.results.reindex(columns=[*_ALWAYS, *texts, *numbers])
    rows = rows[(rows["part"] == name) & (rows["status"] == "ok")].reset_index(drop=True)
    for column in numbers:
        rows[column] = pd.to_numeric(rows[column]).astype("float64")
    return rows


def models(data: RunData) -> list[str]:
    """The labels of the models, in the order of the run."""
    return [str(model) for model in dict.fromkeys(data.results["model"])] if len(data.results) else []


def models_table(data: RunData) -> Table:
    """One row per model: how it was loaded, and what the run asked of it."""
    numbers = ("load_seconds", "batches", "rows", "tokens", "seconds")
    rows = data.results.reindex(columns=[*_ALWAYS, *numbers])
    entries = []
    for _, row in rows[rows["part"] == _MODEL].iterrows():
        known = row[list(numbers)].astype("float64")
        cells = [text_cell(row["model"]), text_cell(row["tokenizer"]), number_cell(_LOADING, known["load_seconds"])]
        cells += [count_cell(known[name]) for name in ("batches", "rows", "tokens")]
        cells.append(number_cell(_LOADING, known["seconds"]))
        cells.append(number_cell(_ROW, known["seconds"] / known["rows"]) if known["rows"] > 0 else NOTHING)
        entries.append((*cells, text_cell("" if row["status"] == "ok" else row["message"])))
    note = (
        "What the run asked of each model: calls, rows (next-token distributions), tokens run through it, and "
        "the seconds of all that. A model that could not be loaded says why, and how to install what it needs."
    )
    columns = ("model", "tokenizer", "loading", "calls", "rows", "tokens", "time", "time a row", "not loaded because")
    return Table("models", "The models", note, columns, tuple(entries))


def failed(data: RunData) -> pd.DataFrame:
    """All rows that say why something could not be measured."""
    rows = data.results.reindex(columns=[*data.results.columns, *set(_ALWAYS) - set(data.results.columns)])
    return rows[rows["status"] != "ok"]


def failures_table(data: RunData, places: Sequence[str]) -> Table:
    """One row for each thing that could not be measured, models apart. `places`: columns that say which it is."""
    rows = failed(data)
    rows = rows[rows["part"] != _MODEL].reindex(columns=list(dict.fromkeys((*_ALWAYS, *places))))
    entries = []
    for _, row in rows.iterrows():
        named = [text_cell("" if row[place] != row[place] else row[place]) for place in places]
        entries.append((text_cell(row["model"]), *named, text_cell(readable(row["status"])), text_cell(row["message"])))
    columns = ("model", *places, "kind", "reason")
    note = "These take part in no figure and no comparison."
    return Table("not_measured", "What could not be measured", note, columns, tuple(entries))


def failure_sentences(data: RunData) -> list[str]:
    """A sentence for each model that was not loaded, and one for all else that failed."""
    rows = failed(data)
    lost = rows[rows["part"] == _MODEL]
    sentences = [f"{row['model']} was not measured: {row['message']}" for _, row in lost.iterrows()]
    others = rows[rows["part"] != _MODEL]
    if len(others):
        sentences.append(f"{len(others):,} measurements failed or were left out: {failure_counts(others)}.")
    return sentences
