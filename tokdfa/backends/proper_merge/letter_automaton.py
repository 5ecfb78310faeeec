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

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.backends.proper_merge.marked_product import ENDS, piece_automaton
from tokdfa.backends.proper_merge.proper_rows import ProperRows, TokenReader
from tokdfa.core.budget import hold, spend
from tokdfa.proper.whole_pieces import build_whole_pieces
from tokdfa.token_automata.token_rows import TokenRows

if TYPE_CHECKING:
    from tokdfa.proper.canonical import Canonicity
    from tokdfa.proper.pretokenizer_dfa import MarkedDfa


def marker_letter(canonicity: Canonicity) -> int:
    """The letter that stands for the marker: V."""
    return canonicity.size


#: What an entry of a row takes, and what it holds.
NS_PER_ENTRY, BYTES_PER_ENTRY = 500, 60


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
    letters, nothing_else = canonicity.letter_tries
    nothing_whole = build_whole_pieces({}, nothing_else.rank_of)
    rank_of = canonicity.vocabulary.trie.rank_of
    reader = TokenReader(pieces, canonicity.fallback, letters, nothing_whole, nothing_else, rank_of)
    found = ProperRows(reader, np.iinfo(np.int64).max, every_state=True)
    found.number(pieces.starts[0])
    found.close()
    spend(NS_PER_ENTRY * found.entry_count)
    hold(BYTES_PER_ENTRY * found.entry_count)
    states = found.keys()
    offsets, tokens, targets = (array.tolist() for array in found.entries())
    rows = [dict(zip(tokens[begin:end], targets[begin:end], strict=True)) for begin, end in pairwise(offsets)]
    for row, behind in zip(rows, pieces.marker[states].tolist(), strict=True):
        if behind >= 0:
            row[marker_letter(canonicity)] = found.find(behind)
    return TokenRows(rows, (pieces.can_stop[states] & ENDS != 0).tolist(), 0).trimmed()
