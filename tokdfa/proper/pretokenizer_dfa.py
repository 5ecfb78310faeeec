r"""`MarkedDfa`: which texts, written with a marker at every border of pieces, a pre-tokenizer makes.

A *marked text* is a text in UTF-8 with a marker, which is no byte, between its pieces: ``p1|p2|...|pn``. No marker
stands at the beginning or at the end, and never two together, since no piece is empty; the empty text has no pieces and
no marker. The automaton accepts a marked text iff the pre-tokenizer cuts the text into exactly these pieces. So every
text that the pre-tokenizer takes has exactly one accepted marking, and a text of which it loses a part has none.

States that token reading meets are those inside a character as well: the automaton reads bytes. A state from which
nothing is accepted does not exist; a run that dies (-1) has no continuation at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokdfa.automata.dfa import Dfa
from tokdfa.core.locks import cached_property
from tokdfa.core.stored_file import FileFormat
from tokdfa.errors import AutomatonError, TokenizerError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokdfa.core.stored_file import Arrays, Header

FORMAT = FileFormat("tokdfa marked pre-tokenizer", 1, TokenizerError, "saved automaton", "build it again")
#: Bytes that occur in no UTF-8 text: one that can stand for the marker in an automaton over bytes, and another.
MARKER_BYTE, NO_BYTE = 0xFF, 0xFE
_ARRAYS = ("transitions", "byte_class", "marker", "accepting")
#: The borders so far, the last one first: (place, borders before it), or None.
_Borders = tuple[int, "_Borders | None"]


@dataclass(frozen=True, eq=False, repr=False)
class MarkedDfa(Dfa):
    """A deterministic automaton over the 256 bytes and the marker, immutable and shareable between threads.

    What reads bytes is a `Dfa`. `marker`: int32, shape (states,), the state after a marker or -1 where no border can
    be. Arrays are copied unless they are read-only already. Raises AutomatonError if the parts do not fit together.
    """

    marker: npt.NDArray[np.int32]

    def __post_init__(self) -> None:
        super().__post_init__()
        marker = np.array(self.marker, dtype=np.int32)
        if marker.shape != (self.state_count,) or np.any((marker < -1) | (marker >= self.state_count)):
            raise AutomatonError(f"marker holds -1 or one of the {self.state_count} states for each of them")
        marker.flags.writeable = False
        object.__setattr__(self, "marker", marker)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays in bytes."""
        return super().nbytes + self.marker.nbytes

    @classmethod
    def of_bytes(cls, dfa: Dfa) -> MarkedDfa:
        """The automaton of `dfa`, in which the byte MARKER_BYTE stands for the marker, and NO_BYTE leads nowhere."""
        column = int(dfa.byte_class[MARKER_BYTE])
        if column == dfa.byte_class[NO_BYTE]:  # no markers at all
            markers = np.full(dfa.state_count, -1, dtype=np.int32)
            return cls(dfa.transitions, dfa.byte_class, dfa.accepting, dfa.start, markers)
        byte_class = dfa.byte_class.copy()
        byte_class[MARKER_BYTE] = byte_class[NO_BYTE]
        byte_class[byte_class > column] -= 1
        transitions = np.delete(dfa.transitions, column, axis=1)
        return cls(transitions, byte_class, dfa.accepting, dfa.start, dfa.transitions[:, column])

    def after_marker(self, state: int) -> int:
        """The state after a marker, or -1 where no border can be; from -1 (dead) always -1."""
        return int(self.marker[state]) if state >= 0 else -1

    def as_bytes(self, start: int | None = None) -> Dfa:
        """The marked language from `start` (default: the start), with the byte MARKER_BYTE for the marker."""
        return self._as_bytes if start in (None, self.start) else self._with_marker_byte(int(start or 0))

    @cached_property
    def _as_bytes(self) -> Dfa:
        return self._with_marker_byte(self.start)

    def _with_marker_byte(self, start: int) -> Dfa:
        table = self.byte_table()
        table[:, MARKER_BYTE] = self.marker
        return Dfa.from_table(table, self.accepting, start)

    def accepts_pieces(self, pieces: Iterable[bytes]) -> bool:
        """Whether the pre-tokenizer cuts the text ``b"".join(pieces)`` into exactly `pieces`."""
        here = self.start
        for number, piece in enumerate(pieces):
            here = self.run(piece, self.after_marker(here) if number else here)
        return here >= 0 and bool(self.accepting[here])

    def pieces(self, text: str) -> list[bytes]:
        """The pieces of `text`. O(bytes x states that stand side by side), in Python: a convenience.

        Raises TokenizerError if the pre-tokenizer loses a part of the text, and for a lone surrogate.
        """
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            raise TokenizerError(f"the text has no UTF-8 form: {error}") from None
        borders, _ = self.borders(data)
        if borders is None:
            raise TokenizerError(f"the pre-tokenizer loses a part of the text {text[:60]!r}, so it has no pieces")
        cuts = [0, *borders, len(data)] if data else [0]
        return [data[begin:end] for begin, end in pairwise(cuts)]

    def borders(self, data: bytes) -> tuple[list[int] | None, int]:
        """(the places of the markers in `data`, its length), or (None, how many bytes could be read)."""
        alive: dict[int, _Borders | None] = {self.start: None}
        for place, byte in enumerate(data):
            following: dict[int, _Borders | None] = {}
            for state, known in alive.items():
                if (target := self.step(state, byte)) >= 0:
                    following[target] = known
                if (target := self.step(self.after_marker(state), byte)) >= 0:
                    following[target] = (place, known)
            if not following:
                return None, place
            alive = following
        accepted = [known for state, known in alive.items() if self.accepting[state]]
        if not accepted:
            return None, len(data)
        link, places = accepted[0], []  # a text has one marking only
        while link is not None:
            places.append(link[0])
            link = link[1]
        return places[::-1], len(data)

    def parts(self, description: str) -> tuple[Header, Arrays]:
        """What a file of the automaton holds."""
        return {"start": self.start, "description": description}, {name: getattr(self, name) for name in _ARRAYS}

    @classmethod
    def of_parts(cls, description: str, header: Header, arrays: Arrays) -> MarkedDfa:
        """The automaton with these `parts`. Raises ValueError for another description, KeyError, AutomatonError."""
        if header["description"] != description:
            raise ValueError("it is not of this description")
        return cls(**{name: arrays[name] for name in _ARRAYS}, start=header["start"])

    def __repr__(self) -> str:
        return (
            f"MarkedDfa({self.state_count} states, {self.class_count} byte classes, "
            f"{int((self.marker >= 0).sum())} with a marker, start={self.start})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return MarkedDfa, (self.transitions, self.byte_class, self.accepting, self.start, self.marker)
