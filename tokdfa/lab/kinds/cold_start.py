"""The experiment ``kind: cold_start``: how long does a new process take to its first mask?

A server that starts, a notebook that is opened and a command line pay for what long measurements call warm. Here every
sample is a process of its own (`tokdfa.lab.measure.cold_start_process`), whose life is cut into phases:

- ``python``: from asking for the process to the first line of its program;
- ``import``: the package and the class of the backend;
- ``tokenizer``: loading it, and its token trie;
- ``code``: compiling the constraint and making a first mask over the 257 tokens of single bytes: the engine's code is
  loaded. For ours that is numba's cache of kernels, which ``tokdfa run`` has compiled before;
- ``first``: compiling the constraint and making a first mask over the real vocabulary, with all that an engine makes
  once for a vocabulary;
- ``again``: the same constraint compiled anew, and a first mask: what is left when all that is done.

A *start* is an engine, and whether it begins with tables that an earlier process has written to disk. The earlier one
is started before anything is timed, with a cache folder of the item's own, so that no start finds what others left.
Starts take turns, A B C, B C A, ... Rows: one for each start, medians of its samples in nanoseconds.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.core.jit import kernel_folder
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.measure.cold_start_process import PHASES, Order
from tokdfa.lab.measure.constraint_entry import ConstraintEntry
from tokdfa.lab.measure.grammar_replay import chosen
from tokdfa.lab.measure.limits import OK, Failure
from tokdfa.lab.measure.measure import rotated
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tokdfa.constraint import Constraint

#: Seconds that a process may take.
PROCESS_SECONDS = 120.0
#: What is kept of the last words of a process that failed.
LAST_WORDS = 300


@dataclass(frozen=True)
class Start:
    """A backend, the options by which it begins, and whether a process before has left it tables on disk."""

    backend: str
    options: Mapping[str, Any] = field(default_factory=dict)
    from_disk: bool = False


#: Starts by label.
STARTS: dict[str, Start] = {
    "pushdown_trie": Start("pushdown_trie"),
    "pushdown_trie from disk": Start("pushdown_trie", {"disk": True}, from_disk=True),
    "earley_trie": Start("earley_trie"),
    "earley_trie from disk": Start("earley_trie", {"disk_partitions": True}, from_disk=True),
    "llguidance": Start("llguidance"),
    "glrmask": Start("glrmask"),
}


def check_settings(settings: dict[str, Any]) -> None:
    """Raise OptionError or UnknownNameError if `settings` of an experiment file are not what `run_item` takes."""
    known = ("starts", "processes")
    for name in settings:
        if name not in known:
            raise UnknownNameError("setting of cold_start", str(name), known)
    chosen(settings, "starts", STARTS)
    processes = settings.get("processes", 5)
    if type(processes) is not int or processes < 1:
        raise OptionError(f"settings.processes must be a positive int, not {processes!r}")


@dataclass
class _Contender:
    label: str
    start: Start
    failure: Failure | None = None
    samples: list[dict[str, int]] = field(default_factory=list)


def run_item(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one tokenizer and one constraint; a row for each start.

    `settings`: tokenizer (name), a constraint as experiments spell it, starts (labels of `STARTS`; all of them by
    default), processes (for each start, default 5). `seed` decides nothing: the processes do what they are told.
    """
    del seed
    entry = {name: settings[name] for name in ConstraintEntry.model_fields if name in settings}
    constraint = ConstraintEntry(**entry).build()
    vocab = load_tokenizer(settings["tokenizer"]).vocabulary
    contenders = [_Contender(label, STARTS[label]) for label in chosen(settings, "starts", STARTS)]
    with tempfile.TemporaryDirectory() as folder:
        for one in contenders:
            if one.start.from_disk:  # the first writes, the second finds out whether that can be read
                _sample(one, settings["tokenizer"], constraint, folder, save=True)
        for turn in range(settings.get("processes", 5)):
            for one in rotated(contenders, turn):
                measured = _sample(one, settings["tokenizer"], constraint, folder)
                if measured is not None:
                    one.samples.append(measured)
    place = {
        "tokenizer": settings["tokenizer"],
        "vocab_size": vocab.size,
        "constraint": settings.get("label") or constraint.name,
    }
    return [{**place, **_row(one)} for one in contenders]


def _sample(
    one: _Contender, tokenizer: str, constraint: Constraint, folder: str, save: bool = False
) -> dict[str, int] | None:
    """Phase -> nanoseconds of one process; None if it fails, or one of this start has failed before."""
    if one.failure is not None:
        return None
    # kernels stay where they are; everything else that is kept between processes is the item's own
    caches = {"NUMBA_CACHE_DIR": str(kernel_folder()), "XDG_CACHE_HOME": folder}
    order = Order(tokenizer, constraint, one.start.backend, dict(one.start.options), save, time.perf_counter_ns())
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
        one.failure = Failure("timeout", f"a process took longer than {PROCESS_SECONDS:g} s")
        return None
    if done.returncode:
        words = " ".join(done.stderr.decode(errors="replace").split())
        one.failure = Failure("error", words[-LAST_WORDS:] or f"a process ended with {done.returncode}")
        return None
    answer = pickle.loads(done.stdout)
    if isinstance(answer, Failure):
        one.failure = answer
        return None
    measured: dict[str, int] = answer
    return measured


def _row(one: _Contender) -> dict[str, Any]:
    samples = one.samples if one.failure is None else []
    medians = {
        f"ns_{phase}": float(np.median([sample[phase] for sample in samples])) if samples else None for phase in PHASES
    }
    until_first = [sum(sample[phase] for phase in PHASES[:-1]) for sample in samples]
    return {
        "start": one.label,
        "backend": one.start.backend,
        "from_disk": one.start.from_disk,
        "status": OK if one.failure is None else one.failure.kind,
        "message": "" if one.failure is None else one.failure.message,
        "processes": len(samples),
        **medians,
        "ns_until_first": float(np.median(until_first)) if samples else None,
    }
