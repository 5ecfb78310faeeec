"""Two runs of one experiment: what got faster or slower beyond noise, and what else has changed.

    comparison = compare_runs(open_run(before), open_run(after))
    page(comparison)                      # see tokdfa.lab.report.compare_page

Two levels. *Case by case*: of each engine, case and column the ratio of the medians of the samples, with a bootstrap
over the samples, where at least six were kept. *Engine by engine*: of each engine and metric the median over the cases
of the ratio within a case, with a bootstrap over the cases; that takes summaries, too, and compile times of few
repeats. Ratios are after over before, so above 1 is slower.

Noise. Samples of one process know nothing of what differs between two runs although no code has: the state of the
machine, the layout of memory. What is known to be the same in both runs shows it: *controls* are engines of other
packages whose version has not changed, or those that the caller names. They were measured by turns with the others, on
the same cases. So ratios are taken *against the controls*: over the median ratio of the controls on that case (of the
other controls, for a control). What is left of the controls' own ratios is noise that no bootstrap sees: case by case
its spread widens the intervals, and of engines only a ratio beyond the greatest of the controls' counts (the *floor*).
Without controls the ratios stand as they are, and whoever reads them must know that the machine was in the same state.

A change is told if its chance is among the discoveries (`compare_statistics`) of its level, its 95% interval does not
hold 1, and it is beyond the floor, at least `LEAST`. Memory is compared in the same way, but not against the controls:
it does not depend on how fast the machine was.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.errors import ConfigError, StoreError, UnknownNameError
from tokdfa.lab.declare.look import backend_of
from tokdfa.lab.report.compare_series import differences, one_sided, parts, read_series, sources
from tokdfa.lab.report.compare_statistics import LEVEL, NORMAL_QUANTILE, discoveries, median_ratio, ratio_of_medians
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.tables import compare_environments

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tokdfa.lab.declare.columns import Column
    from tokdfa.lab.report.compare_series import Difference, Key, OneSided, Series
    from tokdfa.lab.report.compare_statistics import Estimate
    from tokdfa.lab.run.store import Run

#: A ratio nearer to 1 than this is never told, whatever its interval.
LEAST = 1.05


@dataclass(frozen=True)
class Change:
    """One comparison. `case` is empty for an engine's ratio over all its cases.

    `before`, `after`: the medians in base units. `raw`: after over before. `estimate`: the same against the controls
    (equal to `raw` where there are none). `floor`: the ratio beyond which it counts. `told`: it is beyond noise; of a
    `control` nothing is.
    """

    engine: str
    case: tuple[str, ...]
    column: Column
    before: float
    after: float
    raw: Estimate
    estimate: Estimate
    floor: float = LEAST
    control: bool = False
    told: bool = False

    @property
    def ratio(self) -> float:
        """After over before, against the controls: above 1 is slower, or more."""
        return self.estimate.interval.value

    @property
    def verdict(self) -> str:
        """``faster``, ``slower``, ``less`` or ``more`` beyond noise; ``no``, ``too few`` samples, or ``control``."""
        if self.told:
            return self.column.words[(self.ratio > 1) == (self.column.better != "higher")]
        if self.control:
            return "control"
        return "too few" if math.isnan(self.estimate.interval.low) else "no"


@dataclass(frozen=True)
class Comparison:
    """What has changed from the run `before` to the run `after`."""

    before: RunData
    after: RunData
    engines: tuple[Change, ...]
    cases: tuple[Change, ...]
    controls: tuple[str, ...]
    outcomes: tuple[Difference, ...]
    one_sided: tuple[OneSided, ...]

    @cached_property
    def told(self) -> list[Change]:
        """All changes beyond noise: those of engines over all cases first."""
        return [change for change in (*self.engines, *self.cases) if change.told]

    @cached_property
    def environment(self) -> dict[str, list[str]]:
        """What of the environment differs: key -> before and after."""
        return compare_environments([self.before, self.after])

    def slower(self, ratio: float) -> list[Change]:
        """The changes beyond noise in which something takes at least `ratio` times as long as before."""
        return [change for change in self.told if change.column.unit == "s" and change.ratio >= ratio]


def compare_runs(before: Run, after: Run, controls: Iterable[str] | None = None) -> Comparison:
    """Compare two runs of one kind of experiment.

    `controls`: the engines whose code is the same; by default those of packages whose version is (see above); an empty
    list for none. Raises ConfigError for different kinds, UnknownNameError for a control that not both runs have, and
    StoreError if the runs have no times in common. Cost: reading both runs, and a bootstrap a case and measure.
    """
    old, new = RunData.read(before), RunData.read(after)
    if old.kind != new.kind:
        raise ConfigError(f"runs of one kind can be compared; this one is of {old.kind}, the other of {new.kind}")
    mine, other = read_series(old), read_series(new)
    if not mine or not other:
        empty = next(run for run, series in ((before, mine), (after, other)) if not series)
        raise StoreError(
            f"{empty.folder} holds no times to compare: its kind, {old.kind}, stores none, or nothing has succeeded; "
            "its report says which"
        )
    common = {key: (series, other[key]) for key, series in mine.items() if key in other}
    if not common:
        raise StoreError(
            f"{before.folder} and {after.folder} have no engine, case and measure in common; "
            "compare two runs of one experiment"
        )
    engines = tuple(dict.fromkeys(key.engine for key in common))
    chosen = _same_engines(old, new, engines) if controls is None else tuple(controls)
    for name in chosen:
        if name not in engines:
            raise UnknownNameError("engine of both runs", name, engines)
    return Comparison(
        old,
        new,
        _told(_of_engines(common, chosen)),
        _told(_of_cases(common, chosen)),
        chosen,
        tuple(differences(old, new)),
        tuple(one_sided(mine, other)),
    )


def _same_engines(before: RunData, after: RunData, engines: Sequence[str]) -> tuple[str, ...]:
    """The engines that are packages of others, in the same version in both runs."""
    from tokdfa.backends.registry import backend_info, backend_names

    versions = [run.provenance.get("packages") or {} for run in (before, after)]
    packages = {name: backend_info(name).packages for name in backend_names()}
    known: dict[str, str] = {}
    for source in (one for part in parts(before) for one in sources(part)):
        if {"backend", source.engine} <= set(source.rows):
            known |= dict(zip(source.rows[source.engine].map(str), source.rows["backend"].map(str), strict=True))
    found = []
    for engine in engines:
        needed = packages.get(known.get(engine, backend_of(engine)), ())
        if needed and all(versions[0].get(one) and versions[0].get(one) == versions[1].get(one) for one in needed):
            found.append(engine)
    return tuple(found)


class _Controls:
    """Ratios of the controls on every case, as logarithms: what the machine did to each, and how far they differ."""

    def __init__(self, logs: Mapping[Key, float], names: Sequence[str]) -> None:
        self._logs: dict[tuple[str, tuple[str, ...]], dict[str, float]] = {}
        for key, value in logs.items():
            if key.engine in names:
                self._logs.setdefault((key.column, key.case), {})[key.engine] = value
        middles: dict[str, list[float]] = {}
        for (column, _), values in self._logs.items():
            middles.setdefault(column, []).append(float(np.median(list(values.values()))))
        self._middle = {column: float(np.median(values)) for column, values in middles.items()}

    def shift(self, engine: str, case: tuple[str, ...], column: Column) -> float:
        """The median log ratio of the other controls on a case; over all cases, where this one has none.

        0 but for times: nothing else depends on how fast the machine was.
        """
        if column.unit != "s":
            return 0.0
        here = self._logs.get((column.name, case), {})
        others = [value for name, value in here.items() if name != engine]
        return float(np.median(others)) if others else self._middle.get(column.name, 0.0)

    def spread(self, column: Column) -> float:
        """The standard deviation of a control's log ratio on one case against the others, by its outer quantile."""
        apart = [abs(value) for values in self._apart(column, 1).values() for value in values]
        return float(np.quantile(apart, LEVEL)) / NORMAL_QUANTILE if apart else 0.0

    def floor(self, column: Column) -> float:
        """What the ratios of all controls over their cases stay within, against the others; needs two."""
        apart = self._apart(column, 2).values()
        return max([LEAST, *(math.exp(abs(float(np.median(values)))) for values in apart)])

    def _apart(self, column: Column, fewest: int) -> dict[str, list[float]]:
        """The log ratios of each control against the others, of cases that have at least so many controls."""
        found: dict[str, list[float]] = {}
        for (name, case), values in self._logs.items():
            for engine, value in values.items() if name == column.name and len(values) >= fewest else ():
                found.setdefault(engine, []).append(value - self.shift(engine, case, column))
        return found


