"""Regions of free text as automata, and how few tokens close them (`tokdfa.backends.region_budget`).

The texts of a region, ``begin, any text, end`` up to the first end mark, are a regular language. A state of its
automaton says all that matters of a text whose region is *open*: what may follow, in the region and behind it, depends
on nothing else. A token that completes the end mark leads to `closed`, whatever it has before the mark and behind.

Whether such a token is allowed is the constraint's business: it knows what the answer may begin with. So for each state
one text that leads there is read by a matcher of the whole, and its mask says which tokens go on. Every token of it is
an edge, to an open state or to `closed`. The distance of a state, the fewest tokens that close the region, is found
backwards from `closed`. That is exact for every engine, and for vocabularies with any tokens: those that hold begin
mark, text, end mark and answer at once, those that end inside a character, and those that lack bytes.

Cost: for each state (one for each byte of the marks, and a few for parts of characters) a mask of the whole and a walk
over the token trie, once. Source: breadth-first search (Moore 1959).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.some_end import FAR
from tokdfa.constraint import Regex
from tokdfa.core.budget import COMPILE, Budget, spend, spending
from tokdfa.grammar.parts import Part, Written, is_text, literal, pattern_of
from tokdfa.grammar.special import parse_special, resolve
from tokdfa.regex.compile import compile_dfa
from tokdfa.vocabulary.byte_table import DEAD, ByteTable, walk_collect

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary

    Int32 = npt.NDArray[np.int32]

#: Of how many states the targets of all tokens are kept, 4 bytes a token each.
RECENT = 8
#: What a state takes, besides the mask and the walk.
NS_PER_STATE = 100_000


class RegionStates:
    """The states of the texts of a region. Once measured, immutable and shareable between threads.

    States are numbers; `start`: before the begin mark; `closed`: the end mark is complete. `distances`: int32, the
    fewest tokens that close the region from each state, FAR where none do or `measure` was not called.

    `begin`, `end`: marks, each a text or a special token; `begin` may be an empty text. Raises VocabularyError for a
    special token that the vocabulary does not have.
    """

    def __init__(self, vocab: Vocabulary, begin: Part, end: Part) -> None:
        self.vocab, self._marks = vocab, (begin, end)
        first = pattern_of(literal(begin)) if is_text(begin) else ""
        last = pattern_of(literal(end)) if is_text(end) else ""
        dfa = compile_dfa(Regex(f"{first}((?!{last}).)*{last}" if last else f"{first}.*", flags="s"))
        self.start, self.closed, count = dfa.start, dfa.state_count, dfa.state_count + 1
        table = np.full((count + 1, 256), DEAD, dtype=np.int32)
        table[: dfa.state_count] = dfa.byte_table()
        #: State -> the states after special tokens.
        self._special: dict[int, dict[int, int]] = {}
        if is_text(end):
            ends = np.append(dfa.accepting, [False, False])  # nothing follows in the region
            table = np.where((table >= 0) & ends[table], self.closed, table)
        else:
            tokens = dict.fromkeys(_special_tokens(end, vocab), self.closed)
            self._special = dict.fromkeys(np.flatnonzero(dfa.accepting).tolist(), tokens)
        if not is_text(begin):
            self._special[count] = dict.fromkeys(_special_tokens(begin, vocab), self.start)
            self.start = count
        table[self.closed] = self.closed
        self._table = ByteTable.of_states(table, np.arange(256, dtype=np.uint8))
        self.distances: Int32 = np.full(count + 1, FAR, dtype=np.int32)
        #: The state after each token: int32, shape (V,), -1 where the region does not go on so.
        self.targets: Callable[[int], Int32] = lru_cache(RECENT)(self._find_targets)

    def after(self, state: int, token: int) -> int:
        """The state after a token that the constraint allows, -1 if the region does not go on so."""
        if not self.vocab.token_bytes(token):
            return self._special.get(state, {}).get(token, self.closed if state == self.closed else -1)
        return self._table.row_after(256 * state, self.vocab.trie.flat, token) // 256

    def is_near(self, state: int, tokens: int) -> bool:
        """Whether so many tokens are enough to close the region; not from -1."""
        return state >= 0 and bool(self.distances[state] <= tokens)

    def restrict(self, state: int, tokens: int, mask: Mask) -> None:
        """Take out of `mask` the tokens after which the region stays open and so many more are not enough."""
        if tokens >= self._farthest:
            return
        targets = self.targets(state)
        far = np.flatnonzero((targets >= 0) & (self.distances[targets] > tokens))
        mask &= ~masks.mask_from_ids(far, self.vocab.size)

    def measure(self, whole: CompiledConstraint) -> None:
        """Find `distances`, by the masks of a constraint that begins with the region. Within the budget of a compile.

        Raises LimitExceeded, and what the constraint's matchers raise.
        """
        settings = whole.made_by[1] if whole.made_by else {}
        seconds, mb = settings.get("compile_seconds", COMPILE.seconds), settings.get("compile_mb", COMPILE.megabytes)
        with spending(Budget(seconds, mb), "counting the tokens that close a region"):
            leads = self._explore(whole)
        near, distance = {self.closed}, 0
        while near:
            self.distances[list(near)] = distance
            near = {here for here, found in leads.items() if self.distances[here] == FAR and not near.isdisjoint(found)}
            distance += 1

    def _explore(self, whole: CompiledConstraint) -> dict[int, set[int]]:
        """State -> the states that tokens lead to, of those that texts of the constraint pass."""
        met, leads = {self.start: whole.start()}, dict[int, set[int]]()
        mask = masks.allocate_mask(self.vocab.size)
        agenda = [self.start]
        while agenda:
            here = agenda.pop()
            matcher = met[here]
            spend(NS_PER_STATE)
            matcher.fill_mask(mask)
            tokens = masks.mask_to_ids(mask)
            reached, first = np.unique(self.targets(here)[tokens], return_index=True)
            leads[here] = set(reached[reached >= 0].tolist())
            for target, token in zip(reached.tolist(), tokens[first].tolist(), strict=True):
                if target >= 0 and target != self.closed and target not in met:
                    met[target] = matcher.fork()
                    met[target].advance(token)
                    agenda.append(target)
        return leads

    @property
    def _farthest(self) -> int:
        """The greatest distance of a state that texts pass."""
        return int(self.distances[self.distances < FAR].max(initial=0))

    def _find_targets(self, state: int) -> Int32:
        """See `targets`. One walk over the token trie: at most 3 ns a node."""
        trie = self.vocab.trie
        tokens, rows = np.empty(trie.size + 1, dtype=np.int32), np.empty(trie.size + 1, dtype=np.int32)
        count, _ = walk_collect(trie, self._table, 256 * state, tokens, rows)
        found = np.full(trie.size, -1, dtype=np.int32)
        found[tokens[:count]] = rows[:count] // 256
        for token, target in self._special.get(state, {}).items():
            found[token] = target
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.vocab, *self._marks, self.distances)


def _special_tokens(mark: Part, vocab: Vocabulary) -> list[int]:
    """The ids of a mark that is a special token."""
    assert isinstance(mark, Written)
    return resolve(parse_special(mark.written), vocab).tolist()


def _restore(vocab: Vocabulary, begin: Part, end: Part, distances: Int32) -> RegionStates:
    made = RegionStates(vocab, begin, end)
    made.distances = distances
    return made
