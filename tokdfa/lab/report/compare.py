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
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.errors import ConfigError, StoreError, UnknownNameError
from tokdfa.lab.declare.columns import Ratio
from tokdfa.lab.declare.look import backend_of
from tokdfa.lab.report.compare_series import KEY, differences, one_sided, read_values, sources
from tokdfa.lab.report.compare_statistics import LEVEL, NORMAL_QUANTILE, discoveries, median_ratio, ratio_of_medians
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.tables import compare_environments

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd

    from tokdfa.lab.declare.columns import Column
    from tokdfa.lab.report.compare_statistics import Estimate
    from tokdfa.lab.run.store import Run

    #: Engine, case and column.
    Key = tuple[str, str, str]

#: A ratio nearer to 1 than this is never told, whatever its interval.
LEAST = 1.05


@dataclass(frozen=True)
class Comparison:
    """What has changed from the run `before` to the run `after`.

    `engines`, `cases`: a row for each comparison of an engine over all its cases, and on one case. ``before``,
    ``after``: the medians in base units, and as people read them (``shown_before``); ``raw``: after over before, and
    ``ratio``, the same against the controls, both with the ends of their intervals; ``chance``; ``count``, of cases or
    samples; ``floor``: the ratio beyond which it counts; ``told``: it is beyond noise, of a ``control`` nothing is;
    ``verdict``: ``faster``, ``slower``, ``less`` or ``more`` beyond noise, ``no``, ``too few`` samples, or ``control``.
    """

    before: RunData
    after: RunData
    engines: pd.DataFrame
    cases: pd.DataFrame
    controls: tuple[str, ...]
    outcomes: pd.DataFrame
    one_sided: pd.DataFrame

    @cached_property
    def environment(self) -> dict[str, list[str]]:
        """What of the environment differs: key -> before and after."""
        return compare_environments([self.before, self.after])

    def slower(self, ratio: float) -> list[dict[str, Any]]:
        """The changes beyond noise in which something takes at least `ratio` times as long as before."""
        rows: list[Any] = [row for frame in (self.engines, self.cases) for row in frame.to_dict("records")]
        return [row for row in rows if row["told"] and row["unit"] == "s" and row["ratio"] >= ratio]


def compare_runs(before: Run, after: Run, controls: Iterable[str] | None = None) -> Comparison:
    """Compare two runs of one kind of experiment.

    `controls`: the engines whose code is the same; by default those of packages whose version is (see above); an empty
    list for none. Raises ConfigError for different kinds, UnknownNameError for a control that not both runs have, and
    StoreError if the runs have no times in common. Cost: reading both runs, and a bootstrap a case and measure.
    """
    old, new = RunData.read(before), RunData.read(after)
    if old.kind != new.kind:
        raise ConfigError(f"runs of one kind can be compared; this one is of {old.kind}, the other of {new.kind}")
    (mine, columns), (other, _) = read_values(old), read_values(new)
    for run, values in ((before, mine), (after, other)):
        if values.empty:
            raise StoreError(
                f"{run.folder} holds no times to compare: its kind, {old.kind}, stores none, or nothing has succeeded; "
                "its report says which"
            )
    before_all, after_all = (one[one["of_engine"]].groupby(KEY, sort=False)["value"].median() for one in (mine, other))
    keys = mine[KEY].drop_duplicates().merge(other[KEY].drop_duplicates(), on=KEY)
    if keys.empty:
        raise StoreError(
            f"{before.folder} and {after.folder} have no engine, case and measure in common; "
            "compare two runs of one experiment"
        )
    engines = tuple(dict.fromkeys(keys["engine"]))
    chosen = _same_engines(old, new, engines) if controls is None else tuple(controls)
    for name in chosen:
        if name not in engines:
            raise UnknownNameError("engine of both runs", name, engines)
    pairs = mine.merge(other, on=[*KEY, "place"], suffixes=("_before", "_after"))
    return Comparison(
        old,
        new,
        _told(_of_engines(before_all, after_all, columns, chosen)),
        _told(_of_cases(pairs, columns, chosen)),
        chosen,
        differences(old, new),
        one_sided(mine, other),
    )


def _same_engines(before: RunData, after: RunData, engines: Sequence[str]) -> tuple[str, ...]:
    """The engines that are packages of others, in the same version in both runs."""
    from tokdfa.backends.registry import backend_info, backend_names

    versions = [run.provenance.get("packages") or {} for run in (before, after)]
    packages = {name: backend_info(name).packages for name in backend_names()}
    known: dict[str, str] = {}
    for source in sources(before):
        if "backend" in source.rows:
            known |= dict(zip(source.rows["_engine"], source.rows["backend"].map(str), strict=True))
    found = []
    for engine in engines:
        needed = packages.get(known.get(engine, backend_of(engine)), ())
        if needed and all(versions[0].get(one) and versions[0].get(one) == versions[1].get(one) for one in needed):
            found.append(engine)
    return tuple(found)


