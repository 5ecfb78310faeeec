"""What a run would do, and how long it may take: a plan before it begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokdfa.lab.config.expand import expand_groups
from tokdfa.lab.run.store import RunStore

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.lab.config.experiment import ExperimentConfig

#: What an item is taken to need, a worker's start included, before anything has been measured and if no file says it.
NOMINAL_ITEM_SECONDS = 2.0


@dataclass(frozen=True)
class Plan:
    """What a run would do. `seconds`: a rough estimate of what is left; `basis`: what that rests on."""

    folder: Path
    tokenizers: int
    constraints: int
    backends: int
    workloads: int
    groups: int
    items: int
    finished: int
    seconds: float
    basis: str

    def __str__(self) -> str:
        axes = (
            (self.tokenizers, "tokenizer"),
            (self.constraints, "constraint"),
            (self.workloads, "workload"),
            (self.backends, "backend"),
        )
        product = " x ".join(f"{count} {name}{'s' * (count != 1)}" for count, name in axes if count)
        left = self.items - self.finished
        lines = [f"{self.items} items in {self.groups} groups ({product or 'no axes'}); {self.finished} finished"]
        lines += [f"about {format_duration(self.seconds)} to go, {self.basis}" if left else "nothing is left to do"]
        return "\n".join([*lines, f"run folder: {self.folder}"])


def format_duration(seconds: float) -> str:
    """``42 s``, ``3 min``, ``2.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def describe(config: ExperimentConfig, folder: str | Path | None = None, fresh: bool = False) -> Plan:
    """What `run(config, folder, fresh=fresh)` would do, without doing it.

    Raises StoreError if the run folder is damaged; a fresh run does not read it.
    """
    groups = expand_groups(config)
    store = RunStore.locate(config, folder)
    finished, seconds_per_item = ({}, None) if fresh else store.progress()
    left = [item for group in groups for item in group.items if item.item_id not in finished]
    count = sum(len(group.items) for group in groups)
    if seconds_per_item is not None:
        basis = "from the groups measured so far"
    elif config.minutes:
        seconds_per_item, basis = 60 * config.minutes / max(count, 1), "as its file says"
    else:
        seconds_per_item, basis = NOMINAL_ITEM_SECONDS, f"taking {NOMINAL_ITEM_SECONDS:g} s an item"
    return Plan(
        folder=store.folder,
        tokenizers=len(config.tokenizers),
        constraints=len(config.constraints),
        backends=len(config.backends),
        workloads=len(config.workloads),
        groups=len(groups),
        items=count,
        finished=sum(item.item_id in finished for group in groups for item in group.items),
        seconds=len(left) * seconds_per_item,
        basis=basis,
    )
