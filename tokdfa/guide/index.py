"""An index as outlines_core has it, over any of our backends that numbers all states in advance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from tokdfa.backends.base import StateMatcher
from tokdfa.backends.registry import create_backend
from tokdfa.backends.tokens_dfa.strategy import CompiledTokensDfa, TokensDfa
from tokdfa.constraint import Constraint, Regex
from tokdfa.guide.arguments import GuideError, GuideTypeError, as_guide_errors, as_integer
from tokdfa.guide.vocabulary import Vocabulary
from tokdfa.mask import allocate_mask, mask_to_ids
from tokdfa.vocabulary.tokenizers import Tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary as TokenVocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tokdfa.backends.base import Matcher

#: The state before the first token.
START = 0


@runtime_checkable
class StateTable(Protocol):
    """What an index needs of a compiled constraint: states 0 to ``sizes["states"] - 1``, 0 the start, all known."""

    sizes: dict[str, int]

    def start(self) -> Matcher:
        """A `StateMatcher`, whose `state` may be set to any state."""

    def accepts(self, state: int) -> bool:
        """Whether the text may end in `state`."""

    def step(self, state: int, token: int) -> int:
        """The state after `token`, an id of the vocabulary; negative if it is not allowed."""

    def transitions(self, state: int) -> dict[int, int]:
        """token -> state for the tokens that spell something."""


def start_in(compiled: StateTable, state: int) -> StateMatcher[int]:
    """A matcher in a state of a table."""
    matcher = compiled.start()
    assert isinstance(matcher, StateMatcher)
    matcher.state = state
    return matcher


class Index:
    """The table state x token -> state of a constraint. Immutable, shareable between threads and guides.

    `regex`: a pattern in the dialect of Python's `re`, or a `Constraint`; `vocabulary`: a `Vocabulary` of this package,
    a `tokdfa.Vocabulary` or a `Tokenizer`; `backend` and `options`: how to build it. Costs what the backend costs.
    Raises GuideError, caused by the backend's error, if the constraint cannot be compiled, and GuideError if the
    backend keeps no table of states; for an unknown backend or option what `create_backend` raises.

    Attributes: `compiled`, the backend's result with its `phases` and `sizes`; `vocabulary`, a `tokdfa.Vocabulary`.
    """

    __hash__: ClassVar[None]  # type: ignore[assignment]  # as in outlines_core

    def __init__(
        self,
        regex: str | Constraint,
        vocabulary: Vocabulary | TokenVocabulary | Tokenizer,
        *,
        backend: str = "tokens_dfa",
        **options: Any,
    ) -> None:
        if not isinstance(regex, str | Constraint):
            raise GuideTypeError(f"an index takes a pattern or a Constraint, not {type(regex).__name__}")
        self._constraint = Regex(regex) if isinstance(regex, str) else regex
        self._backend, self._options = backend, options
        self.vocabulary = _freeze(vocabulary)
        strategy = create_backend(backend, self.vocabulary, **options)
        with as_guide_errors():
            compiled: object = strategy.compile(self._constraint)
        if not isinstance(compiled, StateTable):
            chosen = ", ".join([repr(backend), *(f"{name}={value!r}" for name, value in options.items())])
            raise GuideError(f"the backend {chosen} keeps no table of states; use tokens_dfa or token_index")
        self._take(compiled)

    def _take(self, compiled: StateTable) -> None:
        self.compiled: StateTable = compiled
        self._states = compiled.sizes["states"]
        self._ends = self.vocabulary.end_token_set

    def save(self, path: str | Path) -> None:
        """Write the table to a file, for `load`. Only an index of the backend tokens_dfa can be saved (GuideError)."""
        if not isinstance(self.compiled, CompiledTokensDfa):
            raise GuideError(f"an index of the backend {self._backend!r} cannot be saved; tokens_dfa can")
        with as_guide_errors():
            self.compiled.save(path)

    @classmethod
    def load(cls, path: str | Path, vocabulary: Vocabulary | TokenVocabulary | Tokenizer) -> Index:
        """An index that `save` wrote. GuideError if the file is damaged, missing or for another vocabulary."""
        index = cls.__new__(cls)
        index.vocabulary = _freeze(vocabulary)
        with as_guide_errors():
            compiled = CompiledTokensDfa.load(path, index.vocabulary)
        index._constraint, index._backend, index._options = compiled.constraint, TokensDfa.name, compiled.settings
        index._take(compiled)
        return index

    def get_initial_state(self) -> int:
        """The state before the first token: 0."""
        return START

    def get_final_states(self) -> set[int]:
        """The states in which the text may end. O(states)."""
        return {state for state in range(self._states) if self.compiled.accepts(state)}

    def is_final_state(self, state: int) -> bool:
        """Whether the text may end in `state`; False for an unknown state."""
        number = as_integer(state, "a state")
        return 0 <= number < self._states and bool(self.compiled.accepts(number))

    def get_allowed_tokens(self, state: int) -> list[int] | None:
        """The tokens that may follow in `state`, ascending, end tokens included. None for an unknown state. O(V)."""
        number = as_integer(state, "a state")
        if not 0 <= number < self._states:
            return None
        mask = allocate_mask(self.vocabulary.size)
        start_in(self.compiled, number).fill_mask(mask)
        return mask_to_ids(mask).tolist()

    def get_next_state(self, state: int, token_id: int) -> int | None:
        """The state after a token. None if it is not allowed or an end token, or if state or token are unknown."""
        number, token = as_integer(state, "a state"), as_integer(token_id, "a token id")
        known = 0 <= number < self._states and 0 <= token < self.vocabulary.size
        if not known or token in self._ends:
            return None
        target = int(self.compiled.step(number, token))
        return None if target < 0 else target

    def get_transitions(self) -> dict[int, dict[int, int]]:
        """The whole table, state -> token -> state. A final state leads to itself by the end tokens. O(entries)."""
        table = {}
        for state in range(self._states):
            table[state] = self.compiled.transitions(state)
            if self.compiled.accepts(state):
                table[state].update(dict.fromkeys(self._ends, state))
        return table

    def __eq__(self, other: object) -> bool:
        """Equal tables, state by state: O(entries), at once if both were made of the same things."""
        if not isinstance(other, Index):
            return NotImplemented
        if (self.vocabulary.size, self._ends, self._states) != (other.vocabulary.size, other._ends, other._states):
            return False
        return self._made_of() == other._made_of() or self.get_transitions() == other.get_transitions()

    def _made_of(self) -> tuple[object, ...]:
        return self._constraint, self.vocabulary.fingerprint, self._backend, self._options

    def __repr__(self) -> str:
        return (
            f"Index({self._constraint.name!r}, {self._states} states, backend={self._backend!r}, "
            f"vocabulary={self.vocabulary.name!r})"
        )

    def __copy__(self) -> Index:
        return self

    def __deepcopy__(self, memo: object) -> Index:
        return self

    def __reduce__(self) -> tuple[Callable[..., Index], tuple[Any, ...]]:
        return _restore, (self._constraint, self.vocabulary, self._backend, self._options)


def _restore(constraint: Constraint, vocabulary: TokenVocabulary, backend: str, options: Mapping[str, Any]) -> Index:
    return Index(constraint, vocabulary, backend=backend, **options)


def _freeze(vocabulary: Vocabulary | TokenVocabulary | Tokenizer) -> TokenVocabulary:
    if isinstance(vocabulary, Vocabulary):
        return vocabulary.freeze()
    source: object = vocabulary.vocabulary if isinstance(vocabulary, Tokenizer) else vocabulary
    if isinstance(source, TokenVocabulary):
        return source
    raise GuideTypeError(f"an index takes a Vocabulary or a Tokenizer, not {type(source).__name__}")
