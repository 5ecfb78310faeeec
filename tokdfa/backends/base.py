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

from tokdfa import budget
from tokdfa import mask as masks
from tokdfa.arguments import as_integer, as_token, as_tokens
from tokdfa.backends import pickling
from tokdfa.constraint import check_constraint
from tokdfa.errors import ArgumentError, OptionError, TokenRefused, UnknownNameError, UnsupportedConstraint
from tokdfa.mask import INT32
from tokdfa.vocabulary.vocabulary import as_vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.tokenizers import Tokenizer
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
        if self.kind is int and isinstance(value, np.integer):
            value = int(value)
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


#: Options of every backend whose work is ours: what a compile, and one mask or advance, may take (`tokdfa.budget`).
BUDGET_OPTIONS = (
    Option("compile_seconds", float, budget.COMPILE.seconds, "seconds of work that a compile may take", minimum=0),
    Option("compile_mb", float, budget.COMPILE.megabytes, "memory that a compile may keep", minimum=0),
    Option("step_seconds", float, budget.STEP.seconds, "seconds of work that a mask or advance may take", minimum=0),
    Option("step_mb", float, budget.STEP.megabytes, "memory that a mask or advance may keep", minimum=0),
)

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
    #: Whether its work counts towards budgets, so that it has BUDGET_OPTIONS; not where another library does the work.
    is_budgeted: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        if cls.is_budgeted:
            cls.options = (*(option for option in cls.options if option not in BUDGET_OPTIONS), *BUDGET_OPTIONS)

    def __init__(self, vocab: Vocabulary | Tokenizer, **options: Any) -> None:
        self.vocab: Vocabulary = as_vocabulary(vocab)
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
        if check_constraint(constraint).kind in self.kinds:
            return YES
        return Support(False, f"{self.name} takes {' and '.join(self.kinds)}, not {constraint.kind}")

    def compile(self, constraint: Constraint) -> CompiledConstraint:
        """Compile a constraint for this vocabulary.

        Raises UnsupportedConstraint, RegexSyntaxError, EmptyLanguageError, VocabularyCannotSpell or LimitExceeded;
        ArgumentError for what is no constraint.
        """
        answer = self.supports(check_constraint(constraint))
        if not answer:
            raise UnsupportedConstraint(answer.reason)
        with budget.spending(self._budget("compile"), f"compiling {constraint.kind} {constraint.name!r}"):
            compiled = self._compile(constraint)
        return self._finish(compiled)

    def _finish(self, compiled: CompiledConstraint) -> CompiledConstraint:
        """Note on what was compiled or loaded what made it, and what its steps may take."""
        compiled.made_by, compiled.step_budget = (type(self), self.settings), self._budget("step")
        return compiled

    def _budget(self, kind: Literal["compile", "step"]) -> budget.Budget:
        """What a compile or a step may take."""
        if not self.is_budgeted:
            return budget.Budget(float("inf"), float("inf"), kind)
        return budget.Budget(self.settings[f"{kind}_seconds"], self.settings[f"{kind}_mb"], kind)

    @abstractmethod
    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        """Compile a constraint that `supports` has accepted."""

    def _load_tables(self, tables: Any, constraint: Constraint) -> CompiledConstraint:
        """The compiled constraint whose `_save_tables` gave these tables."""
        raise NotImplementedError


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
    `step_budget`: what one mask or advance of its matchers may take. Subclasses write `_start`. Copies are the object
    itself; a pickle holds the constraint, the vocabulary, the options and, where the backend can save them, the tables
    (see `tokdfa.backends.pickling`).
    """

    step_budget: budget.Budget = budget.STEP
    #: The class and the options of the backend that compiled it; None if it was made in another way.
    made_by: tuple[type[Backend], Mapping[str, Any]] | None = None

    def __init__(self, constraint: Constraint, vocab: Vocabulary, backend_name: str) -> None:
        self.constraint, self.vocab, self.backend_name = constraint, vocab, backend_name
        self.phases = Phases()
        self.sizes: dict[str, int] = {}

    def __repr__(self) -> str:
        sizes = "".join(f", {count} {what}" for what, count in self.sizes.items())
        return f"<{self.backend_name}: {self.constraint.kind} {self.constraint.name!r} for {self.vocab!r}{sizes}>"

    def start(self, context: Sequence[int] = ()) -> Matcher:
        """A matcher before the first token. `context`: tokens before the constrained part (matter only to some).

        Raises ArgumentError or VocabularyError if `context` holds anything but token ids of the vocabulary, and what
        the strategy raises if nothing can follow it.
        """
        tokens = () if type(context) is tuple and not context else as_tokens(context, self.vocab.size, "context")
        matcher = self._start(tokens)
        matcher._origin = self, tokens
        return matcher

    def spending_step(self) -> budget.spending:
        """A step's budget, to be opened by ``with`` around whatever is not kept from an earlier step. 0.5 us."""
        return budget.spending(self.step_budget, f"a step of {self.backend_name}")

    @abstractmethod
    def _start(self, context: tuple[int, ...]) -> Matcher:
        """A matcher before the first token. `context`: ids of the vocabulary."""

    def _save_tables(self) -> Any:
        """What `Backend._load_tables` makes this object of, to be pickled; None if it is to be compiled again."""
        return None

    def __copy__(self) -> CompiledConstraint:
        return self

    def __deepcopy__(self, memo: object) -> CompiledConstraint:
        return self

    def __reduce__(self) -> tuple[Callable[..., CompiledConstraint], tuple[Any, ...]]:
        return pickling.reduce_compiled(self)


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
        #: The mask that was checked last. It still fits: nobody can resize an array that is referred to here.
        self._fitting: Mask = _NO_MASK
        #: What it was started from, and with which context.
        self._origin: tuple[CompiledConstraint, tuple[int, ...]] | None = None

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
        if out is not self._fitting:
            if type(out) is np.ndarray and out.dtype is INT32 and out.shape == self._shape and out.flags.carray:
                self._fitting = out
            else:
                out = masks.check_mask(out, self._size, name="out")
        self._fill_mask(out)

    def advance(self, token: int) -> None:
        """Append one token. A token whose bit is not set raises TokenRefused and leaves the matcher unchanged."""
        if type(token) is not int:
            token = as_token(token)
        if not 0 <= token < self._size:
            raise TokenRefused(token, f"the vocabulary has the ids 0 to {self._size - 1}")
        self._advance(token)
        self._tokens.append(token)

    def allows(self, token: int) -> bool:
        """Whether `token`'s bit is set, without filling a mask where the strategy can."""
        if type(token) is not int:
            token = as_token(token)
        return 0 <= token < self._size and self._allows(token)

    @abstractmethod
    def can_end(self) -> bool:
        """Whether the text so far is complete, so that an end token is allowed."""

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
        twin._origin = self._origin
        return twin

    @abstractmethod
    def _fill_mask(self, out: Mask) -> None:
        """Write the mask into a checked array."""

    @abstractmethod
    def _advance(self, token: int) -> None:
        """Take an id of the vocabulary, or raise TokenRefused and change nothing."""

    @abstractmethod
    def _allows(self, token: int) -> bool:
        """Whether an id of the vocabulary may come next."""

    @abstractmethod
    def _rollback(self, count: int) -> None:
        """Take back the last `count` tokens; there are as many, and at least one. `_tokens` holds them still."""

    @abstractmethod
    def _fork(self) -> Matcher:
        """A matcher of its own in the same state. `_tokens` is the caller's business."""

    def __copy__(self) -> Matcher:
        return self.fork()

    def __deepcopy__(self, memo: object) -> Matcher:
        return self.fork()

    def __reduce__(self) -> tuple[Callable[..., Matcher], tuple[Any, ...]]:
        return pickling.reduce_matcher(self)

    def forced_tokens(self, limit: int = 64) -> list[int]:
        """The tokens that must come next, one after another, up to `limit`: each is the only bit of its mask."""
        limit = as_integer(limit, "limit", 0)
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
        return self._forced_bytes(as_integer(limit, "limit", 0))

    def _forced_bytes(self, limit: int) -> bytes:
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

    def _fill_mask(self, out: Mask) -> None:
        if self.state is self._FINISHED:
            out.fill(0)
        else:
            self._fill(self.state, out)

    def _next(self, token: int) -> StateT | None:
        if self.state is self._FINISHED:
            return None
        if token in self.vocab.end_token_set:
            return self._FINISHED if self._accepts(self.state) else None
        return self._step(self.state, token)

    def _advance(self, token: int) -> None:
        following = self._next(token)
        if following is None:
            raise TokenRefused(token, self._why_refused(token))
        self._history.append(self.state)
        self.state = following

    def _why_refused(self, token: int) -> str:
        if self.state is self._FINISHED:
            return "an end token has been taken already; rollback(1) reopens the text"
        if token in self.vocab.end_token_set:
            return "it is an end token and the text is not complete here"
        spelled = self.vocab.token_bytes(token)
        return f"its bytes {spelled!r} cannot come next" if spelled else "it spells no text"

    def _allows(self, token: int) -> bool:
        return self._next(token) is not None

    def can_end(self) -> bool:
        return self.state is not self._FINISHED and self._accepts(self.state)

    def is_finished(self) -> bool:
        return self.state is self._FINISHED

    def _rollback(self, count: int) -> None:
        self.state = self._history[-count]
        del self._history[-count:]

    def _fork(self) -> StateMatcher[StateT]:
        twin = self._fork_empty()
        twin.state = self.state
        twin._history = self._history.copy()
        return twin
