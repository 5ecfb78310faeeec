"""Declared charts: curves, distributions, dots by row, points. Each becomes a Vega-Lite specification, plain data.

One specification serves all: the page shows it with its tooltips and a legend that switches contenders on and off, and
`Chart.to_png` draws the picture that Markdown shows. Axes are logarithmic where values span more than a factor of 30.
A chart that would be empty says why.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from tokdfa.lab.declare.cells import visible
from tokdfa.lab.declare.stats import Value, is_known, key_parts, numbers_of, per_case, value_of
from tokdfa.lab.declare.vega import CONFIG, SCHEMA, WIDTH, axis, decades, printable, specification

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from tokdfa.lab.declare.columns import Column
    from tokdfa.lab.declare.results import Results

#: At most so many rows of dots in a panel, and panels of a chart.
MOST_ROWS, MOST_PANELS = 40, 8
#: Contenders whose looks differ.
MOST_CONTENDERS = 24


class Panel(NamedTuple):
    """One drawing of a chart."""

    title: str
    spec: dict[str, Any]


@dataclass(frozen=True)
class Chart:
    """A titled chart of one or more panels, or the reason why there is none. `name` is fit for file names and ids."""

    name: str
    title: str
    caption: str = ""
    panels: tuple[Panel, ...] = ()
    reason: str = ""

    def _repr_png_(self) -> bytes | None:
        """How a notebook shows it."""
        return self.to_png() if self.panels else None

    def to_png(self) -> bytes:
        """The picture, panels one below the other, with twice as many pixels as `WIDTH` says."""
        import vl_convert

        drawn = [{**panel.spec, "width": WIDTH, "title": panel.title or None} for panel in self.panels]
        whole: dict[str, Any] = {"$schema": SCHEMA, "config": CONFIG}
        whole |= drawn[0] if len(drawn) == 1 else {"vconcat": drawn, "resolve": {"legend": {"color": "shared"}}}
        picture: bytes = vl_convert.vegalite_to_png(json.dumps(whole), scale=2)
        return picture


@dataclass(frozen=True)
class Declaration:
    """What all charts have. `by`: the column with the contenders; `panels`: a column, each of whose values gets a
    panel; `hover`: columns that a tooltip shows beside the axes. `optional`: nothing is said if it is empty.
    """

    name: str
    title: str
    caption: str = ""
    y: Value = ""
    x: Value = ""
    by: str = ""
    panels: str = ""
    hover: Sequence[str] = ()
    frame: str = ""
    where: str = ""
    log: bool | None = None
    optional: bool = False
    #: What stands for a point.
    mark: ClassVar[dict[str, Any]] = {"type": "point", "filled": True, "size": 45}

    def build(self, results: Results) -> Chart:
        """The chart of a run's results."""
        rows = results.rows(self.frame, self.where)
        if rows.empty:
            return Chart(self.name, self.title, reason="there are no such rows")
        by = self.by or results.engine
        groups = list(rows.groupby(self.panels, sort=False)) if self.panels in rows else [("", rows)]
        # every panel gives a contender the same look, whoever is missing
        names = [str(name) for name in rows[by].dropna().unique()] if by in rows else []
        if len(names) > MOST_CONTENDERS:
            return Chart(self.name, self.title, reason=f"{len(names):,} contenders cannot be told apart")
        built = []
        for key, group in groups[:MOST_PANELS]:
            points = self.points(group, by, results)
            if points:
                spec = specification(self.layer(points, by, results), points, by, names)
                built.append(Panel(visible(str(key)), printable(spec)))
        if not built:
            return Chart(self.name, self.title, reason="no value can be drawn")
        more = len(groups) - MOST_PANELS
        caption = f"{self.caption} {more:,} more panels are left out.".strip() if more > 0 else self.caption
        return Chart(self.name, self.title, caption, tuple(built))

    def points(self, rows: pd.DataFrame, by: str, results: Results) -> list[dict[str, Any]]:
        """What is drawn: a dict each with ``x``, ``y``, the contender, and texts for the tooltip."""
        raise NotImplementedError

    def layer(self, points: list[dict[str, Any]], by: str, results: Results) -> dict[str, Any]:
        """Mark and encoding."""
        x, y = self.axes(results)
        return {
            "mark": dict(self.mark),
            "encoding": {"x": axis("x", x, points, self.log), "y": axis("y", y, points, self.log)},
        }

    def axes(self, results: Results) -> tuple[Column, Column]:
        """The columns of both axes."""
        x, y = (value_of(one).described(results.columns) for one in (self.x, self.y))
        return x, y


@dataclass(frozen=True)
class Curves(Declaration):
    """`y` against the column `x`, a line with points for each contender; `y` is a statistic of the rows of one `x`."""

    mark: ClassVar[dict[str, Any]] = {"type": "line", "point": {"size": 45}, "strokeWidth": 1.8}

    def points(self, rows: pd.DataFrame, by: str, results: Results) -> list[dict[str, Any]]:
        x, y = self.axes(results)
        stat = value_of(self.y)
        found = []
        for key, group in rows.sort_values(str(self.x), kind="stable").groupby([by, str(self.x)], sort=False):
            contender, at = key_parts(key)
            value = stat.compute(group, results.columns)
            if is_known(value) and is_known(at):
                place = float(at) * x.factor
                found.append(_point(group, self.hover, by, contender, (x, place), (y, value)))
        return found


