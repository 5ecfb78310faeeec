"""Strategies whose states are the numbers of an automaton over tokens: their matcher, and a table with its masks.

`NumberedStates` is what such a strategy writes: how a state reads a token, whether the text may end in it, and its
mask. `RowTable` is one that has all rows in a `TokenTable`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.matcher import StateMatcher
from tokdfa.backends.situation_source import SituationSource
from tokdfa.core.jit import kernel
from tokdfa.vocabulary.mask_store import NARROW, MaskStore, write_tokens_kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.mask import Mask
    from tokdfa.token_automata.token_index import TokenTable
    from tokdfa.vocabulary.vocabulary import Vocabulary

    Int32 = npt.NDArray[np.int32]


class NumberedStates(ABC):
    """The states of an automaton over the tokens of `vocab`, and the masks of some."""

    vocab: Vocabulary
    masks: MaskStore

    @abstractmethod
    def step(self, state: int, token: int) -> int:
        """The state after `token`, or -1."""

    @abstractmethod
    def targets(self, state: int) -> Int32:
        """The state after each token: int32, shape (V,), -1 where a token is not allowed."""

    @abstractmethod
    def accepts(self, state: int) -> bool:
        """Whether the text may end in `state`."""

    @abstractmethod
    def make_mask(self, state: int, out: Mask) -> dict[str, int]:
        """Overwrite `out` with the mask of `state`, and keep it if masks are kept; what that took, by counter."""

    def fill(self, state: int, out: Mask) -> dict[str, int]:
        """Overwrite `out` with the mask of `state`; what that took, by counter."""
        return {} if self.masks.fill(state, out) else self.make_mask(state, out)


class NumberedMatcher(StateMatcher[int]):
    """A matcher whose state is one of `states`."""

    def __init__(self, states: NumberedStates) -> None:
        super().__init__(states.vocab, 0)
        self._states = states
        self._serve_from(states.masks)

    def _step(self, state: int, token: int) -> int | None:
        target = self._states.step(state, token)
        return None if target < 0 else target

    def _accepts(self, state: int) -> bool:
        return self._states.accepts(state)

    def _fill(self, state: int, out: Mask) -> None:
        self._count(**self._states.fill(state, out))

    def situation_source(self) -> NumberedSituations:
        return NumberedSituations(self._states)

    def _fork_empty(self) -> NumberedMatcher:
        return NumberedMatcher(self._states)


@dataclass(frozen=True)
class NumberedSituations(SituationSource):
    """The states, each its own number."""

    states: NumberedStates

    def number(self, state: int) -> int:
        """The state itself."""
        return state

    def step(self, situation: int, token: int) -> int:
        """The situation after a token, -1 if it is not allowed."""
        return self.states.step(situation, token)

    def targets(self, situation: int) -> Int32:
        """The situation after each token: int32, shape (V,), -1 where a token is not allowed."""
        return self.states.targets(situation)

    def fill(self, situation: int, out: Mask) -> None:
        """Overwrite `out` with the tokens allowed in a situation."""
        self.states.fill(situation, out)

    def can_end(self, situation: int) -> bool:
        """Whether the text may end."""
        return self.states.accepts(situation)


class RowTable(NumberedStates):
    """The rows of an automaton over tokens in compressed form, with the masks asked for so far. State 0 is the start.

    `accepting`: bool, shape (states,); `cache_bytes`: limit on the masks kept; with `keep` off none is.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        table: TokenTable,
        accepting: npt.NDArray[np.bool_],
        cache_bytes: int,
        keep: bool = True,
    ) -> None:
        self.vocab, self.table, self.accepting, self._keep = vocab, table, accepting, keep
        self.masks = MaskStore(cache_bytes, masks.mask_words(vocab.size))
        self._order = vocab.trie.order
        # what `step` reads: views, as indexing a numpy array from Python is twice as slow
        self._rank_of, self._offsets = vocab.trie.rank_of.data, table.offsets.data
        self._ranks, self._targets = table.ranks.data, table.targets.data
        self._ends = np.array(vocab.end_tokens, dtype=np.int32)

    @property
    def nbytes(self) -> int:
        """Memory of the rows and of the masks kept so far."""
        return self.table.nbytes + self.accepting.nbytes + self.masks.nbytes

    def accepts(self, state: int) -> bool:
        return bool(self.accepting[state])

    def step(self, state: int, token: int) -> int:
        """The state after `token`, or -1: binary search in the state's row."""
        rank, end = self._rank_of[token], self._offsets[state + 1]
        place = bisect_left(self._ranks, rank, self._offsets[state], end)
        return int(self._targets[place]) if place < end and self._ranks[place] == rank else -1

    def row(self, state: int) -> dict[int, int]:
        """Token -> state, in the byte order of tokens."""
        begin, end = self.table.offsets[state : state + 2].tolist()
        tokens = self._order[self.table.ranks[begin:end]].tolist()
        return dict(zip(tokens, self.table.targets[begin:end].tolist(), strict=True))

    def targets(self, state: int) -> Int32:
        begin, end = self.table.offsets[state : state + 2].tolist()
        found = np.full(self.vocab.size, -1, dtype=np.int32)
        found[self._order[self.table.ranks[begin:end]]] = self.table.targets[begin:end]
        return found

    def make_mask(self, state: int, out: Mask) -> dict[str, int]:
        begin, end = self.table.offsets[state : state + 2].tolist()
        if self._keep and end - begin + len(self._ends) <= NARROW:
            tokens = self._order[self.table.ranks[begin:end]]
            if self.accepting[state]:
                tokens = np.concatenate([tokens, self._ends])
            self.masks.keep_tokens(state, tokens)
            write_tokens_kernel(tokens, out)
        else:
            _write_row_kernel(self.table.ranks, begin, end, self._order, out)
            if self.accepting[state]:
                set_ends(out, self.vocab)
            if self._keep:
                self.masks.keep(state, out)
        return {"masks_made": 1}


def set_ends(mask: Mask, vocab: Vocabulary) -> None:
    """Allow the end tokens, in place."""
    for end in vocab.end_tokens:
        masks.set_token(mask, end)


@kernel
def _write_row_kernel(ranks, begin, end, order, out):  # type: ignore[no-untyped-def]
    """Overwrite `out` with the tokens of ranks[begin:end]."""
    out[:] = 0
    for k in range(begin, end):
        token = order[ranks[k]]
        out[token >> 5] |= np.int32(np.uint32(1) << np.uint32(token & 31))
