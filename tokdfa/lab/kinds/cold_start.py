"""The experiment ``kind: cold_start``: how long does a new process take to its first mask?

A server that starts, a notebook that is opened and a command line pay for what long measurements call warm. Here every
sample is a process of its own (`tokdfa.lab.measure.cold_start_process`), whose life is cut into phases. Each phase has
two times: that of the processor, in all threads, which other work on the machine changes little, and the clock's.

The columns say what each phase is. In ``again`` is left what an engine does not make once for a vocabulary.

``home``: in an *empty home* nothing is kept from an earlier process; a *used home* had one such process before. From
there ``stored`` reads what a process has compiled and pickled, and makes a mask; engines that store no tables compile
again then.

Engines take turns, A B C, B C A, ... Rows: one for each engine and home, medians of its samples in nanoseconds.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from tokdfa.lab.declare import Bars, Kind, Listing, Say, Summary, Tally
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.measure.cold_start_process import PHASES, Answer
from tokdfa.lab.measure.constraint_entry import item_constraint, item_settings
from tokdfa.lab.measure.contenders import rotated
from tokdfa.lab.measure.engines import Engines  # noqa: TC001 (pydantic reads the annotation)
from tokdfa.lab.measure.limits import OK, Failure
from tokdfa.lab.measure.settings import Strict
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

#: Seconds that a process may take.
PROCESS_SECONDS = 120.0
#: What is kept of the last words of a process that failed.
LAST_WORDS = 300
HOMES = ("empty home", "used home")
COLUMNS = (
    *(f"{unit}_{phase}" for unit in ("ns", "clock_ns") for phase in PHASES),
    "ns_until_first",
    "clock_ns_until_first",
)


class Settings(Strict):
    """`processes`: for each engine and home."""

    engines: Engines
    processes: Annotated[int, Field(ge=1)] = 5


class Starts:
    """The samples of one engine by home."""

    def __init__(self, order: tuple[Any, ...]) -> None:
        self.order = order
        self.samples: dict[str, list[list[int]]] = {home: [] for home in HOMES}
        self.stored: list[int] = []

    def sample(self) -> None:
        """One process in an empty home, and two more in that home. Raises Failed."""
        with tempfile.TemporaryDirectory() as folder:
            for home in HOMES:
                processor, clock = self._run(folder)
                self.samples[home].append([*processor, *clock, sum(processor[:-1]), sum(clock[:-1])])
            self.stored.append(self._run(folder, loads=True).processor[-1])

    def _run(self, folder: str, loads: bool = False) -> Answer:
        return _run_process((*self.order, Path(folder, "stored"), loads), folder)

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row for each home, with medians."""
        for home, taken in self.samples.items():
            row = {"home": home, "status": OK, "message": "", "processes": len(taken)}
            if home == "used home":
                row["ns_stored"] = float(np.median(self.stored))
            yield row | dict(zip(COLUMNS, np.median(taken, axis=0).tolist(), strict=True))


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one tokenizer and one constraint; a row for each engine and home, or one without times if it failed once.

    `settings`: tokenizer (name), a constraint as experiments spell it, and those of `Settings`. Nothing is random.
    """
    typed, name = item_settings(Settings, settings), settings["tokenizer"]
    constraint = item_constraint(settings).build()
    starts = {engine.name: Starts((name, constraint, engine.backend, engine.options)) for engine in typed.engines}
    failures: dict[str, Failure] = {}
    for turn in range(typed.processes):
        for engine in rotated(typed.engines, turn):
            if engine.name not in failures:
                try:
                    starts[engine.name].sample()
                except Failed as error:
                    failures[engine.name] = error.failure
    place = {"tokenizer": name, "vocab_size": load_tokenizer(name).vocabulary.size, "constraint": constraint.name}
    rows: list[dict[str, Any]] = []
    for label, taken in starts.items():
        if label in failures:
            rows.append({**place, "engine": label, "processes": 0, **failures[label].columns})
        else:
            rows += [{**place, "engine": label, **row} for row in taken.rows()]
    return rows


class Failed(Exception):
    """A process failed."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


