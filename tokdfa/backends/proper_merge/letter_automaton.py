"""From an automaton over bytes to one over letters: what a text looks like before anything merges.

Merging starts from the *letters* of a text. For most tokenizers a letter is a byte, and the letter automaton is the
byte automaton with the byte's token written in its place. For others (SentencePiece) a letter is a character. Then a
state of the letter automaton is a state of the byte automaton between two characters, and reading a character takes one
step. A character that is no token is spelled by the tokens of its bytes (`tokdfa.proper.byte_fallback`), so the states
inside such characters are pairs: a state of the byte automaton, and one of the byte fallback's automaton, which says
what is a character and which characters are no tokens. Bytes that are no characters are no letters: they drop out.

The *marker* of a marked automaton stands between pieces. It becomes a letter of its own, `marker`, the id after the
last token. No merge rule contains it, so nothing merges across it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.core.budget import hold, spend
from tokdfa.token_automata.token_rows import TokenRows

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.proper.byte_fallback import ByteFallback
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
    if marked.start < 0:
        return TokenRows([], [], -1)
    table = np.take(marked.transitions, marked.byte_class, axis=1)
    if canonicity.source.unit == "byte":
        return _of_bytes(marked, table, canonicity).trimmed()
    return _of_characters(marked, table, canonicity, inside).trimmed()


def _of_bytes(marked: MarkedDfa, table: npt.NDArray[np.int32], canonicity: Canonicity) -> TokenRows:
    spelled = {letter[0]: token for letter, token in canonicity.letter_tokens.items()}
    columns = table[:, list(spelled)]
    tokens = np.array(list(spelled.values()), dtype=np.int64)
    rows = []
    for state in range(marked.state_count):
        spend(NS_PER_STATE)
        hold(BYTES_PER_ENTRY * columns.shape[1] // 4)
        there = np.flatnonzero(columns[state] >= 0)
        row = dict(zip(tokens[there].tolist(), columns[state, there].tolist(), strict=True))
        if marked.marker[state] >= 0:
            row[marker_letter(canonicity)] = int(marked.marker[state])
        rows.append(row)
    return TokenRows(rows, marked.accepting.tolist(), marked.start)


def _of_characters(marked: MarkedDfa, table: npt.NDArray[np.int32], canonicity: Canonicity, inside: int) -> TokenRows:
    by_length = _letters_by_length(canonicity)
    number = {(marked.start, inside): 0}  # (byte state, state of the byte fallback) -> letter state
    found = [(marked.start, inside)]
    rows: list[dict[int, int]] = []

    def number_of(state: int, fallback_state: int) -> int:
        key = (state, fallback_state)
        if key not in number:
            number[key] = len(found)
            found.append(key)
        return number[key]

    for state, fallback_state in found:  # the loop sees what it appends
        spend(NS_PER_STATE)
        row: dict[int, int] = {}
        if fallback_state == 0:
            for tokens, texts in by_length:
                reached = np.full(len(tokens), state, dtype=np.int32)
                for column in texts.T:
                    reached = np.where(reached >= 0, table[reached, column], -1)
                for place in np.flatnonzero(reached >= 0).tolist():
                    row[int(tokens[place])] = number_of(int(reached[place]), 0)
            if marked.marker[state] >= 0:
                row[marker_letter(canonicity)] = number_of(int(marked.marker[state]), 0)
        if canonicity.fallback is not None:
            for token, target, following in _byte_steps(canonicity.fallback, table[state], fallback_state):
                row[token] = number_of(target, following)
        spend(NS_PER_ENTRY * len(row))
        hold(BYTES_PER_ENTRY * len(row))
        rows.append(row)
    accepting = [fallback_state == 0 and bool(marked.accepting[state]) for state, fallback_state in found]
    return TokenRows(rows, accepting, 0)


def _letters_by_length(canonicity: Canonicity) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]]:
    """(tokens, their bytes: uint8, shape (tokens, length)) of the letters of each length."""
    groups: dict[int, list[tuple[int, bytes]]] = {}
    for letter, token in canonicity.letter_tokens.items():
        groups.setdefault(len(letter), []).append((token, letter))
    return [
        (
            np.array([token for token, _ in group]),
            np.frombuffer(b"".join(letter for _, letter in group), dtype=np.uint8).reshape(len(group), length),
        )
        for length, group in groups.items()
    ]


def _byte_steps(fallback: ByteFallback, targets: npt.NDArray[np.int32], inside: int) -> list[tuple[int, int, int]]:
    """(byte token, byte state, state of the byte fallback) for each byte token that may come next."""
    following = fallback.table[inside]
    return [
        (int(fallback.tokens[byte]), int(targets[byte]), int(following[byte]))
        for byte in np.flatnonzero((targets >= 0) & (following >= 0)).tolist()
    ]
