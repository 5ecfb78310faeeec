"""The mask of a row: what states allow inside, and walks over the rest of the trie.

The walk keeps the row at each depth of the trie in a stack, so going back costs nothing; a byte is one look-up where it
was read before. Where a node has many children, those that the row can read are looked up (`tokdfa.masks.branches`).

Below a node whose row has a wide state the walk goes by that state alone, its *guide*: a token that the guide reads to
its end is allowed, and only where the guide does not go on are the rows on the way made, which costs far more than a
look-up in an automaton. A node with more than `SUBTREE` descendants is put off if a division by one of the wide states
is there. Nodes of a rest at which the state goes on that has left it are neither put off for its sake nor guided by it:
no token below them stays inside it, or it would not be in the rest.

A row with one live item needs no rows until that ends: what it does not read is refused. So there the guide is the
state of its terminal, until that may end, or inside a key of a closed object the item, until its name ends
(`tokdfa.backends.pushdown_trie.items`).

What stands behind the end of a terminal is walked from the row there. A quote that closes one of a list of names may
lead to another row, or nowhere. So where there are names, tokens that spell one of them to its end are walked once
more, from the row itself, and what was said of them does not count.

At the root, tokens that begin with a byte of a state that loops (blanks, digits, names) are taken from its own
division, if that is there; the walk of the vocabulary's trie leaves those bytes out.

A division that serves a string of bounded length counts no characters. So where such a string is all that a row reads,
and its bound is near, tokens that stay inside it but are too long are taken out at the end.

With each mask comes a *signature*, a hash of the divisions taken and the tokens met. Equal signatures of one machine
mean equal masks, but for chance and for divisions that were dropped in between.

Without divisions the whole trie is walked: the plain version, for comparison.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from tokdfa.backends.pushdown_trie.items cimport ALONE, LONE, STATE_PART, STRICT
from tokdfa.backends.pushdown_trie.row_divisions cimport REST, SKIPS, follow_guide
from tokdfa.backends.pushdown_trie.rows cimport ROW_ACCEPTS, ROW_CUT, place_of
from tokdfa.backends.pushdown_trie.steps cimport Steps
from tokdfa.core.border cimport HELD_WORK, pay
from tokdfa.core.byte_sets cimport has_byte
from tokdfa.masks.branches cimport LEAST_BELOW
from tokdfa.masks.builder cimport CHOOSE, WALK, Frame
from tokdfa.masks.divisions cimport WHOLE_REST, Division, range_begin, range_first, range_past
from tokdfa.program.operations cimport COUNTED
from tokdfa.vocabulary.byte_table cimport DEAD, UNKNOWN
from tokdfa.vocabulary.trie_nodes cimport next_of

from tokdfa.errors import ArgumentError

#: A node with more descendants than this is worth a division of its own.
SUBTREE = 400


cdef enum:
    NODE_WORK = 10        # what a node of a walk counts as, in ns
    PAID_NODES = 0xFFFF
    MOST_DEFERRED = 1024  # so many rests a walk puts off at most, others it walks
    SPELL = -3            # in place of a state: the rest of the names that a row has beside what a division is of


cdef class PushdownMasks(RowDivisions):
    """Makes masks over one vocabulary, one at a time: under the lock of the vocabulary's pool."""

    def __init__(self, flat, automata, end_tokens):
        RowDivisions.__init__(self, flat, automata)
        depths = self.depth_limit + 3
        self.rows.resize(depths)
        self.path.resize(depths)
        self.guides.resize(depths)
        self.lone_sets.resize(depths)
        self.frames.resize(depths)
        self.bound_left = -1
        for token in end_tokens:
            self.end_tokens.push_back(token)

    cdef int64_t write_words(
        self, Steps machine, int64_t row, int32_t* words, int64_t count, bint divides, int64_t subtrees, bint with_ends
    ) except? -9:
        if machine.automata is not self.automata or count != (self.size + 31) // 32:
            raise ArgumentError("the machine, or the mask, is of another vocabulary")
        machine.checked(row)
        self.machine, self.words, self.word_count = machine, <uint32_t*>words, count
        self.divides, self.subtree = divides, subtrees
        try:
            return self.make_mask(row, with_ends)
        finally:
            self.machine = None
            self.words = NULL

    cdef int64_t make_mask(self, int64_t row, bint with_ends) except? -9:
        if self.divisions.bytes_kept() > self.limit:
            self.forget()
        self.due.clear()
        self.begin_mask()
        memset(&self.taken, 0, sizeof(self.taken))
        self.listed, self.signature, self.visited, self.paid = 0, 0, 0, 0
        self.agenda.assign(1, Frame(<int32_t>row, CHOOSE if self.divides else WALK, WHOLE_REST, -1))
        self.read_agenda(False)
        return self.finish(row, with_ends)

    # What the builder asks for.

    cdef int32_t choose(self, const Frame* frame) except -9:
        cdef int64_t row = frame.row, source
        cdef int32_t state = WALK, rest
        self.machine.close_row(row)
        source = self.wide_row(row)
        if source >= 0:
            state = self.best_state(frame.rest, row, source, frame.passed)
        else:
            source = row
        if state >= 0:
            self.listed = NOT_LISTED
            if state & (ALONE | STRICT) == ALONE and self.names_item(row) >= 0:
                rest = self.closing_rest(row)
                if rest >= 0:
                    self.agenda.push_back(Frame(<int32_t>row, SPELL, rest, -1))
        elif frame.rest == WHOLE_REST and not self.machine.flags_at[source] & ROW_CUT:
            if self.branches.keys.find(0) >= 0:
                self.take_loops(row, source)
        return state

    cdef bint follow(self, int32_t tag, Frame* frame) except -1:
        cdef int64_t row
        if tag == REST:
            return True
        row = self.machine.end_strings(frame.row)
        if row < 0:
            return False
        frame.row, frame.passed = <int32_t>row, -1
        return True

    cdef int take_inside(self, int32_t number) except -1:
        cdef Division made = self.divisions.divisions[number]
        cdef int64_t size = made.past - made.first
        RowDivisions.take_inside(self, number)
        self.signature = mix(self.signature, number)
        if not size and made.wide < 0:
            return 0
        if made.wide < 0 and 0 <= self.listed <= MAX_LISTED - size:
            memcpy(self.tokens + self.listed, self.divisions.tokens.data() + made.first, 4 * size)
            self.listed += size
        else:
            self.listed = NOT_LISTED
        return 0

    cdef int walk_rest(self, const Frame* frame) except -1:
        cdef int64_t word
        if not self.divisions.rests.length(frame.rest):
            return 0
        word = self.divisions.rests.content_of(frame.rest)[0]
        self.here, self.stop, self.base = range_first(word), range_past(word), range_begin(word)
        self.spelled, self.passed = frame.state == SPELL, frame.passed
        if self.passed >= 0:
            self.passed &= STATE_PART
        self.begin_walk(frame.row)
        self.walk_nodes_left()
        if self.visited - self.paid > PAID_NODES:
            pay((self.visited - self.paid) * NODE_WORK, 0)
            self.paid = self.visited
        return 0

    # The walk.

    cdef int begin_walk(self, int64_t row) except -1:
        cdef int quarter
        self.machine.close_row(row)
        self.rows[self.base], self.guides[self.base], self.frame = <int32_t>row, -1, 0
        if self.divides:
            self.guides[self.base] = self.machine.guide_alone(row)
            if self.spelled:
                self.guides[self.base] = LONE - self.names_item(row)
            self.machine.lone_reads(
                LONE - self.guides[self.base], self.lone_sets[self.base].words, self.spelled
            )
        self.frames[0].stop = self.frames[0].end = self.stop
        if self.here < self.stop and self.spelled:
            self.enter_branch(self.here, self.lone_sets[self.base].words, self.stop)
        elif self.here < self.stop:
            self.enter_branch(self.here, self.machine.reads_at + 4 * row, self.stop)
        if self.here == 0 and self.frame:
            for quarter in range(4):
                self.frames[1].left.words[quarter] &= ~self.taken.words[quarter]
        return 0

    cdef int walk_nodes_left(self) except -1:
        cdef BranchFrame* frame
        while True:
            frame = &self.frames[self.frame]
            while self.here >= frame.stop and self.frame > 0:
                if not self.branches.take_child(frame.branch, frame.left.words, &self.here, &frame.stop):
                    self.here = frame.end
                    self.frame -= 1
                    frame = &self.frames[self.frame]
            if self.here >= self.stop:
                return 0
            if self.guides[self.divisions.nodes[self.here] >> 8 & 0xFFF] >= 0:
                if frame.stop - self.here > HELD_WORK:
                    with nogil:
                        self.follow_guides()
                else:
                    self.follow_guides()
                if self.here >= frame.stop:
                    continue
            self.visit()

    cdef int follow_guides(self) noexcept nogil:
        """Go on to the next node whose byte no guide reads, or to where the branch stops, and allow what stays inside
        on the way. A node with many children is left to the caller where children may be refused.

        Most nodes of most walks are met here, so nothing branches on whether a node has a token.
        """
        cdef const uint64_t* nodes = self.divisions.nodes
        cdef const int32_t* targets = self.automata.targets
        cdef const uint8_t* flags = self.automata.flags_of
        cdef int64_t* guides = self.guides.data()
        cdef int32_t* rows = self.rows.data()
        cdef uint8_t* path = self.path.data()
        cdef uint32_t* words = self.words
        cdef uint64_t here = self.here, stop = self.frames[self.frame].stop, spare = self.size
        cdef uint64_t signature = self.signature, node, depth, byte, following, token, has_token
        cdef int64_t guide, visited = 0, listed = self.listed
        while here < stop:
            node = nodes[here]
            depth, byte = node >> 8 & 0xFFF, node & 0xFF
            guide = guides[depth]
            if guide < 0:
                break
            following = next_of(node)
            if guide & ALONE and following - here > LEAST_BELOW:
                break
            guide = follow_guide(guide, byte, targets, flags)
            if guide == SKIPS:
                here = following
                visited += 1
                continue
            if guide < 0:
                break
            path[depth], rows[depth + 1], guides[depth + 1] = <uint8_t>byte, -1, guide
            token = node >> 43
            has_token = token != spare
            token *= has_token
            words[token >> 5] |= <uint32_t>has_token << (token & 31)
            if has_token:
                signature = mix(signature, token)
            if 0 <= listed < MAX_LISTED:
                self.tokens[listed] = <int32_t>token
            listed += has_token
            here += 1
            visited += 1
        self.here, self.signature, self.listed = here, signature, listed
        self.visited += visited
        return 0

    cdef int visit(self) except -1:
        """Step the row, or what guides the walk, by the byte of a node."""
        cdef uint64_t node = self.divisions.nodes[self.here]
        cdef int64_t depth = node >> 8 & 0xFFF, following = next_of(node)
        cdef int64_t guide = self.guides[depth], target = -1, token = node >> 43
        cdef uint8_t byte = node & 0xFF
        self.visited += 1
        self.path[depth] = byte
        if guide >= 0:
            guide = follow_guide(guide, byte, self.automata.targets, self.automata.flags_of)
            if guide == SKIPS:
                self.here = following
                return 0
            if guide < 0:
                self.make_rows(depth)
        elif guide <= LONE and not self.follow_lone(depth, byte, following, &guide):
            self.here = following
            return 0
        if guide == -1:
            target = self.rows[depth]
            if target >= 0:
                if has_byte(self.machine.reads_at + 4 * target, byte):
                    target = self.machine.step_row(target, byte)
                else:
                    target = DEAD
            if target < 0:
                self.here = following
                return 0
            self.rows[depth + 1], self.guides[depth + 1] = <int32_t>target, -1
            if token != self.size:
                self.allow(token)
            self.here += 1
            if following - self.here >= LEAST_BELOW:
                self.open_node(depth, target, following)
            return 0
        self.rows[depth + 1], self.guides[depth + 1] = -1, guide
        if token != self.size:
            self.allow(token)
        self.here += 1
        if guide <= LONE:
            if self.here < following:
                self.machine.lone_reads(LONE - guide, self.lone_sets[depth + 1].words, self.spelled)
            if following - self.here >= LEAST_BELOW:
                self.enter_branch(self.here, self.lone_sets[depth + 1].words, following)
        elif guide & ALONE and following - self.here >= LEAST_BELOW:
            guide &= STATE_PART
            if self.automata.targets[guide * 256] != UNKNOWN:
                self.enter_branch(self.here, self.automata.reads_of + 4 * guide, following)
        return 0

    cdef bint follow_lone(self, int64_t depth, uint8_t byte, int64_t following, int64_t* guide) except -1:
        """Follow a lone item over a byte: whether anything goes on, and to `guide` the guide then."""
        cdef int64_t item = LONE - guide[0], after = DEAD, target, k
        cdef uint64_t token
        if has_byte(self.lone_sets[depth].words, byte):
            after = self.machine.step_lone(item, byte, self.spelled)
        if after == DEAD:
            return False
        if after >= 0:
            guide[0] = LONE - after
            return True
        guide[0] = -1
        if self.spelled:
            target = self.make_rows(depth)
            for k in range(self.here, following):
                token = self.divisions.nodes[k] >> 43
                if <int64_t>token != self.size:
                    self.words[token >> 5] &= ~(<uint32_t>1 << (token & 31))
            self.signature = mix(self.signature, following)
            return target >= 0
        if self.rows[depth] < 0:
            self.rows[depth] = <int32_t>self.machine.lone_row(item)
        return True

    cdef int open_node(self, int64_t depth, int64_t target, int64_t following) except -1:
        """Find out how the children of a node with many descendants are walked, in the row `target`."""
        cdef int64_t source = -1, passed = self.passed, size = following - self.here, k
        cdef int32_t rest
        self.machine.close_row(target)
        if self.divides:
            source = self.wide_row(target)
        if source >= 0:
            for k in range(self.base, depth + 1):
                if passed >= 0:
                    passed = self.automata.targets[passed * 256 + self.path[k]]
            if size + 1 > self.subtree and self.agenda.size() < MOST_DEFERRED:
                rest = self.divisions.rest_of(self.here, following, depth + 1)
                if self.serve_subtree(target, source, rest, size, passed):
                    self.agenda.push_back(Frame(<int32_t>target, CHOOSE, rest, <int32_t>passed))
                    self.here = following
                    return 0
            self.guides[depth + 1] = self.guide_of(target, source, passed)
            if self.guides[depth + 1] >= 0:
                return 0
        elif self.divides:
            self.guides[depth + 1] = self.machine.guide_alone(target)
            self.machine.lone_reads(LONE - self.guides[depth + 1], self.lone_sets[depth + 1].words, False)
        return self.enter_branch(self.here, self.machine.reads_at + 4 * target, following)

    cdef int64_t make_rows(self, int64_t depth) except? -9:
        """Make the rows of the path down to a depth; the last one, or DEAD."""
        cdef int64_t known = depth, target
        while self.rows[known] < 0:
            known -= 1
        target = self.rows[known]
        while known < depth and target >= 0:
            target = self.machine.step_row(target, self.path[known])
            known += 1
            self.rows[known] = <int32_t>target
        return target

    cdef int allow(self, int64_t token) noexcept:
        self.words[token >> 5] |= <uint32_t>1 << (token & 31)
        self.signature = mix(self.signature, token)
        if 0 <= self.listed < MAX_LISTED:
            self.tokens[self.listed] = <int32_t>token
        self.listed += 1
        return 0

    cdef int enter_branch(self, int64_t key, const uint64_t* reads, int64_t end) noexcept:
        """Walk the children with this key that `reads` has, up to node `end`, in a frame of their own, which begins
        before the first one; nothing if they have no branch.
        """
        cdef int32_t branch = self.branches.keys.find(key)
        cdef BranchFrame* frame
        cdef int quarter
        if branch < 0:
            return 0
        self.frame += 1
        frame = &self.frames[self.frame]
        for quarter in range(4):
            frame.left.words[quarter] = reads[quarter] & self.branches.bytes_of[branch].words[quarter]
        frame.branch, frame.stop, frame.end = branch, key, end
        return 0

    cdef int note_bound(self, int64_t row) noexcept:
        """Note characters left and state of a bounded COUNTED that a strict division served though it is short."""
        cdef int64_t item, left, wide, needed = 0
        if self.machine.live_end[row] - self.machine.live_begin[row] != 1:
            return 0
        item = self.machine.t.live[self.machine.live_begin[row]]
        if self.machine.code_at[place_of(item)].operation != COUNTED:
            return 0
        left = self.machine.item_left(item, &needed)
        wide = self.machine.wide_state(item, 0, self.machine.flags_at[row], True, self.depth_limit)
        if wide >= 0 and left - needed < self.depth_limit:
            self.bound_left, self.bound_state = left, wide & STATE_PART
        return 0

    cdef int64_t finish(self, int64_t row, bint with_ends) except? -9:
        """Set end tokens, and note what else there is to say of the mask; what `write` returns."""
        cdef int64_t border
        cdef bint accepts = False
        cdef int32_t token
        if with_ends:
            border = self.machine.border_of(row)
            accepts = border >= 0 and self.machine.flags_at[border] & ROW_ACCEPTS
        self.machine.nodes_visited += self.visited
        if self.size >> 5 < self.word_count:
            self.words[self.size >> 5] &= ~(<uint32_t>1 << (self.size & 31))
        if accepts:
            for token in self.end_tokens:
                self.words[token >> 5] |= <uint32_t>1 << (token & 31)
                if 0 <= self.listed < MAX_LISTED:
                    self.tokens[self.listed] = token
                self.listed += 1
        self.bound_left = -1
        if self.divides:
            self.note_bound(row)
        self.signature = self.signature >> 1 ^ accepts
        if 0 <= self.listed <= MAX_LISTED and self.bound_left < 0 and self.due.empty():
            return self.listed
        return -1
