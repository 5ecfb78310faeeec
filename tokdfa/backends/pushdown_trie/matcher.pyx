# cython: auto_pickle=False, wraparound=True
"""Matchers of `pushdown_trie`.

A matcher's state is the number of a row. A token over rows that are made is read without Python; so are masks that are
kept. For others the constraint's tables are asked (`tokdfa.backends.pushdown_trie.compiled`).

A text may have more rows than one set of tables holds. If the tables are begun anew, the matcher moves: the last rows
are carried over by their content, and those before are read again if a rollback comes to them; or it reads its tokens
again.
"""

from cpython.long cimport PyLong_AsLongLongAndOverflow
from libc.stdint cimport int32_t, int64_t

from tokdfa.backends.matcher cimport Matcher
from tokdfa.backends.pushdown_trie.steps cimport Steps
from tokdfa.backends.state_matcher cimport StateMatcher
from tokdfa.vocabulary.byte_table cimport DEAD, UNKNOWN

from tokdfa.backends.pushdown_trie.rows import ROOT, MachineFull
from tokdfa.errors import LimitExceeded

#: Rows of a text that are carried over into new tables, the last ones.
CARRIED = 64


cdef enum:
    GONE = -1  # in the place of a row before those that were carried over


cdef class PushdownMatcher(StateMatcher):
    """See the module's docstring."""

    def __init__(self, compiled):
        self.bind(compiled.vocab)
        self.state = 0
        self._compiled, self._lock, self.simple = compiled, compiled.lock, compiled.complete
        self.trie, self.end_tokens = compiled.vocab.trie.flat, compiled.vocab.end_token_set
        self.filler, self.working, self.keeps = compiled.filler, compiled.working, compiled.keeps_masks
        self.token_sets = compiled.program.source.token_sets
        self.counters.update(nodes_visited=0, rows_made=0, masks_made=0)
        self._use(compiled.generation)

    def _use(self, generation):
        self._generation, self._machine = generation, generation.machine
        self._serve_from(generation.masks, generation.steps)

    cdef int64_t after(self, object token) except? -3:
        cdef int overflow = 0
        cdef int64_t number, row, begin, end
        if not self.simple or self.has_ended():
            return UNKNOWN
        number, row = PyLong_AsLongLongAndOverflow(token, &overflow), self.current
        if not (0 <= number < self.trie.size and 0 <= row < self._machine.t.row_count):
            return UNKNOWN
        begin, end = self.trie.offsets[number], self.trie.offsets[number + 1]
        return self._machine.peek(row, self.trie.data + begin, end - begin) if begin < end else UNKNOWN

    cdef bint take_known(self, object token) except -1:
        cdef int64_t after = self.after(token)
        if after < 0:
            return StateMatcher.take_known(self, token)
        self.enter(after)
        return True

    cdef int write_new(self) except -1:
        if not self.simple or self.token_sets:
            return StateMatcher.write_new(self)
        try:
            return self.make_mask(self.words)
        except MachineFull:
            return StateMatcher.write_new(self)

    cdef int make_mask(self, int32_t* words) except -1:
        cdef Steps machine = self._machine
        cdef int64_t nodes = machine.nodes_visited, rows = machine.t.row_count
        with self._lock:
            if self.filler.make(machine, self.store, self.current, words, self.working, self.keeps):
                self.count_made(nodes, rows)
        return 0

    cdef int count_made(self, int64_t nodes, int64_t rows) except -1:
        """Count a mask that was made when so many nodes were visited, and there were so many rows."""
        counters = self.counters
        counters["nodes_visited"] += self._machine.nodes_visited - nodes
        counters["rows_made"] += self._machine.row_count - rows
        counters["masks_made"] += 1
        return 0

    def _fill_mask(self, out):
        try:
            self._fill(self.state, out)
        except MachineFull:
            self._retry(lambda: self._fill(self.state, out))

    def _next(self, token):
        cdef int64_t number = token, begin = self.trie.offsets[number], end = self.trie.offsets[number + 1]
        cdef int64_t row = DEAD
        if self.simple and begin < end and token not in self.end_tokens:
            try:
                with self._lock, self.working:
                    row = self._machine.read(self.current, self.trie.data + begin, end - begin)
            except MachineFull:
                pass
            else:
                if row < 0:
                    return None
                if self.after(token) < 0:  # rows on the way were not made
                    self._generation.steps.keep(self.current, token, row)
                return row
        return self._retry(lambda: StateMatcher._next(self, token))

    def can_end(self):
        return self._retry(lambda: StateMatcher.can_end(self))

    def _forced_bytes(self, limit):
        if not (self.simple and self._compiled.pool.automata.has_all_bytes):  # the program knows no tokens
            return Matcher._forced_bytes(self, limit)
        if self.state is self.FINISHED:
            return b""
        return self._retry(lambda: self._machine.forced_bytes(self.state, limit))

    def _retry(self, do):
        """What `do` returns; if the tables are full, move to new ones and do it again.

        The newest tables may be full of what others have read. Then others get new ones, and this matcher its own.
        All that counts towards the budget of one step.
        """
        with self._compiled.lock, self._compiled.working:
            return self._retry_within_budget(do)

    def _retry_within_budget(self, do):
        compiled = self._compiled
        try:
            return do()
        except MachineFull:
            compiled.renew(self._generation)
        newest = compiled.generation
        try:
            self._move(newest)
            return do()
        except MachineFull:
            compiled.renew(newest)
        try:
            self._move(compiled.begin_generation())
            return do()
        except MachineFull as full:
            raise LimitExceeded(
                "one text fills the tables of the constraint by itself; raise table_mb", limit="table_mb",
                value=compiled.settings["table_mb"],
            ) from full

    def _move(self, generation):
        """Go on in other tables: with the last rows, or by reading all tokens again where rows cannot be carried over.

        Raises MachineFull, and then nothing has changed.
        """
        cdef PushdownMatcher other
        if self._carry(generation):
            return
        other = PushdownMatcher(self._compiled)
        other._use(generation)
        for token in self._tokens:
            following = StateMatcher._next(other, token)
            assert following is not None  # it was allowed before
            other._history.append(other.state)
            other.state = following
        self._use(generation)
        self.state, self._history = other.state, other._history

    def _carry(self, generation):
        """Take the last rows over into new tables by their content; False if that is not possible."""
        last = [*self._history[-CARRIED:], self.state]
        if self.state is self.FINISHED or last[-1] == GONE:
            return False
        machine, old, moved = generation.machine, self._machine, {ROOT: ROOT}
        rows = [GONE if row == GONE else machine.carry(old, row, moved) for row in last]
        if rows[-1] < 0:
            return False
        self._use(generation)
        self.state, self._history = rows[-1], [GONE] * (len(self._history) + 1 - len(rows)) + rows[:-1]
        return True

    def _rollback(self, count):
        StateMatcher._rollback(self, count)
        if self.state == GONE:
            with self._compiled.lock, self._compiled.working:
                self._read_again(self._tokens[: len(self._tokens) - count])

    def _read_again(self, tokens):
        """Read tokens from the beginning of the text on, in as many tables as that takes."""
        self._use(self._compiled.begin_generation())
        self.state, self._history = 0, []
        for token in tokens:
            try:
                following = StateMatcher._next(self, token)
            except MachineFull:
                if not self._carry(self._compiled.begin_generation()):
                    raise
                following = StateMatcher._next(self, token)
            assert following is not None  # it was allowed before
            self._history.append(self.state)
            self.state = following

    def _step(self, state, token):
        target = self._generation.step(state, token)
        return None if target < 0 else target

    def _accepts(self, state):
        with self._lock:
            return self._machine.can_end(state)

    def _fill(self, state, out):
        cdef int64_t nodes = self._machine.nodes_visited, rows = self._machine.row_count
        if self._generation.make_mask(state, out):
            self.count_made(nodes, rows)

    def situation_source(self):
        return self._generation

    def _fork_empty(self):
        other = PushdownMatcher(self._compiled)
        other._use(self._generation)
        return other
