"""One case of the benchmark on one engine: compile the schema, follow its instances token by token, judge, time.

As MaskBench defines it (JSONSchemaBench, arXiv 2501.10868; its runner and its table of results): before each token of
an instance the mask is computed, the token's bit is looked at, then the token is committed. A case passes if every
valid instance is taken to its last token and every invalid one is stopped somewhere; that the text may end is not
asked. ``TTFM`` is compile + first mask; ``TBM`` is mask + commit of a token, over the tokens of all instances, the one
that is refused (mask only) included.

What is timed is each call as a decoding loop in Python makes it: `compile`; `start` and the first `fill_mask` of a
matcher; then `fill_mask` into the caller's array and `advance`, apart. So every sample has the price of a Python call
and of reading the clock in it; looking at the bit, encoding and bookkeeping are not in it. The instances come after
the first mask, each with a matcher of its own, so the masks of the first token are asked for again.

*Outcomes* are those of the benchmark. Of several tests that fail it keeps the last, and so does `outcome`:

- ``passed``;
- ``refused`` (its "compile error"): the engine says so, or raises any other error, when it compiles;
- ``over`` ("validation error", over-constrained): a valid instance was rejected, or an error broke it off;
- ``under`` ("invalidation error", under-constrained): an invalid instance went through;
- ``timeout``, ``crash`` and ``memory``: the process ran into a limit or broke down
  (`tokdfa.lab.measure.maskbench_process`);
- ``unavailable``, which the benchmark does not have: the engine cannot be made, such as for want of a package.

Stricter than the benchmark, beside it: whether a valid instance may also *end* where it ends, and whether an invalid
one that went through may. In a test *suite*, and where a setting asks for it, that is the verdict. There an engine that
refuses a schema since no value is valid (EmptyLanguageError) has judged its tests: the invalid ones are right.
"""

from __future__ import annotations

import json
import time
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.errors import EmptyLanguageError, TokenRefused
from tokdfa.lab.measure.clock import time_call
from tokdfa.lab.measure.limits import failure_of
from tokdfa.lab.measure.maskbench_schema import keyword_in, reordered, used_keywords

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tokdfa.backends.base import Backend, CompiledConstraint
    from tokdfa.constraint import JsonSchema
    from tokdfa.lab.measure.schema_corpus import SchemaCase
    from tokdfa.lab.measure.workloads import Encoder

PASSED, REFUSED, OVER, UNDER = "passed", "refused", "over", "under"
TIMEOUT, CRASH, MEMORY = "timeout", "crash", "memory"
UNAVAILABLE = "unavailable"
OUTCOMES = (PASSED, REFUSED, OVER, UNDER, TIMEOUT, CRASH, MEMORY, UNAVAILABLE)
#: What became of one test.
RIGHT, BROKEN_OFF = "right", "error"
#: What is kept of a message; some repeat a whole schema.
MAX_MESSAGE = 400

_clock = time.perf_counter_ns


class TooSlow(Exception):
    """A case has used up its time between two calls."""


@dataclass
class Times:
    """Nanoseconds of a case: of single calls, and of the masks and commits of all tokens in order.

    `advance` has a 0 where the token was refused.
    """

    compile: int | None = None
    first: int | None = None
    mask: array[int] = field(default_factory=lambda: array("q"))
    advance: array[int] = field(default_factory=lambda: array("q"))


@dataclass(frozen=True)
class Verdict:
    """One test: what became of it, whether the text went through, and whether it may end there."""

    valid: bool
    outcome: str
    through: bool
    ends: bool
    message: str = ""


def run_case(
    case: SchemaCase,
    constraint: JsonSchema,
    backend: Backend,
    encoder: Encoder,
    seconds: float,
    to_end: bool,
    begin: Callable[[str], None],
    more: Callable[[CompiledConstraint], Iterator[dict[str, Any]]] | None = None,
) -> Iterator[tuple[dict[str, Any], bool]]:
    """Judge and time a case: yields its row, and whether it is final. A row in which valid instances were rejected is
    not: it comes once more, with order artefacts, and is there even if an engine does not survive those. Nor is any
    before `more` has been asked of the compiled case: what it yields, again and again, is columns for the row.

    `constraint` is the case's schema. `seconds`: for compiling and all tests together, looked at between calls.
    `to_end`: tests are judged as in a suite, by the end of the text too. `begin` is told the phase that starts. The row
    has the times as float32 nanoseconds, little-endian, in ``mask_ns`` and ``advance_ns`` (a float32 is
    good to 1e-7). Engines' errors are outcomes; a panic is a ``crash``.
    """
    row = described(case)
    texts = [encoder.encode(test.text) for test in case.tests]
    times, deadline = Times(), _clock() + int(seconds * 1e9)
    begin("compile")
    try:
        compiled, times.compile = time_call(lambda: backend.compile(constraint))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        row |= _refusal(error)
        if to_end and isinstance(error, EmptyLanguageError):  # every instance is judged, then: it is invalid
            valid = sum(test.valid for test in case.tests)
            row |= {"right_tests": len(case.tests) - valid, "over_tests": valid}
        yield row, True
        return
    mask = masks.allocate_mask(backend.vocab.size)
    verdicts: list[Verdict] = []
    try:
        begin("first mask")
        _, times.first = time_call(lambda: compiled.start().fill_mask(mask))
        begin("mask")
        for test, tokens in zip(case.tests, texts, strict=True):
            verdicts.append(_judge(compiled, test.valid, tokens, mask, times, deadline, to_end))
    except TooSlow:
        message = f"compiling and {len(times.mask)} tokens took longer than {seconds:g} s"
        yield row | {"outcome": TIMEOUT, "message": message}, True
        return
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the first mask, or a panic
        failure = failure_of(error)
        outcome = {"crash": CRASH, "memory": MEMORY}.get(failure.kind, OVER)
        yield row | {"outcome": outcome, "message": failure.message[:MAX_MESSAGE]}, True
        return
    row |= _judged(verdicts, times)
    rejected = [place for place, verdict in enumerate(verdicts) if verdict.valid and verdict.outcome == OVER]
    yield row, not rejected and more is None
    if rejected:
        solved = 0
        for place in rejected:
            spellings = reordered(constraint.schema, case.tests[place].text)
            solved += any(_accepts(compiled, encoder.encode(text), mask, to_end) for text in spellings)
        row["order_artefacts"] = solved
        yield row, more is None
    if more is not None:
        begin("mask")
        for columns in more(compiled):
            row |= columns
            yield row, False
        yield row, True


