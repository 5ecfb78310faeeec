"""What all peers share: importing their package, objects kept per vocabulary, patterns that fit, errors."""

from __future__ import annotations

import time
from array import array
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from tokdfa.backends.base import YES, Backend, Option, Support
from tokdfa.backends.peers.rust_regex import choice_pattern, exact_pattern, own_pattern
from tokdfa.constraint import Choice, JsonSchema, Regex
from tokdfa.core.locks import new_lock
from tokdfa.core.packages import import_library
from tokdfa.errors import (
    EmptyLanguageError,
    LimitExceeded,
    OptionError,
    RegexSyntaxError,
    TokdfaError,
    UnsupportedConstraint,
    VocabularyError,
)
from tokdfa.mask import mask_words
from tokdfa.regex.compile import compile_dfa

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator
    from contextlib import AbstractContextManager
    from typing import ClassVar

    from tokdfa.automata.dfa import Dfa
    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary

T = TypeVar("T")

DIALECT = Option(
    "dialect",
    str,
    "tokdfa",
    "tokdfa: rewrite a regex so that its language is exactly ours; own: pass it on as written",
    choices=("tokdfa", "own"),
)

#: What differs in a peer that does not look whether the vocabulary can spell what remains.
GAPS = {
    "compiles_with_gaps": "compiles although the vocabulary cannot spell any text of the language",
    "no_dead_end_with_gaps": "looks at bytes only, so it offers tokens after which the vocabulary cannot go on",
}
#: A noncharacter of Unicode. A matcher whose pattern is primed takes it before the text.
PRIMER = "\U0010ffff"


class FittedPattern(NamedTuple):
    """A Rust regex as one peer can take it without error. `primed`: it begins with `PRIMER`."""

    pattern: str
    primed: bool = False


@lru_cache(maxsize=64)
def byte_language(constraint: Constraint) -> Dfa | None:
    """The minimal automaton of a Regex or Choice, None if it is too large to be made in advance."""
    try:
        return compile_dfa(constraint)
    except LimitExceeded:
        return None


def require(module: str) -> Any:
    """The peer's module; MissingDependency with the command that installs its package if there is none."""
    return import_library(module, f"the backend {module}")


