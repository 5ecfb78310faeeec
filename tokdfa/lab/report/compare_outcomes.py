"""What two runs of one experiment got differently, times apart: outcomes, counts, and rows that only one of them has.

*Outcomes* are what has no ratio: the status of an item or a row, and the stored columns that a kind declares as texts
or as counts. Of a count with a better end only a change from zero or to zero is one; others are ratios. Counts of
samples, such as the tokens that a mask allows, are added up over a case: another walk gives another number.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tokdfa.lab.declare.cells import readable
from tokdfa.lab.report.compare_series import is_measure, parts, sources

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tokdfa.lab.declare.columns import Column
    from tokdfa.lab.report.compare_series import Key
    from tokdfa.lab.report.data import RunData


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
