"""The lexer: which lexemes the bytes since the last border may be, or become. One table look-up a byte.

The parser says which lexemes may begin at a place (`Lexer.start_state`), so every lexeme is contextual. Bytes then lead
from lexer state to lexer state. States are interned by content, shared by all places, and transitions are made when
they are first needed.

Words. A *lexer state* is a set of components (`tokdfa.grammar.lexer_components`), at most one for a
lexeme: all that is possible after the bytes read since the lexeme began.

A lexeme *ends* where the parser may go on. What a lexer state says of it (`accepting`): the set of lexemes that match
exactly the bytes read, as the number of an interned *accepting set*, or -1. Longest match: such a lexeme ends only
where the next byte cannot continue any component. Two kinds end at once, which `completes` says: lazy lexemes (then
greedy ones that match too are dropped: llguidance), and sets whose components can none of them go on, which is no
choice but saves a state. What happens when a byte cannot go on and the state does not accept is the parser's business
(`tokdfa.backends.earley_trie.machine`), since there are two rules for it.

A *start state*, in which lexemes may begin, is never the target of a transition, even if its components are: nothing
has been read there, so no lexeme can end. Lexemes never match the empty text, so a start state accepts nothing.

Layout. A flat table of *entries*, state x class of bytes: the state after the byte if nothing else happens there; DEAD;
UNKNOWN; or from BORDER down, where the parser has to be asked: a lexeme ends at once, or it may end before the byte and
the byte loses the match. So a walk needs one look-up for nearly every byte (`tokdfa.backends.earley_trie.walks`).

Source: llguidance (lazy automaton over sets of lexemes). The product of minimal automata instead of a set of
derivatives, interned accepting sets and the start mark are ours. Cost: 20 to 50 ns a component for each new transition.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.vector cimport vector

from tokdfa.core.border cimport int32_array, pay
from tokdfa.vocabulary.byte_table cimport DEAD, UNKNOWN

import numpy as np

from tokdfa.core.budget import spend
from tokdfa.errors import LimitExceeded
from tokdfa.grammar.lexer_components import Components


cdef enum:
    NS_PER_MOVE = 5      # of a component by a byte
    NS_PER_ROW = 20_000  # of a lazy automaton
    PAID_MOVES = 1 << 16
    PAID_BYTES = 1 << 20


cdef const int32_t* numbers_of(object array) except? NULL:
    cdef const int32_t[::1] view = array
    return &view[0] if view.shape[0] else NULL


cdef const uint8_t* flags_of(object array) except? NULL:
    cdef const uint8_t[::1] view = array.view(np.uint8)
    return &view[0] if view.shape[0] else NULL


cdef class Lexer:
    """The lexer of a grammar. Not thread-safe.

    `max_states` bounds the lexer states, and separately the components that are made on demand. `components`: those of
    the grammar, if they are made already. `longest`: the lexing rule, which decides where the parser is asked.
    """

    def __init__(self, cfg, max_states=250_000, components=None, longest=True):
        self.cfg, self.max_states, self.longest = cfg, max_states, longest
        self.components = components or Components(cfg, max_states)
        self.class_count, self.lexeme_count = self.components.class_count, len(cfg.lexemes)
        self.view_components()

    # Making states.

    cdef int view_components(self) except -1:
        """Take pointers to the arrays of the components, which are replaced as they grow."""
        made = self.components
        self.arrays = (
            made.byte_class, made.component_table, made.component_lexeme, made.start_component,
            made.component_accepts, made.component_ends, made.is_lazy,
        )
        self.class_of = flags_of(self.arrays[0])
        self.table, self.lexeme_of = numbers_of(self.arrays[1]), numbers_of(self.arrays[2])
        self.start_of = numbers_of(self.arrays[3])
        self.accepts_in, self.ends_in = flags_of(self.arrays[4]), flags_of(self.arrays[5])
        self.is_lazy = flags_of(self.arrays[6])
        return 0

    cdef int fill_component(self, int32_t component) except -1 nogil:
        """Make the row of a component of a lazy automaton."""
        with gil:
            spend(NS_PER_ROW)
            try:
                self.components.fill_row(component)
            finally:
                self.view_components()
        return 0

    cdef int count(self, int64_t work, int64_t kept) except -1 nogil:
        """Count moves of components and bytes that are kept, and pay for many at once."""
        self.work += work
        self.kept += kept
        if self.work < PAID_MOVES and self.kept < PAID_BYTES:
            return 0
        work, kept = self.work, self.kept
        self.work = self.kept = 0
        return pay(NS_PER_MOVE * work, kept)

    cdef int32_t enter(self, const vector[int32_t]& content) except -1 nogil:
        cdef int32_t state = self.states.find(content.data(), content.size())
        cdef int32_t accepting = -1, completes = -1
        if state >= 0:
            return state
        state = <int32_t>self.states.size()
        if state >= self.max_states:
            with gil:
                raise LimitExceeded(
                    f"the lexer has more than {self.max_states} states; simplify the terminals that overlap, lower"
                    " their repeat bounds, or raise max_lexer_states",
                    limit="max_lexer_states",
                    value=self.max_states,
                )
        self.count(0, 4 * (self.class_count + content.size() + 8))
        if content.empty() or content[0] != START_MARK:
            self.find_sets(content, &accepting, &completes)
        self.entries.resize((<size_t>state + 1) * self.class_count, UNKNOWN)
        self.accepting_in.resize(state + 1)
        self.completes_in.resize(state + 1)
        self.accepting_in[state], self.completes_in[state] = accepting, completes
        return self.states.intern(content.data(), content.size())

    cdef int find_sets(
        self, const vector[int32_t]& content, int32_t* accepting, int32_t* completes
    ) except -1 nogil:
        """The sets of a state with this content, where there are some."""
        cdef size_t k, kept = 0
        cdef bint all_end = True
        cdef int32_t lexeme
        self.ended.clear()
        for k in range(content.size()):
            if self.accepts_in[content[k]]:
                self.ended.push_back(self.lexeme_of[content[k]])
            all_end &= self.ends_in[content[k]]
        if self.ended.empty():
            return 0
        accepting[0] = self.sets.intern(self.ended.data(), self.ended.size())
        for k in range(self.ended.size()):
            lexeme = self.ended[k]
            if self.is_lazy[lexeme]:
                self.ended[kept] = lexeme
                kept += 1
        if kept:
            completes[0] = self.sets.intern(self.ended.data(), kept)
        elif all_end:
            completes[0] = accepting[0]
        return 0

    cdef int fill(self, int32_t state, int32_t column) except -1 nogil:
        cdef size_t k, size = self.states.length(state)
        cdef int64_t place
        cdef int32_t component, target
        self.count(10 + size, 0)
        self.content.clear()
        for k in range(size):
            component = self.states.content_of(state)[k]
            if component == START_MARK:
                continue
            place = <int64_t>component * self.class_count + column
            if self.table[place] == UNKNOWN:
                self.fill_component(component)
            target = self.table[place]
            if target >= 0:
                self.content.push_back(target)
        target = DEAD
        if not self.content.empty():
            target = self.enter(self.content)
        place = <int64_t>state * self.class_count + column
        self.entries[place] = self.entry_of(state, target)
        return 0

    cdef int32_t entry_of(self, int32_t state, int32_t target) noexcept nogil:
        """What stands in a state's row for a byte that leads to `target`, or to DEAD."""
        cdef bint accepts = self.accepting_in[state] >= 0
        if target < 0:
            return BORDER if accepts else DEAD
        if self.completes_in[target] >= 0 or (self.longest and accepts and self.accepting_in[target] < 0):
            return BORDER - 1 - target
        return target

    cdef int32_t target(self, int32_t state, int32_t column) except -2 nogil:
        cdef int64_t place = <int64_t>state * self.class_count + column
        if self.entries[place] == UNKNOWN:
            self.fill(state, column)
        return target_in(self.entries[place])

    cdef int check_state(self, int64_t state) except -1:
        if not 0 <= state < <int64_t>self.states.size():
            raise IndexError(f"there is no lexer state {state}")
        return 0

    # For Python.

    @property
    def state_count(self):
        """Lexer states made so far."""
        return self.states.size()

    @property
    def nbytes(self):
        """Memory of all tables in bytes."""
        own = 4 * (self.entries.capacity() + self.accepting_in.capacity() + self.completes_in.capacity())
        return own + self.states.bytes() + self.sets.bytes() + sum([array.nbytes for array in self.arrays])

    @property
    def accepting(self):
        """The accepting set of each state, -1 for none: a copy, int32."""
        return int32_array(self.accepting_in)

    @property
    def completes(self):
        """By state the set that ends in it at once, -1 for none: a copy, int32."""
        return int32_array(self.completes_in)

    @property
    def targets(self):
        """The state after a byte of each class, DEAD or UNKNOWN: a copy, int32, shape (states, classes)."""
        entries = int32_array(self.entries).reshape(-1, self.class_count)
        return np.where(entries > BORDER, entries, BORDER - 1 - entries)

    def accepting_set(self, int64_t state):
        """The accepting set of a state, or -1."""
        self.check_state(state)
        return self.accepting_in[state]

    def completing_set(self, int64_t state):
        """The set that ends in a state at once, or -1."""
        self.check_state(state)
        return self.completes_in[state]

    @property
    def byte_class(self):
        """uint8, shape (256,): byte -> class."""
        return self.components.byte_class

    @property
    def component_table(self):
        """int32, flat: component x classes -> component, DEAD or UNKNOWN. Replaced as it grows."""
        return self.components.component_table

    def make_component(self, int32_t component):
        """Make the row of a component that lacks it. Raises LimitExceeded."""
        self.fill_component(component)

    def may_end_early(self, state):
        """Whether a lazy lexeme may be read in a state: where it ends, so do all others."""
        return any([self.is_lazy[<int32_t>lexeme] for lexeme in self.lexemes_in(state)])

    def components_of(self, int64_t state):
        """The components of a lexer state, in the order of their lexemes."""
        cdef size_t k
        self.check_state(state)
        content = [self.states.content_of(state)[k] for k in range(self.states.length(state))]
        return content[1:] if content[:1] == [START_MARK] else content

    def contents(self):
        """(the components of all states, one state after another; how many each has): int32."""
        cdef vector[int32_t] components, sizes
        cdef int32_t state
        cdef size_t k, before
        for state in range(<int32_t>self.states.size()):
            before = components.size()
            for k in range(self.states.length(state)):
                if self.states.content_of(state)[k] != START_MARK:
                    components.push_back(self.states.content_of(state)[k])
            sizes.push_back(<int32_t>(components.size() - before))
        return int32_array(components), int32_array(sizes)

    def is_start(self, int64_t state):
        """Whether `state` is a start state, in which nothing was read."""
        self.check_state(state)
        return self.states.length(state) > 0 and self.states.content_of(state)[0] == START_MARK

    def lexemes_of(self, int64_t accepting_set):
        """The lexemes of an accepting set, ascending."""
        cdef size_t k
        if not 0 <= accepting_set < <int64_t>self.sets.size():
            raise IndexError(f"there is no accepting set {accepting_set}")
        return [self.sets.content_of(accepting_set)[k] for k in range(self.sets.length(accepting_set))]

    def lexemes_in(self, int64_t state):
        """The lexeme of each component of a lexer state, ascending."""
        return [self.lexeme_of[<int32_t>component] for component in self.components_of(state)]

    def set_of(self, lexemes):
        """The number of the accepting set of these lexemes (ascending)."""
        cdef vector[int32_t] content = lexemes
        return self.sets.intern(content.data(), content.size())

    def start_state(self, lexemes):
        """The lexer state in which exactly these lexemes (ascending) may begin."""
        starts = [int(self.components.start_component[lexeme]) for lexeme in lexemes]
        return self.state_of([START_MARK, *[component for component in starts if component >= 0]])

    def state_of(self, components):
        """The lexer state of these components, in the order of their lexemes (a start mark first: a start state)."""
        cdef vector[int32_t] content = components
        return self.enter(content)

    def step(self, int64_t state, uint8_t byte):
        """The lexer state after `byte`, or -1 where no component goes on."""
        self.check_state(state)
        return self.target(<int32_t>state, self.class_of[byte])

    def explore(self, int64_t state=0):
        """Make the transitions of `state` and of all states behind it, but for those in which a lexeme ends at once."""
        cdef int32_t column
        with nogil:
            while state < <int64_t>self.states.size():
                if self.completes_in[state] < 0:
                    for column in range(self.class_count):
                        self.target(<int32_t>state, column)
                state += 1
