# cython: auto_pickle=False
"""Relevant pairs: 002's own way to tell which tokens lead nowhere, by a search over pairs of states.

Words. The *text automaton* is the constraint over tokens: its states are those of
`tokdfa.backends.proper_merge.proper_rows`, its transitions the entries of their rows, and the markers that lead over a
border of pieces. The *bigram automaton* is that of the proper sequences: a state for each set of tokens that a token
may be followed by (`Canonicity.state_of`), one, `fresh`, for the beginning of a piece, and one for whole pieces, which
say nothing about what follows. A *pair* has a state of each. A token leads from a pair to another iff both automata
allow it, a border from any pair that is not fresh to the fresh pair behind it. A pair is *relevant* iff a pair whose
text may end can be reached from it.

What a token makes of the bigram automaton depends on the token alone. So an entry of a row leads to one and the same
pair from whatever pair it is allowed in: pairs get numbers if entries, borders or the start lead to them, and beside
each entry stands the number of its pair. The edges from pair to pair, of which there may be 10^9, are not stored: they
are the entries of the text state's row, but for the tokens that the bigram state forbids.

The search is made once, for all that the start leads to: breadth-first over all tokens that both automata allow, where
each pair goes through the row of its text state, which is what making its mask costs; then backwards from the pairs
that may end, over reverse transitions. Each relevant pair goes through the entries that lead to it, and through those
pairs of their rows' states that are not known to be relevant yet. With `skip_visited` the search forwards leaves out
entries that lead to pairs visited before, as the notebook of 002 does; it finds the same pairs and looks at far fewer
edges.

Compare `tokdfa.backends.proper_merge.proper_table`, where no pairs occur.

Cost: time O(pairs x entries of a row), 1 to 2 ns each; O(entries of the rows) memory.
Source: 002, technical appendix, algorithms 5 and 6; its notebook skips groups that have been reached. Borders, byte
fallback and whole pieces are ours.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libcpp.vector cimport vector

from tokdfa.automata.moves cimport sort_by_key
from tokdfa.backends.proper_merge.proper_rows cimport ENDS, ProperRows
from tokdfa.backends.proper_merge.proper_table cimport ProperTable
from tokdfa.core.border cimport pay
from tokdfa.core.interning cimport Keys
from tokdfa.proper.bpe cimport int32_data
from tokdfa.proper.intervals cimport IntervalLists

import time

from tokdfa.backends.proper_merge.proper_states import begin_state
from tokdfa.errors import LimitExceeded


cdef enum:
    EDGES_AT_A_TIME = 50_000_000  # between two looks at the clock: some 0.1 s
    NS_PER_EDGE = 2
    BORDER = -2  # in place of the merge tree's number of a token, which is at least -1

#: How many pairs are visited by default. A pair costs some 20 bytes, and a walk along a row.
MAX_PAIRS = 5_000_000


cdef inline int64_t bigram_after(const int32_t* state_of, int64_t token, int64_t fresh) noexcept nogil:
    """The bigram state after a token."""
    return state_of[token] if state_of[token] >= 0 else fresh + 1


@cython.final
cdef class PairSearch:
    """The pairs of a table, and the search: `visit` until that is done, `turn`, and `step_back` until that is done.

    `last` (-1: none) and `keys`: the last token and the states at the start; `most`: the pairs that may be visited.
    """

    cdef ProperRows rows
    cdef IntervalLists lists
    cdef object tree
    cdef const int32_t* state_of   # by token: its list, -1 for none
    cdef const int32_t* number     # by token: in the merge tree
    cdef const int32_t* order      # the tokens of the merge tree
    cdef int64_t fresh, width      # bigram states: those of the lists, `fresh`, and the one after whole pieces
    cdef Keys keys                 # of pairs: text state x width + bigram state
    cdef vector[int32_t] of_entry  # the pair that each entry leads to
    cdef vector[int32_t] behind    # by text state: the fresh pair behind a border, -1 if none may stand there
    cdef vector[uint8_t] visited, relevant
    cdef vector[int32_t] queue     # the visited pairs, then the relevant ones
    cdef size_t head, most         # the next pair of the queue
    cdef int64_t edges             # that have been looked at
    cdef vector[int64_t] forbidden  # by token: the place in the queue, from 1, of the last pair that forbids it
    # With `skips_visited`: of the entries of each text state the first `left` may lead to pairs that are not visited.
    cdef bint skips_visited
    cdef vector[int32_t] entries
    cdef vector[int64_t] left
    # Into pair p lead entries and borders k from starts[p] to starts[p + 1] - 1, from the text states `sources`, by the
    # tokens with the numbers `labels`.
    cdef vector[int32_t] starts, sources, labels
    # Of text state s the `waiting_count` pairs from waiting[first[s]] on are visited and not known to be relevant.
    cdef vector[int32_t] first, waiting, waiting_count

    def __init__(self, ProperRows rows not None, canonicity, int64_t last, keys, size_t most, bint skips_visited):
        cdef int32_t pair
        cdef int64_t after
        self.rows, self.lists, self.tree = rows, canonicity.lists, canonicity.merge_tree
        self.state_of, self.number = int32_data(self.lists.state_of, -1), int32_data(self.tree.number, -1)
        self.order = int32_data(self.tree.order, -1)
        self.fresh = canonicity.lists.state_count
        self.width, self.most, self.skips_visited = self.fresh + 2, most, skips_visited
        after = self.fresh if last < 0 else bigram_after(self.state_of, last, self.fresh)
        for key in keys:
            pair = self.keys.intern(rows.numbers.find(key) * self.width + after)
            if pair == <int32_t>self.queue.size():
                self.queue.push_back(pair)
        with nogil:
            self.number_pairs()
        self.visited.resize(self.keys.size())
        self.relevant.resize(self.keys.size())
        for pair in self.queue:
            self.visited[pair] = True
        self.forbidden.resize(canonicity.size)

    def search(self, max_seconds):
        """Find the relevant pairs; (how many pairs the start leads to, how many edges the search forwards looked at).

        Raises LimitExceeded past `most` pairs or `max_seconds` (None: no limit).
        """
        begun = time.monotonic()
        self._repeat(True, begun, max_seconds)
        if self.queue.size() > self.most:
            raise LimitExceeded(
                f'the search visits more than {self.most} pairs: use relevance="fixpoint", or raise max_pairs',
                limit="max_pairs",
                value=self.most,
            )
        found = self.queue.size(), self.edges
        with nogil:
            self.turn()
        self._repeat(False, begun, max_seconds)
        return found

    def _repeat(self, bint forwards, begun, max_seconds):
        """Go on in one direction until that is done."""
        cdef bint is_done = False
        cdef int64_t before
        while not is_done:
            before = self.edges
            with nogil:
                if forwards:
                    is_done = self.visit()
                else:
                    is_done = self.step_back()
            pay(NS_PER_EDGE * (self.edges - before), 0)
            if max_seconds is not None and time.monotonic() - begun > max_seconds:
                raise LimitExceeded(
                    f'the search over pairs takes more than {max_seconds:g} s: use relevance="fixpoint", or raise '
                    "max_seconds",
                    limit="seconds",
                    value=max_seconds,
                )

    cdef int number_pairs(self) except -1 nogil:
        """Number the pairs that entries and borders lead to."""
        cdef size_t state
        cdef int64_t k, after
        cdef int32_t border
        self.of_entry.reserve(self.rows.tokens.size())
        for state in range(self.rows.row_count()):
            for k in range(self.rows.offsets[state], self.rows.offsets[state + 1]):
                after = bigram_after(self.state_of, self.rows.tokens[k], self.fresh)
                self.of_entry.push_back(self.keys.intern(self.rows.targets[k] * self.width + after))
            border = self.rows.reader.behind_border(<uint32_t>self.rows.numbers.key(state))
            if border >= 0:
                border = self.keys.intern(self.rows.numbers.find(border) * self.width + self.fresh)
            self.behind.push_back(border)
            self.left.push_back(self.rows.offsets[state + 1] - self.rows.offsets[state])
        if self.skips_visited:
            for k in range(<int64_t>self.of_entry.size()):
                self.entries.push_back(<int32_t>k)
        return 0

    cdef bint visit(self) except -1 nogil:
        """Go on breadth-first for some EDGES_AT_A_TIME. Whether it is done, or has visited too many pairs."""
        cdef const int32_t* of_entry = self.of_entry.data()
        cdef const int32_t* tokens = self.rows.tokens.data()
        cdef int64_t* forbidden = self.forbidden.data()
        cdef int32_t* entries = self.entries.data()
        cdef uint8_t* visited = self.visited.data()
        cdef int64_t stop = self.edges + EDGES_AT_A_TIME, state, after, now, first, place, kept, k
        while self.head < self.queue.size() <= self.most and self.edges < stop:
            k = self.keys.key(self.queue[self.head])
            state, after = k // self.width, k % self.width
            self.head += 1
            now = self.head
            if after < self.fresh:
                self.forbid(<int32_t>after)
            first = kept = self.rows.offsets[state]
            self.edges += self.left[state]
            for place in range(first, first + self.left[state]):
                k = place
                if self.skips_visited:
                    k = entries[place]
                if visited[of_entry[k]]:
                    continue
                if forbidden[tokens[k]] != now:
                    visited[of_entry[k]] = True
                    self.queue.push_back(of_entry[k])
                elif self.skips_visited:
                    entries[kept] = <int32_t>k
                    kept += 1
            if self.skips_visited:
                self.left[state] = kept - first
            if after != self.fresh and self.behind[state] >= 0 and not visited[self.behind[state]]:
                visited[self.behind[state]] = True
                self.queue.push_back(self.behind[state])
        return self.head == self.queue.size() or self.queue.size() > self.most

    cdef int forbid(self, int32_t after) noexcept nogil:
        """Note which tokens the bigram state of the pair before `head` forbids."""
        cdef int32_t k, number
        for k in range(self.lists.first[after], self.lists.first[after + 1]):
            for number in range(self.lists.begins[k], self.lists.past[k]):
                self.forbidden[self.order[number]] = self.head
        return 0

    cdef int turn(self) except -1 nogil:
        """Get ready to step back from the visited pairs that may end."""
        cdef vector[int32_t] keys, places, visited
        cdef int32_t state, pair, label, count = <int32_t>self.behind.size()
        cdef int64_t k, _
        visited.swap(self.queue)
        self.head = 0
        for pair in visited:
            state = <int32_t>(self.keys.key(pair) // self.width)
            keys.push_back(state)
            if self.rows.reader.may_stop(<uint32_t>self.rows.numbers.key(state), ENDS):
                self.relevant[pair] = True
                self.queue.push_back(pair)
        sort_by_key(keys.data(), keys.size(), count, self.first, places)
        for k in places:
            self.waiting.push_back(visited[k])
        keys.clear()
        for state in range(count):
            self.waiting_count.push_back(self.first[state + 1] - self.first[state])
            for _ in range(self.rows.offsets[state], self.rows.offsets[state + 1]):
                keys.push_back(state)
        visited = self.of_entry  # what leads to each pair: entries, then borders
        for state in range(count):
            if self.behind[state] >= 0:
                keys.push_back(state)
                visited.push_back(self.behind[state])
        sort_by_key(visited.data(), visited.size(), self.keys.size(), self.starts, places)
        for k in places:
            label = BORDER
            if k < <int64_t>self.of_entry.size():
                label = self.number[self.rows.tokens[k]]
            self.sources.push_back(keys[k])
            self.labels.push_back(label)
        return 0

    cdef bint step_back(self) except -1 nogil:
        """Go on backwards for some EDGES_AT_A_TIME. Whether it is done."""
        cdef int64_t stop = self.edges + EDGES_AT_A_TIME, after
        cdef int32_t pair, k, state, source, kept, place
        cdef int32_t* waiting = self.waiting.data()
        cdef uint8_t* relevant = self.relevant.data()
        cdef bint is_kept
        while self.head < self.queue.size() and self.edges < stop:
            pair = self.queue[self.head]
            self.head += 1
            for k in range(self.starts[pair], self.starts[pair + 1]):
                state = self.sources[k]
                kept = self.first[state]
                self.edges += self.waiting_count[state] + 1
                for place in range(kept, kept + self.waiting_count[state]):
                    source = waiting[place]
                    if relevant[source]:
                        continue
                    after = self.keys.key(source) % self.width
                    if self.labels[k] == BORDER:
                        is_kept = after == self.fresh
                    else:
                        is_kept = after < self.fresh and self.lists.is_listed(<int32_t>after, self.labels[k])
                    if is_kept:
                        waiting[kept] = source
                        kept += 1
                    else:
                        relevant[source] = True
                        self.queue.push_back(source)
                self.waiting_count[state] = kept - self.first[state]
        return self.head == self.queue.size()


cdef class RelevantPairs(ProperTable):
    """The table of one constraint whose liveness comes from the search, made at once for all that `start` leads to.

    `start`: the last token (-1: none) and the keys the text may begin with; None: the text begins here. `max_seconds`:
    how long the search may take (None: as long as it likes). `skip_visited`: see the module. Raises LimitExceeded past
    `max_transitions` entries, `max_pairs` visited pairs or `max_seconds`.
    """

    cdef const int32_t* state_of
    cdef int64_t fresh, width
    cdef Keys keys  # see `PairSearch`
    cdef vector[int32_t] of_entry
    cdef vector[uint8_t] relevant
    cdef readonly int64_t visited_pairs, edges

    def __init__(
        self, automaton, canonicity, start=None, max_transitions=30_000_000, max_pairs=MAX_PAIRS, max_seconds=None,
        skip_visited=False,
    ):
        cdef PairSearch search
        ProperTable.__init__(self, automaton, canonicity, max_transitions, every_state=True)
        last, keys = begin_state(self) if start is None else start
        for key in keys:
            self.rows.number(key)
        self.rows.make_rows()
        search = PairSearch(self.rows, canonicity, last, keys, max_pairs, skip_visited)
        self.visited_pairs, self.edges = search.search(max_seconds)
        self.state_of, self.fresh, self.width, self.keys = search.state_of, search.fresh, search.width, search.keys
        self.of_entry.swap(search.of_entry)
        self.relevant.swap(search.relevant)

    @property
    def relevant_pairs(self):
        """How many of the visited pairs are relevant."""
        cdef int64_t count = 0
        cdef uint8_t is_relevant
        for is_relevant in self.relevant:
            count += is_relevant
        return count

    @property
    def dead_transitions(self):
        """How many entries lead to a pair that is not relevant, or that the start does not lead to."""
        cdef int64_t dead = 0
        cdef int32_t pair
        for pair in self.of_entry:
            dead += not self.relevant[pair]
        return dead

    @property
    def nbytes(self):
        """Memory of the table and of its automaton."""
        found = self.keys.bytes() + 4 * self.of_entry.capacity() + self.relevant.capacity()
        return ProperTable.nbytes.__get__(self) + found

    cpdef bint is_live(self, int64_t key, int64_t last) except -1:
        """Whether the pair of a state and the last token is relevant. Pairs that the start does not lead to are not."""
        cdef int32_t state, pair = -1
        self.check(key, last)
        state = self.rows.numbers.find(key)
        if state >= 0:
            pair = self.keys.find(state * self.width + bigram_after(self.state_of, last, self.fresh))
        return pair >= 0 and self.relevant[pair]

    cdef int64_t judge_row(self, int64_t key) except -1:
        cdef int32_t state = self.rows.numbers.find(key)
        cdef int64_t begin, count, k
        if state < 0:
            return 0
        begin = self.rows.offsets[state]
        count = self.rows.offsets[state + 1] - begin
        for k in range(count):
            self.row_tokens[k] = self.rows.tokens[begin + k]
            self.row_keys[k] = <int32_t>self.rows.numbers.key(self.rows.targets[begin + k])
            self.row_live[k] = self.relevant[self.of_entry[begin + k]]
        return count
