r"""From classes of characters to bytes: every character is replaced by the bytes of its UTF-8 form.

The class of a character depends on its lead byte and up to three continuation bytes of six bits each. Cut the classes
of all scalar values into rows of 64: a row says which class each last byte makes. Equal rows are one *node*; rows of 64
nodes are nodes of the next level, and so on up to the lead bytes. That is the minimal acyclic automaton from bytes to
classes, made once for all states. For a state of the automaton over classes, write the state reached in place of each
class: nodes that become equal, for this state or any other, are one state of the result. Only the shortest form of each
scalar occurs and no surrogate (Unicode, section 3.9, table 3-7), so exactly the valid texts are read.

The result is minimised. In between, the marker is the byte FF, which occurs in no text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.automata.dfa import Dfa
from tokdfa.automata.minimize import minimize
from tokdfa.proper.pretokenizer_dfa import MARKER_BYTE, MarkedDfa
from tokdfa.regex.utf8 import LENGTHS

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.proper.pretokenizer_automaton import MarkedLetters

    Rows = npt.NDArray[np.int32]

_SURROGATES = slice(0xD800, 0xE000)
_CONTINUATIONS = slice(0x80, 0xC0)
#: All numbers that a lead byte and three continuation bytes could hold; those past 10FFFF are no scalars.
_NUMBERS = 1 << 21


def spell_in_bytes(letters: MarkedLetters) -> MarkedDfa:
    """The minimal automaton over bytes and the marker. O(states x nodes x 64), in numpy, and one minimisation."""
    points = np.delete(np.arange(0x110000), _SURROGATES)
    classes = np.full(_NUMBERS, -1, dtype=np.int32)
    classes[points] = letters.classes
    table = letters.table()
    rows = np.full((len(table), 256), -1, dtype=np.int32)
    rows[:, :0x80] = table[:, classes[:0x80]]
    rows[:, MARKER_BYTE] = table[:, letters.marker]
    states = _States(rows)
    for tail, (first, last, mark) in enumerate(LENGTHS[1:], start=1):
        level = np.full(_NUMBERS, -1, dtype=np.int32)
        level[first : last + 1] = classes[first : last + 1]
        nodes = []
        for _ in range(tail):
            level, unique = _merge_rows(level.reshape(-1, 64))
            nodes.append(unique)
        leads = np.flatnonzero(level >= 0)
        for state, row in enumerate(table):
            targets = row[:-1]
            for unique in nodes:
                targets = states.number_rows(np.append(targets, np.int32(-1))[unique])
            rows[state, mark + leads] = targets[level[leads]]
    dfa = minimize(Dfa.from_table(states.table(), states.accepting(letters.dfa.accepting), letters.dfa.start))
    by_byte = dfa.byte_table()
    marker = by_byte[:, MARKER_BYTE].copy()
    by_byte[:, MARKER_BYTE] = -1
    without = Dfa.from_table(by_byte, dfa.accepting, dfa.start)
    return MarkedDfa(without.transitions, without.byte_class, without.accepting, without.start, marker)


def _merge_rows(level: Rows) -> tuple[Rows, Rows]:
    """(node of each row or -1 for a row of -1, the distinct other rows)."""
    numbers: dict[bytes, int] = {np.full(64, -1, dtype=np.int32).tobytes(): -1}
    found = [numbers.setdefault(row.tobytes(), len(numbers) - 1) for row in np.ascontiguousarray(level)]
    unique = np.frombuffer(b"".join(list(numbers)[1:]), dtype=np.int32).reshape(-1, 64)
    return np.array(found, dtype=np.int32), unique


class _States:
    """States of the result: first those between characters (`rows`, filled by the caller), then those inside one."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._numbers: dict[bytes, int] = {}

    def number_rows(self, targets: Rows) -> Rows:
        """The state for each row of 64 targets by continuation byte; -1 for a row that leads nowhere."""
        first = len(self.rows)
        numbers = [self._numbers.setdefault(row.tobytes(), first + len(self._numbers)) for row in targets]
        return np.where((targets >= 0).any(axis=1), numbers, -1).astype(np.int32)

    def table(self) -> Rows:
        inside = np.full((len(self._numbers), 256), -1, dtype=np.int32)
        inside[:, _CONTINUATIONS] = np.frombuffer(b"".join(self._numbers), dtype=np.int32).reshape(-1, 64)
        return np.concatenate([self.rows, inside])

    def accepting(self, between: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        return np.append(between, np.zeros(len(self._numbers), dtype=np.bool_))
