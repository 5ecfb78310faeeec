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
from tokdfa.backends.coaccessible import LACKS_BYTES, CoaccessibleSearch
from tokdfa.backends.longest_match import MOST_SEARCHED, NO_END_FOUND, settle
from tokdfa.backends.situation_source import SituationSource
from tokdfa.backends.state_matcher import StateMatcher, StepMemo
from tokdfa.core.budget import spend
from tokdfa.errors import VocabularyCannotSpell
from tokdfa.vocabulary.mask_store import MaskStore
from tokdfa.vocabulary.trie import TokenBytes, build_trie

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.base import Phases
    from tokdfa.backends.longest_match import Blocked
    from tokdfa.constraint import Constraint
    from tokdfa.core.budget import spending
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.trie import TokenTrie
    from tokdfa.vocabulary.vocabulary import Vocabulary

    Int32 = npt.NDArray[np.int32]

#: What a walk from a situation takes, and a node of its trie.
NS_PER_WALK, NS_PER_NODE = 20_000, 10


@cache
def _byte_trie() -> TokenTrie:
    """The trie of all bytes, each the token of its number."""
    return build_trie(TokenBytes(bytes(range(256)), np.arange(257, dtype=np.int64)))


class Situations(SituationSource):
    """The situations of one numbering, with the masks and steps made so far. Subclasses write how a situation reads.

    `store`: where masks are kept, whose lock is held while something new is made; `working`: the budget of a step;
    `memo`, `memo_steps`: whether masks and steps are kept. Subclasses set `complete`, and `live` if it is false.
    """

    #: Whether every beginning of a text can be finished: the bytes that this takes are tokens, and no lexeme swallows
    #: what should follow it.
    complete: bool
    live: CoaccessibleSearch[int]

    def _keep_in(
        self, vocab: Vocabulary, store: MaskStore, working: spending, memo: bool = True, memo_steps: bool = True
    ) -> None:
        """Begin with nothing made."""
        self.vocab, self.masks, self.working = vocab, store, working
        self.lock = store.lock
        self.steps: StepMemo[int] = StepMemo()
        self._keeps_masks, self._keeps_steps = memo, memo_steps

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

    def _following(self, situation: int) -> Int32:
        """The situation after each byte: int32, shape (256,), -1 where it is not allowed."""
        return self._walk_targets(situation, _byte_trie())

    def step(self, situation: int, token: int) -> int:
        found = self.steps.get((situation, token))
        if found is None:
            with self.lock, self.working:
                found = self._step(situation, token)
                if found >= 0 and not self.complete and not self.live.is_live(found):
                    found = -1
                if found >= 0 and self._keeps_steps:
                    self.steps.keep(situation, token, found)
        return found

    def can_end(self, situation: int) -> bool:
        with self.lock, self.working:
            return self._can_end(situation)

    def fill(self, situation: int, out: Mask) -> None:
        if not self.masks.fill(situation, out):
            self.make_mask(situation, out)

    def make_mask(self, situation: int, out: Mask) -> bool:
        """Write the mask of a situation, and keep it; whether it had to be made."""
        with self.lock, self.working:
            self._fill_raw(situation, out)
            if not self.complete:
                self._clear_dead(situation, out)
            if self._can_end(situation):
                for token in self.vocab.end_tokens:
                    masks.set_token(out, token)
            if self._keeps_masks:
                self.masks.keep(situation, out)
        return True

    def targets(self, situation: int) -> Int32:
        """By one walk over the token trie: 0.5 to 5 ms. Special tokens count as not allowed."""
        with self.lock:
            found = self._walk_targets(situation, self.vocab.trie)
            if not self.complete:
                spend(NS_PER_NODE * self.vocab.trie.node_count)
                reached = np.unique(found)
                dead = [target for target in reached[reached >= 0].tolist() if not self.live.is_live(target)]
                if dead:
                    found[np.isin(found, dead)] = -1
            return found

    def following(self, situation: int) -> Int32 | None:
        with self.lock:
            return self._following(situation) if self.complete else None

    def rank(self, situation: int) -> int:
        with self.lock:
            return self._rank(situation)

    def _clear_dead(self, situation: int, out: Mask) -> None:
        """Take tokens out of a mask after which tokens cannot end the text."""
        dead = np.flatnonzero(masks.mask_to_bool(out, self.vocab.size) & (self.targets(situation) < 0))
        after_special = self._special_targets(situation)
        for token in dead.tolist():
            if token not in after_special or not self.live.is_live(after_special[token]):
                masks.clear_token(out, token)

    def _successors(self, situation: int) -> list[int]:
        """The situations that letters and special tokens lead to, dead ends among them."""
        letters = self.vocab.letters.trie
        spend(NS_PER_WALK + NS_PER_NODE * letters.node_count)
        reached = np.unique(self._walk_targets(situation, letters))
        return [*reached[reached >= 0].tolist(), *self._special_targets(situation).values()]

    def _search(self, limit: int, message: str = LACKS_BYTES) -> CoaccessibleSearch[int]:
        """A search for ends; `message`: what it says past its limit."""
        return CoaccessibleSearch(self._successors, self._can_end, limit, self._rank, message, self._outlook)

    def check_start(self, start: int, constraint: Constraint, blocked: Blocked | None) -> None:
        """Raise VocabularyCannotSpell if no tokens lead from the start to an end, and what `settle` raises."""
        with self.lock:
            if blocked is not None:
                settle(blocked, constraint, self.vocab, start, self._search(MOST_SEARCHED), self._successors)
            if not self.complete and not self.live.is_live(start):
                raise VocabularyCannotSpell(
                    f"no sequence of tokens spells any text of {constraint.name!r}: the vocabulary lacks bytes it needs"
                )


