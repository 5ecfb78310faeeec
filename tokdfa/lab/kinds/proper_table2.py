"""The experiment ``kind: proper_table2``: 002's Table 2, every row, measured on one machine.

002 reports what the four steps of CartesianMerge take, for JSON strings and Mistral's tokenizer, on its own machine
(`tokdfa.lab.report.proper_table2` has the numbers). One item is a tokenizer and a constraint. Each of its rows has a
``step`` and an ``engine``:

1. the table of the tokenizer's proper sequences. Once for a tokenizer, in the item of the constraint that the setting
   ``table_with`` names, so these rows have no constraint: ``ours, built``; ``ours, from disk``, which verifies it as
   well; and for the tokenizers in ``replay`` ``002's replay`` (`tokdfa.lab.measure.canonicity_replay`).
2. the token DFA of the constraint, which the engines with ``step: 2`` build; ``seconds`` is their whole compile.
3. what makes the masks free of dead ends, for the engines with ``step: 3``, all of which allow proper sequences only.
   ``seconds`` is the compile but for the byte DFA (`SHARED_PHASES`) and the tokenizer's table, which are steps of their
   own; ``compile_s`` is all of it. An engine without a token DFA has its step 2 in this.
4. a mask, for the same engines: along the encodings of the constraint's `texts` and along random walks, each
   `Matcher.fill_mask` timed by itself, the engines taking turns. ``seconds`` is the median and ``p99_s`` the 99th
   percentile of the first time round, in which engines that remember masks meet their states for the first time;
   ``again_s`` the median of a second time round. ``call_s`` is what timing a Python call that does nothing reports.

At every step of the walks the masks of all engines are compared: ``masks`` were, ``differing`` is how many differ from
the first engine's. One that differs, or refuses a token of an encoding, is a failure (``mismatch``,
``wrong_refusal``). Compiles are medians over the repeats, in which the engines take turns; an engine that has used
`seconds` takes no further repeats. Nothing stops a compile from outside: slow engines bring limits of their own
(``max_seconds`` of the search over pairs, ``max_transitions`` of direct_merge).
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from tokdfa import mask as masks
from tokdfa.backends.registry import create_backend
from tokdfa.errors import OptionError, TokenRefused
from tokdfa.lab.kinds.scaling import SHARED_PHASES
from tokdfa.lab.measure.canonicity_replay import compare_with_replay, untied_rules, with_rules_only
from tokdfa.lab.measure.clock import clock_overhead_ns, collector_off, time_call
from tokdfa.lab.measure.constraint_entry import ConstraintEntry, fault_of_keys
from tokdfa.lab.measure.engines import Engine, check_engines
from tokdfa.lab.measure.limits import OK, Failure, failure_of
from tokdfa.lab.measure.measure import rotated
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.lab.measure.warm_up import warm_up
from tokdfa.lab.measure.workloads import derive_seed
from tokdfa.proper.rules_cache import build_canonicity, load_canonicity, read_or_build
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.backends.base import Backend, CompiledConstraint, Matcher
    from tokdfa.constraint import Constraint
    from tokdfa.vocabulary.tokenizers import Tokenizer

#: The engine whose masks are not those of the first one.
MISMATCH = "mismatch"
#: Phases that are other steps: the byte DFA, and the tokenizer's own table.
OTHER_STEPS = SHARED_PHASES | {"tokenizer"}
Count = Annotated[int, Field(ge=1, le=100_000)]


class StepEngine(Engine):
    """A backend with its options, in a step. `tokenizers`: those that it is measured on; empty: on all."""

    step: Literal[2, 3]
    tokenizers: list[str] = Field(default_factory=list)


class Settings(BaseModel):
    """The settings of the experiment; see the module's page.

    `engines`: the first with step 3 is what masks are compared with. `texts`: label of a constraint -> its texts; in an
    item of a constraint that brings texts, those.
    `repeats`: of compiles and of the tokenizer's table; `seconds`: after which an engine takes no further repeats.
    `walks` random walks of at most `steps` tokens.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    engines: list[StepEngine] = Field(min_length=1)
    texts: dict[str, list[str]] | list[str] = Field(default_factory=dict)
    repeats: Count = 3
    seconds: Annotated[float, Field(gt=0)] = 5.0
    walks: Annotated[int, Field(ge=0, le=10_000)] = 5
    steps: Count = 60
    table_with: str = ""
    replay: list[str] = Field(default_factory=list)


