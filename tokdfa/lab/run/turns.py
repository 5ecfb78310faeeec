"""What the process of a contender does: its set-up, then turn after turn, item after item.

The set-up is what an engine makes once of a vocabulary: from the loaded tokenizer to the masks of a throw-away
constraint, with the tables, slices and pools that it needs. A process that is forked from one that has the tokenizer
and nothing else pays for all of it itself, so it is timed here.
"""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tokdfa.backends.registry import create_backend
from tokdfa.errors import UnsupportedConstraint
from tokdfa.lab.measure.contenders import Contender, Outcome
from tokdfa.lab.measure.limits import Failure, attempt
from tokdfa.lab.measure.warm_up import warm_up
from tokdfa.lab.measure.workloads import follow
from tokdfa.mask import allocate_mask

if TYPE_CHECKING:
    from tokdfa.backends.base import Backend
    from tokdfa.lab.config.expand import Item
    from tokdfa.lab.config.experiment import BackendEntry, ExperimentConfig
    from tokdfa.lab.measure.constraint_entry import ConstraintEntry
    from tokdfa.lab.measure.limits import Board
    from tokdfa.lab.measure.workloads import Encoder, Walk


@dataclass(frozen=True)
class Turn:
    """What a contender does next of an item: compile for the `repeat`-th time, or replay `walks` if there are any."""

    repeat: int = 0
    walks: tuple[Walk, ...] | None = None


@dataclass(frozen=True)
class Taken:
    """What a turn has come to. `vocabulary`: its ``size`` and ``fingerprint``."""

    outcome: Outcome
    vocabulary: dict[str, Any]


@dataclass
class Seat:
    """What the process of a contender keeps from turn to turn. A backend that cannot be built is kept as its failure.

    `kinds`: of constraints, that it is warm for; `item_id`: the item that `contender` is on its way through.
    """

    tokenizer: Encoder
    board: Board
    backend: Backend | Failure | None = None
    set_up_s: float | None = None
    kinds: set[str] = field(default_factory=set)
    item_id: str = ""
    contender: Contender | None = None

    def take(self, turn: Turn, item: Item, config: ExperimentConfig) -> Taken:
        """Take a turn; whatever it raises is the contender's failure."""
        outcome = Outcome(item.label)
        failure = attempt(self._take, turn, item, config, outcome)
        if failure is not None:
            outcome.fail(failure)
        outcome.set_up_s = self.set_up_s
        vocabulary = self.tokenizer.vocabulary
        return Taken(outcome, {"size": vocabulary.size, "fingerprint": vocabulary.fingerprint})

    def _take(self, turn: Turn, item: Item, config: ExperimentConfig, outcome: Outcome) -> Failure | None:
        measures, seconds = {*config.measures}, config.limits.seconds
        if self.item_id != item.item_id:
            self.item_id, self.contender = item.item_id, None
            assert item.backend is not None
            assert item.constraint is not None
            constraint = item.constraint.build()
            backend = self._prepare(item.backend, constraint.kind, config)
            if isinstance(backend, Failure):
                return backend
            answer = backend.supports(constraint)  # a peer translates the pattern then, untimed
            if not answer:
                raise UnsupportedConstraint(answer.reason)
            self.contender = Contender(backend, constraint, partial(self.board.begin, 0), outcome)
        contender = self.contender
        assert contender is not None
        contender.outcome = outcome
        if turn.walks is None:
            contender.measure_compile(turn.repeat, first_mask="first_mask" in measures)
            return None
        if kept := frozenset(measures & {"mask", "advance"}):
            contender.replay(turn.walks, seconds, kept)
        if "seen" in measures:
            contender.fill_seen(turn.walks, config.repeats, seconds)
        assert contender.compiled is not None
        outcome.sizes = {**contender.compiled.sizes}
        return None

    def _prepare(self, entry: BackendEntry, kind: str, config: ExperimentConfig) -> Backend | Failure:
        """The backend, warm for this kind of constraints. The first time, its set-up is timed."""
        if self.backend is None:
            self.board.begin(0, "prepare")
            began = time.perf_counter()
            self.backend = attempt(create_backend, entry.name, self.tokenizer.vocabulary, **entry.options)
            if not isinstance(self.backend, Failure):
                self._warm_up(self.backend, kind)
                self.set_up_s = time.perf_counter() - began
                for known in config.known:
                    attempt(_make_masks, self.backend, known, self.tokenizer)
            gc.collect()
            gc.freeze()  # what is here now stays
            self.board.open_job()  # and is not what a constraint takes
        elif not isinstance(self.backend, Failure) and kind not in self.kinds:
            self._warm_up(self.backend, kind)
        return self.backend

    def _warm_up(self, backend: Backend, kind: str) -> None:
        self.board.begin(0, "warm up")
        warm_up(backend, kind)
        self.kinds.add(kind)


def _make_masks(backend: Backend, entry: ConstraintEntry, tokenizer: Encoder) -> None:
    """Make all masks along the texts of a constraint. Who cannot will not know its parts."""
    compiled, mask = backend.compile(entry.build()), allocate_mask(backend.vocab.size)
    for written in entry.texts:
        for matcher in follow(compiled, tokenizer.encode(written)):
            matcher.fill_mask(mask)
