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
are compared with those of the first: in how many masks do they differ, and in how many tokens? Engines of one
*language* must not differ; where a grammar's text can be cut into lexemes in more than one way, others may.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.cfg_fsm.speculation import Speculation
from tokdfa.backends.cfg_fsm.strategy import CompiledCfgFsm
from tokdfa.backends.earley_trie.strategy import CompiledEarley
from tokdfa.backends.pushdown_trie.strategy import CompiledPushdown
from tokdfa.backends.registry import create_backend
from tokdfa.backends.situations import SituationMatcher
from tokdfa.errors import TokdfaError, TokenRefused
from tokdfa.lab.measure.clock import collector_off, time_call
from tokdfa.lab.measure.engines import attempt
from tokdfa.lab.measure.limits import OK, Failure, failure_of
from tokdfa.lab.measure.measure import rotated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.backends.base import Backend, CompiledConstraint
    from tokdfa.constraint import Constraint
    from tokdfa.lab.measure.workloads import Encoder
    from tokdfa.vocabulary.vocabulary import Vocabulary

    Walks = Sequence[Sequence[int]]
    Marks = Sequence[Sequence[bool]]

MASKS_DIFFER = "masks differ"


class Engine(NamedTuple):
    """A backend with its options, under a name. `language`: engines that share it must give the same masks."""

    label: str
    backend: str
    options: dict[str, Any]
    language: str


#: Engines by label; the first is the one that the others' masks are compared with. Nothing is shared between compiles.
ENGINES: dict[str, Engine] = {
    engine.label: engine
    for engine in (
        Engine("cfg_fsm vectors", "cfg_fsm", {}, "Lark's"),
        Engine("cfg_fsm walk", "cfg_fsm", {"masks": "walk"}, "Lark's"),
        Engine("earley_trie", "earley_trie", {"shared_effects": False}, "longest"),
        Engine("pushdown_trie", "pushdown_trie", {"shared": False}, "longest"),
        Engine("llguidance", "llguidance", {}, "llguidance"),
    )
}
#: What stands before Lark's report in the error about a grammar with conflicts.
_SAYS = "says Lark:\n"
#: What is timed at positions.
_TIMED = ("cold", "again", "seen", "advance")


@dataclass
class Entrant:
    """An engine on its way. `bare`: the constraint compiled to keep no masks, if it can be told to; `ns`: what is timed
    -> nanoseconds of all rounds; `differing`: by new position, tokens in which its mask is not the first engine's.
    """

    engine: Engine
    failure: Failure | None = None
    backend: Backend | None = None
    bare: CompiledConstraint | None = None
    ns: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    differing: list[int] = field(default_factory=list)
    held: int | None = None

    def first_masks(self, constraint: Constraint, vocab: Vocabulary, walks: Walks, new: Marks) -> list[masks.Mask]:
        """Make the backend, and the masks of the new positions."""
        made = create_backend(self.engine.backend, vocab, **self.engine.options)
        if any(option.name == "memo" for option in made.options):
            bare = create_backend(self.engine.backend, vocab, **{**self.engine.options, "memo": False})
            self.bare = bare.compile(constraint)
        found: list[masks.Mask] = []
        _drive(self.bare or made.compile(constraint), walks, new, found)
        self.backend = made
        return found

    def round(self, constraint: Constraint, walks: Walks, new: Marks) -> None:
        """A compile, its new masks, those seen before, and those made again."""
        assert self.backend is not None
        everywhere = [[True] * len(walk) for walk in walks]
        with collector_off():
            compiled, compile_ns = time_call(lambda: self.backend.compile(constraint))  # type: ignore[union-attr]
            cold, advances = _drive(compiled, walks, new)
            _drive(compiled, walks, everywhere)
            seen, _ = _drive(compiled, walks, everywhere)
            again = [] if self.bare is None else _drive(self.bare, walks, new)[0]
        for what, found in zip(("compile", *_TIMED), ([compile_ns], cold, again, seen, advances), strict=True):
            self.ns[what] += found
        self.held = held_bytes(compiled)

    def row(self) -> dict[str, Any]:
        """Its numbers; None where it failed before there were any."""
        return {
            "engine": self.engine.label,
            "status": self.failure.kind if self.failure else OK,
            "message": self.failure.message if self.failure else "",
            "compile_s": float(np.median(self.ns["compile"])) * 1e-9 if self.ns["compile"] else None,
            **{
                f"{what}_ns_p{percent}": float(np.percentile(self.ns[what], percent)) if self.ns[what] else None
                for what in _TIMED
                for percent in (50, 99)
            },
            "held_bytes": self.held,
            "compared": len(self.differing),
            "differing_masks": int(np.count_nonzero(self.differing)) if self.differing else None,
            "differing_tokens": int(np.sum(self.differing)) if self.differing else None,
        }


