"""The walk of an automaton over a trie that divides the vocabulary (`tokdfa.vocabulary.division`).

A row of a lazy automaton that nobody has made leaves what is below open, too, with the state before it as the tag.
When all such rows are made, at once, the walk goes on at these places only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.backends.pushdown_trie.arrays import ALONE, OWN, STATE_PART, STRICT
from tokdfa.backends.pushdown_trie.rows import ACCEPTS, ENDS
from tokdfa.core.budget import spend
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_struct import Struct
from tokdfa.vocabulary.byte_table import UNKNOWN
from tokdfa.vocabulary.division import FIRST, LEFT, PAST, TAG, Division, allow, note_range
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT
from tokdfa.vocabulary.walker import DEAD, specialise

if TYPE_CHECKING:
    from tokdfa.backends.pushdown_trie.automaton_table import AutomatonTable

#: Tags of what is left: the rest; that of it which stands behind the only end that the terminal has on the way.
#: Greater ones: MISSING and the stack's entry before a row that is missing.
REST, BEHIND, MISSING = range(3)
#: What a node counts as that a partition is made over, in ns.
NODE_WORK = 4

#: ``kind``: the bits of the partition; ``stack``, by depth: the state, with ENDED if the terminal has been complete on
#: the way, and BEFORE if it was so before this state; the automata.
ENDED, BEFORE, STATE_SHIFT = 1, 2, 2
_FIELDS = {"kind": ("int64", 1), "stack": ("int32", 1), "transitions": ("int32", 1), "flags": ("uint8", 1)}


class _TerminalArrays(Struct, fields=tuple(_FIELDS), declared=_FIELDS):
    """What a step works on."""


def divide(
    nodes: npt.NDArray[np.uint64], begin: int, end: int, depth: int, key: int, automata: AutomatonTable, found: Division
) -> None:
    """Divide the tokens of nodes[begin:end] by a state with the bits of its kind; what is left is in order.

    `depth`: of the trie. Makes the rows of lazy automata that it needs. Raises what making a row raises.
    """
    stack, kind = np.zeros(depth + 2, dtype=np.int32), np.array([key & ~STATE_PART])
    agenda, resumed = np.array([(begin, end, (key & STATE_PART) << STATE_SHIFT)], dtype=np.int64), False
    while len(agenda):
        spend(NODE_WORK * int((agenda[:, PAST] - agenda[:, FIRST]).sum()))
        arrays, kept = _TerminalArrays(kind, stack, automata.transitions, automata.flags), found.ranges.copy()
        while not _divide_kernel(nodes, agenda, arrays, found.arrays) and found.make_room():
            found.keep_ranges(kept)  # once more from the start: what is inside is set already
        ranges = found.ranges
        agenda = ranges[ranges[:, TAG] >= MISSING] - (0, 0, MISSING)
        if len(agenda):
            resumed = True
            found.keep_ranges(ranges[ranges[:, TAG] < MISSING])
            before = agenda[:, TAG] >> STATE_SHIFT
            after = automata.transitions[256 * before + (nodes[agenda[:, FIRST]] & np.uint64(0xFF)).astype(np.int64)]
            automata.fill_rows(np.unique(np.where(after == UNKNOWN, before, after)).astype(np.int32))
    if resumed:
        found.keep_ranges(found.ranges[np.argsort(found.ranges[:, FIRST])])


@kernel
def _step_terminal(arrays, stack, depth, byte):  # type: ignore[no-untyped-def]
    """A state, DEAD or, with the tag, LEFT.

    Where the terminal is ALONE, what dies before it has been complete is refused; OWN: what begins with a byte that the
    state does not read. STRICT: a terminal that is complete is read no further.
    """
    here, kind = np.int64(arrays.stack[depth]), arrays.kind[0]
    target = np.int64(arrays.transitions[np.uint64(here >> STATE_SHIFT) * np.uint64(256) + byte])
    ended, tag = here & ENDED, np.int64(REST)
    if target >= 0:
        accepts = np.int64(arrays.flags[target] & ACCEPTS)
        if not accepts or not kind & STRICT:
            arrays.stack[depth + np.uint64(1)] = target << STATE_SHIFT | ended * BEFORE | ended | accepts
            return target
        ended = np.int64(ENDED)
    elif target == UNKNOWN:
        return np.int64(LEFT) - MISSING - here
    elif ended and not here & BEFORE and arrays.flags[here >> STATE_SHIFT] & ENDS:
        tag = np.int64(BEHIND)
    if (kind & OWN and depth == 0) or (kind & ALONE and not ended):
        return np.int64(DEAD)
    return np.int64(LEFT) - tag


_walk_terminal = specialise(f"{__name__}._walk_terminal", _step_terminal, allow, note_range, inline=True)


@kernel
def _divide_kernel(nodes, agenda, arrays, out):  # type: ignore[no-untyped-def]
    """Walk the ranges of `agenda`, whose tags are entries of the stack; whether all of them were walked."""
    for k in range(len(agenda)):
        first, past = agenda[k, FIRST], agenda[k, PAST]
        if first == past:
            continue
        depth = (nodes[first] >> np.uint64(DEPTH_SHIFT)) & np.uint64((1 << DEPTH_BITS) - 1)
        arrays.stack[depth] = agenda[k, TAG]
        if _walk_terminal(nodes, first, past, arrays, arrays, out, 0)[0] < past:
            return False
    return True


def warm_up() -> None:
    """Compile all of it."""
    arrays = _TerminalArrays(*(np.zeros(1, dtype=dtype) for dtype, _ in _FIELDS.values()))
    _divide_kernel(np.zeros(1, dtype=np.uint64), np.zeros((1, 3), dtype=np.int64), arrays, _nothing().arrays)


def _nothing() -> Division:
    return Division(np.zeros(1, dtype=np.uint32))
