"""The mask interface: what every strategy, ours or a peer's, looks like from outside.

Words. A *backend* is a strategy bound to a vocabulary and to options. It *compiles* a constraint. A *matcher* is the
state of one generated sequence: it fills a *mask* (the set of tokens that may come next, packed as in `tokdfa.mask`)
and *advances* by one token.

What is inside the mask: token i's bit is set iff i's bytes can be appended and the text can still be completed with
tokens of the vocabulary (no dead ends). The bits of the end tokens are set iff the text may end here. Tokens that spell
nothing (special, control and padding tokens) are never set. After an end token the matcher is finished: its mask is
empty, and `advance` raises. `tokdfa.backends.contract` states these laws as functions and runs them on every backend.
"""

from __future__ import annotations

import heapq
import time
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

import numpy as np

from tokdfa import mask as masks
from tokdfa.errors import OptionError, TokdfaError, TokenRefused, UnknownNameError, UnsupportedConstraint

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary


@dataclass(frozen=True)
class Option:
    """One option of a backend: its type, default, range, and what it does (shown by `tokdfa backends NAME`).

    `kind` is bool, int, float or str; `choices` lists the admissible strings; `minimum` and `maximum` bound numbers;
    `optional` admits None.
    """

    name: str
    kind: type
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    optional: bool = False
    maximum: float | None = None

    def parse(self, text: str) -> Any:
        """The value that `text` writes, checked: true/false for bool, none for None where that is admissible."""
        lowered = text.lower()
        if self.optional and lowered in ("none", "null"):
            return None
        if self.kind is bool:
            if lowered not in ("true", "false", "yes", "no", "on", "off"):
                raise OptionError(f"option {self.name!r} is true or false, not {text!r}")
            return lowered in ("true", "yes", "on")
        try:
            return self.check(self.kind(text))
        except ValueError:
            raise OptionError(f"option {self.name!r} takes a {self.kind.__name__}, not {text!r}") from None

    def check(self, value: Any) -> Any:
        """`value` if it is admissible; otherwise OptionError."""
        if value is None and self.optional:
            return None
        if self.kind is float and type(value) is int:
            value = float(value)
        if not isinstance(value, self.kind) or isinstance(value, bool) != (self.kind is bool):
            raise OptionError(f"option {self.name!r} takes a {self.kind.__name__}, not {value!r}")
        if self.choices and value not in self.choices:
            raise OptionError(f"option {self.name!r} must be one of {', '.join(self.choices)}, not {value!r}")
        if self.minimum is not None and value < self.minimum:  # type: ignore[operator]
            raise OptionError(f"option {self.name!r} must be at least {self.minimum}, not {value!r}")
        if self.maximum is not None and value > self.maximum:  # type: ignore[operator]
            raise OptionError(f"option {self.name!r} must be at most {self.maximum}, not {value!r}")
        return value


@dataclass(frozen=True)
class Support:
    """Whether a backend can take a constraint, and if not, why. Its truth value is the answer."""

    supported: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.supported


YES = Support(True)
NO_TOKENIZER = Support(False, "proper tokenization needs a tokenizer; load one by name (tokdfa.load_tokenizer)")


class Backend(ABC):
    """A strategy, bound to a vocabulary and to options. Subclasses set `name`, `options`, `kinds` and write `_compile`.

    Class attributes: `summary` (one line), `kinds` (constraint kinds it can take), `packages` (pip packages it needs
    beyond tokdfa's own), `known_differences` (names of laws that it is declared to break, each with the reason;
    `tokdfa.backends.contract` tests them as such), `own_readings` (kinds of which it has a reading of its own, so that
    its language, and with it its masks, may differ from ours).
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]
    options: ClassVar[tuple[Option, ...]] = ()
    packages: ClassVar[tuple[str, ...]] = ()
    known_differences: ClassVar[Mapping[str, str]] = {}
    own_readings: ClassVar[tuple[str, ...]] = ()

    def __init__(self, vocab: Vocabulary, **options: Any) -> None:
        self.vocab = vocab
        known = {option.name: option for option in self.options}
        for given in options:
            if given not in known:
                raise UnknownNameError(f"option of backend {self.name}", given, known)
        self.settings: dict[str, Any] = {
            name: option.check(options.get(name, option.default)) for name, option in known.items()
        }

    def __repr__(self) -> str:
        defaults = {option.name: option.default for option in self.options}
        changed = "".join(f", {name}={value!r}" for name, value in self.settings.items() if value != defaults[name])
        return f"{type(self).__name__}({self.vocab!r}{changed})"

    @property
    def token_language(self) -> Literal["all", "proper"]:
        """Which spellings of a text are allowed: all of them, or only the one that the tokenizer itself would give."""
        return "all"

    def supports(self, constraint: Constraint) -> Support:
        """Yes, or no with the reason. Cheap: looks at the constraint's kind; subclasses may look closer."""
        if constraint.kind in self.kinds:
            return YES
        return Support(False, f"{self.name} takes {' and '.join(self.kinds)}, not {constraint.kind}")

    def compile(self, constraint: Constraint) -> CompiledConstraint:
        """Compile a constraint for this vocabulary.

        Raises UnsupportedConstraint, RegexSyntaxError, EmptyLanguageError, VocabularyCannotSpell or LimitExceeded.
        """
        answer = self.supports(constraint)
        if not answer:
            raise UnsupportedConstraint(answer.reason)
        return self._compile(constraint)

    @abstractmethod
    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        """Compile a constraint that `supports` has accepted."""