@contextmanager
def _turned(refusal: Callable[[BaseException, str], TokdfaError]) -> Iterator[None]:
    """Raise `refusal` of an error that is not ours and of what it says.

    A panic of Rust code is caught too, although pyo3 derives it from BaseException.
    """
    try:
        yield
    except (TokdfaError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise refusal(error, first_lines(error) or type(error).__name__) from None


def own_errors(package: str, constraint: Constraint, limit_words: tuple[str, ...] = ()) -> AbstractContextManager[None]:
    """Turns whatever `package` raises inside into an error of ours that quotes it.

    LimitExceeded for an exhausted memory or stack and for messages with one of `limit_words`, else
    UnsupportedConstraint.
    """

    def refusal(error: BaseException, said: str) -> TokdfaError:
        if isinstance(error, MemoryError | RecursionError) or any(word in said for word in limit_words):
            return limit_exceeded(package, constraint, said)
        return UnsupportedConstraint(f"{package} cannot compile {constraint.name!r}: {said}")

    return _turned(refusal)


def limit_exceeded(package: str, constraint: Constraint, said: str) -> LimitExceeded:
    """A peer has run into a limit of its own. The value is unknown to us."""
    return LimitExceeded(f"{package} gave up on {constraint.name!r}: {said}", limit=package, value=float("nan"))


class PerVocabulary(Generic[T]):
    """Objects of `package` made once for a vocabulary and a key, kept as long as the vocabulary lives. Thread-safe."""

    def __init__(self, package: str, make: Callable[..., T]) -> None:
        self._package, self._make = package, make
        self._kept: WeakKeyDictionary[Vocabulary, dict[Hashable, tuple[T, float]]] = WeakKeyDictionary()
        self._lock = new_lock()

    def get(self, vocab: Vocabulary, *key: Hashable) -> tuple[T, float]:
        """The object ``make(vocab, *key)`` and the seconds that making it took, at the first time.

        Raises VocabularyError if the package cannot take the vocabulary.
        """
        with self._lock:
            of_vocab = self._kept.setdefault(vocab, {})
            if key not in of_vocab:
                started = time.perf_counter()
                with _turned(lambda _, said: VocabularyError(f"{self._package} cannot take {vocab!r}: {said}")):
                    made = self._make(vocab, *key)
                of_vocab[key] = made, time.perf_counter() - started
            return of_vocab[key]


def _promises_names(constraint: JsonSchema) -> bool:
    """Whether it asks by itself, and not by its profile, for objects without equal names."""
    return constraint.duplicates == "refused" and constraint.profile != "generation"


class Peer(Backend):
    """A backend that passes regexes and choices on as Rust regexes (see `rust_regex`).

    None of them remembers undeclared names, and what a declared name is differs: ``duplicates="refused"`` of a
    JsonSchema, which promises something of every text, is refused, and so is ``asserts="all"``. Where the profile
    ``generation`` brings it along, it counts as little as the rest of the profile: how texts are written is the peer's.

    `setup_seconds`: what building the peer's objects for the vocabulary took, when they were built.
    """

    packages: ClassVar[tuple[str, ...]]
    own_readings: ClassVar[tuple[str, ...]] = ("grammar", "json_schema")
    is_budgeted: ClassVar[bool] = False
    setup_seconds: float

    def supports(self, constraint: Constraint) -> Support:
        """Looks at the constraint's kind and, for regexes, at the pattern; its translation is kept for `compile`."""
        answer = super().supports(constraint)
        if answer and isinstance(constraint, JsonSchema) and _promises_names(constraint):
            return Support(
                False, f"{self.name} does not promise that no name comes twice: duplicates must be 'declared'"
            )
        if answer and isinstance(constraint, JsonSchema) and constraint.asserts == "all":
            return Support(False, f"{self.name} does not promise it: asserts must be 'formats' or 'required'")
        if answer and isinstance(constraint, JsonSchema) and constraint.registry:
            return Support(False, f"{self.name} is given one document: put those of registry into $defs")
        if answer and isinstance(constraint, Regex | Choice):
            try:
                self.fitted_pattern(constraint)
            except UnsupportedConstraint as error:
                return Support(False, f"{self.name}: {error}")
            except (RegexSyntaxError, EmptyLanguageError, OptionError):
                return YES  # a fault of the constraint, which `compile` reports as such
        return answer

    def fitted_pattern(self, constraint: Regex | Choice) -> FittedPattern:
        """What the peer gets instead of a regex or a choice. Raises what `rust_regex` raises."""
        if isinstance(constraint, Choice):
            return self.fit(choice_pattern(constraint), constraint)
        if self.settings["dialect"] == "own":
            return FittedPattern(own_pattern(constraint))
        return self.fit(exact_pattern(constraint), constraint)

    def fit(self, pattern: str, constraint: Regex | Choice) -> FittedPattern:
        """Work around what the peer gets wrong in `pattern`, the exact form of `constraint`."""
        return FittedPattern(pattern)


def first_lines(message: Any, limit: int = 400) -> str:
    """What a peer says, without the dump of its state that may follow."""
    return str(message).split("<state>")[0].strip()[:limit]


def pack_tokens(tokens: list[int], size: int) -> Mask:
    """The mask with these tokens: 20 ns a token, most of it for reading Python's integers.

    An `array` reads them in a third of the time that NumPy takes.
    """
    bits = np.zeros(32 * mask_words(size), dtype=np.bool_)
    bits[np.frombuffer(array("i", tokens), dtype=np.intc)] = True
    return np.packbits(bits, bitorder="little").view("<i4").astype(np.int32, copy=False)
