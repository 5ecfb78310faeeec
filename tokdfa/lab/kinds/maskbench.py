"""The experiment ``kind: maskbench``: JSON schemas with valid and invalid instances, every engine on the same work.

MaskBench (JSONSchemaBench, arXiv 2501.10868) is a folder of *cases*: a schema and its tests, instances that must be
accepted or stopped. `tokdfa.lab.measure.maskbench_replay` says what is done with a case, what is timed, and which
outcomes there are. The setting ``data`` names the folder; its files are read by `tokdfa.lab.measure.schema_corpus`, as
are those of the JSON-Schema-Test-Suite, which the setting ``suite`` names instead. There a valid instance must be
accepted with its end, and an invalid one refused, at a token or at its end.

An *engine* is a backend with options, and with those of `tokdfa.constraint.JsonSchema`. All engines get the same cases
in the same order. One that is too slow for all may get a *sample*: the first so many cases of one seeded shuffle, so
smaller samples are in larger ones; reports set the other engines beside it on the same sample.

An item is a *chunk*: one engine, and about 25 cases one after another in one process, with a limit on the time of a
case and on memory (`tokdfa.lab.measure.cases`). The engine is created and warmed up on a small schema
first, so what it makes once for a vocabulary is there, and what it shares between schemas stays from case to case;
every schema is compiled anew. With ``chunk: 1`` no case finds anything of another. Engines take turns, chunk by chunk.
The garbage collector is off while a case is measured and runs after it; one thread
(`tokdfa.lab.measure.clock.ONE_THREAD`).

A row is an engine and a case; `tokdfa.lab.measure.maskbench_numbers` has the words of its tables. What
its process ran into, be it a limit or its death, costs that case only.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from tokdfa.backends.registry import create_backend
from tokdfa.errors import OptionError
from tokdfa.lab.declare import Column, Distribution, Kind, Listing, Pivot, Say, Stat, Summary
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.measure.cases import NOBODY, Cases
from tokdfa.lab.measure.limits import MAX_MESSAGE, Limits
from tokdfa.lab.measure.maskbench_numbers import frames
from tokdfa.lab.measure.maskbench_plan import Settings, complete, read, remotes_of, split
from tokdfa.lab.measure.maskbench_replay import (
    CRASH,
    MEMORY,
    OUTCOMES,
    OVER,
    REFUSED,
    TIMEOUT,
    UNAVAILABLE,
    UNDER,
    described,
    run_case,
)
from tokdfa.lab.measure.schema_corpus import REMOTES
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.lab.measure.warm_up import warm_up
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.lab.measure.cases import CaseQueue


#: The kind of what ended a process -> the outcome of its case.
_FAILED = {"timeout": TIMEOUT, "memory": MEMORY, "crash": CRASH}


@lru_cache(maxsize=1)
def load_cached(name: str) -> Any:
    """The tokenizer called `name`, kept."""
    return load_tokenizer(name)


def prepare(settings: dict[str, Any]) -> None:
    """What all items of an experiment share, for their processes to inherit: the tokenizer, with its trie."""
    _ = load_cached(settings["tokenizer"]).vocabulary.trie


def cases_of(settings: dict[str, Any]) -> Cases:
    """The cases of one chunk, as `split` gives it."""
    typed = typed_settings(Settings, settings)
    return Cases(len(typed.names or ()), Limits(seconds=typed.seconds, memory_mb=typed.memory_mb))


def measure_cases(settings: dict[str, Any], seed: int, queue: CaseQueue) -> Iterator[tuple[int, dict[str, Any]]]:
    """Measure one chunk, as `split` gives it, with the setting ``tokenizer``: yields cases with their rows.

    `seed` is not used; the cases were drawn when the experiment was split.
    """
    typed = typed_settings(Settings, settings)
    if typed.tokenizer is None:
        raise OptionError("maskbench needs a tokenizer: in the experiment's tokenizers, or as a setting")
    (engine,) = typed.engines
    cases = read(typed.data, typed.suite, typed.inputs, tuple(typed.names or ()))
    place = {
        **{"tokenizer": typed.tokenizer, "suite": typed.suite is not None, "to_end": typed.ends_count},
        "engine": engine.name,
    }
    left = []
    for number in queue.left:
        failure = queue.failure(number)
        if failure is None:
            left.append(number)
        else:
            outcome = _FAILED.get(failure.kind, REFUSED) if number in queue.failures else UNAVAILABLE
            found = {"outcome": outcome, "message": failure.message[:MAX_MESSAGE]}
            yield number, place | described(cases[number]) | found
    if not left:
        return
    tokenizer = load_cached(typed.tokenizer)
    backend = create_backend(engine.backend, tokenizer.vocabulary, **engine.options)
    queue.begin(NOBODY, "warm up")
    warm_up(backend, "json_schema")
    queue.ready()
    for number in left:
        case, begin = cases[number], partial(queue.begin, number)
        begin("idle")
        documents = remotes_of(typed.remotes) if REMOTES in case.schema_text else ""
        constraint = engine.constraint(case.schema_text, documents)
        row = run_case(case, constraint, backend, tokenizer, typed.seconds, typed.ends_count, begin)
        yield number, place | row
        if row["outcome"] in (CRASH, MEMORY):
            return  # the process cannot be trusted any more


_TIMED = {
    "tbm_ns": ("TBM", "time between masks: mask + commit of a token"),
    "ttfm_ns": ("TTFM", "time to first mask: compile + first mask"),
    "case_ns": ("whole case", "compile, first mask, and masks and commits of all instances"),
}
#: There are too few schemas for p99.9 of one.
_TIMES = tuple(
    Stat(name, how, f"{_TIMED[name][0]} {title}")
    for name, rare in (("case_ns", ()), ("tbm_ns", (("p99.9", "p99.9"),)), ("ttfm_ns", ()))
    for how, title in (("mean", "mean"), ("median", "p50"), ("p90", "p90"), ("p99", "p99"), *rare, ("max", "max"))
)


def _cases(title: str, where: str = "") -> Stat:
    return Stat("case", "count", title, where)


#: What is counted of an engine's cases -> of which.
_VERDICTS = {
    "passes without a test": "passed and tests == 0",
    "passes with ends": "passed and unended_tests == 0",
    "any valid rejected": "over_tests > 0",
    "any invalid accepted": "under_tests > 0",
}

KIND = Kind(
    kernels=(),
    cases=cases_of,
    measure_cases=measure_cases,
    settings=Settings,
    complete=complete,
    split=split,
    prepare=prepare,
    columns=(
        *map(text, ("tokenizer", "engine", "case", "split", "outcome", "message", "on", "base")),
        *map(text, ("draft", "reason", "example")),
        text("part_of_suite", "part"),
        Column("passed", "passes", "", "higher"),
        Column("over", "over", "", "lower", "valid instance rejected: the benchmark's validation error"),
        Column("under", "under", "", "lower", "invalid instance accepted: its invalidation error"),
        Column("refused", "refused", "", "lower", "its compile error"),
        Column("right_tests", "tests right", "", "higher"),
        Column("share_of_cases", "share", "share"),
        Column("faster", "the first is faster", "share"),
        Column("case_ratio", "whole case, times as long", "ratio"),
        *(seconds(name, *_TIMED[name]) for name in _TIMED),
        seconds("compile_ns", "compile time", "from the schema to a compiled constraint"),
        seconds("mask_ns", "mask time", "filling the mask once"),
    ),
    case=("tokenizer", "case"),
    frames=frames,
    tables=(
        Summary(
            "maskbench",
            "Every engine",
            "Outcomes by the benchmark's definitions: refused is its compile error, over(-constrained) its validation "
            "error, a valid instance rejected, under(-constrained) its invalidation error, an invalid one accepted. "
            "TBM: mask + commit of a token. TTFM: compile + first mask. Whole case: compile, first mask, masks and "
            "commits of all its instances. Times are of the cases that were judged, not refused or ended by a limit. "
            "Cases of an engine share a process, up to the setting `chunk` of them, and what the engine keeps between "
            "schemas; every schema is compiled anew, the garbage collector is off within a case, one thread.",
            by=("on", "engine"),
            values=(
                _cases("cases"),
                Stat("passed", "sum", "passes"),
                Stat("passed", "share", "share that passes"),
                *(Stat(outcome, "sum", outcome) for outcome in OUTCOMES[1:]),
                *_TIMES,
                Stat("compile_ns", "median", "compile p50"),
                Stat("mask_ns", "median", "mask p50"),
            ),
            frame="fields",
            brief=("on", "engine", "passes", "refused", "over", "under", "TBM p50", "TBM p99", "whole case p50"),
        ),
        Summary(
            "common",
            "The same work for all",
            "Of the cases that all engines with all cases pass: the times of the same tokens and schemas.",
            by=("on", "engine"),
            values=_TIMES,
            frame="common",
        ),
        Summary(
            "verdicts",
            "What the outcomes hide",
            "Passes without a test are vacuous. Passes with ends: every valid instance may end where it does. A case "
            "may have tests of both faults; the benchmark counts the last.",
            values=(
                *(_cases(title, where) for title, where in _VERDICTS.items()),
                *(Stat("tests", "sum", "tests"), Stat("right_tests", "sum", "tests right")),
            ),
        ),
        Pivot(
            "splits",
            "Passes by split",
            "The share of the cases that an engine passes, and their number.",
            rows=("split",),
            beside=(Stat("case", "distinct", "cases"),),
            value="passed:share",
            detail="passed:sum",
            frame="splits",
        ),
        Pivot(
            "cases",
            "Case by case",
            "Where there are few.",
            rows=("case",),
            value="outcome",
            ratio=False,
            frame="few",
        ),
        Summary(
            "drafts",
            "The test suite by draft",
            "Required: what every implementation of a draft has to do; optional: what it may, such as very large "
            "numbers; formats: optional, too. Refused: tests whose schema was refused; one that is refused since no "
            "value is valid judges its tests.",
            by=("draft", "part_of_suite", "engine"),
            values=tuple(
                Stat(name, "sum", title)
                for name, title in (
                    *(("tests", "tests"), ("right_tests", "right")),
                    *(("over_tests", "wrongly rejected"), ("under_tests", "wrongly accepted")),
                    *(("refused_tests", "refused"), ("unjudged_tests", "not judged")),
                )
            ),
            frame="suite",
        ),
        Listing(
            "refusals",
            "What is refused",
            "What an engine refuses or fails at: cases, their share of all that it was given, and one of them.",
            shown=("engine", "outcome", "cases", "share_of_cases", "tests", "reason", "example"),
            frame="refusals",
        ),
    ),
    charts=(
        Distribution(
            "case",
            "Whole cases: compile, first mask, masks and commits of all instances",
            "Of the cases that all engines pass; of one engine alone, of all that were judged.",
            x="case_ns",
            frame="same",
        ),
        *(
            Distribution(
                name,
                f"{title}: {words}",
                "Of the cases that all engines pass: the share that took longer, one in ten thousand as well.",
                x=f"{name}_ns",
                tail=True,
                frame="same",
            )
            for name, title, words in (("tbm", "TBM", "mask and commit of a token"), ("ttfm", "TTFM", "first mask"))
        ),
    ),
    sentences=(
        Say(
            "Of {on} {engine} passes {passed}, {share} (refused {refused}, over-constrained {over}, under-constrained "
            "{under}).",
            per=("on", "engine"),
            blanks={
                **{"passed": "passed:sum", "share": "passed:share"},
                **{outcome: Stat(outcome, "sum") for outcome in (REFUSED, OVER, UNDER)},
            },
            frame="fields",
        ),
        Say(
            "{engine} {case}, {token} and {tail}, {first}",
            per=("engine",),
            blanks={
                **{"case": "case_ns", "token": "tbm_ns:median", "tail": "tbm_ns:p99", "first": "ttfm_ns"},
                "on": "on",
            },
            frame="common",
            lead="On the {on} that all pass, the median of a whole case, of a token (TBM, with its p99) and of a first "
            "mask (TTFM):",
        ),
        Say(
            "{engine} takes {ratio}, and is slower on {faster} of {cases}",
            per=("engine",),
            blanks={
                **{"ratio": "case_ratio", "faster": "faster:share", "base": "base"},
                "cases": Stat("case_ratio", "count"),
            },
            frame="against",
            lead="A whole case beside {base}'s, in the median of the cases that both pass:",
        ),
        Say(
            "All engines with all cases have the same outcome on {same} of {cases}.",
            blanks={"same": "same:sum", "cases": _cases("")},
            frame="cases",
        ),
        Say("Stricter than the benchmark, the end of the text decides, too.", where="to_end"),
    ),
)
