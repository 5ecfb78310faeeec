"""The experiment ``kind: batch``: masks of many matchers, as a serving engine needs them before each step of a model.

A *batch* is so many matchers, each at its own place in a text, whose masks are filled into one array. Its *mixture* is
``different``, each matcher under a constraint of its own, or ``one``, all under the same; where there are fewer
constraints than matchers, they are used again. A *call* is a loop over ``fill_mask``, or an engine's own call for
batches with a number of threads (`tokdfa.lab.measure.batch_calls`).

An item is a tokenizer, with all constraints of the experiment or, with the setting ``data``, the schemas of a folder
(`tokdfa.lab.measure.schema_corpus`). All engines fill the same batches, so a constraint *takes part* only if each of
them compiles it and reads its texts to the end. That is tried out first, and shows what constraints cost that nobody
has had before: to compile them, and all masks along their texts.

In each round constraints and places are drawn anew, the same for all calls, which take turns and compile anew. Then
two *phases* are timed: ``first`` masks of a constraint, and those ``seen`` before, filled again for other matchers.
First masks find what an engine keeps of equal constraints for its vocabulary, as the trial has filled all of them.

Masks of a call for batches must be those of the loop, in each phase of each round; an engine whose masks are not leaves
the race, and its row says so. A row is a call in a round and a phase, or an engine with a constraint, which it takes or
not.
"""

from __future__ import annotations

import itertools
import random
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from tokdfa import mask as masks
from tokdfa.errors import OptionError, TokenRefused
from tokdfa.lab.declare import Column, Kind, Listing, Pivot, Quotient, Say, Stat, Summary
from tokdfa.lab.declare.cells import readable
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.measure.batch_calls import BATCH_CALLS, LOOP, fill_batch
from tokdfa.lab.measure.clock import collector_off, time_call
from tokdfa.lab.measure.constraint_entry import ConstraintEntry, item_settings
from tokdfa.lab.measure.contenders import rotated
from tokdfa.lab.measure.engines import Engines, EngineSet
from tokdfa.lab.measure.limits import OK, Failure, attempt
from tokdfa.lab.measure.schema_corpus import entry_of_case, read_cases
from tokdfa.lab.measure.settings import Rising, Strict
from tokdfa.lab.measure.warm_up import warm_up
from tokdfa.lab.measure.workloads import derive_seed
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from tokdfa.backends.base import Backend, CompiledConstraint, Matcher
    from tokdfa.constraint import Constraint
    from tokdfa.lab.measure.batch_calls import Masks
    from tokdfa.vocabulary.tokenizers import Tokenizer

Mixture = Literal["different", "one"]
PHASES = ("first", "seen")


class Settings(Strict):
    """The settings of the experiment. `constraints`: those of the experiment, or of `data`, a folder of schemas with
    instances; `sizes`: of batches; `threads`: of calls for batches.
    """

    engines: Engines
    constraints: list[ConstraintEntry] = Field(default_factory=list)
    data: str | None = None
    sizes: Rising = Field(default_factory=lambda: [32, 128])
    mixtures: list[Mixture] = Field(["different", "one"], min_length=1)
    threads: Rising = Field(default_factory=lambda: [1, 2])
    rounds: Annotated[int, Field(ge=1)] = 5


class _Source(NamedTuple):
    """A constraint, and its texts as tokens."""

    constraint: Constraint
    texts: list[list[int]]

    @property
    def places(self) -> list[tuple[list[int], int]]:
        """Texts, and how much of them is read: all places, the ends too."""
        return [(tokens, length) for tokens in self.texts or [[]] for length in range(len(tokens) + 1)]


#: Of each matcher its constraint and the tokens to be read.
_Batch = list[tuple[_Source, list[int]]]


