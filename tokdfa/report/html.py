"""One self-contained HTML page for a run, from its question to the command that repeats it.

Nothing is loaded from elsewhere: style and script are inline, drawings are inline SVG whose colours are the page's
variables, so the page follows the reader's preference for light or dark. Tables are sorted by a click on a head and
scroll sideways on narrow screens. Without JavaScript the page is complete, only not sortable.

All text that comes from data goes through `text`.
"""

from __future__ import annotations

import html
import itertools
import math
from typing import TYPE_CHECKING

from tokdfa.report import style
from tokdfa.report.cells import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.report.cells import Cell, Table
    from tokdfa.report.page import Page
    from tokdfa.report.plots import Plot

_CSS = """
:root { color-scheme: light dark; %(light)s --tint: #f6f8fa; --link: #0969da; }
@media (prefers-color-scheme: dark) { :root { %(dark)s --tint: #1c2128; --link: #6cb6ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 80rem; padding: 1.5rem clamp(0.9rem, 3vw, 2.5rem) 4rem; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: clamp(1.3rem, 3vw, 1.75rem); line-height: 1.3; margin: 0.2rem 0 1rem; max-width: 56rem; }
h2 { font-size: 1.2rem; margin: 2.6rem 0 0.3rem; }
h3 { font-size: 1rem; margin: 0 0 0.3rem; }
p { margin: 0.3rem 0 0.8rem; max-width: 52rem; }
a { color: var(--link); }
.kind, .note, figcaption { color: var(--muted); font-size: 0.9rem; }
.kind { margin: 0; }
ul.findings { padding-left: 1.2rem; max-width: 52rem; }
ul.findings li { margin: 0.35rem 0; }
nav { display: flex; flex-wrap: wrap; gap: 0.3rem 1.1rem; font-size: 0.92rem; margin: 1.2rem 0 0; }
.scroll { overflow-x: auto; border: 1px solid var(--grid); border-radius: 6px; }
table { border-collapse: collapse; font-size: 0.88rem; width: 100%%; font-variant-numeric: tabular-nums; }
th, td { padding: 0.4rem 0.7rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--grid);
  background: var(--paper); }
tbody tr:last-child > * { border-bottom: 0; }
thead th { background: var(--tint); vertical-align: bottom; font-weight: 600; min-width: 4.5rem; }
th:first-child { position: sticky; left: 0; z-index: 1; min-width: 7.5rem; max-width: 12rem;
  overflow-wrap: break-word; }
tbody th { font-weight: 600; }
.n { text-align: right; }
td.n { white-space: nowrap; }
td.t { white-space: pre-wrap; overflow-wrap: anywhere; min-width: 6rem; max-width: 36rem; }
td.t.long { min-width: 18rem; font-family: ui-monospace, monospace; font-size: 0.8rem; }
td b { background: var(--tint); border-radius: 4px; box-shadow: 0 0 0 0.25rem var(--tint); }
small { display: block; color: var(--muted); font-size: 0.78rem; font-weight: 400; white-space: normal; }
small span { display: inline-block; white-space: nowrap; }
th button { all: unset; cursor: pointer; }
th button:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
th[aria-sort=ascending] button::after { content: " \\2191"; }
th[aria-sort=descending] button::after { content: " \\2193"; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%%, 27rem), 1fr)); gap: 2rem 2.5rem;
  align-items: start; margin-top: 0.8rem; }
figure { margin: 0; min-width: 0; }
figure svg { display: block; width: 100%%; max-width: 34rem; height: auto; }
figure svg text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif !important; }
pre { background: var(--tint); border: 1px solid var(--grid); border-radius: 6px; padding: 0.7rem 0.9rem;
  overflow-x: auto; font-size: 0.85rem; }
details { margin-top: 0.8rem; }
summary { cursor: pointer; }
"""

_SCRIPT = """
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down === 1 ? "ascending" : "descending");
      const key = row => { const value = row.cells[place].dataset.v; return value === "" ? null : value; };
      const compare = (a, b) => {
        const x = key(a), y = key(b);
        if (x === null || y === null) return (x === null) - (y === null);  // what is missing stays last
        const numbers = head.classList.contains("n");
        return down * (numbers ? x - y : x.localeCompare(y, undefined, { numeric: true }));
      };
      body.append(...[...body.rows].sort(compare));
    });
  });
}
"""


