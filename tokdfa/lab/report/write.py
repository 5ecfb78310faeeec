"""Write a run's report to files, and print a summary on a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tokdfa.core.stored_file import write_atomically
from tokdfa.errors import StoreError
from tokdfa.lab.declare.cells import visible
from tokdfa.lab.report import html
from tokdfa.lab.report.page import MOST_ROWS, Page

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from tokdfa.lab.declare.cells import Cell, Table
    from tokdfa.lab.run.store import Run

#: A terminal shows so many rows of a table.
ROWS = 30


def write_report(run: Run, page: Page | None = None) -> Path:
    """Write the report of a run into the folder ``report`` of the run's, and return that.

    ``report.md``, ``report.html``, ``plots/NAME.png``; tables too long for Markdown are ``tables/NAME.csv``. Files of
    an earlier report are replaced. `page`: the run's, if it has been gathered already. Raises StoreError where files
    cannot be written. Cost: about 0.3 s a picture.
    """
    target, page = Path(run.folder) / "report", page or Page.of(run)
    pictures = {chart.name: f"plots/{chart.name}.png" for chart in page.charts}
    files = {table.name: f"tables/{table.name}.csv" for table in page.tables if len(table.rows) > MOST_ROWS}
    try:
        for chart in page.charts:
            _write(target / pictures[chart.name], chart.to_png())
        for table in page.tables:
            if table.name in files:
                _write(target / files[table.name], table.csv().encode())
        _write(target / "report.md", page.markdown(pictures, files).encode())
        _write(target / "report.html", html.render(page).encode())
    except OSError as error:
        raise StoreError(
            f"the report cannot be written to {target} ({error.strerror}); what was measured is kept: make room, and"
            f" write it by `tokdfa report {run.folder}`"
        ) from None
    return target


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)


def print_page(page: Page, console: Console, brief: bool = False) -> None:
    """Print a page's question, its sentences, and the first rows of each of its tables; or, `brief`, the first
    sentences and as much of the main table as the terminal is wide.
    """
    from rich.text import Text

    console.print(Text(visible(page.question or page.name), style="bold"))
    sentences = page.lead if brief else page.headlines
    for line in sentences:
        console.print(Text(f"• {visible(line)}"))
    for table in page.told[:1] if brief else page.tables:
        if not brief:
            console.print(Text(f"\n{visible(table.title)}", style="bold"))
        _print_table(table, console)
    if len(page.headlines) > len(sentences):
        more = len(page.headlines) - len(sentences)
        console.print(f"{more} more sentences are in the report.", style="dim", highlight=False)


def _print_table(table: Table, console: Console) -> None:
    """Print the first `ROWS` rows, and of the brief columns as many as fit: two at least, each by its longest word."""
    from rich.table import Table as RichTable
    from rich.text import Text

    numeric = table.numeric()
    rows = [[_terminal_cell(cell) for cell in row] for row in table.rows[:ROWS]]
    brief = [place for place, name in enumerate(table.columns) if name in (table.brief or table.columns)]
    shown = RichTable(show_edge=False, pad_edge=False)
    fitting: list[int] = []
    room = console.width
    for place in brief:
        head = Text(visible(table.columns[place]))
        words = [word for text in (head, *(row[place] for row in rows)) for word in text.plain.split()]
        room -= max(map(len, words), default=0) + 3
        if room >= 0 or len(fitting) < 2:
            fitting.append(place)
            shown.add_column(head, justify="right" if numeric[place] else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(row[place] for place in fitting))
    console.print(shown)
    left_out = ((len(table.rows) - len(rows), "rows"), (len(brief) - len(fitting), "columns that do not fit here"))
    for count, what in left_out:
        if count:
            console.print(f"and {count:,} more {what}", style="dim", highlight=False)


def _terminal_cell(cell: Cell) -> Text:
    from rich.text import Text

    shown = Text(visible(cell.text), style="bold green" if cell.best else "")
    detail = visible(cell.detail).partition(" (")[0]  # ranges do not fit
    return shown.append(f"\n{detail}", style="dim") if detail else shown
