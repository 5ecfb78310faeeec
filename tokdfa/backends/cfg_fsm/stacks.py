"""Shared stacks of LALR states, and what the parser does with a terminal.

A stack is a node: its top state, and the stack below. Nodes are interned by (stack below, top), so equal stacks are one
number, copying one costs nothing, and what is known of a stack is kept beside it: the set of labels that lead on from
it, as bits (`tokdfa.backends.cfg_fsm.contextual.Contextual.ends`), found out once by trying all terminals. Where not
every terminal that the parser takes leads to an end, it is the set of outcomes that do, and
`tokdfa.backends.cfg_fsm.liveness` fills it in when a kernel asks for it.

A terminal may make the parser reduce several times before it is shifted. Reductions are done on the side, in `pushed`,
above the part of the old stack that they leave; only the result is made a node.

Kernels take the tables and the stacks as one struct. Where an array is too short they return FULL and have changed
nothing that counts; `Stacks.grow` makes room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.core.interning import NEEDS_ROOM, Column, InterningTable, Limit, first_of, intern_key, pack_pair
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_budget import pay
from tokdfa.core.kernel_struct import Struct

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.cfg_fsm.lark_tables import LalrTables

#: What kernels return for a terminal that the parser does not take, and where something is lacking: room, or what
#: leads on from the stack ``meta[M_ASKED]``.
REFUSED, FULL = -1, NEEDS_ROOM
#: Indices into `meta`: the state that is the end; whether `taken` is filled in by a search; the stack for which a
#: kernel has asked for it, or -1.
M_END, M_SEARCHED, M_ASKED = range(3)

#: What it takes to try a terminal on a stack, and for how many stacks that is paid at once.
NS_PER_TERMINAL, PAID_STACKS = 20, 256

#: Tables (`LalrTables`): ``actions``, ``gotos``, ``lengths`` and ``lefts`` of rules; ``contexts``: the context of each
#: state. ``table``: the stacks, interned as keys, and its columns ``tops``, ``depths``, ``taken`` (uint64, W words),
#: ``known``, whether ``taken`` is filled in. ``pushed``: room for one parse; ``meta`` int64.
STACK_FIELDS = (
    *("actions", "gotos", "lengths", "lefts", "contexts", "table"),
    *("tops", "depths", "taken", "known", "pushed", "meta"),
)


class StackArrays(Struct, fields=STACK_FIELDS):
    """What kernels take: STACK_FIELDS."""


class Stacks:
    """All stacks met so far. Stack 0 holds the start state alone. Not thread-safe.

    `struct`: what kernels take, a new one after `grow`. `max_stacks`: past it LimitExceeded is raised; the stacks made
    so far stay usable. `outcome_count`: if not 0, what leads on from a stack is a set of outcomes, set by `learn`.
    """

    struct: Any

    def __init__(
        self, tables: LalrTables, contexts: npt.NDArray[np.int32], max_stacks: int, outcome_count: int = 0
    ) -> None:
        self.terminal_count = tables.actions.shape[1] - 1
        self.contexts, self.actions = contexts, tables.actions
        self._tables = (tables.actions, tables.gotos, tables.rule_lengths, tables.rule_lefts, contexts)
        words = ((outcome_count or self.terminal_count + 1) + 1 + 63) // 64
        columns = {
            "tops": Column(np.int32),
            "depths": Column(np.int32),
            "taken": Column(np.uint64, words),
            "known": Column(np.bool_),
        }
        message = f"the parser has met more than {max_stacks} stacks; raise max_stacks"
        self._table = InterningTable(columns, keys=True, entries=256, limit=Limit(max_stacks, "max_stacks", message))
        # between two shifts no nonterminal comes to stand above itself without the parser looping
        deepest = len(tables.rule_lengths) + tables.gotos.shape[1] + 2
        self._pushed: npt.NDArray[np.int32] = np.zeros(deepest, dtype=np.int32)
        self._meta: npt.NDArray[np.int64] = np.array([tables.end, outcome_count > 0, -1], dtype=np.int64)
        self._gather()
        _push_kernel(self.struct, -1, tables.start)

    def _gather(self) -> None:
        """Make the struct of the arrays as they are now."""
        self.tops, self.depths, self.taken, self._known = columns = tuple(self._table.columns.values())
        self.struct = StackArrays(*self._tables, self._table.struct, *columns, self._pushed, self._meta)

    @property
    def count(self) -> int:
        """Stacks made so far."""
        return self._table.count

    @property
    def is_searched(self) -> bool:
        """Whether what leads on from a stack is found by a search."""
        return bool(self._meta[M_SEARCHED])

    @property
    def is_full(self) -> bool:
        """Whether no stack can be made before `grow`."""
        return self._table.count == self._table.room

    @property
    def nbytes(self) -> int:
        """Bytes held by the tables and the stacks."""
        return sum(array.nbytes for array in self._tables) + self._table.nbytes

    def grow(self) -> None:
        """Make room for more stacks. Raises LimitExceeded if there are `max_stacks`."""
        self._table.grow()
        self._gather()

    def shift(self, stack: int, terminal: int) -> int:
        """The stack after `terminal` (T for ignored text, which changes nothing), REFUSED if it cannot come next."""
        while (found := int(shift_kernel(self.struct, stack, terminal))) == FULL:
            self.grow()
        return found

    def takes(self, stack: int, terminal: int) -> bool:
        """Whether the parser takes `terminal` next; T asks for the end of the text."""
        return bool(_takes_kernel(self.struct, stack, terminal))

    def pop_asked(self) -> int:
        """The stack of which a kernel wants to know what leads on from it, once; -1 if there is none."""
        asked = int(self._meta[M_ASKED])
        self._meta[M_ASKED] = -1
        return asked

    def learn(self, stack: int, outcomes: int) -> None:
        """Set what leads on from a stack: outcomes, and the end of the text as the bit after them."""
        for word in range(self.taken.shape[1]):
            self.taken[stack, word] = outcomes >> 64 * word & (1 << 64) - 1
        self._known[stack] = True

    def context(self, stack: int) -> int:
        """The context in which the next lexeme begins."""
        return int(self.contexts[self.tops[stack]])

    def states(self, stack: int) -> list[int]:
        """The states of a stack, the start state first."""
        found = []
        while stack >= 0:
            found.append(int(self.tops[stack]))
            stack = int(first_of(self._table.words[stack]))
        return found[::-1]


@kernel
def _push_kernel(stacks, below, top):  # type: ignore[no-untyped-def]
    """The stack (below, top), made if need be; FULL if there is no room."""
    stack = intern_key(pack_pair(below, top), stacks.table)
    if stack != FULL and stacks.depths[stack] == 0:  # a new one
        stacks.tops[stack] = top
        stacks.depths[stack] = stacks.depths[below] + 1 if below >= 0 else 1
    return stack


@kernel
def _reduce_kernel(stacks, stack, column):  # type: ignore[no-untyped-def]
    """Do all reductions before the terminal of `column` is shifted.

    Returns (the part of the stack that stays, how many states were pushed above it, the state to shift to). The last is
    -1 if the parser does not take the terminal; for the end of the text it is the end state if it does.
    """
    actions, gotos, pushed, tops, words = stacks.actions, stacks.gotos, stacks.pushed, stacks.tops, stacks.table.words
    base, depth = np.int64(stack), np.int64(0)
    at_end = column == actions.shape[1] - 1
    while True:
        top = pushed[depth - 1] if depth else tops[base]
        action = actions[top, column]
        if action == 0:
            return base, depth, np.int64(-1)
        if action > 0:
            return base, depth, np.int64(action - 1)
        rule = -action - 1
        length = np.int64(stacks.lengths[rule])
        kept = min(length, depth)
        depth -= kept
        for _ in range(length - kept):
            base = first_of(words[base])
        exposed = pushed[depth - 1] if depth else tops[base]
        target = gotos[exposed, stacks.lefts[rule]]
        if target < 0 or depth >= len(pushed):
            return base, depth, np.int64(-1)
        pushed[depth] = target
        depth += 1
        if at_end and target == stacks.meta[M_END]:
            return base, depth, np.int64(target)


@kernel
def shift_kernel(stacks, stack, terminal):  # type: ignore[no-untyped-def]
    """The stack after a terminal; REFUSED or FULL. Ignored text leaves the stack as it is."""
    if terminal >= stacks.actions.shape[1] - 1:
        return np.int64(stack)
    base, depth, target = _reduce_kernel(stacks, stack, terminal)
    if target < 0:
        return np.int64(REFUSED)
    for k in range(depth):
        base = _push_kernel(stacks, base, stacks.pushed[k])
        if base < 0:
            return np.int64(FULL)
    return _push_kernel(stacks, base, target)


@kernel
def _takes_kernel(stacks, stack, column):  # type: ignore[no-untyped-def]
    """Whether the parser takes the terminal of a column."""
    return stacks.actions[stacks.tops[stack], column] != 0 and _reduce_kernel(stacks, stack, column)[2] >= 0


@kernel
def taken_kernel(stacks, stack):  # type: ignore[no-untyped-def]
    """Make known what leads on from a stack; False if that has to be searched. Ignored text always leads on."""
    if stacks.known[stack]:
        return True
    if stacks.meta[M_SEARCHED]:
        stacks.meta[M_ASKED] = stack
        return False
    columns = stacks.actions.shape[1]
    if stack & PAID_STACKS - 1 == 0:
        pay(np.int64(NS_PER_TERMINAL * PAID_STACKS) * columns)
    for column in range(columns):
        if _takes_kernel(stacks, stack, column):
            bit = column if column < columns - 1 else columns
            stacks.taken[stack, bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
    ignored = columns - 1
    stacks.taken[stack, ignored >> 6] |= np.uint64(1) << np.uint64(ignored & 63)
    stacks.known[stack] = True
    return True
