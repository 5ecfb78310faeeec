"""A DFA over bytes whose states are made when they are first needed, and lead to live states only.

A transition into an empty language must be DEAD, or a mask would lead into a dead end. Without intersection, complement
and assertions every expression but *nothing* is inhabited. With them, emptiness is proved by search: from the state,
follow derivatives, those with the shortest texts first (`tokdfa.regex.shortest`), until one is surely inhabited, or
none is left. Most states that a row leads to are a few steps from one, and these steps are taken from all of them at
once (`LazyDfa.fill_rows`); for those that seem empty parts are looked at first (`tokdfa.regex.empty_parts`). Such
automata keep two tables: ``raw`` as derived (`tokdfa.regex.raw_dfa`), and ``transitions``, which get a row only when
each target is known to be live or dead.
"""

from libcpp.algorithm cimport sort, unique
from libcpp.pair cimport pair
from libcpp.queue cimport priority_queue
from libcpp.unordered_set cimport unordered_set

from tokdfa.regex.nodes cimport EMPTY, NOTHING
from tokdfa.regex.raw_dfa cimport IS_DEAD, IS_LIVE, UNDECIDED
from tokdfa.vocabulary.byte_table cimport DEAD, UNKNOWN

import numpy as np

from tokdfa.core.budget import spend
from tokdfa.errors import LimitExceeded
from tokdfa.regex.assertions import AT_START
from tokdfa.regex.empty_parts import EmptyParts

# the names of the C constants, for Python
globals().update(UNDECIDED=UNDECIDED, IS_DEAD=IS_DEAD, IS_LIVE=IS_LIVE)

#: States that a search for a live one looks at before parts of the expression are; before all states are made, if they
#: are not more than the third, or the fourth if some have assertions.
SEARCHED_FIRST, SEARCHED, DECIDED_AT_ONCE, DERIVED_AT_ONCE = 16, 256, 100_000, 500
#: Steps towards live states that are taken from many states at once before each is searched from by itself.
DESCENTS = 16
#: What the budget allows a state of a search, without its work, and what it holds.
NS_PER_SEARCHED, BYTES_PER_SEARCHED = 12_000, 300


