r"""Slices: parts of the vocabulary that most patterns allow as a whole, so that divisions need no walk of all of it.

A *slice* is a regular language of plain text, such as letters, digits and blanks, and the tokens that begin one of its
texts. If a state can read every such beginning, as long as the slice's tokens are, then all these tokens are inside of
the state's division, and only the trie of the others is walked. Of Llama 3's 128,000 tokens 28,000 are letters, 72,000
letters, digits and blanks, and 123,000 may stand in a string.

Whether a state can is decided by following the state and the slice's automaton together, byte by byte
(`tokdfa.automata.pairs`): one pair of states where the pattern is a loop, as many as characters are left where
its length is bounded. So some slices are bounded, too.

A slice is an automaton of the vocabulary's table; its tokens and the trie of the others are the division by that
automaton's start, made when a state can read its first bytes.

Source: llguidance, which takes slices into masks where a lexeme contains them (`tokdfa.masks.slices` does
that). Here they serve divisions, which are exact, so the choice of slices changes only the time.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from tokdfa.automata.pairs import INSIDE, Limits, PairSearch, Table
from tokdfa.backends.pushdown_trie.items import OWN, STATE_PART, STRICT
from tokdfa.backends.pushdown_trie.state_table import ACCEPTS
from tokdfa.constraint import Regex
from tokdfa.program.program import Terminal
from tokdfa.regex.compile import compile_dfa
from tokdfa.vocabulary.byte_table import UNKNOWN

if TYPE_CHECKING:
    from tokdfa.automata.dfa import Dfa
    from tokdfa.backends.pushdown_trie.automaton_table import AutomatonTable
    from tokdfa.masks.divisions import Divisions

#: What may stand raw in a string; what of it ``.`` reads; what of that ``[^\s@]`` reads, as in addresses.
_STRING = r'[^"\\\x00-\x1F]'
_LINE = r'[^"\\\x00-\x1F\u2028\u2029]'
#: Of that, what is no quote; what any free text may have, which is letters, digits, blanks, `,-._` and all that is not
#: ASCII; and of that what is no blank, as its first character.
_TEXT = r'[^"\'\\\x00-\x1F]'
_PROSE = r"[^\x00-\x1F!-+/:-@\[-^`{-\x7F]"
_PLAIN = r"[^\x00-+/:-@\[-^`{-\x7F\x85\xA0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF]"
_WORD = r'[^"\\\x00- @\x85\xA0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF]'
#: Regexes of the slices, those with few tokens first; the last one that serves is taken.
PATTERNS = (
    "[a-z]{0,24}",
    "[A-Za-z]{0,24}",
    "[0-9A-Za-z]{0,6}",
    "[0-9A-Za-z]{0,24}",
    "[-.0-9a-z]*",
    "[0-9A-Za-z]*",
    "[-.0-9A-Za-z]*",
    "[0-9A-Z_a-z]*",
    "[-0-9A-Z_a-z]*",
    "[-.0-9A-Z_a-z]*",
    "[-./0-9:A-Z_a-z]*",
    r"[!#-\[\]-~]*",
    _WORD + "*",
    "[ 0-9A-Za-z]*",
    "[- 0-9A-Z_a-z]*",
    _PLAIN + _PROSE + "*",
    _PROSE + "*",
    _LINE + "{0,8}",
    _TEXT + "*",
    _LINE + "{0,24}",
    _LINE + "*",
    _STRING + "*",
)
#: Pairs of states that are followed at most; then the slice is not used.
MAX_PAIRS = 256
#: A slice is made for a state that can read so many bytes of it. At most so many automata of slices are made at once,
#: at 1 ms each, and one slice, at 3 ms; the others are left to states that come later.
FIRST_BYTES, BEGUN_AT_ONCE = 8, 3
#: Slices of fewer tokens are not used.
LEAST_TOKENS = 1_024
#: The place of each byte in a row of the table of automata.
_BYTES = np.arange(256, dtype=np.int64)


class Divider(Protocol):
    """What makes the divisions of slices: see `tokdfa.backends.pushdown_trie.row_divisions.RowDivisions`."""

    @property
    def divisions(self) -> Divisions: ...
    @property
    def is_large(self) -> bool: ...
    def divide_within(self, state: int, within: int) -> int: ...


class Slice(NamedTuple):
    """The state in which a slice's automaton begins, the number of its division, its longest token in bytes, and how
    many tokens it has."""

    state: int
    division: int
    longest: int
    size: int


@lru_cache(len(PATTERNS))
def slice_dfa(pattern: str) -> Dfa:
    """The automaton of a slice: all of its states are alive."""
    return compile_dfa(Regex(pattern))


class Slices:
    """The slices of a vocabulary, made when they are first of use. Not thread-safe: the lock of the vocabulary's pool
    is held.
    """

    def __init__(self, automata: AutomatonTable, divider: Divider) -> None:
        self._automata, self._divider = automata, divider
        self._pairs = PairSearch(MAX_PAIRS)
        #: By pattern; None for those with few tokens.
        self.made: dict[str, Slice | None] = {}
        self._starts: dict[str, tuple[int, int]] = {}

    def forget(self) -> None:
        """Begin anew, as all divisions are dropped."""
        self.made = {}

    def within(self, state: int) -> int:
        """The division of the largest slice that is inside of the division by a state, with its kind; or -1.

        A slice that is not made yet is made if the state reads its first bytes. With OWN, none is made, as that takes
        longer than the division without one. Makes rows of a lazy automaton that this division needs. Raises what
        making a row raises.
        """
        if state & OWN and not self.made:
            return -1
        automata, here = self._automata, state & STATE_PART
        if automata.transitions[256 * here] == UNKNOWN:
            automata.fill_row(here)
        left, begun, may_make = ~self._bytes_of(here), 0, not state & OWN
        for pattern in reversed(PATTERNS):
            is_made = pattern in self.made
            if not is_made and pattern not in self._starts:
                begun += 1
            if begun > BEGUN_AT_ONCE or not (is_made or may_make) or self._start(pattern)[1] & left:
                continue
            if not is_made and not self.reads(state, self._start(pattern)[0], FIRST_BYTES):
                continue
            may_make &= is_made
            found = self._slice(pattern)
            if found is not None and self.reads(state, found.state, found.longest):
                return found.division
        return -1

    def make_all(self) -> None:
        """Make all slices of a large vocabulary."""
        for pattern in PATTERNS if self._divider.is_large else ():
            self._slice(pattern)

    def _start(self, pattern: str) -> tuple[int, int]:
        """The state in which a slice's automaton begins, and the bytes that it reads there, as bits."""
        if pattern not in self._starts:
            terminal = Terminal(pattern, f"slice {pattern}".encode(), partial(slice_dfa, pattern))
            start = self._automata.start_of(terminal)
            self._starts[pattern] = start, self._bytes_of(start)
        return self._starts[pattern]

    def _bytes_of(self, state: int) -> int:
        """The bytes that a state reads whose row is known, as bits."""
        return int.from_bytes(self._automata.reads[state].tobytes(), "little")

    def reads(self, state: int, start: int, depth: int) -> bool:
        """Whether a state, with its kind, reads all that is read in up to `depth` bytes from `start`.

        If it is STRICT no terminal may be complete on the way. False, too, if that takes more than MAX_PAIRS pairs of
        states. Makes rows of lazy automata; raises what that raises.
        """
        automata = self._automata
        refused = ACCEPTS if state & STRICT else 0

        def tables() -> tuple[Table, Table, Limits]:
            table = Table(automata.transitions, 256, _BYTES)
            return table, table, Limits(automata.flags, refused)

        found = self._pairs.search(state & STATE_PART, start, tables, automata.fill_row, depth)
        return found == INSIDE

    def _slice(self, pattern: str) -> Slice | None:
        """The slice of a pattern, made with the help of one that there is; None if it has few tokens."""
        if pattern not in self.made:
            start = self._start(pattern)[0]
            smaller = [one for one in self.made.values() if one and self.reads(start, one.state, one.longest)]
            largest = max(smaller, key=lambda one: one.size).division if smaller else -1
            number = self._divider.divide_within(start, largest)
            size, longest = self._divider.divisions.inside_of(number) if number >= 0 else (0, 0)
            self.made[pattern] = Slice(start, number, longest, size) if size >= LEAST_TOKENS else None
        return self.made[pattern]
