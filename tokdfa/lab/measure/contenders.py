"""Timing contenders against each other: interleaved compiles, and walks replayed step by step.

Contenders take turns within each round and each step, and the one that goes first changes every time (A B C, B C A,
C A B, ...): slow drift of the machine and the caches left behind by a neighbour then fall on all of them alike. Every
sample is kept with its place.

At each step of a walk all contenders fill their mask for the same text, then all advance by the same token. The masks
are compared on the way, outside the timed part: how many tokens a contender allows (`allowed`), and in how many tokens
it differs from the reference (`differs`). A contender that refuses a replayed token, goes through with a text that is
outside the language, raises, or uses up its seconds is marked as failed; the others go on.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, TypeVar

from tokdfa import mask as masks
from tokdfa.errors import TokdfaError, TokenRefused
from tokdfa.lab.measure.clock import collector_off
from tokdfa.lab.measure.limits import OK, Failure, attempt
from tokdfa.lab.measure.workloads import follow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tokdfa.backends.base import Backend, CompiledConstraint, Matcher
    from tokdfa.constraint import Constraint
    from tokdfa.lab.measure.workloads import Walk

    #: Told before each call of a contender: (its index, the phase).
    Begin = Callable[[int, str], None]

T = TypeVar("T")
P = ParamSpec("P")

MEASURES = ("compile", "first_mask", "mask", "advance", "seen", "memory")
#: What is measured unless an experiment says so itself.
DEFAULT_MEASURES = ("compile", "first_mask", "mask", "advance", "memory")
#: Phases of a compile that are the same for all engines: making the byte DFA, and the tokenizer's own table. In order:
#: a sum of their times is the same to the last bit in every process.
SHARED_PHASES = ("parse", "automaton", "minimize", "tokenizer")


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
    """All that was measured of one contender on one item. `phases`: seconds per compile phase, one dict a repeat;
    `set_up_s`: seconds of its set-up for the vocabulary.
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

    def fail(self, failure: Failure) -> None:
        """Note a failure; the first one stays."""
        if self.status == OK:
            self.status, self.message = failure.kind, failure.message

    def ns(self, measure: str) -> list[int]:
        """The samples of one measure, in the order they were taken."""
        return [sample.ns for sample in self.samples if sample.measure == measure]


@dataclass
class Contender:
    """A backend on its way through one item. `index`: its place in the job, as the board names it; `dropped`: it can
    take no further part.
    """

    index: int
    backend: Backend
    outcome: Outcome
    compiled: CompiledConstraint | None = None
    dropped: bool = False
    spent_ns: int = 0

    def drop(self, failure: Failure) -> None:
        """Take it out of the race."""
        self.outcome.fail(failure)
        self.dropped, self.compiled = True, None

    def attempt(self, step: Callable[P, T], *args: P.args, **options: P.kwargs) -> T | None:
        """What `step` returns. Anything that it raises is this contender's failure, panics of compiled engines
        included, and drops it; a wish to stop is not.
        """
        found = attempt(step, *args, **options)
        if isinstance(found, Failure):
            self.drop(found)
            return None
        return found


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


def check_support(contenders: Iterable[Contender], constraint: Constraint) -> None:
    """Drop those that say they do not take the constraint. A peer translates the pattern then, untimed."""
    for contender in contenders:
        answer = contender.attempt(contender.backend.supports, constraint)
        if answer is not None and not answer:
            contender.drop(Failure("unsupported", answer.reason))


def measure_compiles(
    contenders: Sequence[Contender],
    constraint: Constraint,
    repeats: int,
    begin: Begin = lambda index, phase: None,
    first_mask: bool = True,
) -> None:
    """Compile `repeats` times, taking turns. With `first_mask`, also start a matcher and fill a mask each time.

    The compiled constraint of the last round stays with its contender, whose start state has then been visited.
    """
    for repeat in range(repeats):
        for contender in rotated([contender for contender in contenders if not contender.dropped], repeat):
            contender.compiled = None
            with collector_off():
                contender.attempt(_measure_compile, contender, constraint, repeat, begin, first_mask)


