"""The way of one group through its jobs: measure side by side, leave out who broke a limit, then memory one by one.

A task knows which job comes next and what its end means. It does no work itself: a `Supervisor` has each job done by a
worker. When the group's job dies, the contender that was at work gets its failure, and the job starts again
without it; what the others had measured by then is dropped, so that all their numbers come from one undisturbed pass.
A SIGKILL from outside is forgiven once for each contender: it may have been meant for anything.
"""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tokdfa.lab.kinds import load_kind, targets
from tokdfa.lab.measure.cases import NOBODY
from tokdfa.lab.measure.limits import OK, Failure
from tokdfa.lab.measure.measure import Outcome
from tokdfa.lab.run.jobs import GroupResult, Job, MemoryJob, MemoryResult, SpecialJob, SpecialResult, failed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.constraint import Constraint
    from tokdfa.lab.config.expand import Group, Item
    from tokdfa.lab.config.experiment import ExperimentConfig
    from tokdfa.lab.measure.limits import Activity
    from tokdfa.lab.measure.workloads import Walk
    from tokdfa.lab.run.supervisor import Answer

    Rows = list[dict[str, Any]]
    Carry = Callable[[Job, Callable[[Activity], None]], Answer]


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
    """One group on its way through its jobs. `carry(job, look)` has a job measured, as `Supervisor.run` does; `tell` is
    given what is being done, some twenty times a second.
    """

    def __init__(self, config: ExperimentConfig, group: Group, carry: Carry, tell: Callable[[str], None]) -> None:
        # what every item holds already need not travel with each job
        self.config = config.model_copy(update={"constraints": [], "settings": {}})
        self.group, self._carry, self._tell = group, carry, tell
        first = group.items[0]
        self.constraint: Constraint | None = first.constraint.build() if first.constraint else None
        self.outcomes: dict[str, Outcome] = {}
        self.results: Rows = []
        self.vocab_size: int | None = None
        self.tokenizer_fingerprint: str | None = None
        self._forgiven: set[str] = set()
        self._started = time.monotonic()

    def measure(self) -> Measured:
        """Measure the group, whatever happens to its jobs."""
        while left := [item for item in self.group.items if item.label not in self.outcomes]:
            if left[0].backend is None:
                self._measure_special(left[0])
            else:
                self._measure_together([item for item in self.group.beside if item.label not in self.outcomes] + left)
        return Measured(self.tables(), self.statuses(), self.failures(), self.vocab_size, self.tokenizer_fingerprint)

    def _measure_together(self, items: list[Item]) -> None:
        """Measure backends side by side, then the memory of each; or leave out who has broken a limit."""
        answer = self._answer(Job(self.config, tuple(items)), items)
        result = answer.result
        if not isinstance(result, GroupResult):
            self._blame(answer, items)
            return
        self.outcomes |= {outcome.label: outcome for outcome in result.outcomes}
        self.vocab_size, self.tokenizer_fingerprint = result.vocab_size, result.tokenizer_fingerprint
        for item in items if "memory" in self.config.measures else ():
            if item not in self.group.beside and not failed(self.outcomes[item.label]):
                self._measure_memory(item, result.walks)

    def _measure_memory(self, item: Item, walks: tuple[Walk, ...]) -> None:
        job, outcome = MemoryJob(self.config, (item,), walks), self.outcomes[item.label]
        answer = self._answer(job, [item])
        result = answer.result
        if isinstance(result, MemoryResult):
            outcome.memory_peak_bytes, outcome.memory_retained_bytes = result.peak, result.retained
        failure = result.failure if isinstance(result, MemoryResult) else answer.failure
        if failure is not None:
            outcome.fail(Failure(failure.kind, f"while measuring memory: {failure.message}"))

    def _measure_special(self, item: Item) -> None:
        target = targets()[item.kind]
        job = SpecialJob(self.config, (item,), target)
        cases = load_kind(target).cases
        if cases is not None:
            self._measure_cases(item, replace(job, cases=cases(dict(item.settings))))
            return
        answer = self._answer(job, [item])
        result = answer.result
        if not isinstance(result, SpecialResult):
            self._blame(answer, [item])
            return
        outcome = self.outcomes[item.label] = Outcome(item.label)
        if result.failure is not None:
            outcome.fail(result.failure)
        self.results += [{"item_id": item.item_id, **row} for row in result.rows]

    def _measure_cases(self, item: Item, job: SpecialJob) -> None:
        """Measure an item of many cases: the rows of a process that was ended stay, and the next one goes on.

        A case that ended a process keeps the row it had, or else gets one of its failure from the next.
        """
        assert job.cases is not None
        outcome = self.outcomes[item.label] = Outcome(item.label)
        rows: dict[int, dict[str, Any]] = {}
        forgiven: set[int] = set()
        while len(rows) < job.cases.count:
            answer = self._carry(job, lambda activity: self._look(activity, [item]))
            rows |= answer.rows
            failure = answer.failure
            if isinstance(answer.result, SpecialResult):
                failure = answer.result.failure
                if failure is None and not answer.rows:
                    failure = Failure("crash", "the process ended without a result")
            elif answer.from_outside and answer.contender not in forgiven:
                forgiven.add(answer.contender)
                failure = None
            if failure is not None and NOBODY in job.failures:  # not even the rows of failures could be made
                outcome.fail(failure)
                break
            failures = {**job.failures, **({} if failure is None else {answer.contender: failure})}
            job = replace(job, done=frozenset(rows), failures=failures)
        self.results += [{"item_id": item.item_id, **rows[case]} for case in sorted(rows)]

    def _answer(self, job: Job, items: list[Item]) -> Answer:
        """How a job ended, whose contenders are `items`; begun again if it was killed from outside."""
        while True:
            answer = self._carry(job, lambda activity: self._look(activity, items))
            at_work = _label(answer.contender, items)
            if not answer.from_outside or at_work in self._forgiven:
                return answer
            self._forgiven.add(at_work)

    def _look(self, activity: Activity, items: list[Item]) -> None:
        """Tell what is being done."""
        at_work = _label(activity.contender, items)
        self._tell(" ".join(filter(None, (f"{self.group.title}:", at_work, activity.phase))))

    def _blame(self, answer: Answer, items: list[Item]) -> None:
        """The failure is that of the contender at work; if there was none, nobody can be measured here."""
        assert answer.failure is not None
        for item in items if answer.contender < 0 else (items[answer.contender],):
            outcome = self.outcomes[item.label] = Outcome(item.label)
            outcome.fail(answer.failure)

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


def _label(contender: int, items: list[Item]) -> str:
    """The label of a contender of a job; empty for none."""
    return items[contender].label if 0 <= contender < len(items) else ""


def _median_seconds(ns: list[int]) -> float | None:
    return statistics.median(ns) * 1e-9 if ns else None


def _median_phases(repeats: list[dict[str, float]]) -> dict[str, float]:
    """The median seconds of each phase over the compiles that have it, phases in their order."""
    names = dict.fromkeys(name for phases in repeats for name in phases)
    return {name: statistics.median(phases[name] for phases in repeats if name in phases) for name in names}
