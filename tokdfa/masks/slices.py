r"""Slices: parts of the vocabulary that are often allowed as a whole, and the proof that one is allowed now.

Words. A *slice* is a regular language that under-approximates text with few rules, such as the inside of a JSON string,
and the tokens that match it. A state has *components*, one for each lexeme that is possible there. If one of them can
read every text of the slice to its end, all its tokens are allowed, whatever else is possible: that one lexeme stays
alive, so no parser is asked. Then the slice is *applied*: its mask is ORed into the mask being made, and its tokens
need no walk. What is left is walked.

Containment (`tokdfa.automata.pairs`) is about texts, not tokens, so an answer holds for every
vocabulary; a bound as in ``{1,10}`` makes a slice that is contained where a length is limited. A lazy lexeme could end
within a token and end the others with it, so no slice is applied where one is possible.

In a state the slices with the most tokens are tried first; one whose tokens are all dealt with needs no proof.
The tokens of no applied slice have a trie of their own, made when it is first needed.

llguidance describes slices as claims: each token belongs to the first slice that matches it, the rest to an implicit
last one (`SliceSet.claims`). Bounds {1,10}, {1,30}, + and bounds {1,10}, {11,30}, {31,} claim alike, and they apply
alike: a lexeme that reads all texts of 11 to 30 characters reads their beginnings.

Divisions (`tokdfa.masks`) are the alternative: a table for each state, and no regexes to choose.

Source: llguidance (the slices, the claims; the JSON set is its example). Its implementation has a tree of slices, a
trie for each, and tries a lexeme only if it is a repetition; here every lexeme is tried, what is not applied is one
trie, and what is applied in a state is remembered.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tokdfa.automata.algebra import minimize
from tokdfa.automata.byte_classes import common_classes
from tokdfa.automata.pairs import GIVEN_UP, INSIDE, Limits, PairSearch, Table
from tokdfa.constraint import Regex
from tokdfa.errors import LimitExceeded, OptionError
from tokdfa.mask import mask_from_bool
from tokdfa.regex.compile import compile_lazy
from tokdfa.vocabulary.byte_table import walk_collect

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.automata.dfa import Dfa
    from tokdfa.vocabulary.trie import TokenTrie
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: At most so many slices, each of at most so many automaton states.
MAX_SLICES, MAX_SLICE_STATES = 64, 10_000
#: Sets of slices that are kept for reuse, and tries of each; a trie takes up to 3 MB for Llama 3.
KEPT_SETS, KEPT_TRIES = 8, 32
_NO_LIMITS = Limits(np.zeros(0, dtype=np.uint8), 0)

_JSON_TEXT = r'[^"\\\x00-\x1F\x7F]'
_WORD = "[A-Za-z0-9_]"
#: No control characters and, but for "_", no punctuation of ASCII, so that most strings and comments can read it.
_PLAIN_TEXT = r"[^\x00-\x1F\x7F!-/:-@\[-\^`{-~]"
#: Sets of slices by name: "json" is the example of llguidance, "general" adds white space, words, plain text and lines.
NAMED_SETS: dict[str, tuple[str, ...]] = {
    "json": (_JSON_TEXT + "{1,10}", _JSON_TEXT + "{1,30}", _JSON_TEXT + "+"),
    "general": (
        r"[ \t\r\n]+",
        _WORD + "{1,10}",
        _WORD + "+",
        _PLAIN_TEXT + "+",
        _JSON_TEXT + "{1,10}",
        _JSON_TEXT + "{1,30}",
        _JSON_TEXT + "+",
        r"[^\r\n]+",
    ),
}


class Reader(Protocol):
    """What is asked of the lexer whose states are to read slices."""

    @property
    def byte_class(self) -> npt.NDArray[np.uint8]:
        """Byte -> class."""

    @property
    def class_count(self) -> int:
        """How many classes there are."""

    @property
    def component_table(self) -> npt.NDArray[np.int32]:
        """Flat: component x classes -> component, DEAD or UNKNOWN; may be replaced by a longer one."""

    def make_component(self, component: int) -> None:
        """Make the row of a component that lacks it. May raise LimitExceeded."""

    def components_of(self, state: int) -> list[int]:
        """The components of a state."""

    def may_end_early(self, state: int) -> bool:
        """Whether a component may end, and the others with it, though they could go on."""


class SliceSet:
    """The slices of a vocabulary: their automata, tokens and tries. Safe to share between threads.

    `patterns`: the regexes, in order of definition; `automata`: minimal; `tokens`: bool, shape (slices, V), which
    tokens match; `widest_first`: the slices that match a token, by how many they match.

    Raises OptionError for too many slices, RegexSyntaxError, EmptyLanguageError, or LimitExceeded for a slice of more
    than MAX_SLICE_STATES states. Cost: a walk over the trie for each slice, 1 to 2 ms for Llama 3.
    """

    def __init__(self, vocab: Vocabulary, patterns: tuple[str, ...]) -> None:
        if not 0 < len(patterns) <= MAX_SLICES:
            raise OptionError(f"a set has 1 to {MAX_SLICES} slices, one regex a line, not {len(patterns)}")
        self.vocab, self.patterns = vocab, patterns
        matched = [_match(vocab.trie, pattern) for pattern in patterns]
        self.automata = tuple(automaton for automaton, _ in matched)
        self.tokens: npt.NDArray[np.bool_] = np.stack([tokens for _, tokens in matched])
        counts = self.tokens.sum(axis=1)
        self.widest_first: list[int] = [k for k in np.argsort(counts, kind="stable").tolist()[::-1] if counts[k]]
        self._tries: dict[bytes, TokenTrie] = {}

    @property
    def claims(self) -> npt.NDArray[np.int8]:
        """int8, shape (V,): the first slice that matches each token, ``len(patterns)`` where none does."""
        claimed = np.argmax(np.append(self.tokens, np.ones((1, self.vocab.size), dtype=np.bool_), axis=0), axis=0)
        return claimed.astype(np.int8)

    def trie_without(self, applied: npt.NDArray[np.bool_]) -> TokenTrie:
        """The trie of all tokens but these (bool, shape (V,)). Made once, some ms."""
        if not applied.any():
            return self.vocab.trie
        key = np.packbits(applied).tobytes()
        found = self._tries.get(key)
        if found is None:
            if len(self._tries) >= KEPT_TRIES:
                self._tries.clear()
            found = self._tries[key] = self.vocab.trie.filter(~applied)
        return found


@lru_cache(maxsize=KEPT_SETS)
def slice_set(vocab: Vocabulary, text: str) -> SliceSet:
    """The slices that `text` names: a key of NAMED_SETS, or own regexes, one a line. The same object for equal calls.

    Raises what SliceSet raises, and OptionError if none of one's own regexes matches a token, as a misspelt name does.
    """
    if text in NAMED_SETS:
        return SliceSet(vocab, NAMED_SETS[text])
    made = SliceSet(vocab, tuple(line for line in text.split("\n") if line))
    if not made.tokens.any():
        known = ", ".join(NAMED_SETS)
        raise OptionError(f"no token matches the slices {text!r}; give one of {known}, or regexes, one a line")
    return made


@dataclass(frozen=True, eq=False)
class SlicePlan:
    """How a mask is made: the slices applied, the mask of their tokens, how many these are, and the trie that is
    walked. Shared by states.
    """

    applied: tuple[int, ...]
    mask: npt.NDArray[np.int32]
    token_count: int
    trie: TokenTrie


class Containment:
    """Whether one slice is contained in a component of a reader. Not thread-safe.

    `automaton`: the slice's, with live states only and at least one; `budget`: pairs that one search may meet.
    `searches` and `given_up` count what was done; answers are remembered. Cost: 10 to 20 us for the slices of
    NAMED_SETS, which are 9 to 250 pairs.
    """

    def __init__(self, automaton: Dfa, reader: Reader, budget: int) -> None:
        self.reader, self.searches, self.given_up = reader, 0, 0
        _, representatives = common_classes(automaton.byte_class, reader.byte_class)
        self._start, width = automaton.start, automaton.transitions.shape[1]
        places = automaton.byte_class[representatives].astype(np.int64)
        self._slice = Table(automaton.transitions.flatten(), width, places)
        self._places = reader.byte_class[representatives].astype(np.int64)
        self._pairs = PairSearch(budget)
        self._answers: dict[int, int] = {}

    def answer(self, component: int) -> int:
        """INSIDE, OUTSIDE or GIVEN_UP."""
        found = self._answers.get(component)
        if found is None:
            try:
                found = self._pairs.search(component, self._start, self._tables, self.reader.make_component)
            except LimitExceeded as error:  # of the lexer: generation may never come as far as this search has
                if error.limit != "max_lexer_states":
                    raise
                found = GIVEN_UP
            self._answers[component] = found
            self.searches += 1
            self.given_up += found == GIVEN_UP
        return found

    def _tables(self) -> tuple[Table, Table, Limits]:
        reader = self.reader
        return Table(reader.component_table, reader.class_count, self._places), self._slice, _NO_LIMITS


class Slicer:
    """What slices do for the states of one reader. Not thread-safe, as the reader is not.

    `budget`: of the proofs, see `tokdfa.automata.pairs`. `counters` are totals: slices applied, tokens that they
    allowed, masks for which the trie was not walked whole, containment proofs, and those given up.
    """

    def __init__(self, reader: Reader, slices: SliceSet, budget: int) -> None:
        self.reader, self.slices = reader, slices
        self._proofs = [Containment(automaton, reader, budget) for automaton in slices.automata]
        self._plans: dict[int, SlicePlan] = {}
        self._same: dict[tuple[int, ...], SlicePlan] = {}
        self._applied = self._tokens = self._avoided = 0

    @property
    def counters(self) -> dict[str, int]:
        """Totals of the work done, by name."""
        return {
            "slices_applied": self._applied,
            "slice_tokens": self._tokens,
            "walks_avoided": self._avoided,
            "slice_proofs": sum(proof.searches for proof in self._proofs),
            "slice_proofs_given_up": sum(proof.given_up for proof in self._proofs),
        }

    def use(self, state: int) -> SlicePlan:
        """The plan of a state, for a mask, which is counted."""
        plan = self.plan(state)
        self._applied += len(plan.applied)
        self._tokens += plan.token_count
        self._avoided += bool(plan.applied)
        return plan

    def plan(self, state: int) -> SlicePlan:
        """What to apply and what to walk in a state. The first time, a proof for each slice and component."""
        found = self._plans.get(state)
        if found is None:
            slices = self.slices
            components = self.reader.components_of(state)
            tokens, applied = np.zeros(slices.vocab.size, dtype=np.bool_), list[int]()
            for number in [] if self.reader.may_end_early(state) else slices.widest_first:
                if (slices.tokens[number] & ~tokens).any() and self._contains(components, number):
                    applied.append(number)
                    tokens |= slices.tokens[number]
            key = tuple(sorted(applied))
            if key not in self._same:
                mask = mask_from_bool(tokens)
                self._same[key] = SlicePlan(key, mask, int(tokens.sum()), slices.trie_without(tokens))
            found = self._plans[state] = self._same[key]
        return found

    def _contains(self, components: list[int], number: int) -> bool:
        """Whether one of the components reads every text of a slice."""
        return any(self._proofs[number].answer(component) == INSIDE for component in components)


def _match(trie: TokenTrie, pattern: str) -> tuple[Dfa, npt.NDArray[np.bool_]]:
    """The minimal automaton of a slice, and which tokens match it: bool, shape (V,)."""
    lazy = compile_lazy(Regex(pattern))
    try:
        automaton = minimize(lazy.to_dfa(MAX_SLICE_STATES))
    except LimitExceeded as error:
        if error.limit != "max_states":
            raise
        raise LimitExceeded(
            f"the slice {pattern!r} needs more than {MAX_SLICE_STATES} states; lower its repeat bounds",
            limit="max_states",
            value=MAX_SLICE_STATES,
        ) from None
    found = np.empty(trie.size + 1, dtype=np.int32)
    targets = np.empty(trie.size + 1, dtype=np.int32)
    count, _ = walk_collect(trie, lazy, 0, found, targets)
    tokens = np.zeros(trie.size, dtype=np.bool_)
    tokens[found[:count]] = lazy.accepting[targets[:count] // lazy.class_count]
    return automaton, tokens
