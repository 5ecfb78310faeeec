"""``tokdfa cost``: what a stored run has taken, by engine, and what a larger one would take at that rate."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 (typer reads the annotations)
from typing import Annotated

import typer
from rich.console import Console

from tokdfa.cli.text import plain
from tokdfa.errors import UnknownNameError


def cost(
    folder: Annotated[Path, typer.Argument(help="A run folder.")],
    rows: Annotated[
        int | None, typer.Option(min=1, help="Also say what so many rows (cases) of each engine would take.")
    ] = None,
    tokenizers: Annotated[int, typer.Option(min=1, help="With --rows: with so many tokenizers.")] = 1,
    workers: Annotated[int, typer.Option(min=1, help="With --rows: on so many workers, each with a core.")] = 1,
    only: Annotated[list[str] | None, typer.Option(help="Of the engines, only this one; may be repeated.")] = None,
) -> None:
    """Print the wall time that a run has taken, by tokenizer and engine, item and row."""
    from rich.table import Table

    from tokdfa.lab.config.plan import format_duration
    from tokdfa.lab.run.cost import costs_of, seconds_for
    from tokdfa.lab.run.store import open_run

    found = costs_of(open_run(folder))
    for name in only or ():
        if name not in {one.contender for one in found}:
            raise UnknownNameError("engine", name, {one.contender for one in found})
    found = [one for one in found if not only or one.contender in only]
    table = Table("tokenizer", "engine", box=None, pad_edge=False)
    for heading in ("items", "rows", "seconds", "s/item", "s/row"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in found:
        per_row = "" if one.per_row is None else f"{one.per_row:.3f}"
        numbers = (f"{one.items:,}", f"{one.rows:,}", f"{one.seconds:,.1f}", f"{one.per_item:.2f}", per_row)
        table.add_row(*map(plain, (one.tokenizer, one.contender)), *numbers)
    console = Console()
    console.print(table)
    if rows is not None:
        seconds = seconds_for(found, rows, tokenizers)
        what = f"{rows:,} rows x {len({one.contender for one in found})} engines x {tokenizers} tokenizers"
        where = f", {format_duration(seconds / workers)} on {workers} workers" if workers > 1 else ""
        console.print(f"{what}: {format_duration(seconds)} on one core{where}", highlight=False, soft_wrap=True)
