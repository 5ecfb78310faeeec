"""The numbers of a run in one shape, whatever its kind: series of an engine, a case and a column.

What is compared follows from the kind's declaration: every column with a better end whose unit is seconds, bytes or a
count. `Kind.engine` says who is compared, `Kind.case` on what, and `Kind.place` tells the samples of a case apart: the
repeat and the step of a walk, say. Two runs of one experiment have the same engines, cases and places, whatever their
items' ids are, so series are found again in another run by these. A cell that holds an array (float32, little end
first) is as many samples.

Two kinds of frames are read: the main one, and those that have all columns of `Kind.place`, one row a place. The main
one holds the statistics of each case; the others hold samples, so they are compared case by case only.

*Outcomes* are what has no ratio: the status of an item or a row, and the stored columns that a kind declares as texts
or as counts. Of a count with a better end only a change from zero or to zero is one; others are ratios. Counts of
samples, such as the tokens that a mask allows, are added up over a case: another walk gives another number.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.lab.declare.cells import readable
from tokdfa.lab.declare.columns import text
from tokdfa.lab.declare.stats import is_known
from tokdfa.lab.kinds import find_kind
from tokdfa.lab.report.kinds import declared_results

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

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

    def keys(self) -> list[tuple[str, tuple[str, ...]]]:
        """Engine and case of each row."""
        case = [name for name in self.case if name in self.rows and name != self.engine]
        engines = self.rows[self.engine] if self.engine in self.rows else ["all"] * len(self.rows)
        cases = self.rows[case].itertuples(index=False, name=None) if case else [()] * len(self.rows)
        return [
            (
                str(engine) if is_known(engine) else "all",
                tuple(_said(*part) for part in zip(case, values, strict=True) if is_known(part[1]) and part[1] != ""),
            )
            for engine, values in zip(engines, cases, strict=True)
        ]

    def cells(self, column: str) -> Iterator[tuple[tuple[str, tuple[str, ...]], tuple[Any, ...], Any]]:
        """Key, place and value of each row that has a value; equal places are told apart by their order."""
        names = [name for name in self.place if name in self.rows]
        places = self.rows[names].itertuples(index=False, name=None) if names else [()] * len(self.rows)
        seen: Counter[Hashable] = Counter()
        known = self.rows[column].notna()
        for key, place, is_there, value in zip(self.keys(), places, known, self.rows[column], strict=True):
            if is_there:
                yield key, (*place, seen[key, place]), value
                seen[key, place] += 1


def parts(data: RunData) -> tuple[RunData, ...]:
    """A run, and what it has measured beside."""
    return (data, *data.sections.values())


def sources(data: RunData) -> Iterator[Source]:
    """The frames that are compared; of how each item ended, where the run says so of the contenders, the status."""
    if (results := declared_results(data)) is None:
        return
    place = find_kind(data.kind).place
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
    if isinstance(value, Integral) or not float(value).is_integer():
        return f"{name} {value}"
    return f"{name} {float(value):.0f}"


def is_measure(column: Column) -> bool:
    """Whether ratios of a column say that something got better or worse."""
    return column.better != "neither" and column.unit in ("s", "B", "")


def read_series(data: RunData) -> dict[Key, Series]:
    """All series of a run. Values that are not above zero are left out. Cost: O(rows) for each column."""
    found: dict[Key, Series] = {}
    for part in parts(data):
        taken: set[str] = set()
        for source in sources(part):
            for column in source.columns:
                if is_measure(column) and column.name not in taken:
                    taken.add(column.name)
                    found |= _of_column(source, column)
    return found


def _of_column(source: Source, column: Column) -> dict[Key, Series]:
    samples: dict[Key, dict[Hashable, float]] = {}
    for (engine, case), place, cell in source.cells(column.name):
        numbers = np.frombuffer(cell, dtype="<f4") if isinstance(cell, bytes) else np.array([cell], dtype=np.float64)
        scaled = numbers.astype(np.float64) * column.factor
        for at, number in enumerate(scaled.tolist()):
            value = max(number, column.resolution) if number >= 0 else 0.0
            if value > 0:
                samples.setdefault(Key(engine, case, column.name), {})[*place, at] = value
    return {
        key: Series(column, tuple(values), np.array(list(values.values())), source.is_main)
        for key, values in samples.items()
    }


@dataclass(frozen=True)
class Difference:
    """One outcome that has changed in the same way for `places`: what it is, before and after, of which engine."""

    engine: str
    what: str
    before: str
    after: str
    places: tuple[str, ...]


@dataclass(frozen=True)
class OneSided:
    """How many series of an engine only one of the runs has, and of which cases."""

    engine: str
    before: int
    after: int
    cases: tuple[str, ...]


#: Engine, case, place, and what it is.
_Where = tuple[str, tuple[str, ...], tuple[Any, ...], str]


class _Outcome(NamedTuple):
    text: str
    has_ratio: bool


def differences(before: RunData, after: RunData) -> list[Difference]:
    """The outcomes that differ, where both runs have one; equal changes of an engine are one entry."""
    old, new = _outcomes(before), _outcomes(after)
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for where, mine in old.items():
        other = new.get(where, mine)
        if mine.text != other.text and not (mine.has_ratio and other.has_ratio):
            engine, case, _, what = where
            found.setdefault((engine, what, mine.text, other.text), []).append(" · ".join(case))
    return [Difference(*change, tuple(dict.fromkeys(cases))) for change, cases in found.items()]


def one_sided(before: Mapping[Key, Any], after: Mapping[Key, Any]) -> list[OneSided]:
    """For each engine with series that only one run has: how many on each side."""
    found: dict[str, tuple[list[Key], list[Key]]] = {}
    for side, (mine, other) in enumerate(((before, after), (after, before))):
        for key in mine:
            if key not in other:
                found.setdefault(key.engine, ([], []))[side].append(key)
    return [
        OneSided(engine, len(old), len(new), tuple(dict.fromkeys(" · ".join(key.case) for key in [*old, *new])))
        for engine, (old, new) in found.items()
    ]


def _outcomes(data: RunData) -> dict[_Where, _Outcome]:
    """What each engine got, by case, place and what it is."""
    found: dict[_Where, _Outcome] = {}
    for part in parts(data):
        stored = {"status", *part.items, *part.samples, *part.results}
        for source in sources(part):
            kinds = ("", "text") if source.is_main else ("",)
            columns = [column for column in source.columns if column.name in stored and column.unit in kinds]
            for column in columns:
                sums: Counter[tuple[str, tuple[str, ...]]] = Counter()
                for key, place, value in source.cells(column.name):
                    if source.is_main:
                        found.setdefault((*key, place, column.head), _outcome(column, value))
                    else:
                        sums[key] += value
                for key, total in sums.items():
                    found.setdefault((*key, (), column.head), _outcome(column, total))
    return found


def _outcome(column: Column, value: Any) -> _Outcome:
    if column.unit == "text" or isinstance(value, str | bytes):
        return _Outcome(readable(value), False)
    return _Outcome(column.format(float(value)), is_measure(column) and float(value) > 0)
