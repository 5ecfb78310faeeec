"""Write a run's report to files, and print its summary on a terminal."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tokdfa.core.stored_file import write_atomically
from tokdfa.errors import StoreError, UnknownNameError
from tokdfa.lab.declare.cells import visible
from tokdfa.lab.report import html, kinds
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.page import Page

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console, JustifyMethod
    from rich.table import Table as RichTable
    from rich.text import Text

    from tokdfa.lab.declare.cells import Cell, Table
    from tokdfa.lab.report.data import StoredRun

FORMATS = ("md", "html", "png")


@dataclass(frozen=True)
class ReportFiles:
    """What was written. `left_out`: title of a plot that was not drawn -> why."""

    folder: Path
    markdown: Path | None = None
    html: Path | None = None
    plots: tuple[Path, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)


def write_report(run: StoredRun, folder: str | Path | None = None, formats: Iterable[str] = FORMATS) -> ReportFiles:
    """Write the report of a run: ``report.md``, ``report.html`` and ``plots/NAME.png``, as `formats` asks.

    `folder` is made if need be; by default it is ``report`` in the run's folder. Files of an earlier report with the
    same names are replaced. Raises UnknownNameError for a format, StoreError where files cannot be written. Cost: about
    0.3 s a plot and format.
    """
    wanted = list(formats)
    for name in wanted:
        if name not in FORMATS:
            raise UnknownNameError("report format", name, FORMATS)
    target = Path(folder) if folder is not None else Path(run.folder) / "report"
    page = Page.of(run)
    markdown = target / "report.md" if "md" in wanted else None
    web = target / "report.html" if "html" in wanted else None
    pictures: dict[str, Path] = {}
    try:
        target.mkdir(parents=True, exist_ok=True)
        if "png" in wanted:
            (target / "plots").mkdir(exist_ok=True)
            for plot in page.plots:
                if plot.figure is not None:
                    pictures[plot.name] = target / "plots" / f"{plot.name}.png"
                    write_atomically(pictures[plot.name], plot.to_png())
        if markdown:
            images = {name: path.relative_to(target).as_posix() for name, path in pictures.items()}
            write_atomically(markdown, page.markdown(images).encode())
        if web:
            write_atomically(web, html.render(page).encode())
    except OSError as error:
        raise StoreError(
            f"the report cannot be written to {target} ({error.strerror}); what was measured is kept: make room, and"
            f" write it by `tokdfa report {run.folder}`"
        ) from None
    left_out = {plot.title: plot.reason for plot in page.plots if plot.figure is None}
    return ReportFiles(target, markdown, web, tuple(pictures.values()), left_out)


def print_summary(run: StoredRun, console: Console) -> None:
    """Print the question, the main table in a width that fits a terminal, and the findings."""
    from rich.text import Text

    data = RunData.read(run)
    main = kinds.build_tables(data)[0]
    console.print(Text(visible(data.question or data.name), style="bold"))
    if main.name != "environment":
        console.print(_terminal_table(main))
    _print_findings(kinds.build_headlines(data), console)


def print_page(page: Page, console: Console, rows: int = 30) -> None:
    """Print a page's question, the first `rows` of each of its tables, and its findings."""
    from rich.text import Text

    console.print(Text(visible(page.question), style="bold"))
    for table in page.tables:
        console.print(Text(f"\n{visible(table.title)}", style="bold"))
        console.print(_terminal_table(replace(table, rows=table.rows[:rows])))
        if len(table.rows) > rows:
            console.print(f"and {len(table.rows) - rows:,} more rows", style="dim", highlight=False)
    console.print()
    _print_findings(page.headlines, console)


def _print_findings(headlines: Iterable[str], console: Console) -> None:
    from rich.text import Text

    for line in headlines:
        console.print(Text(f"• {visible(line)}"))


def _terminal_table(main: Table) -> RichTable:
    from rich.table import Table as RichTable
    from rich.text import Text

    numeric = main.numeric()
    places = [place for place, name in enumerate(main.columns) if name in (main.brief or main.columns)]
    shown = RichTable(show_edge=False, pad_edge=False)
    for place in places:
        side: JustifyMethod = "right" if numeric[place] else "left"
        shown.add_column(Text(main.columns[place]), justify=side, no_wrap=place == 0, overflow="fold")
    for row in main.rows:
        shown.add_row(*(_terminal_cell(row[place]) for place in places))
    return shown


def _terminal_cell(cell: Cell) -> Text:
    from rich.text import Text

    shown = Text(visible(cell.text), style="bold green" if cell.best else "")
    detail = visible(cell.detail).partition(" (")[0]  # ranges do not fit; the findings below have them
    return shown.append(f"\n{detail}", style="dim") if detail else shown
