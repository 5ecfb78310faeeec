"""Draw cases, have them run by a child, keep what fails, and make it small.

Failures are told apart by what went wrong and where; each kind is kept once, with its smallest input, and counted.
A failure is tried again by a fresh child before it is believed, since one process runs many cases. A child that has run
`CASES_OF_A_CHILD` cases makes room for a new one.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.child import Child, Limits, Outcome
from tests.fuzz.entries import find_entry
from tests.fuzz.shrink import shrink

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fuzz.case import Case

CASES_OF_A_CHILD = 100
#: Cases that Hypothesis draws before it begins anew, with the next seed.
ROUND = 100
#: Questions asked to make one failing input small; fewer for hangs, each of which takes the limit.
TRIES, TRIES_OF_A_HANG = 400, 12


@dataclass
class Failure:
    """A kind of failure: its smallest case, what happened to it, and how often the kind was met."""

    case: Case
    outcome: Outcome
    count: int = 1


@dataclass
class Findings:
    """What a run has found. `words`: how often each answer was given; `slowest`: processor seconds, and the case."""

    executed: int = 0
    words: Counter[str] = field(default_factory=Counter)
    failures: dict[str, Failure] = field(default_factory=dict)
    #: Failures that a fresh process did not have again.
    unconfirmed: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, Case | None] = (0.0, None)
    children: int = 0


class _Enough(BaseException):
    """The time is over; past what Hypothesis catches."""


def fuzz(
    entry_name: str,
    *,
    seconds: float,
    seed_number: int,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    cases: int | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Findings:
    """Fuzz an entry for so long, or for so many cases. `tell` is given a line for each new kind of failure."""
    entry = find_entry(entry_name)
    entry.prepare()
    child, findings = Child(entry_name, limits), Findings()
    end = time.monotonic() + seconds

    def try_case(case: Case) -> None:
        if time.monotonic() > end or findings.executed == cases:
            raise _Enough
        if findings.executed % CASES_OF_A_CHILD == CASES_OF_A_CHILD - 1:
            child.renew()
        findings.executed += 1
        outcome = child.run(case)
        findings.words[outcome.word] += 1
        if outcome.seconds > findings.slowest[0]:
            findings.slowest = outcome.seconds, case
        if outcome.failure:
            _keep(findings, child, case, outcome, entry.smaller, tell)

    try:
        number = 0
        while True:
            number += 1
            _draw(entry.cases(), seed_number * 1_000_003 + number, try_case)
    except _Enough:
        pass
    finally:
        child.stop()
    findings.children = child.started
    return findings


def _draw(cases, number, try_case):
    """One round of cases."""

    @seed(number)
    @settings(
        max_examples=ROUND, deadline=None, database=None, phases=[Phase.generate], derandomize=False,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(cases)
    def one(case: Case) -> None:
        try_case(case)

    one()


def _keep(findings: Findings, child: Child, case: Case, outcome: Outcome, smaller, tell) -> None:
    """Count a failure; if its kind is new and a fresh process has it, too, make it small."""
    known = findings.failures.get(outcome.failure)
    if known is not None:
        known.count += 1
        return
    child.renew()
    again = child.run(case)
    if again.failure != outcome.failure:
        kind = outcome.failure
        if not again.failure or again.failure in findings.failures:
            findings.unconfirmed[kind] += 1
            return
        outcome = again
    tell(f"found: {outcome.failure}\n  {case}")

    def fails(body) -> bool:
        return child.run(replace(case, body=body)).failure == outcome.failure

    tries = TRIES_OF_A_HANG if outcome.word in ("hang", "MemoryError") else TRIES
    small = replace(case, body=shrink(case.body, fails, smaller, tries))
    findings.failures[outcome.failure] = Failure(small, again)
    tell(f"  smallest: {small}\n{again.detail}")