def described(case: SchemaCase) -> dict[str, Any]:
    """What is known of a case before an engine sees it."""
    try:
        schema = json.loads(case.schema_text)
    except (ValueError, RecursionError):  # Python reads no ints of more than 4,300 digits
        schema = True
    return {
        "case": case.name,
        "split": case.split,
        "keywords": json.dumps(used_keywords(schema)),
        "tests": len(case.tests),
        "outcome": "",
        "message": "",
        "keyword": "",
        "right_tests": 0,
        "over_tests": 0,
        "under_tests": 0,
        "order_artefacts": 0,
        "unended_tests": 0,
        "ended_under_tests": 0,
        "tokens": 0,
        "compile_ns": None,
        "first_ns": None,
        "mask_ns": b"",
        "advance_ns": b"",
    }


def _refusal(error: BaseException) -> dict[str, Any]:
    """The outcome of an error while compiling, with the keyword that it names."""
    failure = failure_of(error)
    outcome = CRASH if failure.kind == "crash" else MEMORY if isinstance(error, MemoryError) else REFUSED
    keyword = str(getattr(error, "keyword", "")) or keyword_in(failure.message)
    return {"outcome": outcome, "message": failure.message[:MAX_MESSAGE], "keyword": keyword}


def _judge(
    compiled: CompiledConstraint,
    valid: bool,
    tokens: Sequence[int],
    mask: masks.Mask,
    times: Times,
    deadline: int,
    to_end: bool,
) -> Verdict:
    """Follow one instance and say what became of it. Raises TooSlow, and what is no Exception."""
    done = len(times.mask)
    try:
        ends = _follow(compiled, tokens, mask, times, deadline)
    except (TooSlow, MemoryError):
        raise
    except Exception as error:
        message = failure_of(error).message[:MAX_MESSAGE]
        return Verdict(valid, BROKEN_OFF, False, False, message)
    taken = len(times.mask) - done - (ends is None)
    accepted = ends is not None and (ends or not to_end)
    right = accepted == valid
    message = ""
    if not right:
        spelled = compiled.vocab.token_bytes(tokens[taken])[:40] if ends is None else b""
        where = f"token {taken + 1} of {len(tokens)}, {spelled!r}" if spelled else "the end of the text"
        message = f"valid, rejected at {where}" if valid else "invalid, and went through"
    return Verdict(valid, RIGHT if right else OVER if valid else UNDER, ends is not None, bool(ends), message)


def _follow(
    compiled: CompiledConstraint, tokens: Sequence[int], mask: masks.Mask, times: Times, deadline: int
) -> bool | None:
    """Mask and commit of each token, timed. Whether the text may end after the last; None if a token is refused."""
    matcher = compiled.start()
    fill, advance, clock = matcher.fill_mask, matcher.advance, _clock
    mask_ns, advance_ns = times.mask.append, times.advance.append
    words = mask.data  # its items are Python's own ints, ten times as fast as numpy's
    for token in tokens:
        began = clock()
        fill(mask)
        filled = clock()
        mask_ns(filled - began)
        if not words[token >> 5] >> (token & 31) & 1:
            advance_ns(0)
            return None
        try:
            began = clock()
            advance(token)
            advanced = clock()
        except TokenRefused:  # against its own mask, but a refusal it is
            advance_ns(0)
            return None
        except BaseException:
            advance_ns(0)
            raise
        advance_ns(advanced - began)
        if advanced > deadline:
            raise TooSlow
    return matcher.can_end()


def _accepts(compiled: CompiledConstraint, tokens: Sequence[int], mask: masks.Mask, to_end: bool) -> bool:
    """Whether the engine takes these tokens; an error is a no."""
    try:
        ends = _follow(compiled, tokens, mask, Times(), deadline=2**62)
    except Exception:
        return False
    return ends is not None and (ends or not to_end)


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
        "ended_under_tests": sum(not one.valid and one.ends for one in verdicts),
        "tokens": len(times.mask),
        "compile_ns": times.compile,
        "first_ns": times.first,
        "mask_ns": mask,
        "advance_ns": advance,
    }