cdef class LazyDfa(RawDfa):
    """The lazy DFA of expression `root`. State 0 is the start.

    `max_states` bounds the states ever made; past it LimitExceeded is raised, and what was made stays usable.
    Not thread-safe: filling a row changes the store and may replace the arrays. `is_empty` says whether the language is
    empty; then row 0 has no live transition and is not accepting.

    ``transitions``: int32, flat; ``accepting``: bool, ``live``: uint8 (UNDECIDED, IS_DEAD or IS_LIVE), by state.
    """

    def __init__(self, ExpressionStore store not None, root, max_states=1_000_000):
        RawDfa.__init__(self, store, root, max_states)
        self.shortest = ShortestTexts(store)
        self.decide(0)

    @property
    def is_empty(self):
        """Whether the language is empty."""
        return bool(self.live[0] == IS_DEAD)

    @property
    def nbytes(self):
        """Bytes held by the tables that a walk needs."""
        return self.array.nbytes + self.accepting.nbytes + self.classes.nbytes

    @classmethod
    def of_many(cls, ExpressionStore store not None, expressions, max_states=1_000_000):
        """One automaton for many expressions, which share their states: `state_of` says where each begins.

        Its root is their concatenation, in which all their byte sets stand (a union may merge some), and means nothing.
        State 0 stands for it alone: where one of them comes to the same expression, that is a state of its own, since
        `explore` may leave out state 0.
        """
        root = store.concat(*[expression for expression in expressions if expression != NOTHING])
        cdef LazyDfa made = cls(store, root, max_states)
        made.states[root] = -1
        return made

    def state_of(self, expression):
        """The state in which texts of one of the expressions of `of_many` begin; -1 if it has none."""
        cdef int32_t state = self.enter(self.store.checked(expression), AT_START)
        if state >= 0:
            self.decide(state)
        return state if state >= 0 and self.live_in[state] == IS_LIVE else -1

    def proves_empty(self, expression, int64_t most_states):
        """Whether a search over so many states finds that an expression has no texts; False says nothing.

        The expression has no assertions, and its byte sets are among those of the root.
        """
        cdef int32_t state = self.enter(self.store.checked(expression), AT_START)
        return state < 0 or (self.search(state, most_states) and self.live_in[state] == IS_DEAD)

    def step(self, int64_t state, uint8_t byte):
        """The state after `byte`, or -1."""
        cdef int64_t entry = state * self.class_count + self.byte_class_of[byte]
        if not 0 <= state < self.state_count:
            raise IndexError(f"there is no state {state}")
        if self.entries[entry] == UNKNOWN:
            self.fill_row(<int32_t>state * self.class_count)
        return self.entries[entry] // self.class_count if self.entries[entry] >= 0 else -1

    def run(self, bytes text not None, state=0):
        """The state after `text`, or -1."""
        for byte in text:
            if state < 0:
                break
            state = self.step(state, byte)
        return state

    def accepts(self, bytes text not None):
        """Whether the language contains `text`."""
        state = self.run(text)
        return state >= 0 and bool(self.accepting[state])

    cpdef fill_row(self, int32_t row):
        """Make every transition of the state at offset `row` known. Raises LimitExceeded."""
        cdef int32_t state = row // self.class_count
        if row < 0 or state >= self.state_count:
            raise IndexError(f"there is no state at {row}")
        if self.entries[row] == UNKNOWN:
            self.fill_many(&state, 1)

    def fill_rows(self, const int32_t[::1] states):
        """Make every transition of these states known. Raises LimitExceeded.

        After an error the rows of some may be known; those of the others are UNKNOWN.
        """
        cdef Py_ssize_t k
        for k in range(states.shape[0]):
            if not 0 <= states[k] < self.state_count:
                raise IndexError(f"there is no state {states[k]}")
        if states.shape[0]:
            self.fill_many(&states[0], states.shape[0])

    # Liveness.

    cdef int fill_many(self, const int32_t* states, size_t count) except -1:
        cdef vector[int32_t] undecided
        cdef size_t k
        self.store.stack.clear()
        for k in range(count):
            self.derive_row(states[k], self.max_states)
        if self.needs_proof:
            while self.settle(states, count, undecided):
                self.decide_many(undecided)
        return 0

    cdef int settle(self, const int32_t* states, size_t count, vector[int32_t]& undecided) except -1:
        """Write the rows of `transitions` all whose targets are decided; how many `undecided` targets others have."""
        cdef int64_t row
        cdef size_t k, before
        cdef int32_t j, target
        undecided.clear()
        for k in range(count):
            row, before = <int64_t>states[k] * self.class_count, undecided.size()
            if self.own_entries[row] != UNKNOWN:
                continue
            for j in range(self.class_count):
                target = self.raw_entries[row + j]
                if target >= 0 and self.live_in[target // self.class_count] == UNDECIDED:
                    undecided.push_back(target // self.class_count)
            if undecided.size() > before:
                continue
            for j in range(self.class_count):
                target = self.raw_entries[row + j]
                if target >= 0 and self.live_in[target // self.class_count] == IS_DEAD:
                    target = DEAD
                self.own_entries[row + j] = target
        sort_distinct(undecided)
        return <int>undecided.size()

    cdef int decide_many(self, vector[int32_t]& states) except -1:
        """Find out which of these states, none of which is decided, are live.

        From all of them at once the way is followed on which texts are shortest; most meet a live state within a few
        steps. Only for those that do not there is a search.
        """
        cdef vector[int32_t] reached = states
        cdef vector[char] met
        cdef size_t begin = 0, end, k
        cdef const int32_t* bounds
        cdef int32_t target
        for _ in range(DESCENTS):
            end = reached.size()
            for k in range(begin, end):
                self.derive_row(reached[k], self.max_states)
            spend(2 * end * self.class_count + self.room)
            self.mark_live(reached)
            met.assign(self.state_count, False)
            for k in range(end):
                met[reached[k]] = True
            bounds = self.shortest.update()
            for k in range(begin, end):
                if self.live_in[reached[k]] == UNDECIDED:
                    target = self.nearest_target(reached[k], bounds)
                    if target >= 0 and not met[target]:
                        met[target] = True
                        reached.push_back(target)
            if reached.size() == end:
                break
            begin = end
        for k in range(states.size()):
            self.decide(states[k])
        return 0

    cdef int mark_live(self, vector[int32_t]& reached) noexcept:
        """Mark as live those of `reached` that lead to a live state, over others of them. Their raw rows are known."""
        cdef bint changed = True
        cdef int64_t row, entry
        cdef size_t k
        while changed:
            changed = False
            for k in range(reached.size(), 0, -1):  # backwards: what is reached later is nearer to the ends of texts
                if self.live_in[reached[k - 1]] != UNDECIDED:
                    continue
                row = <int64_t>reached[k - 1] * self.class_count
                for entry in range(row, row + self.class_count):
                    if self.raw_entries[entry] >= 0 and (
                        self.live_in[self.raw_entries[entry] // self.class_count] == IS_LIVE
                    ):
                        self.live_in[reached[k - 1]] = IS_LIVE
                        changed = True
                        break
        return 0

    cdef int32_t nearest_target(self, int32_t state, const int32_t* bounds) noexcept:
        """Of the undecided targets of a state the one with the shortest texts, or -1."""
        cdef int32_t best = -1, target, k
        for k in range(self.class_count):
            target = self.raw_entries[<int64_t>state * self.class_count + k]
            if target < 0:
                continue
            target //= self.class_count
            if self.live_in[target] == UNDECIDED and (
                best < 0 or bounds[self.expressions[target]] < bounds[self.expressions[best]]
            ):
                best = target
        return best

    cdef int decide(self, int32_t state) except -1:
        """Find out whether `state` is live."""
        if not self.needs_proof and self.live_in[state] == UNDECIDED:
            self.live_in[state] = IS_DEAD  # only `nothing` itself, which is no state
        if self.live_in[state] != UNDECIDED or self.search(state, SEARCHED_FIRST):
            return 0
        if self.empty_parts is None:
            # parts get an automaton of their own, to be in no explicit one: of a language with the same byte sets that
            # is surely not empty
            of_parts = LazyDfa(self.store, self.store.union([EMPTY, self.root]))
            self.empty_parts = EmptyParts(self.store, of_parts.proves_empty)
        if self.empty_parts.has_empty_part(self.expressions[state]):
            self.live_in[state] = IS_DEAD
            return 0
        if not self.tried_all:
            if self.search(state, SEARCHED) or self.decide_all():
                return 0
            self.tried_all = True
        self.search(state, -1)
        return 0

    cdef bint search(self, int32_t state, int64_t most) except -1:
        """Whether `state` could be decided: a best-first search for one known to be live, over up to so many states
        (-1: as many as there are).
        """
        cdef vector[int32_t] reached, targets
        cdef vector[size_t] came_from  # by place in `reached`
        cdef unordered_set[int32_t] met
        cdef priority_queue[pair[int64_t, size_t]] agenda  # least bound first, then the newest
        cdef const int32_t* bounds
        cdef size_t here
        cdef int32_t target, k
        reached.push_back(state)
        came_from.push_back(0)
        met.insert(state)
        agenda.push(pair[int64_t, size_t](0, 0))
        self.store.stack.clear()
        while not agenda.empty():
            if most == 0:
                return False
            most -= 1
            spend(NS_PER_SEARCHED, BYTES_PER_SEARCHED)
            here = agenda.top().second
            agenda.pop()
            state = reached[here]
            if self.live_in[state] == IS_LIVE:
                while here:
                    here = came_from[here]
                    self.live_in[reached[here]] = IS_LIVE
                return True
            self.derive_row(state, self.max_states)
            targets.clear()
            for k in range(self.class_count):
                target = self.raw_entries[<int64_t>state * self.class_count + k]
                if target >= 0:
                    targets.push_back(target // self.class_count)
            sort_distinct(targets)
            bounds = self.shortest.update()
            for target in targets:
                if self.live_in[target] != IS_DEAD and met.insert(target).second:
                    agenda.push(pair[int64_t, size_t](-bounds[self.expressions[target]], reached.size()))
                    reached.push_back(target)
                    came_from.push_back(here)
        for target in reached:
            self.live_in[target] = IS_DEAD
        return True

    cdef bint decide_all(self) except -1:
        """Find out which states are live, all at once and all transitions with them; False if they are too many."""
        from tokdfa.automata.liveness import live_states

        try:
            # the rest is for the search
            dfa = self.to_dfa(min(DERIVED_AT_ONCE if self.contexts else DECIDED_AT_ONCE, self.max_states // 2))
        except LimitExceeded as error:
            if error.limit != "max_states":
                raise
            return False
        alive = live_states(dfa)
        self.live[: len(alive)] = np.where(alive, IS_LIVE, IS_DEAD)
        targets = self.raw[: len(alive) * self.class_count]
        kept = (targets >= 0) & alive[targets // self.class_count]
        self.array[: len(targets)] = np.where(kept, targets, DEAD)
        return True


cdef int sort_distinct(vector[int32_t]& values) except -1:
    sort(values.begin(), values.end())
    values.erase(unique(values.begin(), values.end()), values.end())
    return 0
