"""Masks of a grammar: its lexer and rows along the token trie, for the mask builder of `tokdfa.masks`.

The walk's step looks up what the lexer does with a byte (`tokdfa.grammar.lexer`), which decides at nearly
every node. Where a lexeme ends, a fallback has to be stepped along, or an entry is not known yet, `cross` takes the
step: it asks the parser, and makes what is missing. A situation in the stack without a fallback has, in place of that,
-1 less the *height*: how many lexemes have ended on the way.

**Divisions** are by lexer states. The tag of what is left is the accepting set of the lexeme that has ended; reading
goes on where it did. Under `one_byte` that is right where the lexer cannot go on; under `longest` it may be further
back, and the bytes since then are read again from the next row. A token at whose last byte the lexer is alive is
inside, as every lexer state can reach an end. The stack of a dividing walk holds a word for each depth: in its low bits
the lexer state, or NO_STATE after a lexeme that cannot go on; above it the code of the accepting set that was met last
and of its depth, -1 for none.

**Fallbacks.** In a situation (row, state, fallback) the main link (row, state) has not matched yet, or there would be
no fallback. What the state's division says of a token decides: inside, it is allowed, whatever the fallback is; left,
the main link has matched, which has dropped the fallback, so the row decides alone; and what is refused is allowed iff
it is in the fallback's own situation. So the mask of the fallback is made first, of the tokens that are left the bits
are cleared, and the main link's own are set. A chain is dealt with from its inmost link on.

**Row stack.** With `row_stack`, walks look for the row after a lexeme first where one was pushed last at that height,
as llguidance does.

Source: llguidance (lexer states and rows pushed and popped along the walk). Here both lie in a stack indexed by depth,
so nothing is popped. Cost: 3 ns a node, 20 ns a node at which a lexeme ends.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from tokdfa.backends.earley_trie.machine cimport Border, Machine, Situation
from tokdfa.grammar.lexer cimport BORDER, LexerView, target_in
from tokdfa.masks.builder cimport DIES, LEFT, RETRY, SURVIVES, Frame, MaskBuilder
from tokdfa.masks.divisions cimport Bits, Cut, left_code
from tokdfa.vocabulary.byte_table cimport DEAD, UNKNOWN, WalkProgress
from tokdfa.vocabulary.trie_nodes cimport FlatTrie

import numpy as np

from tokdfa.backends.earley_trie.lexer_names import StateNames
from tokdfa.core.budget import spend
from tokdfa.errors import ArgumentError, LimitExceeded


cdef enum:
    STATE_BITS = 26
    NO_STATE = (1 << 26) - 1
    NS_PER_BYTE = 200
    TARGET_NODES = 1 << 12  # of a walk for targets, between two times that situations get their numbers


cdef struct Pushed:  # what was pushed last at a height
    int32_t row
    int32_t accepting_set
    int32_t next_row
    int32_t next_state


cdef struct Reached:  # targets of tokens: situations met, not two equal ones in turn, and by token the place of its own
    const Situation* stack
    Situation* met
    int64_t count
    int64_t base
    int32_t* found
    uint64_t spare


# The holes of the walks.

cdef inline LexerView lexer_view "lexer_view" (EarleyMasks owner) noexcept nogil:
    return LexerView(
        owner.machine.lexer.entries.data(), owner.machine.lexer.class_of, owner.machine.lexer.class_count
    )


cdef inline int32_t situation_step "situation_step" (
    LexerView view, Situation* stack, uint64_t depth, uint64_t byte
) noexcept nogil:
    cdef const Situation* here = stack + depth
    cdef int32_t entry
    if here.fallback >= 0:
        return UNKNOWN
    entry = view.entries[<uint64_t><uint32_t>here.state * view.class_count + view.class_of[byte]]
    if entry >= 0:
        stack[depth + 1] = Situation(here.row, entry, here.fallback)
        return entry
    return DEAD if entry == DEAD else UNKNOWN


cdef inline int64_t target_step "target_step" (
    LexerView view, Situation* stack, uint64_t depth, uint64_t byte
) noexcept nogil:
    cdef int32_t found = situation_step(view, stack, depth, byte)
    return <int64_t>depth + 1 if found >= 0 else found


cdef int situation_mend "situation_mend" (
    EarleyMasks owner, Situation* stack, uint64_t depth, uint64_t byte
) except -1 nogil:
    return owner.cross(stack + depth, owner.machine.lexer.class_of[byte])


cdef inline void note_target "note_target" (Reached& out, uint64_t token, int64_t depth) noexcept nogil:
    cdef const Situation* here = out.stack + depth
    cdef const Situation* last = out.met + out.count - 1
    if out.count == 0 or last.row != here.row or last.state != here.state or last.fallback != here.fallback:
        if token == out.spare:
            return
        out.met[out.count] = here[0]
        out.count += 1
    out.found[token] = <int32_t>(out.base + out.count - 1)


cdef struct StateView:
    LexerView lexer
    const int32_t* accepting
    const int32_t* completes
    int64_t kept  # of a word the bits that the next one keeps, if nothing matches there
    int64_t lost  # and those that it has beside


cdef inline StateView state_view "state_view" (EarleyMasks owner) noexcept nogil:
    cdef int64_t tags = ~<int64_t>NO_STATE
    return StateView(
        lexer_view(owner), owner.machine.lexer.accepting_in.data(), owner.machine.lexer.completes_in.data(),
        tags if owner.machine.longest else 0, 0 if owner.machine.longest else tags,
    )


cdef inline int64_t state_step "state_step" (
    StateView view, int64_t* stack, uint64_t depth, uint64_t byte
) noexcept nogil:
    cdef int64_t word = stack[depth], state = word & NO_STATE
    cdef int32_t entry = DEAD, target, accepted
    if state != NO_STATE:
        entry = view.lexer.entries[<uint64_t>state * view.lexer.class_count + view.lexer.class_of[byte]]
        if entry == UNKNOWN:
            return UNKNOWN
    target = target_in(entry)
    if target < 0:
        return DEAD if word < 0 else LEFT - (word >> STATE_BITS)
    accepted, state = view.accepting[target], target
    if entry <= BORDER and view.completes[target] >= 0:
        accepted, state = view.completes[target], NO_STATE
    if accepted >= 0:
        stack[depth + 1] = left_code(accepted, <int64_t>depth + 1) << STATE_BITS | state
    else:
        stack[depth + 1] = (word & view.kept) | view.lost | state
    return target


cdef int state_mend "state_mend" (
    EarleyMasks owner, int64_t* stack, uint64_t depth, uint64_t byte
) except -1 nogil:
    owner.machine.lexer.fill(<int32_t>(stack[depth] & NO_STATE), owner.machine.lexer.class_of[byte])
    return RETRY


cdef extern from "tokdfa/masks/division.hpp" nogil:
    # the walk with these holes: nodes, where it is, the most nodes, owner, stack, out
    int walk_allowed "tokdfa::walk<lexer_view, situation_step, situation_mend, tokdfa::allow>" (
        const uint64_t*, WalkProgress&, int64_t, EarleyMasks, Situation*, Bits&) except -1
    int walk_targets "tokdfa::walk<lexer_view, target_step, situation_mend, note_target>" (
        const uint64_t*, WalkProgress&, int64_t, EarleyMasks, Situation*, Reached&) except -1
    int walk_states "tokdfa::walk<state_view, state_step, state_mend, tokdfa::allow_inside, tokdfa::leave>" (
        const uint64_t*, WalkProgress&, int64_t, EarleyMasks, int64_t*, Cut&) except -1


@cython.final
cdef class EarleyMasks(MaskBuilder):
    """Makes the masks of a machine over a trie, by divisions (`fill`) or by walks (`walk`). Not thread-safe.

    `row_stack`: see the module's page. Others as `tokdfa.masks.builder` has them.
    """

    cdef readonly Machine machine
    cdef readonly int64_t rows_reused
    cdef bint row_stack
    cdef object names
    cdef vector[Situation] stack
    cdef vector[int64_t] states
    cdef vector[Pushed] pushed
    cdef vector[int64_t] below  # `TokenTrie.nodes_below` by the lexer's classes: of first bytes, then of second ones

    def __init__(self, Machine machine not None, trie, *, row_stack=False, **options):
        cdef size_t k
        MaskBuilder.__init__(self, trie.flat, **options)
        self.machine, self.row_stack = machine, row_stack
        self.names = StateNames(machine, self.flat.depth_limit)
        self.states.resize(self.flat.depth_limit + 2)
        self.make_stack(self.flat)
        self.below.resize(2 * machine.lexer.class_count)
        for k in range(512):
            self.below[(k >> 8) * machine.lexer.class_count + machine.lexer.class_of[k & 255]] += (
                <int64_t>trie.nodes_below[k >> 8, k & 255]
            )

    cdef int make_stack(self, FlatTrie trie) except -1:
        """Have room for a walk over a trie."""
        cdef size_t size = trie.depth_limit + 2
        if size > self.stack.size():
            self.stack.resize(size)
            self.pushed.resize(size, Pushed(-1, -1, -1, -1))
        return 0

    def describe(self, state):
        """See `tokdfa.backends.earley_trie.lexer_names`."""
        return self.names.describe(state)

    def parts_of(self, state):
        """How many components a state has."""
        return len(self.machine.lexer.components_of(state))

    def tag_of(self, letters):
        """The accepting set of these lexemes."""
        return self.machine.lexer.set_of(letters)

    def letters_of(self, tag):
        """The lexemes of an accepting set."""
        return self.machine.lexer.lexemes_of(tag)

    def fill(self, int64_t situation, int32_t[::1] out not None):
        """Write the tokens allowed in a situation, by divisions: int32, shape ((V + 31) // 32,)."""
        cdef vector[Situation] links
        cdef Situation link
        while situation >= 0:
            self.machine.load(situation, &link)
            links.push_back(link)
            situation = link.fallback
        self.begin_mask()
        while not links.empty():
            link = links.back()
            links.pop_back()
            self.add_place(link.row, link.state, link.fallback >= 0)
        self.end_mask(out)

    def walk(self, int64_t situation, int32_t[::1] out not None, trie=None, const int32_t[::1] known=None):
        """Write the tokens allowed in a situation, by a walk of the trie, or of one of a part of the vocabulary.

        `known`: tokens that are allowed at any rate, as a mask.
        """
        cdef FlatTrie flat = self.flat if trie is None else trie.flat
        cdef Py_ssize_t k
        if flat.size != self.flat.size or (known is not None and known.shape[0] != (flat.size + 31) // 32):
            raise ArgumentError("trie and known are of another vocabulary")
        self.make_stack(flat)
        self.machine.load(situation, &self.stack[0])
        self.begin_mask()
        self.clear_words()
        if known is not None:
            for k in range(known.shape[0]):
                self.words[k] = known[k]
        self.walk_nodes(flat, 0, flat.node_count)
        self.end_mask(out)

    def targets(self, int64_t situation, trie):
        """int32, shape (V,): the situation after each token of a trie, -1 where a token is not allowed.

        Special tokens are not. Cost: 3 ns a node, 0.1 us where a lexeme ends, and 20 ns for each change of the
        situation from one token to the next.
        """
        cdef FlatTrie flat = trie.flat
        cdef WalkProgress progress = WalkProgress(0, flat.node_count, 0, 0)
        cdef vector[Situation] met
        cdef vector[int32_t] numbers
        cdef int64_t k
        found = np.full(flat.size + 1, -1, dtype=np.int32)
        cdef int32_t[::1] view = found
        met.resize(TARGET_NODES)
        self.make_stack(flat)
        self.machine.load(situation, &self.stack[0])
        cdef Reached out = Reached(self.stack.data(), met.data(), 0, 0, &view[0], flat.size)
        while progress.here < progress.end:
            if numbers.empty():
                walk_targets(flat.nodes, progress, TARGET_NODES, self, self.stack.data(), out)
            else:
                with nogil:
                    walk_targets(flat.nodes, progress, TARGET_NODES, self, self.stack.data(), out)
            PyErr_CheckSignals()
            for k in range(out.count):
                numbers.push_back(self.machine.enter(met[k].row, met[k].state, met[k].fallback))
            out.base, out.count = numbers.size(), 0
        for k in range(flat.size):
            if view[k] >= 0:
                view[k] = numbers[view[k]]
        return found[: flat.size]

    def step(self, int64_t situation, int64_t token):
        """The situation after the bytes of a token, -1 if they are not allowed."""
        cdef Situation here
        cdef int64_t begin, size
        if not 0 <= token < self.flat.size:
            raise IndexError(f"there is no token {token}")
        self.machine.load(situation, &here)
        begin, size = self.flat.offsets[token], self.flat.offsets[token + 1] - self.flat.offsets[token]
        spend(NS_PER_BYTE * size)
        if not self.machine.read(&here, self.flat.data + begin, size):
            return -1
        return self.machine.enter(here.row, here.state, here.fallback)

    # A step at which the parser is asked.

    cdef int cross(self, Situation* here, int32_t column) except -1 nogil:
        """Take a step of a walk, or make the lexer's entry that it lacks."""
        cdef Situation* after = here + 1
        cdef int32_t entry, target, accepted, begun = DEAD
        cdef Border behind
        cdef bint ended
        if here.fallback < 0:
            entry = self.machine.lexer.entries[<int64_t>here.state * self.machine.lexer.class_count + column]
            if entry == UNKNOWN:
                self.machine.lexer.fill(here.state, column)
                return RETRY
            self.borders += 1
            target, accepted = target_in(entry), self.machine.lexer.accepting_in[here.state]
            if target >= 0 and self.machine.lexer.completes_in[target] >= 0:
                if not self.end(here, self.machine.lexer.completes_in[target], &behind):
                    return DIES
                after[0] = Situation(behind.row, behind.state, here.fallback - 1)
                return SURVIVES
            ended = self.end(here, accepted, &behind)  # the state before the byte accepts, or this were no border
            if ended:
                begun = self.machine.lexer.target(behind.state, column)
            if begun == DEAD:
                if target < 0:
                    return DIES
                after[0] = Situation(here.row, target, here.fallback - 1)  # no way to end there
                return SURVIVES
            if target < 0 and self.machine.lexer.completes_in[begun] < 0:
                after[0] = Situation(behind.row, begun, here.fallback - 1)
                return SURVIVES
        else:
            self.borders += 1
        after[0] = here[0]
        if not self.machine.step(after, column):
            return DIES
        if after.fallback < 0:
            after.fallback = min(here.fallback, -1) - 1
        return SURVIVES

    cdef bint end(self, const Situation* here, int32_t accepting_set, Border* after) except -1 nogil:
        """`Machine.end_lexeme`, with the row stack."""
        cdef Pushed* top
        cdef bint ended
        if not self.row_stack:
            return self.machine.end_lexeme(here.row, accepting_set, after)
        top = &self.pushed[-1 - here.fallback]
        if top.row == here.row and top.accepting_set == accepting_set:
            self.rows_reused += 1
            after[0] = Border(top.next_row, top.next_state)
            return True
        ended = self.machine.end_lexeme(here.row, accepting_set, after)
        if ended:
            top[0] = Pushed(here.row, accepting_set, after.row, after.state)
        return ended

    # What the builder asks for.

    cdef int walk_some(self, FlatTrie trie, WalkProgress& progress, int64_t most, Bits& out) except -1 nogil:
        return walk_allowed(trie.nodes, progress, most, self, self.stack.data(), out)

    cdef int divide_some(self, WalkProgress& progress, int64_t most, Cut& cut) except -1 nogil:
        return walk_states(self.flat.nodes, progress, most, self, self.states.data(), cut)

    cdef bint enter_walk(self, const Frame* frame, const uint8_t* data, int64_t size, int64_t base) except -1:
        self.stack[base] = Situation(frame.row, frame.state, -1)
        return self.machine.read(&self.stack[base], data, size)

    cdef int64_t enter_division(self, int32_t state, const uint8_t* data, int64_t begin, int64_t base) except? -9:
        cdef int64_t accepted = self.machine.lexer.accepting_in[state], tag = -1, depth = begin, code = 0
        if accepted >= 0:
            tag = left_code(accepted, begin)
        self.states[begin] = tag * (<int64_t>1 << STATE_BITS) | state  # as tag may be negative, no shift
        while depth < base:
            code = state_step(state_view(self), self.states.data(), depth, data[depth - begin])
            if code == UNKNOWN:
                state_mend(self, self.states.data(), depth, data[depth - begin])
            elif code < 0:
                return code
            else:
                depth += 1
        return 0

    cdef bint follow(self, int32_t tag, Frame* frame) except -1:
        cdef Border behind
        if not self.machine.end_lexeme(frame.row, tag, &behind):
            return False
        frame.row, frame.state = behind.row, behind.state
        return True

    cdef int64_t width(self, int32_t state) except -1:
        """As if the second byte did not depend on the first: of the nodes below a first byte those count whose share of
        second bytes the lexer goes on with.
        """
        cdef int32_t first, second, after, classes = self.machine.lexer.class_count
        cdef int64_t total = 0, share, found = 0
        cdef const int64_t* below = self.below.data()
        for second in range(classes):
            total += below[classes + second]
        try:
            for first in range(classes):
                after = self.machine.lexer.target(state, first) if below[first] else DEAD
                if after < 0:
                    continue
                share = 0
                for second in range(classes):
                    if below[classes + second] and self.machine.lexer.target(after, second) >= 0:
                        share += below[classes + second]
                found += below[first] * share // max(total, 1)
        except LimitExceeded as error:  # of the lexer: no token may come as far as this
            if error.limit != "max_lexer_states":
                raise
            return 0
        return found
