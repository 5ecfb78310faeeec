"""A compiled constraint that keeps time: what a strategy's questions to its matchers cost.

`TimedConstraint` stands in for a compiled constraint and hands out matchers that do the same and add the nanoseconds
and the number of questions to one `Meter`. So a strategy is timed as it is, with its own mixture of masks,
advances, single-token checks and forks, and with the caches of the machine as the model's rows leave them. Keeping time
costs some 0.2 us a question, which is not subtracted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from tokdfa.backends.base import CompiledConstraint, Matcher

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.mask import Mask

T = TypeVar("T")
P = ParamSpec("P")


@dataclass
class Meter:
    """How many questions were asked, and the nanoseconds of all of them."""

    count: int = 0
    ns: int = 0

    def time(self, ask: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """The answer to one more question."""
        started = time.perf_counter_ns()
        answer = ask(*args, **options)
        self.ns += time.perf_counter_ns() - started
        self.count += 1
        return answer


class TimedConstraint(CompiledConstraint):
    """`compiled`, with matchers that write into `meter`, which may be replaced between runs."""

    def __init__(self, compiled: CompiledConstraint) -> None:
        super().__init__(compiled.constraint, compiled.vocab, compiled.backend_name)
        self.phases, self.sizes = compiled.phases, compiled.sizes
        self._compiled = compiled
        self.meter = Meter()

    def _start(self, context: tuple[int, ...]) -> TimedMatcher:
        return TimedMatcher(self.meter.time(self._compiled.start, context), self.meter)


class TimedMatcher(Matcher):
    """`matcher`, its questions timed."""

    def __init__(self, matcher: Matcher, meter: Meter) -> None:
        super().__init__(matcher.vocab)
        self._matcher, self._meter = matcher, meter

    def _fill_mask(self, out: Mask) -> None:
        self._meter.time(self._matcher.fill_mask, out)

    def _advance(self, token: int) -> None:
        self._meter.time(self._matcher.advance, token)

    def _allows(self, token: int) -> bool:
        return self._meter.time(self._matcher.allows, token)

    def can_end(self) -> bool:
        return self._meter.time(self._matcher.can_end)

    def is_finished(self) -> bool:
        return self._matcher.is_finished()  # asked with every other question

    def _rollback(self, count: int) -> None:
        self._meter.time(self._matcher.rollback, count)

    def _fork(self) -> TimedMatcher:
        return TimedMatcher(self._meter.time(self._matcher.fork), self._meter)
