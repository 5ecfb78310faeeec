"""The mask interface: what every strategy, ours or a peer's, looks like from outside.

Words. A *backend* is a strategy bound to a vocabulary and to options. It *compiles* a constraint. A *matcher* is the
state of one generated sequence: it fills a *mask* (the set of tokens that may come next, packed as in `tokdfa.mask`)
and *advances* by one token.

What is inside the mask: token i's bit is set iff i's bytes can be appended and the text can still be completed with
tokens of the vocabulary (no dead ends). The bits of the end tokens are set iff the text may end here. Tokens that spell
nothing (special, control and padding tokens) are never set. After an end token the matcher is finished: its mask holds
the end tokens, which `advance` accepts without effect, so that no row of logits is all minus infinity.
`tokdfa.backends.laws.contract` states these laws as functions and runs them on every backend.

Options are in `tokdfa.backends.options`, matchers in `matcher` and `state_matcher` beside it; their names may be
imported from here.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from weakref import WeakKeyDictionary

from tokdfa.backends.matcher import Matcher
from tokdfa.backends.options import BUDGET_OPTIONS, NO_TOKENIZER, YES, Option, Support
from tokdfa.backends.state_matcher import StateMatcher
from tokdfa.constraint import check_constraint
from tokdfa.core import budget, notices
from tokdfa.core.arguments import as_integer, as_tokens
from tokdfa.core.nesting import ROOM, with_room
from tokdfa.core.refusals import Costs, Refusals
from tokdfa.errors import LimitExceeded, TokdfaError, UnknownNameError, UnsupportedConstraint, listed
from tokdfa.vocabulary.tokenizers import as_vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tokdfa.backends.shortest_ends import ShortestEnds
    from tokdfa.constraint import Constraint
    from tokdfa.grammar.cfg import OpenNames
    from tokdfa.json_schema.read.document import Dropped
    from tokdfa.json_schema.solve.unique_items import Location
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

__all__ = [
    "BUDGET_OPTIONS",
    "NO_TOKENIZER",
    "YES",
    "Backend",
    "CompiledConstraint",
    "Matcher",
    "Option",
    "Phases",
    "StateMatcher",
    "Support",
]


class Backend(ABC):
    """A strategy, bound to a vocabulary and to options. Subclasses set `name`, `options`, `kinds` and write `_compile`.

    Class attributes: `summary` (one line), `kinds` (constraint kinds it can take), `packages` (pip packages it needs
    beyond tokdfa's own), `known_differences` (names of laws that it is declared to break, each with the reason;
    `tokdfa.backends.laws.contract` tests them as such), `own_readings` (kinds of which it has a reading of its own, so
    that its language, and with it its masks, may differ from ours).
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]
    options: ClassVar[tuple[Option, ...]] = ()
    packages: ClassVar[tuple[str, ...]] = ()
    known_differences: ClassVar[Mapping[str, str]] = {}
    own_readings: ClassVar[tuple[str, ...]] = ()
    #: Whether it allows only what the tokenizer itself would give; see `token_language`.
    is_proper: ClassVar[bool] = False
    #: Whether its work counts towards budgets, so that it has BUDGET_OPTIONS; not where another library does the work.
    is_budgeted: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        if cls.is_budgeted:
            cls.options = (*(option for option in cls.options if option not in BUDGET_OPTIONS), *BUDGET_OPTIONS)

    def __init__(self, vocab: Vocabulary | Tokenizer, **options: Any) -> None:
        self.vocab: Vocabulary = as_vocabulary(vocab)
        known, defaults = _options_of(type(self))
        self.settings: dict[str, Any] = defaults.copy()
        for name, value in options.items():
            if name not in known:
                raise UnknownNameError(f"option of backend {self.name}", name, known)
            self.settings[name] = known[name].check(value)
        self.compile_budget, self.step_budget = self._budget("compile"), self._budget("step")
        #: The options that were given and bound no work.
        self._unlimited = tuple(
            [(name, str(self.settings[name])) for name in sorted(options) if known[name] not in BUDGET_OPTIONS]
        )

    def __repr__(self) -> str:
        defaults = {option.name: option.default for option in self.options}
        changed = "".join(f", {name}={value!r}" for name, value in self.settings.items() if value != defaults[name])
        return f"{type(self).__name__}({self.vocab!r}{changed})"

    @property
    def token_language(self) -> Literal["all", "proper", "forced"]:
        """Which spellings of a text are allowed: all of them, only the one that the tokenizer itself would give, or
        that one where the text is determined and all of them elsewhere.
        """
        return "proper" if self.is_proper else "all"

    def supports(self, constraint: Constraint) -> Support:
        """Yes, or no with the reason. Cheap: looks at the constraint's kind; subclasses may look closer."""
        if self.vocab.tokenizer is None and self.token_language == "proper":
            return NO_TOKENIZER
        if check_constraint(constraint).kind in self.kinds:
            return YES
        return Support(False, f"{self.name} takes {listed(self.kinds)}, not {constraint.kind}")

    def compile(self, constraint: Constraint) -> CompiledConstraint:
        """Compile a constraint for this vocabulary.

        Raises UnsupportedConstraint, RegexSyntaxError, EmptyLanguageError, VocabularyCannotSpell or LimitExceeded;
        ArgumentError for what is no constraint.
        """
        answer = self.supports(constraint)
        if not answer.supported:
            raise UnsupportedConstraint(answer.reason)
        costs, key = _costs_of(self.vocab), (type(self), self._unlimited, constraint)

        def compile_once() -> tuple[CompiledConstraint, tuple[Any, ...]]:
            with (
                notices.collecting() as found,
                budget.spending(self.compile_budget, lambda: f"compiling {constraint.kind} {constraint.name!r}"),
            ):
                account = budget.ruling()
                if account is None or account.work_done:  # what is compiled is a part of something
                    return self._compile(constraint), tuple(found)
                costs.check(key, account)
                try:
                    compiled = self._compile(constraint)
                except LimitExceeded as error:
                    costs.refused(key, account, error)
                    raise
                costs.done(key, account)
            return compiled, tuple(found)

        is_first = notices.is_outermost()
        try:
            compiled, found = with_room(compile_once)
        except RecursionError:  # no limit of its own has stopped it
            raise LimitExceeded(
                f"{constraint.kind} {constraint.name!r} is nested too deep: reading it takes more than {ROOM} calls"
                " inside each other",
                limit="nesting",
                value=ROOM,
            ) from None
        if found:
            compiled.warnings = found
            if is_first:
                notices.warn_of(found)
        return self.finish(compiled)

    def prepare(self, kind: str) -> None:  # noqa: B027 - most share nothing
        """Make now what most constraints of a kind share of the vocabulary. Without, each part is made when it is first
        needed. By default there is nothing to make.
        """

    def finish(self, compiled: CompiledConstraint) -> CompiledConstraint:
        """Note on what was compiled or loaded what made it, and what its steps may take."""
        compiled.made_by, compiled.working.budget = (type(self), self.settings), self.step_budget
        return compiled

    def _budget(self, kind: Literal["compile", "step"]) -> budget.Budget:
        """What a compile or a step may take."""
        if not self.is_budgeted:
            return budget_of(float("inf"), float("inf"), kind)
        return budget_of(self.settings[f"{kind}_seconds"], self.settings[f"{kind}_mb"], kind)

    @abstractmethod
    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        """Compile a constraint that `supports` has accepted."""

    def _load_tables(self, tables: Any, constraint: Constraint) -> CompiledConstraint:
        """The compiled constraint whose `_save_tables` gave these tables."""
        raise NotImplementedError


