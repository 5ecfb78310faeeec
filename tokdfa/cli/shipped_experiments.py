"""``tokdfa experiments``: the experiments that come with the package; and what one of them needs that is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.cli.text import print_line, print_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from tokdfa.lab.config.experiment import ExperimentConfig
    from tokdfa.lab.config.shipped import Missing


def print_experiments(console: Console) -> None:
    """A table of the experiments, and below it how to install what they name and is missing."""
    from tokdfa.lab.config.shipped import experiments_folder, missing_packages, shipped_experiments
    from tokdfa.lab.config.yaml_source import read_yaml
    from tokdfa.lab.run.plan import format_duration

    rows: list[tuple[str, ...]] = []
    needed: list[Missing] = []
    for name, path in shipped_experiments().items():
        data = read_yaml(path).data
        missing = missing_packages(data)
        needed += missing
        takes = format_duration(60 * data["minutes"]) if "minutes" in data else ""
        asked = " ".join(str(data.get("question", "")).split())
        names = ", ".join(dict.fromkeys(one.name for one in missing))
        rows.append((name, takes, asked, names))
    print_table(console, ("name", "takes", "what it asks", "missing here"), rows, numbers=("takes",))
    print_line(console, f"{len(rows)} experiments in", str(experiments_folder()))
    _print_commands(needed, console)


def print_missing(config: ExperimentConfig, console: Console) -> None:
    """What an experiment names that is not installed, and how to install it; nothing if nothing is missing. Backends
    that another interpreter runs need nothing here.
    """
    from tokdfa.lab.config.shipped import missing_packages

    missing = missing_packages(config.model_dump(mode="json"))
    _print_commands([one for one in missing if one.name not in config.pythons], console)


def _print_commands(missing: Iterable[Missing], console: Console) -> None:
    for one in dict.fromkeys(missing):
        for command in one.commands:
            print_line(console, f"{one.what} {one.name} is not installed:", command)
