"""``proper=True`` around any strategy: its masks, less what the tokenizer itself would not make of the text.

`WithProper` is a backend with the options ``proper`` and, where it takes constraints that are no regular languages,
``lookahead``. The strategy compiles the constraint as ever; beside it stands an automaton of proper sequences
(`tokdfa.backends.proper_merge.cartesian_merge`), and matchers of both run side by side
(`tokdfa.backends.proper_filter`):

- for a regex, a choice, and a JSON schema with ``max_nesting``, the automaton is that of the constraint's own proper
  sequences, and the masks are exact;
- for a grammar and any other schema it is that of the proper sequences of all texts, and a token is allowed only if
  tokens that both allow go on from it for ``lookahead`` tokens, or to an end on the way.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal

from tokdfa import mask as masks
from tokdfa.backends.base import Backend, CompiledConstraint, Option, StateMatcher
from tokdfa.backends.matcher_texts import MatcherTexts
from tokdfa.backends.proper_filter import ProperFilter, proper_texts
from tokdfa.backends.proper_liveness import ProperLiveness
from tokdfa.backends.proper_merge.cartesian_merge import CONTEXT_TABLES, CartesianMerge, CartesianMergeMatcher
from tokdfa.constraint import Grammar, JsonSchema

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.backends.base import Matcher
    from tokdfa.backends.proper_merge.proper_states import ProperStates
    from tokdfa.backends.texts import Texts
    from tokdfa.constraint import Constraint

#: The options of `WithProper`; the second for strategies that take more than regular languages.
PROPER_OPTIONS = (
    Option("proper", bool, False, "allow only what the tokenizer itself would make of the text"),
    Option("lookahead", int, 8, "tokens looked ahead with proper grammars and schemas", minimum=1, maximum=64),
)


class WithProper(Backend):
    """A strategy whose tokens may be restricted to proper sequences. Subclasses write `_compile_plain`."""

    #: Whether it takes constraints that are no regular languages, so that it has the option ``lookahead``.
    looks_ahead: ClassVar[bool] = False
    #: Its options that bound the automaton of proper sequences, too.
    shared_limits: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.options = (*cls.options, *PROPER_OPTIONS[: 2 if cls.looks_ahead else 1])
        super().__init_subclass__()

    @property
    def token_language(self) -> Literal["all", "proper"]:
        return "proper" if self.settings["proper"] else "all"

    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        plain = self._compile_plain(constraint)
        if not self.settings["proper"]:
            return plain
        plain.working.budget = self._step_budget  # its steps are those of the whole
        # a bounded schema is a regular language, and `cartesian_merge` takes it: nothing is left to look ahead for
        bounded = isinstance(constraint, JsonSchema) and constraint.max_nesting is not None
        regular = bounded or not isinstance(constraint, Grammar | JsonSchema)
        with plain.phases.measure("proper"):
            if regular:
                limits = {name: self.settings[name] for name in self.shared_limits}
                proper: CompiledConstraint = CartesianMerge(self.vocab, **limits).compile(constraint)
            else:
                proper = proper_texts(self.vocab)
        return ProperConstraint(plain, proper, 0 if regular else self.settings["lookahead"])

    @abstractmethod
    def _compile_plain(self, constraint: Constraint) -> CompiledConstraint:
        """Compile a constraint that `supports` has accepted, with no regard to ``proper``."""


class ProperConstraint(CompiledConstraint):
    """What a strategy made of a constraint, and the automaton of proper sequences beside it."""

    def __init__(self, plain: CompiledConstraint, proper: CompiledConstraint, lookahead: int) -> None:
        super().__init__(plain.constraint, plain.vocab, plain.backend_name)
        self.plain, self.proper, self.phases, self.lookahead = plain, proper, plain.phases, lookahead
        self.dropped = plain.dropped
        self.sizes = {**plain.sizes, "bytes": plain.sizes["bytes"] + proper.sizes["bytes"]}
        self._liveness: Callable[[ProperStates, Texts | None], ProperLiveness]
        self._liveness = lru_cache(CONTEXT_TABLES + 1)(self._make_liveness)  # type: ignore[assignment]

    def _start(self, context: tuple[int, ...]) -> Matcher:
        """A matcher after the tokens `context`, which the first token must not merge with."""
        proper, text = self.proper._start(context), self.plain._start(())
        assert isinstance(proper, CartesianMergeMatcher)
        assert isinstance(text, StateMatcher)
        liveness = self._liveness(proper.states, text.texts()) if self.lookahead else None
        return ProperFilter(text, proper, self.lookahead, liveness)

    def _make_liveness(self, states: ProperStates, texts: Texts | None) -> ProperLiveness:
        """What matchers with the same states and texts share."""
        if texts is None:
            text = self.plain._start(())
            assert isinstance(text, StateMatcher)
            texts = MatcherTexts(text)
        return ProperLiveness(texts, states, self.lookahead)


def _warm_up() -> None:
    """Run every kernel of the filter once: a grammar whose pieces end nowhere but at its full stops."""
    from tokdfa.backends.registry import backend_class
    from tokdfa.proper.toy_tokenizers import toy_with_pieces

    vocab = toy_with_pieces().vocabulary
    mask = masks.allocate_mask(vocab.size)
    for name in ("earley_trie", "pushdown_trie"):
        matcher = backend_class(name)(vocab, proper=True).compile(Grammar('start: (/[ab]+/ ".")+')).start()
        for _ in range(3):
            matcher.fill_mask(mask)
            matcher.advance(int(masks.mask_to_ids(mask)[0]))
