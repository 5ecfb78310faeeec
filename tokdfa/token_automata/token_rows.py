"""`TokenRows`: a deterministic automaton over tokens as one dictionary a state, while it is being built.

State s goes by token t to ``rows[s][t]``. The dictionaries are handed over, not copied: a pipeline of constructions
(`tokdfa.backends.proper_merge.merging`) passes one automaton on. Besides the tokens 0..V-1 a row may hold other ids,
such as the marker of `tokdfa.backends.proper_merge.letter_automaton`.

`trimmed` keeps the states on some way from the start to acceptance and numbers them breadth-first, tokens ascending.
`minimal` merges states with equal languages (`tokdfa.automata.moves`, with tokens for labels).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.automata.minimize import NS_PER_MOVE
from tokdfa.automata.moves import blocks_of
from tokdfa.core.budget import hold, spend
from tokdfa.token_automata.token_index import TokenTable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokdfa.vocabulary.vocabulary import Vocabulary


#: What an entry and a state take where all are looked at once, and what an entry holds.
NS_PER_ENTRY, NS_PER_STATE, BYTES_PER_ENTRY = 300, 2_000, 100


@dataclass(frozen=True, eq=False, repr=False)
class TokenRows:
    """`rows`: for each state, token -> state; `accepting`: for each state; `start`: a state, -1 if there are none.

    Nobody may change the parts once they are here.
    """

    rows: list[dict[int, int]]
    accepting: list[bool]
    start: int

    @property
    def state_count(self) -> int:
        """The number of states, without the dead one."""
        return len(self.rows)

    @property
    def transition_count(self) -> int:
        """The number of entries of all rows."""
        return sum(map(len, self.rows))

    def accepts(self, tokens: Iterable[int]) -> bool:
        """Whether the sequence is in the language."""
        state = self.start
        for token in tokens:
            state = self.rows[state].get(token, -1) if state >= 0 else -1
        return state >= 0 and self.accepting[state]

    def trimmed(self) -> TokenRows:
        """The states that lie on a way from the start to acceptance, breadth-first from 0; none for an empty language.

        O(transitions), and sorting each row.
        """
        spend(NS_PER_ENTRY * self.transition_count + NS_PER_STATE * len(self.rows))
        hold(BYTES_PER_ENTRY * self.transition_count)
        sources: list[list[int]] = [[] for _ in self.rows]
        for state, row in enumerate(self.rows):
            for target in row.values():
                sources[target].append(state)
        live = set(self._spread((state for state, ends in enumerate(self.accepting) if ends), sources))
        if self.start not in live:
            return TokenRows([], [], -1)
        number = {self.start: 0}
        found = [self.start]
        rows = []
        for state in found:  # the loop sees what it appends
            row = self.rows[state]
            kept = {}
            for token in sorted(row):
                target = row[token]
                if target in live:
                    if target not in number:
                        number[target] = len(found)
                        found.append(target)
                    kept[token] = number[target]
            rows.append(kept)
        return TokenRows(rows, [self.accepting[state] for state in found], 0)

    @staticmethod
    def _spread(first: Iterable[int], following: list[list[int]]) -> list[int]:
        """The states that can be reached from `first` along `following`."""
        found = list(dict.fromkeys(first))
        seen = set(found)
        for state in found:
            for target in following[state]:
                if target not in seen:
                    seen.add(target)
                    found.append(target)
        return found

    def minimal(self) -> TokenRows:
        """The minimal automaton of a trimmed one, numbered as `trimmed` does. O(m log m) for m transitions."""
        if not self.transition_count:
            return self
        spend(NS_PER_MOVE * self.transition_count)
        sources = np.repeat(np.arange(len(self.rows), dtype=np.int32), [len(row) for row in self.rows])
        tokens, targets = (
            np.fromiter(itertools.chain.from_iterable(parts), dtype=np.int32, count=len(sources))
            for parts in (self.rows, (row.values() for row in self.rows))
        )
        labels = np.unique(tokens, return_inverse=True)[1].astype(np.int32)
        blocks = blocks_of(sources, labels, targets, np.array(self.accepting))
        merged, firsts = blocks.tolist(), np.unique(blocks, return_index=True)[1].tolist()
        rows = [{token: merged[target] for token, target in self.rows[state].items()} for state in firsts]
        return TokenRows(rows, [self.accepting[state] for state in firsts], merged[self.start]).trimmed()

    def table(self, vocab: Vocabulary) -> TokenTable:
        """As compressed rows; every id is a token of `vocab` that spells something."""
        rank_of = vocab.trie.rank_of
        offsets = np.append(0, np.cumsum([len(row) for row in self.rows], dtype=np.int64))
        ranks = np.empty(offsets[-1], dtype=np.int32)
        targets = np.empty(offsets[-1], dtype=np.int32)
        for state, row in enumerate(self.rows):
            found = rank_of[np.fromiter(row, dtype=np.int32, count=len(row))]
            order = np.argsort(found)
            begin, end = offsets[state], offsets[state + 1]
            ranks[begin:end] = found[order]
            targets[begin:end] = np.fromiter(row.values(), dtype=np.int32, count=len(row))[order]
        return TokenTable(offsets, ranks, targets, np.arange(len(self.rows), dtype=np.int32)).compact()

    def __repr__(self) -> str:
        return f"TokenRows({self.state_count} states, {self.transition_count} transitions, start={self.start})"
