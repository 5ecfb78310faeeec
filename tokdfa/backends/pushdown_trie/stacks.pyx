"""Return stacks: what is still to be read after the current frame, shared by all rows.

A *stack* is a set of *entries* (place to return to, rest of the stack); stacks with the same entries are one number
(but for groups, below, whose members may equal a stack that was made alone).
It is a set because one frame may have been called from several places at once (ambiguity), and calls that happen at the
same point of the text are merged: what the frame reads does not depend on who called it. So a stack is a node of what
is known from generalised LR parsing as a graph-structured stack; here nodes are interned by content, hence equal
wherever they occur. Stack 0 is that of the whole text, whose one entry returns to itself.

*Tail calls.* A call with nothing after it takes the entries of its caller's stack in place of one that would return
there only to return again. So right recursion does not grow the stack.

*Left recursion.* With ``e: e "+" t | t`` the frame e calls itself before anything was read: its stack contains an
entry whose rest is that same stack. Frames that call each other form a *group*; the group is interned as a whole,
with the stacks inside it named by their places in it, members in order of their frames.

During a closure (`tokdfa.backends.pushdown_trie.rows`) a frame that is called has no stack yet, since more callers may
turn up. Items refer to it by its complement ``~frame``; when the closure is done, `resolve_frame` makes the
stacks that are needed, innermost first (Tarjan's algorithm finds the groups).

Sources: Tomita 1985; Scott and Johnstone 2010 (calls merged by frame and position). Interning by content is ours.
Cost: a hash look-up for each frame called; most have one caller.
"""

from libc.stdint cimport int32_t, int64_t
from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

from tokdfa.backends.pushdown_trie.rows cimport (
    SORTED_ITEMS, Caller, Frame, entry_place, entry_rest, pack_entry, sort_distinct,
)
from tokdfa.program.operations cimport RETURN