class Phases(dict[str, float]):
    """Seconds per named compile phase, in order: ``with phases.measure("parse"): ...``."""

    def measure(self, name: str) -> AbstractContextManager[None]:
        """What the block of a ``with`` takes is added to a phase."""
        return _Measured(self, name)


class _Measured(AbstractContextManager[None]):
    """One block; 1 µs, a third of what a generator takes."""

    __slots__ = ("_name", "_phases", "_started")

    def __init__(self, phases: Phases, name: str) -> None:
        self._phases, self._name = phases, name

    def __enter__(self) -> None:
        self._started = time.perf_counter_ns()

    def __exit__(self, *error: object) -> None:
        taken = (time.perf_counter_ns() - self._started) * 1e-9
        self._phases[self._name] = self._phases.get(self._name, 0.0) + taken


class CompiledConstraint(ABC):
    """A constraint compiled for one vocabulary: immutable to its users, shareable between threads.

    `phases`: seconds per named compile phase. `sizes`: what was built (``states``, ``transitions``, ``bytes`` ...).
    """

    def __init__(self, constraint: Constraint, vocab: Vocabulary, backend_name: str) -> None:
        self.constraint, self.vocab, self.backend_name = constraint, vocab, backend_name
        self.phases = Phases()
        self.sizes: dict[str, int] = {}

    def __repr__(self) -> str:
        sizes = "".join(f", {count} {what}" for what, count in self.sizes.items())
        return f"<{self.backend_name}: {self.constraint.kind} {self.constraint.name!r} for {self.vocab!r}{sizes}>"

    @abstractmethod
    def start(self, context: Sequence[int] = ()) -> Matcher:
        """A matcher before the first token. `context`: tokens before the constrained part (matter only to some)."""


