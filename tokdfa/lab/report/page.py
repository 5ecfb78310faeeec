"""What a report says, in whatever format: gathered from the run once, then written as Markdown or HTML."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare.cells import escape_markdown
from tokdfa.lab.report import kinds
from tokdfa.lab.report.data import RunData

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tokdfa.lab.declare.cells import Table
    from tokdfa.lab.declare.charts import Chart
    from tokdfa.lab.report.data import StoredRun
    from tokdfa.lab.report.plots import Plot


@dataclass(frozen=True)
class Page:
    """A report: sentences, tables and plots, the resolved experiment, and the command that repeats the run.

    `experiment` is empty on a page that is not of one run.
    """

    name: str
    question: str
    made: str
    headlines: Sequence[str]
    tables: Sequence[Table]
    plots: Sequence[Plot | Chart]
    experiment: str
    command: str

    @classmethod
    def of(cls, run: StoredRun) -> Page:
        """Read a run and gather its report; the figures are drawn but not yet rendered."""
        return cls.of_data(RunData.read(run), Path(run.folder))

    @classmethod
    def of_data(cls, data: RunData, folder: Path) -> Page:
        """The same, of a run in `folder` that has been read already."""
        return cls(
            name=data.name,
            question=data.question,
            made=readable_time(data.provenance.get("started")),
            headlines=kinds.build_headlines(data),
            tables=kinds.build_tables(data),
            plots=kinds.build_plots(data),
            experiment=_yaml(data.config),
            command=command(folder),
        )

    def markdown(self, images: Mapping[str, str]) -> str:
        """The report as Markdown. `images`: plot name -> path of its picture, for those that were written."""
        parts = [f"# {escape_markdown(self.question or self.name)}"]
        parts.append("\n".join(f"- {escape_markdown(line)}" for line in self.headlines))
        environment = [table for table in self.tables if table.name == "environment"]
        parts += [_section(table) for table in self.tables if table not in environment]
        parts.append("## Plots")
        for plot in self.plots:
            title = escape_markdown(plot.title)
            if plot.figure is None:
                parts.append(f"Not drawn: {title}: {escape_markdown(plot.reason)}.")
            elif plot.name in images:
                parts.append(f"![{title}]({images[plot.name]})\n\n{title}. {escape_markdown(plot.caption)}")
        parts += [_section(table) for table in environment]
        parts += ["## Repeat it", _fenced(self.command, "sh")]
        if self.experiment:
            parts += ["The experiment, resolved:", _fenced(self.experiment, "yaml")]
        return "\n\n".join(part for part in parts if part) + "\n"


def readable_time(stored: object) -> str:
    """A stored time such as 2026-01-02T03:04:05+00:00 as people write it; nothing for nothing."""
    return str(stored or "").replace("T", " ").replace("+00:00", " UTC")


def command(folder: Path) -> str:
    """The commands that measure again and report again.

    The resolved experiment in the run folder is an experiment file; run from there, its results stand beside it.
    """
    again = folder / "results" / folder.name
    return f"tokdfa run {shlex.quote(str(folder / 'config.yaml'))} && tokdfa report {shlex.quote(str(again))}"


def _section(table: Table) -> str:
    return f"## {escape_markdown(table.title)}\n\n{escape_markdown(table.note)}\n\n{table.markdown()}"


def _fenced(content: str, language: str) -> str:
    """A code block whose fence is longer than any run of backticks inside."""
    fence = "```"
    while fence in content:
        fence += "`"
    return f"{fence}{language}\n{content.rstrip()}\n{fence}"


def _yaml(config: Mapping[str, Any]) -> str:
    import yaml

    return yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True, width=100)
