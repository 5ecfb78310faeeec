r"""The experiment ``kind: proper_scaling``: what allowing proper sequences only costs as the constraint grows.

DirectMerge builds the automaton of the proper sequences; 002 warns that it may become overwhelmingly large, and offers
CartesianMerge, which simulates it. Here both are asked for families of regexes that grow, next to the plain token DFA.

One item is a tokenizer and a *family*: a template with a size n, whose values `settings.sizes` gives for its label. In
a template, counts such as ``{n}`` and ``{1,n}`` take the value of n, ``<words>`` is an alternation of n random words,
and ``<members>`` stands for n members of a JSON object, with random names and, in turn, a truth value, one of four
words, a whole number, and a string of at most 20 characters.

A row for each size and engine holds ``compile_s``, all of a compile, and ``own_s``, what is left of it without the byte
DFA and the tokenizer's table (`tokdfa.lab.kinds.proper_table2.OTHER_STEPS`), both medians over the repeats, in which
the engines take turns; then what the engine says of its size: ``index_states``, ``transitions``, ``bytes``. ``states``
are those of the minimal byte DFA, the same for all.

An engine whose compile takes longer than `seconds`, or breaks a limit, is not asked for larger sizes of the family:
those have the status ``not_asked``. It also takes no further repeats once it has used that time.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Regex
from tokdfa.errors import OptionError
from tokdfa.lab.kinds.proper_table2 import OTHER_STEPS
from tokdfa.lab.kinds.scaling import NOT_ASKED
from tokdfa.lab.measure.clock import collector_off
from tokdfa.lab.measure.engines import Engine, check_engines
from tokdfa.lab.measure.growing import fill_template, is_template, random_words, state_count
from tokdfa.lab.measure.limits import OK, Failure, failure_of
from tokdfa.lab.measure.measure import rotated
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.lab.measure.warm_up import warm_up
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.backends.base import Backend

_MEMBERS = "<members>"
#: What the members of an object may hold, in turn.
_VALUES = ("(true|false)", '"(red|green|blue|yellow)"', "-?(0|[1-9][0-9]*)", r'"[^"\\\x00-\x1f]{1,20}"')
_SIZES = ("states", "transitions", "bytes")


class Settings(BaseModel):
    """The settings of the experiment: `sizes`: label of a template -> rising values of n; see the module's page."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    sizes: dict[str, Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)]] = Field(min_length=1)
    engines: list[Engine] = Field(min_length=1)
    repeats: Annotated[int, Field(ge=1, le=1000)] = 3
    seconds: Annotated[float, Field(gt=0)] = 2.0


@dataclass
class _Entrant:
    """One engine at one size, and what was measured of it, in seconds."""

    engine: Engine
    backend: Backend | None
    failure: Failure | None = None
    compile_s: list[float] = field(default_factory=list)
    own_s: list[float] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)


def check_settings(settings: dict[str, Any]) -> Settings:
    """The typed settings of an experiment. Raises OptionError or UnknownNameError, which name what is wrong."""
    typed = typed_settings(Settings, settings)
    for label, values in typed.sizes.items():
        if sorted(set(values)) != values:
            raise OptionError(f"settings.sizes.{label}: rising whole numbers are expected, not {values}")
    check_engines(typed.engines)
    return typed


def fill_family(template: str, n: int, seed: int) -> str:
    """The regex of size n. Raises OptionError for a template without a place for n."""
    filled = template.replace(_MEMBERS, json_members(n, seed))
    return fill_template(filled, n, seed) if is_template(filled) or filled == template else filled


def json_members(count: int, seed: int) -> str:
    """A regex of `count` members of a JSON object. Those of a smaller count are the first of a larger one."""
    names = random_words(count, random.Random(seed).getrandbits(32))
    return ", ".join(f'"{name}": {_VALUES[place % len(_VALUES)]}' for place, name in enumerate(names))


