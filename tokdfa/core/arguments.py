"""Checks of what callers pass, one for each kind of argument: each returns a plain value or raises ArgumentError.

An error names the argument, what it takes and what it was given. Public functions check once, at the door; what lies
behind them is handed plain ints and arrays.
"""

from __future__ import annotations

import operator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.errors import ArgumentError, VocabularyError, a_type

if TYPE_CHECKING:
    from collections.abc import Iterable


def as_integer(value: Any, name: str, minimum: int | None = None, maximum: int | None = None) -> int:
    """`value` as an int within the bounds. Integers of numpy and tensors of one are taken; bools and floats are not."""
    if isinstance(value, bool | np.bool_):
        raise ArgumentError(f"{name} takes a whole number, not {value!r}")
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} takes a whole number, not {_show(value)}") from None
    if (minimum is not None and number < minimum) or (maximum is not None and number > maximum):
        bounds = [f"at least {minimum}"] if minimum is not None else []
        bounds += [f"at most {maximum}"] if maximum is not None else []
        raise ArgumentError(f"{name} must be {' and '.join(bounds)}, not {number}")
    return number


def as_token(value: Any, name: str = "token") -> int:
    """A token id as an int, in range or not."""
    return as_integer(value, f"{name} (a token id)")


def as_tokens(values: Any, size: int, name: str) -> tuple[int, ...]:
    """Token ids of a vocabulary of `size` as ints, 40 ns each. VocabularyError for an id outside it."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        values = values.tolist()
    tokens = as_sequence(values, name, "token ids")
    found = tuple(token if type(token) is int else as_token(token, name) for token in tokens)
    if found and not (min(found) >= 0 and max(found) < size):
        wrong = next(token for token in found if not 0 <= token < size)
        raise VocabularyError(f"{name}: token {wrong} is outside 0..{size - 1}")
    return found


def as_sequence(values: Any, name: str, of: str) -> Iterable[Any]:
    """`values`, if they can be gone through and are not a text, which would be taken apart."""
    if isinstance(values, str | bytes):
        raise ArgumentError(f"{name} takes a sequence of {of}, not the text {_show(values)}")
    try:
        return iter(values)
    except TypeError:
        raise ArgumentError(f"{name} takes a sequence of {of}, not {_show(values)}") from None


def as_text(value: Any, name: str) -> str:
    """`value`, which must be a str."""
    if not isinstance(value, str):
        raise ArgumentError(f"{name} takes a str, not {_show(value)}")
    return value


def as_path(value: Any, name: str) -> Path:
    """`value`, a str or a Path, as a Path."""
    try:
        return Path(value)
    except TypeError:
        raise ArgumentError(f"{name} takes a path, not {_show(value)}") from None


def as_number(value: Any, name: str) -> float:
    """`value` as a float; bools and texts are not taken for one."""
    if isinstance(value, bool | np.bool_ | str | bytes):
        raise ArgumentError(f"{name} takes a number, not {_show(value)}")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{name} takes a number, not {_show(value)}") from None


def as_bool(value: Any, name: str) -> bool:
    """`value` as a bool; numbers are not taken for one."""
    if not isinstance(value, bool | np.bool_):
        raise ArgumentError(f"{name} is True or False, not {_show(value)}")
    return bool(value)


def _show(value: Any) -> str:
    """A value in a message: its type, and itself if that is short."""
    shown = repr(value)
    return f"{shown} ({type(value).__name__})" if len(shown) <= 40 else a_type(value)
