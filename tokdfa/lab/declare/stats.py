"""A statistic of a column within a group of rows: what cells of tables, axes of plots and blanks of sentences hold.

A statistic is written as text, ``COLUMN:HOW`` (``mask_ns:p99``), or as a `Stat` where it needs a title of its own or is
of some rows only. HOW is one of median (what is left out means this for numbers), mean, min, max, sum, first, count
(rows that have a value), distinct, share (of rows that are true), or a percentile such as p99.9.

Ratios are paired: between two groups' values of the same cases, then the median over the cases with its range.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from tokdfa.errors import OptionError
from tokdfa.lab.declare.columns import Column, Ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    import numpy.typing as npt
    import pandas as pd

    Places = npt.NDArray[np.int64]

PERCENTILES = (25, 50, 75, 90, 95, 99, 99.9)
_WORDS = ("median", "mean", "min", "max", "sum", "first", "count", "distinct", "share")
_PERCENTILE = re.compile(r"p(\d{1,2}(\.\d+)?)")
#: Of fewer clusters there is no interval: it would be too narrow.
MIN_CLUSTERS = 6
RESAMPLES = 999


def cluster_interval(statistic: Callable[[Places], float], clusters: Sequence[object]) -> tuple[float, float] | None:
    """The 95 % bootstrap interval of ``statistic(places)``, a function of row numbers, some of them several times.

    `clusters`: the cluster of each row, hashable. Rows of one text, say, are not independent of each other, so clusters
    are drawn again and not rows (percentile form; Efron 1979). Draws are seeded: a report of the same rows is the same.
    O(RESAMPLES) times the statistic.
    """
    from scipy.stats import bootstrap

    members: dict[object, list[int]] = {}
    for row, cluster in enumerate(clusters):
        members.setdefault(cluster, []).append(row)
    if len(members) < MIN_CLUSTERS:
        return None
    rows = [np.array(found, dtype=np.int64) for found in members.values()]
    drawn = bootstrap(
        (np.arange(len(rows)),),
        lambda chosen: statistic(np.concatenate([rows[one] for one in chosen])),
        vectorized=False,
        n_resamples=RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(0),
    )
    return float(drawn.confidence_interval.low), float(drawn.confidence_interval.high)


class _Statistic:
    """What statistics have in common; `over` says what they are."""

    resample: Sequence[str] = ()

    @property
    def columns_read(self) -> tuple[str, ...]:
        """The columns that it is of."""
        raise NotImplementedError

    def described(self, columns: Mapping[str, Column]) -> Column:
        """What the statistic is: unit and better end under the statistic's own title."""
        raise NotImplementedError

    def over(self, rows: pd.DataFrame, columns: Mapping[str, Column]) -> Callable[[Places], Any]:
        """What gives its value over some of the rows, by their places (int64), in base units; NaN (of texts: None)
        where there is nothing to take it of.
        """
        raise NotImplementedError

    def compute(self, rows: pd.DataFrame, columns: Mapping[str, Column]) -> Any:
        """Its value over all of the rows; NaN (of texts: None) if they lack its column."""
        if not {*self.columns_read} <= set(rows):
            return None if self.described(columns).unit == "text" else math.nan
        return self.over(rows, columns)(np.arange(len(rows)))

    def interval(self, rows: pd.DataFrame, columns: Mapping[str, Column]) -> tuple[float, float] | None:
        """The ends of its 95 % interval, in base units; None of few samples, and if none is asked for."""
        by = [name for name in self.resample if name in rows]
        if not by or not {*self.columns_read} <= set(rows):
            return None
        rows = rows.dropna(subset=[*self.columns_read], how="all")
        return cluster_interval(self.over(rows, columns), list(rows[by].itertuples(index=False, name=None)))