def complete(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings with the schemas of their folder in its place. Raises ConfigError for a folder that has none."""
    if settings.get("data") is None:
        return settings
    entries = [entry_of_case(case) for case in read_cases(Path(settings["data"]))]
    return {**{key: value for key, value in settings.items() if key != "data"}, "constraints": entries}


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one tokenizer. `settings`: its name, ``tokenizer``, and those of `Settings`. Raises OptionError without a
    tokenizer, and if no constraint takes part.
    """
    if "tokenizer" not in settings:
        raise OptionError("an experiment on batches needs tokenizers")
    typed, tokenizer = item_settings(Settings, settings), load_tokenizer(settings["tokenizer"])
    race = _Race(typed, tokenizer)
    sources = race.survey(typed.constraints, tokenizer)
    if not sources:
        known = f"{len(typed.constraints)} constraints is taken by all of {', '.join(race.backends)}"
        raise OptionError(f"none of {known}; name others, or leave an engine out")
    for size, mixture in itertools.product(typed.sizes, typed.mixtures):
        for number in range(-1, typed.rounds):  # the first round is not kept
            batch = _draw(sources, size, mixture, random.Random(derive_seed(seed, size, mixture, number)))
            race.run_round(batch, {"size": size, "mixture": mixture, "round": number})
    return [{"tokenizer": settings["tokenizer"], "status": OK, **row} for row in race.rows]


class _Race:
    """The engines that are left, and the rows so far."""

    def __init__(self, settings: Settings, tokenizer: Tokenizer) -> None:
        self.backends: dict[str, Backend] = {}
        self.rows: list[dict[str, Any]] = []
        self._threads = settings.threads
        engines = EngineSet(settings.engines, tokenizer.vocabulary)
        kinds = {entry.build().kind for entry in settings.constraints}
        for engine in settings.engines:
            backend = engines.backend(engine.name)
            if isinstance(backend, Failure):
                self.rows.append({"engine": engine.name, **backend.columns})
                continue
            self.backends[engine.name] = backend
            for kind in kinds:
                warm_up(backend, kind)

    def survey(self, entries: Sequence[ConstraintEntry], tokenizer: Tokenizer) -> list[_Source]:
        """The constraints that take part. A row for each engine and constraint says how it went."""
        taken = []
        for entry in entries:
            source = _Source(entry.build(), [list(map(int, tokenizer.encode(written))) for written in entry.texts])
            found = {name: attempt(_try_out, backend, source) for name, backend in self.backends.items()}
            takes_part = not any(isinstance(one, Failure) for one in found.values())
            if takes_part:
                taken.append(source)
            for name, one in found.items():
                row = {"engine": name, "constraint": entry.label, "takes_part": takes_part, "outcome": OK}
                self.rows.append({**row, **({"outcome": one.kind} if isinstance(one, Failure) else one)})
        return taken

    def run_round(self, batch: _Batch, place: dict[str, Any]) -> None:
        """All calls of all engines on one batch; an engine that fails is out of the race, and loses its times."""
        calls = [
            (name, threads)
            for threads in (LOOP, *self._threads)  # no engine's calls one after another: the second finds warm caches
            for name, backend in self.backends.items()
            if threads == LOOP or backend.name in BATCH_CALLS
        ]
        with collector_off():
            for name, threads in rotated(calls, max(place["round"], 0)):
                if name not in self.backends:
                    continue
                found = attempt(_run_call, self.backends[name], batch, threads)
                if isinstance(found, Failure):
                    del self.backends[name]
                    self.rows = [row for row in self.rows if row["engine"] != name or "ns" not in row]
                    self.rows.append({"engine": name, **found.columns})
                elif place["round"] >= 0:
                    at = {"engine": name, "threads": threads, **place}
                    self.rows += [{**at, "phase": phase, "ns": ns} for phase, ns in zip(PHASES, found, strict=True)]


def _try_out(backend: Backend, source: _Source) -> dict[str, int] | Failure:
    """The nanoseconds of compiling and of all masks along the texts; a Failure if the engine refuses a text."""
    compiled, compile_ns = time_call(partial(backend.compile, source.constraint))
    mask, along_ns = masks.allocate_mask(backend.vocab.size), 0
    for tokens in source.texts:
        matcher = compiled.start()
        for token in tokens:
            along_ns += time_call(partial(matcher.fill_mask, mask))[1]
            try:
                matcher.advance(token)
            except TokenRefused as refusal:
                return Failure("text_refused", str(refusal))
    return {"compile_ns": compile_ns, "along_ns": along_ns, "along": sum(map(len, source.texts))}


def _walked(compiled: CompiledConstraint, tokens: Sequence[int]) -> Matcher:
    """A matcher that has read `tokens` and filled no mask."""
    matcher = compiled.start()
    for token in tokens:
        matcher.advance(token)
    return matcher


def _draw(sources: Sequence[_Source], size: int, mixture: str, chance: random.Random) -> _Batch:
    """The matchers of a batch: constraints in turn, each at places of its own, as long as there are some."""
    chosen = chance.sample(sources, 1 if mixture == "one" else min(size, len(sources)))
    places = [itertools.cycle(chance.sample(one.places, len(one.places))) for one in chosen]
    turns = itertools.islice(itertools.cycle(zip(chosen, places, strict=True)), size)
    return [(source, tokens[:length]) for source, of_source in turns for tokens, length in [next(of_source)]]


def _run_call(backend: Backend, batch: _Batch, threads: int) -> list[int] | Failure:
    """The nanoseconds of both phases; a Failure if masks of a call for batches are not those of the loop."""
    sources = {id(source): source for source, _ in batch}
    compiled = {name: backend.compile(source.constraint) for name, source in sources.items()}

    def matchers() -> list[Matcher]:
        return [_walked(compiled[id(source)], tokens) for source, tokens in batch]

    # written once before, as a server's buffer is: the first write to a page takes longer
    out: Masks = np.full((len(PHASES), len(batch), masks.mask_words(backend.vocab.size)), -1, dtype=np.int32)
    taken = [time_call(partial(fill_batch, backend.name, matchers(), rows, threads))[1] for rows in out]
    if threads != LOOP:
        expected = np.zeros_like(out[0])
        fill_batch(backend.name, matchers(), expected, LOOP)
        for phase, rows in zip(PHASES, out, strict=True):
            differing = int((rows != expected).any(axis=1).sum())
            if differing:
                called = f"{differing} of {len(batch)} {phase} masks of a batch, {threads} threads,"
                return Failure("error", f"{called} are not those of the loop")
    return taken


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The timed calls, with the loop's time over theirs as `gain`; those of the largest batches; the constraints that
    take part, and those that do not, by engine; engines that failed.
    """
    place = ["tokenizer", "engine", "mixture", "size", "phase", "round"]
    known = [*place, "threads", "ns", "constraint", "takes_part", "outcome"]
    rows = rows.reindex(columns=[*dict.fromkeys([*rows, *known])])
    timed = rows[rows["ns"].notna()].astype({"threads": int, "size": int, "ns": float})
    timed = timed.sort_values(["tokenizer", "mixture", "size", "phase", "threads"], kind="stable")
    timed = timed.assign(call=timed["threads"].map(_call_name), rate=timed["size"] / timed["ns"] * 1e9)
    timed["mask_ns"], timed["way"] = timed["ns"] / timed["size"], timed["engine"] + " " + timed["call"]
    loop = timed[timed["threads"] == LOOP].set_index(place)["ns"].rename("loop_ns")
    timed = timed.join(loop, on=place)
    timed["gain"] = timed["loop_ns"] / timed["ns"]
    surveyed = rows[rows["constraint"].notna()].astype({"takes_part": bool})
    return {
        "": timed,
        "largest": timed[timed["size"] == timed["size"].max()],
        "surveyed": surveyed,
        "taken": surveyed[surveyed["takes_part"]],
        "left_out": surveyed[surveyed["outcome"] != OK].assign(outcome=lambda lost: lost["outcome"].map(readable)),
        "failed": rows[rows["status"] != OK],
    }


def _call_name(threads: int) -> str:
    return "loop" if threads == LOOP else f"batch, {threads} thread{'s'[: threads > 1]}"


_PLACE = ("tokenizer", "mixture", "size", "phase", "call")


def _rates(phase: str, what: str) -> Say:
    return Say(
        "{way} {rate}",
        per=("way",),
        frame="largest",
        where=f"phase == '{phase}' and mixture == 'different'",
        lead=f"Masks a second of {{size:first}} matchers of different constraints, {what}:",
    )


KIND = Kind(
    measure=measure,
    settings=Settings,
    complete=complete,
    all_constraints=True,
    threads=2,
    columns=(
        *map(text, ("tokenizer", "engine", "call", "way", "phase", "constraint", "outcome", "status", "message")),
        text("mixture", "constraints", "of the matchers of a batch"),
        Column("size", "matchers"),
        Column("rate", "masks a second", "", "higher"),
        seconds("ns", "time of a batch", "filling the masks of all its matchers"),
        seconds("mask_ns", "time of a mask", "the time of a batch over its masks"),
        Column("gain", "times as fast as the loop", "ratio", "higher", "of the same engine, round by round"),
        seconds("compile_ns", "compile time", "of a constraint that takes part"),
        seconds("along_ns", "all masks along the texts", "of a constraint that takes part"),
    ),
    case=_PLACE,
    frames=frames,
    tables=(
        Pivot(
            "batches",
            "Masks a second",
            "Median of the rounds, and the time of a mask. First: of constraints compiled just now; seen: filled for "
            "other matchers before. The best of a row is bold.",
            rows=_PLACE,
            value="rate",
            detail="mask_ns",
        ),
        Pivot(
            "gains",
            "Calls for batches over loops",
            "How many times as fast as a loop over fill_mask the engine's own call is; median of the rounds.",
            rows=_PLACE,
            value="gain",
            ratio=False,
            where="threads > 0",
        ),
        Summary(
            "trials",
            "Constraints that nobody has had before",
            "Of those that take part: compiling, and the masks along their texts, one by one; in no time above.",
            by=("tokenizer", "engine"),
            values=(
                *(Stat("constraint", "count", "constraints"), "compile_ns", "compile_ns:p99"),
                Stat("compile_ns", "sum", "compiling all of them"),
                Quotient("along_ns:sum", "along:sum", "time of a mask, mean", "s", "lower"),
            ),
            frame="taken",
        ),
        Summary(
            "left_out",
            "Constraints left out",
            "A constraint that one engine refuses, or of which it refuses a text, is in no batch.",
            by=("tokenizer", "engine", "outcome"),
            values=(Stat("constraint", "count", "constraints"), Stat("constraint", "first", "such as")),
            frame="left_out",
        ),
        Listing(
            "not_measured",
            "Engines without times",
            shown=("tokenizer", "engine", "status", "message"),
            frame="failed",
        ),
    ),
    sentences=(
        _rates("first", "first masks"),
        _rates("seen", "masks seen before"),
        Say(
            "{way} {gain}",
            per=("way",),
            where="threads > 0",
            lead="Times as fast as the engine's own loop, median of all batches:",
        ),
        Say(
            "{tokenizer}: all engines take {taken} of {all} constraints, and these take part.",
            per=("tokenizer",),
            blanks={
                "taken": Stat("constraint", "distinct", where="takes_part"),
                "all": Stat("constraint", "distinct"),
            },
            frame="surveyed",
        ),
        Say("{engine} has no times: {message:first}", per=("engine",), frame="failed"),
    ),
)
