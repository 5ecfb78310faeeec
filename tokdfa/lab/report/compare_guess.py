"""What the rows of a kind without declarations are taken to be, by the names of their columns, so that such runs can be
compared as well. To be removed with the last such kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare.columns import Column, text
from tokdfa.lab.declare.results import Results
from tokdfa.lab.declare.stats import is_known

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

_ENGINE = (
    *("engine", "backend", "strategy", "method", "variant", "walk", "mask", "way", "phase", "call"),
    *("step", "threads"),
)
_CASE = (
    *("part", "row", "model", "tokenizer", "family", "axis", "constraint", "case", "pattern", "group", "name"),
    *("label", "inputs", "prompt", "topic", "text", "path", "animal", "word", "spelling", "how", "source"),
    *("parameter", "size", "words", "length", "entry", "at"),
)
_WORDS = ("outcome", "keyword", "equal", "same_top", "finished")
_COUNTS = (
    *("differs", "differing", "right_tests", "over_tests", "under_tests", "unended_tests", "order_artefacts"),
    "allowed",
)
_UNITS = {"s": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def guessed(rows: pd.DataFrame) -> Results:
    """Rows with the columns "contender" and "what", and declarations of the columns that look like times."""
    engine, case = (_joined(rows, names) for names in (_ENGINE, _CASE))
    rows = rows.assign(contender=[one or "all" for one in engine], what=case)
    columns = [*map(text, _WORDS), *map(Column, _COUNTS), *filter(None, map(_time, map(str, rows.columns)))]
    return Results({"": rows}, {column.name: column for column in columns}, "contender", ("what",))


def _joined(rows: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Of each row what some columns say, without the parts that others contain."""
    given = [name for name in names if name in rows]
    if not given:
        return [""] * len(rows)
    joined = []
    for row in rows[given].itertuples(index=False):
        said = [_said(name, value) for name, value in zip(given, row, strict=True) if is_known(value) and value != ""]
        kept = [part for part in dict.fromkeys(said) if not any(part != other and part in other for other in said)]
        joined.append(" · ".join(kept))
    return joined


def _said(name: str, value: Any) -> str:
    return value if isinstance(value, str) else f"{name} {value}"


def _time(name: str) -> Column | None:
    words = name.split("_")
    unit = next((word for word in words if word in _UNITS), None)
    if unit is None or {"min", "max", "clock"} & set(words):
        return None
    title = " ".join(word for word in words if word not in (unit, "median"))
    return Column(name, f"{title} time" if title else "time", "s", "lower", factor=_UNITS[unit])