def _run_process(order: tuple[Any, ...], folder: str) -> Answer:
    """What a process answers whose caches are in a folder. Raises Failed."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tokdfa.lab.measure.cold_start_process"],
            input=pickle.dumps((time.monotonic_ns(), *order)),
            capture_output=True,
            env={**os.environ, "XDG_CACHE_HOME": folder},
            timeout=PROCESS_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Failed(Failure("timeout", f"a process took longer than {PROCESS_SECONDS:g} s")) from None
    if done.returncode:
        words = " ".join(done.stderr.decode(errors="replace").split())
        raise Failed(Failure("error", words[-LAST_WORDS:] or f"a process ended with {done.returncode}"))
    answer: tuple[list[int], list[int]] | Failure = pickle.loads(done.stdout)
    if isinstance(answer, Failure):
        raise Failed(answer)
    return Answer(*answer)


_BEFORE = tuple(
    seconds(f"ns_{name}", title, meaning)
    for name, title, meaning in (
        ("python", "Python", "until the first line of the program"),
        ("import", "import", "the package and the class of the backend"),
        ("tokenizer", "tokenizer and trie", "loading the tokenizer, and its token trie"),
        ("backend", "backend", "made for the vocabulary"),
        ("compile", "compile", "the constraint"),
        ("mask", "first mask", "with a matcher"),
    )
)
_SHOWN = (*(column.name for column in _BEFORE), "ns_until_first", "clock_ns_until_first", "ns_again", "ns_stored")
_BY_CLOCK = tuple(seconds(f"clock_{column.name}", column.head, f"{column.meaning}, by the clock") for column in _BEFORE)


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows, and those that succeeded with a row for each phase."""
    done = rows[rows["status"] == OK].assign(case=lambda known: known[list(KIND.case)].agg(", ".join, axis=1))
    heads = {column.name: column.head for column in _BEFORE}
    phases = done.melt(["case", "engine"], list(heads), "phase", "ns")
    return {"": rows, "phases": phases.assign(phase=phases["phase"].map(heads))}


KIND = Kind(
    measure=measure,
    settings=Settings,
    columns=(
        text("tokenizer"),
        text("constraint"),
        text("home", meaning="whether processes before it have kept something"),
        text("engine"),
        text("status"),
        text("message", "reason"),
        *_BEFORE,
        *_BY_CLOCK,
        seconds("ns_until_first", "all until the first mask", "of the processor, all threads"),
        seconds("clock_ns_until_first", "the same by the clock", "from the start of the process"),
        seconds("clock_ns_again", "the same constraint again, by the clock", "compiled anew, and a first mask"),
        seconds("ns_again", "the same constraint again", "compiled anew, and a first mask"),
        seconds("ns_stored", "from disk", "unpickled in a new process, and a first mask; without tables, compiled"),
        seconds("ns", "time of the phase"),
    ),
    case=("tokenizer", "constraint", "home"),
    frames=frames,
    tables=(
        Summary(
            "cold_start",
            "From nothing to the first mask",
            "Processor time of all threads, medians over processes of their own, the least bold.",
            by=("tokenizer", "constraint", "home", "engine"),
            values=_SHOWN,
            where="status == 'ok'",
            brief=("tokenizer", "constraint", "home", "engine", _BEFORE[4].head, "all until the first mask"),
        ),
        Listing(
            "broken",
            "Failed starts",
            shown=("tokenizer", "constraint", "engine", "status", "message"),
            where="status != 'ok'",
        ),
    ),
    charts=(
        Bars(
            "cold_start",
            "Phases before the first mask",
            "Processor time, medians over processes of their own; the phases come one after another.",
            x="ns",
            rows="engine",
            by="phase",
            panels="case",
            frame="phases",
        ),
    ),
    sentences=(
        Say(
            "{engine} {whole}",
            per=("engine",),
            blanks={"whole": "ns_until_first", "low": "ns_until_first:min", "high": "ns_until_first:max"},
            where="status == 'ok'",
            lead="A new process has its first mask after {low} to {high} of the processor, in the median of the cases:",
        ),
        Tally("starts"),
    ),
)
