"""The experiment ``kind: batch``: how long do the masks of many matchers take, one after another and all at once?

A serving engine holds many texts under one constraint, each at another place, and needs all their masks before the
model's next step. Here that many matchers of one compiled constraint are led to different places of seeded random
walks and of the item's texts (random walks alone stay long in strings, where all masks are one), and all their masks
are filled into one array. A *way* to do so is an engine with a *call*: ``loop``, a Python loop over ``fill_mask``, or
``batch``, the engine's own call for many matchers, with a number of threads. Of ours that is
`tokdfa.backends.pushdown_trie.strategy.fill_masks`, of llguidance its executor. Two *phases* are timed apart:

- ``first``: the constraint was just compiled, and its matchers have read their tokens but filled no mask. What all
  constraints of a vocabulary share is there, from the comparison before.
- ``seen``: the same constraint has filled these masks before, for other matchers. So an engine that remembers masks by
  their state has them, and one that remembers only the last mask of a matcher has not.

Before anything is timed the masks of all ways are compared bit for bit, in both phases: ways of one lexing rule must
agree, and those that do not have the status `MASKS_DIFFER`. How many masks differ from those of the first way is told
of all (``differing``), since engines with another lexing rule may differ.

One item is a tokenizer and a constraint; rows: one for each batch size, phase, way and number of threads, in
nanoseconds for the whole batch. Ways take turns, A B C, B C A, ...
"""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokdfa import mask as masks
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Grammar
from tokdfa.errors import OptionError
from tokdfa.lab.measure.clock import collector_off, time_call
from tokdfa.lab.measure.grammar_replay import (
    MASKS_DIFFER,
    RANDOM,
    TEXTS,
    Engine,
    check_numbers,
    chosen,
    constraint_of,
    plan_paths,
)
from tokdfa.lab.measure.limits import OK, Failure, failure_of
from tokdfa.lab.measure.measure import rotated
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tokdfa.backends.base import Backend, CompiledConstraint, Matcher
    from tokdfa.constraint import Constraint
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: int32, shape (matchers, words), C-contiguous.
Masks = npt.NDArray[np.int32]

LOOP, BATCH = "loop", "batch"
FIRST, SEEN = "first", "seen"


@dataclass(frozen=True)
class Way:
    """An engine, and whether its masks are filled by a loop or by its own call for batches."""

    engine: Engine
    call: str


_ENGINES = {
    "pushdown_trie": Engine("pushdown_trie", "pushdown_trie", {}, "longest"),
    "earley_trie": Engine("earley_trie", "earley_trie", {}, "longest"),
    "llguidance": Engine("llguidance", "llguidance", {}, "llguidance"),
}
#: Ways by label.
WAYS: dict[str, Way] = {
    "pushdown_trie loop": Way(_ENGINES["pushdown_trie"], LOOP),
    "pushdown_trie batch": Way(_ENGINES["pushdown_trie"], BATCH),
    "earley_trie loop": Way(_ENGINES["earley_trie"], LOOP),
    "llguidance loop": Way(_ENGINES["llguidance"], LOOP),
    "llguidance batch": Way(_ENGINES["llguidance"], BATCH),
}
#: The engine that decides the random walks; its language is within those of all ways.
DECIDER = Engine("decider", "earley_trie", {"lexer": "one_byte", "ignore": "between"}, "one_byte")
SIZES, THREADS = (8, 32, 128, 256), (1, 2)


def check_settings(settings: dict[str, Any]) -> None:
    """Raise OptionError or UnknownNameError if `settings` of an experiment file are not what `run_item` takes."""
    check_numbers("batch", settings, ("ways", "sizes", "threads"))
    chosen(settings, "ways", WAYS)
    for name in ("sizes", "threads"):
        numbers = settings.get(name, [1])
        if not isinstance(numbers, list) or not numbers or not all(type(one) is int and one > 0 for one in numbers):
            raise OptionError(f"settings.{name} must be a list of positive ints, not {numbers!r}")


