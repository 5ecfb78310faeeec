"""The experiment ``kind: maskbench``: JSON schemas with valid and invalid instances, every engine on the same work.

MaskBench (JSONSchemaBench, arXiv 2501.10868) is a folder of *cases*: a schema and its tests, instances that must be
accepted or stopped. `tokdfa.lab.measure.maskbench_replay` says what is done with a case, what is timed, and which
outcomes there are. The setting ``data`` names the folder; its files are read by `tokdfa.lab.measure.schema_corpus`, as
are those of the JSON-Schema-Test-Suite, which the setting ``suite`` names instead. There a valid instance must be
accepted with its end, and an invalid one refused, at a token or at its end.

An *engine* is a backend with options, and with those of `tokdfa.constraint.JsonSchema`. All engines get the same cases
in the same order. One that is too slow for all may get a *sample*: the first so many cases of one seeded shuffle, so
smaller samples are parts of larger ones; reports set the other engines beside it on the same sample.

An item is a *chunk*: one engine, and about 25 cases one after another in one process, with a limit on the time of a
case and on memory (`tokdfa.lab.measure.maskbench_process`). The engine is created and warmed up on a small schema
first, so what it makes once for a vocabulary is there, and what it shares between schemas stays from case to case;
every schema is compiled anew. With ``chunk: 1`` no case finds anything of another. Engines take turns, chunk by chunk.
The garbage collector is off while a case is measured and runs after it; one thread
(`tokdfa.lab.measure.clock.ONE_THREAD`).

With the setting ``walks`` each case is also given so many random walks once it has been judged and timed
(`tokdfa.lab.measure.maskbench_walks`): does the engine ever lead to a dead end, or to a text that is not valid?

A row is an engine and a case. What its process ran into, be it a limit or its death, costs that case only.
"""

from __future__ import annotations

import hashlib
import random
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from tokdfa.backends.registry import create_backend
from tokdfa.constraint import JsonSchema
from tokdfa.errors import OptionError
from tokdfa.lab.measure.clock import clock_overhead_ns
from tokdfa.lab.measure.engines import Engine, check_engines
from tokdfa.lab.measure.limits import Failure, Limits
from tokdfa.lab.measure.maskbench_process import READY, Found, Unprepared, in_forks
from tokdfa.lab.measure.maskbench_replay import (
    CRASH,
    MAX_MESSAGE,
    MEMORY,
    REFUSED,
    TIMEOUT,
    UNAVAILABLE,
    described,
    run_case,
)
from tokdfa.lab.measure.maskbench_walks import Judge, Walker, Walks, hints_of, walk_case
from tokdfa.lab.measure.schema_corpus import read_cases, read_suite
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.lab.measure.warm_up import warm_up
from tokdfa.lab.measure.workloads import canonical_json, derive_seed
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.lab.measure.schema_corpus import SchemaCase

Count = Annotated[int, Field(ge=1, le=1_000_000)]


class BenchEngine(Engine):
    """A backend with its options. `json_schema`: options of the constraint, such as ``order: any``; `sample`: how many
    of the cases it gets, all by default.
    """

    json_schema: dict[str, Any] = Field(default_factory=dict)
    sample: Count | None = None

    def constraint(self, schema: str) -> JsonSchema:
        """A schema as this engine gets it. Raises OptionError, and TypeError for an option that does not exist."""
        return JsonSchema(schema, label="schema", **self.json_schema)