@dataclass(frozen=True)
class Stat(_Statistic):
    """`how` of `column`, over the rows for which the pandas query `where` holds. `title`: its head in tables.

    `resample`: columns whose values tell which rows belong together; a 95 % bootstrap interval over these is shown with
    the number (`cluster_interval`). `ends`: where the rows have an interval, the columns of its ends.
    """

    column: str
    how: str = ""
    title: str = ""
    where: str = ""
    resample: Sequence[str] = ()
    ends: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if self.how and self.how not in _WORDS and not _PERCENTILE.fullmatch(self.how):
            raise OptionError(f"{self.column}:{self.how}: there is no such statistic; known: {', '.join(_WORDS)}, pNN")

    @classmethod
    def of(cls, written: str | Stat) -> Stat:
        """A statistic as it is written: ``mask_ns:p99``."""
        if isinstance(written, Stat):
            return written
        column, _, how = written.partition(":")
        return cls(column, how)

    @property
    def columns_read(self) -> tuple[str, ...]:
        return (self.column,)

    def described(self, columns: Mapping[str, Column]) -> Column:
        column = columns.get(self.column, Column(self.column))
        how = self.how or ("first" if column.unit == "text" else "median")
        if how in ("count", "distinct"):
            return Column(self.column, self.title or column.head, "", "neither", column.meaning)
        if how == "share":
            return replace(column, title=self.title or column.head, unit="share", factor=1.0)
        quiet = not self.how or how in ("first", "median")
        return replace(column, title=self.title or (column.head if quiet else f"{column.head}, {how}"))

    def over(self, rows: pd.DataFrame, columns: Mapping[str, Column]) -> Callable[[Places], Any]:
        column, cells = columns.get(self.column, Column(self.column)), rows[self.column]
        how = self.how or ("first" if column.unit == "text" else "median")
        known = cells.notna().to_numpy()
        if self.where:
            holds: Any = rows.eval(self.where)
            known = known & holds.eq(True).fillna(False).to_numpy(dtype=bool)
        if how in ("count", "distinct"):
            codes = cells.factorize()[0]
            count: Callable[[Any], int] = len if how == "count" else lambda found: len({*found})
            return lambda places: float(count(codes[places[known[places]]]))
        if column.unit == "text":
            texts = cells.to_numpy(dtype=object)
            return lambda places: next(iter(texts[places[known[places]]]), None)
        factor = 1.0 if how == "share" else column.factor
        if known.any() and isinstance(cells[known].iloc[0], bytes):
            return lambda places: _of_numbers(numbers_of(cells.iloc[places[known[places]]]), how) * factor
        numbers = cells.where(known).to_numpy(dtype=np.float64, na_value=math.nan)
        return lambda places: _of_numbers(numbers[places[known[places]]], how) * factor

    def interval(self, rows: pd.DataFrame, columns: Mapping[str, Column]) -> tuple[float, float] | None:
        if not self.ends:
            return super().interval(rows, columns)
        factor = columns.get(self.column, Column(self.column)).factor
        low, high = (replace(self, column=end, ends=None).compute(rows, columns) for end in self.ends)
        return (low * factor, high * factor) if low < high else None


@dataclass(frozen=True)
class Quotient(_Statistic):
    """One statistic over another, as a ratio ("takes 3.2 times as long"), a share, or a time for each of something.

    `better`, `resample`: as those of a column and of `Stat`; with the latter neither statistic has a `where`.
    """

    above: str | Stat
    below: str | Stat
    title: str = ""
    unit: Literal["ratio", "share", "s"] = "ratio"
    better: Literal["lower", "higher", "neither"] = "neither"
    resample: Sequence[str] = ()

    @property
    def columns_read(self) -> tuple[str, ...]:
        return Stat.of(self.above).column, Stat.of(self.below).column

    def described(self, columns: Mapping[str, Column]) -> Column:
        title = self.title or f"{Stat.of(self.above).described(columns).head}, ratio"
        return Column(Stat.of(self.above).column, title, self.unit, self.better)

    def over(self, rows: pd.DataFrame, columns: Mapping[str, Column]) -> Callable[[Places], float]:
        above, below = (Stat.of(one).over(rows, columns) for one in (self.above, self.below))

        def quotient(places: Places) -> float:
            under = below(places)
            return float(above(places) / under) if under else math.nan

        return quotient


#: What may stand wherever a number is asked for.
Value = str | Stat | Quotient


def value_of(written: Value) -> Stat | Quotient:
    """A statistic or a quotient as it is written."""
    return written if isinstance(written, Quotient) else Stat.of(written)


