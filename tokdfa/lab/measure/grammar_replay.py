"""Driving several engines along the same paths through a grammar, and the work that they do.

A *path* is a list of walks (token sequences): seeded random walks, and texts of the language as the tokenizer spells
them. In a *round* an engine takes all walks of a path in order; before each token it fills a mask. Engines take turns
round by round, A B C, B C A, ... A round is *cold* or *warm*. Before a cold one the constraint is compiled anew, so
what is remembered is from earlier in the round: rates of what is found again are those of a server that has started
with this path. In warm ones nothing is compiled, and whatever is made once for a constraint is there.

Another round comes first. There the masks are compared, bit for bit, among engines of one *language* (a lexing rule
or a peer's dialect). An engine that refuses a token or gives another mask has the status `MASKS_DIFFER`; one that fails
has its failure, and the others go on.

Counters are those of the engines' matchers, as they grow from mask to mask (none for a peer), and what a compiled
constraint of ``earley_trie`` or ``pushdown_trie`` holds in the end.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.base import StateMatcher
from tokdfa.backends.earley_trie.machine import S_SCANS
from tokdfa.backends.earley_trie.strategy import CompiledEarley
from tokdfa.backends.pushdown_trie.strategy import CompiledPushdown
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Grammar, Regex
from tokdfa.errors import OptionError, TokenRefused, UnknownNameError
from tokdfa.lab.measure.clock import collector_off, time_call
from tokdfa.lab.measure.limits import OK, Failure, failure_of
from tokdfa.lab.measure.measure import rotated
from tokdfa.lab.measure.workloads import RandomWalk, plan_walks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tokdfa.backends.base import Backend, CompiledConstraint, Matcher
    from tokdfa.constraint import Constraint
    from tokdfa.lab.measure.workloads import Encoder

MASKS_DIFFER = "masks differ"
#: The paths.
RANDOM, TEXTS = "random walks", "texts"
#: Settings that are numbers: their defaults.
NUMBERS: dict[str, float] = {"walks": 3, "steps": 40, "text_tokens": 600, "rounds": 3, "seconds": 10.0}


@dataclass(frozen=True)
class Engine:
    """A backend with its options, under a name. `language`: engines that share it must give the same masks."""

    label: str
    backend: str
    options: Mapping[str, Any]
    language: str


@dataclass
class Replay:
    """What an engine did along one path.

    `mask_ns`, `advance_ns`: by timed round and position; `first_ns`: the masks of the round before them, which compares
    them between the clock's readings; `compile_ns`: one a cold round. Of the last round: `allowed`, tokens by position;
    `work`, by position how much each counter grew; `held`, what was kept. `first_work` is the work of the first round.
    """

    engine: Engine
    status: str = OK
    message: str = ""
    compile_ns: list[int] = field(default_factory=list)
    mask_ns: list[list[int]] = field(default_factory=list)
    advance_ns: list[list[int]] = field(default_factory=list)
    first_ns: list[int] = field(default_factory=list)
    first_work: list[dict[str, int]] = field(default_factory=list)
    allowed: list[int] = field(default_factory=list)
    work: list[dict[str, int]] = field(default_factory=list)
    held: dict[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether it has not failed."""
        return self.status == OK

    def fail(self, failure: Failure) -> None:
        """Note why it takes no further part."""
        self.status, self.message = failure.kind, failure.message

    def total(self, counter: str, first: bool = False) -> int:
        """The sum of a counter over the positions of the last round, or of the `first`."""
        return sum(one.get(counter, 0) for one in (self.first_work if first else self.work))


def check_numbers(kind: str, settings: Mapping[str, Any], others: Iterable[str] = ()) -> None:
    """Raise UnknownNameError or OptionError if `settings` has a key that is unknown, or a number out of range."""
    known = (*NUMBERS, *others)
    for name in settings:
        if name not in known:
            raise UnknownNameError(f"setting of {kind}", str(name), known)
    for name, default in NUMBERS.items():
        value = settings.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | type(default)) or not value > 0:
            raise OptionError(f"settings.{name} must be a positive {type(default).__name__}, not {value!r}")