cdef class Stacks(Rows):
    """Rows, with the stacks of what a closure calls."""

    cdef int put_callers(self, int32_t frame, vector[int64_t]& entries) except -1:
        """Append the entries that a frame's callers make, but for tail calls within its group."""
        cdef const Frame* frames = self.t.frames.data()
        cdef const Caller* callers = self.t.callers.data()
        cdef int32_t caller = frames[frame].caller, member
        cdef int64_t rest, k
        cdef const Caller* at
        while caller >= 0:
            at = callers + caller
            rest, member = at.stack, -1
            if rest < 0:
                member, rest = frames[~rest].member, frames[~rest].stack
            if self.code_at[at.place].operation != RETURN:
                if member >= 0:
                    rest = -1 - member
                entries.push_back(pack_entry(at.place, rest))
            elif member < 0 and rest >= 0:
                for k in range(self.entry_count(rest)):
                    entries.push_back(self.entries_of(rest)[k])
            caller = at.next
        return 0

    cdef bint is_recursive(self, int32_t frame) noexcept:
        """Whether a frame calls itself with something to do afterwards, before anything was read."""
        cdef int32_t caller = self.t.frames[frame].caller
        while caller >= 0:
            if self.t.callers[caller].stack == ~frame:
                if self.code_at[self.t.callers[caller].place].operation != RETURN:
                    return True
            caller = self.t.callers[caller].next
        return False

    cdef int enter_frame(self, int32_t frame, int32_t index) except -1:
        cdef Frame* one = &self.t.frames[frame]
        one.index = one.low = index
        one.is_open = True
        self.way.push_back(OpenFrame(frame, one.caller))
        self.met.push_back(frame)
        return 0

    cdef int resolve_frame(self, int32_t root) except -1:
        cdef Frame* frames = self.t.frames.data()
        cdef int32_t index = 1, frame, caller, reference
        cdef size_t first
        if frames[root].stack >= 0:
            return 0
        self.way.clear()
        self.met.clear()
        self.enter_frame(root, index)
        while not self.way.empty():
            frame, caller = self.way.back().frame, self.way.back().caller
            if caller >= 0:
                self.way.back().caller = self.t.callers[caller].next
                reference = self.t.callers[caller].stack
                if reference < 0 and frames[~reference].stack < 0:
                    if frames[~reference].index == 0:
                        index += 1
                        self.enter_frame(~reference, index)
                    elif frames[~reference].is_open:
                        frames[frame].low = min(frames[frame].low, frames[~reference].index)
                continue
            self.way.pop_back()
            if frames[frame].low == frames[frame].index:
                first = self.met.size() - 1
                while self.met[first] != frame:
                    first -= 1
                if first + 1 == self.met.size() and not self.is_recursive(frame):
                    self.resolve_single(frame)
                else:
                    self.resolve_group(first)
                self.met.resize(first)
            if not self.way.empty():
                reference = self.way.back().frame
                frames[reference].low = min(frames[reference].low, frames[frame].low)
        return 0

    cdef int resolve_single(self, int32_t frame) except -1:
        """Give a frame its stack if all stacks that it refers to are made."""
        cdef Frame* one = &self.t.frames[frame]
        one.is_open, one.stack = False, -1
        self.t.pairs.clear()
        self.put_callers(frame, self.t.pairs)
        self.items_met += SORTED_ITEMS * self.t.pairs.size()
        sort_distinct(self.t.pairs)
        one.stack = <int32_t>self.intern_stack()
        return 0

    cdef int resolve_group(self, size_t first) except -1:
        """Give the frames met from `first` on, which refer to each other, their stacks.

        The group's content: how many members, their frames, where the entries of each begin, and these.
        """
        cdef Frame* frames = self.t.frames.data()
        cdef int64_t size = self.met.size() - first, base, k
        cdef int32_t frame
        sort(self.met.begin() + first, self.met.end())  # by frame
        for k in range(size):
            frames[self.met[first + k]].member = <int32_t>k
            frames[self.met[first + k]].met_by = -1
        self.t.pairs.assign(1 + 2 * size, 0)
        self.t.pairs[0] = size
        for k in range(size):
            frame = self.met[first + k]
            self.t.pairs[1 + k], self.t.pairs[1 + size + k] = frame, self.t.pairs.size()
            self.gathered.clear()
            self.waiting.assign(1, frame)
            frames[frame].met_by = <int32_t>k
            self.gather_member(<int32_t>k)
            self.items_met += SORTED_ITEMS * self.gathered.size()
            sort_distinct(self.gathered)
            self.t.pairs.insert(self.t.pairs.end(), self.gathered.begin(), self.gathered.end())
        base = self.intern_group(size)
        for k in range(size):
            frame = self.met[first + k]
            frames[frame].stack, frames[frame].member, frames[frame].is_open = <int32_t>(base + k), -1, False
        return 0

    cdef int gather_member(self, int32_t member) except -1:
        """The entries of a member's own callers, and those of members that it is a tail call of."""
        cdef Frame* frames = self.t.frames.data()
        cdef int32_t frame, caller, reference
        cdef size_t taken = 0
        while taken < self.waiting.size():
            frame = self.waiting[taken]
            taken += 1
            self.put_callers(frame, self.gathered)
            caller = frames[frame].caller
            while caller >= 0:
                reference = self.t.callers[caller].stack
                if reference < 0 and frames[~reference].member >= 0 and frames[~reference].met_by != member:
                    if self.code_at[self.t.callers[caller].place].operation == RETURN:
                        frames[~reference].met_by = member
                        self.waiting.push_back(~reference)
                caller = self.t.callers[caller].next
        return 0

    cdef int64_t intern_group(self, int64_t size) except -1:
        """The first stack of the group that `pairs` describes."""
        cdef vector[int64_t]* pairs = &self.t.pairs
        cdef int64_t base, k, past
        cdef int32_t group = self.t.groups.find(pairs.data(), pairs.size())
        if group >= 0:
            return self.t.group_stack[group]
        self.check_room()
        base = self.t.stacks.size()
        group = self.t.groups.intern(pairs.data(), pairs.size())
        self.t.group_stack.push_back(<int32_t>base)
        past = pairs.size()
        for k in range(1 + 2 * size, past):  # members are named by their stacks from now on
            if entry_rest(pairs[0][k]) < 0:
                pairs[0][k] = pack_entry(entry_place(pairs[0][k]), base - 1 - entry_rest(pairs[0][k]))
        for k in range(size):
            past = pairs.size()
            if k + 1 < size:
                past = pairs[0][2 + size + k]
            self.t.stacks.append(pairs.data() + pairs[0][1 + size + k], past - pairs[0][1 + size + k])
        return base