class CompiledSituations(CompiledConstraint, Situations):
    """A compiled constraint that numbers its situations itself.

    `settings`: options, of which ``mask_mb``, ``memo``, ``memo_steps`` and ``max_search`` are for this class.
    Subclasses end their `__init__` with `_begin`.
    """

    #: The situation before the first token.
    start_situation: int

    def __init__(
        self, constraint: Constraint, vocab: Vocabulary, name: str, settings: dict[str, Any], phases: Phases
    ) -> None:
        super().__init__(constraint, vocab, name)
        self.settings, self.phases = settings, phases
        self.limit = settings["mask_mb"] << 20
        store = MaskStore(self.limit, masks.mask_words(vocab.size))
        self._keep_in(vocab, store, self.working, settings["memo"], settings["memo_steps"])

    def _begin(self, start: int, complete: bool, blocked: Blocked | None = None) -> None:
        """Take note of where texts begin. `blocked`: why the longest match may keep texts from their end, if it may;
        then it is not `complete`. Raises what `check_start` raises.
        """
        self.start_situation, self.complete = start, complete
        limit = self.settings["max_search"]
        if blocked is not None:
            self.live = self._search(max(MOST_SEARCHED, limit), NO_END_FOUND)
        elif not complete:
            self.live = self._search(limit)
        self.check_start(start, self.constraint, blocked)

    @abstractmethod
    def work(self) -> dict[str, int]:
        """Totals of the work done on masks, by name."""

    def _start(self, context: tuple[int, ...]) -> StateMatcher[Any]:
        """A matcher before the first token; `context` does not matter to these strategies."""
        return SituationMatcher(self)


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
        self._compiled.make_mask(state, out)
        counters["masks_made"] = counters.get("masks_made", 0) + 1
        for name, total in self._compiled.work().items():
            counters[name] = counters.get(name, 0) + total - before[name]

    def _fork_empty(self) -> SituationMatcher:
        return type(self)(self._compiled)

    def situation_source(self) -> CompiledSituations:
        return self._compiled
