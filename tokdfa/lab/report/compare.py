"""Two runs of one experiment: what got faster or slower beyond noise, and what else has changed.

    comparison = compare_runs(open_run(before), open_run(after))
    page(comparison)                      # see tokdfa.lab.report.compare_page

Two levels. *Case by case*: of each engine, case and measure the ratio of the medians of the samples, with a bootstrap
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
from tokdfa.lab.report import compare_outcomes, compare_statistics
from tokdfa.lab.report.compare_series import read_series
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.environments import compare_environments
from tokdfa.lab.report.intervals import LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tokdfa.lab.report.compare_outcomes import Difference, OneSided
    from tokdfa.lab.report.compare_series import Key, Series
    from tokdfa.lab.report.compare_statistics import Estimate
    from tokdfa.lab.report.data import StoredRun
    from tokdfa.lab.report.metrics import Metric

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
    metric: Metric
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
            return self.metric.words[self.ratio > 1]
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
        return [change for change in self.told if change.metric.unit == "s" and change.ratio >= ratio]


def compare_runs(before: StoredRun, after: StoredRun, controls: Iterable[str] | None = None) -> Comparison:
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
        tuple(compare_outcomes.differences(old, new)),
        tuple(compare_outcomes.one_sided(mine, other)),
    )


def _same_engines(before: RunData, after: RunData, engines: Sequence[str]) -> tuple[str, ...]:
    """The engines that are packages of others, in the same version in both runs."""
    from tokdfa.backends.registry import backend_info, backend_names

    versions = [run.provenance.get("packages") or {} for run in (before, after)]
    packages = {name: backend_info(name).packages for name in backend_names()}
    backend_of = _backends(before)
    found = []
    for engine in engines:
        needed = packages.get(backend_of.get(engine, engine), ())
        if needed and all(versions[0].get(one) and versions[0].get(one) == versions[1].get(one) for one in needed):
            found.append(engine)
    return tuple(found)


def _backends(data: RunData) -> dict[str, str]:
    """engine -> the backend it is, where the run says so."""
    from tokdfa.lab.report.compare_series import row_keys

    found = dict(data.backend_of) if data.kind == "backends" else {}
    if data.kind != "backends" and "backend" in data.results:
        keys = row_keys(data.results)
        found |= {engine: str(backend) for (engine, _, _), backend in zip(keys, data.results["backend"], strict=True)}
    for section in data.sections.values():
        found = _backends(section) | found
    return found


class _Controls:
    """Ratios of the controls on every case, as logarithms: what the machine did to each, and how far they differ."""

    def __init__(self, logs: Mapping[tuple[str, tuple[str, ...], str], float], names: Sequence[str]) -> None:
        self._names = names
        self._logs: dict[tuple[tuple[str, ...], str], dict[str, float]] = {}
        for (engine, case, metric), value in logs.items():
            if engine in names:
                self._logs.setdefault((case, metric), {})[engine] = value
        self._of_metric: dict[str, list[float]] = {}
        for (_, metric), values in self._logs.items():
            self._of_metric.setdefault(metric, []).append(float(np.median(list(values.values()))))

    def shift(self, engine: str, case: tuple[str, ...], metric: Metric) -> float:
        """The median log ratio of the controls on a case; over all cases, where this one has none. 0 for memory."""
        if metric.unit != "s":
            return 0.0
        here = self._logs.get((case, metric.name), {})
        others = [value for name, value in here.items() if name != engine]
        if others:
            return float(np.median(others))
        return float(np.median(self._of_metric[metric.name])) if metric.name in self._of_metric else 0.0

    def spread(self, metric: Metric) -> float:
        """The standard deviation of a control's log ratio on one case against the others, by its outer quantile."""
        apart = [
            abs(value - self.shift(engine, case, metric))
            for (case, name), values in self._logs.items()
            if name == metric.name
            for engine, value in values.items()
        ]
        return float(np.quantile(apart, LEVEL)) / compare_statistics.NORMAL_QUANTILE if apart else 0.0

    def floor(self, metric: Metric) -> float:
        """What the ratios of all controls over their cases stay within, against the others; needs two."""
        apart: dict[str, list[float]] = {}
        for (case, name), values in self._logs.items():
            if name == metric.name and len(values) > 1:
                for engine, value in values.items():
                    apart.setdefault(engine, []).append(value - self.shift(engine, case, metric))
        return max([LEAST, *(math.exp(abs(float(np.median(values)))) for values in apart.values())])


def _of_cases(common: Mapping[Key, tuple[Series, Series]], names: Sequence[str]) -> list[Change]:
    """The comparisons of single cases, of those with samples."""
    pairs = {key: _paired(*both) for key, both in common.items()}
    logs = {key: math.log(np.median(after) / np.median(before)) for key, (before, after) in pairs.items()}
    controls = _Controls({(key.engine, key.case, common[key][0].metric.name): log for key, log in logs.items()}, names)
    spreads: dict[str, float] = {}
    changes = []
    for key, (before, after) in pairs.items():
        metric = common[key][0].metric
        if len(before) == 1:
            continue
        raw, error = compare_statistics.ratio_of_medians(before, after)
        if metric.name not in spreads:
            spreads[metric.name] = controls.spread(metric)
        shift = controls.shift(key.engine, key.case, metric)
        estimate = raw.corrected(shift, spreads[metric.name], error)
        middle = (float(np.median(before)), float(np.median(after)))
        changes.append(Change(key.engine, key.case, metric, *middle, raw, estimate, control=key.engine in names))
    return changes


def _of_engines(common: Mapping[Key, tuple[Series, Series]], names: Sequence[str]) -> list[Change]:
    """The comparisons of engines over their cases."""
    values: dict[tuple[str, str], dict[tuple[str, ...], tuple[float, float]]] = {}
    metrics: dict[str, Metric] = {}
    for key, both in common.items():
        for (metric, before), (_, after) in zip(*(series.summaries() for series in both), strict=True):
            metrics[metric.name] = metric
            values.setdefault((key.engine, metric.name), {})[key.case] = (before, after)
    logs = {
        (engine, case, metric): math.log(after / before)
        for (engine, metric), cases in values.items()
        for case, (before, after) in cases.items()
    }
    controls = _Controls(logs, names)
    changes = []
    for (engine, name), cases in values.items():
        metric = metrics[name]
        ratios = np.array([logs[engine, case, name] for case in cases])
        shifts = np.array([controls.shift(engine, case, metric) for case in cases])
        raw, _ = compare_statistics.median_ratio(ratios)
        estimate, _ = compare_statistics.median_ratio(ratios - shifts)
        before, after = np.median(np.array(list(cases.values())), axis=0).tolist()
        floor = controls.floor(metric)
        changes.append(Change(engine, (), metric, before, after, raw, estimate, floor, engine in names))
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
    found = compare_statistics.discoveries(chances)
    return tuple(
        replace(
            change,
            told=discovered
            and not change.estimate.interval.low <= 1 <= change.estimate.interval.high
            and max(change.ratio, 1 / change.ratio) > change.floor,
        )
        for change, discovered in zip(changes, found, strict=True)
    )
