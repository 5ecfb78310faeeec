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
from tokdfa.proper.pretokenizer_automaton import MarkedLetters
from tokdfa.proper.pretokenizer_dfa import MARKER_BYTE, MarkedDfa
from tokdfa.regex.utf8 import LENGTHS
from tokdfa.vocabulary.huggingface_spelling import byte_alphabet

if TYPE_CHECKING:
    import numpy.typing as npt

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
    dfa = Dfa.from_table(states.table(), states.accepting(letters.dfa.accepting), letters.dfa.start)
    return MarkedDfa.of_bytes(minimize(dfa))


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


# Steps that see bytes as characters of GPT-2's alphabet. Their automata have the class of each of 256 bytes in place of
# that of each character, so that `mark_sequence` joins them.


def read_byte_alphabet(letters: MarkedLetters) -> MarkedLetters:
    """The automaton of a step, with each byte read as its character."""
    points = np.array([ord(character) for character in byte_alphabet()])  # all below the surrogates
    used, classes = np.unique(letters.classes[points], return_inverse=True)
    return _of_table(letters.table()[:, [*used, letters.marker]], classes, letters.dfa)


def bytes_as_letters(marked: MarkedDfa) -> MarkedLetters:
    """The automaton over bytes and the marker, its byte classes as letters."""
    table = np.column_stack([marked.transitions, marked.marker]).astype(np.int32)
    return _of_table(table, marked.byte_class.astype(np.intp), marked)


def letters_as_bytes(letters: MarkedLetters) -> MarkedDfa:
    """The minimal automaton over bytes and the marker."""
    table = letters.table()
    by_byte = table[:, :-1][:, letters.classes]
    by_byte[:, MARKER_BYTE] = table[:, -1]
    return MarkedDfa.of_bytes(minimize(Dfa.from_table(by_byte, letters.dfa.accepting, letters.dfa.start)))


def _of_table(table: npt.NDArray[np.int32], classes: npt.NDArray[np.intp], dfa: Dfa) -> MarkedLetters:
    """From transitions by class, the marker last, and the class of each byte."""
    by_letter = np.full((len(table), 256), -1, dtype=np.int32)
    by_letter[:, : table.shape[1]] = table
    return MarkedLetters(Dfa.from_table(by_letter, dfa.accepting, dfa.start), classes.astype(np.uint8))