def _measure_compile(contender: Contender, constraint: Constraint, repeat: int, begin: Begin, first_mask: bool) -> None:
    backend, outcome = contender.backend, contender.outcome
    mask = masks.allocate_mask(backend.vocab.size)
    begin(contender.index, "compile")
    started = time.perf_counter_ns()
    compiled = backend.compile(constraint)
    compile_ns = time.perf_counter_ns() - started
    outcome.samples.append(Sample("compile", repeat, 0, compile_ns))
    outcome.phases.append(dict(compiled.phases))
    outcome.sizes = dict(compiled.sizes)
    if first_mask:
        begin(contender.index, "first mask")
        started = time.perf_counter_ns()
        compiled.start().fill_mask(mask)
        first_ns = compile_ns + time.perf_counter_ns() - started
        outcome.samples.append(Sample("first_mask", repeat, 0, first_ns, allowed=masks.count(mask)))
    contender.compiled = compiled


def replay(
    contenders: Sequence[Contender],
    walks: Sequence[Walk],
    reference: str,
    seconds: float,
    begin: Begin,
    keep: frozenset[str] = frozenset({"mask", "advance"}),
) -> None:
    """Replay the walks on all contenders, one step of all at a time. `keep`: the measures whose samples are kept.

    `reference`: the label whose masks the others are compared with; if it is not in the race, the first that is.
    `seconds`: what the masks and advances of one contender may take together.
    """
    for number, walk in enumerate(walks):
        racing = [contender for contender in contenders if not contender.dropped]
        racers = [racer for contender in racing if (racer := _start(contender, begin)) is not None]
        with collector_off():
            for step, token in enumerate(walk.tokens):
                order = rotated(racers, number + step)
                for racer in order:
                    racer.fill(begin)
                _compare_masks(racers, reference, number, step, keep)
                for racer in order:
                    racer.take(token, number, step, walk, begin, keep)
                racers = [racer for racer in racers if racer.within(seconds)]
        for racer in racers:
            racer.finish(walk, number)


def replay_seen(
    contenders: Sequence[Contender], walks: Sequence[Walk], rounds: int, seconds: float, begin: Begin
) -> None:
    """Fill the masks of all positions of the walks again and again, each contender in blocks of its own, A B C A B C.

    In a decoding loop one engine runs by itself and meets the same few states again and again; `replay` times first
    visits, with the caches full of others' data. Every position has a matcher of its own, so who remembers its last
    mask only answers from memory, too. Samples: `repeat` is the round, `step` the number of the position.
    """
    blocks: list[tuple[Contender, list[Matcher], masks.Mask]] = []
    for contender in contenders:
        if contender.dropped or contender.compiled is None:
            continue
        mask = masks.allocate_mask(contender.backend.vocab.size)
        begin(contender.index, "seen masks")
        places = contender.attempt(_filled_positions, contender.compiled, walks, mask)
        if places is not None:
            blocks.append((contender, places, mask))
    spent = [0] * len(blocks)
    with collector_off():
        for turn in range(rounds):
            for number, (contender, places, mask) in enumerate(blocks):
                if spent[number] > seconds * 1e9 or not places:
                    continue
                begin(contender.index, "seen masks")
                places[0].fill_mask(mask)  # brings the engine's code back into the caches
                for step, matcher in enumerate(places):
                    started = time.perf_counter_ns()
                    matcher.fill_mask(mask)
                    ns = time.perf_counter_ns() - started
                    spent[number] += ns
                    contender.outcome.samples.append(Sample("seen", turn, step, ns))


def _filled_positions(compiled: CompiledConstraint, walks: Iterable[Walk], mask: masks.Mask) -> list[Matcher]:
    places = positions(compiled, (walk.tokens for walk in walks))
    for matcher in places:
        matcher.fill_mask(mask)
    return places


def positions(compiled: CompiledConstraint, walks: Iterable[Sequence[int]]) -> list[Matcher]:
    """A matcher before each token of the walks, as far as these are allowed; none has filled a mask."""
    return [matcher.fork() for tokens in walks for matcher in follow(compiled, tokens)]


