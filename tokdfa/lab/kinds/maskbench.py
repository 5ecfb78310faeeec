"""The experiment ``kind: maskbench``: JSON schemas with valid and invalid instances, every engine on the same work.

MaskBench (JSONSchemaBench, arXiv 2501.10868) is a folder of *cases*: a schema and its tests, instances that must be
accepted or stopped. `tokdfa.lab.measure.maskbench_replay` says what is done with a case, what is timed, and which
outcomes there are. The setting ``data`` names the folder; its files are read by `tokdfa.lab.measure.schema_corpus`, as
are those of the JSON-Schema-Test-Suite, which the setting ``suite`` names instead. There a valid instance must be
accepted with its end, and an invalid one refused, at a token or at its end.

An *engine* is a backend with options, and with those of `tokdfa.constraint.JsonSchema`. All engines get the same cases
in the same order. One that is too slow for all may get a *sample*: the first so many cases of one seeded shuffle, so
smaller samples are in larger ones; reports set the other engines beside it on the same sample.

*Served* is how a server has them: one process for each engine, long-lived and warm, which takes its turn with every
group of cases; the order of engines in a group, and of the cases, is drawn by the seed (`servants`). *Fresh* is a new
process for each group (*chunk*) of cases of an engine, with what a young process pays; with ``chunk: 1`` no case finds
anything of another. In both an engine is created and warmed up on a small schema first, which is its *set-up*: from the
loaded tokenizer to the first mask of that schema, with the tables, slices and pools that it makes of a vocabulary, in a
column of its own. A peer that has an interpreter of its own (the experiment's ``pythons``) is always served. What an
engine shares between schemas stays from case to case; every schema is compiled anew. A case has a limit on its time and
on memory (`tokdfa.lab.measure.cases`). The garbage collector runs as it does in a server where engines are served, and
between cases in fresh processes; one thread (`tokdfa.lab.measure.clock.ONE_THREAD`).

A row is an engine and a case; `tokdfa.lab.measure.maskbench_numbers` has the words of its tables. What
its process ran into, be it a limit or its death, costs that case only.
"""

from __future__ import annotations

import time
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from tokdfa.backends.registry import create_backend
from tokdfa.errors import OptionError
from tokdfa.lab.declare import Column, Computed, Distribution, Kind, Listing, Pivot, Say, Stat, Summary
from tokdfa.lab.declare.columns import seconds, short_factor, text
from tokdfa.lab.measure import interpreters
from tokdfa.lab.measure.cases import NOBODY, Cases
from tokdfa.lab.measure.limits import MAX_MESSAGE, Failure, Limits, attempt
from tokdfa.lab.measure.maskbench_numbers import Beside, beside, frames
from tokdfa.lab.measure.maskbench_plan import BenchEngine, Settings, complete, read, remotes_of, split, turns
from tokdfa.lab.measure.maskbench_replay import (
    CRASH,
    MEMORY,
    OUTCOMES,
    OVER,
    REFUSED,
    TIMEOUT,
    UNAVAILABLE,
    UNDER,
    Verbs,
    described,
    run_case,
)
from tokdfa.lab.measure.schema_corpus import REMOTES
from tokdfa.lab.measure.servants import Servants
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.lab.measure.warm_up import warm_up
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tokdfa.lab.declare import Results
    from tokdfa.lab.measure.cases import CaseQueue
    from tokdfa.lab.measure.schema_corpus import SchemaCase
    from tokdfa.lab.measure.servants import Measure

    Row = dict[str, Any]

#: The kind of what ended a process -> the outcome of its case.
_FAILED = {"timeout": TIMEOUT, "memory": MEMORY, "crash": CRASH}


@lru_cache(maxsize=1)
def load_cached(name: str) -> Any:
    """The tokenizer called `name`, kept."""
    return load_tokenizer(name)


def prepare(settings: dict[str, Any]) -> None:
    """What all items of an experiment share, for their processes to inherit: the tokenizer, without its trie, which is
    part of an engine's set-up.
    """
    load_cached(settings["tokenizer"])
    for path in settings.get("pythons", {}).values():
        attempt(interpreters.look, path, (__name__,))


def cases_of(settings: dict[str, Any]) -> Cases:
    """The cases of one item, as `split` gives it: those of a chunk, or of all engines in turn."""
    typed = typed_settings(Settings, settings)
    count = len(typed.names or ())
    if typed.way == "served":
        count = sum(len(turn.cases) for turn in turns(typed, 0))
    return Cases(count, Limits(seconds=typed.seconds, memory_mb=typed.memory_mb))


