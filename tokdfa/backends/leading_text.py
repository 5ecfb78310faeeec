"""A text that may stand before the texts of a constraint: mostly a blank, which many tokens of a model begin with.

After ``Answer:`` a model writes `` yes`` as one token; a constraint of ``yes`` and ``no`` makes it write ``yes``
without the blank, which it would seldom do. `allow_leading` makes a constraint of both: its texts are those of a
compiled constraint, and the same with the leading text before them. The matchers of both go on side by side, and a
token is allowed if one of them allows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tokdfa import mask as masks
from tokdfa.backends.base import CompiledConstraint
from tokdfa.backends.matcher import Matcher
from tokdfa.backends.token_healing import HealedConstraint
from tokdfa.core.arguments import as_text, as_tokens
from tokdfa.errors import TokdfaError, TokenRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from tokdfa.mask import Mask


def allow_leading(compiled: CompiledConstraint, text: str) -> CompiledConstraint:
    """The texts of `compiled`, with or without `text` before them. UnsupportedConstraint for proper sequences."""
    return LeadingConstraint(compiled, HealedConstraint(compiled, as_text(text, "leading").encode()))


class LeadingConstraint(CompiledConstraint):
    """What `allow_leading` makes: `plain`, and `led`, its texts after the leading one."""

    def __init__(self, plain: CompiledConstraint, led: HealedConstraint) -> None:
        super().__init__(plain.constraint, plain.vocab, plain.backend_name)
        self.plain, self.led = plain, led
        self.phases, self.sizes, self.dropped = plain.phases, plain.sizes, plain.dropped

    def start(self, context: Sequence[int] = (), max_tokens: int | None = None) -> Matcher:
        """See `CompiledConstraint.start`. With `max_tokens`, each of the two ends in time."""
        alive: dict[int, Matcher] = {}
        refusal: TokdfaError | None = None
        for place, inner in enumerate((self.plain, self.led)):
            try:
                alive[place] = inner.start(context, max_tokens)
            except TokdfaError as error:  # the leading text may be a token too many
                refusal = refusal or error
        if not alive:
            assert refusal is not None
            raise refusal
        matcher = LeadingMatcher(self, alive, max_tokens)
        matcher.origin = self, as_tokens(context, self.vocab.size, "context")
        return matcher

    def _start(self, context: tuple[int, ...]) -> Matcher:
        return self.start(context)

    def __reduce__(self) -> tuple[Callable[..., CompiledConstraint], tuple[CompiledConstraint, HealedConstraint]]:
        return LeadingConstraint, (self.plain, self.led)


class LeadingMatcher(Matcher):
    """Matchers side by side, those that have not refused a token."""

    _UNCOUNTED: ClassVar[str] = "texts with and without a leading one are counted apart; leave leading out"

    def __init__(self, compiled: LeadingConstraint, alive: dict[int, Matcher], max_tokens: int | None) -> None:
        super().__init__(compiled.vocab)
        #: By 0 for the plain texts and 1 for the others.
        self._compiled, self._alive, self._max_tokens = compiled, alive, max_tokens
        #: Those that were alive before each token.
        self._past: list[dict[int, Matcher]] = []
        self.counters = next(iter(alive.values())).counters

    def can_end(self) -> bool:
        return any(matcher.can_end() for matcher in self._alive.values())

    def is_finished(self) -> bool:
        return any(matcher.is_finished() for matcher in self._alive.values())

    def _fill_mask(self, out: Mask) -> None:
        first, *others = self._alive.values()
        first.fill_mask(out)
        for matcher in others:
            other = masks.allocate_mask(self.vocab.size)
            matcher.fill_mask(other)
            out |= other

    def _allows(self, token: int) -> bool:
        return any(matcher.allows(token) for matcher in self._alive.values())

    def _advance(self, token: int) -> None:
        taken: dict[int, Matcher] = {}
        refusal = TokenRefused(token)
        try:
            for place, matcher in self._alive.items():
                try:
                    matcher.advance(token)
                    taken[place] = matcher
                except TokenRefused as error:
                    refusal = error
        except BaseException:  # such as LimitExceeded
            for matcher in taken.values():
                matcher.rollback(1)
            raise
        if not taken:
            raise refusal
        self._past.append(self._alive)
        self._alive = taken

    def _rollback(self, count: int) -> None:
        for _ in range(count):
            for matcher in self._alive.values():
                matcher.rollback(1)
            self._alive = self._past.pop()

    def _fork(self) -> LeadingMatcher:
        twins = {id(one): one.fork() for alive in (*self._past, self._alive) for one in alive.values()}
        past = [{place: twins[id(one)] for place, one in alive.items()} for alive in (*self._past, self._alive)]
        twin = LeadingMatcher(self._compiled, past.pop(), self._max_tokens)
        twin._past = past
        return twin

    def whereabouts(self) -> Hashable:
        return tuple((place, matcher.whereabouts()) for place, matcher in self._alive.items())

    def shortest_completion(self) -> list[int]:
        return min((matcher.shortest_completion() for matcher in self._alive.values()), key=len)
