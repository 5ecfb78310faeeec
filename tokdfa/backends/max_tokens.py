"""Matchers that always come to an end: ``compiled.start(max_tokens=n)`` around the matcher of any strategy.

A token is allowed if the strategy allows it and the tokens left after it are enough to end the text, by the exact least
number of tokens (`tokdfa.backends.shortest_ends`). So while tokens are left some token is allowed or the text may end,
and after `max_tokens` tokens it may. With tokens to spare the masks are the strategy's own.

Cost: the first mask of a situation takes some way to an end from each of its targets (`pushdown_trie`: 0.1 to 1 ms
each), and a search for the nearest end where that way is too long or not known; one whose targets are known some 10 us,
and where some are too far, the targets of all tokens again (0.5 to 2 ms).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from tokdfa.backends.matcher import Matcher
from tokdfa.backends.matcher_situations import MatcherSituations
from tokdfa.backends.shortest_ends import ShortestEnds
from tokdfa.backends.state_matcher import StateMatcher
from tokdfa.core.budget import spending
from tokdfa.errors import ArgumentError, LimitExceeded, TokenRefused, UnsupportedConstraint, counted

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask

#: For how many numberings of states distances are kept: generations of tables, contexts.
KEPT_SOURCES = 4


class Countable(Protocol):
    """What is asked of a compiled constraint."""

    constraint: Constraint
    backend_name: str
    working: spending
    #: Distances, by what tells the states of matchers apart.
    ends: dict[Any, ShortestEnds]

    def start(self, context: Sequence[int] = (), max_tokens: int | None = None) -> Matcher:
        """A matcher before the first token."""


def shortest_path(compiled: Countable, matcher: Matcher) -> list[int]:
    """The fewest tokens to an end from where a matcher is. Raises what `ends_of` raises, and EmptyLanguageError."""
    ends, memory = ends_of(compiled, matcher), matcher.memory()
    if memory is None:
        return ends.path(matcher.counted())
    return ends.remembered.path(ends.source.number(matcher.counted()), memory)


def ends_of(compiled: Countable, matcher: Matcher) -> ShortestEnds:
    """The distances of the states of a matcher and its like.

    Raises UnsupportedConstraint for an engine whose states cannot be told apart.
    """
    try:
        source = matcher.situation_source()  # equal ones know the same states
    except UnsupportedConstraint as error:
        raise UnsupportedConstraint(f"{compiled.backend_name}: {error}") from None
    key: Any = source if source is not None else matcher.origin and matcher.origin[1]
    ends = compiled.ends.get(key)
    if ends is None:
        if len(compiled.ends) >= KEPT_SOURCES:
            compiled.ends.clear()
        if source is None:
            own = matcher.plain.fork()  # which numbers states and steps from them, and is not a user's
            assert isinstance(own, StateMatcher)
            source = MatcherSituations(own)
        ends = compiled.ends[key] = ShortestEnds(source, matcher.vocab)
    return ends


def too_few(compiled: Countable, matcher: Matcher, max_tokens: int, counts_end: bool = False) -> ArgumentError:
    """The error if no text ends within `max_tokens` tokens; with `counts_end` the end token is one of them."""
    reason = f"{max_tokens} is not enough for any text of {compiled.constraint.name!r}"
    with suppress(LimitExceeded):  # it may take too long to find
        reason += f"; the shortest has {len(matcher.shortest_completion()) + counts_end}"
        reason += ", the end token included" if counts_end else ""
    after = " after what is answered" if matcher.tokens else ""
    return ArgumentError(f"max_tokens: {reason}{after}")


class EndingMatcher(Matcher):
    """A matcher that comes to an end within `max_tokens` tokens; an end token does not count."""

    _max_tokens: int

    def __init__(self, compiled: Countable, inner: Matcher, max_tokens: int) -> None:
        super().__init__(inner.vocab)
        self._compiled, self.inner, self._max_tokens = compiled, inner, max_tokens
        #: Of its own: that of the compiled constraint is entered by one thread at a time, under the strategy's lock.
        self._working = spending(compiled.working.budget, compiled.working.what)
        self.counters = inner.counters

    @classmethod
    def start(cls, compiled: Countable, inner: Matcher, max_tokens: int) -> EndingMatcher:
        """Raises ArgumentError if no text of the constraint has so few tokens."""
        made = cls(compiled, inner, max_tokens)
        if not made._is_within(max_tokens):
            raise too_few(compiled, inner, max_tokens)
        return made

    @property
    def tokens_left(self) -> int:
        """How many tokens may still follow, without an end token."""
        return max(0, self._max_tokens - len(self._tokens))

    def can_end(self) -> bool:
        return self.inner.can_end()

    def is_finished(self) -> bool:
        return self.inner.is_finished()

    def _fill_mask(self, out: Mask) -> None:
        self.inner.fill_mask(out)
        with self._working:
            ends, memory = ends_of(self._compiled, self.inner), self.inner.memory()
            ends.restrict(self.inner.counted(), self.tokens_left - 1, out)
            if memory is not None:
                situation = ends.source.number(self.inner.counted())
                ends.remembered.restrict(situation, memory, self.tokens_left - 1, out)

    def _advance(self, token: int) -> None:
        self.inner.advance(token)
        try:
            if not (self.inner.is_finished() or self._is_within(self.tokens_left - 1)):
                raise TokenRefused(
                    token, f"no text that goes on with it ends within the {counted(self.tokens_left, 'token')} left"
                )
        except BaseException:  # such as LimitExceeded
            self.inner.rollback(1)
            raise

    def _allows(self, token: int) -> bool:
        if not self.inner.allows(token):
            return False
        self.inner.advance(token)
        try:
            return self.inner.is_finished() or self._is_within(self.tokens_left - 1)
        finally:
            self.inner.rollback(1)

    def _is_within(self, tokens: int) -> bool:
        with self._working:
            ends, memory = ends_of(self._compiled, self.inner), self.inner.memory()
            if memory is None:
                return ends.is_within(self.inner.counted(), tokens)
            return ends.remembered.is_within(ends.source.number(self.inner.counted()), memory, tokens)

    def shortest_completion(self) -> list[int]:
        return self.inner.shortest_completion()

    def _rollback(self, count: int) -> None:
        self.inner.rollback(count)

    def _fork(self) -> EndingMatcher:
        return EndingMatcher(self._compiled, self.inner.fork(), self._max_tokens)

    def _place(self, step: str, token: int) -> Hashable:
        return self._max_tokens, super()._place(step, token)

    def whereabouts(self) -> Hashable:
        return self.tokens_left, self.inner.whereabouts()
