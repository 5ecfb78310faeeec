"""From an experiment to its items: every combination, each with an identity and a seed that depend on nothing else.

An item's identity is a hash of all that its numbers depend on (tokenizer, constraint, backend, options, workload,
measures, repeats, way, limits, seed, and the reference, whose masks its own are compared with), so a stored item can be
recognised, also after other backends have joined the experiment or left it. Its seed is derived from the experiment's
seed, tokenizer, constraint and workload: all backends of a group get the same walks, and adding a tokenizer or a
constraint changes the walks of no other.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tokdfa.lab.kinds import find_kind, starts_engines
from tokdfa.lab.measure.limits import GOT_THROUGH
from tokdfa.lab.measure.workloads import Texts, canonical_json, derive_seed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tokdfa.lab.config.experiment import BackendEntry, ExperimentConfig
    from tokdfa.lab.measure.constraint_entry import ConstraintEntry
    from tokdfa.lab.measure.workloads import Workload

#: Part of every identity: raised when a change of tokdfa makes old numbers incomparable.
FORMAT = 1


@dataclass(frozen=True)
class Item:
    """One row of the result. `tokenizer`, `constraint`, `backend` and `workload` are None where a special kind of
    experiment has none; `settings` is what such a kind gets, and `title` which of several items it has split them into.
    """

    item_id: str
    experiment: str
    kind: str
    tokenizer: str | None
    constraint: ConstraintEntry | None
    backend: BackendEntry | None
    workload: Workload | None
    seed: int
    settings: dict[str, Any]
    title: str = ""

    @property
    def label(self) -> str:
        """What tables call the contender: the backend's label, or the kind of experiment."""
        return self.backend.label if self.backend else self.kind

    def __str__(self) -> str:
        constraint, workload = self.constraint and self.constraint.label, self.workload and self.workload.label
        return " / ".join(one for one in (self.tokenizer, constraint, workload, self.title, self.label) if one)


@dataclass(frozen=True)
class Group:
    """Items that are measured in turns. `position`: its place in the experiment; `beside`: an item that is stored
    already and takes part again without being stored, for the others to be compared with.
    """

    position: int
    items: tuple[Item, ...]
    beside: tuple[Item, ...] = ()

    @property
    def file_name(self) -> str:
        """The name of its files in the store; sorted by name, they are in the order of the experiment."""
        return f"{self.position:06d}-{_digest([item.item_id for item in self.items])}"

    def left(self, finished: Mapping[str, str], reference: str) -> Group | None:
        """What is still to be measured, given item id -> status of what is stored; None if that is all of it.

        Where some are stored, the one that has decided their walks, and been compared with, takes part again: the
        reference, or the first that got through.
        """
        left = tuple(item for item in self.items if item.item_id not in finished)
        if len(left) == len(self.items):
            return self
        able = [item for item in self.items if finished.get(item.item_id) in GOT_THROUGH]
        first = sorted(able, key=lambda item: item.label != reference)[:1]
        return replace(self, items=left, beside=tuple(first)) if left else None

    @property
    def title(self) -> str:
        """Which group this is, for people."""
        first = self.items[0]
        return str(first).removesuffix(first.label).removesuffix(" / ") or first.kind


def expand(config: ExperimentConfig) -> list[Item]:
    """The items of an experiment, in its order: tokenizers, then constraints, then workloads, then backends.

    The special kinds that an experiment on backends measures beside them come last, an item each.
    """
    return [item for group in expand_groups(config) for item in group.items]