@dataclass
class _Entrant:
    """One engine on one constraint, and what was measured of it, in seconds."""

    engine: StepEngine
    backend: Backend | None = None
    failure: Failure | None = None
    compile_s: list[float] = field(default_factory=list)
    own_s: list[float] = field(default_factory=list)
    compiled: CompiledConstraint | None = None
    first_s: list[float] = field(default_factory=list)
    again_s: list[float] = field(default_factory=list)
    differing: int = 0

    def fail(self, failure: Failure) -> None:
        """Note the first failure."""
        self.failure = self.failure or failure


def check_settings(settings: dict[str, Any]) -> Settings:
    """The typed settings of an experiment. Raises OptionError or UnknownNameError, which name what is wrong."""
    typed = typed_settings(Settings, settings)
    check_engines(typed.engines)
    return typed


def run_item(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one tokenizer and one constraint: a row for each step and engine.

    `settings`: tokenizer (name); the fields of a `ConstraintEntry`; and those of `Settings`. `seed` draws the walks.
    Raises OptionError for a grammar, whose automaton has no end of states.
    """
    fields = {key: settings[key] for key in ConstraintEntry.model_fields if key in settings and key != "texts"}
    if "grammar" in fields or fault_of_keys(fields):
        raise OptionError("proper_table2 takes regexes, choices and JSON schemas, one an item")
    typed = check_settings({key: value for key, value in settings.items() if key not in {"tokenizer", *fields}})
    tokenizer = load_tokenizer(settings["tokenizer"])
    constraint = ConstraintEntry.model_validate(fields).build()
    label = constraint.label
    rows = _tokenizer_rows(tokenizer, typed) if label and label == typed.table_with else []
    entrants = [
        _enter(engine, tokenizer, constraint.kind)
        for engine in typed.engines
        if not engine.tokenizers or tokenizer.name in engine.tokenizers
    ]
    _compile(entrants, constraint, typed)
    proper = [entrant for entrant in entrants if entrant.engine.step == 3]
    place = {"tokenizer": tokenizer.name, "constraint": constraint.name}
    rows += [{**place, **_compile_row(entrant)} for entrant in entrants]
    racing = [entrant for entrant in proper if entrant.compiled is not None and entrant.failure is None]
    compared = 0
    if racing:
        texts = typed.texts.get(label, []) if isinstance(typed.texts, dict) else typed.texts
        walks = [tokenizer.encode(text) for text in texts]
        walks += _random_walks(racing[0], constraint, typed, seed)
        for again in (False, True):
            for walk in walks:
                compared += _follow([one for one in racing if one.failure is None], walk, again)
    call_s = clock_overhead_ns() * 1e-9
    rows += [{**place, **_mask_row(entrant, compared, call_s)} for entrant in proper]
    return rows


def _tokenizer_rows(tokenizer: Tokenizer, settings: Settings) -> list[dict[str, Any]]:
    """Step 1."""
    seconds: dict[str, list[float]] = {"ours, built": [], "ours, from disk": []}
    with tempfile.TemporaryDirectory() as name, collector_off():
        folder = Path(name)
        read_or_build(tokenizer, folder)
        for _ in range(settings.repeats):
            seconds["ours, built"].append(time_call(lambda: build_canonicity(tokenizer))[1] * 1e-9)
            seconds["ours, from disk"].append(time_call(lambda: read_or_build(tokenizer, folder))[1] * 1e-9)
    plain = {"tokenizer": tokenizer.name, "constraint": "", "step": 1, "backend": "", "message": ""}
    rows = [
        {**plain, "engine": engine, "status": OK, "seconds": statistics.median(samples), "repeats": len(samples)}
        for engine, samples in seconds.items()
    ]
    if tokenizer.name in settings.replay:
        canonicity = load_canonicity(tokenizer)
        keep = untied_rules(canonicity.rules)
        found = compare_with_replay(with_rules_only(canonicity, keep))
        row = {**plain, "engine": "002's replay", "status": OK, "seconds": found.seconds, "repeats": 1}
        if found.differing:
            row |= {"status": MISMATCH, "message": f"{found.differing} of {found.rows} rows differ from the lists"}
        rows.append({**row, "differing": found.differing, "bytes": found.table_bytes})
    return rows


def _enter(engine: StepEngine, tokenizer: Tokenizer, kind: str) -> _Entrant:
    try:
        backend = create_backend(engine.backend, tokenizer.vocabulary, **engine.options)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a package that is not installed, or an engine that does not take the tokens
        return _Entrant(engine, failure=failure_of(error))
    warm_up(backend, kind)
    return _Entrant(engine, backend)


def _compile(entrants: Sequence[_Entrant], constraint: Constraint, settings: Settings) -> None:
    """Compile up to `repeats` times with each, taking turns; the last one that went through is kept."""
    with collector_off():
        for repeat in range(settings.repeats):
            for one in rotated(entrants, repeat):
                if one.backend is None or one.failure is not None or sum(one.compile_s) > settings.seconds:
                    continue
                one.compiled = None  # before the next one is made: some are large
                try:
                    started = time.perf_counter_ns()
                    compiled = one.backend.compile(constraint)
                    taken = (time.perf_counter_ns() - started) * 1e-9
                except (KeyboardInterrupt, SystemExit):
                    raise
                except BaseException as error:  # whatever an engine raises is its failure, panics included
                    one.fail(failure_of(error))
                    continue
                others = sum(spent for phase, spent in compiled.phases.items() if phase in OTHER_STEPS)
                one.compile_s.append(taken)
                one.own_s.append(taken if one.engine.step == 2 else taken - others)
                one.compiled = compiled


def _row(one: _Entrant, step: int) -> dict[str, Any]:
    row = {"step": step, "engine": one.engine.name, "backend": one.engine.backend, "status": OK, "message": ""}
    return row | ({"status": one.failure.kind, "message": one.failure.message} if one.failure else {})


def _compile_row(one: _Entrant) -> dict[str, Any]:
    row = _row(one, one.engine.step)
    if not one.compile_s or one.compiled is None:
        return row
    known = ("states", "transitions", "pairs", "edges", "bytes")
    return row | {
        "seconds": statistics.median(one.own_s),
        "compile_s": statistics.median(one.compile_s),
        "repeats": len(one.compile_s),
        **{name: one.compiled.sizes.get(name) for name in known},
    }


def _mask_row(one: _Entrant, compared: int, call_s: float) -> dict[str, Any]:
    row = _row(one, 4)
    if not one.first_s:
        return row
    return row | {
        "seconds": float(np.median(one.first_s)),
        "p99_s": float(np.percentile(one.first_s, 99)),
        "again_s": float(np.median(one.again_s)) if one.again_s else None,
        "masks": compared,
        "differing": one.differing,
        "call_s": call_s,
    }


def _random_walks(one: _Entrant, constraint: Constraint, settings: Settings, seed: int) -> list[list[int]]:
    """Tokens of walks, uniform among the allowed ones. A compile of their own: the timed one is to meet new states."""
    assert one.backend is not None
    compiled = one.backend.compile(constraint)
    vocab = one.backend.vocab
    mask, walks = masks.allocate_mask(vocab.size), []
    for number in range(settings.walks):
        choose, matcher, walk = random.Random(derive_seed(seed, number)), compiled.start(), list[int]()
        while len(walk) < settings.steps:
            matcher.fill_mask(mask)
            allowed = [token for token in masks.mask_to_ids(mask).tolist() if token not in vocab.end_token_set]
            if not allowed:
                break
            walk.append(choose.choice(allowed))
            matcher.advance(walk[-1])
        walks.append(walk)
    return walks


def _follow(entrants: Sequence[_Entrant], tokens: Sequence[int], again: bool) -> int:
    """Fill the masks before each of the tokens and after the last; returns how many positions there were."""
    if not entrants:
        return 0
    racing: list[tuple[_Entrant, Matcher, masks.Mask]] = []
    for one in entrants:
        assert one.compiled is not None
        matcher = one.compiled.start()
        racing.append((one, matcher, masks.allocate_mask(matcher.vocab.size)))
    with collector_off():
        for position in range(len(tokens) + 1):
            for one, matcher, mask in rotated(racing, position):
                started = time.perf_counter_ns()
                matcher.fill_mask(mask)
                taken = time.perf_counter_ns() - started
                (one.again_s if again else one.first_s).append(taken * 1e-9)
            _compare(racing, tokens, position)
            if position == len(tokens):
                break
            for one, matcher, _ in racing:
                _advance(one, matcher, tokens, position)
            racing = [entry for entry in racing if entry[0].failure is None or entry[0].failure.kind == MISMATCH]
            if not racing:
                break
    return len(tokens) + 1


def _compare(racing: Sequence[tuple[_Entrant, Matcher, masks.Mask]], tokens: Sequence[int], position: int) -> None:
    _, first, expected = racing[0]
    for one, _, mask in racing[1:]:
        if not np.array_equal(mask, expected):
            one.differing += 1
            text = first.vocab.spell(tokens[:position])[-60:]
            count = masks.count(mask ^ expected)
            one.fail(Failure(MISMATCH, f"{count} tokens differ from {racing[0][0].engine.name} after {text!r}"))


def _advance(one: _Entrant, matcher: Matcher, tokens: Sequence[int], position: int) -> None:
    try:
        matcher.advance(tokens[position])
    except TokenRefused as refusal:
        text = matcher.vocab.spell(tokens[:position])[-60:]
        one.fail(Failure("wrong_refusal", f"token {tokens[position]} was refused after {text!r}: {refusal}"))
