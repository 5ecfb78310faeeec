"""One contender on one item: compiles, and walks replayed token by token.

A contender is measured in a process of its own, so nothing of another is in its heap or its caches, and contenders take
turns, so slow drift of the machine falls on all of them alike (`tokdfa.lab.run.group_task`). Every sample is kept with
its place.

A step of a walk fills a mask and advances by the walk's token. Masks are kept, packed, and compared when all contenders
have walked (`compare_masks`): how many tokens a contender allows (`allowed`), and in how many it differs from the
reference (`differs`). A contender that refuses a replayed token, or goes through with a text that is outside the
language, goes on and is marked as failed; one that raises, or uses up its seconds, ends there.
"""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from tokdfa import mask as masks
from tokdfa.errors import TokenRefused
from tokdfa.lab.measure.clock import collector_off
from tokdfa.lab.measure.limits import OK, Failure
from tokdfa.lab.measure.workloads import follow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tokdfa.backends.base import Backend, CompiledConstraint, Matcher
    from tokdfa.constraint import Constraint
    from tokdfa.lab.measure.workloads import Walk
    from tokdfa.mask import Mask

    #: Told the phase before each call.
    Begin = Callable[[str], None]

T = TypeVar("T")

MEASURES = ("compile", "first_mask", "mask", "advance", "seen", "memory")
#: What is measured unless an experiment says so itself.
DEFAULT_MEASURES = ("compile", "first_mask", "mask", "advance", "memory")
#: Phases of a compile that are the same for all engines: making the byte DFA, and the tokenizer's own table. In order:
#: a sum of their times is the same to the last bit in every process.
SHARED_PHASES = ("parse", "automaton", "minimize", "tokenizer")
#: So many masks of a walk are kept as they are before they are packed, which would fill the caches at every step.
UNPACKED = 256


class Sample(NamedTuple):
    """One timed call. `repeat`: the compile or the walk; `step`: the token of the walk, 0 for compiles; `allowed` and
    `differs`: token counts, None for anything but a mask; `differs` is None as well where one side allows all spellings
    of a text and the other only the proper one.
    """

    measure: str
    repeat: int
    step: int
    ns: int
    allowed: int | None = None
    differs: int | None = None


@dataclass
class Outcome:
    """What was measured of one contender on one item, in one turn or in all.

    `phases`: seconds per compile phase, one dict a repeat; `set_up_s`: seconds of its set-up for the vocabulary;
    `language`: which spellings of a text it admits; `masks`: (walk, step) -> the mask, packed, until it is compared.
    """

    label: str
    status: str = OK
    message: str = ""
    samples: list[Sample] = field(default_factory=list)
    phases: list[dict[str, float]] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    steps: int = 0
    memory_peak_bytes: int | None = None
    memory_retained_bytes: int | None = None
    set_up_s: float | None = None
    language: str = ""
    masks: dict[tuple[int, int], bytes] = field(default_factory=dict)

    def fail(self, failure: Failure) -> None:
        """Note a failure; the first one stays."""
        if self.status == OK:
            self.status, self.message = failure.kind, failure.message

    def ns(self, measure: str) -> list[int]:
        """The samples of one measure, in the order they were taken."""
        return [sample.ns for sample in self.samples if sample.measure == measure]

    def count(self, counters: Iterable[tuple[str, int]]) -> None:
        """Add to the counters."""
        for name, value in counters:
            self.counters[name] = self.counters.get(name, 0) + int(value)

    def add(self, turn: Outcome) -> None:
        """Add what a later turn has found."""
        if turn.status != OK:
            self.fail(Failure(turn.status, turn.message))
        self.samples += turn.samples
        self.phases += turn.phases
        self.steps += turn.steps
        self.masks |= turn.masks
        self.count(turn.counters.items())
        self.sizes, self.language = turn.sizes or self.sizes, turn.language or self.language
        self.set_up_s = self.set_up_s if turn.set_up_s is None else turn.set_up_s


def rotated(order: Sequence[T], turn: int) -> list[T]:
    """`order`, beginning with another one at each turn, and mixed anew, alike in each run, when all have been first.

    So nobody always follows the same one: whoever comes after a contender that reads the same tables finds them in the
    processor's caches, which made variants of one engine up to 1.3 times as fast as the first of them.
    """
    if not order:
        return []
    round_number, first = divmod(turn, len(order))
    mixed = Random(round_number).sample(order, len(order)) if round_number else order
    return [*mixed[first:], *mixed[:first]]


