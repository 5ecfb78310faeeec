"""One case of the benchmark on one engine: compile the schema, follow its instances token by token, judge, time.

As MaskBench defines it (JSONSchemaBench, arXiv 2501.10868; its runner and its table of results): before each token of
an instance the mask is computed, the token's bit is looked at, then the token is committed. A case passes if every
valid instance is taken to its last token and every invalid one is stopped somewhere; that the text may end is not
asked. ``TTFM`` is compile + start + first mask; ``TBM`` is mask + commit of a token, over the tokens of all instances,
the one that is refused included. An engine is an object of four calls, as the benchmark has it (`Verbs`): compile,
reset, mask, and commit, which looks at the token's bit before it takes the token. Each call is timed as a decoding loop
in Python makes it; encoding and bookkeeping are not in it. The instances come after the first mask, each with a matcher
of its own, so the masks of the first token are asked for again. What was compiled last lives until its successor does,
as in a server.

*Outcomes* are those of the benchmark. Of several tests that fail it keeps the last, and so does `outcome`:

- ``passed``;
- ``refused`` (its "compile error"): the engine says so, or raises any other error, when it compiles;
- ``over`` ("validation error", over-constrained): a valid instance was rejected, or an error broke it off;
- ``under`` ("invalidation error", under-constrained): an invalid instance went through;
- ``timeout``, ``crash`` and ``memory``: the process ran into a limit or broke down (`tokdfa.lab.measure.cases`);
- ``unavailable``, which the benchmark does not have: the engine cannot be made, such as for want of a package.

Stricter than the benchmark, beside it: whether a valid instance may also *end* where it ends. In a test *suite*, and
where a setting asks for it, that is the verdict. There an engine that refuses a schema since no value is valid
(EmptyLanguageError) has judged its tests: the invalid ones are right.
"""

from __future__ import annotations

import time
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokdfa import mask as masks
from tokdfa.errors import EmptyLanguageError, TokenRefused
from tokdfa.lab.measure.clock import time_call
from tokdfa.lab.measure.limits import MAX_MESSAGE, failure_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tokdfa.backends.base import Backend
    from tokdfa.constraint import JsonSchema
    from tokdfa.lab.measure.schema_corpus import SchemaCase
    from tokdfa.lab.measure.workloads import Encoder

    Given = JsonSchema | Callable[[], JsonSchema]

PASSED, REFUSED, OVER, UNDER = "passed", "refused", "over", "under"
TIMEOUT, CRASH, MEMORY, UNAVAILABLE = "timeout", "crash", "memory", "unavailable"
OUTCOMES = (PASSED, REFUSED, OVER, UNDER, TIMEOUT, CRASH, MEMORY, UNAVAILABLE)
#: What became of one test.
RIGHT, BROKEN_OFF = "right", "error"


class TooSlow(Exception):
    """A case has used up its time between two calls."""