@dataclass
class _Racer:
    """One contender on one walk. `refused`: it has refused a token, so its walk is over."""

    contender: Contender
    matcher: Matcher
    mask: masks.Mask
    mask_ns: int = 0
    refused: bool = False

    def fill(self, begin: Begin) -> None:
        begin(self.contender.index, "mask")
        self.contender.attempt(self._fill)
        self.contender.spent_ns += self.mask_ns

    def _fill(self) -> None:
        fill_mask, mask = self.matcher.fill_mask, self.mask
        started = time.perf_counter_ns()
        fill_mask(mask)
        self.mask_ns = time.perf_counter_ns() - started

    def take(self, token: int, number: int, step: int, walk: Walk, begin: Begin, keep: frozenset[str]) -> None:
        if self.contender.dropped:
            return
        begin(self.contender.index, "advance")
        ns = self.contender.attempt(self._advance, token)
        if isinstance(ns, TokenRefused):
            self._refuse(ns, number, step, walk)
        if not isinstance(ns, int):
            return
        self.contender.spent_ns += ns
        self.contender.outcome.steps += 1
        if "advance" in keep:
            self.contender.outcome.samples.append(Sample("advance", number, step, ns))

    def _advance(self, token: int) -> int | TokenRefused:
        advance = self.matcher.advance
        started = time.perf_counter_ns()
        try:
            advance(token)
        except TokenRefused as refusal:
            return refusal
        return time.perf_counter_ns() - started

    def _refuse(self, refusal: TokenRefused, number: int, step: int, walk: Walk) -> None:
        self.refused = True
        self._count_work()
        # A text of the user's may be outside the language; a walk made from masks is inside unless the oracle objects.
        wrong = walk.inside is True if walk.given else walk.inside is not False
        # Whoever allows proper sequences only is right to refuse others.
        if wrong and _admits(self.contender.backend, walk):
            spell = self.matcher.vocab.spell
            before, token = spell(walk.tokens[:step]), walk.tokens[step]
            shown = "the end token" if token in self.matcher.vocab.end_token_set else f"{spell([token])!r}"
            self.contender.outcome.fail(
                Failure(
                    "wrong_refusal",
                    f"walk {number}, step {step}: token {token} ({shown}) was refused after {_tail(before)}: {refusal}",
                )
            )

    def within(self, seconds: float) -> bool:
        """Whether it goes on to the next step."""
        if not self.contender.dropped and self.contender.spent_ns > seconds * 1e9:
            steps = self.contender.outcome.steps
            self.contender.drop(
                Failure("timeout", f"masks and advances took more than {seconds:g} s; {steps} steps done")
            )
        return not (self.contender.dropped or self.refused)

    def finish(self, walk: Walk, number: int) -> None:
        """The whole walk went through."""
        self._count_work()
        if walk.complete and walk.inside is False:
            text = self.matcher.vocab.spell(walk.tokens)
            self.contender.outcome.fail(
                Failure("wrong_acceptance", f"walk {number}: the text {_tail(text)} is outside the language")
            )

    def _count_work(self) -> None:
        counters = self.contender.outcome.counters
        for name, value in self.matcher.counters.items():
            counters[name] = counters.get(name, 0) + int(value)


def _start(contender: Contender, begin: Begin) -> _Racer | None:
    if contender.compiled is None:
        raise TokdfaError(f"{contender.outcome.label} must be compiled before its walks")
    begin(contender.index, "first mask")
    matcher = contender.attempt(contender.compiled.start)
    mask = masks.allocate_mask(contender.backend.vocab.size)
    return None if matcher is None else _Racer(contender, matcher, mask)


def _compare_masks(racers: Sequence[_Racer], reference: str, number: int, step: int, keep: frozenset[str]) -> None:
    filled = [racer for racer in racers if not racer.contender.dropped]
    if "mask" not in keep or not filled:
        return
    base = next((racer for racer in filled if racer.contender.outcome.label == reference), filled[0])
    language = _language(base.contender.backend)
    for racer in filled:
        same = _language(racer.contender.backend) == language
        differs = masks.count(racer.mask ^ base.mask) if same else None
        sample = Sample("mask", number, step, racer.mask_ns, masks.count(racer.mask), differs)
        racer.contender.outcome.samples.append(sample)


def _language(backend: Backend) -> str:
    """Which spellings of a text a backend admits; with muted literals those of the fewest tokens."""
    return "muted" if backend.settings.get("mute_literals") else backend.token_language


def _admits(backend: Backend, walk: Walk) -> bool:
    """Whether a backend has to take all tokens of a walk inside the language."""
    language = _language(backend)
    return language == "all" or (walk.proper and language != "muted")


def _tail(text: bytes, width: int = 60) -> str:
    return repr(text) if len(text) <= width else f"...{text[-width:]!r}"
