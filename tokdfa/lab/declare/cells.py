"""A table of a report: cells with a text for people and a value for sorting and further work, and its Markdown form.

Everything that comes from data is escaped where it is written: here for Markdown, in `tokdfa.lab.report.html` for HTML.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tokdfa.lab.declare.columns import MISSING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from tokdfa.lab.declare.columns import Column, Ratio


class Cell(NamedTuple):
    """One cell: `text` as people read it, `value` as a number or a text, and whether it is the `best` of its group.

    `detail` is a second, smaller text, such as a ratio; `detail_value` is its number.
    """

    text: str
    value: float | str | None = None
    best: bool = False
    detail: str = ""
    detail_value: float = math.nan


NOTHING = Cell(MISSING, math.nan)


@dataclass(frozen=True)
class Table:
    """A titled table. `columns` are the heads; every row of `rows` has as many cells. `note` explains the numbers.

    `brief`: the columns to show where there is little room, such as a terminal; by default all.
    """

    name: str
    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    brief: tuple[str, ...] = ()

    @property
    def frame(self) -> pd.DataFrame:
        """The values as a DataFrame: base units (seconds, bytes), NaN where there is none.

        A column whose cells have ratios is followed by one named ``COLUMN: ratio``.
        """
        import pandas as pd

        frame = pd.DataFrame(index=range(len(self.rows)))
        for place, column in enumerate(self.columns):
            cells = [row[place] for row in self.rows]
            frame[column] = [cell.value for cell in cells]
            if not all(math.isnan(cell.detail_value) for cell in cells):
                frame[f"{column}: ratio"] = [cell.detail_value for cell in cells]
        return frame

    def markdown(self) -> str:
        """The table as GitHub Markdown, numbers to the right."""
        rows = [list(map(escape_markdown, self.columns)), *([_markdown(cell) for cell in row] for row in self.rows)]
        widths = [max(3, *(len(row[place]) for row in rows)) for place in range(len(self.columns))]
        right = self.numeric()
        rule = [f"{'-' * (width - 1)}:" if right[place] else "-" * width for place, width in enumerate(widths)]
        lines = (_pad(row, widths, right) for row in [rows[0], rule, *rows[1:]])
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def csv(self) -> str:
        """The table as CSV: numbers in base units, texts where there is no number, a column for ratios."""
        frame = self.frame
        for place, column in enumerate(self.columns):
            missing = [row[place].text if _lacks_number(row[place]) else row[place].value for row in self.rows]
            frame[column] = ["" if value == MISSING else value for value in missing]
        return frame.to_csv(index=False)

    def numeric(self) -> list[bool]:
        """For each column whether it holds numbers."""
        return [any(isinstance(row[place].value, float) for row in self.rows) for place in range(len(self.columns))]


def _lacks_number(cell: Cell) -> bool:
    return cell.value is None or (isinstance(cell.value, float) and math.isnan(cell.value))


def _markdown(cell: Cell) -> str:
    text = escape_markdown(cell.text)
    text = f"**{text}**" if cell.best else text
    return f"{text}, {escape_markdown(cell.detail)}" if cell.detail else text


def _pad(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> list[str]:
    return [text.rjust(widths[i]) if right[i] else text.ljust(widths[i]) for i, text in enumerate(row)]


def visible(text: str) -> str:
    """`text` with everything that cannot be printed, line ends apart, as an escape such as ``\\x1b``."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def escape_markdown(text: str) -> str:
    """`text` so that Markdown shows it as it is wherever it stands, in one line of source."""
    lines = (re.sub(r"([\\`*_|<>\[\]~#$&])", r"\\\1", line.strip()) for line in visible(text).strip().split("\n"))
    # at its beginning a list, or a rule, could begin
    return re.sub(r"^(\d*)([-+.)])(?=\s|-*$|-\s*-)", r"\1\\\2", "<br>".join(lines))


def text_cell(value: object) -> Cell:
    """A cell for a text; None, NaN and nothing are missing."""
    is_missing = value is None or value == "" or (isinstance(value, float) and math.isnan(value))
    shown = MISSING if is_missing else str(value)
    return Cell(shown, shown)


def number_cell(metric: Column, value: float, best: bool = False, ratio: Ratio | None = None) -> Cell:
    """A cell for a metric's value in base units, with its ratio to a reference. NaN is missing and never best."""
    if math.isnan(value):
        return NOTHING
    cell = Cell(metric.format(value), float(value), best)
    return cell._replace(detail=ratio.describe(metric), detail_value=ratio.median) if ratio else cell


def status_cell(status: object) -> Cell:
    """A cell for the kind of a failure, in a column of numbers."""
    return Cell(readable(status), math.nan)


def readable(status: object) -> str:
    """A stored status as words: ``wrong_refusal`` is ``wrong refusal``."""
    return str(status).replace("_", " ")
