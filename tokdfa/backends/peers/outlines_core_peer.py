r"""outlines-core (dottxt): the index automaton state x token -> state, complete before the first mask.

We use what its own integrations use: an `Index` of the pattern and a `Guide` over it, `write_mask_into` for masks and
`advance` without the list of tokens. What matters for a comparison:

- *Lost texts.* Two properties make outlines-core lose texts of a pattern. It matches by the leftmost-first rule: once
  an alternative matches, later ones are dropped, so ``a|ab`` loses ``ab``. And its automaton reports a match one byte
  late, which it does not take into account: a token that ends one byte after a complete text and is not complete
  itself is dropped, so ``a(bc)?`` loses ``b`` after ``a``. An end anchor (``\z``) cures both, but cannot stand in a
  pattern that also matches the empty text; there, a character is put in front, which the guide takes before the text
  begins. Whether a pattern loses anything is found by comparing the automaton that outlines-core makes for single
  bytes with ours. Patterns that do not go in plain, because the anchor can cost many states. With ``dialect="own"``
  nothing is compared and texts are lost.
- *End token.* It knows one; we name the first and add the bits of the others. The guide never takes it.
- *Rollback.* A guide remembers 32 steps; matchers go back by starting anew.
- *JSON Schema.* Its own ``build_regex_from_schema`` turns the schema into a regex, from which the index is built;
  recursion is unrolled ``max_recursion`` times. JSON texts are never empty, so the end anchor alone keeps all texts;
  with ``dialect="own"`` the regex goes in as it is, and a number at the root loses its fraction. Of the constraint's
  options the white space is passed on: ``compact``, or the pattern; otherwise its own default stands, one blank at
  most at each place. Properties come in the order of the schema. *It ignores in silence* ``not``, ``if``,
  ``dependentRequired``, ``uniqueItems``, bounds and ``multipleOf`` of numbers, counts of properties, overlap in
  ``oneOf``, and required keys that are not listed; dates need not exist. *It refuses wrongly* keys that are not
  listed, exponents without a sign, escapes with hexadecimal digits; a pattern must match the whole string as it is
  spelled; a schema without ``type`` beside ``properties`` admits objects only. Boolean schemas and unknown formats are
  refused.
- *Masks.* Its guide writes a mask by reference; with ``masks="list"`` it lists the allowed tokens, as it did before.
- *Hard schemas.* An index has no limit. Optional properties, long strings and repeated groups multiply, so that a
  common schema can take minutes and many gigabytes; a failed allocation kills the process. Run it in a process of its
  own with limits on time and memory.
- *Gaps.* If a token leads to a state that no token leaves, it refuses the vocabulary, even though other tokens would
  do; but tokens that only lead in circles, never to an end, it offers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tokdfa.automata.algebra import same_language
from tokdfa.automata.dfa import Dfa
from tokdfa.backends.base import CompiledConstraint, Option
from tokdfa.backends.peers.common import (
    DIALECT,
    PRIMER,
    FittedPattern,
    Peer,
    PerVocabulary,
    byte_language,
    first_lines,
    own_errors,
    pack_tokens,
    require,
)
from tokdfa.backends.peers.peer_matcher import PeerMatcher
from tokdfa.constraint import Choice, JsonSchema, Regex
from tokdfa.errors import VocabularyCannotSpell
from tokdfa.mask import mask_words

if TYPE_CHECKING:
    from tokdfa.constraint import Constraint
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: Mask words are written as elements of this many bytes.
_WORD_BYTES = 4


class OutlinesCorePeer(Peer):
    """See the module's docstring."""

    name: ClassVar[str] = "outlines_core"
    summary: ClassVar[str] = "index of all states and tokens, built in advance (outlines-core, dottxt)"
    kinds: ClassVar[tuple[str, ...]] = ("regex", "choice", "json_schema")
    packages: ClassVar[tuple[str, ...]] = ("outlines-core",)
    options: ClassVar[tuple[Option, ...]] = (
        DIALECT,
        Option(
            *("masks", str, "reference", "reference: it writes masks; list: it lists tokens, which we pack"),
            choices=("reference", "list"),
        ),
        Option("max_recursion", int, 3, "JSON schemas: how often a recursion is unrolled", minimum=0),
    )
    known_differences: ClassVar[dict[str, str]] = {
        "compiles_with_gaps": "refuses a vocabulary if one token leads where none goes on, although others would do",
        "no_dead_end_with_gaps": "offers tokens that lead in circles and never to the end of a text",
    }

    def __init__(self, vocab: Vocabulary, **options: Any) -> None:
        super().__init__(vocab, **options)
        self.module = require("outlines_core")
        self.vocabulary, self.setup_seconds = _VOCABULARIES.get(self.vocab)
        #: How many tokens it knows: those that spell something, the end token and the primer.
        self.known = int(np.count_nonzero(self.vocab.lengths)) + 2

    def fit(self, pattern: str, constraint: Regex | Choice) -> FittedPattern:
        return _keep_texts(pattern, constraint)

    def _compile(self, constraint: Constraint) -> CompiledConstraint:
        return _Compiled(self, constraint)

    def schema_pattern(self, schema: JsonSchema) -> FittedPattern:
        """outlines-core's own regex for a schema. Raises what outlines-core raises."""
        whitespace = "" if schema.whitespace == "compact" else schema.whitespace_pattern or None
        built = self.module.json_schema.build_regex_from_schema(schema.text, whitespace, self.settings["max_recursion"])
        return FittedPattern(built if self.settings["dialect"] == "own" else f"(?:{built})\\z")


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
        plain = _byte_automaton(require("outlines_core"), pattern)
    except ValueError:
        return FittedPattern(pattern)  # compiling it says why
    if same_language(wanted, plain):
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
    module = require("outlines_core")
    ids: dict[bytes, list[int]] = {PRIMER.encode(): [vocab.size]}
    for token in range(vocab.size):
        spelled = vocab.token_bytes(token)
        if spelled:
            ids.setdefault(spelled, []).append(token)
    return module.Vocabulary(vocab.end_tokens[0], ids)


