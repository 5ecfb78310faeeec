"""Self-contained HTML pages: of a run, from its question to the command that repeats it; and of several runs at once.

Nothing is loaded from elsewhere: style and script are inline (`tokdfa.lab.report.html_style`), drawings are inline SVG
whose colours are the page's variables, so the page follows the reader's preference for light or dark. Tables are sorted
by a click on a head and scroll in boxes of their own. Without JavaScript the page is complete, only not sortable.

The page of several runs has a table of contents, tables that set the runs side by side, and a section for each run;
there all ids begin with that of the run's section.

All text that comes from data goes through `text`.
"""

from __future__ import annotations

import base64
import html
import math
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tokdfa.lab.declare.cells import visible
from tokdfa.lab.report import html_style, style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.lab.declare.cells import Cell, Table
    from tokdfa.lab.declare.charts import Chart
    from tokdfa.lab.report.page import Page
    from tokdfa.lab.report.plots import Plot


class _Place(NamedTuple):
    """Where a part of a page stands: what its ids begin with, and the level of its headings."""

    prefix: str = ""
    level: int = 2


def text(value: str) -> str:
    """`value` for HTML text or an attribute in double quotes."""
    return html.escape(visible(value), quote=True)


def render(page: Page) -> str:
    """The page of one run as HTML text. Cost: drawing each figure once as SVG."""
    header = [
        f'<p class="kind">tokdfa report · {text(page.name)} · {text(page.made)}</p>',
        f"<h1>{text(page.question or page.name)}</h1>",
        f'<nav id="contents"><details open><summary>Contents</summary>{_links(page, _Place())}</details></nav>',
        _findings(page.headlines),
    ]
    return _document(f"{page.name}: tokdfa report", header, _parts(page, _Place()))


def render_together(title: str, pages: Sequence[Page], tables: Sequence[Table]) -> str:
    """One page of several runs: contents, the `tables` that set them side by side, and a section for each run."""
    places = [_Place(f"run-{number}-", 3) for number in range(1, len(pages) + 1)]
    side_by_side = "".join(f"<li>{_link(table.name, table.title)}</li>" for table in tables)
    runs = "".join(
        f"<li>{_link(f'{place.prefix}run', page.question or page.name)} "
        f"<span>{text(page.name)} · {text(page.made)}</span>{_links(page, place)}</li>"
        for page, place in zip(pages, places, strict=True)
    )
    header = [
        '<p class="kind">tokdfa report</p>',
        f"<h1>{text(title)}</h1>",
        f'<nav id="contents"><details open><summary>Contents</summary><ul>{side_by_side}</ul>'
        f"<ol>{runs}</ol></details></nav>",
    ]
    main = [_table(table, _Place()) for table in tables]
    for page, place in zip(pages, places, strict=True):
        main += [
            f'<section class="run" id="{place.prefix}run">\n<header>',
            f'<p class="kind">{text(page.name)} · {text(page.made)} · {_link("contents", "Contents")}</p>',
            f"<h2>{text(page.question or page.name)}</h2>",
            _findings(page.headlines),
            f"<nav>{_links(page, place)}</nav>\n</header>",
            *_parts(page, place),
            "</section>",
        ]
    return _document(f"{title}: tokdfa report", header, main)


def _document(title: str, header: Sequence[str], main: Sequence[str]) -> str:
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{text(title)}</title>\n<style>{html_style.css()}</style>\n</head>\n<body>\n<header>",
            *header,
            "</header>\n<main>",
            *main,
            f"</main>\n<script>{html_style.SCRIPT}</script>\n</body>\n</html>\n",
        )
    )


def _parts(page: Page, place: _Place) -> list[str]:
    main, *others = page.tables
    plots = [_plots(page.plots, place)] if page.plots else []
    return [_table(main, place), *plots, *(_table(table, place) for table in others), _repeat(page, place)]


