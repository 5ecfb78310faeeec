"""Strategies whose states are numbers of *situations*: what is kept of each, and what every one of them does with it.

A situation is all that matters of a text so far: equal ones have one number, so rollback and fork cost nothing, and
texts share masks and steps. A strategy writes how a situation reads a token, whether the text may end in it, and its
mask; here are the memos, the end tokens, and what becomes of a mask where the vocabulary lacks bytes that texts need.

Threads: a compiled constraint holds a lock while it makes something new; masks and steps that are kept need none.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.base import CompiledConstraint
from tokdfa.backends.coaccessible import CoaccessibleSearch
from tokdfa.backends.longest_match import MOST_SEARCHED, NO_END_FOUND, settle
from tokdfa.backends.situation_source import SituationSource
from tokdfa.backends.state_matcher import StateMatcher, StepMemo
from tokdfa.core.budget import spend
from tokdfa.core.locks import new_lock
from tokdfa.errors import VocabularyCannotSpell
from tokdfa.vocabulary.mask_store import MaskStore
from tokdfa.vocabulary.trie import TokenBytes, build_trie

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.base import Phases
    from tokdfa.backends.longest_match import Blocked
    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.trie import TokenTrie
    from tokdfa.vocabulary.vocabulary import Vocabulary

    Int32 = npt.NDArray[np.int32]

#: What a walk from a situation takes, and a node of its trie.
NS_PER_WALK, NS_PER_NODE = 20_000, 10


class CompiledSituations(CompiledConstraint):
    """The masks and steps of the situations met so far.

    `settings`: options, of which ``mask_mb``, ``memo``, ``memo_steps`` and ``max_search`` are for this class.
    Subclasses end their `__init__` with `_begin`. `start`: the situation before the first token.
    """

    #: Whether every beginning of a text can be finished: the bytes that this takes are tokens, and no lexeme swallows
    #: what should follow it.
    complete: bool
    start_situation: int

    def __init__(
        self, constraint: Constraint, vocab: Vocabulary, name: str, settings: dict[str, Any], phases: Phases
    ) -> None:
        super().__init__(constraint, vocab, name)
        self.settings, self.phases = settings, phases
        self.lock = new_lock()
        self.limit = settings["mask_mb"] << 20
        self.masks = MaskStore(self.limit, masks.mask_words(vocab.size))
        self.steps: StepMemo[int] = StepMemo()
        self._live = CoaccessibleSearch(
            self._successors, self._can_end, settings["max_search"], self._rank, outlook=self._outlook
        )
        self.texts = KeptSituations(self)

    def _begin(self, start: int, complete: bool, blocked: Blocked | None = None) -> None:
        """Take note of where texts begin. `blocked`: why the longest match may keep texts from their end, if it may;
        then it is not `complete`.

        Raises VocabularyCannotSpell if no tokens lead from there to an end, and what `settle` raises.
        """
        self.start_situation, self.complete = start, complete
        if blocked is not None:
            self._live = CoaccessibleSearch(
                self._successors, self._can_end, max(MOST_SEARCHED, self.settings["max_search"]), self._rank,
                NO_END_FOUND, self._outlook,
            )  # fmt: skip
            search = CoaccessibleSearch(
                self._successors, self._can_end, MOST_SEARCHED, self._rank, outlook=self._outlook
            )
            settle(blocked, self.constraint, self.vocab, start, search, self._successors)
        if not complete and not self._live.is_live(start):
            raise VocabularyCannotSpell(
                f"no sequence of tokens spells any text of {self.constraint.name!r}: "
                "the vocabulary lacks bytes it needs"
            )

    @abstractmethod
    def _step(self, situation: int, token: int) -> int:
        """The situation after a token, -1 if the text does not allow it."""

    @abstractmethod
    def _can_end(self, situation: int) -> bool:
        """Whether the text may end in a situation."""

    @abstractmethod
    def _fill_raw(self, situation: int, out: Mask) -> None:
        """Write the tokens that the text allows, without end tokens and without regard to what tokens can spell."""

    @abstractmethod
    def _walk_targets(self, situation: int, trie: TokenTrie) -> Int32:
        """The situation after each token of a trie, by one walk: int32, shape (V,), -1 where a token is not allowed.

        Special tokens count as not allowed.
        """

    def _rank(self, situation: int) -> int:
        """See `tokdfa.backends.some_end`."""
        return 0

    def _outlook(self, situation: int) -> bool | None:
        """Whether letters lead to an end (`tokdfa.backends.coaccessible`), where that is seen at once; else None."""
        return None

    def _special_targets(self, situation: int) -> dict[int, int]:
        """The situation after each special token that the text allows."""
        return {}

    @abstractmethod
    def work(self) -> dict[str, int]:
        """Totals of the work done on masks, by name."""

    def _start(self, context: tuple[int, ...]) -> StateMatcher[Any]:
        """A matcher before the first token; `context` does not matter to these strategies."""
        return SituationMatcher(self)

    def step(self, situation: int, token: int) -> int:
        """The situation after a token, -1 if it is not allowed."""
        found = self.steps.get((situation, token))
        if found is None:
            with self.lock, self.working:
                found = self._step(situation, token)
                if found >= 0 and not self.complete and not self._live.is_live(found):
                    found = -1
                if found >= 0 and self.settings["memo_steps"]:
                    self.steps.keep(situation, token, found)
        return found

    def can_end(self, situation: int) -> bool:
        """Whether the text may end in a situation."""
        with self.lock, self.working:
            return self._can_end(situation)

    def fill(self, situation: int, out: Mask) -> None:
        """Write the mask of a situation, and keep it."""
        with self.lock, self.working:
            self._fill_raw(situation, out)
            if not self.complete:
                self._clear_dead(situation, out)
            if self._can_end(situation):
                for token in self.vocab.end_tokens:
                    masks.set_token(out, token)
            if self.settings["memo"]:
                self.masks.keep(situation, out)

    def live_targets(self, situation: int) -> Int32:
        """The situation after each token, by one walk over the token trie: int32, shape (V,), -1 where a token is not
        allowed. Special tokens count as not allowed. The lock is held.
        """
        found = self._walk_targets(situation, self.vocab.trie)
        if not self.complete:
            spend(NS_PER_NODE * self.vocab.trie.node_count)
            reached = np.unique(found)
            dead = [target for target in reached[reached >= 0].tolist() if not self._live.is_live(target)]
            if dead:
                found[np.isin(found, dead)] = -1
        return found

    def _clear_dead(self, situation: int, out: Mask) -> None:
        """Take tokens out of a mask after which tokens cannot end the text."""
        dead = np.flatnonzero(masks.mask_to_bool(out, self.vocab.size) & (self.live_targets(situation) < 0))
        after_special = self._special_targets(situation)
        for token in dead.tolist():
            if token not in after_special or not self._live.is_live(after_special[token]):
                masks.clear_token(out, token)

    def _successors(self, situation: int) -> list[int]:
        """The situations that letters and special tokens lead to, dead ends among them."""
        letters = self.vocab.letters.trie
        spend(NS_PER_WALK + NS_PER_NODE * letters.node_count)
        reached = np.unique(self._walk_targets(situation, letters))
        return [*reached[reached >= 0].tolist(), *self._special_targets(situation).values()]


class SituationMatcher(StateMatcher[int]):
    """A matcher whose state is the number of a situation."""

    def __init__(self, compiled: CompiledSituations) -> None:
        super().__init__(compiled.vocab, compiled.start_situation)
        self._compiled = compiled
        self._serve_from(compiled.masks, compiled.steps)

    def _step(self, state: int, token: int) -> int | None:
        target = self._compiled.step(state, token)
        return None if target < 0 else target

    def _accepts(self, state: int) -> bool:
        return self._compiled.can_end(state)

    def _fill(self, state: int, out: Mask) -> None:
        before, counters = self._compiled.work(), self.counters
        self._compiled.fill(state, out)
        counters["masks_made"] = counters.get("masks_made", 0) + 1
        for name, total in self._compiled.work().items():
            counters[name] = counters.get(name, 0) + total - before[name]

    def _fork_empty(self) -> SituationMatcher:
        return type(self)(self._compiled)

    def situation_source(self) -> KeptSituations:
        return self._compiled.texts


@cache
def _byte_trie() -> TokenTrie:
    """The trie of all bytes, each the token of its number."""
    return build_trie(TokenBytes(bytes(range(256)), np.arange(257, dtype=np.int64)))


class KeptSituations(SituationSource):
    """The situations of a compiled constraint, each its own number, as `tokdfa.backends.situation_source` asks for
    them.
    """

    def __init__(self, compiled: CompiledSituations) -> None:
        self._compiled = compiled

    def number(self, state: int) -> int:
        """The state itself."""
        return state

    def step(self, situation: int, token: int) -> int:
        """The situation after a token, -1 if it is not allowed."""
        return self._compiled.step(situation, token)

    def can_end(self, situation: int) -> bool:
        """Whether the text may end."""
        return self._compiled.can_end(situation)

    def fill(self, situation: int, out: Mask) -> None:
        """Overwrite `out` with the tokens allowed in a situation."""
        if not self._compiled.masks.fill(situation, out):
            self._compiled.fill(situation, out)

    def following(self, situation: int) -> Int32 | None:
        """See `SituationSource.following`."""
        compiled = self._compiled
        with compiled.lock:
            return compiled._walk_targets(situation, _byte_trie()) if compiled.complete else None

    def rank(self, situation: int) -> int:
        """See `SituationSource.rank`."""
        with self._compiled.lock:
            return self._compiled._rank(situation)

    def targets(self, situation: int) -> Int32:
        """The situation after each token, by one walk over the token trie: 1 to 5 ms.

        int32, shape (V,), -1 where a token is not allowed. Special tokens count as not allowed.
        """
        with self._compiled.lock:
            return self._compiled.live_targets(situation)
