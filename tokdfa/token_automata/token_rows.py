"""`TokenRows`: a deterministic automaton over tokens as one dictionary a state, while it is being built.

State s goes by token t to ``rows[s][t]``. The dictionaries are handed over, not copied: a pipeline of constructions
(`tokdfa.backends.proper_merge.merging`) passes one automaton on. Besides the tokens 0..V-1 a row may hold other ids,
such as the marker of `tokdfa.backends.proper_merge.letter_automaton`.

`trimmed` keeps the states on some way from the start to acceptance and numbers them breadth-first, tokens ascending.
`minimal` merges states with equal languages: Moore's refinement of a partition, in which only the predecessors of
states that have changed their class are looked at again. Classes are compared by the bytes of whole rows, so the
result is exact, and a round costs what it touches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.core.budget import hold, spend
from tokdfa.token_automata.token_index import TokenTable

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

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
        """The minimal automaton of a trimmed one, numbered as `trimmed` does. O(transitions x log) in practice."""
        if not self.rows:
            return self
        class_of = self._classes()
        first: dict[int, int] = {}  # class -> one of its states
        for state, group in enumerate(class_of.tolist()):
            first.setdefault(group, state)
        number = {group: place for place, group in enumerate(first)}
        merged = [number[group] for group in class_of.tolist()]
        rows = [{token: merged[target] for token, target in self.rows[state].items()} for state in first.values()]
        return TokenRows(rows, [self.accepting[state] for state in first.values()], merged[self.start]).trimmed()

    def _classes(self) -> npt.NDArray[np.int32]:
        """int32, shape (states,): equal for states with equal languages. Rows must be sorted and all states live."""
        tokens = [np.fromiter(row, dtype=np.int32, count=len(row)).tobytes() for row in self.rows]
        targets = [np.fromiter(row.values(), dtype=np.int32, count=len(row)) for row in self.rows]
        ends = np.cumsum([len(row) for row in targets])
        sources = np.repeat(np.arange(len(self.rows)), np.diff(ends, prepend=0))
        all_targets = np.concatenate(targets)
        sources = sources[np.argsort(all_targets, kind="stable")]
        bounds = np.append(0, np.cumsum(np.bincount(all_targets, minlength=len(self.rows))))
        names: dict[tuple[bool, bytes], int] = {}
        class_of = np.empty(len(self.rows), dtype=np.int32)
        members: list[set[int]] = []
        for state, key in enumerate(zip(self.accepting, tokens, strict=True)):
            group = names.setdefault(key, len(members))
            if group == len(members):
                members.append(set())
            class_of[state] = group
            members[group].add(state)
        suspects = [state for state in range(len(self.rows)) if len(members[class_of[state]]) > 1]
        while suspects:
            spend(NS_PER_STATE * len(suspects))
            parts: dict[int, dict[bytes, list[int]]] = {}
            for state in suspects:
                parts.setdefault(int(class_of[state]), {}).setdefault(class_of[targets[state]].tobytes(), []).append(
                    state
                )
            moved: list[int] = []
            for group, split in parts.items():
                looked_at = sum(map(len, split.values()))
                halves = sorted(split.values(), key=len)
                # One part keeps the class: the states not looked at, whose rows have not changed, or else the largest.
                for half in halves[: len(halves) - (looked_at == len(members[group]))]:
                    members[group].difference_update(half)
                    moved += half
                    members.append(set(half))
                    class_of[half] = len(members) - 1
            touched = [sources[bounds[state] : bounds[state + 1]] for state in moved]
            again = np.unique(np.concatenate(touched)).tolist() if touched else []
            suspects = [state for state in again if len(members[class_of[state]]) > 1]
        return class_of

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
