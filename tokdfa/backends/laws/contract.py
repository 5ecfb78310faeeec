"""The laws of the mask interface, as functions that are run on every backend, ours and other people's.

A `Law` has a name, a statement in one sentence, and a check: given a `Trial` (a backend at work on a case, see
`tokdfa.backends.laws.trial`), it returns None if the law holds there, or describes the smallest counterexample it has
met. `check_backend` runs all laws on all cases; ``tokdfa check BACKEND`` prints what it returns.

A backend may declare `known_differences`: law name -> reason. Where such a law is broken the result is a *declared*
difference. It must really be broken somewhere: if the law holds on every case it was tried on, the declaration itself
is reported as broken, so that a peer's repaired fault is noticed.

What the laws are held against, so that no backend is asked about itself: `brute_force` for masks, Python's `re` and
plain membership for texts, and for the rest the definition in `tokdfa.backends.base`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tokdfa.backends.laws.cases import Case, real_cases, toy_cases
from tokdfa.backends.laws.laws import LAWS, Law, NotApplicable, compare_masks
from tokdfa.backends.laws.trial import Trial
from tokdfa.backends.registry import create_backend
from tokdfa.errors import LawBroken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tokdfa.backends.base import Backend

__all__ = ["LAWS", "Case", "Law", "LawResult", "check_backend", "compare_backends", "real_cases", "toy_cases"]

HELD, DECLARED, BROKEN, SKIPPED = "held", "declared", "broken", "skipped"


@dataclass(frozen=True)
class LawResult:
    """What came of one law on one case. `outcome`: held, declared (a known difference), broken or skipped."""

    law: str
    case: str
    outcome: str
    message: str = ""

    @property
    def ok(self) -> bool:
        """Whether this is as it should be."""
        return self.outcome != BROKEN


def check_backend(
    name: str,
    options: Mapping[str, Any] | None = None,
    *,
    cases: Iterable[Case] | None = None,
    report: Callable[[LawResult], None] | None = None,
    laws: Sequence[Law] = LAWS,
) -> list[LawResult]:
    """Run `laws` on the backend called `name` with `options`, on `cases` (default: `toy_cases`).

    `report` is called with each result as it comes. A case that the backend does not support gives one result, of the
    pseudo-law ``supports``. Raises UnknownNameError, OptionError or MissingDependency for the backend itself; whatever
    it raises later is a broken law.
    """
    results: list[LawResult] = []

    def record(result: LawResult) -> None:
        results.append(result)
        if report is not None:
            report(result)

    declared: Mapping[str, str] = {}
    own_readings: tuple[str, ...] = ()
    kinds: set[str] = set()
    for case in toy_cases() if cases is None else cases:
        backend = create_backend(name, case.vocab, **(options or {}))
        declared, own_readings = backend.known_differences, backend.own_readings
        answer = backend.supports(case.constraint)
        if not answer:
            record(LawResult("supports", case.name, SKIPPED, answer.reason))
            continue
        trial = Trial(backend, case)
        kinds.add(case.constraint.kind)
        for law in laws:
            record(_run_law(law, trial))
    # what differs because of a reading of its own is not missed where no constraint of that kind was tried
    if not own_readings or not kinds.isdisjoint(own_readings):
        for problem in _problems_of_declarations(declared, results, laws):
            record(problem)
    if not any(result.outcome in (HELD, DECLARED) for result in results):
        record(LawResult("supports", "all cases", BROKEN, f"{name} supports none of the cases, so nothing was checked"))
    return results


def _run_law(law: Law, trial: Trial) -> LawResult:
    try:
        law(trial)
    except NotApplicable as why:
        return LawResult(law.name, trial.case.name, SKIPPED, str(why))
    except LawBroken as broken:
        if law.name in trial.backend.known_differences:
            return LawResult(law.name, trial.case.name, DECLARED, trial.backend.known_differences[law.name])
        return LawResult(law.name, trial.case.name, BROKEN, str(broken))
    except Exception as error:
        return LawResult(law.name, trial.case.name, BROKEN, f"{type(error).__name__}: {error}")
    return LawResult(law.name, trial.case.name, HELD)


def _problems_of_declarations(
    declared: Mapping[str, str], results: Sequence[LawResult], laws: Sequence[Law]
) -> Iterator[LawResult]:
    """Declarations of laws that do not exist, or that held wherever they were tried."""
    known = {law.name for law in LAWS}
    tried = {law.name for law in laws}
    for name in declared:
        outcomes = {result.outcome for result in results if result.law == name}
        if name not in known:
            yield LawResult(name, "all cases", BROKEN, "a known difference is declared, but there is no such law")
        elif name in tried and HELD in outcomes and not outcomes & {DECLARED, BROKEN}:
            yield LawResult(
                name,
                "all cases",
                BROKEN,
                f"declared as a known difference ({declared[name]}), but it holds on every case",
            )


def compare_backends(first: Backend, second: Backend, case: Case) -> str | None:
    """Where the masks of two backends first differ on a case, or None: the text so far, the token, who allows it.

    For two backends that claim the same token language. Raises what compiling raises.
    """
    trial = Trial(first, case)
    if trial.refusal is not None:
        raise trial.refusal
    return compare_masks(trial, second.compile(case.constraint), (first.name, second.name))
