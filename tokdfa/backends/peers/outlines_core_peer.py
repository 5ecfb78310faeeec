r"""outlines-core (dottxt): the index automaton state x token -> state, complete before the first mask.

We use what its own integrations use: an `Index` of the pattern and a `Guide` over it, `write_mask_into` for masks and
`advance` without the list of tokens. What matters for a comparison:

- *Lost texts.* Two properties make outlines-core lose texts of a pattern. It matches by the leftmost-first rule: once
  an alternative matches, later ones are dropped, so ``a|ab`` loses ``ab``. And its automaton reports a match one byte
  late, which it does not take into account: a token that ends one byte after a complete text and is not complete itself
  is dropped, so ``a(bc)?`` loses ``b`` after ``a``. An end anchor (``\z``) cures both, but cannot stand in a pattern
  that also matches the empty text; there, a character is put in front, which the guide takes before the text begins.
  Whether a pattern loses anything is found by comparing the automaton that outlines-core makes for single bytes with
  ours. Patterns that do not go in plain, because the anchor can cost many states. With ``dialect="own"`` nothing is
  compared and texts are lost.
- *End token.* It knows one; we name the first and add the bits of the others. The guide never takes it.
- *Rollback.* A guide remembers 32 steps; matchers go back by starting anew.
- *Gaps.* If a token leads to a state that no token leaves, it refuses the vocabulary, even though other tokens would
  do; but tokens that only lead in circles, never to an end, it offers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tokdfa.automata.algebra import distinguishing_word
from tokdfa.automata.dfa import Dfa
from tokdfa.backends.base import CompiledConstraint, Option
from tokdfa.backends.peers.common import (
    DIALECT,
    PRIMER,
    FittedPattern,
    Peer,
    PeerMatcher,
    PerVocabulary,
    byte_language,
    require,
)
from tokdfa.constraint import Choice, Regex
from tokdfa.errors import TokdfaError, UnsupportedConstraint, VocabularyCannotSpell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: Mask words are written as elements of this many bytes.
_WORD_BYTES = 4


class OutlinesCorePeer(Peer):
    """See the module's docstring."""

    name: ClassVar[str] = "outlines_core"
    summary: ClassVar[str] = "index of all states and tokens, built in advance (outlines-core, dottxt)"
    kinds: ClassVar[tuple[str, ...]] = ("regex", "choice")
    packages: ClassVar[tuple[str, ...]] = ("outlines-core",)
    options: ClassVar[tuple[Option, ...]] = (DIALECT,)
    known_differences: ClassVar[dict[str, str]] = {
        "compiles_with_gaps": "refuses a vocabulary if one token leads where none goes on, although others would do",
        "no_dead_end_with_gaps": "offers tokens that lead in circles and never to the end of a text",
    }

    def __init__(self, vocab: Vocabulary, **options: Any) -> None:
        super().__init__(vocab, **options)
        self.module = require("outlines-core", "outlines_core")
        self.vocabulary, self.setup_seconds = _VOCABULARIES.get(vocab)

    def fit(self, pattern: str, constraint: Regex | Choice) -> FittedPattern:
        return _keep_texts(pattern, constraint)

    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        assert isinstance(constraint, Regex | Choice)
        return _Compiled(self, constraint, self.fitted_pattern(constraint))


@lru_cache(maxsize=256)
def _keep_texts(pattern: str, constraint: Regex | Choice) -> FittedPattern:
    """`pattern` as it is if outlines-core loses no text of it, else with an end anchor and, if need be, the primer.

    Costs an explicit automaton of the constraint and an index over 256 tokens.
    """
    primed = FittedPattern(f"{PRIMER}(?:{pattern})\\z", primed=True)
    wanted = byte_language(constraint)
    if wanted is None:
        return primed  # right in any case
    try:
        plain = _byte_automaton(require("outlines-core", "outlines_core"), pattern)
    except ValueError:
        return FittedPattern(pattern)  # compiling it says why
    if distinguishing_word(wanted, plain) is None:
        return FittedPattern(pattern)
    return primed if wanted.accepts(b"") else FittedPattern(f"(?:{pattern})\\z")


