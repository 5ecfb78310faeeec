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
turn up. Items refer to it by its complement ``~frame``; when the closure is done, `resolve_frame_kernel` makes the
stacks that are needed, innermost first (Tarjan's algorithm finds the groups).

Sources: Tomita 1985; Scott and Johnstone 2010 (calls merged by frame and position). Interning by content is ours.
Cost: a hash look-up for each frame called; most have one caller.
"""

from __future__ import annotations

import numpy as np

from tokdfa.backends.pushdown_trie.arrays import M_MET, NEEDS_SCRATCH, NEEDS_STACKS, OK
from tokdfa.core.interning import COUNT, append, find, has_room, intern
from tokdfa.core.jit import kernel
from tokdfa.core.keys import first_of, pack_pair, second_of
from tokdfa.core.sorting import sort_distinct
from tokdfa.program.program import OPERATION, RETURN

#: As how many items that are met (`M_MET`) one counts that is sorted into a row, or an entry into a stack.
SORTED_ITEMS = 16
#: Columns of `frame_state`: the closure that called the frame last; its latest caller; whether it has returned without
#: reading; its stack, -1 if not made; Tarjan's index and low link (index 0: not met); its place in its group, -1 if it
#: is in no group being made; the round that met it last; whether it is on Tarjan's stack.
F_STAMP, F_CALLER, F_RETURNED, F_STACK, F_INDEX, F_LOW, F_MEMBER, F_ROUND, F_OPEN = range(9)
FRAME_COLUMNS = 9
#: Columns of `callers`: the place to return to; the caller's stack, or ~frame; the next caller of the same frame.
C_PLACE, C_STACK, C_NEXT = range(3)
#: Columns of `todo`: a frame on the way and its next caller to look at; frames met and not in a group yet; where the
#: entries of a group's member begin in `pairs`.
T_FRAME, T_CALLER, T_MET, T_BEGIN = range(4)
#: The stack of the whole text.
ROOT = 0
#: The place of an entry that goes on in a row, whose number is the rest (for skipped terminals).
ROW_PLACE = -1


#: An entry (place, rest) as one number; `rest` may be negative.
pack_entry = pack_pair


@kernel
def intern_stack(begin, end, machine):  # type: ignore[no-untyped-def]
    """(status, the stack with entries pairs[begin:end], sorted and distinct)."""
    stack = intern(machine.pairs, begin, end, machine.stacks)
    return (OK if stack >= 0 else NEEDS_STACKS), stack


@kernel
def _put_callers(frame, end, machine):  # type: ignore[no-untyped-def]
    """Append the entries that a frame's callers make to `pairs`, but for tail calls within its group; end, or -1."""
    frames, callers = machine.frame_state, machine.callers
    caller = np.int64(frames[frame, F_CALLER])
    while caller >= 0:
        place, rest = np.int64(callers[caller, C_PLACE]), np.int64(callers[caller, C_STACK])
        member = np.int64(-1)
        if rest < 0:
            member = np.int64(frames[~rest, F_MEMBER])
            rest = np.int64(frames[~rest, F_STACK])
        is_tail = machine.code[place, OPERATION] == RETURN
        if not is_tail:
            if end >= len(machine.pairs):
                return np.int64(-1)
            machine.pairs[end] = pack_entry(place, -1 - member if member >= 0 else rest)
            end += 1
        elif member < 0 and rest >= 0:
            first, past = machine.stacks.begin[rest], machine.stacks.begin[rest + 1]
            if end + past - first > len(machine.pairs):
                return np.int64(-1)
            for k in range(first, past):
                machine.pairs[end] = machine.stacks.words[k]
                end += 1
        caller = np.int64(callers[caller, C_NEXT])
    return end


@kernel
def _is_recursive(frame, machine):  # type: ignore[no-untyped-def]
    """Whether a frame calls itself with something to do afterwards, before anything was read."""
    caller = np.int64(machine.frame_state[frame, F_CALLER])
    while caller >= 0:
        is_tail = machine.code[machine.callers[caller, C_PLACE], OPERATION] == RETURN
        if machine.callers[caller, C_STACK] == ~frame and not is_tail:
            return True
        caller = np.int64(machine.callers[caller, C_NEXT])
    return False


@kernel
def resolve_frame_kernel(root, machine):  # type: ignore[no-untyped-def]
    """Give a frame that the present closure has called its stack, and first those that it refers to. A status."""
    frames, callers, todo = machine.frame_state, machine.callers, machine.todo
    if frames[root, F_STACK] >= 0:
        return OK
    depth, met, index = np.int64(0), np.int64(0), np.int64(0)
    entering = np.int64(root)
    while True:
        if entering >= 0:
            index += 1
            frames[entering, F_INDEX] = frames[entering, F_LOW] = index
            frames[entering, F_OPEN] = 1
            todo[depth, T_FRAME], todo[depth, T_CALLER] = entering, frames[entering, F_CALLER]
            todo[met, T_MET] = entering
            depth, met, entering = depth + 1, met + 1, np.int64(-1)
        frame, caller = np.int64(todo[depth - 1, T_FRAME]), np.int64(todo[depth - 1, T_CALLER])
        if caller >= 0:
            todo[depth - 1, T_CALLER] = callers[caller, C_NEXT]
            reference = np.int64(callers[caller, C_STACK])
            if reference < 0 and frames[~reference, F_STACK] < 0:
                if frames[~reference, F_INDEX] == 0:
                    entering = ~reference
                elif frames[~reference, F_OPEN]:
                    frames[frame, F_LOW] = min(frames[frame, F_LOW], frames[~reference, F_INDEX])
            continue
        depth -= 1
        if frames[frame, F_LOW] == frames[frame, F_INDEX]:
            first = met - 1
            while todo[first, T_MET] != frame:
                first -= 1
            if met - first == 1 and not _is_recursive(frame, machine):
                status = _resolve_single(frame, machine)
            else:
                status = _resolve_group(first, met, depth, machine)
            if status != OK:
                return status
            met = first
        if depth == 0:
            return OK
        above = todo[depth - 1, T_FRAME]
        frames[above, F_LOW] = min(frames[above, F_LOW], frames[frame, F_LOW])


@kernel
def _resolve_single(frame, machine):  # type: ignore[no-untyped-def]
    """Give a frame its stack if all stacks that it refers to are made. A status."""
    frames = machine.frame_state
    frames[frame, F_OPEN] = 0
    frames[frame, F_STACK] = -1
    end = _put_callers(frame, np.int64(0), machine)
    if end < 0:
        return NEEDS_SCRATCH
    machine.meta[M_MET] += SORTED_ITEMS * end
    status, stack = intern_stack(np.int64(0), sort_distinct(machine.pairs, 0, end), machine)
    if status == OK:
        frames[frame, F_STACK] = stack
    return status


@kernel
def _resolve_group(first, past, free, machine):  # type: ignore[no-untyped-def]
    """Give the frames todo[first:past, T_MET], which refer to each other, their stacks. A status.

    The rows of `todo` from `free` on may be used in the columns T_FRAME and T_CALLER.
    """
    frames, todo, pairs, callers = machine.frame_state, machine.todo, machine.pairs, machine.callers
    for k in range(first + 1, past):  # by frame
        frame = todo[k, T_MET]
        place = k
        while place > first and todo[place - 1, T_MET] > frame:
            todo[place, T_MET] = todo[place - 1, T_MET]
            place -= 1
        todo[place, T_MET] = frame
    size = past - first
    for k in range(first, past):
        frames[todo[k, T_MET], F_MEMBER] = k - first
        frames[todo[k, T_MET], F_ROUND] = -1
    header = 1 + 2 * size
    end = np.int64(header)
    if end > len(pairs):
        return NEEDS_SCRATCH
    for k in range(first, past):
        begin = end
        todo[k, T_BEGIN] = begin
        # the member's own callers, and those of members that it is a tail call of
        waiting = free + 1
        if waiting + size >= len(todo):
            return NEEDS_SCRATCH
        todo[free, T_FRAME] = todo[k, T_MET]
        frames[todo[k, T_MET], F_ROUND] = k
        taken = free
        while taken < waiting:
            frame = np.int64(todo[taken, T_FRAME])
            taken += 1
            end = _put_callers(frame, end, machine)
            if end < 0:
                return NEEDS_SCRATCH
            caller = np.int64(frames[frame, F_CALLER])
            while caller >= 0:
                reference = np.int64(callers[caller, C_STACK])
                is_new = reference < 0 and frames[~reference, F_MEMBER] >= 0 and frames[~reference, F_ROUND] != k
                if is_new and machine.code[callers[caller, C_PLACE], OPERATION] == RETURN:
                    frames[~reference, F_ROUND] = k
                    todo[waiting, T_FRAME] = ~reference
                    waiting += 1
                caller = np.int64(callers[caller, C_NEXT])
        machine.meta[M_MET] += SORTED_ITEMS * (end - begin)
        end = sort_distinct(pairs, begin, end)
    pairs[0] = size
    for k in range(size):
        pairs[1 + k] = todo[first + k, T_MET]
        pairs[1 + size + k] = todo[first + k, T_BEGIN]
    status, base = _intern_group(size, end, machine)
    if status != OK:
        return status
    for k in range(first, past):
        frame = todo[k, T_MET]
        frames[frame, F_STACK], frames[frame, F_MEMBER], frames[frame, F_OPEN] = base + k - first, -1, 0
    return OK


@kernel
def _intern_group(size, end, machine):  # type: ignore[no-untyped-def]
    """(status, the first stack of the group that pairs[:end] describes)."""
    pairs, stacks, groups = machine.pairs, machine.stacks, machine.groups
    group = find(pairs, 0, end, groups)
    if group >= 0:
        return OK, np.int64(machine.group_stack[group])
    first = 1 + 2 * size
    if not (has_room(size, end - first, stacks) and has_room(1, end, groups)):
        return NEEDS_STACKS, np.int64(-1)
    group, base = append(pairs, 0, end, groups), stacks.meta[COUNT]
    machine.group_stack[group] = base
    for k in range(first, end):  # members are named by their stacks from now on
        rest = second_of(pairs[k])
        if rest < 0:
            pairs[k] = pack_entry(first_of(pairs[k]), base - 1 - rest)
    for k in range(size):
        past = pairs[2 + size + k] if k + 1 < size else end
        append(pairs, pairs[1 + size + k], past, stacks)
    return OK, base
