"""Divisions of the vocabulary and what they leave, interned and kept. The words are those of `tokdfa.masks`.

Rests are interned by their ranges, divisions by their rest and state. Of up to V/128 tokens inside a list is kept, of
more a bit for each token.

**Tries of their own.** The ranges of a rest may be many, and most of them different ways to the same texts, as where
each token that closes a string is left at its quote. Where the rests are to be walked rather than divided
(`own_tries`), each is copied to a trie of its own, of one range, behind the nodes of the vocabulary: if reading goes on
where its nodes begin, what several ranges have in common is there once (`join_ranges`), else the trie begins where the
rest that was divided does (`cut_ranges`). ``next`` of a node counts from the first node of all tries.

Cost: 4 bytes for a token inside, or V/8 if there are many; 8 bytes for a range that is left, or for each node of a trie
of its own.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from tokdfa.core.interning cimport pair_key
from tokdfa.vocabulary.trie_nodes cimport NEXT_MASK

import numpy as np

from tokdfa.core.budget import hold
from tokdfa.core.pages import zeros_by_page
from tokdfa.vocabulary.trie_nodes import cut_ranges, join_ranges

#: The rest of whole tokens.
WHOLE = WHOLE_REST


cdef class Divisions:
    """The divisions of a trie. Not thread-safe. `own_tries`: rests get tries of their own."""

    def __init__(self, FlatTrie flat not None, bint own_tries=False):
        self.flat, self.nodes, self.size, self.word_count = flat, flat.nodes, flat.size, flat.size // 32 + 1
        self.own_tries, self.branches = own_tries, Branches()
        cdef uint64_t[::1] store
        if own_tries:
            self.branches.add(flat.nodes, 0, flat.node_count)
            self.trie_branches = self.branches.keys.size()
            self.store = store = zeros_by_page(NEXT_MASK, np.uint64)
            if flat.node_count:
                memcpy(&store[0], flat.nodes, 8 * flat.node_count)
            self.nodes = &store[0]
        self.clear()

    cdef int clear(self) except -1:
        """Forget all but the rest of whole tokens."""
        cdef int64_t whole = range_word(0, self.flat.node_count, 0)
        self.rests.clear()
        self.keys.clear()
        self.divisions.clear()
        self.tokens.clear()
        self.wide.clear()
        self.ends.clear()
        self.rests.intern(&whole, 1 if self.flat.node_count else 0)
        self.node_count = self.flat.node_count
        self.branches.forget_after(self.trie_branches)
        return 0

    cdef int64_t bytes_kept(self) noexcept:
        cdef int64_t words = 4 * self.word_count + 24
        return (
            self.rests.bytes() + self.keys.bytes() + sizeof(Division) * self.divisions.capacity()
            + 4 * self.tokens.capacity() + words * self.wide.size() + sizeof(End) * self.ends.capacity()
            + 8 * self.node_count * self.own_tries + self.branches.bytes_kept()
        )

    cdef int32_t number_of(self, int32_t rest, int32_t state) except -1:
        cdef int64_t key = pair_key(rest, state)
        cdef int32_t number = self.keys.find(key)
        if number >= 0:
            return number
        self.divisions.resize(self.keys.size())  # without what an error has left
        self.divisions.push_back(Division(0, -1, 0, 0, 0, 0))
        return self.keys.intern(key)

    cdef int32_t find(self, int32_t rest, int32_t state) noexcept:
        cdef int32_t number = self.keys.find(pair_key(rest, state))
        return number if number >= 0 and self.divisions[number].met == MADE else -1

    cdef int32_t rest_of(self, int64_t first, int64_t past, int64_t begin) except -1:
        cdef int64_t word = range_word(first, past, begin)
        return self.rests.intern(&word, 1)

    cdef bint has_room(self, int64_t nodes) noexcept:
        return self.node_count + nodes <= NEXT_MASK

    cdef int64_t nodes_left(self, int32_t number) noexcept:
        cdef int64_t total = 0, word
        cdef int32_t k, rest
        cdef size_t place
        for k in range(self.divisions[number].first_end, self.divisions[number].past_end):
            rest = self.ends[k].rest
            for place in range(self.rests.length(rest)):
                word = self.rests.content_of(rest)[place]
                total += range_past(word) - range_first(word)
        return total

    cdef int keep(self, int32_t number, Cut& cut, int64_t first) except -1:
        cdef Division made = Division(MADE, -1, 0, 0, <int32_t>self.ends.size(), 0)
        cdef int64_t k, begin = 0
        self.content.clear()
        sort_by_tag(cut)
        for k in range(cut.range_count):
            self.content.push_back(range_word(cut.ranges[k].first, cut.ranges[k].past, cut.ranges[k].begin))
            if k + 1 == cut.range_count or cut.ranges[k + 1].tag != cut.ranges[k].tag:
                if self.own_tries:
                    self.add_trie(cut.ranges + begin, k + 1 - begin, first)
                self.add_end(cut.ranges[k].tag)
                begin = k + 1
        made.past_end = <int32_t>self.ends.size()
        if cut.count < cut.room:
            if not cut.listed:
                list_inside(cut)
            made.first, made.past = <int32_t>self.tokens.size(), <int32_t>(self.tokens.size() + cut.count)
            self.tokens.insert(self.tokens.end(), cut.tokens, cut.tokens + cut.count)
            for k in range(<int64_t>cut.count):
                cut.words[cut.tokens[k] >> 5] = 0
            cut.words[self.size >> 5] = 0
        else:
            made.wide = <int32_t>self.wide.size()
            self.wide.emplace_back(cut.words, cut.words + self.word_count)
            memset(cut.words, 0, 4 * self.word_count)
        self.divisions[number] = made
        self.made += 1
        return 0

    cdef int add_trie(self, const LeftRange* ranges, int64_t count, int64_t origin) except -1:
        """Copy the nodes of ranges with one tag to a trie of its own, which takes their place in `content`."""
        cdef int64_t first = self.node_count, size, k
        cdef bint joins = True
        cdef uint64_t[::1] written = self.store[first:]
        bounds = np.empty((count, 2), dtype=np.int64)
        cdef int64_t[:, ::1] view = bounds
        for k in range(count):
            view[k, 0], view[k, 1] = ranges[k].first, ranges[k].past
            joins &= ranges[k].begin == ranges[k].depth
        if joins:
            size = join_ranges(self.store, bounds, self.size, written, first)
        else:
            size = cut_ranges(self.store, origin, bounds, self.size, written, first)
        hold(8 * size)
        self.node_count += size
        self.branches.add(self.nodes, first, first + size)
        self.content.assign(1, range_word(first, first + size, 0))
        return 0

    cdef int add_end(self, int32_t tag) except -1:
        """Add what is left with a tag, the ranges in `content`."""
        cdef int32_t rest = self.rests.intern(self.content.data(), self.content.size())
        self.content.clear()
        self.ends.push_back(End(tag, rest))
        return 0

    cdef int add_inside(self, int32_t number, uint32_t* words, int64_t count, bint blank) noexcept:
        cdef const Division* made = &self.divisions[number]
        cdef const uint32_t* inside
        cdef int64_t k
        cdef uint32_t token
        if made.wide >= 0:
            inside = self.wide[made.wide].data()
            count = min(count, self.word_count)
            if blank:
                memcpy(words, inside, 4 * count)
            else:
                for k in range(count):
                    words[k] |= inside[k]
            return 0
        if blank:
            memset(words, 0, 4 * count)
        for k in range(made.first, made.past):
            token = self.tokens[k]
            words[token >> 5] |= <uint32_t>1 << (token & 31)
        return 0

    # For Python.

    def ranges(self, int64_t rest):
        """The first node, the node after the last, and the depth where reading goes on, of each range of a rest."""
        cdef const int64_t* content
        cdef size_t k
        if not 0 <= rest < <int64_t>self.rests.size():
            raise IndexError(f"there is no rest {rest}")
        content = self.rests.content_of(<int32_t>rest)
        return [
            (range_first(content[k]), range_past(content[k]), range_begin(content[k]))
            for k in range(self.rests.length(<int32_t>rest))
        ]

    def tokens_left(self, int64_t rest):
        """The tokens of a rest, ascending, those with equal bytes included."""
        cdef int64_t node, first, past
        found = []
        for first, past, _ in self.ranges(rest):
            for node in range(first, past):
                if <int64_t>(self.nodes[node] >> 43) != self.size:
                    found.append(self.nodes[node] >> 43)
        return sorted(found)

    def view(self, int32_t rest, int32_t state):
        """(the tokens inside, ascending; what is left, as pairs of a tag and a rest); None if it is not made."""
        cdef int32_t number = self.keys.find(pair_key(rest, state)), k
        if number < 0 or self.divisions[number].met != MADE:
            return None
        bits = np.unpackbits(self.words_inside(number).view(np.uint8), bitorder="little")[: self.size]
        left = [
            (self.ends[k].tag, self.ends[k].rest)
            for k in range(self.divisions[number].first_end, self.divisions[number].past_end)
        ]
        return np.flatnonzero(bits).tolist(), left

    def inside_of(self, int64_t number):
        """(how many tokens are inside of a division that is made, bytes of the longest of them)."""
        cdef const uint32_t[::1] words
        cdef int64_t token, count = 0, longest = 0
        if not (0 <= number < <int64_t>self.divisions.size() and self.divisions[number].met == MADE):
            raise IndexError(f"there is no division {number}")
        words = self.words_inside(<int32_t>number)
        for token in range(self.size):
            if words[token >> 5] >> (token & 31) & 1:
                count += 1
                longest = max(longest, self.flat.offsets[token + 1] - self.flat.offsets[token])
        return count, longest

    def sizes(self, int32_t rest, int32_t state):
        """(how many tokens are inside of a division, how many nodes it leaves); None if it is not made."""
        cdef int32_t number = self.find(rest, state)
        return None if number < 0 else (self.inside_of(number)[0], self.nodes_left(number))

    @property
    def count(self):
        """How many divisions are made now."""
        cdef size_t k
        return sum([self.divisions[k].met == MADE for k in range(self.divisions.size())])

    def states(self):
        """The states by which whole tokens are divided, or have been asked for."""
        cdef int32_t k
        return [<int32_t>self.keys.key(k) for k in range(<int32_t>self.keys.size()) if self.keys.key(k) >> 32 == WHOLE]

    cdef object words_inside(self, int32_t number):
        """The tokens inside as uint32 words of V + 1 bits, of which the spare one is not set."""
        words = np.zeros(self.word_count, dtype=np.uint32)
        cdef uint32_t[::1] view = words
        self.add_inside(number, &view[0], self.word_count, True)
        view[self.size >> 5] &= ~(<uint32_t>1 << (self.size & 31))
        return words