def percentiles(column: str, *, mean: bool = True, of: Sequence[float] = PERCENTILES) -> list[Stat]:
    """The columns of a table of percentiles: p25 ... p99.9, max, mean."""
    found = [Stat(column, f"p{percent:g}", f"p{percent:g}") for percent in of]
    return [*found, Stat(column, "max", "max"), *([Stat(column, "mean", "mean")] if mean else [])]


def numbers_of(values: pd.Series[Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The numbers of a column; a cell may hold an array of float32, little end first, which is as many numbers."""
    if len(values) and isinstance(values.iloc[0], bytes):
        return np.concatenate([np.frombuffer(value, dtype="<f4") for value in values]).astype(np.float64)
    return values.to_numpy(dtype=np.float64)


def _of_numbers(values: np.ndarray[Any, np.dtype[np.float64]], how: str) -> float:
    if not len(values):
        return math.nan
    if percent := _PERCENTILE.fullmatch(how):
        return float(np.percentile(values, float(percent[1])))
    if how == "first":
        return float(values[0])
    return float(getattr(np, "mean" if how == "share" else how)(values))


def paired(mine: pd.Series[Any], theirs: pd.Series[Any], column: Column) -> Ratio | None:
    """How much better `mine` is than `theirs`, case by case (the index); above 1 is better. None without a pair.

    Values below the column's resolution count as that; pairs in which one is zero even so are left out.
    """
    import pandas as pd

    pairs = pd.concat({"mine": mine, "theirs": theirs}, axis=1).dropna()
    pairs = pairs.astype("float64").clip(lower=column.resolution)
    pairs = pairs[(pairs > 0).all(axis=1)]
    if pairs.empty:
        return None
    ratios = pairs["theirs"] / pairs["mine"]
    if column.better == "higher":
        ratios = 1 / ratios
    return Ratio(float(ratios.median()), float(ratios.min()), float(ratios.max()), len(ratios))


def ratio_of(mine: float, theirs: float, column: Column) -> Ratio | None:
    """The same of one case."""
    mine, theirs = max(mine, column.resolution), max(theirs, column.resolution)
    if not (mine > 0 and theirs > 0):
        return None
    ratio = mine / theirs if column.better == "higher" else theirs / mine
    return Ratio(ratio, ratio, ratio, 1)


def per_case(
    stat: Stat | Quotient, rows: pd.DataFrame, over: Sequence[str], columns: Mapping[str, Column]
) -> pd.Series[Any]:
    """The statistic of each case, in the order of the rows; of all rows together where no columns make a case.

    The index has texts, so that cases in which something is not known are found again (`part_text`).
    """
    import pandas as pd

    by = [name for name in over if name in rows]
    if not by:
        return pd.Series([stat.compute(rows, columns)])
    if rows.empty or not {*stat.columns_read} <= set(rows):
        return pd.Series(dtype="float64")
    texts, value = rows[by].map(part_text), stat.over(rows, columns)
    codes = texts.groupby(by, sort=False).ngroup().to_numpy()
    cases = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    index = texts.iloc[[case[0] for case in cases]].set_index(by).index
    return pd.Series([value(case) for case in cases], index)


def key_parts(key: Any) -> list[Any]:
    """The key of a group as a list, of one column too."""
    return list(key) if isinstance(key, tuple) else [key]


def part_text(part: Any) -> str:
    """A part of the key of a group or a case as a text, which equals itself where it is not known."""
    return str(part) if is_known(part) else ""


def is_known(value: Any) -> bool:
    """Whether a value is neither None nor NaN."""
    return value is not None and not (isinstance(value, float) and math.isnan(value)) and str(value) != "<NA>"


def exponent(sizes: Sequence[Any], values: Sequence[float]) -> float:
    """The exponent p of value = c * size^p through points: the median slope of all pairs in logarithms (Theil and Sen),
    of the larger half of the sizes, where fixed costs weigh less; NaN of fewer than three.
    """
    from scipy.stats import theilslopes

    points = sorted((float(size), value) for size, value in zip(sizes, values, strict=True) if is_known(value))
    points = [(size, value) for size, value in points if size > 0 and value > 0]
    larger = points[len(points) // 2 :] if len(points) > 5 else points
    if len({size for size, _ in larger}) < 3:
        return math.nan
    x, y = np.log(np.array(larger)).T
    return float(theilslopes(y, x).slope)