def run_item(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one tokenizer and one family: a row for each size and engine.

    `settings`: tokenizer (name), label, regex (a template); and those of `Settings`. `seed` chooses random words.
    Raises OptionError if the constraint is no template or has no sizes.
    """
    keys = ("tokenizer", "label", "regex")
    typed = check_settings({key: value for key, value in settings.items() if key not in keys})
    template, label = settings.get("regex", ""), settings.get("label", "")
    if label not in typed.sizes:
        raise OptionError(f"the template {template!r} needs values of n: give settings.sizes an entry {label!r}")
    tokenizer = load_tokenizer(settings["tokenizer"])
    backends: dict[str, Backend | Failure] = {}
    for engine in typed.engines:
        backends[engine.name] = _create(engine, tokenizer.vocabulary)
    stopped: dict[str, str] = {}
    rows = []
    for size in typed.sizes[label]:
        constraint = Regex(fill_family(template, size, seed))
        entrants = [_enter(engine, backends[engine.name]) for engine in typed.engines if engine.name not in stopped]
        _compile(entrants, constraint, typed)
        place = {"tokenizer": tokenizer.name, "family": label, "parameter": size, "states": state_count(constraint)}
        found = {one.engine.name: one for one in entrants}
        for engine in typed.engines:
            named = {**place, "engine": engine.name, "backend": engine.backend}
            if engine.name not in found:
                rows.append({**named, "status": NOT_ASKED, "message": stopped[engine.name]})
                continue
            one = found[engine.name]
            rows.append({**named, **_measured(one)})
            if reason := _reason_to_stop(one, typed.seconds):
                stopped[engine.name] = f"{reason} at {size}"
    return rows


def _create(engine: Engine, vocabulary: Any) -> Backend | Failure:
    try:
        backend = create_backend(engine.backend, vocabulary, **engine.options)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a package that is not installed, or an engine that does not take the tokens
        return failure_of(error)
    warm_up(backend)
    return backend


def _enter(engine: Engine, backend: Backend | Failure) -> _Entrant:
    return _Entrant(engine, None, backend) if isinstance(backend, Failure) else _Entrant(engine, backend)


def _compile(entrants: Sequence[_Entrant], constraint: Regex, settings: Settings) -> None:
    """Compile up to `repeats` times with each, taking turns."""
    with collector_off():
        for repeat in range(settings.repeats):
            for one in rotated(entrants, repeat):
                if one.backend is None or one.failure is not None or sum(one.compile_s) > settings.seconds:
                    continue
                try:
                    started = time.perf_counter_ns()
                    compiled = one.backend.compile(constraint)
                    taken = (time.perf_counter_ns() - started) * 1e-9
                except (KeyboardInterrupt, SystemExit):
                    raise
                except BaseException as error:  # whatever an engine raises is its failure, panics included
                    one.failure = failure_of(error)
                    continue
                others = sum(spent for phase, spent in compiled.phases.items() if phase in OTHER_STEPS)
                one.compile_s.append(taken)
                one.own_s.append(taken - others)
                one.sizes = dict(compiled.sizes)
                del compiled  # before the next one is made: some are large


def _measured(one: _Entrant) -> dict[str, Any]:
    if one.failure is not None:
        return {"status": one.failure.kind, "message": one.failure.message}
    states, transitions, size = (one.sizes.get(name) for name in _SIZES)
    return {
        "status": OK,
        "message": "",
        "compile_s": float(np.median(one.compile_s)),
        "own_s": float(np.median(one.own_s)),
        "repeats": len(one.compile_s),
        "index_states": states,
        "transitions": transitions,
        "bytes": size,
    }


def _reason_to_stop(one: _Entrant, seconds: float) -> str:
    """Why an engine is not asked for larger sizes; empty if it is."""
    if one.failure is not None:
        return f"failed ({one.failure.kind})"
    slowest = max(one.compile_s)
    return f"a compile took {slowest:.3g} s, more than {seconds:g} s," if slowest > seconds else ""
