"""The states of all automata of a vocabulary, in arrays; they grow together, and only here.

A state is a number; state 0 stands for "before the first byte" and is nowhere else. A full table of 256 columns costs
1 kB a state and saves the look-up of a byte class at each step.

Layout, by state: ``transitions`` int32, flat, state x 256 -> state, DEAD or UNKNOWN; ``flags`` uint8: may end
(ACCEPTS), cannot go on (ENDS), reads many bytes (WIDE), ends where it first may (SHORTEST), is read over and over
or leads there, but by few bytes (LOOPS); ``reads`` uint64, shape (states, 4): the bytes that lead on;
``division_class`` int32: a state with the same divisions, -1 if that was not asked yet
(`tokdfa.backends.pushdown_trie.automaton_table`);
``characters`` int32, shape (states, 4), of automata of JSON strings whose characters are counted: whether one may begin
(BEGINS), how many begin at least before an end (LEAST), and in an automaton's first state how many states it has
(STATES) and the greatest LEAST of these (MOST);
``owner`` int32: the number of its lazy automaton, -1 for a state of an explicit one, and ``inner`` int32: the state
there.

**Lazy automata.** Their states are numbered when they are met, and get rows when these are read. ``owner`` and
``inner`` say what a state is in its automaton; for each automaton there is the way back. Cost: 1 us a row and 1 kB of
memory that is touched first, beside what the automaton takes.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tokdfa.regex.lazy_dfa cimport LazyDfa
from tokdfa.vocabulary.byte_table cimport DEAD, UNKNOWN

import numpy as np

from tokdfa.core.pages import zeros_by_page
from tokdfa.core.budget import hold
from tokdfa.errors import LimitExceeded

# the names of the C constants, for Python
globals().update(
    ACCEPTS=ACCEPTS, ENDS=ENDS, WIDE=WIDE, SHORTEST=SHORTEST, LOOPS=LOOPS, BEGINS=BEGINS, LEAST=LEAST, STATES=STATES,
    MOST=MOST,
)

#: A state that reads at least so many different bytes is wide: its division pays.
WIDE_BYTES = 24
#: A wide state that reads fewer is one of those with LOOPS, too: of a name, a number in hexadecimal. So is one that
#: does not read the blank, with which most tokens begin: then it is twice as many, and none reads more.
MOST_BYTES = 128
#: Items have 21 bits for a state.
MAX_STATES = (1 << 21) - 1
#: States that a new table has room for.
FIRST_ROOM = 65_536


cdef enum:
    BLANK = 0x20
    LEAST_INTO_LOOPS = 8  # a state from which so many bytes lead to states that loop is treated as one of them


cdef class StateTable:
    """See the module's docstring. Not thread-safe: the lock of the vocabulary's pool is held."""

    def __init__(self):
        # rows of states that there are not yet hold anything; pages that no state uses are never touched
        self.transitions = zeros_by_page(FIRST_ROOM * 256)
        self.transitions[:256] = DEAD
        self.flags, self.reads, self.division_class, self.characters, self.owner, self.inner = columns(FIRST_ROOM)
        self.point()
        self.state_count = 1
        self.wide_bytes, self.most_bytes = WIDE_BYTES, MOST_BYTES
        #: By number: the automaton, and whether its texts are the shortest.
        self.lazy_automata = []

    cdef int point(self) except -1:
        """Point into the arrays as they are now."""
        cdef int32_t[::1] transitions = self.transitions, classes = self.division_class
        cdef int32_t[::1] owner = self.owner, inner = self.inner
        cdef uint8_t[::1] flags = self.flags
        cdef uint64_t[:, ::1] reads = self.reads
        cdef int32_t[:, ::1] characters = self.characters
        self.targets, self.flags_of, self.reads_of = &transitions[0], &flags[0], &reads[0, 0]
        self.class_in, self.characters_of = &classes[0], &characters[0, 0]
        self.owner_of, self.inner_of = &owner[0], &inner[0]
        self.room = flags.shape[0]
        return 0

    @property
    def nbytes(self):
        """Memory of the states in bytes."""
        return 1024 * self.state_count + self.flags.nbytes

    def touch(self, states):
        """Write to the memory of so many states to come, so that no text waits for the system to hand out its pages."""
        self.transitions[256 * self.state_count : 256 * (self.state_count + states)] = 0

    cdef int ensure(self, int64_t states) except -1:
        if states > MAX_STATES:
            raise LimitExceeded(
                f"the automata of this vocabulary's constraints have more than {MAX_STATES} states; lower repeats",
                limit="max_states",
                value=MAX_STATES,
            )
        if states <= self.room:
            return 0
        more = max(states, 2 * self.room) - self.room
        hold(1024 * (states - self.state_count))
        transitions = zeros_by_page((self.room + more) * 256)
        transitions[: self.room * 256] = self.transitions
        old = self.flags, self.reads, self.division_class, self.characters, self.owner, self.inner
        grown = [np.concatenate([column, empty]) for column, empty in zip(old, columns(more), strict=True)]
        self.transitions = transitions
        self.flags, self.reads, self.division_class, self.characters, self.owner, self.inner = grown
        return self.point()

    def reserve(self):
        """The number of a new state whose row is UNKNOWN. Raises LimitExceeded."""
        self.ensure(self.state_count + 1)
        self.transitions[256 * self.state_count : 256 * self.state_count + 256] = UNKNOWN
        self.state_count += 1
        return self.state_count - 1

    def enter(self, const int32_t[:, ::1] table, const uint8_t[::1] byte_class, accepting, bint is_shortest):
        """Enter the states of an explicit automaton; the number of the first. Raises LimitExceeded.

        `table`: int32, shape (states, classes), -1 where nothing goes on. What a state's flags say depends on its
        automaton alone, and no mask depends on LOOPS: it says where a division pays, as it does for blanks and digits,
        which are read over and over.
        """
        cdef int64_t states = table.shape[0], classes = table.shape[1], first = self.state_count
        cdef int64_t state, column, byte, live, most, into
        cdef int quarter
        cdef const uint8_t[::1] accepts = accepting.view(np.uint8)
        cdef int64_t[256] sizes
        cdef uint64_t[1024] bytes_of
        cdef vector[char] loops
        cdef uint8_t flags
        cdef bint again
        self.ensure(first + states)
        for column in range(classes):
            sizes[column] = 0
            for quarter in range(4):
                bytes_of[4 * column + quarter] = 0
        for byte in range(256):
            sizes[byte_class[byte]] += 1
            bytes_of[4 * byte_class[byte] + (byte >> 6)] |= <uint64_t>1 << (byte & 63)
        loops.resize(states)
        for state in range(states):
            live, again = 0, False
            for quarter in range(4):
                self.reads_of[4 * (first + state) + quarter] = 0
            for column in range(classes):
                if table[state, column] >= 0:
                    live += sizes[column]
                    again |= table[state, column] == state
                    for quarter in range(4):
                        self.reads_of[4 * (first + state) + quarter] |= bytes_of[4 * column + quarter]
            loops[state] = again and live < self.wide_bytes
            flags = 0
            if live == 0:
                flags = ENDS
            elif live >= self.wide_bytes:
                flags = WIDE
            most = self.most_bytes
            if table[state, byte_class[BLANK]] < 0:
                most *= 2
            if self.wide_bytes <= live < most:
                flags |= LOOPS
            if accepts[state]:
                flags |= ACCEPTS
            if is_shortest:
                flags |= SHORTEST
            self.flags_of[first + state] = flags
            for byte in range(256):
                column = table[state, byte_class[byte]]
                if column >= 0:
                    self.targets[256 * (first + state) + byte] = <int32_t>(column + first)
                else:
                    self.targets[256 * (first + state) + byte] = DEAD
        for state in range(states):
            into = 0
            for column in range(classes):
                if table[state, column] >= 0 and loops[table[state, column]]:
                    into += sizes[column]
            if not self.flags_of[first + state] & WIDE and (loops[state] or into >= LEAST_INTO_LOOPS):
                self.flags_of[first + state] |= LOOPS
        self.state_count += states
        return first

    # Lazy automata.

    def add_lazy(self, LazyDfa automaton not None, shortest):
        """Enter a lazy automaton; the state of the table that is its start. Raises LimitExceeded."""
        cdef int32_t number = <int32_t>self.known.size()
        self.ensure(self.state_count + 1)
        self.lazy_automata.append((automaton, shortest))
        self.known.push_back(vector[int32_t](automaton.state_count, -1))
        return self.enter_lazy(number, 0)

    cdef int32_t enter_lazy(self, int32_t number, int32_t there) except -1:
        """Make a state of an automaton one of the table; it has no row yet, unless it ends where it may."""
        cdef LazyDfa automaton = <LazyDfa>self.lazy_automata[number][0]
        cdef bint shortest = self.lazy_automata[number][1], accepts = automaton.accepts_in[there]
        cdef int32_t state = <int32_t>self.state_count, entry = UNKNOWN, byte
        cdef uint8_t flags = 0
        self.ensure(state + 1)
        if accepts:
            flags |= ACCEPTS
        if shortest:
            flags |= SHORTEST
        if shortest and accepts:
            flags |= ENDS
            entry = DEAD
        for byte in range(256):
            self.targets[256 * state + byte] = entry
        self.flags_of[state], self.owner_of[state], self.inner_of[state] = flags, number, there
        self.known[number][there] = state
        self.state_count += 1
        return state

    cdef int make_row(self, int64_t state) except -1:
        cdef int32_t one = <int32_t>state
        if self.owner_of[state] >= 0:
            return self.fill_of(self.owner_of[state], &one, 1)
        self.fill_rows([state])
        return 0

    def fill_row(self, int64_t state):
        """Make the transitions of one state known, as `fill_rows`."""
        if not 0 <= state < self.state_count:
            raise IndexError(f"there is no state {state}")
        self.make_row(state)

    def fill_rows(self, states):
        """Make the transitions of states known. Raises LimitExceeded; what was not made is UNKNOWN still."""
        raise NotImplementedError

    def fill_lazy(self, states):
        """Make the transitions of those states that lazy automata own; rows that are known stay as they are.

        Raises LimitExceeded; rows that were not made are UNKNOWN.
        """
        cdef vector[int32_t] chosen
        cdef int32_t state
        by_owner = {}
        for state in sorted(set(states)):
            if not 0 <= state < self.state_count:
                raise IndexError(f"there is no state {state}")
            if self.owner_of[state] >= 0:
                by_owner.setdefault(self.owner_of[state], []).append(state)
        for number, own in by_owner.items():
            chosen = own
            self.fill_of(number, chosen.data(), chosen.size())

    cdef int fill_of(self, int32_t number, const int32_t* states, size_t count) except -1:
        """Make the transitions of different states of one automaton."""
        cdef LazyDfa automaton = <LazyDfa>self.lazy_automata[number][0]
        cdef vector[int32_t] inner
        cdef size_t k
        for k in range(count):
            inner.push_back(self.inner_of[states[k]])
        automaton.fill_many(inner.data(), count)
        if self.known[number].size() < <size_t>automaton.state_count:
            self.known[number].resize(automaton.state_count, -1)
        for k in range(count):
            self.write_row(states[k], number)
        return 0

    cdef int write_row(self, int64_t state, int32_t number) except -1:
        """Write the row of a state that is known in its automaton, and number what it leads to."""
        cdef LazyDfa automaton = <LazyDfa>self.lazy_automata[number][0]
        cdef int64_t row = <int64_t>self.inner_of[state] * automaton.class_count
        cdef int32_t[256] columns
        cdef int32_t k, there, count = 0, byte, target
        cdef uint64_t bits
        cdef int quarter
        if self.targets[state * 256] != UNKNOWN:
            return 0
        for k in range(automaton.class_count):
            columns[k] = DEAD
            if automaton.entries[row + k] >= 0:
                there = automaton.entries[row + k] // automaton.class_count
                if self.known[number][there] < 0:
                    self.enter_lazy(number, there)
                columns[k] = self.known[number][there]
        for quarter in range(4):
            bits = 0
            for byte in range(64):
                target = columns[automaton.byte_class_of[64 * quarter + byte]]
                self.targets[state * 256 + 64 * quarter + byte] = target
                if target >= 0:
                    bits |= <uint64_t>1 << byte
                    count += 1
            self.reads_of[4 * state + quarter] = bits
        if count == 0:
            self.flags_of[state] |= ENDS
        if count >= self.wide_bytes:
            self.flags_of[state] |= WIDE
        return 0


def columns(states):
    """The arrays with one entry a state, for so many states that there are not yet."""
    return (
        np.zeros(states, dtype=np.uint8),
        np.zeros((states, 4), dtype=np.uint64),
        np.full(states, -1, dtype=np.int32),
        np.zeros((states, 4), dtype=np.int32),
        np.full(states, -1, dtype=np.int32),
        np.zeros(states, dtype=np.int32),
    )
