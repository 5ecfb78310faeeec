"""What a run of ``kind: maskbench`` measures: its settings, its cases, and the chunks that are its items."""

from __future__ import annotations

import random
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import Field

from tokdfa.core.folders import files_fingerprint
from tokdfa.errors import OptionError
from tokdfa.lab.measure.engines import Engine, schema_with
from tokdfa.lab.measure.schema_corpus import read_cases, read_remotes, read_suite
from tokdfa.lab.measure.settings import Strict, distinct, typed_settings
from tokdfa.lab.measure.workloads import derive_seed

if TYPE_CHECKING:
    from tokdfa.constraint import JsonSchema
    from tokdfa.lab.measure.schema_corpus import SchemaCase

Count = Annotated[int, Field(ge=1, le=1_000_000)]


class BenchEngine(Engine):
    """A backend with its options. `json_schema`: options of the constraint, such as ``order: any``; `sample`: how many
    of the cases it gets, all by default; `prepare`: whether its set-up makes what schemas share of a vocabulary
    (`Backend.prepare`), which a user has to ask for.
    """

    json_schema: dict[str, Any] = Field(default_factory=dict)
    sample: Count | None = None
    prepare: bool = False

    def constraint(self, schema: str, registry: str = "") -> JsonSchema:
        """A schema as this engine gets it, with what it may refer to. Raises OptionError."""
        documents = {"registry": registry} if registry else {}
        return schema_with(self.json_schema, schema, label="schema", **documents)


class Settings(Strict):
    """The settings of the experiment.

    `data` or `suite`: the folder, relative to the current one (``{folder: NAME}`` in a file: relative to the file). Of
    its cases those called `names`, all by default, and of these `max_cases`, drawn by the seed. `to_end`: whether the
    end of the text decides, too; by default in a suite only. `seconds` for a case, compiling and all tests together;
    `memory_mb` (MiB) that it may take; the experiment's limits are for making an engine. `way`: "fresh", a new process
    for each `chunk` of cases of an engine, or "served", one process for each engine that lives as long as the run,
    engines in turn chunk by chunk. `remotes`: the suite's folder of documents that its schemas refer to; nothing is
    fetched. `inputs` is a hash of the folder, filled in when the experiment is resolved. `tokenizer`: where the
    experiment has no list of tokenizers. `pythons`: backend -> its interpreter, of the experiment; such an engine is
    served, whatever the way, in a process that ends with the item.
    """

    engines: Annotated[list[BenchEngine], Field(min_length=1), distinct("engines")]
    data: str | None = None
    suite: str | None = None
    remotes: str | None = None
    names: list[str] | None = None
    max_cases: Count | None = None
    to_end: bool | None = None
    seconds: Annotated[float, Field(gt=0)] = 20.0
    memory_mb: Annotated[float, Field(gt=0)] = 4000.0
    chunk: Count = 25
    way: Literal["fresh", "served"] = "fresh"
    inputs: str | None = None
    tokenizer: str | None = None
    pythons: dict[str, str] = Field(default_factory=dict)

    @property
    def apart(self) -> dict[str, str]:
        """The interpreters of its engines that have one of their own, by the engines' names."""
        return {one.name: self.pythons[one.backend] for one in self.engines if one.backend in self.pythons}

    @property
    def ends_count(self) -> bool:
        """Whether a valid instance must be accepted with its end, and an invalid one may be refused there."""
        return self.suite is not None if self.to_end is None else self.to_end


