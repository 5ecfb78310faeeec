"""Masks out of partitions: what stays inside, and a walk over what is left.

Partitions are made when first asked for and kept up to a limit of bytes; past it all are dropped and made anew. Lexer
states of one name (`tokdfa.backends.earley_trie.partition.StateNames`) share one, within the grammar and with others.

Fallbacks. In a situation (row, state, fallback) the main link (row, state) has not matched yet, or there would be no
fallback (`tokdfa.backends.earley_trie.machine`). What the state's partition says of a token decides:

- inside: allowed, whatever the fallback is;
- behind an exit: the main link has matched on the way, and that has dropped the fallback, so the row decides alone;
- refused: the main link dies before it matches, so the token is allowed iff it is in the fallback's own situation.

So the mask of the fallback is made first, of the tokens behind exits the bits are cleared, and the main link's own are
set. A chain of fallbacks is dealt with from its inmost link on, and nothing steps a fallback along the trie but those
that begin inside a token.

Dividing what an exit leaves open once more (half of the tokens begin with a blank, which is often ignored) was tried:
it brought more partitions and no time, as most of them are used once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.backends.earley_trie.partition import Partition, StateNames, divide

if TYPE_CHECKING:
    from tokdfa.backends.earley_trie.machine import Machine
    from tokdfa.backends.earley_trie.shared_partitions import SharedPartitions
    from tokdfa.backends.earley_trie.walk import Walker
    from tokdfa.vocabulary.trie import TokenTrie


class PartitionMasks:
    """Fills a walker's words by partitions.

    `shared`: where partitions of states of the same name are looked up first, or None; `clip`: whether names see only
    as many bytes as a token has.
    """

    def __init__(
        self, machine: Machine, trie: TokenTrie, limit: int, shared: SharedPartitions | None, clip: bool = True
    ) -> None:
        self.machine, self.trie, self.limit, self.shared = machine, trie, limit, shared
        #: Bytes kept; partitions made by a walk.
        self.nbytes = self.divided = 0
        self._kept: dict[int, Partition] = {}
        self._named: dict[tuple[str, tuple[int, ...]], Partition] = {}
        self._names = StateNames(machine, trie.depth_limit if clip else None)

    def __len__(self) -> int:
        """Lexer states whose partition is kept."""
        return len(self._kept)

    def fill(self, situation: int, walker: Walker) -> None:
        """Write the tokens allowed in a situation into ``walker.words``, in which no bit is set."""
        links = [self.machine.view(situation)]
        while links[-1][2] >= 0:
            links.append(self.machine.view(links[-1][2]))
        for row, state, fallback in reversed(links):
            partition = self.find(state)
            if fallback >= 0:
                walker.clear_exits(partition)
            inside = partition.inside.view(np.uint32)
            words = walker.words[: len(inside)]
            np.bitwise_or(words, inside, out=words)
            if len(partition.groups):
                walker.walk_exits(row, partition)

    def find(self, state: int) -> Partition:
        """The partition of a lexer state."""
        found = self._kept.get(state)
        if found is None:
            name, lexemes = self._names.describe(state)
            found = self._named.get((name, lexemes)) if name else None
            if found is None:
                found = self._find_or_divide(state, name, lexemes)
                if self.nbytes > self.limit:
                    self._kept.clear()
                    self._named.clear()
                    self.nbytes = 0
                self.nbytes += found.nbytes
                if name:
                    self._named[name, lexemes] = found
            self._kept[state] = found
        return found

    def _find_or_divide(self, state: int, name: str, lexemes: tuple[int, ...]) -> Partition:
        shared = self.shared if name else None
        found = shared.find(name, lexemes, self.machine.lexer) if shared is not None else None
        if found is None:
            self.divided += 1
            found = divide(self.machine, self.trie, state)
            if shared is not None:
                shared.keep(name, lexemes, self.machine.lexer, found)
        return found