@dataclass
class Contender:
    """A backend on its way through one item. `outcome`: what this turn adds to. Whatever its methods raise, panics of
    compiled engines included, is the contender's failure.
    """

    backend: Backend
    constraint: Constraint
    begin: Begin
    outcome: Outcome
    compiled: CompiledConstraint | None = None

    def measure_compile(self, repeat: int, first_mask: bool = True) -> None:
        """Compile; with `first_mask`, also start a matcher and fill a mask. The compiled constraint is kept."""
        mask, outcome = masks.allocate_mask(self.backend.vocab.size), self.outcome
        self.compiled = None
        with collector_off():
            self.begin("compile")
            started = time.perf_counter_ns()
            compiled = self.backend.compile(self.constraint)
            compile_ns = time.perf_counter_ns() - started
            outcome.samples.append(Sample("compile", repeat, 0, compile_ns))
            outcome.phases.append(dict(compiled.phases))
            outcome.sizes = dict(compiled.sizes)
            if first_mask:
                self.begin("first mask")
                started = time.perf_counter_ns()
                compiled.start().fill_mask(mask)
                first_ns = compile_ns + time.perf_counter_ns() - started
                outcome.samples.append(Sample("first_mask", repeat, 0, first_ns, allowed=masks.count(mask)))
        self.compiled = compiled

    def replay(
        self, walks: Sequence[Walk], seconds: float, keep: frozenset[str] = frozenset({"mask", "advance"})
    ) -> None:
        """Replay the walks. `keep`: the measures whose samples are kept; `seconds`: what masks and advances may take
        together.
        """
        compiled, outcome = self._compiled(), self.outcome
        outcome.language = _language(self.backend)
        left_ns = int(seconds * 1e9)
        for number, walk in enumerate(walks):
            with collector_off():
                left_ns = _Replay(self, compiled, number, walk, keep).run(left_ns)
            if left_ns < 0:
                said = f"masks and advances took more than {seconds:g} s; {outcome.steps} steps done"
                outcome.fail(Failure("timeout", said))
                return

    def fill_seen(self, walks: Sequence[Walk], rounds: int, seconds: float) -> None:
        """Fill the masks of all positions of the walks again and again.

        A decoding loop meets the same few states again and again; `replay` times first visits. Every position has a
        matcher of its own, so who remembers its last mask only answers from memory, too. Samples: `repeat` is the
        round, `step` the number of the position.
        """
        mask = masks.allocate_mask(self.backend.vocab.size)
        self.begin("seen masks")
        places = positions(self._compiled(), (walk.tokens for walk in walks))
        for matcher in places:
            matcher.fill_mask(mask)
        left_ns = int(seconds * 1e9)
        with collector_off():
            for turn in range(rounds):
                for step, matcher in enumerate(places if left_ns >= 0 else ()):
                    self.begin("seen masks")
                    started = time.perf_counter_ns()
                    matcher.fill_mask(mask)
                    ns = time.perf_counter_ns() - started
                    left_ns -= ns
                    self.outcome.samples.append(Sample("seen", turn, step, ns))

    def _compiled(self) -> CompiledConstraint:
        """What was compiled last; compiled now in a process that has taken the place of another."""
        if self.compiled is None:
            self.begin("compile")
            self.compiled = self.backend.compile(self.constraint)
        return self.compiled


def positions(compiled: CompiledConstraint, walks: Iterable[Sequence[int]]) -> list[Matcher]:
    """A matcher before each token of the walks, as far as these are allowed; none has filled a mask."""
    return [matcher.fork() for tokens in walks for matcher in follow(compiled, tokens)]


