"""The automata that all constraints of a vocabulary share, as one table.

A state of the pool is a number; state 0 stands for "before the first byte" and is nowhere else. Automata are found by
their key, so a fresh grammar with strings and numbers like those of the last one builds no automaton, and finds the
partitions of their states (`tokdfa.pushdown.partition`), too. Small automata are explicit and minimal. Large ones
(counters up to 100,000) are lazy: their states get numbers when they are met and rows when they are read
(`tokdfa.pushdown.lazy_rows`).

Layout: ``transitions`` int32, flat, state x 256 -> state, DEAD or UNKNOWN; ``flags`` uint8, by state: may end
(ACCEPTS), cannot go on (ENDS), reads many bytes (WIDE), ends where it first may (SHORTEST), reads few bytes, but some
over and over, or leads there (LOOPS); ``reads`` uint64, by state
and word of 64: the bytes that lead on; ``alike`` int32, by state: a state with the same partitions, -1 if that was not
asked yet. A full table of 256 columns costs 1 kB a state and saves the look-up of a byte class at each step.

States are *alike* if they agree on the strings that are no longer than the longest token: then no token tells them
apart. The inside of a string is alike in all automata that have strings; so are the states of a counter that leave room
for more than a token. Names for that are hashes (`tokdfa.grammar.partition.name_states`), made with the automaton where
it has wide states, else when a partition of it is first needed.

Threads: `lock` is held by whoever makes something new, in the pool or in a machine that reads from it.
"""

from __future__ import annotations

import warnings
from bisect import bisect_right
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from tokdfa.automata.dfa import Dfa
from tokdfa.budget import hold
from tokdfa.errors import LimitExceeded, SavedIndexError
from tokdfa.grammar.partition import ExpressionNames, name_states
from tokdfa.locks import new_lock
from tokdfa.pushdown.arrays import BY_ROW, M_ROWS, POOL_FIELDS, TABLE_FIELDS, PoolArrays, zeros_by_page
from tokdfa.pushdown.fill import Filler, WalkScratch
from tokdfa.pushdown.lacking import make_lacking_rows
from tokdfa.pushdown.lazy_rows import LazyRows
from tokdfa.pushdown.lengths import TokenLengths
from tokdfa.pushdown.partition import ALONE, STATE_PART, STRICT, Partitions, TrieParts
from tokdfa.pushdown.program import Program
from tokdfa.pushdown.rows import ACCEPTS, ENDS, LOOPS, SHORTEST, WIDE
from tokdfa.pushdown.serving import SMALL_REST
from tokdfa.pushdown.slices import Slices
from tokdfa.vocabulary.walk import DEAD

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tokdfa.pushdown.form import Form, Text
    from tokdfa.vocabulary.vocabulary import Vocabulary

Int32 = npt.NDArray[np.int32]

#: A state that reads at least so many different bytes is wide: its partition pays.
WIDE_BYTES = 24
#: A state from which so many bytes lead to states that loop is treated as one of them.
LEAST_INTO_LOOPS = 8
#: Items have 21 bits for a state.
MAX_STATES = (1 << 21) - 1
#: Of machines that are gone so many tables are kept for those to come, if no more rows of them were used, each of which
#: takes 1 kB, and the rest takes no more bytes.
SPARE_TABLES, SPARE_ROWS, SPARE_BYTES = 4, 16_384, 8 << 20
#: States that a new pool has room for.
FIRST_ROOM = 65_536
#: Bytes of the name of what states are alike: a hash, and whether texts are the shortest.
NAME_BYTES = 17
#: Past so many bytes of automata and partitions a vocabulary gets a new pool for constraints to come.
POOL_LIMIT = 256 << 20

_pools: WeakKeyDictionary[Vocabulary, Pool] = WeakKeyDictionary()
_pools_lock = new_lock()


def pool_of(vocab: Vocabulary, from_disk: bool = False) -> Pool:
    """The pool that new constraints of a vocabulary share. A full one is left to the constraints that have it.

    `from_disk`: a new pool begins with what `save_pool` wrote, if there is a file; a damaged one is ignored with a
    warning.
    """
    with _pools_lock:
        pool = _pools.get(vocab)
        if pool is None or pool.nbytes > POOL_LIMIT:
            pool = _pools[vocab] = Pool(vocab)
            if from_disk:
                _read_from_disk(pool, vocab)
        return pool


def save_pool(vocab: Vocabulary) -> Path:
    """Write the automata and partitions that constraints of a vocabulary share to disk; the file's path.

    In ``tokdfa/pools`` in the user's cache folder. Raises OSError or SavedIndexError if it cannot be written.
    """
    from tokdfa.pushdown.store import pool_path, write_pool

    path = pool_path(vocab)
    write_pool(path, pool_of(vocab), vocab)
    return path