def _byte_automaton(module: Any, pattern: str) -> Dfa:
    """The automaton that outlines-core makes of `pattern`: its index over a vocabulary of single bytes."""
    end = 256
    index = module.Index(pattern, module.Vocabulary(end, {bytes([byte]): [byte] for byte in range(256)}))
    transitions = index.get_transitions()
    number = {state: place for place, state in enumerate(transitions)}
    number.setdefault(index.get_initial_state(), len(number))
    table = np.full((len(number), 256), -1, dtype=np.int32)
    for state, leaving in transitions.items():
        for byte, target in leaving.items():
            if byte != end:
                table[number[state], byte] = number[target]
    accepting = np.array([index.is_final_state(state) for state in number])
    return Dfa.from_table(table, accepting, number[index.get_initial_state()])


def _make_vocabulary(vocab: Vocabulary) -> Any:
    """outlines-core's vocabulary: the first end token, all tokens that spell something, and the primer."""
    module = require("outlines-core", "outlines_core")
    ids: dict[bytes, list[int]] = {PRIMER.encode(): [vocab.size]}
    for token in range(vocab.size):
        spelled = vocab.token_bytes(token)
        if spelled:
            ids.setdefault(spelled, []).append(token)
    return module.Vocabulary(vocab.end_tokens[0], ids)


_VOCABULARIES: PerVocabulary[Any] = PerVocabulary(_make_vocabulary)


class _Compiled(CompiledConstraint):
    """`index`: outlines-core's, shared by all guides."""

    def __init__(self, backend: OutlinesCorePeer, constraint: Constraint, fitted: FittedPattern) -> None:
        super().__init__(constraint, backend.vocab, backend.name)
        self._module, self._primed = backend.module, fitted.primed
        try:
            with self.phases.measure("index"):
                self.index = self._module.Index(fitted.pattern, backend.vocabulary)
        except ValueError as error:
            raise _translate_error(str(error), constraint.name, backend.vocab.name) from None

    def start(self, context: Sequence[int] = ()) -> _OutlinesCoreMatcher:
        """A matcher before the first token; `context` does not matter to this strategy."""
        return _OutlinesCoreMatcher(self)

    def start_guide(self) -> Any:
        """A guide before the first token of the text."""
        guide = self._module.Guide(self.index)
        if self._primed:
            guide.advance(self.vocab.size, False)
        return guide


def _translate_error(said: str, constraint: str, vocabulary: str) -> TokdfaError:
    if "incompatible" in said:
        return VocabularyCannotSpell(f"outlines-core cannot spell {constraint!r} with {vocabulary!r}: {said}")
    return UnsupportedConstraint(f"outlines-core cannot compile {constraint!r}: {said}")


class _OutlinesCoreMatcher(PeerMatcher):
    def __init__(self, compiled: _Compiled) -> None:
        super().__init__(compiled.vocab)
        self._compiled = compiled
        self._guide = compiled.start_guide()
        self._words = (self.vocab.size + 31) // 32
        self._other_ends = len(self.vocab.end_tokens) > 1
        #: The last word without the primer's bit, if that word has one.
        self._last_word = np.uint32(2 ** (self.vocab.size % 32) - 1).view(np.int32) if self.vocab.size % 32 else None

    def _fill(self, out: Mask) -> None:
        self._guide.write_mask_into(self.address(out), self._words, _WORD_BYTES)
        if self._last_word is not None:
            out[-1] &= self._last_word
        if self._other_ends and self._guide.is_finished():
            self.set_end_bits(out)

    def _take(self, token: int) -> bool:
        try:
            self._guide.advance(token, False)
        except ValueError:
            return False
        return True

    def _would_take(self, token: int) -> bool:
        return self._compiled.index.get_next_state(self._guide.get_state(), token) is not None

    def _accepts(self) -> bool:
        return bool(self._guide.is_finished())

    def _go_back(self, count: int) -> None:
        self._guide = self._compiled.start_guide()
        self._replay(self.taken[:-count])

    def _fork_peer(self) -> _OutlinesCoreMatcher:
        twin = _OutlinesCoreMatcher(self._compiled)
        twin._replay(self.taken)
        return twin

    def _replay(self, tokens: list[int]) -> None:
        for token in tokens:
            self._guide.advance(token, False)
        self.count_replayed(len(tokens))
