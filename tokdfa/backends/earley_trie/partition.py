"""What a lexer state says of each token, once for all rows: allowed, refused, or to be asked of the parser.

Reading a token from a lexer state, either the lexer goes on to its last byte: then the token stays inside the lexeme
and is *inside*, whatever the row. Or a lexeme ends on the way: then the parser decides, and the rest of the token is
read from the next row. Or neither, and it is refused. So the tokens fall into three parts that depend on nothing but
the lexer state: a *partition*. A mask is the inside part and, for each *exit* (where a lexeme ended on the way, and
which), a walk over what is left of the trie from the row that follows.

Inside a JSON string 123,000 of Llama 3's tokens are inside, and what is left are the few hundred nodes below a quote.
The walk that makes a partition goes over the whole trie once for a lexer state; states are shared by all rows.

Exits lie in order of (accepting set, next byte): the row after a set is looked up once for all of its exits, and those
whose next byte the row's lexemes cannot begin with are passed over together.

Names. Two lexer states that agree on all strings as long as a token have one partition, whatever they do later.
`StateNames` gives states a *name*, made of those of their components (`tokdfa.regex.state_names`): equal names mean
that they agree so far, in different grammars, too.

Source: 000 asks the same of *slices* of the vocabulary, by proving that a regex is contained in what may follow
(`tokdfa.backends.earley_trie.slices`); a partition is exact for every state and needs no proof.
Cost: one walk over the lexer alone, 1.6 to 3 ns a node visited, and 16 kB (V/8 bytes) for wide partitions.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.backends.earley_trie.machine import OK, S_LONGEST, find_target
from tokdfa.core.budget import hold, spend
from tokdfa.core.jit import kernel
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.regex.state_names import ExpressionNames, name_states
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT
from tokdfa.vocabulary.walk import UNKNOWN

if TYPE_CHECKING:
    from tokdfa.backends.earley_trie.machine import Machine
    from tokdfa.vocabulary.trie import TokenTrie

Int32 = npt.NDArray[np.int32]

#: Columns of an exit and of a group, and what `progress` counts.
FIRST, PAST, SET, BYTE, DEPTH, BEGIN = range(6)
GROUP_SET, GROUP_BYTE = range(2)
_POSITION, _EXITS, _AGAIN, _VISITED = range(4)
#: Status of `_divide_kernel`: an array of exits is too short.
NEEDS_EXITS = 20
#: Columns of an exit: its first node and the node after its last; the accepting set; the byte with which the next
#: lexeme begins (-1 if several may: the lexeme ended with the byte before the first node); the depth at which it
#: begins; and where the bytes between that depth and the first node's begin in `again`.
EXIT_COLUMNS = 6
#: What a node of the trie takes where a partition is made.
NS_PER_NODE = 3


@dataclass(frozen=True, eq=False)
class Partition:
    """The partition of a lexer state.

    `inside`: int32 words, the tokens that stay inside; `exits`: int32, shape (exits, EXIT_COLUMNS), in order of
    accepting set and byte; `groups`: int32, shape (groups, 4): accepting set, byte, and where the group's exits begin
    and end; `again`: uint8, bytes that the longest match gives back, to be read again by the next lexeme; `visited`:
    nodes visited.
    """

    inside: Int32
    exits: Int32
    groups: Int32
    again: npt.NDArray[np.uint8]
    visited: int

    @property
    def nbytes(self) -> int:
        """Memory of the arrays in bytes."""
        return self.inside.nbytes + self.exits.nbytes + self.groups.nbytes + self.again.nbytes


def divide(machine: Machine, trie: TokenTrie, state: int) -> Partition:
    """The partition of a lexer state, by one walk over the lexer."""
    lexer = machine.lexer
    stack = np.full((trie.depth_limit + 1, 3), -1, dtype=np.int32)
    stack[0] = state, lexer.accepting[state], 0
    words = np.zeros(trie.size // 32 + 1, dtype=np.uint32)
    exits = np.empty((256, EXIT_COLUMNS), dtype=np.int32)
    again = np.empty(256, dtype=np.uint8)
    path = np.zeros(trie.depth_limit + 1, dtype=np.uint8)
    progress = np.zeros(4, dtype=np.int64)
    spend(NS_PER_NODE * trie.node_count // 4)
    while True:
        status = _divide_kernel(trie.nodes, stack, path, words, exits, again, progress, lexer.arrays, machine.meta)
        if status == OK:
            break
        if status == NEEDS_EXITS:
            hold(exits.nbytes + again.nbytes)
            exits = np.concatenate([exits, np.empty_like(exits)])
            again = np.concatenate([again, np.empty(len(again) + trie.depth_limit, dtype=np.uint8)])
        else:
            machine.supply(status)
    words[trie.size >> 5] &= np.uint32(~(1 << (trie.size & 31)) & 0xFFFFFFFF)
    exits = exits[: progress[_EXITS]]
    exits = np.ascontiguousarray(exits[np.lexsort((exits[:, BYTE], exits[:, SET]))])
    inside = words[: (trie.size + 31) // 32].view(np.int32)
    read_again = again[: progress[_AGAIN]].copy()
    return Partition(inside, exits, _group(exits), read_again, int(progress[_VISITED]))


def _group(exits: Int32) -> Int32:
    """Runs of equal (accepting set, byte)."""
    if not len(exits):
        return np.empty((0, 4), dtype=np.int32)
    fresh = np.ones(len(exits), dtype=np.bool_)
    key = exits[:, [SET, BYTE]]
    fresh[1:] = (key[1:] != key[:-1]).any(axis=1)
    begins = np.flatnonzero(fresh).astype(np.int32)
    ends = np.append(begins[1:], len(exits)).astype(np.int32)
    return np.ascontiguousarray(np.stack([key[begins, 0], key[begins, 1], begins, ends], axis=1), dtype=np.int32)


class StateNames:
    """Names of the lexer states of a machine, see the module's page: states of one name have one partition.

    `depth`: bytes of the longest token of the vocabulary; None for names that clip no counter and see everything.
    """

    def __init__(self, machine: Machine, depth: int | None) -> None:
        self._machine, self._depth = machine, None if depth is None else max(depth, 1)
        self._of_component: dict[int, str] = {}
        self._of_lexeme: dict[int, npt.NDArray[np.uint64]] = {}
        self._expressions: dict[int, ExpressionNames] = {}  # by the id of a store

    def describe(self, state: int) -> tuple[str, tuple[int, ...]]:
        """(the name of a lexer state, 64 hex digits; its lexemes in an order that the name implies).

        ("", ()) for a state without a name. Lexemes that are named alike behave alike, so their order does not matter.
        """
        lexer = self._machine.lexer
        parts = []
        for component in lexer.components_of(state):
            name = self._of_component.get(component)
            if name is None:
                name = self._of_component[component] = self._name(component)
            if not name:
                return "", ()
            parts.append((name, int(lexer.components.component_lexeme[component])))
        parts.sort()
        rule = f"depth={self._depth} longest={int(self._machine.meta[S_LONGEST])} start={lexer.is_start(state)}"
        text = "|".join([rule, *(name for name, _ in parts)])
        return hashlib.sha256(text.encode()).hexdigest(), tuple(lexeme for _, lexeme in parts)

    def _name(self, component: int) -> str:
        """What a component is, whatever its number; "" for one without a name."""
        components = self._machine.lexer.components
        symbol, explicit = int(components.component_lexeme[component]), components.first_lazy
        if component >= explicit:
            automaton = components.automata[symbol]
            assert isinstance(automaton, LazyDfa)
            expression = automaton.expression(components.places[component - explicit][1])
            store = automaton.store
            names = self._expressions.setdefault(id(store), ExpressionNames(store, self._depth))
            described = names.describe(expression, symbol)
            return f"{described} {bool(components.is_lazy[symbol])}" if described else ""
        if self._depth is None:
            return components.content_of(component)
        first, past = np.searchsorted(components.component_lexeme[:explicit], [symbol, symbol + 1]).tolist()
        if symbol not in self._of_lexeme:
            rows = components.component_table.reshape(-1, components.class_count)[first:past]
            accepting = components.component_accepts[first:past]
            self._of_lexeme[symbol] = name_states(rows, accepting, components.byte_class, self._depth, first)
        return f"{self._of_lexeme[symbol][component - first].tobytes().hex()} {bool(components.is_lazy[symbol])}"


@kernel
def _divide_kernel(nodes, stack, path, words, exits, again, progress, lexer, meta):  # type: ignore[no-untyped-def]
    """Walk the trie over the lexer alone; `stack` holds state, last accepting set and its depth, by depth."""
    one, five, low_five = np.uint64(1), np.uint64(5), np.uint64(31)
    here, stop = np.uint64(progress[_POSITION]), np.uint64(len(nodes))
    class_count = np.int64(len(lexer.representatives))
    longest = meta[S_LONGEST] != 0
    count, used = progress[_EXITS], progress[_AGAIN]
    status = OK
    while here < stop:
        node = nodes[here]
        depth = np.int64((node >> np.uint64(DEPTH_SHIFT)) & np.uint64((1 << DEPTH_BITS) - 1))
        byte = node & np.uint64(0xFF)
        state = np.int64(stack[depth, 0])
        column = np.int64(lexer.byte_class[byte])
        target = np.int64(lexer.transitions[state * class_count + column])
        if target == UNKNOWN:
            status, target = find_target(state, column, lexer)
            if status != OK:
                break
        following = (node >> np.uint64(NEXT_SHIFT)) & np.uint64(MAX_NODES)
        path[depth] = byte
        if target < 0:
            accepted = stack[depth, 1]
            if accepted >= 0:
                begin = np.int64(stack[depth, 2])
                if count >= len(exits) or used + depth - begin > len(again):
                    status = NEEDS_EXITS
                    break
                exits[count, FIRST] = here
                exits[count, PAST] = following
                exits[count, SET] = accepted
                exits[count, BYTE] = path[begin]
                exits[count, DEPTH] = begin
                exits[count, BEGIN] = used
                count += 1
                for k in range(begin, depth):
                    again[used] = path[k]
                    used += 1
            here = following
            progress[_VISITED] += 1
            continue
        if lexer.completes[target] >= 0 and following > here + one:
            if count >= len(exits):
                status = NEEDS_EXITS
                break
            exits[count, FIRST] = here + one
            exits[count, PAST] = following
            exits[count, SET] = lexer.completes[target]
            exits[count, BYTE] = -1
            exits[count, DEPTH] = depth + 1
            exits[count, BEGIN] = used
            count += 1
        progress[_VISITED] += 1
        token = node >> np.uint64(TOKEN_SHIFT)
        words[token >> five] |= np.uint32(1) << np.uint32(token & low_five)
        if lexer.completes[target] >= 0:
            here = following
            continue
        stack[depth + 1, 0] = target
        if lexer.accepting[target] >= 0:
            stack[depth + 1, 1] = lexer.accepting[target]
            stack[depth + 1, 2] = depth + 1
        else:
            stack[depth + 1, 1] = stack[depth, 1] if longest else -1
            stack[depth + 1, 2] = stack[depth, 2]
        here += one
    progress[_POSITION], progress[_EXITS], progress[_AGAIN] = here, count, used
    return status
