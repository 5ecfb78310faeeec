"""What a compile wants to say beside its result: collected where it began, however deep it is found.

A constraint is read in many places (alone, inside a grammar, by another backend), and what is suspicious in it should
reach the user once. So whoever starts a compile opens `collecting`, and whoever reads calls `note`.
"""

from __future__ import annotations

import sys
import warnings
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from tokdfa.errors import ConstraintWarning

_collected: ContextVar[dict[Any, None] | None] = ContextVar("notices", default=None)
_PACKAGE = str(Path(__file__).parent.parent)
#: So many notices are spelled out in one warning.
SHOWN = 3


class collecting:  # noqa: N801 - used as a verb: with collecting() as found
    """The notices of a block as they come, each once, in a dict; those of a block inside another belong to both."""

    __slots__ = ("_found", "_outer")

    def __enter__(self) -> dict[Any, None]:
        self._found: dict[Any, None] = {}
        self._outer = _collected.get()
        _collected.set(self._found)
        return self._found

    def __exit__(self, *error: object) -> None:
        _collected.set(self._outer)
        if self._outer is not None:
            self._outer |= self._found


def note(notice: Any) -> None:
    """Add a notice, which is hashable, to those being collected. It is lost if nothing collects them."""
    found = _collected.get()
    if found is not None:
        found[notice] = None


def is_outermost() -> bool:
    """Whether nothing is collecting yet, so that this compile issues the warning."""
    return _collected.get() is None


def warn_of(notices: tuple[Any, ...]) -> None:
    """One warning for all of them, at the line outside of this package that led here."""
    shown = "; ".join(map(str, notices[:SHOWN]))
    more = f"; and {len(notices) - SHOWN} more: see `warnings` of the compiled constraint" if notices[SHOWN:] else ""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(shown + more, ConstraintWarning, stacklevel=level)
