"""What the proper filter and the search for ends ask of a strategy, beyond one mask and one step at a time.

Words. A *situation* is a state of the strategy, as a number; the *targets* of a situation are the situations after each
token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tokdfa.errors import UnsupportedConstraint

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tokdfa.mask import Mask

    Int32 = npt.NDArray[np.int32]

#: Waypoints of one situation at most; more are not made use of.
MOST_WAYPOINTS = 50


class SituationSource(Protocol):
    """What is asked of the strategy that knows the text. Situations are numbers from 0 on."""

    def number(self, state: Any) -> int:
        """The situation that a matcher's state is; by default the state itself."""
        return int(state)

    def step(self, situation: int, token: int) -> int:
        """The situation after a token, -1 if it is not allowed."""
        return int(self.targets(situation)[token])

    def targets(self, situation: int) -> Int32:
        """The situation after each token: int32, shape (V,), -1 where a token is not allowed. Not to be changed."""

    def fill(self, situation: int, out: Mask) -> None:
        """Overwrite `out` with the tokens allowed in a situation."""

    def can_end(self, situation: int) -> bool:
        """Whether the text may end."""

    def following(self, situation: int) -> Int32 | None:
        """The situation after each byte: int32, shape (256,), -1 where it is not allowed. None: that is not known.

        Any tokens that spell a text must be allowed where its bytes are, and lead to the same situation.
        """
        return None

    def rank(self, situation: int) -> int:
        """A guess at how far an end is, by which searches are led: `tokdfa.backends.some_end`."""
        return 0

    def waypoints(self, situation: int, calls: bool) -> list[int]:
        """Situations of which every way to an end passes one, maybe inside a token; none: that is not known, or they
        are more than MOST_WAYPOINTS.

        They are where what is being read ends, or with `calls` where the innermost calls return.
        """
        return []

    def read(self, situation: int, text: bytes) -> int:
        """The situation after some bytes, -1 if they are not allowed. Asked of waypoints only."""
        raise UnsupportedConstraint("situations without waypoints are not read byte by byte")