def _of_cases(common: Mapping[Key, tuple[Series, Series]], names: Sequence[str]) -> list[Change]:
    """The comparisons of single cases, of those with samples."""
    pairs = {key: _paired(*both) for key, both in common.items()}
    pairs = {key: pair for key, pair in pairs.items() if len(pair[0]) > 1}
    controls = _Controls({key: math.log(np.median(new) / np.median(old)) for key, (old, new) in pairs.items()}, names)
    columns = {key.column: common[key][0].column for key in pairs}
    spreads = {name: controls.spread(column) for name, column in columns.items()}
    changes = []
    for key, (before, after) in pairs.items():
        column = columns[key.column]
        raw = ratio_of_medians(before, after)
        estimate = raw.corrected(controls.shift(key.engine, key.case, column), spreads[key.column])
        middle = (float(np.median(before)), float(np.median(after)))
        changes.append(Change(key.engine, key.case, column, *middle, raw, estimate, control=key.engine in names))
    return changes


def _of_engines(common: Mapping[Key, tuple[Series, Series]], names: Sequence[str]) -> list[Change]:
    """The comparisons of engines over their cases."""
    middles = {
        key: (float(np.median(before.values)), float(np.median(after.values)))
        for key, (before, after) in common.items()
        if before.of_engine
    }
    logs = {key: math.log(after / before) for key, (before, after) in middles.items()}
    controls = _Controls(logs, names)
    groups: dict[tuple[str, str], list[Key]] = {}
    for key in logs:
        groups.setdefault((key.engine, key.column), []).append(key)
    changes = []
    for (engine, _), keys in groups.items():
        column = common[keys[0]][0].column
        ratios = np.array([logs[key] for key in keys])
        shifts = np.array([controls.shift(engine, key.case, column) for key in keys])
        raw, estimate = median_ratio(ratios), median_ratio(ratios - shifts)
        before, after = np.median([middles[key] for key in keys], axis=0).tolist()
        floor = controls.floor(column)
        changes.append(Change(engine, (), column, before, after, raw, estimate, floor, engine in names))
    return changes


def _paired(before: Series, after: Series) -> tuple[np.ndarray, np.ndarray]:
    """The values at the places that both have, in one order; if there are none, as many as both have."""
    there = {place: number for number, place in enumerate(after.places)}
    rows = [(number, there[place]) for number, place in enumerate(before.places) if place in there]
    if not rows:
        count = min(len(before.values), len(after.values))
        return before.values[:count], after.values[:count]
    mine, other = np.array(rows).T
    return before.values[mine], after.values[other]


def _told(changes: Sequence[Change]) -> tuple[Change, ...]:
    """The changes of one level, with those marked that are beyond noise; controls are not asked."""
    chances = [math.nan if change.control else change.estimate.chance for change in changes]
    found = discoveries(chances)
    return tuple(
        replace(
            change,
            told=discovered
            and not change.estimate.interval.low <= 1 <= change.estimate.interval.high
            and max(change.ratio, 1 / change.ratio) > change.floor,
        )
        for change, discovered in zip(changes, found, strict=True)
    )