def complete(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings with the whole path of their folder, and in ``inputs`` a hash of the JSON files that it holds.

    So results of other data never get into the same run folder. Raises OptionError or UnknownNameError, which name what
    is wrong. Cost: reads the files once.
    """
    typed = typed_settings(Settings, settings)
    for engine in typed.engines:
        engine.constraint("true")
    if (typed.data is None) == (typed.suite is None):
        raise OptionError(
            "maskbench needs a folder of cases: settings.data, or settings.suite for the JSON-Schema-Test-Suite; "
            "on the command line: --set data=DIR"
        )
    if typed.remotes and typed.suite is None:
        raise OptionError("settings.remotes goes with settings.suite")
    key = "data" if typed.data is not None else "suite"
    folder = Path(settings[key]).absolute()
    paths = list(folder.rglob("*.json"))
    if not paths:
        raise OptionError(f"there are no JSON files in {folder}")
    found = files_fingerprint(folder, paths)
    if typed.remotes:
        others = Path(typed.remotes).absolute()
        settings = {**settings, "remotes": str(others)}
        found += files_fingerprint(others, list(others.rglob("*.json")))
    if typed.inputs not in (None, found):
        raise OptionError(f"settings.{key}: {folder} has changed since this experiment was resolved (settings.inputs)")
    return {**settings, key: str(folder), "inputs": found}


def split(settings: dict[str, Any], seed: int) -> list[tuple[str, dict[str, Any]]]:
    """The items of an experiment: a title and the settings of each chunk of each engine, engines taking turns; one item
    if the engines are served.

    Raises OptionError for a name of a case that does not exist. Cost: reads the folder once a process.
    """
    typed = typed_settings(Settings, settings)
    cases = _chosen(typed, seed)
    shared = {key: settings[key] for key in ("data", "suite", "remotes", "inputs", "tokenizer") if settings.get(key)}
    shared |= {"seconds": typed.seconds, "memory_mb": typed.memory_mb, "chunk": typed.chunk, "to_end": typed.ends_count}
    if typed.way == "served":
        engines = [engine.model_dump() for engine in typed.engines]
        own = {"engines": engines, "names": cases, **_pythons(typed, *typed.engines)}
        return [("served", {**shared, "way": "served", **own})]
    shuffled = _shuffled(cases, seed)
    chunks = []
    for number, engine in enumerate(typed.engines):
        drawn = set(shuffled[: engine.sample])
        mine = [name for name in cases if name in drawn]
        for start in range(0, len(mine), typed.chunk):
            names = mine[start : start + typed.chunk]
            title = f"{engine.name}, cases {start + 1} to {start + len(names)} of {len(mine)}"
            own = {"engines": [engine.model_dump()], "names": names, **_pythons(typed, engine)}
            chunks.append((start / len(mine), number, title, {**shared, **own}))
    chunks.sort(key=lambda one: one[:2])
    return [(title, chunk) for _, _, title, chunk in chunks]


def _pythons(typed: Settings, *engines: BenchEngine) -> dict[str, Any]:
    """The setting ``pythons`` of an item with these engines."""
    needed = {one.backend: typed.pythons[one.backend] for one in engines if one.backend in typed.pythons}
    return {"pythons": needed} if needed else {}


def _shuffled(cases: list[str], seed: int) -> list[str]:
    """The cases in the order of which a sample is the beginning."""
    return random.Random(derive_seed(seed, "sample")).sample(cases, len(cases))


class Turn(NamedTuple):
    """Cases that one engine of an item measures in one go: (number, name), numbers being those of the item's rows."""

    engine: BenchEngine
    cases: list[tuple[int, str]]


def turns(typed: Settings, seed: int) -> list[Turn]:
    """All that the item of a served run measures: engines in turn by groups of cases, in an order that the seed draws.

    Cases come in an order that is drawn, too, as those of a folder are sorted by where they come from.
    """
    names = typed.names or []
    shuffled = _shuffled(names, seed)
    order = random.Random(derive_seed(seed, "cases in turn")).sample(names, len(names))
    draw, found, number = random.Random(derive_seed(seed, "engines in turn")), [], 0
    numbers: dict[tuple[str, str], int] = {}
    for engine in typed.engines:
        drawn = set(shuffled[: engine.sample])
        for name in names:
            if name in drawn:
                numbers[engine.name, name] = number
                number += 1
    for start in range(0, len(order), typed.chunk):
        group = order[start : start + typed.chunk]
        for engine in draw.sample(typed.engines, len(typed.engines)):
            mine = [(numbers[engine.name, name], name) for name in group if (engine.name, name) in numbers]
            if mine:
                found.append(Turn(engine, mine))
    return found


def _chosen(typed: Settings, seed: int) -> list[str]:
    """The names of the cases of an experiment, in the order of the folder."""
    known = [case.name for case in read(typed.data, typed.suite, typed.inputs, None)]
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
def remotes_of(folder: str | None) -> str:
    """What `read_remotes` reads of a folder; nothing without one."""
    return "" if folder is None else read_remotes(Path(folder))


@lru_cache(maxsize=2)
def read(data: str | None, suite: str | None, inputs: str | None, names: tuple[str, ...] | None) -> list[SchemaCase]:
    """The cases of a folder, or those called `names` in this order; `inputs` tells states of the folder apart."""
    del inputs
    if data is not None:
        return read_cases(Path(data), names)
    assert suite is not None
    cases = {case.name: case for case in read_suite(Path(suite))}
    return [*cases.values()] if names is None else [cases[name] for name in names]
