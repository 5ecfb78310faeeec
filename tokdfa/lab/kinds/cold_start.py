"""The experiment ``kind: cold_start``: how long does a new process take to its first mask?

A server that starts, a notebook that is opened and a command line pay for what long measurements call warm. Here every
sample is a process of its own (`tokdfa.lab.measure.cold_start_process`), whose life is cut into phases. Their time is
the processor's, of all threads, so that what else the machine does counts little:

- ``python``: until the first line of its program;
- ``import``: the package and the class of the backend;
- ``tokenizer``: loading it, and its token trie;
- ``code``: compiling the constraint and making a first mask over the 257 tokens of single bytes: the engine's code is
  loaded. For ours that is reading kernels, which ``tokdfa run`` has compiled before;
- ``first``: compiling the constraint and making a first mask over the real vocabulary, with all that an engine makes
  once for a vocabulary;
- ``again``: the same constraint compiled anew, and a first mask: what is left when all that is done.

A *start* is an engine. Its processes have a cache folder of the item's own, so that none finds what others left.
Starts take turns, A B C, B C A, ... Rows: one for each start, medians of its samples in nanoseconds.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator

from tokdfa.core.kernel_store import kernel_folder
from tokdfa.errors import UnknownNameError
from tokdfa.lab.declare import Against, Bars, Kind, Listing, Say, Summary, Tally
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.measure.cold_start_process import PHASES, Order
from tokdfa.lab.measure.constraint_entry import item_constraint, item_settings
from tokdfa.lab.measure.limits import OK, Failure
from tokdfa.lab.measure.measure import rotated
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    import pandas as pd

    from tokdfa.constraint import Constraint

#: Seconds that a process may take.
PROCESS_SECONDS = 120.0
#: What is kept of the last words of a process that failed.
LAST_WORDS = 300


class Start(NamedTuple):
    """A backend, and the options by which it begins."""

    backend: str
    options: dict[str, Any] = {}  # noqa: RUF012 (nobody writes to it)


#: Starts by label.
STARTS: dict[str, Start] = {
    "pushdown_trie": Start("pushdown_trie"),
    "earley_trie": Start("earley_trie"),
    "llguidance": Start("llguidance"),
    "glrmask": Start("glrmask"),
}


class Settings(BaseModel):
    """`starts`: labels of `STARTS`, all of them by default; `processes` for each start."""

    model_config = ConfigDict(extra="forbid", strict=True)

    starts: Annotated[list[str], Field(min_length=1)] = list(STARTS)
    processes: Annotated[int, Field(ge=1)] = 5

    @field_validator("starts")
    @classmethod
    def _are_known(cls, starts: list[str]) -> list[str]:
        for start in starts:
            if start not in STARTS:
                raise UnknownNameError("entry of settings.starts", start, STARTS)
        return starts


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one tokenizer and one constraint; a row for each start. Nothing is random.

    `settings`: tokenizer (name), a constraint as experiments spell it, and those of `Settings`.
    """
    wanted = item_settings(Settings, settings)
    constraint = item_constraint(settings).build()
    samples: dict[str, list[dict[str, int]]] = {label: [] for label in wanted.starts}
    failures: dict[str, Failure] = {}

    with tempfile.TemporaryDirectory() as folder:
        for turn in range(wanted.processes):
            for label in rotated(wanted.starts, turn):
                if label not in failures:
                    found = _sample(STARTS[label], settings["tokenizer"], constraint, folder)
                    if isinstance(found, Failure):
                        failures[label] = found
                    else:
                        samples[label].append(found)
    place = {
        "tokenizer": settings["tokenizer"],
        "vocab_size": load_tokenizer(settings["tokenizer"]).vocabulary.size,
        "constraint": settings.get("label") or constraint.name,
    }
    return [{**place, **_row(label, samples[label], failures.get(label))} for label in wanted.starts]


def _sample(start: Start, tokenizer: str, constraint: Constraint, folder: str) -> dict[str, int] | Failure:
    """Phase -> nanoseconds of one process."""
    # kernels stay where they are; everything else that is kept between processes is the item's own
    caches = {"NUMBA_CACHE_DIR": str(kernel_folder()), "XDG_CACHE_HOME": folder}
    order = Order(tokenizer, constraint, start.backend, start.options)
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
    answer: dict[str, int] | Failure = pickle.loads(done.stdout)
    return answer


def _row(label: str, samples: list[dict[str, int]], failure: Failure | None) -> dict[str, Any]:
    """Medians; none of a start that has failed once."""
    taken = [] if failure else [[*sample.values(), sum(sample[name] for name in PHASES[:-1])] for sample in samples]
    medians = np.median(taken, axis=0).tolist() if taken else [None] * (len(PHASES) + 1)
    return {
        "start": label,
        "backend": STARTS[label].backend,
        "status": failure.kind if failure else OK,
        "message": failure.message if failure else "",
        "processes": len(taken),
        **dict(zip([*(f"ns_{name}" for name in PHASES), "ns_until_first"], medians, strict=True)),
    }


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
_SHOWN = (*(column.name for column in _BEFORE), "ns_until_first", "ns_again")


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows, and those that succeeded with a row for each phase."""
    done = rows[rows["status"] == OK].assign(case=lambda known: known["tokenizer"] + ", " + known["constraint"])
    heads = {column.name: column.head for column in _BEFORE}
    phases = done.melt(["case", "start"], list(heads), "phase", "ns")
    return {"": rows, "phases": phases.assign(phase=phases["phase"].map(heads))}


KIND = Kind(
    measure=measure,
    settings=Settings,
    columns=(
        text("tokenizer"),
        text("constraint"),
        text("start"),
        text("status"),
        text("message", "reason"),
        *_BEFORE,
        seconds("ns_until_first", "all until the first mask", "of the processor, all threads"),
        seconds("ns_again", "the same constraint again", "compiled anew, and a first mask"),
        seconds("ns", "time of the phase"),
    ),
    engine="start",
    reference="llguidance",
    case=("tokenizer", "constraint"),
    frames=frames,
    tables=(
        Summary(
            "cold_start",
            "From nothing to the first mask",
            "Processor time of all threads, medians over processes of their own, the least bold. Kernels are kept.",
            by=("tokenizer", "constraint", "start"),
            values=_SHOWN,
            where="status == 'ok'",
            brief=("tokenizer", "constraint", "start", _BEFORE[3].head, _BEFORE[4].head, "all until the first mask"),
        ),
        Listing(
            "broken",
            "Failed starts",
            shown=("tokenizer", "constraint", "start", "status", "message"),
            where="status != 'ok'",
        ),
    ),
    charts=(
        Bars(
            "cold_start",
            "Phases before the first mask",
            "Processor time, medians over processes of their own; the phases come one after another.",
            x="ns",
            rows="start",
            by="phase",
            panels="case",
            frame="phases",
        ),
    ),
    sentences=(
        Say(
            "{start} {whole}",
            per=("start",),
            blanks={"whole": "ns_until_first", "low": "ns_until_first:min", "high": "ns_until_first:max"},
            where="status == 'ok'",
            lead="A new process has its first mask after {low} to {high} of the processor, in the median of the cases:",
        ),
        Against(("ns_first", "ns_until_first"), where="status == 'ok'"),
        Tally("starts"),
    ),
)
