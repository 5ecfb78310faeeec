"""``proper=True`` around any strategy: its masks, less what the tokenizer itself would not make of the text.

`WithProper` is a backend with the options ``proper`` and, where it takes constraints that are no regular languages,
``lookahead``. The strategy compiles the constraint as ever; beside it stands an automaton of proper sequences
(`tokdfa.backends.proper_merge.cartesian_merge`), and matchers of both run side by side (`ProperFilter`):

- for a regex, a choice, and a JSON schema with ``max_nesting``, the automaton is that of the constraint's own proper
  sequences, whose masks hold live tokens only, so what both allow is exact;
- for a grammar and any other schema it is that of the proper sequences of all texts, and a token is allowed only if
  tokens that both allow go on from it for ``lookahead`` tokens, or to an end on the way. A dead end that is further
  away is not seen: with a look-ahead of one token, Llama 3's " DE" looks like a beginning of SQL's DELETE, though no
  proper sequence gets from it to the end of that word. For a tokenizer without pre-tokenizer (Mistral v1) masks are
  exact: a token is allowed iff a proper sequence goes on from it to an end, and LimitExceeded says so where
  ``lookahead`` tokens do not decide that. `tokdfa.backends.proper_liveness` decides for all tokens at once, and says
  what that costs.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.base import Backend, CompiledConstraint, Option, StateMatcher
from tokdfa.constraint import Grammar, JsonSchema, Regex
from tokdfa.errors import UnsupportedConstraint

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from tokdfa.backends.base import Matcher
    from tokdfa.backends.proper_liveness import ProperLiveness
    from tokdfa.backends.proper_merge.cartesian_merge import CartesianMergeMatcher, CompiledCartesianMerge
    from tokdfa.backends.proper_merge.proper_states import ProperStates
    from tokdfa.backends.situation_source import SituationSource
    from tokdfa.constraint import Constraint
    from tokdfa.grammar.cfg import OpenNames
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

    Int32 = npt.NDArray[np.int32]

#: The options of `WithProper`; the second for strategies that take more than regular languages.
PROPER_OPTIONS = (
    Option("proper", bool, False, "allow only what the tokenizer itself would make of the text"),
    Option("lookahead", int, 8, "tokens looked ahead with proper grammars and schemas", minimum=1, maximum=64),
)


#: For how many vocabularies the proper sequences of any text are kept.
KEPT_VOCABULARIES = 4


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
        if self.settings["proper"] and isinstance(constraint, Grammar):
            _check_no_special_tokens(constraint)
        plain = self._compile_plain(constraint)
        if not self.settings["proper"]:
            return remembering(plain)
        from tokdfa.backends.proper_merge.cartesian_merge import CartesianMerge  # much, and seldom used
        from tokdfa.backends.proper_merge.unchanged import check_parts_unchanged

        plain.working.budget = self.step_budget  # its steps are those of the whole
        # a bounded schema is a regular language, and `cartesian_merge` takes it: nothing is left to look ahead for
        bounded = isinstance(constraint, JsonSchema) and constraint.max_nesting is not None
        regular = bounded or not isinstance(constraint, Grammar | JsonSchema)
        to_an_end = False
        with plain.phases.measure("proper"):
            if regular:
                limits = {name: self.settings[name] for name in self.shared_limits}
                # names are remembered beside both
                texts = constraint.changed(duplicates="declared") if isinstance(constraint, JsonSchema) else constraint
                proper: CompiledConstraint = CartesianMerge(self.vocab, **limits).compile(texts)
            else:
                assert isinstance(constraint, Grammar | JsonSchema)
                assert self.vocab.tokenizer is not None  # `supports` has asked
                check_parts_unchanged(constraint, self.vocab.tokenizer)
                to_an_end = goes_on_to_an_end(self.vocab.tokenizer, constraint)
                proper = proper_texts(self.vocab)
        lookahead = 0 if regular else self.settings["lookahead"]
        return remembering(ProperConstraint(plain, proper, lookahead, to_an_end), is_proper=True)

    @abstractmethod
    def _compile_plain(self, constraint: Constraint) -> CompiledConstraint:
        """Compile a constraint that `supports` has accepted, with no regard to ``proper``."""


def remembering(compiled: CompiledConstraint, is_proper: bool = False) -> CompiledConstraint:
    """What a strategy made, with what it does not remember beside it (`tokdfa.backends.unique_items`), if anything."""
    constraint = compiled.constraint
    is_distinct = isinstance(constraint, JsonSchema) and constraint.duplicates == "refused"
    if not compiled.locations and not (is_distinct and (compiled.may_open_names or compiled.open_names != "none")):
        return compiled
    from tokdfa.backends.unique_items import UniqueItems

    return UniqueItems(compiled, compiled.locations, is_proper)


class ProperConstraint(CompiledConstraint):
    """What a strategy made of a constraint, and the automaton of proper sequences beside it."""

    def __init__(self, plain: CompiledConstraint, proper: CompiledConstraint, lookahead: int, to_an_end: bool) -> None:
        from tokdfa.backends.proper_merge.cartesian_merge import CONTEXT_TABLES

        super().__init__(plain.constraint, plain.vocab, plain.backend_name)
        self.plain, self.proper, self.phases = plain, proper, plain.phases
        self.lookahead, self.to_an_end = lookahead, to_an_end
        self.dropped, self.may_open_names = plain.dropped, plain.may_open_names
        self.sizes = {**plain.sizes, "bytes": plain.sizes["bytes"] + proper.sizes["bytes"]}
        self._liveness: Callable[[ProperStates, SituationSource | None], ProperLiveness]
        self._liveness = lru_cache(CONTEXT_TABLES + 1)(self._make_liveness)  # type: ignore[assignment]

    @property
    def open_names(self) -> OpenNames:  # type: ignore[override]
        """Those of the strategy."""
        return self.plain.open_names

    def _start(self, context: tuple[int, ...]) -> Matcher:
        """A matcher after the tokens `context`, which the first token must not merge with."""
        from tokdfa.backends.proper_merge.cartesian_merge import CartesianMergeMatcher

        proper, text = self.proper._start(context), self.plain._start(())
        assert isinstance(proper, CartesianMergeMatcher)
        assert isinstance(text, StateMatcher)
        liveness = self._liveness(proper.states, text.situation_source()) if self.lookahead else None
        return ProperFilter(text, proper, liveness)

    def _make_liveness(self, states: ProperStates, texts: SituationSource | None) -> ProperLiveness:
        """What matchers with the same states and texts share."""
        from tokdfa.backends.matcher_situations import MatcherSituations
        from tokdfa.backends.proper_liveness import ProperLiveness

        if texts is None:
            text = self.plain._start(())
            assert isinstance(text, StateMatcher)
            texts = MatcherSituations(text)
        return ProperLiveness(texts, states, self.lookahead, to_an_end=self.to_an_end)


class ProperFilter(StateMatcher[tuple[Any, Any]]):
    """What two matchers allow, the second of which allows proper sequences only; a state is one of each.

    `liveness`: what the matchers of one compiled constraint share if there is a look-ahead.
    """

    def __init__(
        self, text: StateMatcher[Any], proper: CartesianMergeMatcher, liveness: ProperLiveness | None = None
    ) -> None:
        super().__init__(text.vocab, (text.state, proper.state))
        self._text, self._proper, self._liveness = text, proper, liveness
        self._scratch = masks.allocate_mask(self.vocab.size)

    def _step(self, state: tuple[Any, Any], token: int) -> tuple[Any, Any] | None:
        text = self._text._step(state[0], token)
        proper = None if text is None else self._proper._step(state[1], token)
        if proper is None or not (
            self._liveness is None or self._liveness.goes_on(self._liveness.texts.number(text), proper)
        ):
            return None
        return text, proper

    def _accepts(self, state: tuple[Any, Any]) -> bool:
        return self._text._accepts(state[0]) and self._proper._accepts(state[1])

    def _fill(self, state: tuple[Any, Any], out: Mask) -> None:
        if self._liveness is not None:
            self._liveness.fill(self._liveness.texts.number(state[0]), state[1], out)
            return
        self._text._fill(state[0], out)
        self._proper._fill(state[1], self._scratch)
        np.bitwise_and(out, self._scratch, out=out)

    def _fork_empty(self) -> ProperFilter:
        return ProperFilter(self._text, self._proper, self._liveness)


def _check_no_special_tokens(grammar: Grammar) -> None:
    """Raises UnsupportedConstraint: the automaton of proper sequences has no special tokens."""
    from tokdfa.grammar.cfg import SpecialTokens
    from tokdfa.grammar.lark_reader import read_grammar

    special = next((one for one in read_grammar(grammar).lexemes if isinstance(one, SpecialTokens)), None)
    if special is not None:
        raise UnsupportedConstraint(
            f"the grammar has the special token {special.name}, and proper sequences are those of texts; leave "
            "proper=True out, or write it as text"
        )


def goes_on_to_an_end(tokenizer: Tokenizer, constraint: Grammar | JsonSchema) -> bool:
    """Whether texts are one piece each and masks can be exact (see `tokdfa.backends.proper_liveness`).

    Raises UnsupportedConstraint for a tokenizer without pre-tokenizer for which they cannot.
    """
    from tokdfa.backends.proper_merge.spellable import spells_all_characters
    from tokdfa.proper.piece_borders import load_marked_dfa
    from tokdfa.proper.rules_cache import load_canonicity

    marked, canonicity = load_marked_dfa(tokenizer), load_canonicity(tokenizer)
    if marked is not None and (marked.marker >= 0).any():
        return False
    if canonicity.whole_piece_encodings or not spells_all_characters(canonicity):
        reason = "and lacks letters or looks whole texts up"
    elif "\u2581" in constraint.text or "2581" in constraint.text:
        reason = "and the constraint names U+2581, which no encoding may give back"
    else:
        return True
    if marked is not None:
        return False
    raise UnsupportedConstraint(
        f"{tokenizer.name} has no pre-tokenizer, {reason}: proper sequences of a context-free constraint are refused; "
        "turn it into a regex, bound a schema by max_nesting, or use another tokenizer"
    )


@lru_cache(KEPT_VOCABULARIES)
def proper_texts(vocab: Vocabulary) -> CompiledCartesianMerge:
    """The proper sequences of any text that normalizers leave as it is, compiled: 0.1 to 1 s, and kept, with all that
    is learned about them.

    The vocabulary must have its tokenizer. Raises TokenizerError for a tokenizer that does not merge, and
    UnsupportedConstraint for one with isolated tokens, whose texts are cut out before anything merges.
    """
    from tokdfa.backends.proper_merge.cartesian_merge import CartesianMerge, CompiledCartesianMerge
    from tokdfa.proper.normalizers import stable_pattern

    normalizers = vocab.tokenizer.merges.normalizers
    pattern = stable_pattern(normalizers) if normalizers else r"[\s\S]*"
    compiled = CartesianMerge(vocab).compile(Regex(pattern, label="any text"))
    assert isinstance(compiled, CompiledCartesianMerge)
    return compiled
