"""Texts for patterns, as in the pattern set of the AWRS paper (Lipkin et al. 2025), from a folder of yours.

``load_task("patterns", folder)`` reads ``patterns.csv`` with a column ``pattern``: regexes that `re` reads and Regex
takes. Whatever matches the whole pattern is right. The licence is that of your data.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

from tokdfa.constraint import Regex
from tokdfa.errors import OptionError
from tokdfa.tasks.base import Item, Task, few_shot


def patterns(folder: str) -> Task:
    """The task of a folder. Raises OptionError, which names the file and the line, for another format."""
    path = Path(folder) / "patterns.csv"
    if not path.is_file():
        raise OptionError(f"patterns: there is no file {path}; give a folder with a table of patterns")
    items = []
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        if "pattern" not in (rows.fieldnames or ()):
            raise OptionError(f"patterns: {path}, line 1: there is no column 'pattern'")
        for number, row in enumerate(rows):
            try:
                re.compile(row["pattern"])
            except re.error as error:
                raise OptionError(f"patterns: {path}, line {rows.line_num}: no regex of `re`: {error}") from None
            shown = [("[0-9]{2}:[0-5][0-9]", "17:05"), ("(ab)+c?", "ababc")]
            prompt = few_shot("Write a text that matches the pattern.", shown, row["pattern"])
            items.append(Item(f"{number:04d}", prompt, Regex(row["pattern"]), ""))
    return Task(
        "patterns",
        "texts that match patterns",
        "that of your data",
        tuple(items),
        lambda item, text: isinstance(item.constraint, Regex) and _matches(item.constraint.pattern, text),
        lambda item, text: 1.0,
        max_tokens=64,
    )


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text) is not None
