"""Two runs of one experiment: what got faster or slower beyond noise, and what else has changed.

    comparison = compare_runs(open_run(before), open_run(after))
    page(comparison)                      # see tokdfa.lab.report.compare_page

What is compared follows from the kind's declaration: every column of its main frame with a better end whose unit is
seconds, bytes or a count. `Kind.engine` says who is compared, `Kind.case` on what. Of each engine, case and column the
median is taken (a cell that holds an array is as many samples); of each engine and column the median over the cases of
after over before, with a percentile bootstrap over the cases (Efron 1979), where there are six. Above 1 is slower.

Noise. The samples of one process know nothing of what differs between two runs although no code has: the state of the
machine, the layout of memory. *Controls* show it: engines that are the same in both runs, packages of others whose
version has not changed, or those that the caller names. Times are taken against the median of the other controls on the
same case; what is left of the controls' own ratios is the *floor*, and only a ratio beyond it counts. Without controls
the ratios stand as they are.

A change is told if its 95% interval does not hold 1, it is beyond the floor, at least `LEAST`, and it is among the
discoveries of Benjamini and Hochberg (1995) over all comparisons: of those that are told, a share of `FALSE_SHARE` may
be chance, in the long run.

*Outcomes* are what has no ratio: how an item or a row ended, texts, and counts, which are added up over a case.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.errors import ConfigError, StoreError, UnknownNameError
from tokdfa.lab.declare.cells import readable
from tokdfa.lab.declare.columns import Ratio, text
from tokdfa.lab.declare.look import backend_of
from tokdfa.lab.declare.stats import is_known
from tokdfa.lab.report.data import RunData

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pandas as pd

    from tokdfa.lab.declare.columns import Column
    from tokdfa.lab.declare.results import Results
    from tokdfa.lab.run.store import Run

#: A ratio nearer to 1 than this is never told, whatever its interval.
LEAST = 1.05
#: Fewer cases than this give no interval: it would be too narrow.
FEWEST = 6
#: Of the changes that are told, this share may be chance.
FALSE_SHARE = 0.05
#: What a value is of; and what a ratio is of.
KEY, PAIR = ["column", "engine", "case"], ["column", "engine"]
RESAMPLES = 1000


@dataclass(frozen=True)
class Comparison:
    """What has changed from the run `before` to the run `after`.

    `engines`: a row for each engine and measure. ``before``, ``after``: the medians over the cases that both runs have,
    in base units, and as people read them (``shown_before``); ``raw``: the median ratio, ``ratio``: the same against
    the controls, with the ends of its interval (``low``, ``high``); ``count``, of cases; ``floor``: the ratio beyond
    which it counts; ``told``: it is beyond noise, of a ``control`` nothing is; ``verdict``: ``faster``, ``slower``,
    ``less`` or ``more`` beyond noise, ``no``, ``too few`` cases, or ``control``.

    `outcomes`: a row for each change of an engine's outcome, with its ``cases``; `one_sided`: for each engine with
    values that only one run has, how many on each side, and their ``cases``.
    """

    before: RunData
    after: RunData
    engines: pd.DataFrame
    controls: tuple[str, ...]
    outcomes: pd.DataFrame
    one_sided: pd.DataFrame

    def slower(self, ratio: float) -> list[Any]:
        """The changes beyond noise in which something takes at least `ratio` times as long as before."""
        chosen = self.engines["told"] & (self.engines["unit"] == "s") & (self.engines["ratio"] >= ratio)
        return self.engines[chosen].to_dict("records")


def compare_runs(before: Run, after: Run, controls: Iterable[str] | None = None) -> Comparison:
    """Compare two runs of one kind of experiment.

    `controls`: the engines whose code is the same; by default those of packages whose version is (see above); an empty
    list for none. Raises ConfigError for different kinds, UnknownNameError for a control that not both runs have, and
    StoreError if the runs have no times in common. Cost: reading both runs, and a bootstrap an engine and measure.
    """
    import pandas as pd

    old, new = RunData.read(before), RunData.read(after)
    if old.kind != new.kind:
        raise ConfigError(f"runs of one kind can be compared; this one is of {old.kind}, the other of {new.kind}")
    (mine, columns), (other, _) = _values(old), _values(new)
    for run, values in ((before, mine), (after, other)):
        if values.empty:
            raise StoreError(
                f"{run.folder} holds no times to compare: its kind, {old.kind}, stores none, or nothing has succeeded; "
                "its report says which"
            )
    every = pd.concat({"before": mine, "after": other}, axis=1)
    both = every.dropna()
    if both.empty:
        raise StoreError(
            f"{before.folder} and {after.folder} have no engine, case and measure in common; "
            "compare two runs of one experiment"
        )
    engines = both.index.unique("engine").tolist()
    chosen = _same_engines(old, new, engines) if controls is None else tuple(controls)
    for name in chosen:
        if name not in engines:
            raise UnknownNameError("engine of both runs", name, engines)
    alone = every.notna().loc[every.isna().any(axis=1)].reset_index()
    by_engine = alone.groupby("engine", sort=False)
    one_sided = by_engine.agg(before=("before", "sum"), after=("after", "sum"), cases=("case", "unique")).reset_index()
    return Comparison(old, new, _engines(both, columns, chosen), chosen, _differences(old, new), one_sided)


def _frames(data: RunData) -> Iterator[tuple[Results, pd.DataFrame, bool]]:
    """The rows of a run, and of what it has measured beside, with their ``_engine`` and ``_case`` as texts; those of
    items, which say how they ended, with False.
    """
    for run in (data, *data.sections.values()):
        results = run.declared
        for name in ("", "items"):
            rows = results.frames.get(name)
            if rows is None or not len(rows):
                continue
            case = [one for one in results.case if one in rows and one != results.engine]
            told = rows[case].itertuples(index=False, name=None) if case else [()] * len(rows)
            cases = [" · ".join(filter(None, map(_said, case, values))) for values in told]
            engines = [str(one) if is_known(one) else "all" for one in rows.get(results.engine, ["all"] * len(rows))]
            yield results, rows.assign(_engine=engines, _case=cases), not name


def _said(name: str, value: Any) -> str:
    """A part of a case as text; a number with the name of its column, nothing for what is not known."""
    if not is_known(value):
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, str | bool) else f"{name} {value}"


def _is_measure(column: Column) -> bool:
    """Whether ratios of a column say that something got better or worse."""
    return column.better != "neither" and column.unit in ("s", "B", "")


def _values(data: RunData) -> tuple[pd.Series[float], dict[str, Column]]:
    """The median of each column, engine and case (`KEY`), in base units, of those above zero; and the columns."""
    import pandas as pd

    found: list[pd.Series[float]] = []
    columns: dict[str, Column] = {}
    for results, rows, is_main in _frames(data):
        for column in filter(_is_measure, results.columns.values()) if is_main else ():
            values = rows.get(column.name, pd.Series()).dropna()
            if values.empty:
                continue
            if isinstance(values.iloc[0], bytes):
                values = values.map(lambda cell: np.median(np.frombuffer(cell, "<f4")) if cell else math.nan)
            number = values.astype("float64") * column.factor
            number = number.where(number >= 0).clip(lower=column.resolution)
            keys = [rows.loc[number.index, name].rename(name[1:]) for name in ("_engine", "_case")]
            found.append(pd.concat({column.name: number[number > 0].groupby(keys, sort=False).median()}))
            columns[column.name] = column
    values = pd.concat(found) if found else pd.Series(index=pd.MultiIndex.from_arrays([[], [], []]), dtype="float64")
    return values.groupby(level=[0, 1, 2], sort=False).first().rename_axis(KEY), columns


def _same_engines(before: RunData, after: RunData, engines: Sequence[str]) -> tuple[str, ...]:
    """The engines that are packages of others, in the same version in both runs."""
    from tokdfa.backends.registry import backend_info, backend_names

    old, new = ({**(run.provenance.get("packages") or {})} for run in (before, after))
    packages = {name: backend_info(name).packages for name in backend_names()}
    known: dict[str, str] = {}
    for _, rows, _ in _frames(before):
        if "backend" in rows:
            known |= dict(zip(rows["_engine"], rows["backend"].map(str), strict=True))
    of_engine = {engine: packages.get(known.get(engine, backend_of(engine)), ()) for engine in engines}
    return tuple(
        engine
        for engine, needed in of_engine.items()
        if needed and all(old.get(one, "") == new.get(one) for one in needed)
    )


def _engines(both: pd.DataFrame, columns: Mapping[str, Column], controls: Sequence[str]) -> pd.DataFrame:
    """`Comparison.engines`, from the medians of each column, engine and case of both runs."""
    import pandas as pd
    from scipy.stats import false_discovery_control

    logs = (both["after"] / both["before"]).map(math.log).unstack("engine")
    apart = pd.DataFrame({engine: logs[engine] - _shift(logs, str(engine), columns, controls) for engine in logs})
    floors: dict[Any, float] = {}
    if len(controls) > 1:
        middles = apart[list(controls)].groupby(level="column").median().abs().max(axis=1)
        floors = np.exp(middles).to_dict()
    rows: list[dict[str, Any]] = []
    groups: dict[Any, pd.DataFrame] = dict(iter(both.groupby(level=PAIR, sort=False)))
    for (name, engine), group in groups.items():
        column, mine = columns[name], apart.loc[name, engine].dropna().to_numpy()
        value, low, high, chance = _estimate(mine)
        before, after = group.median()
        low_end, high_end = (value, value) if math.isnan(low) else (low, high)
        ends = (value, low_end, high_end)
        if column.better != "higher":
            ends = (1 / value, 1 / high_end, 1 / low_end)
        rows.append(
            {
                **{"engine": engine, "measure": name, "head": column.head, "unit": column.unit, "count": len(mine)},
                **{"before": before, "shown_before": column.format(before)},
                **{"after": after, "shown_after": column.format(after)},
                **{"raw": math.exp(logs.loc[name, engine].median()), "ratio": value, "low": low, "high": high},
                **{"floor": max(LEAST, floors.get(name, LEAST)), "control": engine in controls},
                **{"chance": chance, "said": Ratio(*ends, len(mine)).describe(column)},
                "verdict": column.words[(value > 1) != (column.better == "higher")],
            }
        )
    frame = pd.DataFrame(rows)
    frame["chance"] = frame["chance"].mask(frame["control"])
    asked = frame["chance"].notna()
    told = (
        asked & (np.exp(np.log(frame["ratio"]).abs()) > frame["floor"]) & ~((frame["low"] <= 1) & (frame["high"] >= 1))
    )
    told[asked] &= false_discovery_control(frame.loc[asked, "chance"]) <= FALSE_SHARE
    other = np.where(frame["control"], "control", np.where(frame["low"].isna(), "too few", "no"))
    return frame.assign(told=told, verdict=frame["verdict"].where(told, other))


def _shift(logs: pd.DataFrame, engine: str, columns: Mapping[str, Column], controls: Sequence[str]) -> pd.Series[float]:
    """What the machine did to an engine: the median log ratio of the other controls on a case; over all cases, where
    this one has none. 0 but for times: nothing else depends on how fast the machine was.
    """
    others = logs[[name for name in controls if name != engine]].median(axis=1)
    shift = others.fillna(others.groupby(level="column").transform("median")).fillna(0.0)
    is_time = [columns[name].unit == "s" for name in logs.index.get_level_values("column")]
    return shift.where(np.array(is_time), 0.0)


def _estimate(logs: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, float, float, float]:
    """The median of ratios whose logarithms are given, one a case, the ends of its 95% interval, and the chance of one
    at least as far from 1 if nothing had changed: Student's t of the logarithm over its standard error. NaN of few
    cases. Seeded, so equal data give equal intervals.
    """
    from scipy.stats import bootstrap, t

    value, count = float(np.median(logs)), len(logs)
    if count < FEWEST:
        return math.exp(value), math.nan, math.nan, math.nan
    drawn = bootstrap(
        (logs,), np.median, method="percentile", n_resamples=RESAMPLES, batch=100, rng=np.random.default_rng(0)
    )
    error = float(drawn.standard_error) * math.sqrt(count / (count - 1))
    chance = 1.0 if value == 0 else float(2 * t.sf(abs(value) / error if error else math.inf, count - 1))
    low, high = drawn.confidence_interval
    return math.exp(value), math.exp(low), math.exp(high), chance


def _differences(before: RunData, after: RunData) -> pd.DataFrame:
    """The outcomes that differ, where both runs have one: engine, what it is, both as texts, and the cases."""
    both = _outcomes(before).merge(_outcomes(after), on=["engine", "case", "what"], suffixes=("_before", "_after"))
    is_ratio = both["has_ratio_before"].astype(bool) & both["has_ratio_after"].astype(bool)
    changed = both[(both["text_before"] != both["text_after"]) & ~is_ratio]
    changes = changed.groupby(["engine", "what", "text_before", "text_after"], sort=False)["case"].unique()
    return changes.rename("cases").reset_index().rename(columns={"text_before": "before", "text_after": "after"})


def _outcomes(data: RunData) -> pd.DataFrame:
    """What each engine got on a case: how it ended, the stored texts, and the stored counts, added up; and whether a
    ratio says it, as it does of a count with a better end that is not 0.
    """
    import pandas as pd

    found: list[tuple[Any, ...]] = []
    for results, rows, is_main in _frames(data):
        if not is_main and results.engine not in rows:
            continue
        parts = (data, *data.sections.values())
        stored = {name for one in parts for frame in (one.items, one.samples, one.results) for name in frame}
        stored -= {"status", *results.case, results.engine}
        declared = [one for one in results.columns.values() if one.name in stored and one.unit in ("", "text")]
        for column in [*(declared if is_main else ()), text("status")]:
            if column.name not in rows:
                continue
            known = rows.dropna(subset=[column.name]).groupby(["_engine", "_case"], sort=False)[column.name]
            for (engine, case), own in known:
                if column.unit == "text" or isinstance(own.iloc[0], str | bytes):
                    found.append((engine, case, column.head, ", ".join(dict.fromkeys(map(readable, own))), False))
                else:
                    total = float(own.sum())
                    found.append((engine, case, column.head, column.format(total), _is_measure(column) and total > 0))
    names = ["engine", "case", "what", "text", "has_ratio"]
    return pd.DataFrame(found, columns=names).drop_duplicates(names[:3])