class Verbs:
    """An engine as the benchmark calls it."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._mask = masks.allocate_mask(backend.vocab.size)
        self._words = self._mask.view(np.uint32)

    def compile(self, constraint: Given) -> None:
        """Compile what follows is about; raises what the backend raises."""
        self.compiled = self.backend.compile(constraint() if callable(constraint) else constraint)

    def reset(self) -> None:
        """Begin a text."""
        self.matcher = self.compiled.start()

    def mask(self) -> None:
        """The mask of the next token."""
        self.matcher.fill_mask(self._mask)

    def first_mask(self) -> None:
        """Begin a text and make its first mask."""
        self.reset()
        self.mask()

    def commit(self, token: int) -> bool:
        """Take a token if its bit is set; whether it is."""
        allowed = (int(self._words[token // 32]) >> (token % 32)) & 1
        if allowed:
            self.matcher.advance(token)
        return bool(allowed)


@dataclass
class Times:
    """Nanoseconds of the masks and commits of all tokens in order."""

    mask: array[int] = field(default_factory=lambda: array("q"))
    advance: array[int] = field(default_factory=lambda: array("q"))


class Verdict(NamedTuple):
    """One test: what became of it, whether the text went through, and whether it may end there."""

    valid: bool
    outcome: str
    through: bool
    ends: bool
    message: str = ""


def run_case(
    case: SchemaCase,
    constraint: Given,
    engine: Verbs,
    encoder: Encoder,
    seconds: float,
    to_end: bool,
    begin: Callable[[str], None],
) -> dict[str, Any]:
    """Judge and time a case: its row.

    `constraint` is the case's schema, or makes it, which is then part of the compile. `seconds`: for compiling and
    all tests together, looked at between calls. `to_end`: tests are judged as in a suite, by the end of the text
    too. `begin` is told the phase that starts. The row has the times as float32 nanoseconds, little-endian, in
    ``mask_ns`` and ``advance_ns`` (a float32 is good to 1e-7). Engines' errors are outcomes; a panic is a
    ``crash``.
    """
    row = described(case)
    deadline = time.perf_counter_ns() + int(seconds * 1e9)
    begin("compile")
    try:
        _, compile_ns = time_call(lambda: engine.compile(constraint))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        return row | _refusal(error, case, to_end)
    times = Times()
    verdicts: list[Verdict] = []
    try:
        begin("first mask")
        _, first_ns = time_call(engine.first_mask)
        begin("mask")
        for test in case.tests:
            verdicts.append(_judge(engine, test.valid, encoder.encode(test.text), times, deadline, to_end))
    except TooSlow:
        message = f"compiling and {len(times.mask)} tokens took longer than {seconds:g} s"
        return row | {"outcome": TIMEOUT, "message": message}
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the first mask, or a panic
        failure = failure_of(error)
        outcome = {"crash": CRASH, "memory": MEMORY}.get(failure.kind, OVER)
        return row | {"outcome": outcome, "message": failure.message[:MAX_MESSAGE]}
    return row | {"compile_ns": compile_ns, "first_ns": first_ns, **_judged(verdicts, times)}


def described(case: SchemaCase) -> dict[str, Any]:
    """What is known of a case before an engine sees it."""
    counts = ("right_tests", "over_tests", "under_tests", "unended_tests")
    return {
        **{"case": case.name, "split": case.split, "tests": len(case.tests)},
        **{"outcome": "", "message": "", **dict.fromkeys(counts, 0), "tokens": 0},
        **{"compile_ns": None, "first_ns": None, "mask_ns": b"", "advance_ns": b""},
    }


def _refusal(error: BaseException, case: SchemaCase, to_end: bool) -> dict[str, Any]:
    """The outcome of an error while compiling."""
    failure = failure_of(error)
    outcome = CRASH if failure.kind == "crash" else MEMORY if isinstance(error, MemoryError) else REFUSED
    found: dict[str, Any] = {"outcome": outcome, "message": failure.message[:MAX_MESSAGE]}
    if to_end and isinstance(error, EmptyLanguageError):  # every instance is judged, then: it is invalid
        valid = sum(test.valid for test in case.tests)
        found |= {"right_tests": len(case.tests) - valid, "over_tests": valid}
    return found


def _judge(
    engine: Verbs,
    valid: bool,
    tokens: Sequence[int],
    times: Times,
    deadline: int,
    to_end: bool,
) -> Verdict:
    """Follow one instance and say what became of it. Raises TooSlow, and what is no Exception."""
    done = len(times.mask)
    try:
        ends = _follow(engine, tokens, times, deadline)
    except (TooSlow, MemoryError):
        raise
    except Exception as error:
        return Verdict(valid, BROKEN_OFF, False, False, failure_of(error).message[:MAX_MESSAGE])
    taken = len(times.mask) - done - (ends is None)
    right = (ends is not None and (ends or not to_end)) == valid
    message = ""
    if not right:
        spelled = engine.backend.vocab.token_bytes(tokens[taken])[:40] if ends is None else b""
        where = f"token {taken + 1} of {len(tokens)}, {spelled!r}" if spelled else "the end of the text"
        message = f"valid, rejected at {where}" if valid else "invalid, and went through"
    return Verdict(valid, RIGHT if right else OVER if valid else UNDER, ends is not None, bool(ends), message)


def _follow(engine: Verbs, tokens: Sequence[int], times: Times, deadline: int) -> bool | None:
    """Mask and commit of each token, timed. Whether the text may end after the last; None if a token is refused."""
    engine.reset()
    clock = time.perf_counter_ns
    for token in tokens:
        began = clock()
        engine.mask()
        filled = clock()
        try:
            taken = engine.commit(token)
        except TokenRefused:  # against its own mask, but a refusal it is
            taken = False
        done = clock()
        times.mask.append(filled - began)
        times.advance.append(done - filled)
        if not taken:
            return None
        if done > deadline:
            raise TooSlow
    return engine.matcher.can_end()


def _judged(verdicts: Sequence[Verdict], times: Times) -> dict[str, Any]:
    """The row's part that tests and times decide."""
    wrong = [verdict for verdict in verdicts if verdict.outcome != RIGHT]
    last = wrong[-1] if wrong else None
    mask, advance = (np.array(part, dtype="<f4").tobytes() for part in (times.mask, times.advance))
    return {
        "outcome": PASSED if last is None else UNDER if last.outcome == UNDER else OVER,
        "message": wrong[0].message if wrong else "",
        "right_tests": len(verdicts) - len(wrong),
        "over_tests": sum(one.outcome in (OVER, BROKEN_OFF) for one in wrong),
        "under_tests": sum(one.outcome == UNDER for one in wrong),
        "unended_tests": sum(one.valid and one.through and not one.ends for one in verdicts),
        "tokens": len(times.mask),
        "mask_ns": mask,
        "advance_ns": advance,
    }