class _Controls:
    """Ratios of the controls on every case, as logarithms: what the machine did to each, and how far they differ."""

    def __init__(self, logs: Mapping[Key, float], names: Sequence[str]) -> None:
        self._logs: dict[tuple[str, str], dict[str, float]] = {}
        for (engine, case, column), value in logs.items():
            if engine in names:
                self._logs.setdefault((column, case), {})[engine] = value
        middles: dict[str, list[float]] = {}
        for (column, _), values in self._logs.items():
            middles.setdefault(column, []).append(float(np.median(list(values.values()))))
        self._middle = {column: float(np.median(values)) for column, values in middles.items()}

    def shift(self, engine: str, case: str, column: Column) -> float:
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


def _of_cases(pairs: pd.DataFrame, columns: Mapping[str, Column], names: Sequence[str]) -> list[dict[str, Any]]:
    """The comparisons of single cases, of those with samples; values of one place are paired."""
    groups: dict[Any, pd.DataFrame] = {key: one for key, one in pairs.groupby(KEY, sort=False) if len(one) > 1}
    middles = {key: group[["value_before", "value_after"]].median().tolist() for key, group in groups.items()}
    controls = _Controls({key: math.log(new / old) for key, (old, new) in middles.items()}, names)
    spreads = {name: controls.spread(columns[name]) for name in {key[2] for key in groups}}
    rows = []
    for key, group in groups.items():
        engine, case, name = key
        raw = ratio_of_medians(group["value_before"].to_numpy(), group["value_after"].to_numpy())
        estimate = raw.corrected(controls.shift(engine, case, columns[name]), spreads[name])
        rows.append(_row(engine, case, columns[name], middles[key], raw, estimate, LEAST, engine in names))
    return rows


def _of_engines(
    before: pd.Series[float], after: pd.Series[float], columns: Mapping[str, Column], names: Sequence[str]
) -> list[dict[str, Any]]:
    """The comparisons of engines over their cases, of each the median."""
    import pandas as pd

    both = pd.concat({"before": before, "after": after}, axis=1, join="inner")
    both = both.assign(log=np.log(both["after"] / both["before"])).reset_index()
    controls = _Controls({(*key,): log for *key, log in both[[*KEY, "log"]].itertuples(index=False)}, names)
    rows = []
    of_engine: dict[Any, pd.DataFrame] = dict(iter(both.groupby(["engine", "column"], sort=False)))
    for (engine, name), group in of_engine.items():
        column = columns[name]
        shifts = np.array([controls.shift(engine, case, column) for case in group["case"]])
        raw, estimate = median_ratio(group["log"].to_numpy()), median_ratio(group["log"].to_numpy() - shifts)
        middle = group[["before", "after"]].median().tolist()
        rows.append(_row(engine, "", column, middle, raw, estimate, controls.floor(column), engine in names))
    return rows


def _row(
    engine: str,
    case: str,
    column: Column,
    middles: Sequence[float],
    raw: Estimate,
    estimate: Estimate,
    floor: float,
    control: bool,
) -> dict[str, Any]:
    """One comparison, but for its verdict. ``said``: the ratio in words, with its interval."""
    before, after = middles
    value, low, high = estimate.interval
    low_end, high_end = (value, value) if math.isnan(low) else (low, high)
    better = column.better == "higher"
    ends = (value, low_end, high_end) if better else (1 / value, 1 / high_end, 1 / low_end)
    return {
        **{"engine": engine, "case": case, "measure": column.name, "head": column.head, "unit": column.unit},
        **{"before": before, "after": after, "count": estimate.size, "higher_is_better": better},
        **{"raw": raw.interval.value, "raw_low": raw.interval.low, "raw_high": raw.interval.high},
        **{"ratio": value, "low": low, "high": high, "chance": estimate.chance, "floor": floor, "control": control},
        **{"shown_before": column.format(before), "shown_after": column.format(after)},
        **{"word": column.words[(value > 1) != better], "said": Ratio(*ends, estimate.size).describe(column)},
    }


def _told(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """The comparisons of one level with their verdicts; controls are not asked."""
    import pandas as pd

    found = discoveries([math.nan if row["control"] else row["chance"] for row in rows])
    for row, discovered in zip(rows, found, strict=True):
        is_apart = not row["low"] <= 1 <= row["high"] and max(row["ratio"], 1 / row["ratio"]) > row["floor"]
        few = "too few" if math.isnan(row["low"]) else "no"
        row["told"] = discovered and is_apart
        row["verdict"] = row.pop("word") if row["told"] else "control" if row["control"] else few
        row.pop("word", None)
    return pd.DataFrame(rows)
