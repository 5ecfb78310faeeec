"""Declared tables: one row a group (`Summary`), engines side by side (`Pivot`), rows as they are (`Listing`), and what
none of these says (`Custom`).

A table is built from `Results` alone and has no rows where there is nothing to show; empty tables are left out of
reports. The best numbers among contenders of the same place are marked, as their column defines best.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tokdfa.lab.declare.cells import NOTHING, Cell, Table, number_cell, status_cell, text_cell
from tokdfa.lab.declare.columns import Column, Ratio, between
from tokdfa.lab.declare.stats import Value, is_known, key_parts, paired, part_text, per_case, ratio_of, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from tokdfa.lab.declare.results import Results

#: A `Listing` shows so many rows at most; the store has them all.
MOST_ROWS = 200
#: Contenders side by side that can be read.
MOST_COLUMNS = 16


@dataclass(frozen=True)
class Declared:
    """What all tables have. `frame`, `where`: of which rows it is made. `brief`: the heads that a terminal shows."""

    name: str
    title: str
    note: str = ""
    frame: str = field(default="", kw_only=True)
    where: str = field(default="", kw_only=True)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Cell]], brief: Sequence[str] = ()) -> Table:
        """The built table."""
        return Table(self.name, self.title, self.note, tuple(columns), tuple(map(tuple, rows)), tuple(brief))

    def known(self, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Table:
        """The built table without columns of which nothing is known."""
        kept = [place for place in range(len(columns)) if any(row[place] != NOTHING for row in rows)]
        return self.table([columns[place] for place in kept], [[row[place] for place in kept] for row in rows])

    def build(self, results: Results) -> Table:
        """The table of a run's results."""
        raise NotImplementedError


@dataclass(frozen=True)
class Summary(Declared):
    """One row for each group `by`, one column for each of `values`.

    `over`: columns that make a case; then a value is taken of each case, and the median over the cases is shown.
    With `ratios` "all", values get a ratio to the reference's row, paired by case.
    """

    by: Sequence[str] = ("engine",)
    values: Sequence[Value] = ()
    over: Sequence[str] = ()
    ratios: Literal["", "all"] = ""
    brief: Sequence[str] = ()

    def build(self, results: Results) -> Table:
        import pandas as pd

        rows = results.rows(self.frame, self.where)
        by = [name for name in self.by if name in rows]
        if rows.empty or not by:
            return self.table((), ())
        stats = [value_of(value) for value in self.values]
        columns = [stat.described(results.columns) for stat in stats]
        groups = list(rows.groupby(by, sort=False, dropna=False))
        within = [*by, *(name for name in self.over if name not in by)]
        cases = [_by_group(per_case(stat, rows, within, results.columns), len(by)) for stat in stats]
        names = [tuple(map(part_text, key_parts(key))) for key, _ in groups]
        series = [[of_stat.get(name, pd.Series(dtype="float64")) for of_stat in cases] for name in names]
        shown = [[_middle(values) for values in one] for one in series]
        kept = [place for place in range(len(stats)) if any(is_known(numbers[place]) for numbers in shown)]
        rivals: dict[tuple[Any, ...], dict[str, int]] = {}  # place, which is all but the engine -> engine -> group
        of_group = []
        for number, (key, _) in enumerate(groups):
            parts = {name: part if is_known(part) else None for name, part in zip(by, key_parts(key), strict=True)}
            engine = str(parts.pop(results.engine, number))
            of_group.append(rivals.setdefault((*parts.values(),), {}))
            of_group[-1][engine] = number
        built = []
        for number, (key, group) in enumerate(groups):
            cells = [text_cell(name) for name in key_parts(key)]
            base = of_group[number].get(results.reference)
            for place in kept:
                column = columns[place]
                best = _best(column, [shown[one][place] for one in of_group[number].values()])
                ratio = None
                if base is not None and base != number and self.ratios and column.better != "neither":
                    ratio = paired(series[number][place], series[base][place], column)
                cell = _value_cell(column, shown[number][place], best, ratio)
                ends = None if self.over else stats[place].interval(group, results.columns)
                cells.append(cell._replace(detail=between(ends, column)) if ends else cell)
            built.append(cells)
        heads = [*(results.column(name).head for name in by), *(columns[place].head for place in kept)]
        return self.table(heads, built, self.brief)