def measure_cases(settings: dict[str, Any], seed: int, queue: CaseQueue) -> Iterator[tuple[int, Row]]:
    """Measure one item, as `split` gives it, with the setting ``tokenizer``: yields cases with their rows.

    `seed` decides the turns of engines that are served.
    """
    typed = typed_settings(Settings, settings)
    if typed.tokenizer is None:
        raise OptionError("maskbench needs a tokenizer: in the experiment's tokenizers, or as a setting")
    cases = _read_cases(typed)
    if typed.way == "served" or typed.apart:
        yield from _served(typed, seed, cases, queue)
    else:
        yield from _fresh(typed, cases, queue)


def _read_cases(typed: Settings) -> dict[str, SchemaCase]:
    """The cases of an item by their names, in its order; read once a process."""
    names = tuple(typed.names or ())
    return dict(zip(names, read(typed.data, typed.suite, typed.inputs, names), strict=True))


def _place(typed: Settings, engine: BenchEngine) -> Row:
    return {
        **{"tokenizer": typed.tokenizer, "suite": typed.suite is not None, "to_end": typed.ends_count},
        **{"engine": engine.name, "way": typed.way},
    }


def _failed(failure: Failure, unmade: bool = False) -> Row:
    """What a row says of a case that ended its process; `unmade`: the engine could not be made."""
    outcome = UNAVAILABLE if unmade else _FAILED.get(failure.kind, REFUSED)
    return {"outcome": outcome, "message": failure.message[:MAX_MESSAGE]}


class _Ready:
    """An engine of this process, created and warmed up. `setup_ns`: what that took."""

    def __init__(self, typed: Settings, engine: BenchEngine) -> None:
        assert typed.tokenizer is not None
        self._typed, self._given = typed, engine
        self._tokenizer = load_cached(typed.tokenizer)
        began = time.perf_counter_ns()
        backend = create_backend(engine.backend, self._tokenizer.vocabulary, **engine.options)
        warm_up(backend, "json_schema", prepares=engine.prepare)
        self.setup_ns = time.perf_counter_ns() - began
        self._verbs = Verbs(backend)

    def measure(self, case: SchemaCase, begin: Callable[[str], None]) -> Row:
        """The row of a case."""
        typed = self._typed
        begin("idle")
        documents = remotes_of(typed.remotes) if REMOTES in case.schema_text else ""
        make = partial(self._given.constraint, case.schema_text, documents)
        # our engines take an object of ours, so making it is theirs; peers are given the text that it holds
        constraint = make() if self._verbs.backend.packages else make
        row = run_case(case, constraint, self._verbs, self._tokenizer, typed.seconds, typed.ends_count, begin)
        return {**_place(typed, self._given), "setup_ns": self.setup_ns, **row}


def _fresh(typed: Settings, cases: Mapping[str, SchemaCase], queue: CaseQueue) -> Iterator[tuple[int, Row]]:
    """The cases of a chunk, in this process."""
    (engine,) = typed.engines
    listed, left = list(cases.values()), []
    for number in queue.left:
        failure = queue.failure(number)
        if failure is None:
            left.append(number)
        else:
            found = _failed(failure, unmade=number not in queue.failures)
            yield number, _place(typed, engine) | described(listed[number]) | found
    if not left:
        return
    queue.begin(NOBODY, "warm up")
    ready = _Ready(typed, engine)
    queue.ready()
    for number in left:
        row = ready.measure(listed[number], partial(queue.begin, number))
        yield number, row
        if row["outcome"] in (CRASH, MEMORY):
            return  # the process cannot be trusted any more


def _prepare_engine(settings: dict[str, Any], seed: int, name: str) -> Measure:
    """Make an engine of a served item in this process; what measures its cases, by their numbers."""
    typed = typed_settings(Settings, settings)
    cases = _read_cases(typed)
    case_of = {number: cases[case] for turn in turns(typed, seed) for number, case in turn.cases}
    engine = next(one for one in typed.engines if one.name == name)
    ready = attempt(_Ready, typed, engine)

    def measure(number: int, begin: Callable[[str], None]) -> Row:
        if isinstance(ready, Failure):
            return _place(typed, engine) | described(case_of[number]) | _failed(ready, unmade=True)
        return ready.measure(case_of[number], begin)

    return measure


