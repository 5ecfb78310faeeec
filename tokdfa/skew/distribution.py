"""A distribution over texts of which a part of the mass may be unresolved.

The resolved probabilities p and the unresolved mass u add up to 1. u belongs to the texts too, but nobody knows to
which: the true probability of a text is between p and p + u, and those of all texts together are p plus some division
of u among them. So any statement about the distribution is an interval, and a number if u = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.core.locks import cached_property
from tokdfa.errors import OptionError, UnknownNameError

if TYPE_CHECKING:
    import numpy.typing as npt

#: How far the total of a distribution may be from 1: much more than rounding makes of 100,000 texts.
TOTAL_TOLERANCE = 1e-6


class Interval(NamedTuple):
    """Two numbers with the true one between them; equal up to rounding where it is known exactly."""

    lower: float
    upper: float

    def contains(self, value: float, tolerance: float = 0.0) -> bool:
        """Whether `value` is between the ends, give or take `tolerance`."""
        return self.lower - tolerance <= value <= self.upper + tolerance


@dataclass(frozen=True, eq=False)
class Distribution:
    """Texts and their resolved probabilities; immutable. See the module's docstring.

    `texts`: distinct; `probabilities`: float64, shape (len(texts),), lower bounds of the true ones; `unresolved`: the
    rest of the mass, an upper bound on what any text may have beside. Raises OptionError if they are no distribution.
    """

    texts: tuple[bytes, ...]
    probabilities: npt.NDArray[np.float64]
    unresolved: float = 0.0

    def __post_init__(self) -> None:
        given = np.array(self.probabilities, dtype=np.float64)
        given.flags.writeable = False
        object.__setattr__(self, "probabilities", given)
        if given.shape != (len(self.texts),):
            raise OptionError(f"{len(self.texts)} texts need as many probabilities, not an array of {given.shape}")
        if len(self._index) != len(self.texts):
            raise OptionError("the texts of a distribution must be distinct")
        total = float(given.sum()) + self.unresolved
        if not (np.all(given >= 0) and self.unresolved >= 0 and abs(total - 1) <= TOTAL_TOLERANCE):
            raise OptionError(
                f"probabilities are at least 0 and add up to 1 with the unresolved mass, not to {total:.9g}"
            )

    @cached_property
    def _index(self) -> dict[bytes, int]:
        return {text: index for index, text in enumerate(self.texts)}

    @property
    def normalised(self) -> npt.NDArray[np.float64]:
        """The probabilities divided by their total: the best guess while mass is unresolved. Float64, (len(texts),).

        Raises OptionError if nothing is resolved.
        """
        total = self.probabilities.sum()
        if not total > 0:
            raise OptionError("all mass of the distribution is unresolved")
        return self.probabilities / total

    def named(self, text: str | bytes) -> float:
        """The resolved probability of one text. Raises UnknownNameError for another text."""
        wanted = text.encode() if isinstance(text, str) else text
        if wanted not in self._index:
            known = (known.decode(errors="replace") for known in self.texts)
            raise UnknownNameError("text of the distribution", wanted.decode(errors="replace"), known)
        return float(self.probabilities[self._index[wanted]])

    def interval(self, text: str | bytes) -> Interval:
        """The bounds of the probability of one text. Raises UnknownNameError for another text."""
        lower = self.named(text)
        return Interval(lower, min(lower + self.unresolved, 1.0))
