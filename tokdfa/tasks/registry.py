"""Names of tasks -> "module:function", imported at first use; other packages add theirs by entry points.

The group is ``tokdfa.tasks``; a function takes nothing, or the folder of data that users bring.
"""

from __future__ import annotations

import importlib
from functools import cache
from importlib.metadata import entry_points

from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.tasks.base import Task

#: The group of entry points by which other packages add tasks.
GROUP = "tokdfa.tasks"
BUILT_IN = {
    "extraction": "tokdfa.tasks.json_tasks:extraction",
    "calls": "tokdfa.tasks.json_tasks:calls",
    "topics": "tokdfa.tasks.text_tasks:topics",
    "dates": "tokdfa.tasks.text_tasks:dates",
    "units": "tokdfa.tasks.text_tasks:units",
    "sums": "tokdfa.tasks.text_tasks:sums",
    "sql": "tokdfa.tasks.code_tasks:sql",
    "code": "tokdfa.tasks.code_tasks:code",
    "gsm8k": "tokdfa.tasks.gsm8k:gsm8k",
    "bfcl": "tokdfa.tasks.bfcl:bfcl",
    "jsonschemabench": "tokdfa.tasks.json_schema_bench:json_schema_bench",
    "patterns": "tokdfa.tasks.patterns:patterns",
    "spider": "tokdfa.tasks.spider:spider",
    "molecules": "tokdfa.tasks.molecules:molecules",
}
#: Those that read a folder of yours.
FOLDERS = ("gsm8k", "bfcl", "jsonschemabench", "patterns", "spider", "molecules")


def task_names() -> list[str]:
    """The names of all tasks, ours first."""
    return list(_targets())


@cache
def _targets() -> dict[str, str]:
    return {**{entry.name: entry.value for entry in entry_points(group=GROUP)}, **BUILT_IN}


@cache
def load_task(name: str, folder: str | None = None) -> Task:
    """A task by its name. Raises UnknownNameError; OptionError for a task without its folder, or with one it has no use
    for, and for what is no task."""
    if name not in _targets():
        raise UnknownNameError("task", name, _targets())
    if name in FOLDERS and folder is None:
        raise OptionError(f"the task {name} reads data of yours: give their folder")
    if name in BUILT_IN and name not in FOLDERS and folder is not None:
        raise OptionError(f"the task {name} makes its items itself, and reads no folder")
    module, _, attribute = _targets()[name].partition(":")
    make = getattr(importlib.import_module(module), attribute)
    task = make() if folder is None else make(folder)
    if not isinstance(task, Task):
        raise OptionError(f"{_targets()[name]}, the entry point of the task {name}, makes no Task but {task!r}")
    return task
