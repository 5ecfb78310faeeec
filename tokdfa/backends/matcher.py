"""Matchers: the state of one generated sequence, and what all of them do alike.

`Matcher` checks what it is given, once for all strategies. `StateMatcher` is for strategies whose whole state is one
value, which are all of ours: rollback and fork are free, and a mask or a step that was seen before is served here, from
the strategy's `MaskStore` and its memo of steps, with as little Python as possible.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.forced import find_forced_bytes, find_forced_tokens
from tokdfa.core.arguments import as_integer, as_token
from tokdfa.errors import ArgumentError, LimitExceeded, TokdfaError, TokenRefused, UnsupportedConstraint
from tokdfa.mask import INT32
from tokdfa.vocabulary.mask_store import write_tokens_kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import numpy.typing as npt

    from tokdfa.backends.situation_source import SituationSource
    from tokdfa.core.budget import spending
    from tokdfa.core.refusals import Refusals
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.mask_store import MaskStore
    from tokdfa.vocabulary.vocabulary import Vocabulary

ResultT = TypeVar("ResultT")
#: So many steps are kept for a constraint, about 100 bytes each.
KEPT_STEPS = 200_000


class Startable(Protocol):
    """What a matcher was started from: a compiled constraint."""

    def start(self, context: Sequence[int] = ()) -> Matcher:
        """A matcher before the first token."""

    #: The budget of a step.
    working: spending

    def shortest_completion(self, matcher: Matcher) -> list[int]:
        """The fewest tokens to an end from where one of its matchers is."""


class Memory(Protocol):
    """What a matcher remembers of a text beside the states of its strategy. Immutable; equal ones go on alike."""

    @property
    def is_endless(self) -> bool:
        """Whether an end is never out of reach, however much was remembered; it may be some tokens further away."""

    def read(self, text: bytes) -> Memory | None:
        """What it comes to; None if it refuses the text."""

    def exceptions(self, allowed: Mask) -> tuple[npt.NDArray[np.int32], Mapping[int, Memory]]:
        """Of the allowed tokens those that it refuses, and those that are not like others: what they come to.

        Other tokens after which the strategy is in one state are alike, but for what they spell.
        """


#: Before the first mask; nobody else has it.
_NO_MASK = masks.allocate_mask(0)


class Matcher(ABC):
    """The state of one generated sequence. Not to be shared between threads; `fork` gives each its own.

    The methods here check what they are given, once for all strategies: token ids may be integers of any kind (numpy's,
    a tensor of one), anything else raises ArgumentError; masks may be torch tensors on the CPU. A strategy writes the
    methods of the same names with an underscore, which get plain ints and checked arrays. A copy is a fork; a pickle
    holds the compiled constraint and the tokens, which are taken again.
    """

    def __init__(self, vocab: Vocabulary) -> None:
        self.vocab = vocab
        self.counters: dict[str, int] = {}
        self._size = vocab.size
        self._shape = (masks.mask_words(vocab.size),)
        #: The tokens taken, an end token included.
        self._tokens: list[int] = []
        #: The mask that was checked last, and its bytes. It still fits: nobody can resize an array that is referred to.
        self._fitting: Mask = _NO_MASK
        self._fitting_bytes = memoryview(b"")
        #: What it was started from, and with which context.
        self.origin: tuple[Startable, tuple[int, ...]] | None = None

        #: Steps that were refused, of all matchers of the constraint; None for one that nobody started.
        self.refusals: Refusals | None = None

    def __repr__(self) -> str:
        condition = "finished" if self.is_finished() else "may end" if self.can_end() else "must go on"
        return f"<{type(self).__name__}: {condition}>"

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens taken so far, an end token included, without the context."""
        return tuple(self._tokens)

    def fill_mask(self, out: Mask) -> None:
        """Write the set of allowed next tokens into `out`: int32, shape (ceil(V/32),), overwritten in full.

        `out` is C-contiguous and writable: a numpy array, or a torch tensor on the CPU.
        """
        out = out if out is self._fitting else self._fit(out)
        if self.is_finished():
            self._fill_after_end(out)
        else:
            self._limited("mask", -1, self._fill_mask, out)

    def _fill_after_end(self, out: Mask) -> None:
        """Write the mask of a finished matcher: the end tokens, so that some logit is finite."""
        out[:] = masks.mask_from_ids(self.vocab.end_tokens, self._size)

    def _limited(self, step: str, token: int, do: Callable[[Any], ResultT], argument: Any) -> ResultT:
        """What `do` returns of its argument; what it refuses is refused again (`tokdfa.core.refusals`)."""
        if self.refusals:
            self._check_refusals(step, token)
        try:
            return do(argument)
        except LimitExceeded as error:
            if self.refusals is not None and self.origin is not None:
                self.refusals.note(self._place(step, token), error, self.origin[0].working.budget)
            raise

    def _check_refusals(self, step: str, token: int) -> None:
        assert self.refusals is not None
        assert self.origin is not None
        self.refusals.check(self._place(step, token), self.origin[0].working.budget)

    def _place(self, step: str, token: int) -> Hashable:
        """A step and the tokens before it, for `refusals`."""
        assert self.origin is not None
        return type(self), step, token, self.origin[1], self.tokens

    def _fit(self, out: Mask) -> Mask:
        """`out` as an array that fits, which is noted."""
        if not (type(out) is np.ndarray and out.dtype is INT32 and out.shape == self._shape and out.flags.carray):
            out = masks.check_mask(out, self._size, name="out")
        self._fitting, self._fitting_bytes = out, out.data.cast("B")
        return out

    def advance(self, token: int) -> None:
        """Append one token. A token whose bit is not set raises TokenRefused and leaves the matcher unchanged.

        So does an end token of a matcher that is finished, which is allowed, and is none of its `tokens`.
        """
        if type(token) is not int:
            token = as_token(token)
        if not 0 <= token < self._size:
            raise self._out_of_range(token)
        if self.is_finished():
            self._refuse_after_end(token)
            return
        self._limited("advance", token, self._advance, token)
        self._tokens.append(token)

    def _refuse_after_end(self, token: int) -> None:
        """Raise TokenRefused for all but an end token."""
        if token not in self.vocab.end_token_set:
            raise TokenRefused(token, "the text has ended, and only end tokens may follow; rollback(1) reopens it")

    def _out_of_range(self, token: int) -> TokenRefused:
        return TokenRefused(token, f"the vocabulary has the ids 0 to {self._size - 1}")

    def allows(self, token: int) -> bool:
        """Whether `token`'s bit is set, without filling a mask where the strategy can."""
        if type(token) is not int:
            token = as_token(token)
        if self.is_finished():
            return token in self.vocab.end_token_set
        return 0 <= token < self._size and self._limited("advance", token, self._allows, token)

    @abstractmethod
    def can_end(self) -> bool:
        """Whether the text so far is complete, so that an end token is allowed; true of a finished one, too."""

    @abstractmethod
    def is_finished(self) -> bool:
        """Whether an end token has been taken."""

    def rollback(self, count: int) -> None:
        """Take back the last `count` tokens, an end token included. More than there are raises ArgumentError."""
        count = as_integer(count, "count", 0)
        if count > len(self._tokens):
            raise ArgumentError(f"count: cannot take back {count} tokens, {len(self._tokens)} were taken")
        if count:
            self._rollback(count)
            del self._tokens[-count:]

    def fork(self) -> Matcher:
        """An independent matcher in the same state."""
        twin = self._fork()
        twin._tokens = self._tokens.copy()
        twin.origin, twin.refusals = self.origin, self.refusals
        return twin

    @abstractmethod
    def _fill_mask(self, out: Mask) -> None:
        """Write the mask into a checked array; the text has not ended."""

    def _advance(self, token: int) -> None:
        """Take an id of the vocabulary, or raise TokenRefused and change nothing; unused where `advance` does all.

        The text has not ended, here and in `_allows`.
        """
        raise NotImplementedError

    @abstractmethod
    def _allows(self, token: int) -> bool:
        """Whether an id of the vocabulary may come next."""

    @abstractmethod
    def _rollback(self, count: int) -> None:
        """Take back the last `count` tokens; there are as many, and at least one. `_tokens` holds them still."""

    @abstractmethod
    def _fork(self) -> Matcher:
        """A matcher of its own in the same state. `_tokens` is the caller's business."""

    def whereabouts(self) -> Hashable:
        """What two matchers of one compiled constraint have in common that go on alike, as far as is known."""
        return self

    @property
    def plain(self) -> Matcher:
        """The matcher whose states `situation_source` knows: itself, or the one beside which it remembers something."""
        return self

    def counted(self) -> Any:
        """What `SituationSource.number` of `situation_source` takes: where `plain` is."""
        return self.plain.whereabouts()

    def memory(self) -> Memory | None:
        """What it remembers beside the states of `plain`, None for nothing."""
        return None

    def situation_source(self) -> SituationSource | None:
        """Where all tokens lead at once; equal ones know the same states. None: the strategy has no way of its own.

        Raises UnsupportedConstraint for an engine that does not show its states.
        """
        raise UnsupportedConstraint(self._UNCOUNTED)

    def __copy__(self) -> Matcher:
        return self.fork()

    def __deepcopy__(self, memo: object) -> Matcher:
        return self.fork()

    def __reduce__(self) -> tuple[Callable[..., Matcher], tuple[Any, ...]]:
        if self.origin is None:
            raise TokdfaError(f"{self!r} was not made by `CompiledConstraint.start`, so a pickle cannot make it again")
        compiled, context = self.origin
        return _restore, (compiled, context, self.tokens)

    def forced_tokens(self, limit: int = 64) -> list[int]:
        """The tokens that must come next, one after another, up to `limit`.

        First, each that is the only bit of its mask. Where the next bytes are forced and can be cut in several ways,
        then the tokenizer's own tokens for them, up to the last border that no continuation moves (see
        `tokdfa.backends.forced`): to append them in place of asking the model is to have it write as its tokenizer
        does. All of them are allowed. Costs the masks of `forced_bytes`, and an encoding or a few.
        """
        return find_forced_tokens(self, as_integer(limit, "limit", 0))

    #: Why nobody can count the tokens to an end, if `StateMatcher` does not show how.
    _UNCOUNTED: ClassVar[str] = (
        "the engine does not show its states, so nobody can count the tokens to an end; take one of our own backends"
    )

    def shortest_completion(self) -> list[int]:
        """The fewest tokens after which the text may end, an end token not among them; [] where it may end now.

        Exact, by a breadth-first search over the states of the constraint, which remembers what it found: see
        `tokdfa.backends.shortest_ends`. Raises LimitExceeded past the budget of a step, and UnsupportedConstraint for
        an engine that does not show its states.
        """
        if self.is_finished():
            return []
        if self.origin is None:
            raise TokdfaError(f"{self!r} was not made by `CompiledConstraint.start`, so its ends are not known")
        return self.origin[0].shortest_completion(self)

    def forced_bytes(self, limit: int = 256) -> bytes:
        """The bytes with which every text that tokens can still spell goes on, up to `limit`; b"" where it may end.

        From masks alone: every way of cutting those bytes into tokens is followed from token to token, and the answer
        is what all ways have in common. Ways that meet in one state are one. At most `limit` masks are made; if more
        ways than that turn up, which happens to matchers that do not know their states, only what is proved by then is
        returned. Where nothing is forced, that is one mask.
        """
        return self._forced_bytes(as_integer(limit, "limit", 0))

    def _forced_bytes(self, limit: int) -> bytes:
        return find_forced_bytes(self, limit)


