r"""Random walks: texts that an engine lets itself be led to, judged by the library `jsonschema`.

Instances tell what an engine does with somebody's texts. A *walk* tells what it would let a model write: it starts with
nothing, and as long as it goes on it takes some token of the mask. It comes to one of these:

- *finished*: it took an end token, and its text is valid under the schema;
- *invalid*: it took an end token, and its text is no JSON, or not valid;
- *dead end*: the mask is empty, or its tokens are refused, so no model could go on;
- *unfinished*: after so many tokens there was no end yet, which is no fault;
- *unjudged*: the library broke down over the text, or over the schema, as with a pattern that Python cannot read.

*Which token.* A walk has a first part of 0 to `FREE` tokens, drawn for each walk, in which it takes random ones: of all
that the mask has, of those of a few printable characters, or of those of punctuation alone. After it the walk makes for
the end: it ends if it may, or else closes what is open (``"`` inside of a string, ``}`` and ``]`` outside), or tries a
sign or another token without blanks, backslashes and opening brackets. One token in eight stays random, so that no walk
circles for ever.

*Validity* is by the draft that the schema declares (2020-12 if none), formats asserted, as MaskBench's labels are. It
is asked twice: with numbers as the exact decimals that stand in the text, and with numbers as doubles, as most readers
see them. The second question is left out where the schema has a ``multipleOf``: the library divides doubles, so to it
0.3 is no multiple of 0.1. Of members of one name both see the last.
"""

from __future__ import annotations

import decimal
import json
import random
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.core.packages import missing_dependency
from tokdfa.errors import TokenRefused
from tokdfa.lab.measure.limits import failure_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.vocabulary.vocabulary import Vocabulary

FINISHED, UNFINISHED, DEAD_END, INVALID, UNJUDGED = "finished", "unfinished", "dead end", "invalid", "unjudged"
#: Tokens of a walk's first part at most; of a walk at most.
FREE, MOST = 60, 1_200
#: How many faults of a case are kept, and how many characters of a text.
MAX_FAULTS, MAX_TEXT = 5, 400
#: Digits with which remainders are exact: more than the spellings of a walk's number can differ by.
PRECISION = 4_000

_NOT_PRINTABLE = frozenset(range(33)) | frozenset(range(127, 256))
_PUNCTUATION = frozenset(b'{}[]",: \n')
#: What closes something, the best first: inside of a string and outside.
_CLOSING = {True: (b'"',), False: (b"}", b"]", b",", b":", b'"')}


class Walker:
    """Takes random walks over one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        spelled = {token: text for token in range(len(vocabulary)) if (text := vocabulary.token_bytes(token))}

        def kind(wanted: Callable[[bytes], bool]) -> masks.Mask:
            return masks.mask_from_ids([token for token, text in spelled.items() if wanted(text)], vocabulary.size)

        def is_short(text: bytes) -> bool:
            return len(text) <= 4 and not set(text) & _NOT_PRINTABLE

        #: All tokens, short ones, punctuation; with how often a random token is one of these, of ten.
        self._free = (kind(bool), kind(is_short), kind(_PUNCTUATION.issuperset)), (3, 5, 2)
        self._plain = kind(lambda text: not set(text) & set(b"{[\\ \t\n\r"))
        self._signs = kind(lambda text: is_short(text) and len(text) == 1 and not text.isalnum() and text != b"\\")
        #: The tokens of single bytes.
        self._single = {text: token for token, text in reversed(spelled.items()) if len(text) == 1}

    def walk(self, compiled: CompiledConstraint, draw: random.Random) -> tuple[str, bytes, int]:
        """What became of a walk (not yet whether its text is valid), its text, and its number of tokens."""
        matcher, mask = compiled.start(), masks.allocate_mask(self.vocabulary.size)
        text, inside = bytearray(), False
        free = draw.randint(0, FREE)
        for taken in range(MOST):
            matcher.fill_mask(mask)
            end = next((token for token in self.vocabulary.end_tokens if masks.contains(mask, token)), None)
            token = None
            if end is None or (taken < free and draw.random() > 0.1):
                is_random = taken < free or draw.random() < 0.125
                token = self._random(mask, draw) if is_random else self._home(mask, inside, draw)
            if token is None and end is not None:
                matcher.advance(end)
                return FINISHED, bytes(text), taken
            if token is None:
                return DEAD_END, bytes(text), taken
            spelled = self.vocabulary.token_bytes(token)
            try:
                matcher.advance(token)
            except TokenRefused:
                return DEAD_END, bytes(text + spelled), taken
            inside = _is_inside(spelled, text, inside)
            text += spelled
        return UNFINISHED, bytes(text), MOST

    def _random(self, mask: masks.Mask, draw: random.Random) -> int | None:
        """A random token of the mask, of one kind if it has any of that kind."""
        token = _draw(mask & draw.choices(*self._free)[0], draw)
        return _draw(mask & self._free[0][0], draw) if token is None else token

    def _home(self, mask: masks.Mask, inside: bool, draw: random.Random) -> int | None:
        """A token that closes something, or leads to where something can be closed."""
        for text in _CLOSING[inside]:
            token = self._single.get(text)
            if token is not None and masks.contains(mask, token):
                return token
        if inside and draw.random() < 0.4 and (sign := _draw(mask & self._signs, draw)) is not None:
            return sign
        plain = _draw(mask & self._plain, draw)
        return self._random(mask, draw) if plain is None else plain


def _draw(mask: masks.Mask, draw: random.Random) -> int | None:
    """A token of one of the mask's words, each with the same chance; None of an empty mask."""
    places = np.flatnonzero(mask)
    if not len(places):
        return None
    place = int(places[draw.randrange(len(places))])
    return 32 * place + draw.choice([bit for bit in range(32) if int(mask[place]) >> bit & 1])


