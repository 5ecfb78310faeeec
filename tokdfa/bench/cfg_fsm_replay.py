"""Texts of LALR(1) grammars replayed by several engines: what a compile, a mask and an advance cost, and who agrees.

The texts are those of Lark's LALR(1) parser with its contextual lexer; others of the grammar are counted and left out.
A *new* position is one where ``cfg_fsm`` is in a situation that the texts have not met before; it is the same for all
engines, so all do the same work. Engines take turns, round by round:

- *cold*: the constraint is compiled anew, with nothing from other compiles, and the texts are gone through once, with a
  mask at each new position only. What an engine builds while it makes masks is part of their times;
- *seen*: the same compiled constraint, a mask at every position; the second of two passes is timed;
- *again*: engines that can be told to keep no masks make those of the new positions once more. All that they build is
  there, so this is the price of a new mask in a server that has run for a while. The others have it in *seen*.

Before, each engine makes the masks of the new positions once, untimed and keeping none if it can be told to, and they
are compared with those of the first. That is how many masks differ, and in how many tokens. Engines of one *language*
must not differ; where a grammar's text can be cut into lexemes in more than one way, engines of different languages
may.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.cfg_fsm.speculation import Speculation
from tokdfa.backends.cfg_fsm.strategy import CompiledCfgFsm
from tokdfa.backends.earley_trie.strategy import CompiledEarley
from tokdfa.backends.pushdown_trie.strategy import CompiledPushdown
from tokdfa.backends.registry import create_backend
from tokdfa.backends.situations import SituationMatcher
from tokdfa.bench.clock import collector_off, time_call
from tokdfa.bench.engines import attempt
from tokdfa.bench.grammar_replay import MASKS_DIFFER, Engine, quantiles
from tokdfa.bench.limits import OK, Failure, failure_of
from tokdfa.bench.measure import rotated
from tokdfa.errors import TokdfaError, TokenRefused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tokdfa.backends.base import Backend, CompiledConstraint, Matcher
    from tokdfa.bench.workloads import Encoder
    from tokdfa.constraint import Constraint

LARK = "Lark's"
#: Engines by label; the first is the one that the others' masks are compared with. Nothing is shared between compiles.
ENGINES: dict[str, Engine] = {
    engine.label: engine
    for engine in (
        Engine("cfg_fsm vectors", "cfg_fsm", {}, LARK),
        Engine("cfg_fsm walk", "cfg_fsm", {"masks": "walk"}, LARK),
        Engine("earley_trie", "earley_trie", {"shared_partitions": False}, "longest"),
        Engine("pushdown_trie", "pushdown_trie", {"shared": False}, "longest"),
        Engine("llguidance", "llguidance", {}, "llguidance"),
    )
}
#: What stands before Lark's report in the error about a grammar with conflicts.
_SAYS = "says Lark:\n"


@dataclass
class Entrant:
    """An engine on its way. Times are in ns: `compile_ns` one a round, the others by round and position."""

    engine: Engine
    status: str = OK
    message: str = ""
    backend: Backend | None = None
    bare: CompiledConstraint | None = None
    compile_ns: list[int] = field(default_factory=list)
    cold_ns: list[list[int]] = field(default_factory=list)
    seen_ns: list[list[int]] = field(default_factory=list)
    again_ns: list[list[int]] = field(default_factory=list)
    advance_ns: list[list[int]] = field(default_factory=list)
    differing: list[int] = field(default_factory=list)
    held: int | None = None

    def fail(self, failure: Failure) -> None:
        """Note why it takes no further part."""
        self.status, self.message = failure.kind, failure.message


def replay_texts(
    constraint: Constraint,
    tokenizer: Encoder,
    texts: Sequence[str],
    labels: Sequence[str],
    numbers: Mapping[str, float],
) -> list[dict[str, Any]]:
    """A row for each engine of `labels` (of `ENGINES`), or one row with status and reason if cfg_fsm refuses.

    `numbers`: ``text_tokens``, how many tokens the texts have together at most (one text is taken in any case);
    ``rounds``; ``seconds``, after which an engine sits out the rounds that are left (there is always one).
    """
    try:
        judge = create_backend("cfg_fsm", tokenizer.vocabulary).compile(constraint)
    except TokdfaError as error:
        return [{"row": "refused", "status": failure_of(error).kind, "message": first_line(error)}]
    assert isinstance(judge, CompiledCfgFsm)
    walks, refused = _walks(judge, tokenizer, texts, int(numbers["text_tokens"]))
    if not walks:
        return [{"row": "refused", "status": "unsupported", "message": "Lark takes none of the texts"}]
    new = _new_positions(judge, walks)
    entrants = [Entrant(ENGINES[label]) for label in labels]
    _compare(entrants, constraint, tokenizer, walks, new)
    _measure(entrants, constraint, walks, new, int(numbers["rounds"]), float(numbers["seconds"]))
    place = {
        "texts": len(walks),
        "texts_refused": refused,
        "masks": sum(map(len, walks)),
        "new_masks": int(sum(map(sum, new))),
        "conflicts": len(judge.machine.tables.conflicts),
        "certified": judge.machine.is_certified,
    }
    return [{"row": "engine", **place, **_summary(one)} for one in entrants]


def first_line(error: TokdfaError) -> str:
    """The first line of an error; of one with a report of Lark's, the first line of that."""
    said = str(error)
    return (said.partition(_SAYS)[2] or said).strip().splitlines()[0]