@dataclass
class _Replay:
    """One contender on one walk. `filled`: the masks since the last that were packed: step, nanoseconds, mask."""

    contender: Contender
    compiled: CompiledConstraint
    number: int
    walk: Walk
    keep: frozenset[str]
    filled: list[tuple[int, int, Mask]] = field(default_factory=list)

    def run(self, left_ns: int) -> int:
        """Replay the walk until a token is refused or no time is left; what is left then."""
        outcome, begin = self.contender.outcome, self.contender.begin
        begin("first mask")
        matcher = self.compiled.start()
        mask = masks.allocate_mask(matcher.vocab.size)
        refused = False
        for step, token in enumerate(self.walk.tokens):
            begin("mask")
            started = time.perf_counter_ns()
            matcher.fill_mask(mask)
            mask_ns = time.perf_counter_ns() - started
            begin("advance")
            started = time.perf_counter_ns()
            try:
                matcher.advance(token)
            except TokenRefused as refusal:
                refused = True
                self._refuse(matcher, refusal, step)
            advance_ns = time.perf_counter_ns() - started
            if "mask" in self.keep:
                self._keep_mask(step, mask_ns, mask)
            left_ns -= mask_ns
            if refused:
                break
            left_ns -= advance_ns
            outcome.steps += 1
            if "advance" in self.keep:
                outcome.samples.append(Sample("advance", self.number, step, advance_ns))
            if left_ns < 0:
                break
        self._pack()
        outcome.count(matcher.counters.items())
        if not refused and left_ns >= 0 and self.walk.complete and self.walk.inside is False:
            text = matcher.vocab.spell(self.walk.tokens)
            said = f"walk {self.number}: the text {_tail(text)} is outside the language"
            outcome.fail(Failure("wrong_acceptance", said))
        return left_ns

    def _keep_mask(self, step: int, ns: int, mask: Mask) -> None:
        self.filled.append((step, ns, mask.copy()))
        if len(self.filled) >= UNPACKED:
            self._pack()

    def _pack(self) -> None:
        outcome = self.contender.outcome
        for step, ns, mask in self.filled:
            outcome.samples.append(Sample("mask", self.number, step, ns, masks.count(mask)))
            outcome.masks[self.number, step] = zlib.compress(mask.tobytes(), 1)
        self.filled.clear()

    def _refuse(self, matcher: Matcher, refusal: TokenRefused, step: int) -> None:
        """Judge a refusal of the token at `step`."""
        walk = self.walk
        # A text of the user's may be outside the language; a walk made from masks is inside unless the oracle objects.
        wrong = walk.inside is True if walk.given else walk.inside is not False
        # Whoever allows proper sequences only is right to refuse others.
        if wrong and _admits(self.contender.backend, walk):
            spell = matcher.vocab.spell
            before, token = spell(walk.tokens[:step]), walk.tokens[step]
            shown = "the end token" if token in matcher.vocab.end_token_set else f"{spell([token])!r}"
            said = f"token {token} ({shown}) was refused after {_tail(before)}: {refusal}"
            self.contender.outcome.fail(Failure("wrong_refusal", f"walk {self.number}, step {step}: {said}"))


def compare_masks(outcomes: Sequence[Outcome], reference: str) -> None:
    """Note in how many tokens each mask differs from that of the `reference` after the same tokens, or, where that has
    none, from that of the first contender that has one. The masks are given up.
    """
    bases: dict[tuple[int, int], tuple[str, bytes]] = {}
    for outcome in sorted(outcomes, key=lambda one: one.label != reference):
        for place, packed in outcome.masks.items():
            bases.setdefault(place, (outcome.language, packed))
    for outcome in outcomes:
        for at, sample in enumerate(outcome.samples):
            place = sample.repeat, sample.step
            if sample.measure == "mask" and bases[place][0] == outcome.language:
                differs = _difference(outcome.masks[place], bases[place][1])
                outcome.samples[at] = sample._replace(differs=differs)
    for outcome in outcomes:
        outcome.masks.clear()


def _difference(packed: bytes, base: bytes) -> int:
    if packed == base:
        return 0
    first, second = (np.frombuffer(zlib.decompress(one), dtype=np.int32) for one in (packed, base))
    return masks.count(first ^ second)


def _language(backend: Backend) -> str:
    """Which spellings of a text a backend admits; with muted literals those of the fewest tokens."""
    return "muted" if backend.settings.get("mute_literals") else backend.token_language


def _admits(backend: Backend, walk: Walk) -> bool:
    """Whether a backend has to take all tokens of a walk inside the language."""
    language = _language(backend)
    return language == "all" or (walk.proper and language != "muted")


def _tail(text: bytes, width: int = 60) -> str:
    return repr(text) if len(text) <= width else f"...{text[-width:]!r}"