def expand_groups(config: ExperimentConfig) -> list[Group]:
    """The same items, as the groups that are measured in turns."""
    own = (name for entry in config.constraints for name in entry.tokenizers)
    tokenizers: Sequence[str | None] = list(dict.fromkeys([*config.tokenizers, *own])) or [None]
    together = find_kind(config.kind).all_constraints
    constraints: Sequence[ConstraintEntry | None] = [None] if together else config.constraints or [None]
    workloads: Sequence[Workload | None] = config.workloads or [None]
    backends: Sequence[BackendEntry | None] = config.backends or [None]
    groups: list[Group] = []
    for tokenizer, constraint, workload in itertools.product(tokenizers, constraints, workloads):
        if tokenizer is not None and tokenizer not in ((constraint and constraint.tokenizers) or config.tokenizers):
            continue
        if isinstance(workload, Texts) and constraint is not None:
            workload = workload.model_copy(update={"texts": constraint.texts})
        keys = (constraint.key() if constraint else "", workload.key() if workload else "")
        seed = derive_seed(config.seed, config.kind, tokenizer or "", *keys)
        for title, settings in _split(config.kind, _settings(config, tokenizer, constraint), seed):
            items = (
                Item("", config.name, config.kind, tokenizer, constraint, backend, workload, seed, settings, title)
                for backend in backends
            )
            groups.append(Group(len(groups), tuple(_identified(config, item) for item in items)))
    for kind, given in config.settings.items() if config.kind == "backends" else ():
        seed = derive_seed(config.seed, kind, "", "", "")
        for title, settings in _split(kind, {**given, **_pythons(config, kind)}, seed):
            item = Item("", config.name, kind, None, None, None, None, seed, settings, title)
            groups.append(Group(len(groups), (_identified(config, item),)))
    return groups


def _settings(config: ExperimentConfig, tokenizer: str | None, constraint: ConstraintEntry | None) -> dict[str, Any]:
    """What a special kind gets for a tokenizer and a constraint; nothing in an experiment on backends."""
    if config.kind == "backends":
        return {}
    of_tokenizer = {"tokenizer": tokenizer} if tokenizer else {}
    if find_kind(config.kind).all_constraints:
        chosen = [entry for entry in config.constraints if tokenizer in (entry.tokenizers or config.tokenizers)]
        every = [entry.model_dump(mode="json", exclude_defaults=True) for entry in chosen]
        return {"constraints": every, **config.settings, **of_tokenizer}
    of_constraint = constraint.model_dump(mode="json", exclude_defaults=True) if constraint else {}
    return {**config.settings, **of_tokenizer, **of_constraint, **_pythons(config, config.kind)}


def _pythons(config: ExperimentConfig, kind: str) -> dict[str, Any]:
    """The interpreters apart, as a setting of a special kind that has one."""
    return {"pythons": config.pythons} if config.pythons and starts_engines(kind) else {}


def _split(kind: str, settings: dict[str, Any], seed: int) -> list[tuple[str, dict[str, Any]]]:
    """The titles and settings of the items that a special kind splits its settings into; else one, without a title."""
    split = find_kind(kind).split
    return [("", settings)] if split is None else split(settings, seed)


def _identified(config: ExperimentConfig, item: Item) -> Item:
    """The item with its identity. What is measured beside backends depends on nothing but its own settings."""
    identity: dict[str, Any] = {
        **{"format": FORMAT, "experiment": item.experiment, "kind": item.kind},
        **{"limits": config.limits.model_dump(mode="json"), "settings": item.settings, "seed": item.seed},
    }
    if item.kind == config.kind:
        constraint, workload, reference = item.constraint, item.workload, config.reference_entry
        identity |= {
            "tokenizer": item.tokenizer,
            "constraint": [constraint.label, constraint.key()] if constraint else None,
            "backend": item.backend.model_dump(mode="json") if item.backend else None,
            "workload": [workload.label, workload.key()] if workload else None,
            "reference": reference.model_dump(mode="json") if reference else "",
            "measures": config.measures,
            **(
                {"known": [entry.model_dump(mode="json", exclude_defaults=True) for entry in config.known]}
                if config.known
                else {}
            ),
            "repeats": config.repeats,
            **({"way": config.way} if config.way else {}),
            **(
                {"python": config.pythons[item.backend.name]}
                if item.backend and item.backend.name in config.pythons
                else {}
            ),
        }
    return replace(item, item_id=_digest(identity))


def _digest(value: Any) -> str:
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:16]
