"""Vegas configurations: where no token can run across, so that a constraint falls into parts that merge on their own.

Source: 002 (Tran-Thien 2024), end: a part of a regex between two delimiters that it cannot merge with keeps its own
automaton whatever stands around it. How such parts are found is ours.

Words. A *letter automaton* (`tokdfa.backends.proper_merge.letter_automaton`) is what texts look like before anything
merges: letters, and markers between pieces. A token *crosses* a state if it can be read, letter by letter, from some
state to another and comes past it strictly between its first and its last letter. A *cut* is a state that no token
crosses. A *part* is what lies between cuts: states that are no cuts, connected by edges, with the edges that lead in
from cuts (its *entries*) and out to cuts (its *exits*).

**Every cut is a certain border.** Whatever a text has become while it merges, each token in it is spelled by letters
that stand side by side in the text, so by a path of the automaton; and a merge makes a token. If a merge took place
across a cut, its result would cross the cut. So wherever a text comes past a cut, there is a border between two tokens,
and it is there all the time: what stands on one side merges as if the other side did not exist. What a text merges into
is the concatenation of what the stretches between its cuts merge into. Nothing is asked of a cut but this. It need not
lie on every path, nor be passed only once. So the members of a list, what may be left out and what is repeated are
found in one way, and no syntax is needed.

*Pre-tokenizers.* A token has no marker in it, so none crosses one. The letter automaton knows at every state what the
pre-tokenizer knows, so a cut holds for exactly the texts that come past it: if a border depends on what follows, there
are several states, and each says for itself. A state is a cut if a marker must follow it, too.

*Whole pieces.* Where a piece that is a token becomes that token without merging, the token need not be one that merging
makes. Such tokens count as crossing, so none of them lies on two sides of a cut.

*Which tokens cross.* Proper ones: what occurs on the way of a merge is what its own letters merge into. A token that is
always kept from a place by its neighbours still counts. So a cut is certain, while a state that is none may be free of
crossing tokens after all.

**What is found, and what is not.** With Mistral v1 the example of 002 is: no token holds a colon and a blank, and the
line break is a token by itself, so the states between the three are cuts, whatever the string is. In JSON the cuts
stand where tokens of punctuation end, so a part often holds some of it: `` "2024-05-17",``. A border is missed where
its state is also one that tokens come past: in ``[0-9]+,`` the state before the comma is the one between two digits.
Then the part goes on to the next cut, one letter further. Where nothing but text may stand, there are no cuts.

**Equal parts.** A part becomes an automaton of its own: entry j is reached by the *port* letter V + 1 + j, and exit i
is left by V + 1 + i. Ports have no rules, as markers have none. It is numbered breadth-first, letters ascending, and
exits in the order in which they are met. For one entry this numbering depends on nothing outside the part, so equal
parts are equal arrays, and their hash (`Part.key`) finds them. With several entries equal parts may be missed.

Cost: the trie of spellings, 10 to 60 ms once for a tokenizer. To find the cuts, all spellings are read from every state
together: 20 us a state where little can be read, 2 ms where any text may stand (Llama 3). Splitting is O(transitions).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.core.jit import kernel
from tokdfa.token_automata.token_rows import TokenRows

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.proper.canonical import Canonicity

    Int32 = npt.NDArray[np.int32]

#: What a state is inside a part.
_ENTRY, _INNER, _EXIT = range(3)


@dataclass(frozen=True, eq=False)
class SpellingTrie:
    """The spellings of two letters and more, as a trie in preorder. All arrays have one entry a node.

    `letter`: int32, the letter that leads to the node; `depth`: int32, 1 for first letters; `end`: int32, the node
    after the last one below it; `is_token`: bool. `size`: V.
    """

    letter: Int32
    depth: Int32
    end: Int32
    is_token: npt.NDArray[np.bool_]
    size: int


@dataclass(frozen=True, eq=False)
class Part:
    """One part as an automaton over letters, markers and ports, with start 0; `key`: equal for equal parts."""

    rows: TokenRows
    key: str


@dataclass(frozen=True)
class Placement:
    """Where a part stands: its number, and the states that its entries and exits are in the whole automaton."""

    part: int
    entries: tuple[int, ...]
    exits: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Division:
    """A letter automaton and its parts.

    `letters`: the automaton; `is_cut`: bool, shape (states,); `parts`: the distinct ones; `places`: where they stand.
    Edges from cut to cut belong to no part.
    """

    letters: TokenRows
    is_cut: npt.NDArray[np.bool_]
    parts: list[Part]
    places: list[Placement]


def first_port(size: int) -> int:
    """The first of the letters that stand for entries and exits, for a vocabulary of `size` tokens.

    The one before it is the marker.
    """
    return size + 1


def spelling_trie(canonicity: Canonicity) -> SpellingTrie:
    """The trie of the tokens that can cross a state: proper ones and whole pieces. O(total letters)."""
    rules = canonicity.rules
    crosses = canonicity.derivations.is_proper.copy()
    crosses[list(canonicity.whole_piece_encodings)] = True
    crosses &= np.diff(rules.spelling_starts) > 1
    # Tokens in the order of their bytes: those that share first letters stand together, as no letter begins another.
    order = canonicity.vocabulary.trie.order
    order = np.ascontiguousarray(order[crosses[order]], dtype=np.int32)
    room = int(np.diff(rules.spelling_starts)[order].sum())
    letter, depth, end, is_token = _build_trie_kernel(order, rules.spelling, rules.spelling_starts, room)
    return SpellingTrie(letter, depth, end, is_token, rules.size)


def find_cuts(letters: TokenRows, trie: SpellingTrie) -> npt.NDArray[np.bool_]:
    """bool, shape (states,): the states of `letters` that no token of `trie` crosses."""
    present = sorted({letter for row in letters.rows for letter in row if letter < trie.size})
    column_of = np.full(trie.size, -1, dtype=np.int32)
    column_of[present] = np.arange(len(present), dtype=np.int32)
    table = np.full((letters.state_count, len(present)), -1, dtype=np.int32)
    for state, row in enumerate(letters.rows):
        there = np.fromiter(row, dtype=np.int64, count=len(row))
        targets = np.fromiter(row.values(), dtype=np.int32, count=len(row))
        known = there < trie.size
        table[state, column_of[there[known]]] = targets[known]
    crossed = np.zeros(letters.state_count, dtype=np.bool_)
    _mark_crossed_kernel(column_of[trie.letter], trie.depth, trie.end, trie.is_token, table, crossed)
    return ~crossed


def divide(letters: TokenRows, trie: SpellingTrie) -> Division:
    """The parts of `letters` (trimmed). O(transitions), and `find_cuts`."""
    is_cut = find_cuts(letters, trie)
    cuts = is_cut.tolist()
    group_of = _connect(letters, cuts)
    entries: dict[int, dict[int, None]] = {}  # group -> states, each once, in order
    if letters.start >= 0 and not cuts[letters.start]:
        entries[group_of[letters.start]] = {letters.start: None}
    for state, row in enumerate(letters.rows):
        if cuts[state]:
            for target in row.values():
                if not cuts[target]:
                    entries.setdefault(group_of[target], {})[state] = None
    number: dict[str, int] = {}
    parts: list[Part] = []
    places = []
    for group, leading_in in entries.items():
        part, exits = _take_out(letters, cuts, group_of, group, list(leading_in), first_port(trie.size))
        if number.setdefault(part.key, len(parts)) == len(parts):
            parts.append(part)
        places.append(Placement(number[part.key], tuple(leading_in), tuple(exits)))
    return Division(letters, is_cut, parts, places)


def _connect(letters: TokenRows, cuts: list[bool]) -> list[int]:
    """For each state that is no cut, a number that is equal for states of one part (union-find)."""
    leader = list(range(letters.state_count))

    def find(state: int) -> int:
        while leader[state] != state:
            leader[state] = leader[leader[state]]
            state = leader[state]
        return state

    for state, row in enumerate(letters.rows):
        if not cuts[state]:
            for target in set(row.values()):
                if not cuts[target]:
                    leader[find(target)] = find(state)
    return [find(state) for state in leader]


def _take_out(
    letters: TokenRows, cuts: list[bool], group_of: list[int], group: int, entries: list[int], port: int
) -> tuple[Part, list[int]]:
    """(the part, the states that are its exits), numbered as the module says. State 1 is where the exits lead."""
    number: dict[tuple[int, int], int] = {}
    found: list[tuple[int, int]] = []
    exits: dict[int, int] = {}  # state -> which exit it is

    def number_of(state: int, role: int) -> int:
        if (state, role) not in number:
            number[state, role] = len(found) + 2
            found.append((state, role))
            if role == _EXIT:
                exits[state] = len(exits)
        return number[state, role]

    rows = [{port + j: number_of(state, _ENTRY if cuts[state] else _INNER) for j, state in enumerate(entries)}, {}]
    accepting = [False, True]
    for state, role in found:  # the loop sees what it appends
        row = letters.rows[state]
        if role == _EXIT:
            rows.append({port + exits[state]: 1})
        elif role == _ENTRY:
            own = (letter for letter in sorted(row) if not cuts[row[letter]] and group_of[row[letter]] == group)
            rows.append({letter: number_of(row[letter], _INNER) for letter in own})
        else:
            rows.append(
                {letter: number_of(row[letter], _EXIT if cuts[row[letter]] else _INNER) for letter in sorted(row)}
            )
        accepting.append(role == _INNER and letters.accepting[state])
    part = TokenRows(rows, accepting, 0)
    return Part(part, _hash_rows(part)), list(exits)


def _hash_rows(rows: TokenRows) -> str:
    """A hash of the automaton as it is numbered, 64 hex digits."""
    sizes = np.array([len(row) for row in rows.rows], dtype=np.int64)
    content = np.array([pair for row in rows.rows for pair in row.items()], dtype=np.int64)
    digest = hashlib.sha256(sizes.tobytes())
    digest.update(np.array(rows.accepting, dtype=np.bool_).tobytes())
    digest.update(content.tobytes())
    return digest.hexdigest()


@kernel
def _build_trie_kernel(order, spelling, starts, room):  # type: ignore[no-untyped-def]
    """(letter, depth, end, is_token) of the nodes, from tokens in an order in which common beginnings are together."""
    letter = np.empty(room, dtype=np.int32)
    depth = np.empty(room, dtype=np.int32)
    end = np.empty(room, dtype=np.int32)
    is_token = np.zeros(room, dtype=np.bool_)
    longest = 0
    for token in order:
        longest = max(longest, starts[token + 1] - starts[token])
    path = np.empty(longest + 1, dtype=np.int32)  # the nodes that lead to the last token, by depth
    count = 0
    size = 0
    for token in order:
        first = starts[token]
        length = starts[token + 1] - first
        shared = 0
        while shared < size and shared < length and letter[path[shared + 1]] == spelling[first + shared]:
            shared += 1
        for closed in range(shared + 1, size + 1):
            end[path[closed]] = count
        for place in range(shared, length):
            letter[count] = spelling[first + place]
            depth[count] = place + 1
            path[place + 1] = count
            count += 1
        is_token[path[length]] = True
        size = length
    for closed in range(1, size + 1):
        end[path[closed]] = count
    return letter[:count].copy(), depth[:count].copy(), end[:count].copy(), is_token[:count].copy()


@kernel
def _mark_crossed_kernel(column, depth, end, is_token, table, crossed):  # type: ignore[no-untyped-def]
    """Mark the states that a token crosses. `column`: int32, of each node's letter in `table`, -1 if not there."""
    deepest = 0
    for node in range(len(depth)):
        deepest = max(deepest, depth[node])
    path = np.empty(deepest + 1, dtype=np.int32)
    for start in range(len(table)):
        path[0] = start
        node = 0
        while node < len(depth):
            here = depth[node]
            target = table[path[here - 1], column[node]] if column[node] >= 0 else -1
            if target < 0:
                node = end[node]
                continue
            path[here] = target
            if is_token[node]:
                # What a shorter token has marked need not be marked again, but it is too little to be worth a test.
                for between in range(1, here):
                    crossed[path[between]] = True
            node += 1


def _warm_up() -> None:
    """Compile the kernels of this page, with tokens of one and two letters."""
    order = np.array([2], dtype=np.int32)
    spelling, starts = np.array([0, 1, 0, 1], dtype=np.int32), np.array([0, 1, 2, 4], dtype=np.int32)
    letter, depth, end, is_token = _build_trie_kernel(order, spelling, starts, 2)
    trie = SpellingTrie(letter, depth, end, is_token, 3)
    find_cuts(TokenRows([{0: 1}, {1: 2}, {}], [False, False, True], 0), trie)