class Settings(BaseModel):
    """The settings of the experiment.

    `data` or `suite`: the folder, relative to the current one (``{folder: NAME}`` in a file: relative to the file). Of
    its cases those called `names`, all by default, and of these `max_cases`, drawn by the seed. `to_end`: whether the
    end of the text decides, too; by default in a suite only. `seconds` for a case, compiling and all tests together;
    `memory_mb` (MiB) that it may take. An item has up to `chunk` cases, so the limit of the experiment on an item must
    be a multiple of `seconds`. `walks`: random walks for each case; every ten of them may take `seconds` again.
    `inputs` is a hash of the folder, filled in when the experiment is resolved. `tokenizer`: where the experiment has
    no list of tokenizers.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    engines: list[BenchEngine] = Field(min_length=1)
    data: str | None = None
    suite: str | None = None
    names: list[str] | None = None
    max_cases: Count | None = None
    to_end: bool | None = None
    seconds: Annotated[float, Field(gt=0)] = 20.0
    memory_mb: Annotated[float, Field(gt=0)] = 4000.0
    chunk: Count = 25
    walks: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    inputs: str | None = None
    tokenizer: str | None = None

    @property
    def ends_count(self) -> bool:
        """Whether a valid instance must be accepted with its end, and an invalid one may be refused there."""
        return self.suite is not None if self.to_end is None else self.to_end


def check_settings(settings: dict[str, Any]) -> Settings:
    """The typed settings of an experiment. Raises OptionError or UnknownNameError, which name what is wrong, and
    MissingDependency if there are to be walks and nobody to judge them.
    """
    typed = typed_settings(Settings, settings)
    check_engines(typed.engines)
    for engine in typed.engines:
        try:
            engine.constraint("true")
        except OptionError:
            raise
        except TypeError:
            raise OptionError(f"engine {engine.name}: json_schema has an option that JsonSchema lacks") from None
    if (typed.data is None) == (typed.suite is None):
        raise OptionError(
            "maskbench needs a folder of cases: settings.data, or settings.suite for the JSON-Schema-Test-Suite; "
            "on the command line: --set data=DIR"
        )
    if typed.walks:
        Judge("true")  # is its library installed?
    return typed


def complete_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings with the whole path of their folder, and in ``inputs`` a hash of what it holds.

    So results of other data never get into the same run folder. Raises OptionError if the folder is missing or has
    changed since an earlier hash. Cost: reads the folder's JSON files once.
    """
    key = "data" if settings.get("data") is not None else "suite"
    folder = Path(settings[key]).absolute()
    found = fingerprint(folder)
    if settings.get("inputs") not in (None, found):
        raise OptionError(f"settings.{key}: {folder} has changed since this experiment was resolved (settings.inputs)")
    return {**settings, key: str(folder), "inputs": found}


def fingerprint(folder: Path) -> str:
    """10 hex digits of a hash of the JSON files below a folder, names and contents. Raises OptionError if none."""
    paths = sorted(folder.rglob("*.json"))
    if not paths:
        raise OptionError(f"there are no JSON files in {folder}")
    digest = hashlib.sha256()
    for path in paths:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:10]


def split_settings(settings: dict[str, Any], seed: int) -> list[tuple[str, dict[str, Any]]]:
    """The items of an experiment: a title and the settings of each chunk of each engine, engines taking turns.

    Raises OptionError for a name of a case that does not exist. Cost: reads the folder once a process.
    """
    typed = check_settings(settings)
    cases = _chosen(typed, seed)
    shuffled = random.Random(derive_seed(seed, "sample")).sample(cases, len(cases))
    parts = []
    for number, engine in enumerate(typed.engines):
        drawn = set(shuffled[: engine.sample])
        mine = [name for name in cases if name in drawn]
        for start in range(0, len(mine), typed.chunk):
            names = mine[start : start + typed.chunk]
            title = f"{engine.name}, cases {start + 1} to {start + len(names)} of {len(mine)}"
            part = {
                **{key: settings[key] for key in ("data", "suite", "inputs", "tokenizer") if settings.get(key)},
                **{"seconds": typed.seconds, "memory_mb": typed.memory_mb, "engines": [engine.model_dump()]},
                **{"names": names, "chunk": typed.chunk, "to_end": typed.ends_count, "walks": typed.walks},
            }
            parts.append((start / len(mine), number, title, part))
    parts.sort(key=lambda part: part[:2])
    return [(title, part) for _, _, title, part in parts]


def _chosen(typed: Settings, seed: int) -> list[str]:
    """The names of the cases of an experiment, in the order of the folder."""
    known = [case.name for case in _read(typed.data, typed.suite, typed.inputs, None)]
    if typed.names is not None:
        missing = sorted(set(typed.names) - set(known))
        if missing:
            raise OptionError(f"settings.names: there is no case {missing[0]!r} ({len(missing)} are missing)")
        wanted = set(typed.names)
        known = [name for name in known if name in wanted]
    if typed.max_cases is not None and typed.max_cases < len(known):
        drawn = set(random.Random(derive_seed(seed, "cases")).sample(known, typed.max_cases))
        known = [name for name in known if name in drawn]
    return known


