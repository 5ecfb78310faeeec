"""Automata over classes of bytes, for steps of a pre-tokenizer that see bytes as characters of GPT-2's alphabet.

They have the form of automata over classes of characters (`MarkedLetters`), the class of each of 256 bytes in place of
that of each character, so that `mark_sequence` joins them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.automata.dfa import Dfa
from tokdfa.automata.minimize import minimize
from tokdfa.proper.pretokenizer_automaton import MarkedLetters
from tokdfa.proper.pretokenizer_dfa import MARKER_BYTE, MarkedDfa
from tokdfa.vocabulary.huggingface_spelling import byte_alphabet

if TYPE_CHECKING:
    import numpy.typing as npt


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
    dfa = minimize(Dfa.from_table(by_byte, letters.dfa.accepting, letters.dfa.start))
    whole = dfa.byte_table()
    marker = whole[:, MARKER_BYTE].copy()
    whole[:, MARKER_BYTE] = -1
    without = Dfa.from_table(whole, dfa.accepting, dfa.start)
    return MarkedDfa(without.transitions, without.byte_class, without.accepting, without.start, marker)


def _of_table(table: npt.NDArray[np.int32], classes: npt.NDArray[np.intp], dfa: Dfa) -> MarkedLetters:
    """From transitions by class, the marker last, and the class of each byte."""
    by_letter = np.full((len(table), 256), -1, dtype=np.int32)
    by_letter[:, : table.shape[1]] = table
    return MarkedLetters(Dfa.from_table(by_letter, dfa.accepting, dfa.start), classes.astype(np.uint8))
