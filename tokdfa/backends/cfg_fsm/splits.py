"""The split table of 003: every way to cut a token in two, and what a lexer state makes of the second part.

A token of n bytes has n suffixes (itself included). All distinct suffixes of all tokens, sorted, are the *rests*; a cut
of a token is a pair (token, rest). Since a suffix of a rest is a rest, a token that runs through several terminals is
cut again and again within one table: `rest_at` says, for each byte of the vocabulary, which rest begins there.

`RestVectors` say for one lexer state and all rests at once: in which lexer state a rest ends if one lexeme takes all of
it, and where inside of it the lexeme may end (the *exits*), with which outcome and which rest after that. An *outcome*
is a label and a residue. They are made by one pass over the sorted rests, in which a rest starts from the states of the
rest before it, as far as they are alike.

Source: 003, "vocabulary_vector" and the vectors of a RegexFSM; there by terminal, here by lexer state.
Cost: Mistral's 32,000 tokens have 139,645 cuts inside (003 counts 128,956, of characters); vectors are 8 bytes a rest
and 8 bytes an exit.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.backends.cfg_fsm.cuts import run_rests

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.cfg_fsm.cuts import Lexer
    from tokdfa.vocabulary.vocabulary import Vocabulary


class RestVectors(NamedTuple):
    """What one lexer state makes of all rests. `after`: int32, shape (rests,), the lexer state, -1 if it dies;
    `begins`: int32, shape (rests + 1,), where the exits of each rest begin; `outcomes`, `rests`: int32, of each exit.
    """

    after: npt.NDArray[np.int32]
    begins: npt.NDArray[np.int32]
    outcomes: npt.NDArray[np.int32]
    rests: npt.NDArray[np.int32]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(array.nbytes for array in self)


class SplitTable:
    """The rests of a vocabulary. Immutable.

    `rest_at`: int32, shape (bytes of the vocabulary,); `where`, `lengths`: int64 and int32, shape (rests,), one place
    at which the rest's bytes stand; `shared`: int32, shape (rests,), how many bytes it has in common with the rest
    before it; `tokens`, `wholes`: int32, the tokens that spell something and the rest that each is as a whole.
    """

    def __init__(self, vocab: Vocabulary) -> None:
        data = vocab.byte_data.tobytes()
        ends = np.repeat(vocab.offsets[1:], vocab.lengths).tolist()
        suffixes = [data[begin:end] for begin, end in enumerate(ends)]
        ordered = sorted(set(suffixes))
        numbers = dict(zip(ordered, range(len(ordered)), strict=True))
        self.rest_at: npt.NDArray[np.int32] = np.array([numbers[suffix] for suffix in suffixes], dtype=np.int32)
        self.where: npt.NDArray[np.int64] = np.zeros(len(ordered), dtype=np.int64)
        self.where[self.rest_at] = np.arange(len(data))
        self.lengths: npt.NDArray[np.int32] = np.array(list(map(len, ordered)), dtype=np.int32)
        self.byte_data = vocab.byte_data
        self.shared = _count_shared(self.byte_data, self.where, self.lengths)
        spelling = vocab.lengths > 0
        self.tokens: npt.NDArray[np.int32] = np.flatnonzero(spelling).astype(np.int32)
        self.wholes: npt.NDArray[np.int32] = self.rest_at[vocab.offsets[:-1][spelling]]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        parts = (self.rest_at, self.where, self.lengths, self.shared, self.tokens, self.wholes)
        return sum(part.nbytes for part in parts)

    def vectors(self, lexer: Lexer, state: int) -> RestVectors:
        """What lexer state `state` makes of all rests."""
        return RestVectors(*run_rests(self, lexer, state))


_tables: weakref.WeakKeyDictionary[Vocabulary, SplitTable] = weakref.WeakKeyDictionary()


def split_table(vocab: Vocabulary) -> SplitTable:
    """The split table of a vocabulary, made once. About 2 us for each byte of the vocabulary."""
    if vocab not in _tables:
        _tables[vocab] = SplitTable(vocab)
    return _tables[vocab]


def _count_shared(
    data: npt.NDArray[np.uint8], where: npt.NDArray[np.int64], lengths: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """How many bytes each rest begins with like the one before it."""
    shared = np.zeros(len(where), dtype=np.int32)
    limit = np.minimum(lengths[:-1], lengths[1:])
    alike = np.arange(1, len(where))
    for length in range(int(limit.max(initial=0))):
        alike = alike[limit[alike - 1] > length]
        alike = alike[data[where[alike - 1] + length] == data[where[alike] + length]]
        shared[alike] = length + 1
    return shared
