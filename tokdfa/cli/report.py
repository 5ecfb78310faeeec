"""``tokdfa report`` and ``tokdfa compare``: pages of stored runs, and what has changed from one run to another."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 (typer reads the annotations)
from typing import Annotated

import typer
from rich.console import Console

from tokdfa.errors import ConfigError, OptionError


def report(
    folders: Annotated[list[Path], typer.Argument(help="Run folders (or the folder that holds them).")],
) -> None:
    """Write tables (Markdown), plots and an HTML page for each run folder."""
    console = Console()
    for folder in (inside for given in folders for inside in run_folders(given)):
        report_run(folder, console)


def run_folders(folder: Path) -> list[Path]:
    """The folder itself if it is a run's, else the run folders in it, by name; ConfigError if there is none."""
    if (folder / "config.yaml").exists():
        return [folder]
    inside = sorted(path.parent for path in folder.glob("*/config.yaml"))
    if not inside:
        raise ConfigError("there is no run in this folder (no config.yaml)", str(folder))
    return inside


def report_run(folder: Path, console: Console) -> None:
    """Print a run's summary and write its report."""
    from tokdfa.lab.report.page import Page
    from tokdfa.lab.report.write import print_page, write_report
    from tokdfa.lab.run.store import open_run

    measured = open_run(folder)
    page = Page.of(measured)
    print_page(page, console, brief=True)
    target = write_report(measured, page) / "report.html"
    console.print(f"report: {target}", highlight=False, soft_wrap=True, markup=False)


def compare(
    before: Annotated[Path, typer.Argument(help="The folder of the earlier run.")],
    after: Annotated[Path, typer.Argument(help="The folder of the later run.")],
    control: Annotated[
        list[str] | None,
        typer.Option(
            "--control",
            help="An engine that is the same in both (default: packages whose version is); repeat.",
        ),
    ] = None,
    no_controls: Annotated[bool, typer.Option("--no-controls", help="Take the ratios as they are.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write a page to this file.")] = None,
    fail_on_slower: Annotated[
        float | None,
        typer.Option(help="Exit with status 1 if anything beyond noise takes at least this many times as long."),
    ] = None,
) -> None:
    """Say what got faster or slower beyond noise from one run of an experiment to another, and what else differs.

    Exit status: 0, or 1 with --fail-on-slower if something did.
    """
    from tokdfa.lab.report.compare import compare_runs
    from tokdfa.lab.report.compare_page import page
    from tokdfa.lab.report.html import render
    from tokdfa.lab.report.write import print_page
    from tokdfa.lab.run.store import open_run

    if control and no_controls:
        raise OptionError("give --control or --no-controls, not both")
    if fail_on_slower is not None and not fail_on_slower >= 1:
        raise OptionError(f"--fail-on-slower is a ratio from 1, such as 1.2, not {fail_on_slower}")
    console = Console()
    found = compare_runs(open_run(before), open_run(after), [] if no_controls else control)
    written = page(found, (before, after))
    print_page(written, console)
    if html is not None:
        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(render(written), encoding="utf-8")
        console.print(f"written: {html}", highlight=False, soft_wrap=True, markup=False)
    slower = found.slower(fail_on_slower) if fail_on_slower is not None else []
    if slower:
        console.print(f"{len(slower)} comparisons are slower by {fail_on_slower} times or more", highlight=False)
        raise typer.Exit(1)
