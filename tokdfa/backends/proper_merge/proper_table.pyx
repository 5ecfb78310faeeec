# cython: auto_pickle=False
"""The table behind proper token masks: which tokens go on from a state, and can the text still be completed?

Words. For *states*, their *keys* and their *rows* see `tokdfa.backends.proper_merge.proper_rows`. A pair (state, u) is
*live* iff, u being the last token, some proper sequence of tokens completes a text of the constraint. The tokens of the
row that lead to a live pair are the state's *live tokens*; the mask in the state after the token t are its live tokens,
but for those forbidden after t.

Liveness. A state is *full* if it is live whatever the last token: where the text may end, where a border may stand
(a new piece has no last token, and every text has an encoding), or inside a character that byte tokens have begun. For
any other state q, (q, u) is live iff some live token of q is canonical after u: a least fixpoint (002 finds it by a
search over pairs of states of two automata). Instead of pairs, we keep for each state the *suspects*: the tokens that
all live tokens tried so far refuse to follow. The first live token v brings the tokens that v may not follow (a few
intervals, `tokdfa.proper.intervals`), each further one strikes some off; nearly always nothing is left after a few,
and the state is as good as full. A pair with a suspect is decided by going through the live tokens.

Only states that a question needs get rows: a mask needs the liveness of its targets, which needs the rows of those that
are not full, and so on (`ProperRows.close`). With a pre-tokenizer nearly all are full, and masks are made when first
asked for; without one nothing but the ends of texts is full, and the first mask settles all states.

Cost: one trie walk a row, and a sweep or three over the rows (`tokdfa run experiments/proper_table2.yaml`).
Source: 002, technical appendix, algorithms 5 and 6 (relevant pairs); the rest is ours.
"""

from libc.stdint cimport INT32_MAX, int16_t, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy
from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

from tokdfa.backends.proper_merge.proper_rows cimport (
    BORDERS, ENDS, WHOLE, ProperRows, TokenReader, byte_data,
)
from tokdfa.core.border cimport HELD_WORK, PAID_WORK, pay
from tokdfa.proper.bpe cimport int32_data
from tokdfa.proper.intervals cimport lower_bound

import numpy as np

from tokdfa.core.locks import new_lock
from tokdfa.errors import LimitExceeded


cdef enum:
    TRIES = 16          # live tokens, spread over the row, that are tried on a state's suspects at a time
    SHORT_ROW = 1024    # with at most so many tokens, going through the live ones is cheaper than a list of suspects

cdef enum:  # what is known of a state
    NO_TOKEN        # no live token yet
    SUSPECTS        # live but for its suspects
    ALL_TOKENS      # live whatever the last token
    SHORT           # some live tokens and a short row: every token is a suspect