def _read_from_disk(pool: Pool, vocab: Vocabulary) -> None:
    from tokdfa.pushdown.store import pool_path, read_pool

    path = pool_path(vocab)
    if path.exists():
        try:
            read_pool(path, pool, vocab)
        except SavedIndexError as error:
            warnings.warn(f"{error}; save_pool writes it again", stacklevel=4)


class Pool:
    """See the module's docstring."""

    def __init__(self, vocab: Vocabulary) -> None:
        self.lock = new_lock()
        #: Ways of spelling JSON for which the tables that most schemas need are there; kept on disk, too.
        self.prepared: set[tuple[str, ...]] = set()
        room = FIRST_ROOM
        #: Rows of states that there are not yet hold anything; pages that no state uses are never touched.
        self.transitions: Int32 = zeros_by_page(room * 256)
        self.flags: npt.NDArray[np.uint8] = np.zeros(room, dtype=np.uint8)
        self.transitions[:256] = DEAD
        self.alike: Int32 = np.full(room, -1, dtype=np.int32)
        self.reads: npt.NDArray[np.uint64] = np.zeros((room, 4), dtype=np.uint64)
        self._named: dict[bytes, int] = {}  # name -> the first state that has it
        self._explicit: list[tuple[int, Dfa, bool]] = []  # first state, automaton, whether its texts are the shortest
        self._lazy_names: dict[int, ExpressionNames] = {}  # id of a lazy automaton -> names of its expressions
        self._depth = vocab.trie.depth_limit + 1  # what is complete after the longest token counts, too
        self.state_count = 1
        #: bool, shape (256,): the bytes that are tokens by themselves.
        self._available = vocab.single_byte_tokens
        #: Whether every byte is a token by itself.
        self.has_all_bytes = bool(self._available.all())
        #: (key, whether its texts are the shortest) -> the state in which an automaton starts.
        self.starts: dict[tuple[bytes, bool], int] = {}
        #: Start -> whether every state from there can reach an end by bytes that are tokens by themselves.
        self.spelled: dict[int, bool] = {}
        self.lazy_rows = LazyRows(room)
        trie = vocab.trie
        self.partitions = Partitions(TrieParts(trie.nodes, trie.size, trie.depth_limit))
        #: The bytes of all tokens, one after another, and where each begins: `Vocabulary.byte_data`, `offsets`.
        self.byte_data, self.offsets = vocab.byte_data, vocab.offsets
        self.slices = Slices()
        self.lengths = TokenLengths(self.partitions.trie)
        self.walk = WalkScratch(self.partitions.trie, vocab.end_tokens)
        self._arrays: Any = None
        #: Whether a machine has touched the memory that it, or the next one, will use.
        self.has_touched = False
        self._tables: list[tuple[int, dict[str, npt.NDArray[Any]]]] = []  # of machines that are gone, with their bytes
        #: Memory of masks of constraints that are gone (`tokdfa.vocabulary.mask_store`).
        self.spare_masks: list[Int32] = []
        self._fillers: dict[tuple[bool, bool, bool], Filler] = {}

    def filler(self, use_partitions: bool, use_subtrees: bool, use_exits: bool) -> Filler:
        """What fills masks over this vocabulary in this way; made once."""
        key = use_partitions, use_subtrees, use_exits
        if key not in self._fillers:
            self._fillers[key] = Filler(*key)
        return self._fillers[key]

    @property
    def arrays(self) -> Any:
        """What kernels take; made again after every change."""
        if self._arrays is None:
            owners = self, self.partitions, self.partitions.branches, self.walk
            self._arrays = PoolArrays(*(_array_of(owners, name) for name in POOL_FIELDS))
        return self._arrays

    def take_tables(self, transitions: int, max_bytes: int) -> dict[str, Any] | None:
        """The largest arrays of a machine that is gone, with so many transitions; or None. Transitions and hash tables
        are empty.

        Memory that was touched before costs a tenth of new memory, and tables that have grown need not grow again.
        """
        fitting = [
            (size, place)
            for place, (size, tables) in enumerate(self._tables)
            if len(tables["transitions"]) == transitions and 4 * size <= max_bytes
        ]
        return self._tables.pop(max(fitting)[1])[1] if fitting else None

    def give_back_tables(self, tables: dict[str, Any]) -> None:
        """Keep the arrays of a machine that is gone for others, unless they are large."""
        rows = int(tables["meta"][M_ROWS])
        size = sum(array.nbytes for name, array in tables.items() if name not in BY_ROW)
        if len(self._tables) < SPARE_TABLES and rows <= SPARE_ROWS and size <= SPARE_BYTES:
            tables["transitions"][: rows * 256] = 0
            for name in TABLE_FIELDS:
                tables[name].clear()
            self._tables.append((size, tables))

    def more_room_to_put_off(self) -> None:
        """Twice as many subtrees may be put off by a walk."""
        self.walk.walk_later = np.zeros((2 * len(self.walk.walk_later), 3), dtype=np.int32)
        self._arrays = None

    def adopt(
        self, arrays: dict[str, npt.NDArray[Any]], starts: dict[tuple[bytes, bool], int], spelled: dict[int, bool]
    ) -> None:
        """Take over the checked arrays of a file (`tokdfa.pushdown.store`); the pool must be new."""
        self.make_room(len(arrays["flags"]))
        self.state_count = len(arrays["flags"])
        self.transitions[: self.state_count * 256] = arrays["transitions"]
        self.flags[: self.state_count] = arrays["flags"]
        self.reads[: self.state_count] = _pack_bytes(arrays["transitions"].reshape(-1, 256) >= 0)
        self.alike[: self.state_count] = arrays["alike"]
        names, size = arrays["names"].tobytes(), NAME_BYTES
        self._named = {names[size * k : size * k + size]: state for k, state in enumerate(arrays["named"].tolist())}
        self.starts, self.spelled = starts, spelled
        self.partitions.adopt(arrays)
        self._arrays = None

    def divide(self, place: int, state: int, use_slices: bool = True) -> None:
        """Make the partition of a place of the trie by a state, and the rows of lazy automata that it needs.

        `state` with the bits STRICT, ALONE, OWN and EXITS: that of this kind. `use_slices`: begin with a slice.
        """
        kind, state = state & ~STATE_PART, state & STATE_PART
        if self.alike[state] < 0:
            self._name(state)
        state = int(self.alike[state]) | kind
        if self.partitions.has(place, state):
            return
        within = self.slices.within(self, state) if place == 0 and use_slices else -1
        if within >= 0 and not kind & ALONE and self.partitions.rest_size(within) <= SMALL_REST:
            self.partitions.share(state, within)  # the state's own rest would not be much smaller
            self._arrays = None
            return
        if self.lazy_rows.has(state & STATE_PART):
            make_lacking_rows(self, place, state & STATE_PART, bool(state & STRICT), within)
        while lacking := self.partitions.divide(place, state, self.transitions, self.flags, within):
            self.fill_rows(lacking)
        self._arrays = None

    @property
    def nbytes(self) -> int:
        """Memory of the tables in bytes."""
        return 1024 * self.state_count + self.flags.nbytes + self.partitions.nbytes + self.lengths.nbytes

    def link(self, form: Form, anew: bool = False) -> Program:
        """The form bound to this pool. `anew`: build all automata, as if no constraint had had them before.

        That is to measure what it takes. Raises what making an automaton raises, and LimitExceeded.
        """
        return Program(form, self, anew)

    def start_of(self, text: Text, anew: bool = False) -> int:
        """The state in which a text begins; its automaton is made if no equal text was linked before, or `anew`."""
        key = text.key, text.lazy
        found = None if anew else self.starts.get(key)
        if found is None:
            automaton = text.make()
            if isinstance(automaton, Dfa):
                found = self._add(automaton, text.lazy)
            else:
                found = self.lazy_rows.add(self, automaton, text.lazy)
                self.spelled[found] = not (automaton.bytes_read & ~self._available).any()
            self.starts[key] = found
        return found

    def _add(self, automaton: Dfa, shortest: bool) -> int:
        """Enter an explicit automaton without dead states; its start."""
        first, count = self.state_count, automaton.state_count
        self.make_room(first + count)
        self._arrays = None
        table, accepting = automaton.transitions, automaton.accepting
        if shortest:
            table = np.where(accepting[:, None], DEAD, table)
        columns = table[:, automaton.byte_class]
        live = columns >= 0
        self.transitions[first * 256 : (first + count) * 256] = np.where(live, columns + first, DEAD).ravel()
        flags = _flags(table, np.bincount(automaton.byte_class, minlength=table.shape[1]), accepting)
        self.flags[first : first + count] = flags | (SHORTEST if shortest else 0)
        self.reads[first : first + count] = _pack_bytes(live)
        self.state_count += count
        self._explicit.append((first, automaton, shortest))
        self.spelled[first + automaton.start] = self._spells(columns, accepting)
        if (self.flags[first : first + count] & WIDE).any():
            self._name(first)  # now, as masks would have to wait for it
        return first + automaton.start

    def name_all(self) -> tuple[npt.NDArray[np.uint8], Int32]:
        """Find out which states of all explicit automata are alike; (names, the first state of each)."""
        for first, _, _ in self._explicit:
            if self.alike[first] < 0:
                self._name(first)
        kept = {name: state for name, state in self._named.items() if not self.lazy_rows.has(state)}
        names = np.frombuffer(b"".join(kept), dtype=np.uint8).reshape(-1, NAME_BYTES)
        return names, np.fromiter(kept.values(), dtype=np.int32)

    def _name(self, state: int) -> None:
        """Find out which states are alike to this one: all of its automaton at once, if that is explicit.

        States of a lazy automaton are named by their expressions, and are alike to others of lazy automata only.
        """
        if self.lazy_rows.has(state):
            lazy, there, shortest = self.lazy_rows.of(state)
            namer = self._lazy_names.setdefault(id(lazy), ExpressionNames(lazy.store, self._depth))
            described = namer.describe(lazy.expression(there)) if self._depth else ""
            key = bytes.fromhex(described) + bytes([2 + shortest])
            self.alike[state] = self._named.setdefault(key, state) if described else state
            return
        place = bisect_right(self._explicit, state, key=lambda entry: entry[0]) - 1
        first, automaton, shortest = self._explicit[place]
        table, accepting = automaton.transitions, automaton.accepting
        if shortest:
            table = np.where(accepting[:, None], DEAD, table).astype(np.int32)
        numbered = np.where(table >= 0, table + first, DEAD).astype(np.int32)
        names = name_states(numbered, accepting, automaton.byte_class, self._depth, first)
        for number, name in enumerate(names):
            key = name.tobytes() + bytes([shortest])
            self.alike[first + number] = self._named.setdefault(key, first + number)

    def _spells(self, columns: Int32, accepting: npt.NDArray[np.bool_]) -> bool:
        """Whether every state can reach an end by bytes that are tokens by themselves."""
        if self.has_all_bytes:
            return True
        usable = columns[:, self._available]
        ends = accepting.copy()
        while True:
            reached = ends | (ends[usable] & (usable >= 0)).any(axis=1)
            if (reached == ends).all():
                return bool(ends.all())
            ends = reached

    def fill_row(self, state: int) -> None:
        """Make the transitions of a state of a lazy automaton. Raises LimitExceeded."""
        self.lazy_rows.fill(self, np.array([state], dtype=np.int32), WIDE_BYTES)

    def fill_rows(self, states: Sequence[int] | Int32) -> None:
        """Make the transitions of states of lazy automata, all at once. Raises LimitExceeded; what was not made is
        UNKNOWN still.
        """
        self.lazy_rows.fill(self, np.array(states, dtype=np.int32), WIDE_BYTES)

    @property
    def room(self) -> int:
        """So many states there may be before `make_room` is asked."""
        return min(len(self.flags), MAX_STATES)

    def make_room(self, states: int) -> None:
        """Have room for so many states. Raises LimitExceeded."""
        if states > MAX_STATES:
            raise LimitExceeded(
                f"the automata of this vocabulary's constraints have more than {MAX_STATES} states; lower repeats",
                limit="max_states",
                value=MAX_STATES,
            )
        room = len(self.flags)
        if states > room:
            more = max(states, 2 * room) - room
            hold(1024 * (states - self.state_count))
            transitions = zeros_by_page((room + more) * 256)
            transitions[: room * 256] = self.transitions
            grown = {
                "transitions": transitions,
                "flags": np.concatenate([self.flags, np.zeros(more, dtype=np.uint8)]),
                "reads": np.concatenate([self.reads, np.zeros((more, 4), dtype=np.uint64)]),
                "alike": np.concatenate([self.alike, np.full(more, -1, dtype=np.int32)]),
            }
            self.lazy_rows.make_room(room + more)
            self._arrays = None
            vars(self).update(grown)  # all at once, whatever is raised before


