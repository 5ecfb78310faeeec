"""Vegas configurations for CartesianMerge: states settled once for all places where the same part of a text stands.

Source: 002 (Tran-Thien 2024), end and Figure 6, which proposes it to shorten the third step of CartesianMerge, the
search for what leads nowhere. How parts are found and kept is ours.

Words. A *cut* is a state of the piece automaton that no token comes past strictly inside. Whatever a text has become
while it merges, each token in it is spelled by bytes that stand side by side in the text, so by a path of the
automaton, and a merge makes a token. If a merge took place across a cut, its result would come past the cut. So
wherever a text comes past a cut, there is a border between two tokens, and no syntax is needed to find it: with Mistral
v1 the states between a colon, a blank and any text, and a line break, 002's example, are cuts whatever the text is. A
border is missed where its state is also one that tokens come past: in ``[0-9]+,`` the state before the comma is the one
between two digits.

Tokens end at a cut or do not reach it, so what can be read from a state, and which of it leads on, depends only on the
*part*: the states that can be reached from it without passing a cut. And behind a cut no pair of tokens is forbidden
that could stand on its two sides, so a cut is live whatever the last token is, as where the text may end. Three things
follow:

- a mask settles the part that it is in, and no other: the rest of the constraint waits until a text gets there;
- equal parts are settled once. A part is numbered breadth-first from where it is entered, bytes ascending, so equal
  parts are equal arrays, and their hash finds the table of another one (`PartTables`);
- tables outlive the constraint in a library (option ``vegas="library"``): those of a JSON string, of a repeat with
  bounds or of a line of YAML are there already when the next constraint has such a part.

A part with several entries has a table for each entry that is asked first; states that two of them reach keep the table
that they got. Byte tokens (`tokdfa.proper.byte_fallback`) merge with nothing: states inside a character are live
whatever the last token, and no part goes on behind them. The states in which a text begins are never cuts, as the
tokens of a context stand before them, which no automaton has read.

Where whole pieces become tokens without merging (`tokdfa.proper.whole_pieces`: tiktoken, Llama 3), a state is a pair
with a node of these, and borders cut texts into pieces already: there nothing changes.

Cost: one walk of the trie a state to find the cuts, states inside characters excepted; hashing a part is O(its states x
512); a part takes some 0.3 ms of Python before it is settled. So this shortens compiling, and for large constraints
(bounded strings) all of it; a text that visits many small parts waits longer than if all had been settled at once.
``tokdfa run experiments/vegas_cartesian.yaml`` measures both, with what they save.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.proper_merge.marked_product import INSIDE, PieceAutomaton
from tokdfa.backends.proper_merge.proper_table import ProperTable
from tokdfa.core.budget import spend
from tokdfa.core.locks import new_lock
from tokdfa.errors import LimitExceeded
from tokdfa.token_automata.columns import reached_states

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from tokdfa.mask import Mask
    from tokdfa.proper.canonical import Canonicity
    from tokdfa.vocabulary.tokenizers import Tokenizer

    Int32 = npt.NDArray[np.int32]

T = TypeVar("T")
#: How many bytes of part tables a library keeps; the part asked longest ago goes first.
LIBRARY_BYTES = 64 << 20


class PartTable:
    """The settled states of one part, as an automaton of its own, and their live tokens as masks.

    State 0 is where the part is entered; the last state is what all cuts and all states inside characters have become:
    live whatever the last token.
    """

    def __init__(self, automaton: PieceAutomaton, canonicity: Canonicity) -> None:
        self.table = ProperTable(automaton, canonicity)
        self._masks: dict[int, Mask] = {}

    @property
    def nbytes(self) -> int:
        return self.table.nbytes + sum(mask.nbytes for mask in self._masks.values())

    def add_live_tokens(self, state: int, out: Mask) -> None:
        """As `ProperTable.add_live_tokens`; a microsecond or two for a state that has been asked for."""
        mask = self._masks.get(state)
        if mask is None:
            mask = masks.allocate_mask(self.table.canonicity.size)
            self.table.add_live_tokens(state, mask)
            self._masks[state] = mask
        np.bitwise_or(out, mask, out=out)


class PartTables:
    """Part tables by the hash of the part, of one tokenizer. Safe to share between threads."""

    def __init__(self, max_bytes: int = LIBRARY_BYTES) -> None:
        self._tables: OrderedDict[bytes, PartTable] = OrderedDict()
        self._max_bytes, self._lock = max_bytes, new_lock()

    def __len__(self) -> int:
        return len(self._tables)

    def find(self, key: bytes, automaton: PieceAutomaton, canonicity: Canonicity) -> tuple[PartTable, bool]:
        """(the table of a part, whether it was there), a new one over `automaton` if it was not."""
        with self._lock:
            known = key in self._tables
            if not known:
                # what is dropped lives on in the constraints that use it
                while self._tables and sum(part.nbytes for part in self._tables.values()) > self._max_bytes:
                    self._tables.popitem(last=False)
                self._tables[key] = PartTable(automaton, canonicity)
            self._tables.move_to_end(key)
            return self._tables[key], known


def load_part_tables(tokenizer: Tokenizer) -> PartTables:
    """The library of `tokenizer`: the same object for the same tokenizer, in memory."""
    return tokenizer.keep("part_tables", PartTables)


class VegasTable(ProperTable):
    """A `ProperTable` whose states are settled part by part, in tables that equal parts share.

    `tables`: where they are kept. Raises ValueError for a tokenizer with whole pieces, which `ProperTable` serves.
    """

    def __init__(
        self, automaton: PieceAutomaton, canonicity: Canonicity, tables: PartTables, max_transitions: int = 30_000_000
    ) -> None:
        super().__init__(automaton, canonicity, max_transitions)
        if self.node_count > 1:
            raise ValueError("parts are for tokenizers without whole pieces")
        self.tables, self.max_transitions = tables, max_transitions
        #: bool, shape (states,): the states that no token comes past strictly inside, but for those where texts begin.
        self.is_cut = self._find_cuts()
        self._cuts, self._can_stop = self.is_cut.data, automaton.can_stop.data
        self._table_of_states = automaton.table.reshape(-1, automaton.classes)
        self._moves = self._list_moves()
        self._place: dict[int, tuple[PartTable, int]] = {}  # state -> its table and its number there
        self._used: dict[int, PartTable] = {}
        self._settled_states = self._settled_transitions = 0
        self.parts_found = 0
        #: How many parts had a table already.
        self.parts_known = 0

    @property
    def settled_states(self) -> int:
        """How many states of the parts have been settled for this table; those that a library had are not."""
        return self._settled_states

    @property
    def transitions(self) -> int:
        """How many entries the rows of these have."""
        return self._settled_transitions

    @property
    def dead_transitions(self) -> int:
        """How many entries of all tables in use lead nowhere, the tokens being proper."""
        return sum(part.table.dead_transitions for part in self._used.values())

    @property
    def nbytes(self) -> int:
        own = sum(array.nbytes for array in (self.is_cut, *self._moves))
        return super().nbytes + own + sum(part.nbytes for part in self._used.values())

    def is_full(self, key: int) -> bool:
        return bool(self._cuts[key]) or super().is_full(key)

    def add_live_tokens(self, key: int, out: Mask) -> None:
        if self._can_stop[key] & INSIDE:
            tokens, _, live = self._byte_row(key)
            for token in tokens[live].tolist():
                masks.set_token(out, token)
            return
        part, state = self._locate(key)
        self._note(part.table, lambda: part.add_live_tokens(state, out))

    def row(self, key: int) -> tuple[Int32, Int32, npt.NDArray[np.bool_]]:
        if self._can_stop[key] & INSIDE:
            return self._byte_row(key)
        part, state = self._locate(key)
        tokens, _, live = self._note(part.table, lambda: part.table.row(state))
        return tokens, self.read_row(key)[1], live

    def is_live(self, key: int, last: int) -> bool:
        if self.is_full(key):
            return True
        part, state = self._locate(key)
        return self._note(part.table, lambda: part.table.is_live(state, last))

    def _byte_row(self, key: int) -> tuple[Int32, Int32, npt.NDArray[np.bool_]]:
        """`row` of a state inside a character: some byte tokens."""
        tokens, keys = self.read_row(key)
        live = np.array(
            [self.is_live(int(target), int(token)) for token, target in zip(tokens, keys, strict=True)], dtype=np.bool_
        )
        return tokens, keys, live

    def _note(self, table: ProperTable, ask: Callable[[], T]) -> T:
        """What `ask` returns; what it settles in a part's table is counted. LimitExceeded past `max_transitions`."""
        states, transitions = table.settled_states, table.transitions
        answer = ask()
        if table.settled_states > states:
            self._settled_states += table.settled_states - states
            self._settled_transitions += table.transitions - transitions
            if self._settled_transitions > self.max_transitions:
                raise LimitExceeded(
                    f"the proper tokens have more than {self.max_transitions} transitions ({self._settled_states} "
                    "states done): raise max_transitions",
                    limit="max_transitions",
                    value=self.max_transitions,
                )
        return answer

    def _locate(self, key: int) -> tuple[PartTable, int]:
        """The part table of a state, and its number there."""
        with self.lock:
            found = self._place.get(key)
            if found is None:
                order, automaton = self._take_out(key)
                part, known = self.tables.find(_hash_part(automaton), automaton, self.canonicity)
                self.parts_found, self.parts_known = self.parts_found + 1, self.parts_known + known
                self._used[id(part)] = part
                for number, state in enumerate(order.tolist()):
                    if number == 0 or not self._cuts[state]:
                        self._place.setdefault(state, (part, number))
                found = self._place[key]
            return found

    def _find_cuts(self) -> npt.NDArray[np.bool_]:
        automaton = self.automaton
        crossed = np.zeros(automaton.state_count, dtype=np.bool_)
        self.reader.mark_crossed(np.flatnonzero(automaton.can_stop & INSIDE == 0).astype(np.int32), crossed)
        crossed[[start for start in automaton.starts if start >= 0]] = True
        return ~crossed

    def _list_moves(self) -> tuple[npt.NDArray[np.int64], Int32]:
        """(where the moves of each state begin, the states they lead to), but for what is closed.

        By bytes, ascending, so that the order does not depend on how this constraint's bytes fall into classes.
        """
        whole = self.automaton
        both = np.concatenate([whole.byte_class.astype(np.int32), whole.fallback_class])
        _, firsts = np.unique(both, return_index=True)
        columns = both[np.sort(firsts)]
        rows = self._table_of_states[:, columns[columns >= 0]]
        targets = rows // whole.classes
        leads_on = (rows >= 0) & ~(self.is_cut | (whole.can_stop & INSIDE != 0))[targets]
        return np.append(0, np.cumsum(leads_on.sum(axis=1))), targets[leads_on]

    def _take_out(self, key: int) -> tuple[Int32, PieceAutomaton]:
        """(the states of a part by their numbers, but for the sink; the part), entered at the state `key`."""
        whole = self.automaton
        order = reached_states(key, *self._moves)[0].copy()
        count = len(order)
        spend(10 * count * whole.classes)
        number = np.full(whole.state_count + 1, count, dtype=np.int32)  # what is closed is the sink
        number[order] = np.arange(count, dtype=np.int32)
        if self.is_cut[key]:
            number[key] = count
        rows = self._table_of_states[order]
        targets = np.where(rows >= 0, number[rows // whole.classes] * np.int32(whole.classes), np.int32(-1))
        table = np.concatenate([targets, np.full((1, whole.classes), -1, dtype=np.int32)]).astype(np.int32).ravel()
        stops = np.append(whole.can_stop[order], np.uint8(INSIDE))
        markers = np.full(count + 1, -1, dtype=np.int32)
        part = PieceAutomaton(table, whole.classes, whole.byte_class, whole.fallback_class, markers, stops, (0,))
        return order, part


def _hash_part(part: PieceAutomaton) -> bytes:
    """A hash of the part by bytes, which does not depend on classes: 32 bytes."""
    digest = hashlib.sha256(part.can_stop.tobytes())
    states = np.where(part.table >= 0, part.table // part.classes, -1).astype(np.int32).reshape(-1, part.classes)
    digest.update(np.ascontiguousarray(states[:, part.byte_class]).tobytes())
    spoken = part.fallback_class >= 0
    digest.update(spoken.tobytes())
    digest.update(np.ascontiguousarray(states[:, part.fallback_class[spoken]]).tobytes())
    return digest.digest()
