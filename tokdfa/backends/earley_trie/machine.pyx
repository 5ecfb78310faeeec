"""Lexer and Earley rows as one recogniser of bytes.

Words. A *situation* is all that the recogniser knows: the row before the current lexeme, the lexer state after the
bytes of the lexeme read so far, and a *fallback*, mostly -1. Situations are interned, so a matcher's state is one
number.

A byte that the lexer can continue with changes the lexer state alone; that is what happens at nearly every node of a
walk (llguidance: over 99.5 %). Otherwise the lexeme ends, the parser reads it (`Rows.scan`, remembered by row and
accepting set), and the byte begins a lexeme of the next row. What ends a lexeme is the *lexing rule*:

- `one_byte` (llguidance's): the lexer goes on while it can. If it cannot, it must be accepting right there. So with
  ``list|listen`` before ``ed``, the text "listed" is lost at its "d".
- `longest` (maximal munch, as Lark means it): the lexeme is the longest that matches. Where an accepting state is left
  for one that does not accept, the fallback remembers the situation that ending there would have led to, and it is
  stepped along; once a longer match is found it is dropped, and if the lexer dies it takes over. A fallback may have a
  fallback of its own, and so on: a *chain*. Two links with the same row and lexer state live, match and die together,
  so the inner one never takes over and is left out: a chain is as long as its rows differ. Most grammars have no
  fallback that lives for more than a byte.

The *skip* lexeme may begin wherever a lexeme may (Lark), or only between two lexemes (`skip_at_ends` false;
llguidance).

Rows, states and situations are made when they are first needed, and whole or not at all: a limit leaves everything
usable. Cost: 50 ns a byte, and about 1 us a new row.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from tokdfa.backends.earley_trie.rows cimport Rows, row_accepts
from tokdfa.core.interning cimport pair_key
from tokdfa.grammar.lexer cimport START_MARK, Lexer
from tokdfa.vocabulary.byte_table cimport DEAD

from tokdfa.core.budget import spend
from tokdfa.errors import LimitExceeded

#: Links of a chain at most.
MAX_CHAIN = CHAIN_LINKS


cdef enum:
    NS_PER_BYTE = 200  # without new rows


cdef class Machine:
    """The recogniser of a grammar. Not thread-safe: see `tokdfa.backends.earley_trie.strategy`, which holds a lock."""

    def __init__(
        self, cfg, *, longest=True, skip_at_ends=True, max_rows=1_000_000, max_row_items=200_000,
        max_lexer_states=250_000,
    ):
        self.cfg, self.longest, self.skip_at_ends = cfg, longest, skip_at_ends
        self.lexer = Lexer(cfg, max_lexer_states, longest=longest)
        self.rows = Rows(cfg, max_rows, max_row_items, not longest)
        self.max_situations = 8 * max_rows
        self.start = self.enter(0, self.start_in(0), -1)

    # From situation to situation.

    cdef int32_t start_in(self, int32_t row) except -1 nogil:
        cdef int32_t k, symbol, component, skip = self.rows.skip
        cdef int32_t first = self.rows.segment_begin[row], past = self.rows.segment_begin[row + 1]
        cdef bint placed
        if row < <int32_t>self.start_states.size() and self.start_states[row] >= 0:
            return self.start_states[row]
        placed = skip < 0 or not (
            self.skip_at_ends
            or (row > 0 and past > first and self.rows.segment_symbol[first] < self.rows.lexeme_count)
        )
        self.content.assign(1, START_MARK)
        for k in range(first, past):
            symbol = self.rows.segment_symbol[k]
            if symbol >= self.rows.lexeme_count:
                break
            if not placed and skip < symbol:
                placed = True
                self.content.push_back(self.lexer.start_of[skip])
            component = self.lexer.start_of[symbol]
            if component >= 0:
                self.content.push_back(component)
        if not placed:
            self.content.push_back(self.lexer.start_of[skip])
        self.start_states.resize(self.rows.cores.size(), -1)
        self.start_states[row] = self.lexer.enter(self.content)
        return self.start_states[row]

    cdef int32_t end_of(self, int32_t row, int32_t accepting_set) except -1 nogil:
        cdef int64_t key = pair_key(row, accepting_set)
        cdef int32_t number = self.ended.find(key), following
        if number >= 0:
            return number
        self.scans += 1
        following = self.rows.scan(
            row, self.lexer.sets.content_of(accepting_set), self.lexer.sets.length(accepting_set)
        )
        self.after.resize(self.ended.size())  # without what an error has left
        self.after.push_back(Border(following, -1))
        return self.ended.intern(key)

    cdef bint end_lexeme(self, int32_t row, int32_t accepting_set, Border* after) except -1 nogil:
        cdef int32_t number = self.end_of(row, accepting_set)
        cdef Border* found = &self.after[number]
        if found.row < 0:
            return False
        if found.state < 0:
            found.state = self.start_in(found.row)
        after[0] = found[0]
        return True

    cdef int add_link(self, int count, int32_t row, int32_t state) noexcept nogil:
        """Put (row, state) in front of the new chain's `count` links, and drop a link that is the same. The new count.
        """
        cdef int k, kept = 0
        for k in range(count):
            if self.chain[k].row != row or self.chain[k].state != state:
                self.chain[kept] = self.chain[k]
                kept += 1
        self.chain[kept] = Border(row, state)
        return kept + 1

    cdef bint step(self, Situation* here, int32_t column) except -1 nogil:
        cdef int depth = 0, level, count = 0
        cdef int32_t row, state, target, accepted, begun, fallback = here.fallback
        cdef bint goes_on, completes, matches, ended
        cdef Border after
        cdef Situation link
        self.before[0] = Border(here.row, here.state)
        while fallback >= 0:
            depth += 1
            if depth + 1 >= CHAIN_LINKS:
                with gil:
                    raise_long_chain()
            link = situation_at(self, fallback)
            self.before[depth] = Border(link.row, link.state)
            fallback = link.fallback
        self.rows.work += depth * (depth + 8)
        for level in range(depth, -1, -1):  # the inmost fallback first
            row, state = self.before[level].row, self.before[level].state
            target = self.lexer.target(state, column)
            accepted = self.lexer.accepting_in[state]
            completes = target >= 0 and self.lexer.completes_in[target] >= 0
            goes_on = target >= 0 and not completes
            matches = goes_on and (not self.longest or self.lexer.accepting_in[target] >= 0)
            ended = False
            if completes:
                ended = self.end_lexeme(row, self.lexer.completes_in[target], &after)
            elif accepted >= 0 and not matches:
                ended = self.end_lexeme(row, accepted, &after)
                if ended:  # and the byte begins the next one
                    begun = self.lexer.target(after.state, column)
                    if begun == DEAD:
                        ended = False
                    elif self.lexer.completes_in[begun] >= 0:
                        ended = self.end_lexeme(after.row, self.lexer.completes_in[begun], &after)
                    else:
                        after.state = begun
            if accepted >= 0 or matches or completes:
                count = 0  # what the links further in would have led to is decided
            if ended:
                count = self.add_link(count, after.row, after.state)
            if goes_on:
                count = self.add_link(count, row, target)
        if count == 0:
            return False
        for level in range(count - 1):
            fallback = self.enter(self.chain[level].row, self.chain[level].state, fallback)
        here[0] = Situation(self.chain[count - 1].row, self.chain[count - 1].state, fallback)
        return True

    cdef bint read(self, Situation* here, const uint8_t* data, int64_t size) except -1 nogil:
        cdef int64_t k
        cdef int32_t column, entry
        for k in range(size):
            column = self.lexer.class_of[data[k]]
            if here.fallback < 0:
                entry = self.lexer.entries[<int64_t>here.state * self.lexer.class_count + column]
                if entry >= 0:
                    here.state = entry
                    continue
                if entry == DEAD:
                    return False
            if not self.step(here, column):
                return False
        return True

    cdef int32_t enter(self, int32_t row, int32_t state, int32_t fallback) except -1 nogil:
        cdef int32_t[3] content
        cdef int32_t found
        content[0], content[1], content[2] = row, state, max(fallback, -1)
        found = self.situations.find(content, 3)
        if found >= 0:
            return found
        if <int64_t>self.situations.size() >= self.max_situations:
            with gil:
                raise LimitExceeded(
                    f"the recogniser has met more than {self.max_situations} situations; raise max_rows",
                    limit="max_rows",
                    value=self.max_situations,
                )
        self.rows.count(0, 40)
        return self.situations.intern(content, 3)

    cdef int load(self, int64_t situation, Situation* out) except -1:
        if not 0 <= situation < <int64_t>self.situations.size():
            raise IndexError(f"there is no situation {situation}")
        out[0] = situation_at(self, <int32_t>situation)
        return 0

    cpdef int32_t row_at_border(self, int64_t situation) except -2:
        """The row after the lexeme being read, if it may end here; the row itself if none was begun; else -1."""
        cdef Situation link
        cdef int32_t accepted
        while situation >= 0:
            self.load(situation, &link)
            accepted = self.lexer.accepting_in[link.state]
            if accepted >= 0:
                return self.after[self.end_of(link.row, accepted)].row
            if self.lexer.is_start(link.state):
                return link.row
            situation = link.fallback
        return -1

    # For Python.

    @property
    def nbytes(self):
        """Memory of all tables in bytes."""
        own = self.situations.bytes() + self.ended.bytes() + 8 * self.after.capacity()
        return self.lexer.nbytes + self.rows.nbytes + own + 4 * self.start_states.capacity()

    def start_state(self, int64_t row):
        """The lexer state in which the lexemes that `row` allows may begin."""
        self.rows.check_row(row)
        return self.start_in(<int32_t>row)

    def next_row(self, int64_t row, int64_t accepting_set):
        """The row after one of the lexemes of the set, -1 if none may stand there."""
        self.rows.check_row(row)
        self.lexer.lexemes_of(accepting_set)
        return self.after[self.end_of(<int32_t>row, <int32_t>accepting_set)].row

    def intern(self, int64_t row, int64_t state, int64_t fallback):
        """The number of a situation."""
        cdef Situation link
        self.rows.check_row(row)
        self.lexer.check_state(state)
        if fallback >= 0:
            self.load(fallback, &link)
        return self.enter(<int32_t>row, <int32_t>state, <int32_t>max(fallback, -1))

    def view(self, int64_t situation):
        """(row, lexer state, fallback) of a situation."""
        cdef Situation here
        self.load(situation, &here)
        return here.row, here.state, here.fallback

    def run(self, int64_t situation, const uint8_t[::1] data not None, int64_t begin, int64_t end):
        """The situation after the bytes ``data[begin:end]``, or -1. O(bytes). Raises LimitExceeded."""
        cdef Situation here
        self.load(situation, &here)
        if not 0 <= begin <= end <= data.shape[0]:
            raise IndexError(f"there are {data.shape[0]} bytes, and {begin} to {end} are asked for")
        spend(NS_PER_BYTE * (end - begin))
        if begin < end and not self.read(&here, &data[begin], end - begin):
            return -1
        return self.enter(here.row, here.state, here.fallback)

    def can_end(self, situation):
        """Whether the text so far is complete."""
        cdef int32_t row = self.row_at_border(situation)
        return row >= 0 and row_accepts(self.rows, row)


cdef int raise_long_chain() except -1:
    raise LimitExceeded(
        f"the text may be cut into lexemes in more than {MAX_CHAIN} ways at once, because terminals that have"
        " matched may yet match more; make them end sooner, or use lexer=one_byte",
        limit="max_chain",
        value=MAX_CHAIN,
    )
