"""A self-contained web page, from a question to the command that repeats the run.

The first screen is the page's first three sentences and its first chart. Nothing is loaded from elsewhere: style,
script, Vega and the charts' specifications are inline (``page.html.j2``, ``page.css``, ``page.js``). Charts show their
case under the pointer, legends switch engines on and off, tables are sorted by a click on a head; all follow the
window's width and the reader's preference for light or dark. Without JavaScript there are no charts, and the rest.
The template escapes all text of the data.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare.cells import visible
from tokdfa.lab.declare.look import DARK, PALETTE
from tokdfa.lab.declare.vega import CONFIG

if TYPE_CHECKING:
    from jinja2 import Template

    from tokdfa.lab.declare.cells import Cell
    from tokdfa.lab.declare.charts import Chart, Panel
    from tokdfa.lab.report.page import Page


def render(page: Page) -> str:
    """The page as HTML text; 1 MB of it is Vega, where there is a chart."""
    from markupsafe import Markup

    folder = Path(__file__).parent
    # `Markup` is text of our own, which is not escaped
    style, script = (Markup((folder / name).read_text(encoding="utf-8")) for name in ("page.css", "page.js"))
    names: dict[str, Any] = {"page": page, "css": style, "script": script}
    if page.charts:
        names |= {"look": {"config": CONFIG, "colours": dict(PALETTE) | DARK}, "vega": Markup(_vega())}
    return _template().render(names)


@cache
def _template() -> Template:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    environment.filters |= {"key": _sorting_key, "parts": _parts, "spec": _spec}
    return environment.get_template("page.html.j2")


@cache
def _vega() -> str:
    """Vega, Vega-Lite and vega-embed as one script. Cost: 2 s, once."""
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")).replace("</script", "<\\/script")


def _sorting_key(cell: Cell) -> str:
    value = cell.value
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value)


def _parts(detail: str) -> list[str]:
    """A line may break before the bracket of a range, and nowhere else."""
    return detail.replace(" (", "\n(").split("\n")


def _spec(chart: Chart, panel: Panel) -> dict[str, Any]:
    """The specification as the page embeds it: as wide as its box, with a text for those who cannot see it."""
    words = ". ".join(part for part in (chart.title, panel.title, chart.caption) if part)
    spec = dict(panel.spec)
    if isinstance(spec.get("height"), dict):  # a height by the row, which Vega-Lite does not fit to a width
        spec["height"] = spec["height"]["step"] * max(1, len(spec["encoding"]["y"]["sort"]))
    fit = {"type": "fit-x", "contains": "padding"}
    return {**spec, "width": "container", "autosize": fit, "description": visible(words)}
