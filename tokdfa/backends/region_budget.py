"""Reason first, then answer: a region of free text of at most so many tokens, and then the answer.

`think_first` makes the grammar ``begin, any text, end, gap, answer``, and a matcher that never lets the region, its two
marks included, take more than its tokens. A mark is a text or a special token. A token is allowed if the grammar allows
it and the tokens left after it are enough to close the region, by the exact least number of tokens.

A token may hold all of it: the begin mark, text, the end mark and what the answer begins with. `RegionStates`
(`tokdfa.backends.region_states`) says how few tokens close the region; whether a token may reach into the answer is
the grammar's business. As any text is allowed inside, with tokens left there is always a next one.

`start(max_tokens=...)` bounds the whole as well: what is left out then cannot be closed in either budget, by the least
number of tokens over both (`RegionSituations`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.base import CompiledConstraint
from tokdfa.backends.matcher import Matcher
from tokdfa.backends.max_tokens import ends_of
from tokdfa.backends.region_states import RegionStates
from tokdfa.backends.registry import compile as compile_constraint
from tokdfa.backends.situation_source import SituationSource
from tokdfa.constraint import Grammar
from tokdfa.core.arguments import as_integer, as_text
from tokdfa.core.budget import spend
from tokdfa.errors import ArgumentError, TokenRefused, UnsupportedConstraint, counted
from tokdfa.grammar.parts import NOTHING, Part, regex, seq, special, tag, text, up_to
from tokdfa.vocabulary.tokenizers import as_vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    import numpy.typing as npt

    from tokdfa.backends.shortest_ends import ShortestEnds
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

    Int32 = npt.NDArray[np.int32]

#: What a token takes where both budgets count.
NS_PER_TOKEN = 300
#: What models write between their thoughts and the answer.
GAP = regex(r"\n{0,2}")


def think_first(
    answer: Part | str,
    vocab: Vocabulary | Tokenizer,
    tokens: int,
    *,
    begin: Part | str = "<think>",
    end: Part | str = "</think>",
    gap: Part | str = GAP,
    backend: str | None = None,
    **options: Any,
) -> CompiledConstraint:
    """`begin`, any text, `end`, `gap`, `answer`, compiled, with at most `tokens` tokens up to `end`, both marks
    included.

    `answer`: a part (`tokdfa.grammar.parts`). `begin`, `end`: marks, each a text or a special token; a str is the
    special token that is printed so if the vocabulary has one. `begin`: "" where the prompt has it already. `gap`: what
    may stand before the answer, by default up to two ends of line, as models write; "" for nothing. `backend`
    and `options`: what compiles the whole.

    Raises ArgumentError for a budget that is too small to close the region, OptionError for an empty end and what is no
    mark, UnsupportedConstraint for proper sequences, whose number of tokens to the end is not known, and what compiling
    raises.
    """
    if options.get("proper"):
        raise UnsupportedConstraint("a region's tokens are counted over all ways to spell it; leave proper=True out")
    vocabulary = as_vocabulary(vocab)
    first, last = _mark(begin, "begin", vocabulary), _mark(end, "end", vocabulary)
    region = tag(first, end=last) if first != NOTHING else up_to(last)
    whole = compile_constraint(Grammar(str(seq(region, gap, answer))), vocabulary, backend, **options)
    states = RegionStates(vocabulary, first, last)
    states.measure(whole)
    needed = int(states.distances[states.start])
    if as_integer(tokens, "tokens", 0) < needed:
        raise ArgumentError(f"tokens: {tokens} is not enough to open and close the region, which takes {needed}")
    return BudgetedConstraint(whole, states, int(tokens))


def _mark(mark: Part | str, name: str, vocabulary: Vocabulary) -> Part:
    """A mark as a part."""
    if isinstance(mark, Part):
        return mark
    for token, printed in vocabulary.special_tokens.items():
        if printed == as_text(mark, name) and token not in vocabulary.end_token_set:
            return special(token)
    return text(mark)


class BudgetedConstraint(CompiledConstraint):
    """What `think_first` makes."""

    def __init__(self, whole: CompiledConstraint, region: RegionStates, tokens: int) -> None:
        super().__init__(whole.constraint, whole.vocab, whole.backend_name)
        self.whole, self.region, self.tokens = whole, region, tokens
        self.phases, self.sizes, self.dropped = whole.phases, whole.sizes, whole.dropped

    def _start(self, context: tuple[int, ...]) -> Matcher:
        return BudgetedMatcher(self, self.whole.start(context))

    def __reduce__(self) -> tuple[Callable[..., CompiledConstraint], tuple[Any, ...]]:
        return BudgetedConstraint, (self.whole, self.region, self.tokens)


class BudgetedMatcher(Matcher):
    """A matcher of the whole, and the states of the region before each token and now."""

    def __init__(self, compiled: BudgetedConstraint, inner: Matcher) -> None:
        super().__init__(compiled.vocab)
        self._compiled, self._inner, self._region = compiled, inner, compiled.region
        self._states = [compiled.region.start]
        self.counters = inner.counters

    @property
    def is_open(self) -> bool:
        """Whether the region is not closed yet."""
        return self._states[-1] != self._region.closed

    @property
    def tokens_left(self) -> int | None:
        """How many tokens the region may still take; None once it is closed."""
        return self._compiled.tokens - len(self._tokens) if self.is_open else None

    def can_end(self) -> bool:
        return self._inner.can_end()

    def is_finished(self) -> bool:
        return self._inner.is_finished()

    def _fill_mask(self, out: Mask) -> None:
        self._inner.fill_mask(out)
        if (left := self.tokens_left) is not None:
            self._region.restrict(self._states[-1], left - 1, out)

    def _is_late(self, after: int) -> bool:
        """Whether the region could not be closed in time after one more token, which leads to a state of it."""
        left = self.tokens_left
        return left is not None and not self._region.is_near(after, left - 1)

    def _allows(self, token: int) -> bool:
        return not self._is_late(self._region.after(self._states[-1], token)) and self._inner.allows(token)

    def _advance(self, token: int) -> None:
        after = self._region.after(self._states[-1], token)
        if self._is_late(after) and self._inner.allows(token):
            raise TokenRefused(
                token,
                f"after it the region cannot be closed within the {counted(self.tokens_left or 0, 'token')} left to it",
            )
        self._inner.advance(token)
        self._states.append(after)

    def _rollback(self, count: int) -> None:
        self._inner.rollback(count)
        del self._states[-count:]

    def _fork(self) -> BudgetedMatcher:
        twin = BudgetedMatcher(self._compiled, self._inner.fork())
        twin._states = self._states.copy()
        return twin

    def whereabouts(self) -> Hashable:
        return (self.tokens_left, self._states[-1]) if self.is_open else None, self._inner.whereabouts()

    def situation_source(self) -> RegionSituations:
        return RegionSituations(ends_of(self._compiled.whole, self._inner), self._region)


@dataclass(frozen=True)
class RegionSituations(SituationSource):
    """A situation of the whole, a state of the region, and the tokens that the region may still take: see
    `tokdfa.backends.situation_source`.

    Where the region is closed, or as many tokens are left to it as the whole needs, only the whole matters: situation s
    of it is 2 s here. The others are odd, numbered as they are met.
    """

    whole: ShortestEnds
    region: RegionStates
    _numbers: dict[tuple[int, int, int], int] = field(default_factory=dict, compare=False)
    _open: list[tuple[int, int, int]] = field(default_factory=list, compare=False)

    def number(self, state: Any) -> int:
        open_region, whole = state
        situation = self.whole.source.number(whole)
        if open_region is None:
            return 2 * situation
        left, region = open_region
        return self._number(situation, region, left)

    def _number(self, whole: int, region: int, left: int) -> int:
        number = self._numbers.setdefault((whole, region, left), len(self._open))
        if number == len(self._open):
            self._open.append((whole, region, left))
        return 2 * number + 1

    def targets(self, situation: int) -> Int32:
        """Two walks."""
        if situation % 2 == 0:
            found = self.whole.targets(situation // 2)
            return np.where(found < 0, -1, 2 * found).astype(np.int32)
        here, region, left = self._open[situation // 2]
        wholes, regions = self.whole.targets(here), self.region.targets(region)
        alive = np.flatnonzero((wholes >= 0) & (regions >= 0))
        spend(NS_PER_TOKEN * len(alive))
        pairs, which = np.unique(np.stack([wholes[alive], regions[alive]]), axis=1, return_inverse=True)
        numbers = [self._after(whole, region, left - 1) for whole, region in pairs.T.tolist()]
        found = np.full(len(wholes), -1, dtype=np.int32)
        found[alive] = np.array(numbers, dtype=np.int32)[which.reshape(-1)]
        return found

    def _after(self, whole: int, region: int, left: int) -> int:
        if region == self.region.closed or self.whole.is_near(whole, left):
            return 2 * whole
        return self._number(whole, region, left) if self.region.is_near(region, left) else -1

    def fill(self, situation: int, out: Mask) -> None:
        found = self.targets(situation)
        out[:] = masks.mask_from_ids(np.flatnonzero(found >= 0), len(found))

    def can_end(self, situation: int) -> bool:
        return situation % 2 == 0 and self.whole.source.can_end(situation // 2)

    def following(self, situation: int) -> Int32 | None:
        """See `SituationSource.following`; while the region is open, the tokens left to it count, not bytes."""
        found = None if situation % 2 else self.whole.source.following(situation // 2)
        return None if found is None else np.where(found < 0, -1, 2 * found).astype(np.int32)

    def rank(self, situation: int) -> int:
        return self.whole.source.rank(situation // 2)

    def waypoints(self, situation: int, calls: bool) -> list[int]:
        return [] if situation % 2 else [2 * found for found in self.whole.source.waypoints(situation // 2, calls)]

    def read(self, situation: int, text: bytes) -> int:
        found = self.whole.source.read(situation // 2, text)
        return found if found < 0 else 2 * found