def chosen(settings: Mapping[str, Any], key: str, known: Iterable[str]) -> list[str]:
    """The names that ``settings[key]`` lists; all that are `known` if it is not given."""
    known = list(known)
    names = settings.get(key, known)
    if not isinstance(names, list) or not names:
        raise OptionError(f"settings.{key} must be a list of names, not {names!r}")
    for name in names:
        if name not in known:
            raise UnknownNameError(f"entry of settings.{key}", str(name), known)
    return names


def constraint_of(settings: Mapping[str, Any]) -> Constraint:
    """The grammar or the regex of an item. Raises OptionError for anything else."""
    label = settings.get("label", "")
    if "grammar" in settings:
        return Grammar(settings["grammar"], settings.get("start", "start"), label=label)
    if "regex" in settings:
        names = ("search", "ascii_classes", "flags")
        return Regex(settings["regex"], **{name: settings[name] for name in names if name in settings}, label=label)
    raise OptionError("this kind of experiment drives grammars and regexes: each constraint must be one of them")


def plan_paths(
    settings: Mapping[str, Any], constraint: Constraint, tokenizer: Encoder, decider: Engine, seed: int
) -> dict[str, list[tuple[int, ...]]]:
    """Path -> its walks. `decider` makes the random walks; its language should be within those of the others.

    Of the texts of the item as many as have at most ``text_tokens`` tokens together, at least one; each is closed by an
    end token. Raises what the decider raises.
    """
    numbers = {name: settings.get(name, default) for name, default in NUMBERS.items()}
    workload = RandomWalk(walks=int(numbers["walks"]), steps=int(numbers["steps"]))
    backend = create_backend(decider.backend, tokenizer.vocabulary, **decider.options)
    start = backend.compile(constraint).start
    paths = {RANDOM: [walk.tokens for walk in plan_walks(workload, constraint, tokenizer, start, seed)]}
    texts: list[tuple[int, ...]] = []
    for text in settings.get("texts", []):
        tokens = (*(int(token) for token in tokenizer.encode(text)), tokenizer.vocabulary.end_tokens[0])
        if not texts or sum(map(len, texts)) + len(tokens) <= numbers["text_tokens"]:
            texts.append(tokens)
    return {**paths, TEXTS: texts} if texts else paths


def replay(
    engines: Sequence[Engine],
    constraint: Constraint,
    tokenizer: Encoder,
    walks: Sequence[Sequence[int]],
    settings: Mapping[str, Any],
    warm: bool = False,
) -> list[Replay]:
    """Drive `engines` along the walks of one path: a round to compare masks, then at most ``rounds`` cold or warm ones.

    An engine that has used up ``seconds`` sits out the remaining rounds; one that needs them for a single round has
    failed. Cost: (rounds + 1) times what the engines take, with 16 kB a position for the comparison.
    """
    rounds = int(settings.get("rounds", NUMBERS["rounds"]))
    seconds = float(settings.get("seconds", NUMBERS["seconds"]))
    found = [Replay(engine) for engine in engines]
    backends: dict[str, Backend] = {}
    made: dict[str, CompiledConstraint] = {}
    expected: dict[str, list[masks.Mask]] = {}
    for one in found:
        engine = one.engine
        try:
            backend = backends[engine.label] = create_backend(engine.backend, tokenizer.vocabulary, **engine.options)
            compiled = backend.compile(constraint)
            _run(one, compiled, walks, seconds, expected.setdefault(engine.language, []))
            made.update({engine.label: compiled} if warm else {})
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            one.fail(_failure(error))
    spent = {one.engine.label: 0.0 for one in found}
    for turn in range(rounds):
        for one in rotated(found, turn):
            label = one.engine.label
            if not one.ok or spent[label] >= seconds:
                continue
            try:
                with collector_off():
                    compiled = made[label] if warm else _compile(one, backends[label], constraint)
                    spent[label] += _run(one, compiled, walks, seconds)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:
                one.fail(_failure(error))
    return found


def _compile(one: Replay, backend: Backend, constraint: Constraint) -> CompiledConstraint:
    compiled, nanoseconds = time_call(lambda: backend.compile(constraint))
    one.compile_ns.append(nanoseconds)
    return compiled


class _TooSlow(Exception):
    """A round has used up its seconds."""


def _failure(error: BaseException) -> Failure:
    if isinstance(error, _TooSlow):
        return Failure("timeout", str(error))
    if isinstance(error, TokenRefused):  # all tokens of a path are in the language
        return Failure(MASKS_DIFFER, f"a token of the path is refused: {error}")
    return failure_of(error)