cdef class ProperTable:
    """Rows and liveness of one constraint for one tokenizer, made as needed. Safe to share between threads."""

    def __init__(self, automaton, canonicity, int64_t max_transitions=30_000_000, bint every_state=False):
        cdef int32_t[:, ::1] scratch
        cdef uint8_t[::1] live
        cdef const int16_t[::1] byte_of
        whole, trie, whole_trie = canonicity.whole_pieces, canonicity.text_trie, canonicity.whole_piece_trie
        if automaton.state_count * whole.node_count > INT32_MAX:
            raise LimitExceeded(
                f"{automaton.state_count} states with {whole.node_count} nodes of whole pieces do not fit 32 bits: "
                "lower the constraint's repeat bounds",
                limit="states",
                value=INT32_MAX // whole.node_count,
            )
        self.automaton, self.canonicity, self.lock, self.size = automaton, canonicity, new_lock(), canonicity.size
        self.reader = TokenReader(
            automaton, canonicity.fallback, trie, whole, whole_trie, canonicity.vocabulary.trie.rank_of
        )
        self.rows = ProperRows(self.reader, max_transitions, every_state)
        self.pairs, self.before = canonicity.pairs, canonicity.predecessors
        self.arrays = canonicity.usable, whole_trie.rank_of, canonicity.fallback
        self.usable, self.whole_rank = byte_data(canonicity.usable), int32_data(whole_trie.rank_of, self.size)
        if canonicity.fallback is not None:
            byte_of = canonicity.fallback.byte_of
            self.byte_of = &byte_of[0]
        self.scratch = scratch = np.empty((3, self.reader.row_room), dtype=np.int32)
        self.row_tokens, self.row_keys, self.row_targets = &scratch[0, 0], &scratch[1, 0], &scratch[2, 0]
        self.scratch_live = live = np.empty(self.reader.row_room, dtype=np.bool_)
        self.row_live = &live[0]

    @property
    def node_count(self):
        """How many nodes the whole pieces have."""
        return self.reader.node_count

    @property
    def root(self):
        """The node at the beginning of a piece."""
        return self.reader.root

    @property
    def settled_states(self):
        """How many states have rows."""
        return self.rows.row_count()

    @property
    def transitions(self):
        """How many entries the rows have."""
        return self.rows.offsets.back()

    @property
    def dead_transitions(self):
        """How many of them lead nowhere, the tokens being proper."""
        cdef int64_t dead = self.rows.offsets.back()
        cdef uint8_t is_live
        for is_live in self.live:
            dead -= is_live
        return dead

    @property
    def nbytes(self):
        """Memory of the table and of its automaton."""
        known = 33 * self.known.capacity() + self.live.capacity()
        tokens = self.live_tokens.capacity() + self.suspects.capacity()
        return self.rows.nbytes + self.automaton.nbytes + known + 4 * tokens

    def is_full(self, int64_t key):
        """Whether the state is live whatever the last token, by what it is."""
        self.check(key, 0)
        return self.reader.is_full(key)

    def add_live_tokens(self, int64_t key, int32_t[::1] out not None):
        """Set the bits of the live tokens of a state. A trie walk and more the first time: 1 us to many ms."""
        cdef int64_t k
        cdef uint32_t* words
        if out.shape[0] < (self.size + 31) // 32:
            raise ValueError(f"out has {out.shape[0]} words for {self.size} tokens")
        self.check(key, 0)
        with self.lock:
            words = <uint32_t*>&out[0]
            for k in range(self.judge_row(key)):
                words[self.row_tokens[k] >> 5] |= <uint32_t>self.row_live[k] << (self.row_tokens[k] & 31)

    def row(self, int64_t key):
        """(tokens, the keys they lead to, whether each is live) of a state: int32, int32, bool, copies."""
        cdef int64_t count
        self.check(key, 0)
        with self.lock:
            count = self.judge_row(key)
            return self.scratch[0, :count].copy(), self.scratch[1, :count].copy(), self.scratch_live[:count].copy()

    def read_row(self, int64_t key):
        """(tokens, the keys they lead to) of a state: int32, copies. Settles nothing."""
        cdef int64_t count
        self.check(key, 0)
        with self.lock:
            count = self.reader.read_row(key, self.row_tokens, self.row_keys)
            return self.scratch[0, :count].copy(), self.scratch[1, :count].copy()

    cpdef bint is_live(self, int64_t key, int64_t last) except -1:
        """Whether the pair of a state and the last token is live."""
        self.check(key, last)
        if self.reader.is_full(key):
            return True
        with self.lock:
            return self.may_live(self.settled_state(key), last)

    cpdef int64_t step(self, int64_t key, int64_t token) except -2:
        """The state after a token that is read inside the piece, if the pair of both is live; otherwise -1.

        Whether the token is canonical after the one before is not asked. 0.1 us, and 0.2 more where the state is not
        full.
        """
        cdef int64_t found = self.read(key, token)
        return found if found < 0 or self.is_live(found, token) else -1

    cpdef int64_t read(self, int64_t key, int64_t token) except -2:
        """The state after a token that is read inside the piece, live or not; -1 if it cannot be read."""
        cdef TokenReader reader = self.reader
        cdef uint32_t state, node
        cdef int32_t target = -1, byte = -1
        self.check(key, token)
        state, node = <uint32_t>key // reader.node_count, <uint32_t>key % reader.node_count
        if self.byte_of is not NULL:
            byte = self.byte_of[token]
        if byte >= 0:
            if reader.fallback_class[byte] >= 0:
                target = reader.table[state * reader.classes + reader.fallback_class[byte]]
        elif self.usable[token] and (node != WHOLE or reader.node_count == 1):
            target = reader.run(state, token)
        elif <int32_t>node == reader.root and self.whole_rank[token] >= 0:
            target = reader.run(state, token)
            if target < 0 or not reader.can_stop[target // reader.classes] & (ENDS | BORDERS):
                return -1
            return target // reader.classes * reader.node_count + WHOLE
        if target < 0:
            return -1
        return target // reader.classes * reader.node_count + reader.node_after(node, token)

    cdef int check(self, int64_t key, int64_t token) except -1:
        if not 0 <= key < self.reader.key_count:
            raise IndexError(f"there is no state {key}")
        if not 0 <= token < self.size:
            raise IndexError(f"there is no token {token}")
        return 0

    # Rows with their liveness.

    cdef int64_t judge_row(self, int64_t key) except -1:
        cdef int64_t count
        cdef int32_t state
        if not self.reader.is_full(key):
            state = self.settled_state(key)
            count = self.reader.read_row(key, self.row_tokens, self.row_keys)
            if count:
                memcpy(self.row_live, &self.live[self.rows.offsets[state]], count)
            return count
        count = self.reader.read_row(key, self.row_tokens, self.row_keys)
        if count <= HELD_WORK:
            self.judge_targets(count)
        else:
            with nogil:
                self.judge_targets(count)
        return count

    cdef int judge_targets(self, int64_t count) except -1 nogil:
        """Say which entries of the row that was read last are live."""
        cdef int64_t k
        cdef int32_t greatest = -1
        for k in range(count):
            self.row_targets[k] = self.rows.number_target(self.row_keys[k])
            greatest = max(greatest, self.row_targets[k])
        if greatest >= <int32_t>self.settled:
            with gil:
                self.settle()
        for k in range(count):
            self.row_live[k] = self.row_targets[k] < 0 or self.may_live(self.row_targets[k], self.row_tokens[k])
        return 0

    cdef int32_t settled_state(self, int64_t key) except -1:
        """The number of a state that is not full, its row made and settled."""
        cdef int32_t state = self.rows.numbers.intern(key)
        if state >= <int32_t>self.settled:
            self.settle()
        return state

    # Liveness.

    cdef int settle(self) except -1:
        """Make rows for all numbered states, and find which entries are live."""
        try:
            self.rows.make_rows()
        finally:
            self.settled = min(self.settled, self.rows.row_count())  # if it has forgotten all
        if self.rows.offsets.back() - self.rows.offsets[self.settled] <= HELD_WORK:
            self.find_live()
        else:
            with nogil:
                self.find_live()
        return 0

    cdef int find_live(self) except -1 nogil:
        """Sweep from the last state back until nothing changes. After an error all of it is done again."""
        cdef vector[int32_t] grew  # the last sweep in which a state got live tokens
        cdef int64_t begin = self.settled, count = self.rows.row_count(), entries = self.rows.offsets.back()
        cdef int64_t state, work = 0
        cdef int32_t sweep = 1
        cdef bint changed = True
        self.status.resize(begin)
        self.known.resize(begin)
        self.live.resize(self.rows.offsets[begin])
        self.status.resize(count)
        self.known.resize(count)
        self.live.resize(entries)
        self.live_tokens.resize(entries)
        grew.resize(count - begin)
        while changed:
            changed = False
            for state in range(count - 1, begin - 1, -1):
                changed |= self.sweep_row(state, sweep, grew)
                work += self.rows.offsets[state + 1] - self.rows.offsets[state]
                if work > PAID_WORK:
                    pay(0, 0)
                    work = 0
            sweep += 1
        self.settled = count
        return 0

    cdef bint sweep_row(self, int64_t state, int32_t sweep, vector[int32_t]& grew) except -1 nogil:
        """Find more live entries of a state, among those whose targets have got live tokens. Whether there are some."""
        cdef int32_t begin = self.settled, target
        cdef int64_t first = self.rows.offsets[state], end = self.rows.offsets[state + 1], k, wait = 4 * TRIES
        cdef const int32_t* tokens = self.rows.tokens.data()
        cdef const int32_t* targets = self.rows.targets.data()
        cdef uint8_t* live = self.live.data()
        cdef Liveness* known = &self.known[state]
        for k in range(first, end):
            if live[k]:
                continue
            target = targets[k]
            if sweep > 1 and (target < begin or grew[target - begin] < sweep - 1):
                continue
            if target >= 0 and not self.may_live(target, tokens[k]):
                continue
            live[k] = True
            self.live_tokens[first + known.live_count] = tokens[k]
            known.live_count += 1
            grew[state - begin] = sweep
            if end - first <= SHORT_ROW:
                self.status[state] = SHORT
            elif self.status[state] == SUSPECTS and known.live_count - known.tried > wait:
                self.clear_suspects(state)
                wait *= 4
        if grew[state - begin] < sweep:
            return False
        if end - first > SHORT_ROW and self.status[state] != ALL_TOKENS:
            self.clear_suspects(state)
        return True

    cdef int clear_suspects(self, int64_t state) except -1 nogil:
        """Try some live tokens, spread over those not tried yet, on the suspects of a state.

        A state without suspects so far gets those of the live token that has the fewest.
        """
        cdef vector[int32_t] left, other
        cdef Liveness* known = &self.known[state]
        cdef int32_t* untried = &self.live_tokens[self.rows.offsets[state] + known.tried]
        cdef int64_t count = known.live_count - known.tried, tries = min(<int64_t>TRIES, count), k
        cdef size_t j, kept
        for k in range(tries):
            untried[k], untried[k * count // tries] = untried[k * count // tries], untried[k]
        if self.status[state] == NO_TOKEN:
            self.before.list_forbidden(untried[0], left)
            for k in range(1, tries):
                if left.size() <= TRIES:
                    break
                self.before.list_forbidden(untried[k], other)
                if other.size() < left.size():
                    left.swap(other)
            sort(left.begin(), left.end())
            known.suspect_begin = self.suspects.size()
        else:
            left.assign(
                self.suspects.begin() + known.suspect_begin, self.suspects.begin() + known.suspect_end
            )
        for k in range(tries):
            kept = 0
            for j in range(left.size()):
                if self.pairs.find_break(left[j], untried[k]) >= 0:
                    left[kept] = left[j]
                    kept += 1
            left.resize(kept)
        if self.status[state] == NO_TOKEN:
            self.suspects.resize(self.suspects.size() + left.size())
        for j in range(left.size()):
            self.suspects[known.suspect_begin + j] = left[j]
        known.tried += tries
        known.suspect_end = known.suspect_begin + left.size()
        if left.empty():
            self.status[state] = ALL_TOKENS
        else:
            self.status[state] = SUSPECTS
        return 0

    cdef bint may_live(self, int32_t state, int32_t last) noexcept nogil:
        """Whether (state, last) is live, by what is known so far."""
        cdef uint8_t status = self.status[state]
        cdef Liveness* known = &self.known[state]
        cdef const int32_t* place
        cdef const int32_t* past
        cdef int64_t k
        if status == NO_TOKEN or status == ALL_TOKENS:
            return status == ALL_TOKENS
        if status == SUSPECTS:
            place, past = self.suspects.data() + known.suspect_begin, self.suspects.data() + known.suspect_end
            place = lower_bound(place, past, last)
            if place == past or place[0] != last:
                return True
        place = self.live_tokens.data() + self.rows.offsets[state]
        for k in range(known.tried, known.live_count):
            if self.pairs.find_break(last, place[k]) < 0:
                return True
        return False
