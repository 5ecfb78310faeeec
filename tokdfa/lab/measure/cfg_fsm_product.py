"""The product of 003, done anew for each mask: the tokens that run from one terminal into the next, by vectors.

A *cut* of a token is a prefix and a suffix, both not empty. For a lexer state and an outcome there is a vector over all
cuts of the vocabulary: whether the lexeme may end so after the prefix. For the lexer state in which the next lexeme
begins there is another: whether that lexeme takes the whole suffix. Their product marks the cuts whose tokens are
allowed across this boundary ("RegexFSM() + RegexFSM()", the base case of two). Tokens inside of one lexeme come from
one more vector.

The vectors are made once for a situation, as 003 precomputes them for the states of a terminal; the product, the tokens
of the cuts that it marks and the packing are done for each mask. `tokdfa.backends.cfg_fsm.speculation` does such a
product once for each pair of lexer states and keeps what came out. Tokens that run through three terminals or more are
not found here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.cfg_fsm.splits import split_table
from tokdfa.backends.cfg_fsm.stacks import REFUSED

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.cfg_fsm.splits import RestVectors
    from tokdfa.backends.cfg_fsm.strategy import CompiledCfgFsm
    from tokdfa.mask import Mask

    Bools = npt.NDArray[np.bool_]


class _Ready(NamedTuple):
    """Of a situation. `inside`: bool, shape (V,); `pairs`: vectors over cuts, to be multiplied."""

    inside: Bools
    pairs: list[tuple[Bools, Bools]]


class Product:
    """Makes masks by products. `cut_count`: how many cuts the tokens have together."""

    def __init__(self, compiled: CompiledCfgFsm) -> None:
        self._machine, self._compiled, self._vocab = compiled.machine, compiled, compiled.vocab
        self._table = split_table(self._vocab)
        offsets, lengths = self._vocab.offsets, self._vocab.lengths
        is_cut = np.ones(len(self._table.rest_at), dtype=np.bool_)
        is_cut[offsets[:-1][lengths > 0]] = False
        self._cut_tokens = np.repeat(np.arange(self._vocab.size, dtype=np.int32), lengths)[is_cut]
        self._cut_rests = self._table.rest_at[is_cut]
        self.cut_count = len(self._cut_tokens)
        #: By place of a byte of the vocabulary, the cut before it.
        self._cut_at = np.cumsum(is_cut) - 1
        self._ready: dict[int, _Ready] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of the vectors."""
        return sum(
            one.inside.nbytes + sum(prefix.nbytes + suffix.nbytes for prefix, suffix in one.pairs)
            for one in self._ready.values()
        )

    def prepare(self, situation: int) -> None:
        """Make the vectors of a situation. Milliseconds."""
        inside = np.zeros(self._vocab.size, dtype=np.bool_)
        pairs: list[tuple[Bools, Bools]] = []
        for state, stack in self._machine.hypotheses.members[situation].tolist():
            vectors = self._table.vectors(self._machine.lexer, state)
            inside[self._table.tokens[vectors.after[self._table.wholes] >= 0]] = True
            prefixes = self._prefixes(vectors)
            for outcome, (label, residue) in enumerate(self._machine.lexer.outcomes.tolist()):
                after = self._machine.stacks.shift(stack, label)
                if after == REFUSED or not prefixes[outcome].any():
                    continue
                begin = int(self._machine.lexer.starts[residue, self._machine.stacks.context(after)])
                following = self._table.vectors(self._machine.lexer, begin)
                pairs.append((prefixes[outcome], following.after[self._cut_rests] >= 0))
        if self._compiled.can_end(situation):
            inside[list(self._vocab.end_tokens)] = True
        self._ready[situation] = _Ready(inside, pairs)

    def _prefixes(self, vectors: RestVectors) -> Bools:
        """By outcome and cut, whether the lexeme may end so after the prefix: bool, shape (O, cuts)."""
        table = self._table
        begins = vectors.begins[table.wholes]
        counts = vectors.begins[table.wholes + 1] - begins
        first = np.cumsum(counts) - counts
        exits = np.arange(counts.sum()) + np.repeat(begins - first, counts)
        ends = np.repeat(self._vocab.offsets[1:][table.tokens], counts)
        cuts = self._cut_at[ends - table.lengths[vectors.rests[exits]]]
        found = np.zeros((len(self._machine.lexer.outcomes), self.cut_count), dtype=np.bool_)
        found[vectors.outcomes[exits], cuts] = True
        return found

    def fill(self, situation: int, out: Mask) -> None:
        """Write the mask of a prepared situation, by one product for each pair of vectors."""
        inside, pairs = self._ready[situation]
        allowed = inside.copy()
        for prefix, suffix in pairs:
            allowed[self._cut_tokens[np.flatnonzero(prefix & suffix)]] = True
        out[:] = masks.mask_from_bool(allowed)