@cache
def _options_of(backend: type[Backend]) -> tuple[dict[str, Option], dict[str, Any]]:
    """The options of a strategy by name, and their defaults."""
    known = {option.name: option for option in backend.options}
    return known, {name: option.default for name, option in known.items()}


_costs: WeakKeyDictionary[Vocabulary, Costs] = WeakKeyDictionary()


def _costs_of(vocab: Vocabulary) -> Costs:
    """What compiles for a vocabulary took, kept with it."""
    found = _costs.get(vocab)
    return _costs.setdefault(vocab, Costs()) if found is None else found


#: The budget of some limits; nearly all compiles have the same.
budget_of = lru_cache(64)(budget.Budget)


class Phases(dict[str, float]):
    """Seconds per named compile phase, in order: ``with phases.measure("parse"): ...``."""

    def measure(self, name: str) -> AbstractContextManager[None]:
        """What the block of a ``with`` takes is added to a phase."""
        return _Measured(self, name)

    def add(self, name: str, began: int) -> None:
        """Add to a phase what has passed since `time.perf_counter_ns` was `began`: a quarter of the calls."""
        self[name] = self.get(name, 0.0) + (time.perf_counter_ns() - began) * 1e-9


class _Measured(AbstractContextManager[None]):
    """One block; 1 µs, a third of what a generator takes."""

    __slots__ = ("_name", "_phases", "_started")

    def __init__(self, phases: Phases, name: str) -> None:
        self._phases, self._name = phases, name

    def __enter__(self) -> None:
        self._started = time.perf_counter_ns()

    def __exit__(self, *error: object) -> None:
        self._phases.add(self._name, self._started)