def text(value: str) -> str:
    """`value` for HTML text or an attribute in double quotes."""
    return html.escape(visible(value), quote=True)


def render(page: Page) -> str:
    """The page as HTML text. Cost: drawing each figure once as SVG."""
    main, *others = page.tables
    links = [(main.name, main.title), ("plots", "Plots")]
    links += [*((table.name, table.title) for table in others), ("repeat", "Repeat it")]
    css = _CSS % {"light": style.css_variables(dark=False), "dark": style.css_variables(dark=True)}
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{text(page.name)}: tokdfa report</title>\n<style>{css}</style>\n</head>\n<body>\n<header>",
        f'<p class="kind">tokdfa report · {text(page.name)} · {text(page.made)}</p>',
        f"<h1>{text(page.question or page.name)}</h1>",
        f'<ul class="findings">{"".join(f"<li>{text(line)}</li>" for line in page.headlines)}</ul>',
        f"<nav>{''.join(itertools.starmap(_link, links))}</nav>\n</header>\n<main>",
        _table(main),
        _plots(page.plots),
        *map(_table, others),
        _repeat(page),
        f"</main>\n<script>{_SCRIPT}</script>\n</body>\n</html>\n",
    ]
    return "\n".join(parts)


def _link(name: str, title: str) -> str:
    return f'<a href="#{name}">{text(title)}</a>'


def _table(table: Table) -> str:
    numeric = table.numeric()
    heads = (
        f'<th scope="col"{_class("n" * numeric[place])}>{text(head)}</th>' for place, head in enumerate(table.columns)
    )
    rows = ("".join(_cell(cell, numeric[place], place) for place, cell in enumerate(row)) for row in table.rows)
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<section id="{table.name}">\n<h2>{text(table.title)}</h2>\n<p class="note">{text(table.note)}</p>\n'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(table.title)}"><table>\n'
        f"<thead><tr>{''.join(heads)}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>\n</section>"
    )


def _cell(cell: Cell, numeric: bool, place: int) -> str:
    value = cell.value
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    key = "" if missing else text(str(value))
    shown = f"<b>{text(cell.text)}</b>" if cell.best else text(cell.text)
    # a line may break before the bracket of a range, and nowhere else
    parts = (f"<span>{text(part)}</span>" for part in cell.detail.replace(" (", "\n(").split("\n"))
    detail = f"<small>{' '.join(parts)}</small>" if cell.detail else ""
    kind = "n" if numeric else "t long" if len(cell.text) > 60 else "t"
    if place == 0:
        return f'<th scope="row" data-v="{key}">{shown}{detail}</th>'
    return f'<td class="{kind}" data-v="{key}">{shown}{detail}</td>'


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def _plots(plots: Sequence[Plot]) -> str:
    figures = [
        f'<figure id="{plot.name}">\n<h3>{text(plot.title)}</h3>\n'
        f"{_named(style.to_svg(plot.figure, plot.name), plot.title)}\n"
        f"<figcaption>{text(plot.caption)}</figcaption>\n</figure>"
        for plot in plots
        if plot.figure is not None
    ]
    missing = "".join(f"<li>{text(plot.title)}: {text(plot.reason)}.</li>" for plot in plots if plot.figure is None)
    drawn = f'<div class="plots">\n{"".join(figures)}\n</div>' if figures else ""
    left_out = f'<p class="note">Not drawn:</p><ul class="note">{missing}</ul>' if missing else ""
    return f'<section id="plots">\n<h2>Plots</h2>\n{drawn}{left_out}\n</section>'


def _named(svg: str, title: str) -> str:
    return svg.replace("<svg ", f'<svg role="img" aria-label="{text(title)}" ', 1)


def _repeat(page: Page) -> str:
    return (
        f'<section id="repeat">\n<h2>Repeat it</h2>\n<pre>{text(page.command)}</pre>\n'
        f"<details><summary>The experiment, resolved</summary><pre>{text(page.experiment)}</pre></details>\n</section>"
    )