@dataclass(frozen=True)
class Points(Declaration):
    """One point for each row."""

    def points(self, rows: pd.DataFrame, by: str, results: Results) -> list[dict[str, Any]]:
        import pandas as pd

        x, y = self.axes(results)
        numbered = rows.assign(_row=range(len(rows)))
        ends = {
            end: per_case(value_of(one), numbered, ["_row"], results.columns)
            for end, one in (("x", self.x), ("y", self.y))
        }
        found = []
        for number, across, up in pd.concat(ends, axis=1).dropna().itertuples():
            row = rows.iloc[[int(number)]]
            contender = row[by].iloc[0] if by in row else ""
            found.append(_point(row, self.hover, by, contender, (x, across), (y, up)))
        return found


@dataclass(frozen=True)
class Distribution(Declaration):
    """The share of values of the column `x` that are at most so large: a curve further to the left is better.

    What is 0 stands at the smallest value that is not, since axes may be logarithmic. `tail`: the share that is larger,
    on a logarithmic axis, so that one in ten thousand is as easy to read as one in two.
    """

    tail: bool = False

    def points(self, rows: pd.DataFrame, by: str, results: Results) -> list[dict[str, Any]]:
        import numpy as np

        x = results.column(str(self.x))
        # enough points for a smooth curve, most of them in the tail, however many values there are
        shares = np.unique(np.concatenate([np.linspace(0, 0.99, 100), np.linspace(0.99, 1, 41)]))
        if self.tail:
            shares = np.unique(np.concatenate([np.linspace(0, 0.9, 46), 1 - np.logspace(-1, -6, 101)]))
        known = rows[x.name].dropna()
        every = numbers_of(known) * x.factor if len(known) else np.zeros(1)
        if not (every > 0).any():
            return []
        least = float(every[every > 0].min())
        found = []
        for contender, group in rows.groupby(by, sort=False):
            known = group[x.name].dropna()
            if not len(known):
                continue
            values = (numbers_of(known) * x.factor).clip(least)
            drawn = shares[shares <= 1 - 1 / len(values)] if self.tail else shares
            for share, value in zip(drawn, np.quantile(values, drawn, method="inverted_cdf"), strict=True):
                shown = {by: str(contender), "x": float(value), "y": float(1 - share if self.tail else share)}
                found.append({**shown, x.head: x.format(value), "share": f"{100 * share:.6g}%"})
        return found

    def layer(self, points: list[dict[str, Any]], by: str, results: Results) -> dict[str, Any]:
        x = results.column(str(self.x))
        share: dict[str, Any] = {"axis": {"title": "share", "format": "%"}, "scale": {"domain": [0, 1]}, "field": "y"}
        if self.tail:
            least = min(point["y"] for point in points)
            labels = {"title": "share that is larger", "format": "~%", "values": decades(least, 1)}
            share |= {"axis": labels, "scale": {"type": "log", "nice": False, "domain": [least, 1]}}
        return {
            "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.8},
            "encoding": {"x": axis("x", x, points, self.log), "y": {**share, "type": "quantitative"}},
        }


@dataclass(frozen=True)
class Bars(Declaration):
    """`x` by the column `rows`: a line a row, a dot a contender, so that values on a logarithmic axis can be read."""

    rows: str = ""

    def points(self, rows: pd.DataFrame, by: str, results: Results) -> list[dict[str, Any]]:
        stat = value_of(self.x)
        column = stat.described(results.columns)
        chosen = list(dict.fromkeys(rows[self.rows].dropna().astype(str)))[:MOST_ROWS]
        found = []
        for key, group in rows.groupby(list(dict.fromkeys([self.rows, by])), sort=False):
            name, contender = key_parts(key)[0], key_parts(key)[-1]
            value = stat.compute(group, results.columns)
            if str(name) in chosen and is_known(value):
                point = _point(group, self.hover, by, contender, (column, value), None)
                found.append({**point, "row": str(name)})
        return found

    def layer(self, points: list[dict[str, Any]], by: str, results: Results) -> dict[str, Any]:
        column = value_of(self.x).described(results.columns)
        names = list(dict.fromkeys(point["row"] for point in points))
        row = {"field": "row", "type": "nominal", "sort": names, "axis": {"title": None, "grid": True}}
        return {
            "height": {"step": 17},
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 0.9},
            "encoding": {"x": axis("x", column, points, self.log), "y": row},
        }


def _point(
    rows: pd.DataFrame,
    hover: Sequence[str],
    by: str,
    contender: Any,
    x: tuple[Column, float],
    y: tuple[Column, float] | None,
) -> dict[str, Any]:
    point: dict[str, Any] = {by: str(contender), "x": x[1], x[0].head: x[0].format(x[1])}
    if y is not None:
        point |= {"y": y[1], y[0].head: y[0].format(y[1])}
    return point | {name: str(rows[name].iloc[0]) for name in hover if name in rows}
