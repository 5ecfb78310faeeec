"""The numbers of a run in one shape, whatever its kind: series of an engine, a case and a column.

What is compared follows from the kind's declaration: every column with a better end whose unit is seconds, bytes or a
count. `Kind.engine` says who is compared, `Kind.case` on what, and `Kind.place` tells the samples of a case apart: the
repeat and the step of a walk, say. Two runs of one experiment have the same engines, cases and places, whatever their
items' ids are, so series are found again in another run by these. A cell that holds an array (float32, little end
first) is as many samples.

Two kinds of frames are read: the main one, and those that have all columns of `Kind.place`, one row a place. The main
one holds the statistics of each case; the others hold samples, so they are compared case by case only.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.lab.declare.columns import text
from tokdfa.lab.declare.stats import is_known, key_parts
from tokdfa.lab.kinds import find_kind
from tokdfa.lab.report.compare_guess import guessed
from tokdfa.lab.report.kinds import declared_results

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    import pandas as pd

    from tokdfa.lab.declare.columns import Column
    from tokdfa.lab.report.data import RunData


class Key(NamedTuple):
    """What a series is of."""

    engine: str
    case: tuple[str, ...]
    column: str


class Series(NamedTuple):
    """The values of one key in base units, and the place of each. `of_engine`: their median stands for the case where
    engines are compared over all cases.
    """

    column: Column
    places: tuple[Hashable, ...]
    values: npt.NDArray[np.float64]
    of_engine: bool


@dataclass(frozen=True)
class Source:
    """A frame that is compared. `columns`: those declared columns that it has, but for the keys."""

    rows: pd.DataFrame
    engine: str
    case: Sequence[str]
    place: Sequence[str]
    columns: Sequence[Column]
    is_main: bool

    def groups(self) -> Iterator[tuple[str, tuple[str, ...], pd.DataFrame]]:
        """Engine, case, and their rows."""
        by = [name for name in (self.engine, *self.case) if name in self.rows]
        for key, group in self.rows.groupby(by, sort=False, dropna=False) if by else [((), self.rows)]:
            parts = dict(zip(by, key_parts(key), strict=True))
            engine = str(parts.pop(self.engine, "all"))
            yield engine, tuple(_said(*part) for part in parts.items() if is_known(part[1]) and part[1] != ""), group


def parts(data: RunData) -> tuple[RunData, ...]:
    """A run, and what it has measured beside."""
    return (data, *data.sections.values())


def sources(data: RunData) -> Iterator[Source]:
    """The frames that are compared; of how each item ended, where the run says so of the contenders, the status."""
    declaration = declared_results(data)
    results, place = declaration or guessed(data.results), find_kind(data.kind).place if declaration else ()
    keys = (results.engine, *results.case)
    for name, rows in results.frames.items():
        is_main = name in ("", "items")
        if not is_main and not _is_of_samples(rows, keys, place):
            continue
        declared = [] if name == "items" else results.columns.values()
        columns = [one for one in declared if one.name in rows and one.name not in (*keys, *place, "status")]
        if "status" in rows and (not name or results.engine in rows):
            columns.append(text("status"))
        yield Source(rows, results.engine, results.case, place, columns, is_main)


def _is_of_samples(rows: pd.DataFrame, keys: Sequence[str], place: Sequence[str]) -> bool:
    """Whether a frame has one row for each place of a case."""
    by = [name for name in (*keys, *place) if name in rows]
    return bool(place) and set(place) <= set(by) and not rows.duplicated(by).any()


def _said(name: str, value: Any) -> str:
    """A part of a case as text; a number with the name of its column."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return str(value)
    number = float(value)
    return f"{name} {number:.0f}" if number.is_integer() else f"{name} {number}"


def is_measure(column: Column) -> bool:
    """Whether ratios of a column say that something got better or worse."""
    return column.better != "neither" and column.unit in ("s", "B", "")


def read_series(data: RunData) -> dict[Key, Series]:
    """All series of a run. Values that are not above zero are left out."""
    found: dict[Key, Series] = {}
    for part in parts(data):
        taken: set[str] = set()
        for source in sources(part):
            measures = [column for column in source.columns if is_measure(column) and column.name not in taken]
            taken |= {column.name for column in measures}
            for engine, case, group in source.groups() if measures else ():
                for column in measures:
                    places, values = _samples(group, column, source.place)
                    if len(values):
                        found[Key(engine, case, column.name)] = Series(column, places, values, source.is_main)
    return found


def _samples(
    rows: pd.DataFrame, column: Column, place: Sequence[str]
) -> tuple[tuple[Hashable, ...], npt.NDArray[np.float64]]:
    """The values of a column above zero, and their places; equal places are told apart by their order."""
    known = rows[rows[column.name].notna()]
    names = [name for name in place if name in rows]
    where = known[names].itertuples(index=False, name=None) if names else [()] * len(known)
    seen: Counter[tuple[Any, ...]] = Counter()
    places: list[tuple[Any, ...]] = []
    values: list[float] = []
    for at, cell in zip(where, known[column.name], strict=True):
        numbers = np.frombuffer(cell, dtype="<f4").tolist() if isinstance(cell, bytes) else [float(cell)]
        places += [(*at, seen[at], number) for number in range(len(numbers))]
        values += numbers
        seen[at] += 1
    scaled = np.array(values, dtype=np.float64) * column.factor
    scaled = np.where(scaled >= 0, np.maximum(scaled, column.resolution), 0.0)
    kept = scaled > 0
    return tuple(place for place, is_kept in zip(places, kept, strict=True) if is_kept), scaled[kept]
