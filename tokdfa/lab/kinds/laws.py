"""The experiment ``kind: laws``: which laws of the mask interface each engine keeps, and where it is known not to.

The laws (`tokdfa.backends.laws`) are what ``tokdfa check`` runs: masks equal to the brute force, no dead ends, the end
where `re` says so, forks and rollbacks that disturb nothing, and so on, over small vocabularies that are unkind, and
over real ones if `settings.tokenizers` names some. Each engine is an item of the run.

A row is a law on a case: ``engine``, ``law``, ``case``, ``outcome``: "held"; "declared", a difference that is known and
whose reason stands in the engine's adapter; "broken"; "skipped", where the law says nothing of such a case, or the
engine does not take it. ``message``: the reason, or the smallest counterexample.

Keywords of JSON Schema are no law: an engine may leave one out, if it says so (``experiments/keywords.yaml``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from tokdfa.backends.laws.contract import check_backend, real_cases, toy_cases
from tokdfa.lab.declare import Column, Kind, Listing, Pivot, Say, Stat, Summary
from tokdfa.lab.declare.columns import text
from tokdfa.lab.measure.engines import Engine, Engines  # noqa: TC001 (pydantic reads the annotation)
from tokdfa.lab.measure.limits import extend_rows
from tokdfa.lab.measure.settings import Strict, typed_settings

if TYPE_CHECKING:
    from collections.abc import Iterator


class Settings(Strict):
    """The settings of the experiment.

    `tokenizers`: whose vocabularies are tried beside small ones.
    """

    engines: Engines
    tokenizers: list[str] = Field(default_factory=list)


def split(settings: dict[str, Any], seed: int) -> list[tuple[str, dict[str, Any]]]:
    """An item for each engine."""
    typed = typed_settings(Settings, settings)
    return [(one.name, {**settings, "engines": [one.model_dump()]}) for one in typed.engines]


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """A row for each engine, law and case; one row for an engine that is not installed. `seed` is not used."""
    typed = typed_settings(Settings, settings)
    rows: list[dict[str, Any]] = []
    for engine in typed.engines:
        extend_rows(rows, {"engine": engine.name}, _results(engine, typed.tokenizers))
    return rows


def _results(engine: Engine, tokenizers: list[str]) -> Iterator[dict[str, Any]]:
    cases = [*toy_cases(), *(real_cases(tokenizers) if tokenizers else [])]
    for one in check_backend(engine.backend, engine.options, cases=cases):
        yield {"law": one.law, "case": one.case, "outcome": one.outcome, "message": one.message}


def _of(outcome: str, title: str = "") -> Stat:
    return Stat("case", "count", title or outcome, f"outcome == '{outcome}'")


def _faults(law: str, title: str) -> Stat:
    """Cases where a law whose name begins so does not hold."""
    return Stat("case", "count", title, f"law.str.startswith('{law}') and outcome in ['declared', 'broken']")


KIND = Kind(
    measure=measure,
    settings=Settings,
    split=split,
    columns=(
        *map(text, ("engine", "law", "case", "outcome", "message")),
        text("status", "ended"),
        Column("held", "laws held", "share", "higher", "of the cases that a law says something of"),
    ),
    case=("law", "case"),
    frames=lambda rows: {"": rows.assign(held=rows["outcome"].map({"held": 1.0, "declared": 0.0, "broken": 0.0}))},
    tables=(
        Summary(
            "engines",
            "Engine by engine",
            "Laws times cases. Declared: the law is broken, and the adapter says why. Not applicable: the engine does "
            "not take the constraint, or the law says nothing of it.",
            by=("engine",),
            values=(_of("held"), _of("declared"), _of("broken"), _of("skipped", "not applicable")),
            where="status == 'ok'",
        ),
        Summary(
            "faults",
            "Faults by kind",
            "Cases of the laws on texts and on dead ends that do not hold, declared ones included.",
            by=("engine",),
            values=(
                _faults("texts_in_language", "wrong acceptances"),
                _faults("texts_accepted", "wrong refusals"),
                _faults("no_dead_end", "dead ends"),
            ),
            where="status == 'ok'",
        ),
        Pivot(
            "laws",
            "Laws held, by engine",
            "The share of the cases that a law says something of, where it held.",
            rows=("law",),
            value=Stat("held", "mean", "laws held"),
            ratio=False,
            where="status == 'ok'",
        ),
        Summary(
            "differences",
            "What is declared, and why",
            by=("engine", "law"),
            values=(Stat("case", "count", "cases"), Stat("message", "first", "reason")),
            where="outcome == 'declared'",
        ),
        Listing(
            "broken",
            "Broken laws",
            "Counterexamples.",
            shown=("engine", "law", "case", "message"),
            where="outcome == 'broken'",
        ),
        Listing("failed", "Not checked", shown=("engine", "status", "message"), where="status != 'ok'"),
    ),
    sentences=(
        Say(
            "{engine}: {held} laws held, {declared} are known not to, {broken} broken.",
            per=("engine",),
            blanks={name: _of(name) for name in ("held", "declared", "broken")},
            where="status == 'ok'",
        ),
    ),
)
