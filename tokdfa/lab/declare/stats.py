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
from tokdfa.lab.declare.intervals import cluster_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    import pandas as pd

PERCENTILES = (25, 50, 75, 90, 95, 99, 99.9)
_WORDS = ("median", "mean", "min", "max", "sum", "first", "count", "distinct", "share")
_PERCENTILE = re.compile(r"p(\d{1,2}(\.\d+)?)")
#: What pandas calls a statistic, where it has another name for it.
_METHODS = {"share": "mean", "distinct": "nunique"}


@dataclass(frozen=True)
class Stat:
    """`how` of `column`, over the rows for which the pandas query `where` holds. `title`: its head in tables.

    `resample`: columns whose values tell which rows belong together; a 95 % bootstrap interval over these is shown with
    the number (`tokdfa.lab.declare.intervals`). `ends`: where the rows have an interval, the columns of its ends.
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

    def described(self, columns: Mapping[str, Column]) -> Column:
        """What the statistic is: the column's unit and better end under the statistic's own title."""
        column = columns.get(self.column, Column(self.column))
        how = self.how or ("first" if column.unit == "text" else "median")
        if how in ("count", "distinct"):
            return Column(self.column, self.title or column.head, "", "neither", column.meaning)
        if how == "share":
            return replace(column, title=self.title or column.head, unit="share", factor=1.0)
        quiet = not self.how or how in ("first", "median")
        return replace(column, title=self.title or (column.head if quiet else f"{column.head}, {how}"))

    def compute(self, rows: pd.DataFrame, columns: Mapping[str, Column]) -> Any:
        """Its value in base units; NaN (of texts: None) where there is nothing to take it of."""
        nothing = None if columns.get(self.column, Column(self.column)).unit == "text" else math.nan
        if self.column not in rows:
            return nothing
        how, known, factor = self._known(rows, columns)
        values = known[self.column]
        if how in ("count", "distinct"):
            return float(len(values) if how == "count" else values.nunique())
        if values.empty:
            return nothing
        return values.iloc[0] if nothing is None else _of_numbers(values.to_numpy(), how) * factor

    def per_group(self, rows: pd.DataFrame, by: Sequence[str], columns: Mapping[str, Column]) -> pd.Series[Any]:
        """The same for each group of rows that are equal in `by`, in one pass; groups without a value may lack.

        The index has texts, so that groups in which something is not known are found again (`part_text`).
        """
        how, known, factor = self._known(rows, columns, by)
        groups: Any = _as_texts(known, by).groupby(list(by), sort=False)[self.column]
        percent = _PERCENTILE.fullmatch(how)
        found = groups.quantile(float(percent[1]) / 100) if percent else getattr(groups, _METHODS.get(how, how))()
        if how in ("count", "distinct"):  # of a group in which nothing has a value there are none
            every = _as_texts(rows[list(by)], by).groupby(list(by), sort=False).size()
            return found.reindex(every.index, fill_value=0).astype("float64")
        return found if factor == 1.0 else found * factor

    def _known(
        self, rows: pd.DataFrame, columns: Mapping[str, Column], by: Sequence[str] = ()
    ) -> tuple[str, pd.DataFrame, float]:
        """What is taken, of which values beside the columns `by`, and from what is stored to the unit."""
        column = columns.get(self.column, Column(self.column))
        how = self.how or ("first" if column.unit == "text" else "median")
        known = (rows.query(self.where) if self.where else rows)[[*by, self.column]].dropna(subset=[self.column])
        if column.unit == "text" or how in ("count", "distinct") or known.empty:
            return how, known, 1.0
        values = known[self.column]
        if isinstance(values.iloc[0], bytes):
            known = known.iloc[np.repeat(np.arange(len(known)), [len(cell) // 4 for cell in values])]
        return how, known.assign(**{self.column: numbers_of(values)}), 1.0 if how == "share" else column.factor

    def interval(self, rows: pd.DataFrame, columns: Mapping[str, Column]) -> tuple[float, float] | None:
        """The ends of its 95 % interval, in base units; None of few samples, and if none is asked for."""
        if self.ends:
            factor = columns.get(self.column, Column(self.column)).factor
            low, high = (replace(self, column=end, ends=None).compute(rows, columns) for end in self.ends)
            return (low * factor, high * factor) if low < high else None
        by = [name for name in self.resample if name in rows]
        if not by or self.column not in rows:
            return None
        rows = (rows.query(self.where) if self.where else rows).dropna(subset=[self.column])
        return cluster_interval(self.sampled(rows, columns), list(rows[by].itertuples(index=False, name=None)))

    def sampled(self, rows: pd.DataFrame, columns: Mapping[str, Column]) -> Callable[[Any], float]:
        """Its value over some of the rows, which are given by their numbers; what `compute` says of them."""
        how = self.how or "median"
        if how in ("count", "distinct"):
            codes = rows[self.column].factorize()[0]
            return lambda chosen: float(_count(codes[chosen], how))
        values = rows[self.column].to_numpy(dtype=np.float64, na_value=math.nan)
        factor = 1.0 if how == "share" else columns.get(self.column, Column(self.column)).factor

        def statistic(chosen: Any) -> float:
            found = values[chosen]
            return _of_numbers(found[~np.isnan(found)], how) * factor

        return statistic


@dataclass(frozen=True)
class Quotient:
    """One statistic over another, as a ratio ("takes 3.2 times as long"), a share, or a time for each of something.

    `better`, `resample`: as those of a column and of `Stat`; with the latter neither statistic has a `where`.
    """

    above: str | Stat
    below: str | Stat
    title: str = ""
    unit: Literal["ratio", "share", "s"] = "ratio"
    better: Literal["lower", "higher", "neither"] = "neither"
    resample: Sequence[str] = ()

    def described(self, columns: Mapping[str, Column]) -> Column:
        title = self.title or f"{Stat.of(self.above).described(columns).head}, ratio"
        return Column(Stat.of(self.above).column, title, self.unit, self.better)

    def compute(self, rows: pd.DataFrame, columns: Mapping[str, Column]) -> float:
        below = Stat.of(self.below).compute(rows, columns)
        return float(Stat.of(self.above).compute(rows, columns) / below) if below else math.nan

    def interval(self, rows: pd.DataFrame, columns: Mapping[str, Column]) -> tuple[float, float] | None:
        """The ends of its 95 % interval; None of few samples, and where `resample` is empty."""
        by = [name for name in self.resample if name in rows]
        stats = [Stat.of(one) for one in (self.above, self.below)]
        if not by or not {stat.column for stat in stats} <= set(rows):
            return None
        rows = rows.dropna(subset=[stat.column for stat in stats], how="all")
        above, below = (stat.sampled(rows, columns) for stat in stats)

        def quotient(chosen: Any) -> float:
            under = below(chosen)
            return above(chosen) / under if under else math.nan

        return cluster_interval(quotient, list(rows[by].itertuples(index=False, name=None)))


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
    if isinstance(values.iloc[0], bytes):
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


def _count(codes: np.ndarray[Any, np.dtype[np.int64]], how: str) -> int:
    """How many values there are, or how many different ones; -1 is none."""
    known = codes[codes >= 0]
    return len(known) if how == "count" else len(np.unique(known))


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
    """The statistic of each case, the index telling which; of all rows together where no columns make a case."""
    import pandas as pd

    by = [name for name in over if name in rows]
    if not by:
        return pd.Series([stat.compute(rows, columns)])
    stats = [stat] if isinstance(stat, Stat) else [Stat.of(stat.above), Stat.of(stat.below)]
    if not {one.column for one in stats} <= set(rows):
        return pd.Series(dtype="float64")
    found = [one.per_group(rows, by, columns) for one in stats]
    return found[0] if len(found) == 1 else found[0] / found[1].where(found[1] != 0)


def key_parts(key: Any) -> list[Any]:
    """The key of a group as a list, of one column too."""
    return list(key) if isinstance(key, tuple) else [key]


def _as_texts(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    return rows.assign(**{name: rows[name].map(part_text) for name in by})


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
