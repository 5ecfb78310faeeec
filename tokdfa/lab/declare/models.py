"""What kinds that measure language models declare alike: rows by part, the models, and what could not be measured.

The rows are those of `tokdfa.lab.measure.model_entries`: each has a ``part``, a ``status`` and a ``message``; those of
the part ``model`` say of each model how it was loaded and what the run asked of it. A kind makes its frames by `parts`,
and includes `COLUMNS`, `MODELS`, `not_measured` and `FAILURES`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.lab.declare.cells import readable
from tokdfa.lab.declare.columns import Column, seconds, text
from tokdfa.lab.declare.sentences import Say
from tokdfa.lab.declare.stats import Stat
from tokdfa.lab.declare.tables import Listing, Summary

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    text("model"),
    text("tokenizer"),
    text("status", "kind"),
    text("message", "reason"),
    seconds("load_seconds", "loading", "from the name to a model that answers"),
    Column("batches", "calls", "", "lower"),
    Column("rows", "model rows", "", "lower", "next-token distributions"),
    Column("tokens", "tokens", "", "lower", "tokens run through the model"),
    seconds("seconds", "time"),
    seconds("each_seconds", "time a row", "seconds of the model over its rows"),
)

MODELS = Summary(
    "models",
    "The models",
    "What the run asked of each model. A model that could not be loaded says why.",
    by=("model", "tokenizer"),
    values=(
        *("load_seconds", "batches", Stat("rows", title="rows"), "tokens", "seconds", "each_seconds"),
        Stat("message", "first", "not loaded because"),
    ),
    frame="models",
)

FAILURES = (
    Say("{model} was not measured: {message}", per=("model",), blanks={"message": "message:first"}, frame="models"),
    Say("{count} measurements failed or were left out.", blanks={"count": "status:count"}, frame="failed"),
)


def not_measured(*places: str) -> Listing:
    """The table of what could not be measured. `places`: the columns that tell what it was."""
    note = "These take part in no number above."
    return Listing("not_measured", "Not measured", note, shown=("model", *places, "status", "message"), frame="failed")


def parts(rows: pd.DataFrame, main: str) -> dict[str, pd.DataFrame]:
    """Frames: the main one, of the part `main`, and one of each other part; ``models``; ``failed``, models apart."""
    import pandas as pd

    always = ("part", "model", "status", "message")
    rows = rows.reindex(columns=[*rows.columns, *(name for name in always if name not in rows)])
    rows = rows.assign(message=rows["message"].replace("", None))
    is_model, is_ok = rows["part"] == "model", rows["status"] == "ok"
    models = rows[is_model]
    if {"seconds", "rows"} <= set(models):
        asked = pd.to_numeric(models["rows"]).astype("float64")
        models = models.assign(each_seconds=models["seconds"] / asked.where(asked > 0))
    failed = rows[~is_model & ~is_ok & rows["status"].notna()]
    measured = rows[~is_model & is_ok]
    found = {str(part): group.reset_index(drop=True) for part, group in measured.groupby("part", sort=False)}
    first = {"": found.pop(main, measured.iloc[:0])}
    return {**first, **found, "models": models, "failed": failed.assign(status=failed["status"].map(readable))}