def replay_texts(
    constraint: Constraint,
    tokenizer: Encoder,
    texts: Sequence[str],
    labels: Sequence[str],
    text_tokens: int,
    rounds: int,
    seconds: float,
) -> list[dict[str, Any]]:
    """A row for each engine of `labels` (of `ENGINES`), or one row with status and reason if cfg_fsm refuses.

    `text_tokens`: how many tokens the texts have together at most (one text is taken in any case); `seconds`: after
    which an engine sits out the `rounds` that are left (there is always one).
    """
    vocab = tokenizer.vocabulary
    try:
        judge = create_backend("cfg_fsm", vocab).compile(constraint)
    except TokdfaError as error:
        return [{"row": "refused", "status": failure_of(error).kind, "message": first_line(error)}]
    assert isinstance(judge, CompiledCfgFsm)
    walks, new, refused = _walks(judge, tokenizer, texts, text_tokens)
    if not walks:
        return [{"row": "refused", "status": "unsupported", "message": "Lark takes none of the texts"}]
    entrants = [Entrant(ENGINES[label]) for label in labels]
    first: Entrant | None = None
    expected: list[masks.Mask] = []
    for one in entrants:
        found = attempt(one.first_masks, constraint, vocab, walks, new)
        if isinstance(found, Failure):
            one.failure = found
            continue
        if first is None:
            first, expected = one, found
        one.differing = [masks.count(mine ^ theirs) for mine, theirs in zip(found, expected, strict=True)]
        if any(one.differing) and one.engine.language == first.engine.language:
            differing = np.count_nonzero(one.differing)
            one.failure = Failure(MASKS_DIFFER, f"{differing} masks are not those of {first.engine.label}")
    left = dict.fromkeys(labels, seconds)
    for turn in range(rounds):
        for one in rotated(entrants, turn):
            if one.failure is None and left[one.engine.label] > 0:
                begun = time.perf_counter()
                one.failure = attempt(one.round, constraint, walks, new)
                left[one.engine.label] -= time.perf_counter() - begun
    place = {
        "texts": len(walks),
        "texts_refused": refused,
        "masks": sum(map(len, walks)),
        "new_masks": int(sum(map(sum, new))),
    }
    return [{"row": "engine", **place, **one.row()} for one in entrants]


def first_line(error: TokdfaError) -> str:
    """The first line of an error; of one with a report of Lark's, the first line of that."""
    said = str(error)
    return (said.partition(_SAYS)[2] or said).strip().splitlines()[0]


def _walks(judge: CompiledCfgFsm, tokenizer: Encoder, texts: Sequence[str], limit: int) -> tuple[Walks, Marks, int]:
    """The texts that Lark takes, as tokens closed by an end token, up to `limit` tokens; by walk and position whether
    its situation is met there for the first time; how many texts Lark refuses.
    """
    walks: list[tuple[int, ...]] = []
    new: list[list[bool]] = []
    met: set[int] = set()
    refused = 0
    for text in texts:
        tokens = (*(int(token) for token in tokenizer.encode(text)), tokenizer.vocabulary.end_tokens[0])
        matcher, states = judge.start(), []
        assert isinstance(matcher, SituationMatcher)
        try:
            for token in tokens:
                states.append(matcher.state)
                matcher.advance(token)
        except TokenRefused:
            refused += 1
            continue
        if not walks or sum(map(len, walks)) + len(tokens) <= limit:
            walks.append(tokens)
            new.append([state not in met and not met.add(state) for state in states])  # type: ignore[func-returns-value]
    return walks, new, refused


def _drive(
    compiled: CompiledConstraint, walks: Walks, where: Marks, keep: list[masks.Mask] | None = None
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
        tables = compiled.effects.nbytes if compiled.effects is not None else 0
        return compiled.machine.nbytes + tables + compiled.masks.nbytes
    if isinstance(compiled, CompiledPushdown):
        return compiled.epoch.machine.nbytes + compiled.pool.nbytes + compiled.epoch.masks.nbytes
    return None
