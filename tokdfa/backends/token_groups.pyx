"""Groups of tokens that lead to the same place, and which tokens may follow those of a group.

These are the loops of `tokdfa.backends.proper_liveness`, where the theory stands.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t
from libcpp.vector cimport vector

from tokdfa.core.border cimport HELD_WORK, int32_array, int64_array
from tokdfa.proper.adjacent_pairs cimport AdjacentPairs


cdef extern from "tokdfa/core/interning.hpp" namespace "tokdfa" nogil:
    int64_t pair_key(int32_t first, int32_t second)

    cdef cppclass Keys:
        size_t size()
        int64_t key(int32_t number)
        int32_t intern(int64_t key) except +


def group_tokens(const int32_t[::1] tokens not None, const int32_t[::1] keys not None, const int32_t[::1] targets):
    """See token_groups.pyi. A counting sort by the numbers of pairs."""
    cdef Keys numbers
    cdef vector[int32_t] group_of, members
    cdef vector[int64_t] pairs, starts, places
    cdef int32_t target
    cdef size_t k, count = tokens.shape[0]
    if keys.shape[0] != tokens.shape[0]:
        raise ValueError("each token has a key")
    for k in range(count):
        if not 0 <= tokens[k] < targets.shape[0]:
            raise IndexError(f"there is no token {tokens[k]}")
    with nogil:
        group_of.assign(count, -1)
        starts.push_back(0)
        for k in range(count):
            target = targets[tokens[k]]
            if target >= 0:
                group_of[k] = numbers.intern(pair_key(target, keys[k]))
                starts.resize(numbers.size() + 1)
                starts[group_of[k] + 1] += 1
        for k in range(numbers.size()):
            pairs.push_back(numbers.key(<int32_t>k))
            starts[k + 1] += starts[k]
        places = starts
        members.resize(starts.back())
        for k in range(count):
            if group_of[k] >= 0:
                members[places[group_of[k]]] = tokens[k]
                places[group_of[k]] += 1
    return int32_array(members), int64_array(starts), int64_array(pairs)


@cython.final
cdef class Followers:
    """The tokens that both allow after those of a group, in the same piece: known to go on, and not yet tried.

    Tokens tried in vain are in neither. The caller holds a lock.
    """

    cdef AdjacentPairs pairs
    cdef vector[int32_t] live, untried
    cdef public object undecided

    def __init__(
        self, AdjacentPairs pairs not None, const int32_t[::1] live not None, const int32_t[::1] untried not None
    ):
        cdef Py_ssize_t k
        self.pairs = pairs
        for k in range(live.shape[0]):
            self.live.push_back(pairs.checked(live[k]))
        for k in range(untried.shape[0]):
            self.untried.push_back(pairs.checked(untried[k]))

    @property
    def nbytes(self):
        return 4 * (self.live.size() + self.untried.size())

    @property
    def has_untried(self):
        return self.untried.size() > 0

    def may_follow(self, int32_t last):
        """Whether a token that goes on may follow `last`. 0.2 us for each that may not."""
        return self.find(self.pairs.checked(last), self.live, 0) >= 0

    def next_untried(self, int32_t last, size_t first):
        """(its place, the token) of the first one not tried, from the place `first` on, that may follow `last`."""
        cdef int64_t place = self.find(self.pairs.checked(last), self.untried, first)
        return None if place < 0 else (place, self.untried[place])

    def settle(self, size_t place, bint goes_on):
        """Note what became of the one at `place` among those not tried: it is no longer one of them."""
        if place >= self.untried.size():
            raise IndexError(place)
        if goes_on:
            self.live.push_back(self.untried[place])
        self.untried.erase(self.untried.begin() + place)

    def judge(self, const int32_t[::1] members not None, int32_t[::1] out not None):
        """Set the bits of those `members` that a token which goes on may follow. Returns the others, int32."""
        cdef vector[int32_t] others
        cdef Py_ssize_t k
        for k in range(members.shape[0]):
            if self.pairs.checked(members[k]) >> 5 >= out.shape[0]:
                raise ValueError(f"a mask of {out.shape[0]} words is too short")
        if members.shape[0] > HELD_WORK:
            with nogil:
                self.judge_members(members, out, others)
        else:
            self.judge_members(members, out, others)
        return int32_array(others)

    cdef int judge_members(
        self, const int32_t[::1] members, int32_t[::1] out, vector[int32_t]& others
    ) except -1 nogil:
        cdef int64_t likely = 0  # mostly one follower serves all
        cdef int64_t place
        cdef int32_t member
        cdef Py_ssize_t k
        for k in range(members.shape[0]):
            member = members[k]
            if self.live.empty() or self.pairs.find_break(member, self.live[likely]) >= 0:
                place = self.search(member, self.live, 0)
                if place < 0:
                    others.push_back(member)
                    continue
                likely = place
            out[member >> 5] |= <int32_t>(<uint32_t>1 << (member & 31))
        return 0

    cdef int64_t find(self, int32_t last, const vector[int32_t]& tokens, size_t first):
        """The place of the first of `tokens`, from `first` on, that may follow `last` in one piece, or -1."""
        if tokens.size() <= first + HELD_WORK:
            return self.search(last, tokens, first)
        with nogil:
            return self.search(last, tokens, first)

    cdef int64_t search(self, int32_t last, const vector[int32_t]& tokens, size_t first) noexcept nogil:
        cdef size_t k
        for k in range(first, tokens.size()):
            if self.pairs.find_break(last, tokens[k]) < 0:
                return k
        return -1