def _restore(compiled: Startable, context: tuple[int, ...], tokens: tuple[int, ...]) -> Matcher:
    matcher = compiled.start(context)
    for token in tokens:
        matcher.advance(token)
    return matcher


StateT = TypeVar("StateT", bound="Hashable")


class StepMemo(dict[tuple[StateT, int], StateT]):
    """(state, token) -> state: steps that were made before, emptied when there are KEPT_STEPS."""

    def keep(self, state: StateT, token: int, following: StateT) -> None:
        """Remember where a token led."""
        if len(self) >= KEPT_STEPS:
            self.clear()
        self[state, token] = following


_NOTHING: Mapping[Any, Any] = {}


class StateMatcher(Matcher, Generic[StateT]):
    """A matcher whose whole state is one value: rollback and fork are free. Subclasses write `_step`, `_accepts`,
    `_fill` and `_fork_empty`.

    `_step` returns None for a token that is not allowed; end tokens never reach it. The history holds the state before
    each token that was taken; `FINISHED` stands for the state after an end token.

    `_serve_from` names where masks and steps that were seen before are kept; strategies keep them there themselves.
    """

    FINISHED: ClassVar[Any] = object()

    def __init__(self, vocab: Vocabulary, start: StateT) -> None:
        super().__init__(vocab)
        self.state: StateT = start
        self._history: list[StateT] = []
        #: Where masks are kept, if they are.
        self.store: MaskStore | None = None
        self._packed: Mapping[StateT, memoryview] = _NOTHING
        self._narrow: Mapping[StateT, npt.NDArray[np.int32]] = _NOTHING
        self._steps: Mapping[tuple[StateT, int], StateT] = _NOTHING

    def _serve_from(self, store: MaskStore, steps: Mapping[tuple[StateT, int], StateT] = _NOTHING) -> None:
        """Serve masks from a store, and steps that are allowed from a memo: (state, token) -> state."""
        self.store, self._packed, self._narrow, self._steps = store, store.packed, store.narrow, steps

    @abstractmethod
    def _step(self, state: StateT, token: int) -> StateT | None:
        """The state after `token`, which spells something; None if it is not allowed."""

    @abstractmethod
    def _accepts(self, state: StateT) -> bool:
        """Whether the text may end in `state`."""

    @abstractmethod
    def _fill(self, state: StateT, out: Mask) -> None:
        """Write the mask of `state`, end tokens included."""

    @abstractmethod
    def _fork_empty(self) -> StateMatcher[StateT]:
        """A new matcher of the same compiled constraint, in any state."""

    def fill_mask(self, out: Mask) -> None:
        if out is not self._fitting:
            out = self._fit(out)
        if self.refusals:
            self._check_refusals("mask", -1)
        if self._packed:
            packed = self._packed.get(self.state)
            if packed is not None:
                self._fitting_bytes[:] = packed
                return
        if self._narrow:
            tokens = self._narrow.get(self.state)
            if tokens is not None:
                write_tokens_kernel(tokens, out)
                return
        if self.state is self.FINISHED:
            self._fill_after_end(out)
        else:
            self._limited("mask", -1, self._fill_mask, out)

    def _fill_mask(self, out: Mask) -> None:
        self._fill(self.state, out)

    def advance(self, token: int) -> None:
        if type(token) is not int:
            token = as_token(token)
        if self.refusals:
            self._check_refusals("advance", token)
        following = self._steps.get((self.state, token)) if self._steps else None
        if following is None:
            if not 0 <= token < self._size:
                raise self._out_of_range(token)
            if self.state is self.FINISHED:
                self._refuse_after_end(token)
                return
            following = self._limited("advance", token, self._next, token)
            if following is None:
                raise TokenRefused(token, self._why_refused(token))
        self._history.append(self.state)
        self.state = following
        self._tokens.append(token)

    def _next(self, token: int) -> StateT | None:
        """The state after an id of the vocabulary, None if it is not allowed; the text has not ended."""
        if token in self.vocab.end_token_set:
            return self.FINISHED if self._accepts(self.state) else None
        return self._step(self.state, token)

    def _why_refused(self, token: int) -> str:
        if token in self.vocab.end_token_set:
            return "it is an end token and the text is not complete here"
        spelled = self.vocab.token_bytes(token)
        return f"its bytes {spelled!r} cannot come next" if spelled else "it spells no text"

    def _allows(self, token: int) -> bool:
        return self._next(token) is not None

    def can_end(self) -> bool:
        return self.state is self.FINISHED or self._accepts(self.state)

    def is_finished(self) -> bool:
        return self.state is self.FINISHED

    def _rollback(self, count: int) -> None:
        self.state = self._history[-count]
        del self._history[-count:]

    def _fork(self) -> StateMatcher[StateT]:
        twin = self._fork_empty()
        twin.state = self.state
        twin._history = self._history.copy()
        return twin

    def whereabouts(self) -> Hashable:
        return self.state

    def situation_source(self) -> SituationSource | None:
        return None

    def _count(self, **work: int) -> None:
        """Add to the counters."""
        for name, amount in work.items():
            self.counters[name] = self.counters.get(name, 0) + int(amount)
