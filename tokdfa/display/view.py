"""What views have in common: one line of text, one piece of HTML, and the pieces that it is made of.

A piece is a `div` of the class ``tokdfa`` with its own style sheet. Colours are those of the surroundings
(``currentColor``), lines and grounds are half transparent greys, and the one accent is of middle lightness: it has a
contrast of 3 to 1 or more with white and with black, and is for lines and bars only, never for text.
"""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from tokdfa.automata.graph import token_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Of lines and bars, on light and on dark grounds.
ACCENT = "#3b82c4"
#: Longer texts of tokens are cut, in characters.
TOKEN_WIDTH = 40

# The class is named twice so that these rules outweigh those of notebooks, which align cells to the right.
_STYLE = f"""<style>
.tokdfa.tokdfa {{ color: inherit; margin: 0.3em 0; overflow-x: auto; line-height: 1.5; }}
.tokdfa.tokdfa table {{ border-collapse: collapse; margin: 0.3em 0; color: inherit; background: none; }}
.tokdfa.tokdfa tr {{ background: none; }}
.tokdfa.tokdfa th, .tokdfa.tokdfa td {{ padding: 0.1em 0.7em 0.1em 0; text-align: left; vertical-align: top;
  color: inherit; border: none; border-bottom: 1px solid rgba(128, 128, 128, 0.3); background: none;
  white-space: normal; max-width: none; }}
.tokdfa.tokdfa .number {{ text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }}
.tokdfa.tokdfa code {{ font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 0.92em;
  color: inherit; background: rgba(128, 128, 128, 0.18); border-radius: 3px; padding: 0 0.3em; white-space: pre;
  unicode-bidi: isolate; margin-right: 0.15em; }}
.tokdfa.tokdfa .bar {{ display: inline-block; width: 6em; height: 0.6em; background: rgba(128, 128, 128, 0.2); }}
.tokdfa.tokdfa .bar i {{ display: block; height: 100%; background: {ACCENT}; }}
.tokdfa.tokdfa svg {{ max-width: 100%; height: auto; }}
</style>"""


class View(ABC):
    """An object looked at. `repr` is one line, `_repr_html_` a piece of a page; both look when they are asked."""

    @abstractmethod
    def __repr__(self) -> str: ...

    @abstractmethod
    def _body(self) -> str:
        """The inside of the piece, as HTML."""

    def _repr_html_(self) -> str:
        """The piece of a page, with its style sheet; what Jupyter shows."""
        return f'{_STYLE}\n<div class="tokdfa">{self._body()}</div>'


def escape(value: object) -> str:
    """Any value as text in HTML."""
    return html.escape(str(value))


def label_of(token: bytes) -> str:
    """What a token spells as plain text, made visible and cut to 40 characters."""
    text = token_label(token)
    return text if len(text) <= TOKEN_WIDTH else text[: TOKEN_WIDTH - 1] + "…"


def chip(token: bytes, title: str = "") -> str:
    """A token, or another piece of a text, in a box; `title` is said when a pointer rests on it."""
    said = f' title="{escape(title)}"' if title else ""
    return f"<code{said}>{escape(label_of(token))}</code>"


def bar(share: float) -> str:
    """A share of 1 as a bar."""
    return f'<span class="bar"><i style="width: {100 * min(max(share, 0.0), 1.0):.1f}%"></i></span>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """A table. Cells are HTML, heads are text; the columns `numbers` stand to the right."""

    def row(cells: Iterable[str], tag: str) -> str:
        marks = (' class="number"' if column in numbers else "" for column in range(len(head)))
        return (
            "<tr>" + "".join(f"<{tag}{mark}>{cell}</{tag}>" for mark, cell in zip(marks, cells, strict=True)) + "</tr>"
        )

    return f"<table>{row(map(escape, head), 'th')}{''.join(row(cells, 'td') for cells in rows)}</table>"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """A table without a head: names (text) and values (HTML)."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{value}</td></tr>" for name, value in pairs)
    return f"<table>{rows}</table>"
