"""The mask builder: masks out of divisions, and the divisions where they pay. The words are those of `tokdfa.masks`.

A strategy is a subclass in Cython. It keeps two stacks indexed by depth, one of situations and one of states, declares
the template's walk with its steps (`tokdfa/backends/earley_trie/walks.pyx`), and says what a row does behind a tag.
Everything else is here: when a rest is walked and when it is divided, bytes that are read again, budgets, the
interpreter's lock, states that share a division. A strategy may choose by which state a row divides a rest (`choose`),
have a walk of its own (`walk_rest`), and put rests that it meets there into the agenda
(`tokdfa/backends/pushdown_trie/walks.pyx`).

A step of a dividing walk that lacks something may leave the range *open* (a tag from OPEN on): when the walk is over,
what all open ranges lack is made at once (`supply`), and it goes on there.

A range of a rest may begin deeper in the trie than its reading does: bytes in between are read first. Under a longest
match these are the bytes that it gives back; for a parser that must read a token from its beginning, all of them.

**States of one name** (`MaskBuilder.describe`) share a division, within a constraint and, of whole tokens, with others
(`tokdfa.masks.shared_divisions`). A name takes as long as a walk over NODES_PER_NAME nodes for each part of the state,
so only states that read more are named.

Cost: 4 to 6 ns a node of the trie to divide, 50 ns a tag to follow.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset
from libcpp.vector cimport vector

from tokdfa.core.border cimport HELD_WORK, pay
from tokdfa.core.interning cimport pair_key
from tokdfa.masks.divisions cimport (
    MADE, WHOLE_REST, add_range, range_begin, range_first, range_past, take_open,
)

import numpy as np

from tokdfa.errors import ArgumentError
from tokdfa.masks.shared_divisions import StoredDivision

#: Nodes that a walk takes as long for as the name of a part of a state.
NODES_PER_NAME = 1 << 14


cdef enum:
    NS_PER_NODE = 20
    PAID_NODES = 1 << 14


cdef class MaskBuilder:
    """Makes masks over a trie. Not thread-safe.

    `limit`: bytes of divisions; past it all are dropped and made anew. `patience`: how often a rest is walked before it
    is divided. `names`: whether states that no token tells apart share a division; `shared`: where divisions by such
    states are looked up first, those of other constraints among them, or None.
    """

    def __init__(self, FlatTrie flat not None, *, limit=1 << 28, patience=1, names=True, shared=None, own_tries=False):
        self.flat, self.limit, self.patience = flat, limit, patience
        self.names_states, self.shared = names, shared
        self.divisions = Divisions(self.flat, own_tries)
        self.own_words.resize(self.flat.size // 32 + 1)
        self.words, self.word_count = self.own_words.data(), self.own_words.size()
        self.inside.resize(self.word_count)
        self.inside_tokens.resize(self.flat.size // 128 + 2)
        self.cut.words, self.cut.tokens = self.inside.data(), self.inside_tokens.data()
        self.cut.room, self.cut.spare, self.cut.listed = self.inside_tokens.size(), self.flat.size, not own_tries
        self.forget()

    def forget(self):
        """Forget all divisions."""
        self.divisions.clear()
        # the state whose division a state has; by name; and the names of those that others may want
        self.same_as, self.named, self.wanted = {}, {}, {}

    def describe(self, state):
        """(the name of a state, its letters in an order that the name implies); ("", ()) for one without a name.

        States of one name read all texts as long as a token alike, but for the numbers of their letters, which tags
        are made of (`tag_of`, `letters_of`).
        """
        return "", ()

    def tag_of(self, letters):
        """The tag made of these letters."""
        raise NotImplementedError

    def letters_of(self, tag):
        """The letters that a tag is made of."""
        raise NotImplementedError

    def parts_of(self, state):
        """How many parts of a state are to be named."""
        return 1

    @property
    def nbytes(self):
        """Memory of what is kept in bytes."""
        return self.divisions.bytes_kept()

    # A mask.

    cdef int begin_mask(self) except -1:
        self.blank = True
        return 0

    cdef int clear_words(self) noexcept:
        if self.blank:
            memset(self.words, 0, 4 * self.word_count)
            self.blank = False
        return 0

    cdef int end_mask(self, int32_t[::1] out) except -1:
        """Write the words made into a mask of (V + 31) // 32."""
        cdef int64_t size = self.flat.size, count = (size + 31) // 32
        if out.shape[0] != count:
            raise ArgumentError(f"mask has {out.shape[0]} words; {count} are needed for {size} tokens")
        self.clear_words()
        self.words[size >> 5] &= ~(<uint32_t>1 << (size & 31))
        if count:
            memcpy(&out[0], self.words, 4 * count)
        return 0

    cdef int add_place(self, int32_t row, int32_t state, bint clears) except -1:
        if self.divisions.bytes_kept() > self.limit:
            self.forget()
        state = self.state_like(state)
        self.agenda.assign(1, Frame(row, state, WHOLE_REST, -1))
        self.read_agenda(clears)
        if self.wanted and state in self.wanted:
            self.offer(state)
        return 0

    cdef int read_agenda(self, bint clears) except -1:
        cdef Frame top
        cdef int32_t number
        while not self.agenda.empty():
            top = self.agenda.back()
            self.agenda.pop_back()
            if top.state == CHOOSE:
                top.state = self.choose(&top)
            if top.state < 0:
                self.clear_words()
                self.walk_rest(&top)
                continue
            number = self.divisions.number_of(top.rest, top.state)
            if self.divisions.divisions[number].met != MADE:
                if self.divisions.divisions[number].met < self.patience and not (clears and top.rest == WHOLE_REST):
                    self.clear_words()
                    self.walk_rest(&top)
                    self.divisions.divisions[number].met += 1
                    continue
                self.divide(number, top.rest, top.state, -1)
            self.put_off(number, &top)
            if clears and top.rest == WHOLE_REST and not self.blank:
                self.clear_left(number)
            self.take_inside(number)
        return 0

    cdef int take_inside(self, int32_t number) except -1:
        self.divisions.add_inside(number, self.words, self.word_count, self.blank)
        self.blank = False
        return 0

    cdef int put_off(self, int32_t number, const Frame* frame) except -1:
        cdef Division made = self.divisions.divisions[number]
        cdef int32_t k
        cdef Frame left
        self.borders += made.past_end - made.first_end
        for k in range(made.first_end, made.past_end):
            left = Frame(frame.row, WALK, self.divisions.ends[k].rest, frame.state)
            if self.follow(self.divisions.ends[k].tag, &left):
                self.agenda.push_back(left)
        return 0

    cdef int clear_left(self, int32_t number) except -1:
        """Clear the bits of the tokens that a division leaves."""
        cdef int32_t k, rest
        cdef size_t place
        cdef int64_t word, node
        cdef uint64_t token
        for k in range(self.divisions.divisions[number].first_end, self.divisions.divisions[number].past_end):
            rest = self.divisions.ends[k].rest
            for place in range(self.divisions.rests.length(rest)):
                word = self.divisions.rests.content_of(rest)[place]
                for node in range(range_first(word), range_past(word)):
                    token = self.divisions.nodes[node] >> 43
                    self.words[token >> 5] &= ~(<uint32_t>1 << (token & 31))
        return 0

    # Walks.

    cdef int64_t spelling(self, int64_t node) noexcept:
        """Where the bytes of some token at or below a node begin, which begins with those of the node."""
        while <int64_t>(self.flat.nodes[node] >> 43) == self.flat.size:
            node += 1
        return self.flat.offsets[self.flat.nodes[node] >> 43]

    cdef int count_nodes(self, int64_t visited) except -1:
        self.nodes_visited += visited
        self.unpaid += visited
        if self.unpaid >= PAID_NODES:
            visited, self.unpaid = self.unpaid, 0
            pay(NS_PER_NODE * visited, 0)
        return 0

    cdef int walk_nodes(self, FlatTrie trie, int64_t first, int64_t past) except -1:
        """Walk nodes first .. past - 1 from what is in the stack."""
        cdef WalkProgress progress = WalkProgress(first, past, 0, 0)
        cdef Bits out = Bits(self.words)
        cdef int64_t before = 0
        self.walk_some(trie, progress, HELD_WORK, out)
        while <int64_t>progress.here < past:
            self.count_nodes(progress.visited - before)
            before = progress.visited
            with nogil:
                self.walk_some(trie, progress, PAID_NODES, out)
        return self.count_nodes(progress.visited - before)

    cdef int walk_rest(self, const Frame* frame) except -1:
        cdef size_t k
        cdef int64_t word, first, begin, base
        cdef const uint8_t* data
        for k in range(self.divisions.rests.length(frame.rest)):
            word = self.divisions.rests.content_of(frame.rest)[k]
            first, begin = range_first(word), range_begin(word)
            base = (self.flat.nodes[first] >> 8) & 0xFFF
            data = NULL
            if begin < base:
                data = self.flat.data + self.spelling(first) + begin
            if self.enter_walk(frame, data, base - begin, base):
                self.walk_nodes(self.flat, first, range_past(word))
        return 0

    cdef int divide(self, int32_t number, int32_t rest, int32_t state, int32_t within) except -1:
        cdef size_t k, count = self.divisions.rests.length(rest)
        cdef int64_t first = 0
        self.cut.count = self.cut.range_count = 0
        try:
            if within >= 0:
                self.divisions.add_inside(within, self.cut.words, self.inside.size(), True)
                self.cut.count, count = self.cut.room, 0
                if self.divisions.divisions[within].first_end < self.divisions.divisions[within].past_end:
                    rest = self.divisions.ends[self.divisions.divisions[within].first_end].rest
                    count = self.divisions.rests.length(rest)
            if count:
                first = range_first(self.divisions.rests.content_of(rest)[0])
            for k in range(count):
                self.divide_range(self.divisions.rests.content_of(rest)[k], state)
            self.resume()
            pay(0, min(4 * <int64_t>self.cut.count, 4 * <int64_t>self.inside.size()) + 8 * self.cut.range_count)
            return self.divisions.keep(number, self.cut, first)
        except BaseException:
            memset(self.cut.words, 0, 4 * self.inside.size())
            raise

    cdef int make_room(self, int64_t most) except -1:
        """Make room for so many more ranges."""
        cdef size_t wanted = self.cut.range_count + most
        if wanted > self.ranges.size():
            self.ranges.resize(max(wanted, 2 * self.ranges.size()))
            self.cut.ranges = self.ranges.data()
        return 0

    cdef int divide_range(self, int64_t word, int32_t state) except -1:
        cdef int64_t first = range_first(word), past = range_past(word), begin = range_begin(word), code
        cdef int64_t base = (self.divisions.nodes[first] >> 8) & 0xFFF
        cdef LeftRange left
        cdef const uint8_t* data = NULL
        if begin < base:
            data = self.flat.data + self.spelling(first) + begin
        code = self.enter_division(state, data, begin, base)
        if code < 0:
            if code <= LEFT:
                code = LEFT - code
                left.first, left.past, left.depth = <int32_t>first, <int32_t>past, <int32_t>base
                left.tag, left.begin = <int32_t>(code >> 12), <int32_t>(code & 0xFFF)
                self.make_room(1)
                add_range(self.cut, left)
            return 0
        return self.divide_nodes(first, past)

    cdef int divide_nodes(self, int64_t first, int64_t past) except -1:
        """Divide nodes first .. past - 1 from what is in the stack."""
        cdef WalkProgress progress = WalkProgress(first, past, 0, 0)
        cdef int64_t before = 0
        self.make_room(min(HELD_WORK, past - first))
        self.divide_some(progress, HELD_WORK, self.cut)
        while <int64_t>progress.here < past:
            self.count_nodes(progress.visited - before)
            before = progress.visited
            self.make_room(PAID_NODES)
            with nogil:
                self.divide_some(progress, PAID_NODES, self.cut)
        return self.count_nodes(progress.visited - before)

    cdef int resume(self) except -1:
        cdef vector[LeftRange] open
        cdef size_t k
        take_open(self.cut, open)
        while not open.empty():
            self.supply(open)
            for k in range(open.size()):
                self.reenter(open[k])
                self.divide_nodes(open[k].first, open[k].past)
            take_open(self.cut, open)
        return 0

    # States that others are like.

    cdef int32_t state_like(self, int32_t state) except -1:
        """The state whose division a state has: the first of its name, or itself."""
        found = self.same_as.get(state)
        if found is not None:
            return found
        width, key = self.width(state), None
        if self.names_states and width >= NODES_PER_NAME * self.parts_of(state):
            named = self.describe(state)
            key = named if named[0] else None
        self.same_as[state] = same = state if key is None else self.named.setdefault(key, state)
        if same != state:
            return same
        number = self.divisions.number_of(WHOLE_REST, state)
        if 4 * width >= 3 * <int64_t>self.flat.node_count:
            self.divisions.divisions[number].met = self.patience
        if key is not None and self.shared is not None:
            stored, seen = self.shared.find(*key, self.tag_of)
            if stored is not None:
                self.insert(state, stored)
            else:
                self.wanted[state] = key
                met = max(min(seen, self.patience), self.divisions.divisions[number].met)
                self.divisions.divisions[number].met = met
        return state

    cdef int insert(self, int32_t state, object stored) except -1:
        """Keep a division of whole tokens that was made for others."""
        cdef int32_t number = self.divisions.number_of(WHOLE_REST, state), tag
        cdef const int32_t[::1] inside = stored.inside
        cdef const int64_t[::1] ranges = stored.ranges
        cdef Division made = Division(MADE, <int32_t>self.divisions.wide.size(), 0, 0, 0, 0)
        cdef vector[uint32_t] words
        cdef int64_t k, begin, past
        made.first_end = <int32_t>self.divisions.ends.size()
        words.resize(self.word_count)
        for k in range(inside.shape[0]):
            words[k] = inside[k]
        for tag, begin, past in stored.ends.tolist():
            self.divisions.content.clear()
            for k in range(begin, past):
                self.divisions.content.push_back(ranges[k])
            self.divisions.add_end(tag)
        self.divisions.wide.push_back(words)
        made.past_end = <int32_t>self.divisions.ends.size()
        self.divisions.divisions[number] = made
        return 0

    cdef int offer(self, int32_t state) except -1:
        """Give the division by a state to other constraints, if it is made."""
        cdef int32_t number = self.divisions.keys.find(pair_key(WHOLE_REST, state)), k, rest
        cdef size_t place
        if self.divisions.divisions[number].met != MADE:
            return 0
        ends, ranges = [], []
        for k in range(self.divisions.divisions[number].first_end, self.divisions.divisions[number].past_end):
            rest, begin = self.divisions.ends[k].rest, len(ranges)
            for place in range(self.divisions.rests.length(rest)):
                ranges.append(self.divisions.rests.content_of(rest)[place])
            ends.append((self.divisions.ends[k].tag, begin, len(ranges)))
        words = self.divisions.words_inside(number)[: (self.flat.size + 31) // 32].view(np.int32)
        stored = StoredDivision(
            words, np.array(ranges, dtype=np.int64), np.array(ends, dtype=np.int32).reshape(-1, 3)
        )
        self.shared.keep(*self.wanted.pop(state), self.letters_of, stored)
        return 0

    # What a strategy gives.

    cdef int walk_some(self, FlatTrie trie, WalkProgress& progress, int64_t most, Bits& out) except -1 nogil:
        with gil:
            raise NotImplementedError

    cdef int divide_some(self, WalkProgress& progress, int64_t most, Cut& cut) except -1 nogil:
        with gil:
            raise NotImplementedError

    cdef int supply(self, const vector[LeftRange]& open) except -1:
        raise NotImplementedError

    cdef int reenter(self, LeftRange open) except -1:
        raise NotImplementedError

    cdef bint enter_walk(self, const Frame* frame, const uint8_t* data, int64_t size, int64_t base) except -1:
        raise NotImplementedError

    cdef int64_t enter_division(self, int32_t state, const uint8_t* data, int64_t begin, int64_t base) except? -9:
        raise NotImplementedError

    cdef bint follow(self, int32_t tag, Frame* frame) except -1:
        raise NotImplementedError

    cdef int32_t choose(self, const Frame* frame) except -9:
        raise NotImplementedError

    cdef int64_t width(self, int32_t state) except -1:
        raise NotImplementedError
