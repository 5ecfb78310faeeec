"""The errors of a guide and its parts, and the checks of arguments that raise them.

outlines_core raises ValueError and TypeError; so do we, with errors that are `TokdfaError` as well.
"""

from __future__ import annotations

import operator
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tokdfa.errors import TokdfaError

if TYPE_CHECKING:
    from collections.abc import Iterator


class GuideError(TokdfaError, ValueError):
    """A value that a guide, an index or a vocabulary refuses. A ValueError, as it is in outlines_core."""


class GuideTypeError(TokdfaError, TypeError):
    """An argument of the wrong type. A TypeError, as it is in outlines_core."""


@contextmanager
def as_guide_errors() -> Iterator[None]:
    """Raise tokdfa's errors as GuideError, with the same message and the error as its cause."""
    try:
        yield
    except TokdfaError as error:
        raise GuideError(str(error)) from error


def as_integer(value: Any, what: str) -> int:
    """`value` as an int: numpy's integers and tensors of one integer are taken, floats are not (GuideTypeError)."""
    try:
        return operator.index(value)
    except TypeError:
        raise GuideTypeError(f"{what} is a whole number, not {type(value).__name__}") from None


def as_count(value: Any, what: str) -> int:
    """`value` as an int from 0 to `sys.maxsize`; GuideError if it is outside."""
    number = as_integer(value, what)
    if not 0 <= number <= sys.maxsize:
        raise GuideError(f"{what} is a number from 0 to {sys.maxsize}, not {number}")
    return number


def as_token_bytes(token: Any) -> bytes:
    """A token's text, str (UTF-8) or bytes, as bytes."""
    if not isinstance(token, str | bytes):
        raise GuideTypeError(f"a token's text is a str or bytes, not {type(token).__name__}")
    try:
        return token.encode() if isinstance(token, str) else token
    except UnicodeEncodeError as error:
        raise GuideError(f"the token {token!r} has no UTF-8 form: {error.reason}; give it as bytes") from None
