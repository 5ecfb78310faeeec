"""The way of one group through its jobs: measure side by side, leave out who broke a limit, then memory one by one.

A task knows which job comes next and what its end means. It does no work itself: a `Station` carries jobs to a worker
and answers back. When the group's job dies, the contender that was at work gets its failure, and the job starts again
without it; what the others had measured by then is dropped, so that all their numbers come from one undisturbed pass.
A SIGKILL from outside is forgiven once for each contender: it may have been meant for anything.
"""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tokdfa.lab.kinds import targets
from tokdfa.lab.measure.limits import OK, Failure
from tokdfa.lab.measure.measure import Outcome
from tokdfa.lab.run.jobs import GroupJob, GroupResult, MemoryJob, MemoryResult, SpecialJob, SpecialResult, failed

if TYPE_CHECKING:
    from tokdfa.constraint import Constraint
    from tokdfa.lab.config.expand import Group, Item
    from tokdfa.lab.config.experiment import ExperimentConfig
    from tokdfa.lab.measure.workloads import Walk
    from tokdfa.lab.run.jobs import Job
    from tokdfa.lab.run.watch import Answer

    Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Measured:
    """What a group has come to, as plain data that another machine may have sent: the rows of each table of the store,
    item id -> status, label -> "status: message" of those that failed, and the vocabulary, None if it was not loaded.
    """

    tables: dict[str, Rows]
    statuses: dict[str, str]
    failures: dict[str, str]
    vocab_size: int | None
    tokenizer_fingerprint: str | None