@dataclass
class _Contender:
    """A way with a number of threads, and the nanoseconds that it took by phase."""

    label: str
    way: Way
    threads: int
    status: str = OK
    message: str = ""
    differing: int | None = None
    seen_by: CompiledConstraint | None = None
    ns: dict[str, list[int]] = field(default_factory=lambda: {FIRST: [], SEEN: []})

    @property
    def ok(self) -> bool:
        return self.status == OK

    def fail(self, failure: Failure) -> None:
        self.status, self.message = failure.kind, failure.message

    def fill(self, matchers: Sequence[Matcher], out: Masks) -> None:
        """Fill all masks, in this way."""
        if self.way.call == LOOP:
            for matcher, row in zip(matchers, out, strict=True):
                matcher.fill_mask(row)
        else:
            BATCH_CALLS[self.way.engine.backend](matchers, out, self.threads)


def run_item(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure one tokenizer and one constraint; a row for each size, phase, way and number of threads.

    `settings`: tokenizer (name), label, grammar (and start) or regex, texts; ways (labels of `WAYS`; all of them by
    default), sizes (default `SIZES`), threads of batch calls (default `THREADS`); walks and steps of the random walks;
    text_tokens (see `plan_paths`; texts that `DECIDER` refuses are left out); rounds, seconds (for a way, a number of
    threads and a size; then it sits out the remaining rounds). `seed` decides the walks.
    """
    constraint, tokenizer = constraint_of(settings), load_tokenizer(settings["tokenizer"])
    vocab = tokenizer.vocabulary
    paths = plan_paths(settings, constraint, tokenizer, DECIDER, seed)
    decider = create_backend(DECIDER.backend, vocab, **DECIDER.options).compile(constraint)
    walks = [*paths[RANDOM], *(text for text in paths.get(TEXTS, []) if _can_read(decider, text))]
    labels, threads = chosen(settings, "ways", WAYS), settings.get("threads", THREADS)
    place = {
        "tokenizer": settings["tokenizer"],
        "vocab_size": vocab.size,
        "constraint": settings.get("label") or constraint.name,
    }
    rows = []
    for size in settings.get("sizes", SIZES):
        prefixes = spread_places(walks, size)
        contenders = [
            _Contender(label, WAYS[label], number)
            for label in labels
            for number in (threads if WAYS[label].call == BATCH else (1,))
        ]
        distinct_masks = _measure(contenders, constraint, vocab, prefixes, settings)
        batch = {**place, "size": size, "places": len(set(prefixes)), "distinct_masks": distinct_masks}
        rows += [{**batch, **_row(one, phase)} for phase in (SEEN, FIRST) for one in contenders]
    return rows


def _can_read(compiled: CompiledConstraint, tokens: Sequence[int]) -> bool:
    matcher = compiled.start()
    for token in tokens:
        if not matcher.allows(token):
            return False
        matcher.advance(token)
    return True


def spread_places(walks: Sequence[Sequence[int]], size: int) -> list[tuple[int, ...]]:
    """The tokens read at `size` places, evenly spread over all places of the walks; again from the first if too few."""
    places = list(dict.fromkeys(tuple(walk[:length]) for walk in walks for length in range(len(walk))))
    if size > len(places):
        return [places[k % len(places)] for k in range(size)]
    return [places[k * len(places) // size] for k in range(size)]


def _measure(
    contenders: Sequence[_Contender],
    constraint: Constraint,
    vocab: Vocabulary,
    prefixes: Sequence[tuple[int, ...]],
    settings: Mapping[str, Any],
) -> int:
    """Compare and time all contenders on one batch; how many different masks the first of them has filled."""
    out: Masks = np.zeros((len(prefixes), masks.mask_words(vocab.size)), dtype=np.int32)
    backends: dict[str, Backend] = {}
    expected: dict[str, Masks] = {}
    for one in contenders:
        with _failing(one):
            engine = one.way.engine
            if engine.label not in backends:
                backends[engine.label] = create_backend(engine.backend, vocab, **engine.options)
            compiled = one.seen_by = backends[engine.label].compile(constraint)
            # a regex or a choice has the same masks for every engine, a grammar for those of one lexing rule
            language = engine.language if isinstance(constraint, Grammar) else ""
            for _ in (FIRST, SEEN):
                out.fill(-1)
                one.fill(_matchers(compiled, prefixes), out)
                reference = next(iter(expected.values()), out)
                one.differing = int((out != reference).any(axis=1).sum())
                differing = int((out != expected.setdefault(language, out.copy())).any(axis=1).sum())
                if differing and one.ok:
                    one.fail(Failure(MASKS_DIFFER, f"{differing} of the {len(out)} masks of a batch"))
    spent = dict.fromkeys(range(len(contenders)), 0.0)
    for turn in range(int(settings.get("rounds", 3))):
        for number, one in rotated(list(enumerate(contenders)), turn):
            if not one.ok or spent[number] >= settings.get("seconds", 10.0):
                continue
            with _failing(one), collector_off():
                spent[number] += _round(one, backends[one.way.engine.label], constraint, prefixes, out)
    return len(np.unique(next(iter(expected.values())), axis=0)) if expected else 0


def _round(
    one: _Contender, backend: Backend, constraint: Constraint, prefixes: Sequence[tuple[int, ...]], out: Masks
) -> float:
    """Time both phases once; the seconds that they took."""
    assert one.seen_by is not None
    taken = 0
    for phase, compiled in ((FIRST, backend.compile(constraint)), (SEEN, one.seen_by)):
        matchers = _matchers(compiled, prefixes)
        _, nanoseconds = time_call(partial(one.fill, matchers, out))
        one.ns[phase].append(nanoseconds)
        taken += nanoseconds
    return taken * 1e-9


def _matchers(compiled: CompiledConstraint, prefixes: Sequence[tuple[int, ...]]) -> list[Matcher]:
    """A matcher for each prefix that has read its tokens and filled no mask."""
    found = []
    for prefix in prefixes:
        matcher = compiled.start()
        for token in prefix:
            matcher.advance(token)
        found.append(matcher)
    return found


@contextmanager
def _failing(one: _Contender) -> Iterator[None]:
    """Errors become the failure of a contender; an interrupt goes through."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic in Rust is no Exception
        one.fail(failure_of(error))


def _row(one: _Contender, phase: str) -> dict[str, Any]:
    times = one.ns[phase] if one.ok else []
    return {
        "phase": phase,
        "way": one.label,
        "engine": one.way.engine.label,
        "call": one.way.call,
        "threads": one.threads,
        "status": one.status,
        "message": one.message,
        "rounds": len(times),
        "ns_median": float(np.median(times)) if times else None,
        "ns_min": float(min(times)) if times else None,
        "differing": one.differing,
    }


def _fill_pushdown(matchers: Sequence[Matcher], out: Masks, threads: int) -> None:
    from tokdfa.backends.pushdown_trie.strategy import fill_masks

    fill_masks(matchers, out, threads=threads)


def _fill_llguidance(matchers: Sequence[Matcher], out: Masks, threads: int) -> None:
    """All masks by llguidance's executor; those at the end of a text once more, as its adapter does it."""
    from llguidance.numpy import fill_next_token_bitmask_par

    peers = [matcher._peer for matcher in matchers]  # type: ignore[attr-defined]
    fill_next_token_bitmask_par(_executor(threads), list(zip(peers, itertools.count(), strict=False)), out)
    for peer, matcher, row in zip(peers, matchers, out, strict=True):
        if peer.is_stopped():
            matcher.fill_mask(row)


@cache
def _executor(threads: int) -> Any:
    """llguidance's threads, kept for the next batch."""
    from llguidance import LLExecutor

    return LLExecutor(threads)


#: Backend -> its call for many matchers: (matchers, out, threads).
BATCH_CALLS: dict[str, Callable[[Sequence[Matcher], Masks, int], None]] = {
    "pushdown_trie": _fill_pushdown,
    "llguidance": _fill_llguidance,
}