def _links(page: Page, place: _Place) -> str:
    main, *others = page.tables
    links = [(main.name, main.title), *([("plots", "Plots")] if page.plots else [])]
    links += [*((table.name, table.title) for table in others), ("repeat", "Repeat it")]
    return f"<ul>{''.join(f'<li>{_link(place.prefix + name, title)}</li>' for name, title in links)}</ul>"


def _findings(headlines: Sequence[str]) -> str:
    return f'<ul class="findings">{"".join(f"<li>{text(line)}</li>" for line in headlines)}</ul>'


def _link(name: str, title: str) -> str:
    return f'<a href="#{name}">{text(title)}</a>'


def _heading(title: str, level: int) -> str:
    return f"<h{level}>{text(title)}</h{level}>"


def _table(table: Table, place: _Place) -> str:
    numeric = table.numeric()
    heads = (
        f'<th scope="col"{_class("n" * numeric[column])}>{text(head)}</th>' for column, head in enumerate(table.columns)
    )
    rows = ("".join(_cell(cell, numeric[column], column) for column, cell in enumerate(row)) for row in table.rows)
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<section id="{place.prefix}{table.name}">\n{_heading(table.title, place.level)}\n'
        f'<p class="note">{text(table.note)}</p>\n'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(table.title)}"><table>\n'
        f"<thead><tr>{''.join(heads)}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>\n</section>"
    )


def _cell(cell: Cell, numeric: bool, column: int) -> str:
    value = cell.value
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    key = "" if missing else text(str(value))
    shown = f"<b>{text(cell.text)}</b>" if cell.best else text(cell.text)
    # a line may break before the bracket of a range, and nowhere else
    parts = (f"<span>{text(part)}</span>" for part in cell.detail.replace(" (", "\n(").split("\n"))
    detail = f"<small>{' '.join(parts)}</small>" if cell.detail else ""
    kind = "n" if numeric else "t long" if len(cell.text) > 60 else "t"
    if column == 0:
        return f'<th scope="row" data-v="{key}">{shown}{detail}</th>'
    return f'<td class="{kind}" data-v="{key}">{shown}{detail}</td>'


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def _drawn(plot: Plot | Chart, place: _Place) -> str:
    if isinstance(plot.figure, tuple):
        picture = base64.b64encode(plot.to_png()).decode()
        return f'<img src="data:image/png;base64,{picture}" alt="{text(plot.title)}">'
    return _named(style.to_svg(cast("Any", plot.figure), place.prefix + plot.name), plot.title)


def _plots(plots: Sequence[Plot | Chart], place: _Place) -> str:
    figures = [
        f'<figure id="{place.prefix}{plot.name}">\n{_heading(plot.title, place.level + 1)}\n'
        f"{_drawn(plot, place)}\n"
        f"<figcaption>{text(plot.caption)}</figcaption>\n</figure>"
        for plot in plots
        if plot.figure is not None
    ]
    missing = "".join(f"<li>{text(plot.title)}: {text(plot.reason)}.</li>" for plot in plots if plot.figure is None)
    drawn = f'<div class="plots">\n{"".join(figures)}\n</div>' if figures else ""
    left_out = f'<p class="note">Not drawn:</p><ul class="note">{missing}</ul>' if missing else ""
    return f'<section id="{place.prefix}plots">\n{_heading("Plots", place.level)}\n{drawn}{left_out}\n</section>'


def _named(svg: str, title: str) -> str:
    return svg.replace("<svg ", f'<svg role="img" aria-label="{text(title)}" ', 1)


def _repeat(page: Page, place: _Place) -> str:
    experiment = (
        f"<details><summary>The experiment, resolved</summary><pre>{text(page.experiment)}</pre></details>"
        if page.experiment
        else ""
    )
    return (
        f'<section id="{place.prefix}repeat">\n{_heading("Repeat it", place.level)}\n<pre>{text(page.command)}</pre>\n'
        f"{experiment}\n</section>"
    )