class GroupTask:
    """One group on its way. Call `next_job`, then `take` with the answer, until none is left; then `measured`."""

    def __init__(self, config: ExperimentConfig, group: Group) -> None:
        self.config, self.group = config, group
        first = group.items[0]
        self.constraint: Constraint | None = first.constraint.build() if first.constraint else None
        self.outcomes: dict[str, Outcome] = {}
        self.results: Rows = []
        self.vocab_size: int | None = None
        self.tokenizer_fingerprint: str | None = None
        self._walks: tuple[Walk, ...] = ()
        self._measured = False
        self._memory_left: list[Item] = []
        self._forgiven: set[str] = set()
        self._asked: list[Item] = []
        self._started = time.monotonic()

    def next_job(self) -> Job | None:
        """What to do next; None if the group is finished."""
        left = [item for item in self.group.items if item.label not in self.outcomes]
        if not self._measured and left:
            self._asked = [item for item in self.group.beside if item.label not in self.outcomes] + left
            return self._special_job(left[0]) if left[0].backend is None else self._group_job(self._asked)
        self._measured = True
        if self._memory_left:
            self._asked = self._memory_left[:1]
            return self._memory_job(self._asked[0])
        return None

    def _group_job(self, items: list[Item]) -> GroupJob:
        first, config = items[0], self.config
        assert first.tokenizer is not None
        assert first.workload is not None
        assert self.constraint is not None
        return GroupJob(
            tokenizer=first.tokenizer,
            constraint=self.constraint,
            workload=first.workload,
            entries=tuple(item.backend for item in items if item.backend),
            reference=config.reference,
            measures=tuple(config.measures),
            repeats=config.repeats,
            seed=first.seed,
            limits=config.limits,
            batch=config.batch,
        )

    def _memory_job(self, item: Item) -> MemoryJob:
        assert item.tokenizer is not None
        assert item.backend is not None
        assert self.constraint is not None
        return MemoryJob(item.tokenizer, self.constraint, (item.backend,), self._walks, self.config.limits)

    def _special_job(self, item: Item) -> SpecialJob:
        target = targets()[item.kind]
        return SpecialJob(target, item.settings, item.seed, self.config.limits, item.tokenizer)

    def contender(self, index: int) -> str:
        """The label of a contender of the job at work; "" for none of them."""
        return self._asked[index].label if 0 <= index < len(self._asked) else ""

    def take(self, answer: Answer) -> None:
        """The job that `next_job` has given has ended."""
        if answer.result is None:
            self._blame(answer)
        elif isinstance(answer.result, GroupResult):
            self._take_group(answer.result)
        elif isinstance(answer.result, MemoryResult):
            self._take_memory(answer.result)
        else:
            self._take_special(answer.result)

    def _take_group(self, result: GroupResult) -> None:
        self._measured = True
        self.outcomes |= {outcome.label: outcome for outcome in result.outcomes}
        self._walks, self.vocab_size = result.walks, result.vocab_size
        self.tokenizer_fingerprint = result.tokenizer_fingerprint
        if "memory" in self.config.measures:
            measured = [item for item in self._asked if item not in self.group.beside]
            self._memory_left = [item for item in measured if not failed(self.outcomes[item.label])]

    def _take_memory(self, result: MemoryResult) -> None:
        outcome = self.outcomes[self._memory_left.pop(0).label]
        outcome.memory_peak_bytes, outcome.memory_retained_bytes = result.peak, result.retained
        if result.failure is not None:
            outcome.fail(_while_measuring_memory(result.failure))

    def _take_special(self, result: SpecialResult) -> None:
        item = self._asked[0]
        outcome = self.outcomes[item.label] = Outcome(item.label)
        if result.failure is not None:
            outcome.fail(result.failure)
        self.results += [{"item_id": item.item_id, **row} for row in result.rows]

    def _blame(self, answer: Answer) -> None:
        assert answer.failure is not None
        label = self.contender(answer.contender)
        if answer.from_outside and label not in self._forgiven:
            self._forgiven.add(label)
            return
        if self._memory_left:
            self.outcomes[self._memory_left.pop(0).label].fail(_while_measuring_memory(answer.failure))
            return
        for item in self._asked:
            if label in ("", item.label):  # nobody in particular: nobody can be measured here
                outcome = self.outcomes[item.label] = Outcome(item.label)
                outcome.fail(answer.failure)

    def measured(self) -> Measured:
        """All that the finished group has come to."""
        return Measured(self.tables(), self.statuses(), self.failures(), self.vocab_size, self.tokenizer_fingerprint)

    def tables(self) -> dict[str, Rows]:
        """The rows of the finished group, by table."""
        seconds = (time.monotonic() - self._started) / len(self.group.items)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        items = [{**self._item_row(item), "seconds": seconds, "measured_at": now} for item in self.group.items]
        samples = [
            {"item_id": item.item_id, **sample._asdict()}
            for item in self.group.items
            for sample in self.outcomes[item.label].samples
        ]
        return {"items": items, "samples": samples, "results": self.results}

    def _item_row(self, item: Item) -> dict[str, Any]:
        outcome = self.outcomes[item.label]
        return {
            "item_id": item.item_id,
            "experiment": item.experiment,
            "tokenizer": item.tokenizer,
            "vocab_size": self.vocab_size,
            "backend": item.backend.name if item.backend else item.kind,
            "label": item.label,
            "options": json.dumps(item.backend.options if item.backend else item.settings),
            "constraint": item.constraint.label if item.constraint else None,
            "constraint_kind": self.constraint.kind if self.constraint else None,
            "workload": item.workload.label if item.workload else None,
            "seed": item.seed,
            "status": outcome.status,
            "message": outcome.message,
            "compile_s": _median_seconds(outcome.ns("compile")),
            "first_mask_s": _median_seconds(outcome.ns("first_mask")),
            **{name: outcome.sizes.get(name) for name in ("states", "transitions", "bytes")},
            "memory_peak_bytes": outcome.memory_peak_bytes,
            "memory_retained_bytes": outcome.memory_retained_bytes,
            "steps": outcome.steps,
            "counters": json.dumps(outcome.counters),
            "phases": json.dumps(_median_phases(outcome.phases)),
            "sizes": json.dumps(outcome.sizes),
        }

    def statuses(self) -> dict[str, str]:
        """item id -> status, once the group is finished."""
        return {item.item_id: self.outcomes[item.label].status for item in self.group.items}

    def failures(self) -> dict[str, str]:
        """label -> "status: message" of those that failed."""
        found = {item.label: self.outcomes[item.label] for item in self.group.items}
        return {label: f"{one.status}: {one.message}" for label, one in found.items() if one.status != OK}


def _while_measuring_memory(failure: Failure) -> Failure:
    return Failure(failure.kind, f"while measuring memory: {failure.message}")


def _median_seconds(ns: list[int]) -> float | None:
    return statistics.median(ns) * 1e-9 if ns else None


def _median_phases(repeats: list[dict[str, float]]) -> dict[str, float]:
    """The median seconds of each phase over the compiles that have it, phases in their order."""
    names = dict.fromkeys(name for phases in repeats for name in phases)
    return {name: statistics.median(phases[name] for phases in repeats if name in phases) for name in names}
