"""The experiment ``kind: laws``: which laws of the mask interface each engine keeps, and where it is known not to.

The laws (`tokdfa.backends.laws`) are what ``tokdfa check`` runs: masks equal to the brute force, no dead ends, the end
where `re` says so, forks and rollbacks that disturb nothing, and so on, over small vocabularies that are unkind, and
over real ones if `settings.tokenizers` names some. Each engine is an item of the run.

A row is a law on a case: ``engine``, ``law``, ``case``, ``outcome``: "held"; "declared", a difference that is known and
whose reason stands in the engine's adapter; "broken"; "skipped", where the law says nothing of such a case, or the
engine does not take it. ``message``: the reason, or the smallest counterexample.

Keywords of JSON Schema are no law: an engine may leave one out, if it says so. `settings.keywords` has for each a
schema with a valid instance and one that is invalid because of this keyword alone. Engines that take schemas of values
of any depth have a row of the ``law`` "keyword" for each ``case``: "kept", both are judged rightly; "refused", when
compiling; "dropped", the invalid instance is accepted; "strict", the valid one is refused; "failed", by time or crash.
"""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Any

from pydantic import Field

from tokdfa.backends.laws.contract import check_backend, real_cases, toy_cases
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import JsonSchema
from tokdfa.lab.declare import Column, Kind, Listing, Pivot, Say, Stat, Summary
from tokdfa.lab.declare.columns import text
from tokdfa.lab.measure.engines import Engine, Engines  # noqa: TC001 (pydantic reads the annotation)
from tokdfa.lab.measure.limits import Failure, attempt, extend_rows
from tokdfa.lab.measure.maskbench_replay import OVER, PASSED, REFUSED, UNDER, run_case
from tokdfa.lab.measure.schema_corpus import SchemaCase, SchemaTest
from tokdfa.lab.measure.settings import Strict, typed_settings
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator


#: The law of the rows about keywords.
KEYWORD = "keyword"
#: Seconds for the probe of a keyword.
PROBE_SECONDS = 60.0
#: Outcome of a case of MaskBench -> that of a keyword.
_OUTCOMES = {PASSED: "kept", REFUSED: "refused", UNDER: "dropped", OVER: "strict"}


class Probe(Strict):
    """A schema with a valid instance, and with one that is invalid because of `keyword` alone."""

    keyword: str
    document: dict[str, Any] = Field(alias="schema")
    valid: Any
    invalid: Any

    @property
    def case(self) -> SchemaCase:
        tests = SchemaTest(True, json.dumps(self.valid)), SchemaTest(False, json.dumps(self.invalid))
        return SchemaCase(self.keyword, json.dumps(self.document), tests, KEYWORD)


class Settings(Strict):
    """The settings of the experiment.

    `tokenizers`: whose vocabularies are tried beside small ones. `keywords` are tried over the first of these, by
    default over single bytes.
    """

    engines: Engines
    tokenizers: list[str] = Field(default_factory=list)
    keywords: list[Probe] = Field(default_factory=list)


def split(settings: dict[str, Any], seed: int) -> list[tuple[str, dict[str, Any]]]:
    """An item for each engine."""
    typed = typed_settings(Settings, settings)
    return [(one.name, {**settings, "engines": [one.model_dump()]}) for one in typed.engines]


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """A row for each engine, law and case; one row for an engine that is not installed. `seed` is not used."""
    typed = typed_settings(Settings, settings)
    rows: list[dict[str, Any]] = []
    for engine in typed.engines:
        found = chain(_results(engine, typed.tokenizers), _keywords(engine, typed))
        extend_rows(rows, {"engine": engine.name}, found)
    return rows


def _results(engine: Engine, tokenizers: list[str]) -> Iterator[dict[str, Any]]:
    cases = [*toy_cases(), *(real_cases(tokenizers) if tokenizers else [])]
    for one in check_backend(engine.backend, engine.options, cases=cases):
        yield {"law": one.law, "case": one.case, "outcome": one.outcome, "message": one.message}


def _keywords(engine: Engine, typed: Settings) -> Iterator[dict[str, Any]]:
    tokenizer = load_tokenizer((typed.tokenizers or ["bytes"])[0])
    backend = create_backend(engine.backend, tokenizer.vocabulary, **engine.options)
    if isinstance(attempt(backend.compile, JsonSchema({"type": "object"})), Failure):
        return
    for probe in typed.keywords:
        case = probe.case
        constraint = JsonSchema(case.schema_text)
        row = run_case(case, constraint, backend, tokenizer, PROBE_SECONDS, True, lambda phase: None)
        outcome = _OUTCOMES.get(row["outcome"], "failed")
        yield {"law": KEYWORD, "case": case.name, "outcome": outcome, "message": row["message"]}


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
            "Cases of the laws on texts and on dead ends that do not hold, declared ones included, and keywords of "
            "JSON Schema that the engine compiles and does not enforce.",
            by=("engine",),
            values=(
                _faults("texts_in_language", "wrong acceptances"),
                _faults("texts_accepted", "wrong refusals"),
                _faults("no_dead_end", "dead ends"),
                _of("dropped", "dropped keywords"),
            ),
            where="status == 'ok'",
        ),
        Summary(
            "keywords",
            "Keywords of JSON Schema",
            "Each in a schema of its own. Kept: a valid instance is accepted, and one that this keyword alone forbids "
            "is not. Dropped: the schema compiles, and the forbidden instance is accepted. Too strict: the valid one "
            "is not.",
            by=("engine",),
            values=(
                *(_of("kept"), _of("refused"), _of("dropped"), _of("strict", "too strict")),
                _of("failed"),
            ),
            where=f"law == '{KEYWORD}'",
        ),
        Pivot(
            "keyword_by_keyword",
            "Keyword by keyword",
            rows=("case",),
            value="outcome",
            ratio=False,
            where=f"law == '{KEYWORD}'",
        ),
        Pivot(
            "laws",
            "Laws held, by engine",
            "The share of the cases that a law says something of, where it held.",
            rows=("law",),
            value=Stat("held", "mean", "laws held"),
            ratio=False,
            where=f"status == 'ok' and law != '{KEYWORD}'",
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
        Listing(
            "misjudged",
            "Keywords read too strictly, or given up",
            shown=("engine", "case", "outcome", "message"),
            where="outcome in ['strict', 'failed']",
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
        Say(
            "{engine} keeps {kept}, refuses {refused}, drops {dropped} and reads {strict} too strictly",
            per=("engine",),
            blanks={name: _of(name) for name in ("kept", "refused", "dropped", "strict")},
            where=f"law == '{KEYWORD}'",
            lead="Of the keywords of JSON Schema, each in a schema of its own,",
        ),
    ),
)