_VOCABULARIES: PerVocabulary[Any] = PerVocabulary("outlines-core", _make_vocabulary)


class _Compiled(CompiledConstraint):
    """`index`: outlines-core's, shared by all guides."""

    def __init__(self, backend: OutlinesCorePeer, constraint: Constraint) -> None:
        super().__init__(constraint, backend.vocab, backend.name)
        self._module, self.lists_tokens = backend.module, backend.settings["masks"] == "list"
        #: With the primer, its tokens may need a word more than a mask has.
        self.is_wider = backend.known > 32 * mask_words(self.vocab.size)
        if isinstance(constraint, JsonSchema):
            with own_errors("outlines-core", constraint), self.phases.measure("pattern"):
                fitted = backend.schema_pattern(constraint)
        else:
            assert isinstance(constraint, Regex | Choice)
            fitted = backend.fitted_pattern(constraint)
        self._primed = fitted.primed
        with own_errors("outlines-core", constraint), self.phases.measure("index"):
            try:
                self.index = self._module.Index(fitted.pattern, backend.vocabulary)
            except ValueError as error:
                if "incompatible" not in str(error):
                    raise
                raise VocabularyCannotSpell(
                    f"outlines-core cannot spell {constraint.name!r} with {backend.vocab.name!r}: {first_lines(error)}"
                ) from None

    def _start(self, context: tuple[int, ...]) -> _OutlinesCoreMatcher:
        """A matcher before the first token; `context` does not matter to this strategy."""
        return _OutlinesCoreMatcher(self)

    def start_guide(self) -> Any:
        """A guide before the first token of the text."""
        guide = self._module.Guide(self.index)
        if self._primed:
            guide.advance(self.vocab.size, False)
        return guide


class _OutlinesCoreMatcher(PeerMatcher):
    def __init__(self, compiled: _Compiled) -> None:
        super().__init__(compiled.vocab)
        self._compiled = compiled
        self._guide = compiled.start_guide()
        self._words = (self.vocab.size + 31) // 32
        self._other_ends = len(self.vocab.end_tokens) > 1
        self._wider = np.zeros(self._words + 1, dtype=np.int32) if compiled.is_wider else None

    def _fill(self, out: Mask) -> None:
        if self._compiled.lists_tokens:
            out[:] = pack_tokens(self._guide.get_tokens(), self.vocab.size + 1)[: self._words]
        elif self._wider is not None:
            self._guide.write_mask_into(self._wider.ctypes.data, len(self._wider), _WORD_BYTES)
            out[:] = self._wider[:-1]
        else:
            self._guide.write_mask_into(self.address(out), self._words, _WORD_BYTES)
        self.clear_padding(out)  # there is the primer
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

    def _restart(self, tokens: list[int]) -> None:
        self._guide = self._compiled.start_guide()
        for token in tokens:
            self._guide.advance(token, False)

    def _fork_peer(self) -> _OutlinesCoreMatcher:
        twin = _OutlinesCoreMatcher(self._compiled)
        twin.start_anew(self.taken)
        return twin
