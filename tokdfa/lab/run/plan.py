"""What a run would do, and how long it may take: said before it begins."""

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
    """What a run would do. `axes`: what the items are the product of, in words; `seconds`: a rough estimate of what is
    left; `basis`: what that rests on.
    """

    folder: Path
    axes: str
    groups: int
    items: int
    finished: int
    seconds: float
    basis: str

    def __str__(self) -> str:
        left = f"about {format_duration(self.seconds)} to go, {self.basis}"
        return (
            f"{self.items} items in {self.groups} groups ({self.axes or 'no axes'}); {self.finished} finished\n"
            f"{left if self.finished < self.items else 'nothing is left to do'}\nrun folder: {self.folder}"
        )


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
    finished, item_seconds = ({}, None) if fresh else store.progress()
    items = [item.item_id for group in groups for item in group.items]
    found = sum(item in finished for item in items)
    if item_seconds is not None:
        basis = "from the groups measured so far"
    elif config.minutes:
        item_seconds, basis = 60 * config.minutes / max(len(items), 1), "as its file says"
    else:
        item_seconds, basis = NOMINAL_ITEM_SECONDS, f"taking {NOMINAL_ITEM_SECONDS:g} s an item"
    counts = {name: len(getattr(config, f"{name}s")) for name in ("tokenizer", "constraint", "workload", "backend")}
    axes = " x ".join(f"{count} {name}{'s' * (count != 1)}" for name, count in counts.items() if count)
    left = len(items) - found
    return Plan(store.folder, axes, len(groups), len(items), found, left * item_seconds, basis)
