"""The DFA of derivatives: its states, and what each byte leads to.

A state is an expression (what may still come), for expressions with assertions together with a context (what came
before); its transitions are derivatives, taken once for all bytes that cannot differ (`tokdfa.regex.derivative`).
Nothing is built in advance, so a pattern with a million states costs only those that are visited.
`RawDfa.explore` makes all states, up to a limit, for the explicit DFA.

A transition may lead to a state from which no text goes on: `tokdfa.regex.lazy_dfa` finds these.

Layout: as `tokdfa.vocabulary.byte_table` has it, so a state is named by its *row*, the offset of its first entry in
flat tables of int32, that is state number x class count. Arrays are replaced when they grow.

The interpreter's lock is held but in `RawDfa.explore`; wherever work is counted, other threads get a turn.

Sources: llguidance ("derivre": lazy automaton, derivatives cached in a plain table); Owens, Reppy, Turon 2009.
Cost: 0.3 us for each pair of a state and a target; 4 bytes x classes for each state made.
"""

from libc.stdint cimport int16_t
from libcpp.algorithm cimport fill_n

from tokdfa.regex.nodes cimport (
    F_ASSERTS, F_BOOLEAN, F_CONTEXT, F_INHABITED, F_NULLABLE, NOTHING, hold_bytes, node_of,
)
from tokdfa.vocabulary.byte_table cimport DEAD, UNKNOWN

import numpy as np

from tokdfa.automata.dfa import Dfa
from tokdfa.core.budget import hold, spend
from tokdfa.errors import LimitExceeded
from tokdfa.regex.assertions import AT_START, AssertionDeriver, context_after
from tokdfa.regex.derivative import partition_bytes


cdef enum:
    MOST_ENTRIES = 0x7FFFFFFF

#: What the budget allows an automaton, without its states; a derivative of an expression with assertions, without its
#: work; and what a state with assertions holds.
NS_PER_AUTOMATON, NS_PER_DERIVER, BYTES_PER_ASSERTING_STATE = 200_000, 8_000, 400


