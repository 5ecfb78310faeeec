"""Shared stacks of LALR states, and what the parser does with a terminal.

A stack is a node: its top state, and the stack below. Nodes are found again by (stack below, top), so equal stacks are
one number, copying one costs nothing, and what is known of a stack is kept beside it: the set of terminals that it
takes, as bits (see `tokdfa.cfg_fsm.contextual.Contextual.ends`), found out once by trying each of its context.

A terminal may make the parser reduce several times before it is shifted. Reductions are done on the side, in `pushed`,
above the part of the old stack that they leave; only the result is made a node.

Kernels take the tables and the stacks as named tuples of arrays. Where an array is too short they return FULL and have
changed nothing that counts; `Stacks.grow` makes room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.errors import LimitExceeded
from tokdfa.jit import kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.cfg_fsm.lark_tables import LalrTables

#: What kernels return for a terminal that the parser does not take, and for arrays that are too short.
REFUSED, FULL = -1, -2


class ParseArrays(NamedTuple):
    """`LalrTables` for kernels. `contexts`: int32, shape (S,), the context of each state; `end`: int64, shape (1,)."""

    actions: npt.NDArray[np.int32]
    gotos: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]
    lefts: npt.NDArray[np.int32]
    contexts: npt.NDArray[np.int32]
    end: npt.NDArray[np.int64]


class StackArrays(NamedTuple):
    """Stacks as arrays. `below`, `tops`: int32; `taken`: uint64, shape (room, W); `known`: bool, whether `taken` is
    filled in; `slots`: int32, a hash table of stacks; `count`: int64, shape (1,); `pushed`: int32, room for one parse.
    """

    below: npt.NDArray[np.int32]
    tops: npt.NDArray[np.int32]
    taken: npt.NDArray[np.uint64]
    known: npt.NDArray[np.bool_]
    slots: npt.NDArray[np.int32]
    count: npt.NDArray[np.int64]
    pushed: npt.NDArray[np.int32]


class Stacks:
    """All stacks met so far. Stack 0 holds the start state alone. Not thread-safe.

    `max_stacks`: past it LimitExceeded is raised; the stacks made so far stay usable.
    """

    def __init__(self, tables: LalrTables, contexts: npt.NDArray[np.int32], max_stacks: int) -> None:
        self.terminal_count = tables.actions.shape[1] - 1
        self.max_stacks = max_stacks
        self.parse = ParseArrays(
            tables.actions,
            tables.gotos,
            tables.rule_lengths,
            tables.rule_lefts,
            contexts,
            np.array([tables.end], dtype=np.int64),
        )
        # between two shifts no nonterminal comes to stand above itself without the parser looping
        deepest = len(tables.rule_lengths) + tables.gotos.shape[1] + 2
        words = (self.terminal_count + 2 + 63) // 64
        room = 256
        self.arrays = StackArrays(
            np.full(room, -1, dtype=np.int32),
            np.zeros(room, dtype=np.int32),
            np.zeros((room, words), dtype=np.uint64),
            np.zeros(room, dtype=np.bool_),
            np.full(2 * room, -1, dtype=np.int32),
            np.zeros(1, dtype=np.int64),
            np.zeros(deepest, dtype=np.int32),
        )
        _push_kernel(self.arrays, -1, tables.start)

    @property
    def count(self) -> int:
        """Stacks made so far."""
        return int(self.arrays.count[0])

    @property
    def nbytes(self) -> int:
        """Bytes held by the arrays."""
        return sum(array.nbytes for array in (*self.parse, *self.arrays))

    def grow(self) -> None:
        """Make room for as many stacks again. LimitExceeded past `max_stacks`."""
        old = self.arrays
        room = len(old.tops)
        if self.count >= self.max_stacks:
            raise LimitExceeded(
                f"the parser has met more than {self.max_stacks} stacks; raise max_stacks",
                limit="max_stacks",
                value=self.max_stacks,
            )
        slots = np.full(4 * room, -1, dtype=np.int32)
        self.arrays = StackArrays(
            np.concatenate([old.below, np.full(room, -1, dtype=np.int32)]),
            np.concatenate([old.tops, np.zeros(room, dtype=np.int32)]),
            np.concatenate([old.taken, np.zeros_like(old.taken)]),
            np.concatenate([old.known, np.zeros_like(old.known)]),
            slots,
            old.count,
            old.pushed,
        )
        _refill_slots_kernel(self.arrays)

    def shift(self, stack: int, terminal: int) -> int:
        """The stack after `terminal` (T for ignored text, which changes nothing), REFUSED if it cannot come next."""
        while (found := int(shift_kernel(self.parse, self.arrays, stack, terminal))) == FULL:
            self.grow()
        return found

    def takes(self, stack: int, terminal: int) -> bool:
        """Whether `terminal` may come next; T + 1 asks for the end of the text."""
        taken_kernel(self.parse, self.arrays, stack)
        return bool(int(self.arrays.taken[stack, terminal >> 6]) >> (terminal & 63) & 1)

    def context(self, stack: int) -> int:
        """The context in which the next lexeme begins."""
        return int(self.parse.contexts[self.arrays.tops[stack]])

    def states(self, stack: int) -> list[int]:
        """The states of a stack, the start state first."""
        found = []
        while stack >= 0:
            found.append(int(self.arrays.tops[stack]))
            stack = int(self.arrays.below[stack])
        return found[::-1]


@kernel
def _slot_kernel(stacks, below, top):  # type: ignore[no-untyped-def]
    """Where the stack (below, top) is in the hash table, or belongs."""
    key = (int(below) + 1) * 1000003 + int(top) + 1
    # multiplying by an odd constant spreads the keys; the sign bit is cleared because numba's product wraps around
    mixed = (key * 0x1E3779B97F4A7C15) & 0x7FFFFFFFFFFFFFFF
    slot = (mixed >> 20) & (len(stacks.slots) - 1)
    while True:
        found = stacks.slots[slot]
        if found < 0 or (stacks.below[found] == below and stacks.tops[found] == top):
            return slot
        slot = (slot + 1) & (len(stacks.slots) - 1)


@kernel
def _push_kernel(stacks, below, top):  # type: ignore[no-untyped-def]
    """The stack (below, top), made if need be; FULL if there is no room."""
    slot = _slot_kernel(stacks, below, top)
    found = stacks.slots[slot]
    if found >= 0:
        return np.int64(found)
    count = stacks.count[0]
    if count >= len(stacks.tops):
        return np.int64(FULL)
    stacks.below[count] = below
    stacks.tops[count] = top
    stacks.slots[slot] = count
    stacks.count[0] = count + 1
    return np.int64(count)


@kernel
def _refill_slots_kernel(stacks):  # type: ignore[no-untyped-def]
    """Enter all stacks into an empty hash table."""
    for stack in range(stacks.count[0]):
        stacks.slots[_slot_kernel(stacks, stacks.below[stack], stacks.tops[stack])] = stack


@kernel
def _reduce_kernel(parse, stacks, stack, column):  # type: ignore[no-untyped-def]
    """Do all reductions before the terminal of `column` is shifted.

    Returns (the part of the stack that stays, how many states were pushed above it, the state to shift to). The last is
    -1 if the parser does not take the terminal; for the end of the text it is the end state if it does.
    """
    base, depth = np.int64(stack), np.int64(0)
    at_end = column == parse.actions.shape[1] - 1
    while True:
        top = stacks.pushed[depth - 1] if depth else stacks.tops[base]
        action = parse.actions[top, column]
        if action == 0:
            return base, depth, np.int64(-1)
        if action > 0:
            return base, depth, np.int64(action - 1)
        rule = -action - 1
        length = np.int64(parse.lengths[rule])
        kept = min(length, depth)
        depth -= kept
        for _ in range(length - kept):
            base = np.int64(stacks.below[base])
        exposed = stacks.pushed[depth - 1] if depth else stacks.tops[base]
        target = parse.gotos[exposed, parse.lefts[rule]]
        if target < 0 or depth >= len(stacks.pushed):
            return base, depth, np.int64(-1)
        stacks.pushed[depth] = target
        depth += 1
        if at_end and target == parse.end[0]:
            return base, depth, np.int64(target)


@kernel
def shift_kernel(parse, stacks, stack, terminal):  # type: ignore[no-untyped-def]
    """The stack after a terminal; REFUSED or FULL. Ignored text leaves the stack as it is."""
    if terminal >= parse.actions.shape[1] - 1:
        return np.int64(stack)
    base, depth, target = _reduce_kernel(parse, stacks, stack, terminal)
    if target < 0:
        return np.int64(REFUSED)
    for k in range(depth):
        base = _push_kernel(stacks, base, stacks.pushed[k])
        if base < 0:
            return np.int64(FULL)
    return _push_kernel(stacks, base, target)


@kernel
def taken_kernel(parse, stacks, stack):  # type: ignore[no-untyped-def]
    """Make the set of what a stack takes known. Ignored text is in every such set."""
    if stacks.known[stack]:
        return
    columns = parse.actions.shape[1]
    top = stacks.tops[stack]
    for column in range(columns):
        if parse.actions[top, column] != 0 and _reduce_kernel(parse, stacks, stack, column)[2] >= 0:
            bit = column if column < columns - 1 else columns
            stacks.taken[stack, bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
    ignored = columns - 1
    stacks.taken[stack, ignored >> 6] |= np.uint64(1) << np.uint64(ignored & 63)
    stacks.known[stack] = True
