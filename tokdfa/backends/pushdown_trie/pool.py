"""The pool: what all constraints of a vocabulary share.

That is the table of automata (`tokdfa.backends.pushdown_trie.automaton_table`), the mask builder with the
divisions of the vocabulary by their states (`tokdfa.backends.pushdown_trie.walks`), and memory that machines use in
turn. Here it is put together; `pool_of` finds the pool of a vocabulary.

Threads: `lock` is held by whoever makes something new, in the pool or in a machine that reads from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from tokdfa.backends.pushdown_trie.automaton_table import AutomatonTable
from tokdfa.backends.pushdown_trie.lengths import TokenLengths
from tokdfa.backends.pushdown_trie.rows import SpareTables
from tokdfa.backends.pushdown_trie.spelled_states import SpelledStates
from tokdfa.backends.pushdown_trie.walks import PushdownMasks
from tokdfa.core.locks import new_lock

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tokdfa.vocabulary.vocabulary import Vocabulary

#: Past so many megabytes of automata and divisions a vocabulary gets a new pool for constraints to come, unless the
#: option ``shared_mb`` says otherwise.
POOL_MEGABYTES = 256


class Pool:
    """See the module's docstring."""

    def __init__(self, vocab: Vocabulary) -> None:
        self.lock = new_lock()
        trie = vocab.trie.flat  # without the vocabulary, which would keep itself alive through its pool
        self.automata = AutomatonTable(vocab)
        self.lengths = TokenLengths(trie, self.automata)
        self.masks = PushdownMasks(trie, self.automata, vocab.end_tokens)
        self.spare_tables = SpareTables()
        self._spelled: dict[bytes, SpelledStates] = {}
        #: Memory of masks of constraints that are gone (`tokdfa.vocabulary.mask_store`).
        self.spare_masks: list[npt.NDArray[np.int32]] = []
        #: The kinds of constraints for which tables were made in advance (`PushdownTrie.prepare`).
        self.prepared: set[str] = set()

    def spelled_states(self, available: npt.NDArray[np.bool_]) -> SpelledStates:
        """Which states of the automata come to an end by some bytes: bool, shape (256,)."""
        key = available.tobytes()
        if key not in self._spelled:
            self._spelled[key] = SpelledStates(self.automata, available)
        return self._spelled[key]

    @property
    def nbytes(self) -> int:
        """Memory of the tables in bytes."""
        return self.automata.nbytes + self.masks.nbytes + self.lengths.nbytes


_pools: WeakKeyDictionary[Vocabulary, Pool] = WeakKeyDictionary()
_pools_lock = new_lock()


def pool_of(vocab: Vocabulary, megabytes: float = POOL_MEGABYTES) -> Pool:
    """The pool that new constraints of a vocabulary share. One that takes more than `megabytes` is left to the
    constraints that have it, and goes with the last of them.
    """
    pool = _pools.get(vocab)
    if pool is None or pool.nbytes > megabytes * (1 << 20):
        with _pools_lock:
            if _pools.get(vocab) is pool:
                _pools[vocab] = Pool(vocab)
            pool = _pools[vocab]
    return pool