def _is_inside(token: bytes, before: bytearray, inside: bool) -> bool:
    """Whether a text is inside of a string after `token`; `inside`: whether it was, after `before`."""
    escaped = inside and (len(before) - len(before.rstrip(b"\\"))) % 2 == 1
    for byte in token:
        if escaped:
            escaped = False
        elif byte == 92 and inside:
            escaped = True
        elif byte == 34:
            inside = not inside
    return inside


class Judge:
    """Says whether a text is valid under a schema. Raises MissingDependency without jsonschema."""

    def __init__(self, schema_text: str) -> None:
        try:
            import jsonschema
        except ImportError:
            raise missing_dependency("jsonschema", "judging random walks") from None
        default = jsonschema.Draft202012Validator
        plain = json.loads(schema_text)
        kind = jsonschema.validators.validator_for(plain, default=default)
        exact_kind = jsonschema.validators.extend(kind, type_checker=_with_decimals(kind))
        formats = default.FORMAT_CHECKER
        self._exact = exact_kind(json.loads(schema_text, parse_float=_decimal), format_checker=formats)
        self._doubles = None if '"multipleOf"' in schema_text else kind(plain, format_checker=formats)

    def fault(self, text: bytes) -> str:
        """What is wrong with a text; empty if it is valid."""
        try:
            decoded = text.decode("utf-8")
            exact = json.loads(decoded, parse_float=_decimal, parse_constant=_refuse)
            exact_text = decoded.encode("utf-8", "strict")
        except (ValueError, RecursionError) as error:
            return f"no JSON: {error}"
        assert exact_text == text
        with decimal.localcontext() as context:
            context.prec, context.Emax, context.Emin = PRECISION, decimal.MAX_EMAX, decimal.MIN_EMIN
            first = next(self._exact.iter_errors(exact), None)
        if first is None and self._doubles is not None:
            first = next(self._doubles.iter_errors(json.loads(decoded)), None)
        return "" if first is None else f"{first.json_path}: {first.message}"


def _with_decimals(kind: Any) -> Any:
    """The type checker of a validator, for numbers that are read as decimals."""
    checker = kind.TYPE_CHECKER

    def is_integer(_: Any, value: Any) -> bool:
        if not isinstance(value, Decimal):
            return bool(checker.is_type(value, "integer"))
        is_whole = value == value.to_integral_value()
        return is_whole and bool(checker.is_type(1.0, "integer"))  # in draft 4 a point makes it a number

    return checker.redefine("integer", is_integer)


def _decimal(text: str) -> Decimal:
    """The number; one near the largest, or 0, for exponents beyond what decimals have."""
    try:
        return Decimal(text)
    except decimal.InvalidOperation:
        mantissa, _, exponent = text.lower().partition("e")
        zero = Decimal(mantissa) == 0 or exponent.startswith("-")
        return Decimal(0) if zero else Decimal(f"1E+{decimal.MAX_EMAX}").copy_sign(Decimal(mantissa))


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


@dataclass
class Walks:
    """What became of the walks of a case: of how many, a count for each outcome, and some faults (outcome, text,
    message).
    """

    asked: int
    counts: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    faults: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def taken(self) -> int:
        """The walks so far."""
        return self.counts.total()

    def columns(self) -> dict[str, Any]:
        """The row's part."""
        return {
            "walks_asked": self.asked,
            "walks": self.taken,
            "walk_tokens": self.tokens,
            "walks_finished": self.counts[FINISHED],
            "walks_unfinished": self.counts[UNFINISHED],
            "dead_ends": self.counts[DEAD_END],
            "invalid_texts": self.counts[INVALID],
            "unjudged_texts": self.counts[UNJUDGED],
            "walk_faults": json.dumps(self.faults),
        }


def walk_case(compiled: CompiledConstraint, walker: Walker, judge: Judge, count: int, seed: str) -> Iterator[Walks]:
    """Take `count` walks; yields what is known so far, after each. An error of the engine is a dead end."""
    found = Walks(count)
    for number in range(count):
        outcome, text, taken, message = DEAD_END, b"", 0, ""
        try:
            outcome, text, taken = walker.walk(compiled, random.Random(f"{seed} {number}"))
        except Exception as error:
            message = failure_of(error).message
        if outcome == FINISHED:
            try:
                message = judge.fault(text)
                outcome = INVALID if message else FINISHED
            except Exception as error:
                outcome, message = UNJUDGED, failure_of(error).message
        found.counts[outcome] += 1
        found.tokens += taken
        if outcome in (DEAD_END, INVALID, UNJUDGED) and len(found.faults) < MAX_FAULTS:
            found.faults.append((outcome, text.decode(errors="replace")[:MAX_TEXT], message[:MAX_TEXT]))
        yield found
