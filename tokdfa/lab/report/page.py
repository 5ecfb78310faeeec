"""What a report says, in whatever format: gathered from the run once, then written as Markdown or HTML."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokdfa.lab.declare.cells import escape_markdown
from tokdfa.lab.report import contents
from tokdfa.lab.report.data import RunData

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tokdfa.lab.declare.cells import Table
    from tokdfa.lab.declare.charts import Chart
    from tokdfa.lab.run.store import Run


#: So many sentences are on the first screen; so many rows a table may have in Markdown, and else so many are shown.
LEAD, MOST_ROWS, SHOWN = 3, 40, 15


@dataclass(frozen=True)
class Page:
    """A report: sentences, tables and plots, the resolved experiment, and the command that repeats the run.

    The first `LEAD` sentences and the first chart that is drawn are its first screen. `experiment` is empty on a page
    that is not of one run.
    """

    name: str
    question: str
    made: str
    headlines: Sequence[str]
    tables: Sequence[Table]
    plots: Sequence[Chart]
    experiment: str
    command: str

    @classmethod
    def of(cls, run: Run) -> Page:
        """Read a run and gather its report; the charts are built but not drawn."""
        data = RunData.read(run)
        return cls(
            name=data.name,
            question=data.question,
            made=readable_time(data.provenance.get("started")),
            headlines=contents.build_headlines(data),
            tables=contents.build_tables(data),
            plots=contents.build_charts(data),
            experiment=_yaml(data.config),
            command=command(Path(run.folder)),
        )

    @property
    def lead(self) -> Sequence[str]:
        """The sentences of the first screen."""
        return self.headlines[:LEAD]

    @property
    def told(self) -> list[Table]:
        """The tables but for the environment's."""
        return [table for table in self.tables if table.name != "environment"]

    @property
    def background(self) -> list[Table]:
        """The environment's table."""
        return [table for table in self.tables if table.name == "environment"]

    @property
    def charts(self) -> list[Chart]:
        """The charts that are drawn."""
        return [plot for plot in self.plots if plot.panels]

    @property
    def left_out(self) -> dict[str, str]:
        """Title of a chart that is not drawn -> why."""
        return {plot.title: plot.reason for plot in self.plots if not plot.panels}

    def markdown(self, pictures: Mapping[str, str], files: Mapping[str, str]) -> str:
        """The report as Markdown. `pictures`: chart -> path of its picture, for those that have one; `files`: table ->
        path of the file with all its rows; of such a table only the first `SHOWN` rows are in the text.
        """
        figures = [_figure(chart, pictures[chart.name]) for chart in self.charts if chart.name in pictures]
        parts = [f"# {escape_markdown(self.question or self.name)}", _listed(self.lead), *figures[:1]]
        parts.append(_listed(self.headlines[LEAD:]))
        parts += [_section(table, files.get(table.name, "")) for table in self.told]
        if figures[1:] or self.left_out:
            parts += ["## Charts", *figures[1:]]
        parts += [f"Not drawn: {escape_markdown(f'{title}: {why}')}." for title, why in self.left_out.items()]
        parts += [_section(table, files.get(table.name, "")) for table in self.background]
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


def _listed(lines: Sequence[str]) -> str:
    return "\n".join(f"- {escape_markdown(line)}" for line in lines)


def _figure(chart: Chart, path: str) -> str:
    title = escape_markdown(chart.title)
    return f"![{title}]({path})\n\n{title}. {escape_markdown(chart.caption)}".strip()


def _section(table: Table, path: str) -> str:
    shown, more = table, ""
    if path:
        shown = replace(table, rows=table.rows[:SHOWN])
        more = f"The first {SHOWN} of {len(table.rows):,} rows; all are in [{path}]({path}) (seconds, bytes)."
    parts = [f"## {escape_markdown(table.title)}", escape_markdown(table.note), shown.markdown(), more]
    return "\n\n".join(part for part in parts if part)


def _fenced(content: str, language: str) -> str:
    """A code block whose fence is longer than any run of backticks inside."""
    fence = "```"
    while fence in content:
        fence += "`"
    return f"{fence}{language}\n{content.rstrip()}\n{fence}"


def _yaml(config: Mapping[str, Any]) -> str:
    import yaml

    return yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True, width=100)
