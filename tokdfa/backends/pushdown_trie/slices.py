r"""Slices: parts of the vocabulary that most patterns allow as a whole, so that partitions need no walk of all of it.

A *slice* is a regular language of plain text, such as letters, digits and blanks, and the tokens that begin one of its
texts. If a state can read every such beginning, as long as the slice's tokens are, then all these tokens are inside of
the state's partition, and only the trie of the others is walked. Of Llama 3's 128,000 tokens 28,000 are letters, 72,000
letters, digits and blanks, and 123,000 may stand in a string.

Whether a state can is decided by following the state and the slice's automaton together, byte by byte
(`tokdfa.automata.containment`): one pair of states where the pattern is a loop, as many as characters are left where
its length is bounded. So some slices are bounded, too.

A slice is an automaton of the vocabulary's table; its tokens and the trie of the others are the partition of that
automaton. Two fifths of the tokens begin with a blank, and after a blank most rows of a grammar read what they read
before it. So there are slices of what is below that node, too. Those of the whole trie are made when a state first may
read one, or all of them in advance (`PushdownTrie.prepare`).

Source: 000, which takes slices into masks where a lexeme contains them (`tokdfa.backends.earley_trie.slices` does
that). Here they serve partitions, which are exact, so the choice of slices changes only the time.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.automata.containment import INSIDE, Limits, PairSearch, Table
from tokdfa.backends.pushdown_trie.arrays import OWN, STATE_PART, STRICT
from tokdfa.backends.pushdown_trie.rows import ACCEPTS
from tokdfa.constraint import Regex
from tokdfa.mask import mask_to_ids
from tokdfa.program.program import Terminal
from tokdfa.regex.compile import compile_dfa
from tokdfa.vocabulary.byte_table import UNKNOWN
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, TOKEN_SHIFT

if TYPE_CHECKING:
    from tokdfa.automata.dfa import Dfa
    from tokdfa.backends.pushdown_trie.automaton_table import AutomatonTable
    from tokdfa.backends.pushdown_trie.partition import Partitions

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
#: A trie of fewer nodes is walked as it is.
LEAST_NODES = 20_000
#: Pairs of states that are followed at most; then the slice is not used.
MAX_PAIRS = 256
#: The place of each byte in a row of the table of automata.
_BYTES = np.arange(256, dtype=np.int64)


class Slice(NamedTuple):
    """The state in which a slice's automaton begins, the number of its partition, its longest token in bytes, and how
    many tokens it has."""

    state: int
    part: int
    longest: int
    size: int


@lru_cache(len(PATTERNS))
def slice_dfa(pattern: str) -> Dfa:
    """The automaton of a slice: all of its states are alive."""
    return compile_dfa(Regex(pattern))


class Slices:
    """The slices of a vocabulary, of the whole trie and `below` the node that most tokens begin with.

    Those of the whole trie are made when they are first of use, the others by `make_all`; and again when all partitions
    were dropped. Not thread-safe: the lock of the vocabulary's pool is held.
    """

    def __init__(self, automata: AutomatonTable, partitions: Partitions, below: int) -> None:
        self._automata, self._partitions, self._places = automata, partitions, (0, below)
        self._pairs = PairSearch(MAX_PAIRS)
        #: By place, in the order in which they were made; only those with many tokens.
        self.made: dict[int, list[Slice]] = {}
        self._found: dict[tuple[int, str], Slice | None] = {}
        self._starts: dict[str, tuple[int, int]] = {}
        self._drops = -1
        #: uint16: the bytes of each token; empty until it is needed.
        self._lengths = np.zeros(0, dtype=np.uint16)

    def within(self, below: int, state: int) -> int:
        """The partition of the largest slice that is inside of the partition by a state, with its kind; or -1.

        `below`: the node that both are below. Makes rows of a lazy automaton that this partition needs. Raises what
        making a row raises.
        """
        parts = self._partitions
        if len(parts.trie.nodes) < LEAST_NODES or below not in self._places:
            return -1
        self._forget_dropped()
        makes = below == 0 and not state & OWN  # then a slice takes no longer than the partition without it
        if not makes and below not in self.made:
            return -1
        automata, here = self._automata, state & STATE_PART
        if automata.transitions[256 * here] == UNKNOWN:
            automata.fill_rows([here])
        left = ~self._bytes_of(here)
        for pattern in reversed(PATTERNS):
            first_bytes = self._start(pattern)[1]
            if first_bytes & left:
                continue
            if makes and (below, pattern) not in self._found:
                self._make(below, pattern)
                if parts.drops != self._drops:  # what was found before is gone; it is found anew next time
                    return -1
            found = self._found.get((below, pattern))
            if found is not None and self.reads(state, found.state, found.longest):
                return found.part
        return -1

    def make_all(self) -> None:
        """Make all slices of a large vocabulary."""
        self._forget_dropped()
        if len(self._partitions.trie.nodes) >= LEAST_NODES:
            for below in self._places:
                for pattern in PATTERNS:
                    if (below, pattern) not in self._found:
                        self._make(below, pattern)

    def _forget_dropped(self) -> None:
        """Begin anew if the partitions were dropped."""
        if self._drops != self._partitions.drops:
            self.made, self._found, self._drops = {}, {}, self._partitions.drops

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

        found = self._pairs.search(
            state & STATE_PART, start, tables, lambda missing: automata.fill_rows([missing]), depth
        )
        return found == INSIDE

    def _make(self, below: int, pattern: str) -> None:
        """Make the partition of a slice, with the help of one that there is; it is no slice if it has few tokens."""
        automata, parts, start = self._automata, self._partitions, self._start(pattern)[0]
        made = self.made.setdefault(below, [])
        if not parts.has(below, start):
            smaller = [slice_ for slice_ in made if self.reads(start, slice_.state, slice_.longest)]
            largest = max(smaller, key=lambda slice_: slice_.size).part if smaller else -1
            parts.divide(below, start, automata, largest)
        part, words = parts.dense_of(below, start) if parts.has(below, start) else (-1, None)
        self._found[below, pattern] = None
        if words is None:
            return
        tokens = mask_to_ids(words.view(np.int32))
        if not len(self._lengths):
            depths = (parts.trie.nodes >> np.uint64(DEPTH_SHIFT)) & np.uint64((1 << DEPTH_BITS) - 1)
            self._lengths = np.zeros(parts.trie.size + 1, dtype=np.uint16)
            self._lengths[parts.trie.nodes >> np.uint64(TOKEN_SHIFT)] = depths + np.uint64(1)
        found = Slice(start, part, int(self._lengths[tokens].max()), len(tokens))
        self._found[below, pattern] = found
        made.append(found)