def _walks(
    judge: CompiledCfgFsm, tokenizer: Encoder, texts: Sequence[str], limit: int
) -> tuple[list[tuple[int, ...]], int]:
    """The texts that Lark takes, as tokens closed by an end token, up to `limit` tokens; how many it refuses."""
    walks: list[tuple[int, ...]] = []
    refused = 0
    for text in texts:
        tokens = (*(int(token) for token in tokenizer.encode(text)), tokenizer.vocabulary.end_tokens[0])
        try:
            _advance_all(judge.start(), tokens)
        except TokenRefused:
            refused += 1
            continue
        if not walks or sum(map(len, walks)) + len(tokens) <= limit:
            walks.append(tokens)
    return walks, refused


def _advance_all(matcher: Matcher, tokens: Sequence[int]) -> None:
    for token in tokens:
        matcher.advance(token)


def _new_positions(judge: CompiledCfgFsm, walks: Sequence[Sequence[int]]) -> list[list[bool]]:
    """By walk and position, whether its situation is met there for the first time."""
    met: set[int] = set()
    found = []
    for walk in walks:
        matcher = judge.start()
        assert isinstance(matcher, SituationMatcher)
        here = []
        for token in walk:
            here.append(matcher.state not in met)
            met.add(matcher.state)
            matcher.advance(token)
        found.append(here)
    return found


def _compare(
    entrants: Sequence[Entrant],
    constraint: Constraint,
    tokenizer: Encoder,
    walks: Sequence[Sequence[int]],
    new: Sequence[Sequence[bool]],
) -> None:
    """Build the backends, and compare the masks of the new positions with those of the first engine that has any."""
    first: Entrant | None = None
    expected: list[masks.Mask] = []
    for one in entrants:
        engine = one.engine
        try:
            one.backend = create_backend(engine.backend, tokenizer.vocabulary, **engine.options)
            if any(option.name == "memo" for option in one.backend.options):
                bare = create_backend(engine.backend, tokenizer.vocabulary, **{**engine.options, "memo": False})
                one.bare = bare.compile(constraint)
            found: list[masks.Mask] = []
            _drive(one.bare or one.backend.compile(constraint), walks, new, found)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # whatever an engine raises is its failure, panics of compiled ones included
            one.fail(_failure(error))
            continue
        if first is None:
            first, expected = one, found
        one.differing = [masks.count(mine ^ theirs) for mine, theirs in zip(found, expected, strict=True)]
        if any(one.differing) and engine.language == first.engine.language:
            differing = np.count_nonzero(one.differing)
            one.fail(Failure(MASKS_DIFFER, f"{differing} masks are not those of {first.engine.label}"))


def _failure(error: BaseException) -> Failure:
    if isinstance(error, TokenRefused):  # all texts are of the grammar
        return Failure("wrong_refusal", f"a token of the texts is refused: {error}")
    return failure_of(error)