@lru_cache(maxsize=2)
def _read(data: str | None, suite: str | None, inputs: str | None, names: tuple[str, ...] | None) -> list[SchemaCase]:
    """The cases of a folder, or those called `names` in this order; `inputs` tells states of the folder apart."""
    del inputs
    if data is not None:
        return read_cases(Path(data), names)
    assert suite is not None
    cases = read_suite(Path(suite))
    if names is None:
        return cases
    by_name = {case.name: case for case in cases}
    return [by_name[name] for name in names]


def prepare_item(settings: dict[str, Any]) -> None:
    """What all items of an experiment share, for their processes to inherit: the tokenizer, with its trie."""
    _ = load_cached(settings["tokenizer"]).vocabulary.trie


@lru_cache(maxsize=1)
def load_cached(name: str) -> Any:
    """The tokenizer called `name`, kept."""
    return load_tokenizer(name)


def run_item(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one chunk, as `split_settings` gives it, with the setting ``tokenizer``; a row for each case.

    `seed` is that of the walks; the cases were drawn when the experiment was split.
    """
    typed = check_settings(settings)
    if typed.tokenizer is None:
        raise OptionError("maskbench needs a tokenizer: in the experiment's tokenizers, or as a setting")
    (engine,) = typed.engines
    cases = _read(typed.data, typed.suite, typed.inputs, tuple(typed.names or ()))
    limits = Limits(seconds=typed.seconds, memory_mb=typed.memory_mb)
    work = partial(_work, engine, cases, typed, seed)
    walks = Walks(typed.walks).columns() if typed.walks else {}
    rows = []
    for case, found in zip(cases, in_forks(work, len(cases), limits), strict=True):
        row = found if isinstance(found, dict) else {**described(case), **_of_failure(found)}
        rows.append({**_place(engine, typed), **walks, **row})
    return rows


def _place(engine: BenchEngine, typed: Settings) -> dict[str, Any]:
    """What a row says of the engine."""
    return {
        "tokenizer": typed.tokenizer,
        "suite": typed.suite is not None,
        "to_end": typed.ends_count,
        "engine": engine.name,
        "backend": engine.backend,
        "options": canonical_json({**engine.options, **engine.json_schema}),
        "sample": engine.sample,
    }


def _of_failure(failure: Failure) -> dict[str, Any]:
    """The outcome of a case whose process was ended, or could not begin."""
    outcome = {"timeout": TIMEOUT, "memory": MEMORY, "crash": CRASH}.get(failure.kind, REFUSED)
    outcome = UNAVAILABLE if isinstance(failure, Unprepared) else outcome
    return {"outcome": outcome, "message": failure.message[:MAX_MESSAGE]}


def _work(
    engine: BenchEngine,
    cases: Sequence[SchemaCase],
    typed: Settings,
    seed: int,
    tasks: Sequence[int],
    send: Callable[[Found | str], None],
    begin: Callable[[str], None],
) -> None:
    """What a fork does: the engine, warm, then the cases. It ends itself after a crash that it has survived."""
    assert typed.tokenizer is not None
    tokenizer = load_cached(typed.tokenizer)
    backend = create_backend(engine.backend, tokenizer.vocabulary, **engine.options)
    begin("warm up")
    warm_up(backend, "json_schema")
    clock_ns = clock_overhead_ns()
    walker = Walker(tokenizer.vocabulary) if typed.walks else None
    send(READY)
    for task in tasks:
        case = cases[task]
        constraint = engine.constraint(case.schema_text)
        more = None if walker is None else partial(_walk, case, walker, typed.walks, seed)
        for row, final in run_case(case, constraint, backend, tokenizer, typed.seconds, typed.ends_count, begin, more):
            send(Found(task, row | {"clock_ns": clock_ns}, final))
            if row["outcome"] in (CRASH, MEMORY):
                return


def _walk(
    case: SchemaCase, walker: Walker, count: int, seed: int, compiled: CompiledConstraint
) -> Iterator[dict[str, Any]]:
    """The random walks of a case: columns of its row, after every ten and in the end."""
    hints = hints_of(test.text for test in case.tests if test.valid)
    judge = Judge(case.schema_text)
    for found in walk_case(compiled, walker, judge, count, f"{seed} {case.name}", hints):
        if found.taken % 10 == 0 or found.taken == count:
            yield found.columns()
