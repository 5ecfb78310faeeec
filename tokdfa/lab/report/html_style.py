"""The look of the web pages, and the script that sorts their tables.

Colours are variables, with one set for light pages and one for dark; the reader's preference chooses. A table scrolls
in a box of its own, in both directions, under a head that stays, so that no page is wider than its window, nor a long
table longer than a screen. On paper the boxes open.
"""

from __future__ import annotations

from tokdfa.lab.report import style

_CSS = """
:root { color-scheme: light dark; %(light)s --tint: #f6f8fa; --link: #0969da; }
@media (prefers-color-scheme: dark) { :root { %(dark)s --tint: #1c2128; --link: #6cb6ff; } }
* { box-sizing: border-box; }
html { scroll-padding-top: 0.5rem; }
body { margin: 0 auto; max-width: 84rem; padding: 1.5rem clamp(0.9rem, 3vw, 2.5rem) 4rem; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: clamp(1.3rem, 3vw, 1.75rem); line-height: 1.3; margin: 0.2rem 0 1rem; max-width: 56rem; }
h1, h2, h3, h4, li, p { overflow-wrap: break-word; }
h2 { font-size: 1.2rem; margin: 2.6rem 0 0.3rem; }
h3 { font-size: 1.05rem; margin: 2.2rem 0 0.3rem; }
figure h3, h4 { font-size: 1rem; margin: 0 0 0.3rem; }
p { margin: 0.3rem 0 0.8rem; max-width: 52rem; }
a { color: var(--link); }
.kind, .note, figcaption { color: var(--muted); font-size: 0.9rem; }
.kind { margin: 0; }
.run { border-top: 2px solid var(--grid); margin-top: 3.5rem; padding-top: 1.2rem; }
.run > header h2 { font-size: 1.35rem; line-height: 1.3; margin: 0.2rem 0 0.8rem; max-width: 56rem; }
ul.findings { padding-left: 1.2rem; max-width: 52rem; }
ul.findings li { margin: 0.35rem 0; }
nav { font-size: 0.92rem; margin: 0.8rem 0 1.2rem; }
nav ul { display: flex; flex-wrap: wrap; gap: 0.3rem 1.1rem; list-style: none; margin: 0.4rem 0 0; padding: 0; }
nav ol { margin: 0.4rem 0 0; padding-left: 1.6rem; }
nav li li { font-size: 0.86rem; }
nav ol > li { margin: 0.5rem 0; }
.scroll { overflow: auto; max-height: 85vh; border: 1px solid var(--grid); border-radius: 6px; }
table { border-collapse: separate; border-spacing: 0; font-size: 0.88rem; width: 100%%;
  font-variant-numeric: tabular-nums; }
th, td { padding: 0.4rem 0.7rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--grid);
  background: var(--paper); }
tbody tr:last-child > * { border-bottom: 0; }
thead th { background: var(--tint); vertical-align: bottom; font-weight: 600; min-width: 4.5rem; position: sticky;
  top: 0; z-index: 2; }
th:first-child { position: sticky; left: 0; z-index: 1; min-width: 7.5rem; max-width: 12rem;
  overflow-wrap: break-word; }
thead th:first-child { z-index: 3; }
tbody th { font-weight: 600; }
.n { text-align: right; }
td.n { white-space: nowrap; }
td.t { white-space: pre-wrap; overflow-wrap: anywhere; min-width: 6rem; max-width: 36rem; }
td.t.long { min-width: 18rem; font-family: ui-monospace, monospace; font-size: 0.8rem; }
td b { background: var(--tint); border-radius: 4px; box-shadow: 0 0 0 0.25rem var(--tint); }
small { display: block; color: var(--muted); font-size: 0.78rem; font-weight: 400; white-space: normal; }
small span { display: inline-block; white-space: nowrap; }
th button { all: unset; cursor: pointer; }
th button:hover { text-decoration: underline; }
th button:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
th[aria-sort=ascending] button::after { content: " \\2191"; }
th[aria-sort=descending] button::after { content: " \\2193"; }
.plots { columns: 27rem 2; column-gap: 2.5rem; margin-top: 0.8rem; }
figure { break-inside: avoid; margin: 0 0 2.2rem; }
figure svg { display: block; width: 100%%; max-width: 34rem; height: auto; }
figure svg text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif !important; }
pre { background: var(--tint); border: 1px solid var(--grid); border-radius: 6px; padding: 0.7rem 0.9rem;
  overflow-x: auto; font-size: 0.85rem; }
details { margin-top: 0.8rem; }
nav details { margin: 0; }
summary { cursor: pointer; }
@media (max-width: 40rem) {
  th:first-child { min-width: 6rem; max-width: 8.5rem; }
  th, td { padding: 0.35rem 0.5rem; }
}
@media print { .scroll { max-height: none; overflow: visible; } thead th, th:first-child { position: static; } }
"""

SCRIPT = """
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


def css() -> str:
    """The style sheet of a page."""
    return _CSS % {"light": style.css_variables(dark=False), "dark": style.css_variables(dark=True)}
