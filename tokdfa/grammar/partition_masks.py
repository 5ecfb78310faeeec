"""Masks out of partitions: what stays inside, and a walk over what is left.

Partitions are made when first asked for and kept up to a limit of bytes; past it all are dropped and made anew.
Dividing what an exit leaves open once more (half of the tokens begin with a blank, which is often ignored) was tried:
it brought more partitions and no time, as most of them are used once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.grammar.partition import Partition, divide

if TYPE_CHECKING:
    from tokdfa.grammar.machine import Machine
    from tokdfa.grammar.shared_partitions import SharedPartitions
    from tokdfa.grammar.walk import Walker
    from tokdfa.vocabulary.trie import TokenTrie


class PartitionMasks:
    """Fills a walker's words by partitions. `shared`: where other grammars' partitions are looked up first, or None."""

    def __init__(self, machine: Machine, trie: TokenTrie, limit: int, shared: SharedPartitions | None) -> None:
        self.machine, self.trie, self.limit, self.shared = machine, trie, limit, shared
        #: Bytes kept; partitions made by a walk.
        self.nbytes = self.divided = 0
        self._kept: dict[int, Partition] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def fill(self, situation: int, walker: Walker) -> None:
        """Write the tokens allowed in a situation without a fallback into ``walker.words``."""
        row, state, _ = self.machine.view(situation)
        partition = self.find(state)
        inside = partition.inside.view(np.uint32)
        walker.words[: len(inside)] = inside
        if len(partition.groups):
            walker.walk_exits(row, partition)

    def find(self, state: int) -> Partition:
        """The partition of a lexer state."""
        found = self._kept.get(state)
        if found is None:
            if self.nbytes > self.limit:
                self._kept.clear()
                self.nbytes = 0
            found = self.shared.find(self.machine, state) if self.shared is not None else None
            if found is None:
                self.divided += 1
                found = divide(self.machine, self.trie, state)
                if self.shared is not None:
                    self.shared.keep(self.machine, state, found)
            self._kept[state] = found
            self.nbytes += found.nbytes
        return found