cdef class RawDfa(ByteTable):
    """The DFA of derivatives of expression `root`. State 0 is the start.

    `max_states` bounds the states ever made; past it LimitExceeded is raised, and what was made stays usable.

    ``raw``: int32, flat; ``accepting``: bool, ``live``: uint8 (UNDECIDED, IS_DEAD or IS_LIVE), by state; ``explored``:
    states whose raw rows `explore` has made; ``transitions``: the same array as ``raw`` where no proof is needed that
    languages are not empty.
    """

    def __init__(self, ExpressionStore store not None, root, max_states=1_000_000):
        spend(NS_PER_AUTOMATON)
        self.store, self.root, self.max_states = store, store.checked(root), max_states
        classes = partition_bytes(store, root)
        byte_class, self.representatives, self.bytes_read = classes
        ByteTable.__init__(self, np.empty(0, dtype=np.int32), byte_class, len(self.representatives))
        self.after = [context_after(byte) for byte in self.representatives.tolist()]
        self.needs_proof = node_of(store, self.root)[0] & F_BOOLEAN != 0
        self.contexts, self.asserting = {}, {}
        self.known = DerivativeTable(store, classes)
        self.states.resize(store.room, -1)
        self.targets.resize(self.class_count)
        self.take_room(256)
        self.enter(self.root, AT_START)

    def expression(self, int64_t state):
        """The number of the expression that `state` stands for."""
        if not 0 <= state < self.state_count:
            raise IndexError(f"there is no state {state}")
        return self.expressions[state]

    def explore(self, max_states=None, first=0):
        """Make every state that can be reached from state `first` and those after it, and (raw) transitions;
        LimitExceeded past the limit.
        """
        cdef int64_t limit = self.max_states if max_states is None else min(max_states, self.max_states)
        self.explored = max(first, self.explored)
        self.store.stack.clear()
        with nogil:
            self.explore_to(limit)

    def to_dfa(self, max_states=None, first=0):
        """The explicit DFA with all reachable states, live or not; `tokdfa.automata.algebra.minimize` trims it.

        `first`: states before this one are not explored.
        """
        self.explore(max_states, first)
        spend(4 * self.state_count * self.class_count, 4 * self.state_count * self.class_count)
        rows = self.raw[: self.state_count * self.class_count].reshape(-1, self.class_count)
        transitions = np.maximum(rows // self.class_count, DEAD)
        return Dfa.trusted(transitions, self.classes.copy(), self.accepting[: self.state_count].copy(), 0)

    # States.

    cdef int32_t enter(self, int32_t expression, int context) except -2:
        """The state of an expression (and context, if it has assertions); DEAD for nothing, unless it is the start."""
        if expression == NOTHING and self.state_count:
            return DEAD
        if node_of(self.store, expression)[0] & F_ASSERTS:
            return self.enter_asserting(expression, context)
        return self.state_for(expression, self.max_states)

    cdef int32_t enter_asserting(self, int32_t expression, int context) except -1:
        if not node_of(self.store, expression)[0] & F_CONTEXT:
            context = AT_START  # any would do
        key = expression, context
        if key not in self.asserting:
            self.check_limit(self.max_states)
            hold(BYTES_PER_ASSERTING_STATE)
            accepts = AssertionDeriver(self.store, self.known, context, None).accepts(expression)
            state = self.new_state(expression, accepts, accepts, self.max_states)
            self.asserting[key], self.contexts[state] = state, context
        return self.asserting[key]

    cdef int32_t state_for(self, int32_t expression, int64_t limit) except -1 nogil:
        """The state of an expression without assertions."""
        cdef int word
        if expression >= <int64_t>self.states.size():
            hold_bytes(4 * (self.store.room - self.states.size()))
            self.states.resize(self.store.room, -1)
        if self.states[expression] < 0:
            word = node_of(self.store, expression)[0]
            self.states[expression] = self.new_state(
                expression, word & F_NULLABLE != 0, word & F_INHABITED != 0, limit
            )
        return self.states[expression]

    cdef int32_t new_state(self, int32_t expression, bint accepts, bint inhabited, int64_t limit) except -1 nogil:
        cdef int64_t state = self.state_count
        self.check_limit(limit)
        if state == self.room:
            self.grow()
        self.expressions.push_back(expression)
        self.state_count += 1
        fill_n(self.raw_entries + state * self.class_count, self.class_count, <int32_t>UNKNOWN)
        fill_n(self.own_entries + state * self.class_count, self.class_count, <int32_t>UNKNOWN)
        self.accepts_in[state], self.live_in[state] = accepts, IS_LIVE if inhabited else UNDECIDED
        return <int32_t>state

    cdef int check_limit(self, int64_t limit) except -1 nogil:
        if self.state_count >= limit:
            with gil:
                raise LimitExceeded(
                    f"the automaton has more than {limit} states; lower the pattern's repeat bounds, or compile it "
                    "lazily",
                    limit="max_states",
                    value=limit,
                )
        return 0

    cdef int grow(self) except -1 nogil:
        cdef int64_t most = MOST_ENTRIES // self.class_count, room = min(2 * self.room, most)
        with gil:
            if room == self.room:
                raise LimitExceeded("the automaton's table passes 2**31 entries", limit="max_states", value=1 << 31)
            hold((room - self.room) * (4 * self.class_count * (2 if self.needs_proof else 1) + 6))
            self.take_room(room)
        return 0

    cdef int take_room(self, int64_t room) except -1:
        """Move everything to arrays with room for so many states; pages of the new ones are taken when they are used.
        """
        cdef int32_t[::1] entries
        cdef uint8_t[::1] flags
        raw = longer(self.raw, room * self.class_count, np.int32)
        transitions = longer(self.array, len(raw), np.int32) if self.needs_proof else raw
        accepting, live = longer(self.accepting, room, np.uint8), longer(self.live, room, np.uint8)
        self.raw, self.accepting, self.live = raw, accepting.view(np.bool_), live
        entries, flags = raw, accepting
        self.raw_entries, self.accepts_in = &entries[0], &flags[0]
        entries, flags = transitions, live
        self.own_entries, self.live_in = &entries[0], &flags[0]
        self.set_transitions(transitions)
        self.room = room
        return 0

    # Raw rows.

    cdef int explore_to(self, int64_t limit) except -1 nogil:
        while self.explored < self.state_count:
            self.derive_row(<int32_t>self.explored, limit)
            if self.state_count > limit:
                self.check_limit(limit)
            self.explored += 1
        return self.check_limit(limit)

    cdef int derive_row(self, int32_t state, int64_t limit) except -1 nogil:
        """Fill the raw row of a state, unless it is known; targets are made as they turn up. It is written as a whole.
        """
        cdef int32_t expression = self.expressions[state], derived, k, taken = 0
        cdef int64_t row = <int64_t>state * self.class_count
        cdef const int16_t* local
        if self.raw_entries[row] != UNKNOWN:
            return 0
        if node_of(self.store, expression)[0] & F_ASSERTS:
            with gil:
                return self.derive_asserting_row(state)
        k = self.known.classify(expression)
        self.store.count_work(1 + self.class_count // 16)
        local = self.known.partitions.content_of(k)  # derivatives make no partitions
        for k in range(self.class_count):
            if local[k] < taken:
                continue
            taken += 1
            derived = self.known.derive(expression, k)
            if derived != NOTHING:
                derived = self.state_for(derived, limit) * self.class_count
            else:
                derived = DEAD
            self.targets[local[k]] = derived
        for k in range(self.class_count):
            self.raw_entries[row + k] = self.targets[local[k]]
        return 0

    cdef int derive_asserting_row(self, int32_t state) except -1:
        """Fill the raw row of a state with assertions: derive once for each local class."""
        cdef int32_t expression = self.expressions[state], k
        cdef int64_t row = <int64_t>state * self.class_count
        local, firsts = self.known.local_classes(expression)
        context, derived, entries = self.contexts[state], [], []
        for first in firsts:
            spend(NS_PER_DERIVER)
            byte = int(self.representatives[first])
            derived.append(AssertionDeriver(self.store, self.known, context, byte).derive(expression))
        if any([self.store.reads_context(one) for one in derived]):
            for k in range(self.class_count):
                entries.append(self.entry_for(derived[local[k]], self.after[k]))
        else:
            by_local = [self.entry_for(one, AT_START) for one in derived]
            entries = [by_local[k] for k in local]
        for k in range(self.class_count):
            self.raw_entries[row + k] = entries[k]
        return 0

    cdef int32_t entry_for(self, int32_t expression, int context) except -2:
        """What stands in a raw row for an expression."""
        cdef int32_t target = self.enter(expression, context)
        return target * self.class_count if target >= 0 else DEAD


cdef object longer(object array, int64_t room, object dtype):
    """A copy of an array, or of none, with so many places."""
    made = np.zeros(room, dtype=dtype)
    if array is not None:
        made[: len(array)] = array
    return made