def _served(typed: Settings, seed: int, cases: Mapping[str, SchemaCase], queue: CaseQueue) -> Iterator[tuple[int, Row]]:
    """The cases of all engines, in turns, each engine in a process of its own."""
    left, prepare = {*queue.left}, partial(_prepare_engine, typed.model_dump(), seed)
    looks = {name: attempt(interpreters.look, path, (__name__,)) for name, path in typed.apart.items()}
    with Servants(queue, prepare, Limits(), typed.apart) as servants:
        for turn in turns(typed, seed):
            name, case_of = turn.engine.name, {number: cases[case] for number, case in turn.cases if number in left}
            unusable = looks.get(name)
            answers: Iterable[tuple[int, Row | Failure]] = (
                ((number, unusable) for number in case_of)
                if isinstance(unusable, Failure)
                else servants.work(name, [*case_of])
            )
            for number, found in answers:
                if isinstance(found, Failure):
                    failed = _failed(found, unmade=found is unusable)
                    found = _place(typed, turn.engine) | described(case_of[number]) | failed
                yield number, found


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


_MIDDLE = (("median", "p50"), ("sum", "sum"))
_ALL = (("median", "p50"), ("p90", "p90"), ("p99", "p99"), ("max", "longest"), ("sum", "sum"))
_RARE = (("p99.9", "p99.9"),)


def _slower_first(results: Results) -> list[str]:
    """Where the first engine is slower than another, on the cases that both pass; the first thing that a page says."""
    pairs = results.rows("pairs")
    engines = results.config.get("settings", {}).get("engines", [])
    backend_of = {one.get("label") or one["backend"]: one["backend"] for one in engines}
    said = []
    for peer, pair in pairs.groupby("peer", sort=False):
        if peer in backend_of and backend_of[peer] == backend_of.get(pair["base"].iloc[0]):
            continue  # the same engine with other options
        slower = [one for one in beside(pair) if one.base > one.peer]
        if slower:
            listed = ", ".join(f"{one.what} {short_factor(one.base / one.peer)} times" for one in slower)
            said.append(f"as {peer} takes for {listed}")
    if not said:
        return []
    return [f"{pairs['base'].iloc[0]} is slower than another engine here, in times as long: {'; '.join(said)}."]


def _beside_each(results: Results) -> list[str]:
    """The first engine beside each other one: medians with sums, tails and the longest."""
    said = []
    for peer, pair in results.rows("pairs").groupby("peer", sort=False):
        found = {one.what: one for one in beside(pair)}
        cases = pair["case"].nunique()

        def factors(*names: str, found: dict[str, Beside] = found) -> str:
            return ", ".join(f"{short_factor(found[name].ratio)} ({name.partition(', ')[2]})" for name in names)

        longest = " and ".join(
            f"{what} {found[f'{what}, longest'].peer / 1e6:,.1f} ms against {found[f'{what}, longest'].base / 1e6:,.1f}"
            for what in ("TTFM", "TBM")
        )
        said.append(
            f"{peer} beside {pair['base'].iloc[0]}, times as long on the {cases:,} cases that both pass: whole cases "
            f"{factors('whole case, p50', 'whole cases, sum')}; TTFM {factors('TTFM, p50', 'TTFM, p99', 'TTFM, sum')}; "
            f"TBM {factors('TBM, p50', 'TBM, p99', 'TBM, p99.9', 'TBM, sum')}; longest {longest}."
        )
    return said


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
    cases=cases_of,
    measure_cases=measure_cases,
    settings=Settings,
    complete=complete,
    split=split,
    prepare=prepare,
    columns=(
        *map(text, ("tokenizer", "engine", "case", "split", "outcome", "message", "on", "base", "way", "pair", "peer")),
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
        seconds("setup_ns", "set-up", "from the loaded tokenizer to the first mask of a small schema"),
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
            "Served: an engine has one process for all cases and takes its turn with each group of them; fresh: a new "
            "one for each group. What it keeps between schemas stays with its process; every schema is compiled anew, "
            "one thread. The garbage collector is on where engines are served, off within a case of a fresh one.",
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
            "pairs",
            "Side by side",
            "The first engine and each other one on the cases that both pass, with sums and the longest.",
            by=("pair", "engine"),
            values=tuple(
                Stat(name, how, f"{_TIMED[name][0]} {title}")
                for name, ranks in (("case_ns", _MIDDLE), ("ttfm_ns", _ALL), ("tbm_ns", (*_ALL[:3], *_RARE, *_ALL[3:])))
                for how, title in ranks
            ),
            frame="pairs",
        ),
        Summary(
            "setups",
            "Set-up",
            "From the loaded tokenizer to the first mask of a small schema, once a process: tries, tables, slices and "
            "pools of the vocabulary. It is in no other column.",
            by=("engine",),
            values=(Stat("setup_ns", "median", "set-up"), Stat("setup_ns", "count", "processes")),
            frame="setups",
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
        Computed(_slower_first),
        Computed(_beside_each),
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
