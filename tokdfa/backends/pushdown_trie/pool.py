"""The pool: what all constraints of a vocabulary share.

That is the table of automata (`tokdfa.backends.pushdown_trie.automaton_table`), the partitions of the vocabulary by
their states (`tokdfa.backends.pushdown_trie.partition`), what serves to make these, and memory that walks and machines
use in turn. Here it is put together; `pool_of` finds the pool of a vocabulary.

Threads: `lock` is held by whoever makes something new, in the pool or in a machine that reads from it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from tokdfa.backends.pushdown_trie.arrays import ALONE, OWN, POOL_FIELDS, STATE_PART, PoolArrays
from tokdfa.backends.pushdown_trie.automaton_table import AutomatonTable
from tokdfa.backends.pushdown_trie.lengths import TokenLengths
from tokdfa.backends.pushdown_trie.machine_tables import SpareTables
from tokdfa.backends.pushdown_trie.partition import Partitions, TrieParts
from tokdfa.backends.pushdown_trie.partition_lookup import SMALL_REST, W_BELOW, W_WANTED, WalkScratch
from tokdfa.backends.pushdown_trie.slices import Slices
from tokdfa.backends.pushdown_trie.spelled_states import SpelledStates
from tokdfa.core.locks import new_lock
from tokdfa.errors import LimitExceeded

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tokdfa.vocabulary.vocabulary import Vocabulary

#: Past so many megabytes of automata and partitions a vocabulary gets a new pool for constraints to come, unless the
#: option ``shared_mb`` says otherwise.
POOL_MEGABYTES = 256


class Pool:
    """See the module's docstring."""

    def __init__(self, vocab: Vocabulary) -> None:
        self.lock = new_lock()
        trie = TrieParts(vocab.trie.nodes, vocab.trie.size, vocab.trie.depth_limit)
        #: The bytes of all tokens, one after another, and where each begins: `Vocabulary.byte_data`, `offsets`.
        self.byte_data, self.offsets = vocab.byte_data, vocab.offsets
        self.automata = AutomatonTable(vocab)
        self.partitions = Partitions(trie)
        self.lengths = TokenLengths(trie, self.automata)
        self.walk = WalkScratch(trie, vocab.end_tokens)
        self.slices = Slices(self.automata, self.partitions, self.walk.counts[W_BELOW])
        self.spare_tables = SpareTables()
        self._spelled: dict[bytes, SpelledStates] = {}
        #: Memory of masks of constraints that are gone (`tokdfa.vocabulary.mask_store`).
        self.spare_masks: list[npt.NDArray[np.int32]] = []
        #: The kinds of constraints for which tables were made in advance (`PushdownTrie.prepare`).
        self.prepared: set[str] = set()
        self._structs = self.automata.structs  # the one in `arrays`, while it is what it was made of
        self._partition_bytes = 0  # when that was made

    @property
    def arrays(self) -> Any:
        """What kernels take: `PoolArrays` of the arrays as they are now."""
        try:
            return self._structs[0]
        except IndexError:
            # not by `vars`: attributes are read faster as long as nobody has asked for the dictionary
            owners = self, self.automata, self.partitions, self.partitions.branches, self.walk
            fields = (next(getattr(owner, name) for owner in owners if hasattr(owner, name)) for name in POOL_FIELDS)
            self._structs.append(PoolArrays(*fields))
            self._partition_bytes = self.partitions.nbytes
            return self._structs[0]

    def spelled_states(self, available: npt.NDArray[np.bool_]) -> SpelledStates:
        """Which states of the automata come to an end by some bytes: bool, shape (256,)."""
        key = available.tobytes()
        if key not in self._spelled:
            self._spelled[key] = SpelledStates(self.automata, available)
        return self._spelled[key]

    @property
    def nbytes(self) -> int:
        """Memory of the tables in bytes."""
        partitions = self._partition_bytes if self._structs else self.partitions.nbytes
        return self.automata.nbytes + partitions + self.lengths.nbytes

    def divide(self, below: int, state: int, use_slices: bool = True, asks: bool = False) -> None:
        """Make the partition below a node of the trie by a state, and the rows of lazy automata that it needs.

        `state` with the bits STRICT, ALONE and OWN: that of this kind. `use_slices`: begin with a slice. `asks`: only
        if there is one that serves.
        """
        automata, parts = self.automata, self.partitions
        kind, state = state & ~STATE_PART, automata.class_of(state & STATE_PART)
        if parts.has(below, state | kind):
            return
        self._structs.clear()
        within = self.slices.within(below, state | kind) if use_slices else -1
        if within < 0 and asks:
            return
        if within >= 0 and not kind & (ALONE | OWN) and (below or parts.rest_size(within) <= SMALL_REST):
            parts.share(below, state | kind, within)  # a walk of the state's own rest would not be much shorter
            return
        parts.divide(below, state | kind, automata, within)

    def divide_wanted(self, use_slices: bool) -> None:
        """Make the partitions that the last mask, which is written, wants for those to come; what takes too much is not
        made.
        """
        counts, drops = self.walk.counts, self.partitions.drops
        wanted = self.walk.walk_wanted[: counts[W_WANTED]].tolist()
        counts[W_WANTED] = 0
        for below, state in wanted:
            if self.partitions.drops != drops:  # nodes of rests are gone
                break
            with suppress(LimitExceeded):
                self.divide(below, state, use_slices)


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
