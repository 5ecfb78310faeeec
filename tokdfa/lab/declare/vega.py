"""Vega-Lite specifications as plain data: the style of all charts, axes, a layer with its legend and tooltips.

Source of the form: Vega-Lite (Satyanarayan et al. 2017), https://vega.github.io/vega-lite/docs/.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare.cells import visible
from tokdfa.lab.declare.look import INK, MUTED, PAPER, looks

if TYPE_CHECKING:
    from tokdfa.lab.declare.columns import Column

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
#: A logarithmic axis where the largest value is so many times the smallest one.
LOG_FROM = 30
#: Of a picture, in pixels before scaling.
WIDTH, HEIGHT = 440, 220
_TICKS = {
    "s": "datum.value >= 1 ? format(datum.value, '~g') + ' s' : datum.value >= 1e-3 ? format(datum.value * 1e3, '~g')"
    " + ' ms' : datum.value >= 1e-6 ? format(datum.value * 1e6, '~g')"
    " + ' µs' : format(datum.value * 1e9, '~g') + ' ns'",
    "B": "datum.value >= 1e9 ? format(datum.value / 1e9, '~g') + ' GB' : datum.value >= 1e6 ? format(datum.value / 1e6,"
    " '~g') + ' MB' : datum.value >= 1e3 ? format(datum.value / 1e3, '~g') + ' kB' : format(datum.value, '~g') + ' B'",
    "share": "format(datum.value * 100, '~g') + '%'",
    "ratio": "format(datum.value, '~g') + 'x'",
    "": "format(datum.value, ',~g')",
}
#: The style of all charts; on dark pages colours are exchanged one for one.
CONFIG: dict[str, Any] = {
    "background": PAPER,
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        **{"labelColor": INK, "titleColor": INK, "gridColor": "#d1d9e0", "domainColor": MUTED, "tickColor": MUTED},
        **{"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal", "labelLimit": 150},
    },
    "legend": {"labelColor": INK, "titleColor": INK, "labelFontSize": 11, "labelLimit": 300, "symbolSize": 70},
    "title": {"color": INK, "fontSize": 12, "anchor": "start"},
}


def axis(which: str, column: Column, points: list[dict[str, Any]], log: bool | None) -> dict[str, Any]:
    """One axis, logarithmic if `log` says so, or if it is None and the points span that much."""
    values = [point[which] for point in points]
    least, most = min(values), max(values)
    logarithmic = least > 0 and (most > LOG_FROM * least if log is None else log)
    labels: dict[str, Any] = {
        "title": column.axis_label,
        "labelExpr": _TICKS.get(column.unit, _TICKS[""]),
        "tickCount": 5,
    }
    if logarithmic:
        labels["values"] = decades(least, most)
        scale: dict[str, Any] = {"type": "log", "nice": False, "padding": 8}
    else:
        scale = {"zero": bool(least >= 0 and most > 3 * least)}
    return {"field": which, "type": "quantitative", "scale": scale, "axis": labels}


def decades(least: float, most: float) -> list[float]:
    """The labels of a logarithmic axis: powers of ten, and between few of them twice and five times as much."""
    first, last = math.floor(math.log10(least)), math.ceil(math.log10(most))
    steps = (1,) if last - first > 4 else (1, 3) if last - first > 2 else (1, 2, 5)
    # float("2e-05") is exact where 2 * 10 ** -5 is not
    labels = [float(f"{step}e{power}") for power in range(first, last + 1) for step in steps]
    inside = [label for label in labels if least <= label <= most]
    if len(inside) > 1:
        return inside
    low, high = max(label for label in labels if label <= least), min(label for label in labels if label >= most)
    return [label for label in labels if low <= label <= high]


def specification(layer: dict[str, Any], points: list[dict[str, Any]], by: str, names: list[str]) -> dict[str, Any]:
    """Mark and encoding with the contenders' looks, a legend that switches them, tooltips, and the data."""
    look = looks(names)
    title = {"title": None, "orient": "bottom", "columns": 2}
    colour = {"field": by, "type": "nominal", "legend": title}
    colour |= {"scale": {"domain": names, "range": [look[name].colour for name in names]}}
    encoding = {**layer["encoding"], "color": colour}
    if layer["mark"]["type"] == "line":
        dashes = {"domain": names, "range": [look[name].dash for name in names]}
        encoding["strokeDash"] = {"field": by, "type": "nominal", "scale": dashes, "legend": title}
    else:
        shapes = {"domain": names, "range": [look[name].shape for name in names]}
        encoding["shape"] = {"field": by, "type": "nominal", "scale": shapes, "legend": title}
    encoding["opacity"] = {"condition": {"param": "on", "value": 1}, "value": 0.08}
    shown = dict.fromkeys(name for point in points for name in point if name not in ("x", "y"))
    encoding["tooltip"] = [{"field": _escaped(name), "title": name, "type": "nominal"} for name in shown]
    select = {"type": "point", "fields": [by], "toggle": "true"}
    return {
        "data": {"values": [{key: _plain(value) for key, value in point.items()} for point in points]},
        "height": HEIGHT,
        **layer,
        "params": [{"name": "on", "select": select, "bind": "legend"}],
        "encoding": encoding,
    }


def _escaped(name: str) -> str:
    """A field's name, in which Vega-Lite reads dots and brackets as a path."""
    return "".join(f"\\{char}" if char in ".[]'\\" else char for char in name)


def printable(spec: Any) -> Any:
    """A specification whose texts have no control characters: drawing one that has any would end the process."""
    if isinstance(spec, dict):
        return {printable(key): printable(value) for key, value in spec.items()}
    if isinstance(spec, list):
        return [printable(value) for value in spec]
    return visible(spec) if isinstance(spec, str) else spec


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