@dataclass(frozen=True)
class Pivot(Declared):
    """One row for each group of `rows`, one column for each value of the column `across` (the engines by default).

    A cell holds `value` with its ratio to the reference's, or `detail` beside it; what failed shows its status.
    `beside`: further statistics of the whole row. With more than `MOST_COLUMNS` contenders there is no table.
    """

    rows: Sequence[str] = ()
    value: Value = ""
    across: str = ""
    beside: Sequence[Value] = ()
    detail: Value = ""
    ratio: bool = True

    def build(self, results: Results) -> Table:
        import pandas as pd

        rows = results.rows(self.frame, self.where)
        across = self.across or results.engine
        by = [name for name in self.rows if name in rows]
        if rows.empty or across not in rows:
            return self.table((), ())
        names = list(rows[across].dropna().unique())
        if len(names) > MOST_COLUMNS:
            return self.table((), ())
        stat, detail = value_of(self.value), value_of(self.detail) if self.detail else None
        column = stat.described(results.columns)
        beside = [value_of(value) for value in self.beside]
        within = [*by, across]
        numbers = {tuple(key_parts(key)): value for key, value in per_case(stat, rows, within, results.columns).items()}
        texts = pd.DataFrame({name: rows[name].map(part_text) for name in within})
        found = {tuple(key_parts(key)): chosen for key, chosen in texts.groupby(within, sort=False).indices.items()}
        built = []
        for key, group in rows.groupby(by, sort=False, dropna=False) if by else [((), rows)]:
            here = tuple(map(part_text, key_parts(key)))
            places = {name: (*here, part_text(name)) for name in names}
            values = {name: numbers.get(place, math.nan) for name, place in places.items() if place in found}
            best = _best(column, list(values.values())) if across == results.engine else math.nan
            cells = [text_cell(name) for name in key_parts(key)]
            cells += [
                _value_cell(one.described(results.columns), one.compute(group, results.columns)) for one in beside
            ]
            for name in names:
                if name not in values:
                    cells.append(NOTHING)
                    continue
                own = found[places[name]]
                cell = _value_cell(column, values[name], best)
                if not is_known(values[name]):
                    cell = _status(rows.iloc[own])
                elif detail is not None:
                    extra = detail.described(results.columns).format(detail.compute(rows.iloc[own], results.columns))
                    cell = cell._replace(detail=extra)
                elif self.ratio and results.reference in values and name != results.reference:
                    ratio = ratio_of(values[name], values[results.reference], column)
                    cell = _value_cell(column, values[name], best, ratio)
                elif ends := stat.interval(rows.iloc[own], results.columns):
                    cell = cell._replace(detail=between(ends, column))
                cells.append(cell)
            built.append(cells)
        if not any(is_known(cell.value) for cells in built for cell in cells[len(by) + len(beside) :]):
            return self.table((), ())  # it was not measured
        heads_of = [results.column(name).head for name in by]
        others = [one.described(results.columns).head for one in beside]
        heads = [_head(across, name, results) for name in names]
        return self.table([*heads_of, *others, *heads], built, [*heads_of, *heads])


@dataclass(frozen=True)
class Listing(Declared):
    """Rows as they are, those columns that are `shown`; by default all that are declared, or else stored."""

    shown: Sequence[str] = ()
    most: int = MOST_ROWS

    def build(self, results: Results) -> Table:
        rows = results.rows(self.frame, self.where)
        names = [
            str(name) for name in (self.shown or results.columns or rows) if name in rows and rows[name].notna().any()
        ]
        columns = [results.column(name) for name in names]
        built = [
            [_value_cell(column, _stored(value, column)) for column, value in zip(columns, row, strict=True)]
            for row in rows[names].head(self.most).itertuples(index=False)
        ]
        note = self.note
        if len(rows) > self.most:
            note = f"{note} The first {self.most:,} of {len(rows):,}; the store has them all.".strip()
        return Table(self.name, self.title, note, tuple(column.head for column in columns), tuple(map(tuple, built)))


@dataclass(frozen=True)
class Custom(Declared):
    """What no other table says: `function` gives heads and rows of cells."""

    function: Callable[[Results], tuple[Sequence[str], Sequence[Sequence[Cell]]]] | None = None

    def build(self, results: Results) -> Table:
        assert self.function is not None
        return self.table(*self.function(results))


def _by_group(values: pd.Series[Any], levels: int) -> dict[tuple[str, ...], pd.Series[Any]]:
    """The values of each group, whose names are the first `levels` of the index, by what is left of it."""
    if not len(values):
        return {}
    parts: dict[Any, pd.Series[Any]] = dict(iter(values.groupby(level=list(range(levels)), sort=False)))
    left = values.index.nlevels > levels
    return {
        tuple(key_parts(key)): part.droplevel(list(range(levels))) if left else part.reset_index(drop=True)
        for key, part in parts.items()
    }


def _middle(values: pd.Series[Any]) -> Any:
    """The median of numbers; of texts the first."""
    known = values.dropna()
    if known.empty:
        return math.nan
    return known.iloc[0] if isinstance(known.iloc[0], str) else float(known.astype("float64").median())


def _best(column: Column, values: Sequence[Any]) -> float:
    """The best of some values; NaN (equal to nothing) unless at least two are there to compare."""
    known = [float(value) for value in values if is_known(value) and not isinstance(value, str)]
    if len(known) < 2 or column.better == "neither":
        return math.nan
    return max(known) if column.better == "higher" else min(known)


def _value_cell(column: Column, value: Any, best: float = math.nan, ratio: Ratio | None = None) -> Cell:
    if column.unit == "text" or isinstance(value, str):
        return text_cell(value)
    if not is_known(value):
        return NOTHING
    return number_cell(column, float(value), float(value) == best, ratio)


def _stored(value: Any, column: Column) -> Any:
    """A stored value in base units."""
    if isinstance(value, str | bool) or not is_known(value) or column.unit == "text":
        return str(value).lower() if isinstance(value, bool) else value
    return float(value) * column.factor


def _status(rows: pd.DataFrame) -> Cell:
    """The status of what failed, in a column of numbers."""
    failed = rows.loc[rows["status"] != "ok", "status"] if "status" in rows else rows.iloc[:0]
    return status_cell(failed.iloc[0]) if len(failed) else NOTHING


def _head(across: str, name: Any, results: Results) -> str:
    return str(name) if across == results.engine or isinstance(name, str) else f"{results.column(across).head} {name}"
