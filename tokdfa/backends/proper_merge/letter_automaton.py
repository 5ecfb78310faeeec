"""From an automaton over bytes to one over letters: what a text looks like before anything merges.

Merging starts from the *letters* of a text. For most tokenizers a letter is a byte, and the letter automaton is the
byte automaton with the byte's token written in its place. For others (SentencePiece) a letter is a character. Then a
state of the letter automaton is a state between two characters, and reading a character takes one step. A character
that is no token is spelled by the tokens of its bytes; the states inside such characters, and the letters by which they
are read, are those of `tokdfa.backends.proper_merge.marked_product.PieceAutomaton`. Bytes that are no characters are no
letters: they drop out.

The *marker* of a marked automaton stands between pieces. It becomes a letter of its own, `marker`, the id after the
last token. No merge rule contains it, so nothing merges across it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.backends.proper_merge.marked_product import ENDS, piece_automaton
from tokdfa.core.budget import hold, spend
from tokdfa.token_automata.token_rows import TokenRows

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.proper_merge.marked_product import PieceAutomaton
    from tokdfa.proper.canonical import Canonicity
    from tokdfa.proper.pretokenizer_dfa import MarkedDfa


def marker_letter(canonicity: Canonicity) -> int:
    """The letter that stands for the marker: V."""
    return canonicity.size


#: What a state takes, and an entry of it; and what an entry holds.
NS_PER_STATE, NS_PER_ENTRY, BYTES_PER_ENTRY = 30_000, 500, 60


def letter_automaton(marked: MarkedDfa, canonicity: Canonicity, inside: int = 0) -> TokenRows:
    """The letters (and markers) of every text that `marked` accepts and the tokenizer can spell; trimmed.

    `inside`: the state of the byte fallback at the start, if byte tokens before the text have begun a character.
    No states if the tokenizer can spell no text. O(states x letters).
    """
    nothing = TokenRows([], [], -1)
    if marked.start < 0:
        return nothing
    pieces = piece_automaton(marked, canonicity.fallback, inside=inside)
    if pieces.starts[0] < 0:
        return nothing
    table = pieces.table.reshape(-1, pieces.classes)
    table = np.where(table >= 0, table // pieces.classes, -1)
    table = np.append(table, np.full((1, pieces.classes), -1, dtype=np.int32), axis=0)  # its last row is that of -1
    letters: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], list[bool]]] = [
        # where such letters may begin at all, which settles most of them for most states
        (tokens, columns, np.any(table[:, np.unique(columns[0])] >= 0, axis=1).tolist())
        for tokens, columns in _columns_of_letters(canonicity, pieces)
    ]
    number = {pieces.starts[0]: 0}  # state of the pieces -> letter state
    found = [pieces.starts[0]]
    rows: list[dict[int, int]] = []
    for state in found:  # the loop sees what it appends
        spend(NS_PER_STATE)
        row: dict[int, int] = {}
        for tokens, columns, begins in letters:
            if not begins[state]:
                continue
            reached = table[state].take(columns[0])
            there = np.flatnonzero(reached >= 0)
            reached = reached[there]
            for column in columns[1:]:
                reached = table[reached, column[there]]
                there, reached = there[reached >= 0], reached[reached >= 0]
            row.update(zip(tokens[there].tolist(), reached.tolist(), strict=True))
        if pieces.marker[state] >= 0:
            row[marker_letter(canonicity)] = int(pieces.marker[state])
        for token, target in row.items():
            if target not in number:
                number[target] = len(found)
                found.append(target)
            row[token] = number[target]
        spend(NS_PER_ENTRY * len(row))
        hold(BYTES_PER_ENTRY * len(row))
        rows.append(row)
    return TokenRows(rows, (pieces.can_stop[found] & ENDS != 0).tolist(), 0).trimmed()


def _columns_of_letters(
    canonicity: Canonicity, pieces: PieceAutomaton
) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """(tokens, the columns by which each is read: shape (length, tokens)) of letters of one length, and byte tokens."""
    groups: dict[int, list[tuple[int, bytes]]] = {}
    for letter, token in canonicity.letter_tokens.items():
        groups.setdefault(len(letter), []).append((token, letter))
    found = []
    for length, group in groups.items():
        texts = np.frombuffer(b"".join(letter for _, letter in group), dtype=np.uint8).reshape(len(group), length)
        found.append(
            (np.array([token for token, _ in group]), np.ascontiguousarray(pieces.byte_class[texts].T, dtype=np.int64))
        )
    if canonicity.fallback is not None:
        spoken = np.flatnonzero(pieces.fallback_class >= 0)
        tokens = canonicity.fallback.tokens[spoken].astype(np.int64)
        found.append((tokens, pieces.fallback_class[None, spoken].astype(np.int64)))
    return found