class Matcher(ABC):
    """The state of one generated sequence. Not to be shared between threads; `fork` gives each its own."""

    def __init__(self, vocab: Vocabulary) -> None:
        self.vocab = vocab
        self.counters: dict[str, int] = {}

    def __repr__(self) -> str:
        condition = "finished" if self.is_finished() else "may end" if self.can_end() else "must go on"
        return f"<{type(self).__name__}: {condition}>"

    @abstractmethod
    def fill_mask(self, out: Mask) -> None:
        """Write the set of allowed next tokens into `out`: int32, shape (ceil(V/32),), overwritten in full."""

    @abstractmethod
    def advance(self, token: int) -> None:
        """Append one token. A token whose bit is not set raises TokenRefused and leaves the matcher unchanged."""

    @abstractmethod
    def allows(self, token: int) -> bool:
        """Whether `token`'s bit is set, without filling a mask where the strategy can."""

    @abstractmethod
    def can_end(self) -> bool:
        """Whether the text so far is complete, so that an end token is allowed."""

    @abstractmethod
    def is_finished(self) -> bool:
        """Whether an end token has been taken."""

    @abstractmethod
    def rollback(self, count: int) -> None:
        """Take back the last `count` tokens, an end token included. More than there are raises TokdfaError."""

    @abstractmethod
    def fork(self) -> Matcher:
        """An independent matcher in the same state."""

    def forced_tokens(self, limit: int = 64) -> list[int]:
        """The tokens that must come next, one after another, up to `limit`: each is the only bit of its mask."""
        forced: list[int] = []
        ahead = self.fork()
        mask = masks.allocate_mask(self.vocab.size)
        while len(forced) < limit and not ahead.is_finished():
            ahead.fill_mask(mask)
            if masks.count(mask) != 1:
                break
            forced.append(int(masks.mask_to_ids(mask)[0]))
            ahead.advance(forced[-1])
        return forced

    def forced_bytes(self, limit: int = 256) -> bytes:
        """The bytes with which every text that tokens can still spell goes on, up to `limit`; b"" where it may end.

        From masks alone: every way of cutting those bytes into tokens is followed from token to token, and the answer
        is what all ways have in common. Ways that meet in one state are one. At most `limit` masks are made; if more
        ways than that turn up, which happens to matchers that do not know their states, only what is proved by then is
        returned. Where nothing is forced, that is one mask.
        """
        trie, mask = self.vocab.trie, masks.allocate_mask(self.vocab.size)
        text, bound, made = b"", limit, 0
        ways: list[tuple[int, int, Matcher]] = [(0, 0, self.fork())]  # bytes that it has spelled, a number, where it is
        seen: set[tuple[int, Hashable]] = set()
        while ways and ways[0][0] < bound:
            begin, _, here = heapq.heappop(ways)
            if made == limit:
                bound = begin
                break
            made += 1
            here.fill_mask(mask)
            ranks = np.sort(trie.rank_of[masks.mask_to_ids(mask)])
            if len(ranks) and ranks[0] < 0:
                bound = begin  # a token that spells nothing: the end of the text, or a special token
                break
            last = self.vocab.token_bytes(int(trie.order[ranks[-1]])) if len(ranks) else b""
            for token in map(int, trie.order[ranks]):  # in the order of their bytes: what is left begins alike
                first = self.vocab.token_bytes(token)
                shared = first[: _count_shared(first, last)]
                agreed = _count_shared(shared, text[begin:])
                if agreed < min(len(shared), len(text) - begin):
                    bound = min(bound, begin + agreed)
                text = max(text, text[:begin] + shared, key=len)
                if shared != first:
                    bound = min(bound, begin + len(shared))
                if begin + len(first) >= bound:
                    break
                following = here.fork()
                following.advance(token)
                key = begin + len(first), following.state if isinstance(following, StateMatcher) else following
                if key not in seen:
                    seen.add(key)
                    heapq.heappush(ways, (key[0], len(seen), following))
        return text[:bound]


def _count_shared(one: bytes, other: bytes) -> int:
    """How many bytes `one` and `other` begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (left, right) in pairs if left != right), min(len(one), len(other)))


StateT = TypeVar("StateT", bound="Hashable")


class StateMatcher(Matcher, Generic[StateT]):
    """A matcher whose whole state is one value: rollback and fork are free. Subclasses write the four `_` methods.

    `_step` returns None for a token that is not allowed; end tokens never reach it. The history holds the state before
    each token that was taken; `_FINISHED` stands for the state after an end token.
    """

    _FINISHED: ClassVar[Any] = object()

    def __init__(self, vocab: Vocabulary, start: StateT) -> None:
        super().__init__(vocab)
        self.state: StateT = start
        self._history: list[StateT] = []

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
        masks.check_mask(out, self.vocab.size)
        if self.state is self._FINISHED:
            out.fill(0)
        else:
            self._fill(self.state, out)

    def _next(self, token: int) -> StateT | None:
        if self.state is self._FINISHED or not 0 <= token < self.vocab.size:
            return None
        if token in self.vocab.end_token_set:
            return self._FINISHED if self._accepts(self.state) else None
        return self._step(self.state, token)

    def advance(self, token: int) -> None:
        following = self._next(token)
        if following is None:
            raise TokenRefused(token, self._why_refused(token))
        self._history.append(self.state)
        self.state = following

    def _why_refused(self, token: int) -> str:
        if self.state is self._FINISHED:
            return "an end token has been taken already; rollback(1) reopens the text"
        if not 0 <= token < self.vocab.size:
            return f"the vocabulary has the ids 0 to {self.vocab.size - 1}"
        if token in self.vocab.end_token_set:
            return "it is an end token and the text is not complete here"
        spelled = self.vocab.token_bytes(token)
        return f"its bytes {spelled!r} cannot come next" if spelled else "it spells no text"

    def allows(self, token: int) -> bool:
        return self._next(token) is not None

    def can_end(self) -> bool:
        return self.state is not self._FINISHED and self._accepts(self.state)

    def is_finished(self) -> bool:
        return self.state is self._FINISHED

    def rollback(self, count: int) -> None:
        if not 0 <= count <= len(self._history):
            raise TokdfaError(f"cannot take back {count} tokens: {len(self._history)} were taken")
        if count:
            self.state = self._history[-count]
            del self._history[-count:]

    def fork(self) -> StateMatcher[StateT]:
        twin = self._fork_empty()
        twin.state = self.state
        twin._history = self._history.copy()
        return twin
