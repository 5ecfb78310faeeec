"""A compiled constraint that keeps time: what a strategy's questions to its matchers cost, question by question.

`TimedConstraint` stands in for a compiled constraint and hands out matchers that do the same and add the nanoseconds
and the number of every question to one `Meter`. So a strategy is timed as it is, with its own mixture of masks,
advances, single-token checks and forks, and with the caches of the machine as the model's rows leave them. Reading the
clock costs some 0.1 us a question, which is not subtracted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from tokdfa.backends.base import CompiledConstraint, Matcher

if TYPE_CHECKING:
    from tokdfa.mask import Mask


@dataclass
class Tally:
    """How often a kind of question was asked, and the nanoseconds of all of them."""

    count: int = 0
    ns: int = 0

    def add(self, started: int) -> None:
        """One more question, begun at `started` (`time.perf_counter_ns`)."""
        self.ns += time.perf_counter_ns() - started
        self.count += 1


@dataclass
class Meter:
    """What has been asked. `others`: starts, forks, rollbacks, and whether a text can end or has ended."""

    masks: Tally = field(default_factory=Tally)
    advances: Tally = field(default_factory=Tally)
    checks: Tally = field(default_factory=Tally)
    others: Tally = field(default_factory=Tally)

    @property
    def ns(self) -> int:
        """The nanoseconds of all questions."""
        return sum(getattr(self, each.name).ns for each in fields(self))


class TimedConstraint(CompiledConstraint):
    """`compiled`, with matchers that write into `meter`, which may be replaced between runs."""

    def __init__(self, compiled: CompiledConstraint) -> None:
        super().__init__(compiled.constraint, compiled.vocab, compiled.backend_name)
        self.phases, self.sizes = compiled.phases, compiled.sizes
        self._compiled = compiled
        self.meter = Meter()

    def _start(self, context: tuple[int, ...]) -> TimedMatcher:
        started = time.perf_counter_ns()
        matcher = self._compiled.start(context)
        self.meter.others.add(started)
        return TimedMatcher(matcher, self.meter)


class TimedMatcher(Matcher):
    """`matcher`, its questions timed."""

    def __init__(self, matcher: Matcher, meter: Meter) -> None:
        super().__init__(matcher.vocab)
        self._matcher, self._meter = matcher, meter

    def _fill_mask(self, out: Mask) -> None:
        started = time.perf_counter_ns()
        self._matcher.fill_mask(out)
        self._meter.masks.add(started)

    def _advance(self, token: int) -> None:
        started = time.perf_counter_ns()
        self._matcher.advance(token)
        self._meter.advances.add(started)

    def _allows(self, token: int) -> bool:
        started = time.perf_counter_ns()
        answer = self._matcher.allows(token)
        self._meter.checks.add(started)
        return answer

    def can_end(self) -> bool:
        started = time.perf_counter_ns()
        answer = self._matcher.can_end()
        self._meter.others.add(started)
        return answer

    def is_finished(self) -> bool:
        started = time.perf_counter_ns()
        answer = self._matcher.is_finished()
        self._meter.others.add(started)
        return answer

    def _rollback(self, count: int) -> None:
        started = time.perf_counter_ns()
        self._matcher.rollback(count)
        self._meter.others.add(started)

    def _fork(self) -> TimedMatcher:
        started = time.perf_counter_ns()
        twin = self._matcher.fork()
        self._meter.others.add(started)
        return TimedMatcher(twin, self._meter)
