"""The experiment ``kind: cold_start``: how long does a new process take to its first mask?

A server that starts, a notebook that is opened and a command line pay for what long measurements call warm. Here every
sample is a process of its own (`tokdfa.lab.measure.cold_start_process`), whose life is cut into phases. Their time is
the processor's, of all threads, so that what else the machine does counts little.

The columns say what each phase is. In ``code`` the engine's code is loaded: for ours that is reading kernels, which
``tokdfa run`` has compiled before. In ``again`` is left what an engine does not make once for a vocabulary.

A second process reads from the disk what the first has compiled and pickled: ``stored`` is that and its first mask, in
place of ``first``. Engines that store no tables compile again then.

The processes of an item have a cache folder of their own, so that the first finds nothing that others left. Engines
take turns, A B C, B C A, ... Rows: one for each engine, medians of its samples in nanoseconds.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from tokdfa.core.kernel_store import kernel_folder
from tokdfa.lab.declare import Bars, Kind, Listing, Say, Summary, Tally
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.measure.cold_start_process import PHASES
from tokdfa.lab.measure.constraint_entry import item_constraint, item_settings
from tokdfa.lab.measure.contenders import rotated
from tokdfa.lab.measure.engines import Engines  # noqa: TC001 (pydantic reads the annotation)
from tokdfa.lab.measure.limits import OK, Failure
from tokdfa.lab.measure.settings import Strict
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    import pandas as pd

#: Seconds that a process may take.
PROCESS_SECONDS = 120.0
#: What is kept of the last words of a process that failed.
LAST_WORDS = 300


class Settings(Strict):
    """`processes`: for each engine."""

    engines: Engines
    processes: Annotated[int, Field(ge=1)] = 5


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one tokenizer and one constraint; a row for each engine, without times if it has failed once.

    `settings`: tokenizer (name), a constraint as experiments spell it, and those of `Settings`. Nothing is random.
    """
    typed, name = item_settings(Settings, settings), settings["tokenizer"]
    constraint = item_constraint(settings).build()
    samples: dict[str, list[list[int]]] = {engine.name: [] for engine in typed.engines}
    failures: dict[str, Failure] = {}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(typed.processes):
            for engine in rotated(typed.engines, turn):
                if engine.name not in failures:
                    order = name, constraint, engine.backend, engine.options, Path(folder, "stored")
                    found = _sample((*order, False), folder)
                    loaded = found if isinstance(found, Failure) else _sample((*order, True), folder)
                    if isinstance(found, Failure) or isinstance(loaded, Failure):
                        failures[engine.name] = next(one for one in (found, loaded) if isinstance(one, Failure))
                    else:
                        samples[engine.name].append([*found, sum(found[:-1]), loaded[-1]])
    place = {"tokenizer": name, "vocab_size": load_tokenizer(name).vocabulary.size, "constraint": constraint.name}
    columns = [*(f"ns_{phase}" for phase in PHASES), "ns_until_first", "ns_stored"]
    rows = []
    for label, taken in samples.items():
        row = {**place, "engine": label, "status": OK, "message": "", "processes": len(taken)}
        medians = dict(zip(columns, np.median(taken, axis=0).tolist() if taken else (), strict=False))
        rows.append(row | (failures[label].columns if label in failures else medians))
    return rows


def _sample(order: tuple[Any, ...], folder: str) -> list[int] | Failure:
    """The nanoseconds of each phase of one process."""
    # kernels stay where they are; everything else that is kept between processes is the item's own
    caches = {"NUMBA_CACHE_DIR": str(kernel_folder()), "XDG_CACHE_HOME": folder}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tokdfa.lab.measure.cold_start_process"],
            input=pickle.dumps(order),
            capture_output=True,
            env={**os.environ, **caches},
            timeout=PROCESS_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Failure("timeout", f"a process took longer than {PROCESS_SECONDS:g} s")
    if done.returncode:
        words = " ".join(done.stderr.decode(errors="replace").split())
        return Failure("error", words[-LAST_WORDS:] or f"a process ended with {done.returncode}")
    answer: list[int] | Failure = pickle.loads(done.stdout)
    return answer


_BEFORE = tuple(
    seconds(f"ns_{name}", title, meaning)
    for name, title, meaning in (
        ("python", "Python", "until the first line of the program"),
        ("import", "import", "the package and the class of the backend"),
        ("tokenizer", "tokenizer and trie", "loading the tokenizer, and its token trie"),
        ("code", "the engine's code", "a compile and a first mask over the 257 tokens of single bytes"),
        ("first", "compile, tables, first mask", "over the real vocabulary"),
    )
)
_SHOWN = (*(column.name for column in _BEFORE), "ns_until_first", "ns_again", "ns_stored")


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows, and those that succeeded with a row for each phase."""
    done = rows[rows["status"] == OK].assign(case=lambda known: known["tokenizer"] + ", " + known["constraint"])
    heads = {column.name: column.head for column in _BEFORE}
    phases = done.melt(["case", "engine"], list(heads), "phase", "ns")
    return {"": rows, "phases": phases.assign(phase=phases["phase"].map(heads))}


KIND = Kind(
    measure=measure,
    settings=Settings,
    columns=(
        text("tokenizer"),
        text("constraint"),
        text("engine"),
        text("status"),
        text("message", "reason"),
        *_BEFORE,
        seconds("ns_until_first", "all until the first mask", "of the processor, all threads"),
        seconds("ns_again", "the same constraint again", "compiled anew, and a first mask"),
        seconds("ns_stored", "from disk", "unpickled in a new process, and a first mask; without tables, compiled"),
        seconds("ns", "time of the phase"),
    ),
    case=("tokenizer", "constraint"),
    frames=frames,
    tables=(
        Summary(
            "cold_start",
            "From nothing to the first mask",
            "Processor time of all threads, medians over processes of their own, the least bold. Kernels are kept.",
            by=("tokenizer", "constraint", "engine"),
            values=_SHOWN,
            where="status == 'ok'",
            brief=("tokenizer", "constraint", "engine", _BEFORE[3].head, _BEFORE[4].head, "all until the first mask"),
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