def _measure(
    entrants: Sequence[Entrant],
    constraint: Constraint,
    walks: Sequence[Sequence[int]],
    new: Sequence[Sequence[bool]],
    rounds: int,
    seconds: float,
) -> None:
    """The timed rounds, as the module's page says."""
    left = {one.engine.label: seconds for one in entrants}
    for turn in range(rounds):
        for one in rotated(entrants, turn):
            if one.status == OK and one.backend is not None and left[one.engine.label] > 0:
                begun = time.perf_counter()
                failure = attempt(_round, one, one.backend, constraint, walks, new)
                if failure is not None:
                    one.fail(failure)
                left[one.engine.label] -= time.perf_counter() - begun


def _round(
    one: Entrant,
    backend: Backend,
    constraint: Constraint,
    walks: Sequence[Sequence[int]],
    new: Sequence[Sequence[bool]],
) -> None:
    """One engine's compile, its new masks, those seen before, and those made again."""
    everywhere = [[True] * len(walk) for walk in walks]
    with collector_off():
        compiled, nanoseconds = time_call(lambda: backend.compile(constraint))
        cold, advances = _drive(compiled, walks, new)
        _drive(compiled, walks, everywhere)
        seen, _ = _drive(compiled, walks, everywhere)
        if one.bare is not None:
            one.again_ns.append(_drive(one.bare, walks, new)[0])
    one.compile_ns.append(nanoseconds)
    one.cold_ns.append(cold)
    one.advance_ns.append(advances)
    one.seen_ns.append(seen)
    one.held = held_bytes(compiled)


def _drive(
    compiled: CompiledConstraint,
    walks: Sequence[Sequence[int]],
    where: Sequence[Sequence[bool]],
    keep: list[masks.Mask] | None = None,
) -> tuple[list[int], list[int]]:
    """Go through the walks once, with a mask at the positions that `where` marks; ns of the masks and of the advances.

    Copies of the masks are appended to `keep`.
    """
    mask = masks.allocate_mask(compiled.vocab.size)
    mask_ns: list[int] = []
    advance_ns: list[int] = []
    for walk, marks in zip(walks, where, strict=True):
        matcher = compiled.start()
        for token, is_marked in zip(walk, marks, strict=True):
            if is_marked:
                started = time.perf_counter_ns()
                matcher.fill_mask(mask)
                mask_ns.append(time.perf_counter_ns() - started)
                if keep is not None:
                    keep.append(mask.copy())
            started = time.perf_counter_ns()
            matcher.advance(token)
            advance_ns.append(time.perf_counter_ns() - started)
    return mask_ns, advance_ns


def held_bytes(compiled: CompiledConstraint) -> int | None:
    """Bytes of the arrays that a compiled constraint of ours holds, kept masks included; None of a peer's.

    What belongs to the vocabulary (trie, split table) is not counted, nor what Python's own objects take.
    """
    if isinstance(compiled, CompiledCfgFsm):
        vectors = compiled.filler.nbytes if isinstance(compiled.filler, Speculation) else 0
        return compiled.machine.nbytes + vectors + compiled.masks.nbytes
    if isinstance(compiled, CompiledEarley):
        return compiled.machine.nbytes + compiled.partitions.nbytes + compiled.masks.nbytes
    if isinstance(compiled, CompiledPushdown):
        return compiled.epoch.machine.nbytes + compiled.pool.nbytes + compiled.epoch.masks.nbytes
    return None


def _summary(one: Entrant) -> dict[str, Any]:
    """The numbers of an engine; None where it failed before there were any."""
    return {
        "engine": one.engine.label,
        "backend": one.engine.backend,
        "language": one.engine.language,
        "status": one.status,
        "message": one.message,
        "rounds": len(one.compile_ns),
        "compile_s": float(np.median(one.compile_ns)) * 1e-9 if one.compile_ns else None,
        **quantiles(one.cold_ns, "cold_ns"),
        **quantiles(one.again_ns, "again_ns"),
        **quantiles(one.seen_ns, "seen_ns"),
        **quantiles(one.advance_ns, "advance_ns"),
        "held_bytes": one.held,
        "compared": len(one.differing),
        "differing_masks": int(np.count_nonzero(one.differing)) if one.differing else None,
        "differing_tokens": int(np.sum(one.differing)) if one.differing else None,
    }
