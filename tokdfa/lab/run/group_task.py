"""The way of one group through its jobs: contenders in turn compile, then walk; then the memory of each.

A task knows which job comes next and what its end means. It does no work itself: a `Worker` carries each job out. The
order of the contenders is drawn anew for each round of turns, by the seed. Who breaks a limit or dies has failed, and
the others go on. A SIGKILL from outside is forgiven once for each contender: it may have been meant for anything.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tokdfa.lab.kinds import find_kind
from tokdfa.lab.measure.cases import NOBODY
from tokdfa.lab.measure.contenders import Outcome, compare_masks
from tokdfa.lab.measure.limits import GOT_THROUGH, Failure
from tokdfa.lab.measure.workloads import derive_seed
from tokdfa.lab.run.jobs import Job, Memory, Plan, Planned
from tokdfa.lab.run.turns import Taken, Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tokdfa.lab.config.expand import Group, Item
    from tokdfa.lab.config.experiment import ExperimentConfig
    from tokdfa.lab.measure.limits import Activity
    from tokdfa.lab.measure.workloads import Walk
    from tokdfa.lab.run.worker import Answer

    Rows = list[dict[str, Any]]
    Carry = Callable[[Job, Callable[[Activity], None]], Answer]


@dataclass(frozen=True)
class Measured:
    """What a group has come to, as plain data that another machine may have sent: the rows of each table of the store,
    and ``size`` and ``fingerprint`` of the vocabulary, None if it was not loaded.
    """

    tables: dict[str, Rows]
    vocabulary: dict[str, Any] | None


class GroupTask:
    """One group on its way through its jobs. `carry(job, look)` has a job measured, as `Worker.run` does; `tell` is
    given what is being done, some twenty times a second.
    """

    def __init__(self, config: ExperimentConfig, group: Group, carry: Carry, tell: Callable[[str], None]) -> None:
        self._config, self._group, self._carry, self._tell = config, group, carry, tell
        self._outcomes: dict[str, Outcome] = {}
        self._results: Rows = []
        self._vocabulary: dict[str, Any] | None = None
        self._forgiven: set[tuple[str, int]] = set()
        self._started = time.monotonic()

    def measure(self) -> Measured:
        """Measure the group, whatever happens to its jobs."""
        if self._group.items[0].backend is None:
            self._measure_special(self._group.items[0])
        else:
            self._measure_contenders()
        return Measured(self._tables(), self._vocabulary)

    def _measure_contenders(self) -> None:
        config, items = self._config, (*self._group.beside, *self._group.items)
        measures, outcomes = {*config.measures}, self._outcomes
        outcomes |= {item.label: Outcome(item.label) for item in items}
        draw = random.Random(derive_seed(items[0].seed, "turns"))
        for repeat in range(config.repeats if measures & {"compile", "first_mask"} else 1):
            self._take_turns(items, Turn(repeat), draw)
        if measures & {"mask", "advance", "seen", "memory"}:
            walks = self._decide_walks(items)
            if measures & {"mask", "advance", "seen"}:
                self._take_turns(items, Turn(walks=walks), draw)
                compare_masks([*outcomes.values()], config.reference)
            for item in self._group.items if "memory" in measures else ():
                self._measure_memory(item, Memory(walks))
        for outcome in outcomes.values():
            outcome.samples = [sample for sample in outcome.samples if sample.measure in measures]

    def _able(self, items: Iterable[Item]) -> list[Item]:
        """Those that have got through so far."""
        return [item for item in items if self._outcomes[item.label].status in GOT_THROUGH]

    def _take_turns(self, items: Iterable[Item], turn: Turn, draw: random.Random) -> None:
        able = self._able(items)
        for item in draw.sample(able, len(able)):
            answer = self._answer(Job(self._config, item, turn))
            if isinstance(answer.result, Taken):
                self._outcomes[item.label].add(answer.result.outcome)
                self._vocabulary = answer.result.vocabulary
            elif answer.failure is not None:
                self._outcomes[item.label].fail(answer.failure)

    def _decide_walks(self, items: Iterable[Item]) -> tuple[Walk, ...]:
        """The walks, decided by the reference, or else by the first contender that can. If nobody can, all fail."""
        for item in sorted(self._able(items), key=lambda one: one.label != self._config.reference):
            answer = self._answer(Job(self._config, item, Plan()))
            if isinstance(answer.result, Planned):
                return answer.result.walks
            assert answer.failure is not None
            late, said = answer.failure.kind == "timeout", answer.failure.message
            last = answer.failure if late else Failure(answer.failure.kind, f"while deciding the walks: {said}")
            if not late:
                self._outcomes[item.label].fail(last)
        for item in self._able(items):
            self._outcomes[item.label].fail(last)
        return ()

    def _measure_memory(self, item: Item, task: Memory) -> None:
        outcome = self._outcomes[item.label]
        if outcome.status not in GOT_THROUGH:
            return
        answer = self._answer(Job(self._config, item, task))
        if answer.failure is not None:
            outcome.fail(Failure(answer.failure.kind, f"while measuring memory: {answer.failure.message}"))
        elif isinstance(answer.result, tuple):
            outcome.memory_peak_bytes, outcome.memory_retained_bytes = answer.result

    def _measure_special(self, item: Item) -> None:
        """Measure an item of a special kind, in one go or case by case.

        Of cases, the rows of a process that was ended stay, and the next one goes on. A case that ended a process keeps
        the row it had, or else gets one of its failure from the next.
        """
        outcome = self._outcomes[item.label] = Outcome(item.label)
        cases_of = find_kind(item.kind).cases
        if cases_of is None:
            answer = self._answer(Job(self._config, item))
            if answer.failure is not None:
                outcome.fail(answer.failure)
            elif isinstance(answer.result, list):
                self._results += [{"item_id": item.item_id, **row} for row in answer.result]
            return
        cases = cases_of(dict(item.settings))
        job = Job(self._config, item, cases=cases)
        rows: dict[int, dict[str, Any]] = {}
        while len(rows) < cases.count:
            answer = self._carry_out(job)
            rows |= answer.rows
            failure = answer.failure
            if self._forgives(job, answer):
                failure = None
            elif failure is None and not answer.rows:
                failure = Failure("crash", "the process ended without a result")
            if failure is not None and NOBODY in job.failures:  # not even the rows of failures could be made
                outcome.fail(failure)
                break
            failures = {**job.failures, **({} if failure is None else {answer.contender: failure})}
            job = replace(job, done=frozenset(rows), failures=failures)
        self._results += [{"item_id": item.item_id, **rows[case]} for case in sorted(rows)]

    def _answer(self, job: Job) -> Answer:
        """How a job ended; begun again if it was killed from outside."""
        while self._forgives(job, answer := self._carry_out(job)):
            pass
        return answer

    def _forgives(self, job: Job, answer: Answer) -> bool:
        """Whether this end counts for nothing: the first SIGKILL from outside while this contender was at work."""
        who = (job.item.label, NOBODY if job.cases is None else answer.contender)
        if not answer.from_outside or who in self._forgiven:
            return False
        self._forgiven.add(who)
        return True

    def _carry_out(self, job: Job) -> Answer:
        def look(activity: Activity) -> None:
            self._tell(f"{self._group.title}: {job.item.label} {activity.phase}")

        return self._carry(job, look)

    def _tables(self) -> dict[str, Rows]:
        """The rows of the finished group, by table."""
        constraint = self._group.items[0].constraint
        told = {
            "constraint_kind": constraint.build().kind if constraint else None,
            "seconds": (time.monotonic() - self._started) / len(self._group.items),
            "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        outcomes = [(item, self._outcomes[item.label]) for item in self._group.items]
        return {
            "items": [{**self._item_row(item, outcome), **told} for item, outcome in outcomes],
            "samples": [
                {"item_id": item.item_id, **one._asdict()} for item, found in outcomes for one in found.samples
            ],
            "results": self._results,
        }

    def _item_row(self, item: Item, outcome: Outcome) -> dict[str, Any]:
        return {
            "item_id": item.item_id,
            "experiment": item.experiment,
            "tokenizer": item.tokenizer,
            "vocab_size": self._vocabulary and self._vocabulary["size"],
            "backend": item.backend.name if item.backend else item.kind,
            "label": item.label,
            "options": json.dumps(item.backend.options if item.backend else item.settings),
            "constraint": item.constraint.label if item.constraint else None,
            "workload": item.workload.label if item.workload else None,
            "seed": item.seed,
            "status": outcome.status,
            "message": outcome.message,
            "compile_s": _median_seconds(outcome.ns("compile")),
            "first_mask_s": _median_seconds(outcome.ns("first_mask")),
            **{name: outcome.sizes.get(name) for name in ("states", "transitions", "bytes")},
            "memory_peak_bytes": outcome.memory_peak_bytes,
            "memory_retained_bytes": outcome.memory_retained_bytes,
            "set_up_s": outcome.set_up_s,
            "steps": outcome.steps,
            "counters": json.dumps(outcome.counters),
            "phases": json.dumps(_median_phases(outcome.phases)),
            "sizes": json.dumps(outcome.sizes),
        }


def _median_seconds(ns: list[int]) -> float | None:
    return statistics.median(ns) * 1e-9 if ns else None


def _median_phases(repeats: list[dict[str, float]]) -> dict[str, float]:
    """The median seconds of each phase over the compiles that have it, phases in their order."""
    names = dict.fromkeys(name for phases in repeats for name in phases)
    return {name: statistics.median(phases[name] for phases in repeats if name in phases) for name in names}