def _run(
    one: Replay,
    compiled: CompiledConstraint,
    walks: Sequence[Sequence[int]],
    seconds: float,
    compare: list[masks.Mask] | None = None,
) -> float:
    """One round; its seconds. Timed unless `compare` is given: the masks to compare with, filled if it is empty."""
    mask = masks.allocate_mask(compiled.vocab.size)
    mask_ns: list[int] = []
    advance_ns: list[int] = []
    one.allowed, one.work = [], []
    fresh = compare is not None and not compare
    situations: set[Any] = set()
    begun = time.perf_counter()
    for walk in walks:
        matcher = compiled.start()
        for token in walk:
            if isinstance(matcher, StateMatcher):
                situations.add(matcher.state)
            before = dict(matcher.counters)
            started = time.perf_counter_ns()
            matcher.fill_mask(mask)
            mask_ns.append(time.perf_counter_ns() - started)
            _note(one, matcher, before, mask)
            if compare is not None:
                _compare(one, compare, mask, fresh)
            started = time.perf_counter_ns()
            matcher.advance(token)
            advance_ns.append(time.perf_counter_ns() - started)
            if time.perf_counter() - begun > seconds:
                raise _TooSlow(f"one round took longer than {seconds:g} s")
    one.held = {"situations": len(situations), **_held(compiled)}
    if compare is not None:
        one.first_ns, one.first_work = mask_ns, one.work
    else:
        one.mask_ns.append(mask_ns)
        one.advance_ns.append(advance_ns)
    return time.perf_counter() - begun


def _note(one: Replay, matcher: Matcher, before: Mapping[str, int], mask: masks.Mask) -> None:
    one.allowed.append(masks.count(mask))
    one.work.append({name: count - before.get(name, 0) for name, count in matcher.counters.items()})


def _compare(one: Replay, expected: list[masks.Mask], mask: masks.Mask, fresh: bool) -> None:
    position = len(one.allowed) - 1
    if fresh:
        expected.append(mask.copy())
    elif position < len(expected) and one.ok:
        differs = masks.count(mask ^ expected[position])
        if differs:
            one.fail(Failure(MASKS_DIFFER, f"at position {position}, in {differs:,} tokens"))


def _held(compiled: CompiledConstraint) -> dict[str, int]:
    """What a machine has made, counted at the end of a round: ``rows``, and return ``stacks`` or ``lexer_states``.

    Of ``earley_trie`` also ``rows_scanned``: pairs of a row and a set of lexemes that the parser was asked for the
    first time; of these ``rows_refused`` led nowhere, ``rows_found`` to a row that was there already, ``rows`` (less
    the first) to new ones. Of ``pushdown_trie`` also ``bytes``, of all its tables but those that constraints share, and
    ``partitions``, those of the pool that it shares, or of its own.
    """
    if isinstance(compiled, CompiledPushdown):
        pushdown = compiled.epoch.machine
        tables = {"rows": pushdown.row_count, "stacks": pushdown.stack_count, "bytes": pushdown.nbytes}
        return {**tables, "partitions": compiled.pool.partitions.count}
    if not isinstance(compiled, CompiledEarley):
        return {}
    machine = compiled.machine
    rows, scanned = machine.rows.row_count, machine.counter(S_SCANS)
    known = machine.rows.memo_keys >= 0
    refused = int(np.count_nonzero(machine.rows.memo_rows[known] < 0))
    return {
        "rows": rows,
        "rows_scanned": scanned,
        "rows_refused": refused,
        "rows_found": int(np.count_nonzero(known)) - refused - (rows - 1),
        "lexer_states": machine.lexer.state_count,
    }


def quantiles(values: Sequence[Sequence[int]], name: str) -> dict[str, float | None]:
    """Median, mean and 99th percentile over all rounds and positions: ``NAME_p50``, ``NAME_mean``, ``NAME_p99``."""
    pooled = np.concatenate([np.asarray(one, dtype=np.float64) for one in values]) if values else np.empty(0)
    if not len(pooled):
        return dict.fromkeys((f"{name}_p50", f"{name}_mean", f"{name}_p99"))
    return {
        f"{name}_p50": float(np.median(pooled)),
        f"{name}_mean": float(pooled.mean()),
        f"{name}_p99": float(np.percentile(pooled, 99)),
    }
