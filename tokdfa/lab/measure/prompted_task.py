"""Tasks of an experiment: those of the registry by name, and one of its own prompts.

Own prompts are constraints with a prompt each, whose answers are judged by the constraint.

A text is valid if the byte DFA of the regex or of the choices accepts it, or if `jsonschema` finds it valid under the
schema, formats asserted. There is no right answer among valid ones, so each scores 1.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, model_validator

from tokdfa.constraint import JsonSchema
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.measure.constraint_entry import ConstraintEntry, fault_of_keys
from tokdfa.lab.measure.model_bench import Count  # noqa: TC001 (pydantic reads the annotation)
from tokdfa.lab.measure.schema_judge import Judge
from tokdfa.lab.measure.settings import Strict, check_distinct, distinct, typed_settings
from tokdfa.regex.compile import compile_dfa
from tokdfa.tasks.base import OURS, Item, Task
from tokdfa.tasks.registry import load_task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tokdfa.constraint import Constraint

#: The name of the task.
PROMPTED = "prompted"


class TaskEntry(Strict):
    """A task by its name, with the folder of data that users bring."""

    name: str
    folder: str | None = None

    def load(self) -> Task:
        """The task; see `tokdfa.tasks.registry.load_task`."""
        return load_task(self.name, self.folder)


def entry_of(task: str | TaskEntry) -> TaskEntry:
    """A task as it is given, a name or an entry, as an entry."""
    return TaskEntry(name=task) if isinstance(task, str) else task


#: For a list of tasks.
DISTINCT_TASKS = distinct("tasks", lambda one: entry_of(one).load().name)
#: The setting of kinds on tasks.
Tasks = Annotated[list[str | TaskEntry], Field(min_length=1), DISTINCT_TASKS]


class Prompted(ConstraintEntry):
    """A constraint with the prompt that the model goes on from. `max_tokens`: where its answers are cut.

    Raises OptionError for what is no constraint.
    """

    label: Annotated[str, Field(min_length=1)]
    prompt: Annotated[str, Field(min_length=1)]
    max_tokens: Count | None = None

    @model_validator(mode="after")
    def _is_constraint(self) -> Self:
        if fault := fault_of_keys(self.model_fields_set):
            raise OptionError(f"settings: {self.label}: {fault[0]}")
        return self


def with_prompts(
    prompted: Sequence[Prompted], constraints: Sequence[Mapping[str, Any]], prompts: Mapping[str, str]
) -> list[Prompted]:
    """`prompted`, and those of the `constraints` that have a prompt by their label. Raises OptionError or
    UnknownNameError.
    """
    known = {str(entry.get("label")): entry for entry in constraints}
    found = list(prompted)
    for label, prompt in prompts.items():
        if label not in known:
            raise UnknownNameError("constraint in settings.constraints", label, known)
        found.append(typed_settings(Prompted, {**known[label], "prompt": prompt}))
    for entry in found:
        if entry.grammar is not None:
            raise OptionError(
                f"settings: {entry.label}: answers of a grammar cannot be judged; give a regex or a schema"
            )
    check_distinct("entries", [entry.label for entry in found])
    return found


def prompted_task(entries: Sequence[Prompted], samples: int, max_tokens: int) -> Task:
    """The task of these entries, each an item for each of so many samples, with the largest limit on tokens."""
    items = [
        Item(f"{entry.label}, {sample}" if samples > 1 else entry.label, entry.prompt, entry.build(), "")
        for sample in range(samples)
        for entry in entries
    ]
    longest = max(entry.max_tokens or max_tokens for entry in entries)
    return Task(PROMPTED, "prompts of the experiment", OURS, tuple(items), _is_valid, lambda item, text: 1.0, longest)


def _is_valid(item: Item, text: str) -> bool:
    if isinstance(item.constraint, JsonSchema):
        return not _judge(item.constraint.text).fault(text.encode())
    return compile_dfa(item.constraint).accepts(text.encode())


@cache
def _judge(schema: str) -> Judge:
    return Judge(schema)


def sort_of(task: str, item: str) -> str:
    """What items of a kind have in common: the task, and of prompts of the experiment the first word of the label."""
    return item.split(maxsplit=1)[0].rstrip(",") if task == PROMPTED else task


def limits_of(entries: Sequence[Prompted], max_tokens: int) -> dict[Constraint, int]:
    """Where the answers of each constraint are cut."""
    return {entry.build(): entry.max_tokens or max_tokens for entry in entries}