def _array_of(owners: tuple[Any, ...], name: str) -> npt.NDArray[Any]:
    """The array of this name, of the first owner that has it."""
    return next(getattr(owner, name) for owner in owners if hasattr(owner, name))


def _pack_bytes(live: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """uint64, shape (states, 4): bit b of the 256 is set where a transition by byte b leads on."""
    return np.ascontiguousarray(np.packbits(live, axis=1, bitorder="little")).view(np.uint64)


def _flags(table: Int32, class_sizes: npt.NDArray[np.int64], accepting: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """uint8, shape (states,): the flags of states. `table`: int32, shape (states, classes); bytes of each class.

    What a state's flags say depends on its automaton alone, and no mask depends on LOOPS: it says where a partition
    pays, as it does for blanks and digits, which are read over and over.
    """
    live = table >= 0
    counts = live @ class_sizes
    few = counts < WIDE_BYTES
    loops = (table == np.arange(len(table))[:, None]).any(axis=1) & few
    into = (live & loops[np.maximum(table, 0)]) @ class_sizes >= LEAST_INTO_LOOPS
    flags = np.where(accepting, ACCEPTS, 0) | np.where(counts == 0, ENDS, 0) | np.where(few, 0, WIDE)
    return (flags | np.where((loops | into) & few, LOOPS, 0)).astype(np.uint8)