class CompiledConstraint(ABC):
    """A constraint compiled for one vocabulary: immutable to its users, shareable between threads.

    `phases`: seconds per named compile phase. `sizes`: what was built (``states``, ``transitions``, ``bytes`` ...).
    `working`: the budget of one mask or advance, to be opened by ``with``, under the lock of the strategy, around what
    is not kept from an earlier step. Subclasses write `_start`.

    Copies are the object itself; a pickle holds the constraint, the vocabulary, the options and, where the backend can
    save them, the tables; what has no tables is compiled again. A process that has the vocabulary shares it, and all
    that is kept for it.
    """

    #: Keywords of a JSON schema that are not enforced; none unless the constraint is `lenient`.
    dropped: tuple[Dropped, ...] = ()
    #: Of a schema whose objects have no name twice: the names that the strategy does not remember, and a matcher must
    #: (`tokdfa.backends.unique_items`).
    open_names: OpenNames = "none"
    #: Whether there may be more of them, as code is written later.
    may_open_names: bool = False
    #: Where a matcher must remember items that must differ.
    locations: Sequence[Location] = ()
    #: Keywords of a JSON schema that mean nothing, and were probably meant to (`tokdfa.json_schema.read.suspects`).
    warnings: tuple[Any, ...] = ()
    #: The class and the options of the backend that compiled it; None if it was made in another way.
    made_by: tuple[type[Backend], Mapping[str, Any]] | None = None

    def __init__(self, constraint: Constraint, vocab: Vocabulary, backend_name: str) -> None:
        self.constraint, self.vocab, self.backend_name = constraint, vocab, backend_name
        self.working = budget.spending(budget.STEP, f"a step of {backend_name}")
        self.phases = Phases()
        self.sizes: dict[str, int] = {}
        #: Steps that were refused.
        self.refusals = Refusals()
        self.ends: dict[Any, ShortestEnds] = {}

    def __repr__(self) -> str:
        sizes = "".join(f", {count} {what}" for what, count in self.sizes.items())
        return f"<{self.backend_name}: {self.constraint.kind} {self.constraint.name!r} for {self.vocab!r}{sizes}>"

    def start(self, context: Sequence[int] = (), max_tokens: int | None = None) -> Matcher:
        """A matcher before the first token. `context`: tokens before the constrained part (matter only to some).

        `max_tokens`: with it every text ends within so many tokens, an end token not counted: masks leave out what
        cannot be closed in time (`tokdfa.backends.max_tokens`).

        Raises ArgumentError or VocabularyError if `context` holds anything but token ids of the vocabulary,
        ArgumentError if no text has as few as `max_tokens` tokens, and what the strategy raises if nothing can follow
        the context.
        """
        tokens = () if type(context) is tuple and not context else as_tokens(context, self.vocab.size, "context")
        matcher = self._start(tokens)
        matcher.origin, matcher.refusals = (self, tokens), self.refusals
        if max_tokens is None:
            return matcher
        from tokdfa.backends.max_tokens import EndingMatcher

        ending = EndingMatcher.start(self, matcher, as_integer(max_tokens, "max_tokens", 0))
        ending.origin, ending.refusals = matcher.origin, self.refusals
        return ending

    def shortest_completion(self, matcher: Matcher) -> list[int]:
        """The fewest tokens to an end from where one of its matchers is: see `Matcher.shortest_completion`."""
        from tokdfa.backends.max_tokens import shortest_path

        with budget.spending(self.working.budget, self.working.what):  # `working` is for one thread at a time
            return shortest_path(self, matcher)

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
        if self.made_by is None:
            raise TokdfaError(f"{self!r} was not made by `Backend.compile`, so a pickle cannot make it again")
        backend, settings = self.made_by
        return _restore, (backend, self.constraint, self.vocab, dict(settings), self._save_tables())


def _restore(
    backend: type[Backend], constraint: Constraint, vocab: Vocabulary, settings: Mapping[str, Any], tables: Any
) -> CompiledConstraint:
    strategy = backend(vocab, **settings)
    if tables is None:
        return strategy.compile(constraint)
    return strategy.finish(strategy._load_tables(tables, constraint))
