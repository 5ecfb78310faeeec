"""What a lexer state says of each token, once for all rows: allowed, refused, or to be asked of the parser.

Reading a token from a lexer state, either the lexer goes on to its last byte: then the token stays inside the lexeme
and is *inside*, whatever the row. Or a lexeme ends on the way: then the parser decides, and the rest of the token is
read from the next row. Or neither, and it is refused. So the tokens fall into three parts that depend on nothing but
the lexer state (`tokdfa.vocabulary.division`): a *partition*. A mask is the inside part and, for each *exit* (where a
lexeme ended on the way, and which), a walk over what is left of the trie from the row that follows.

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
from tokdfa.core.budget import spend
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_struct import Struct
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.regex.state_names import ExpressionNames, name_states
from tokdfa.vocabulary import division
from tokdfa.vocabulary.division import LEFT, STOP, Division, allow, note_range
from tokdfa.vocabulary.trie import DEPTH_BITS, TOKEN_SHIFT
from tokdfa.vocabulary.walk import UNKNOWN
from tokdfa.vocabulary.walker import DEAD, specialise

if TYPE_CHECKING:
    from tokdfa.backends.earley_trie.machine import Machine
    from tokdfa.vocabulary.trie import TokenTrie

Int32 = npt.NDArray[np.int32]

#: Columns of an exit: its first node and the node after its last, and the depth at which the next lexeme begins. Bytes
#: between that depth and the first node's are given back by the longest match, and read again from the next row.
FIRST, PAST, DEPTH = range(3)
EXIT_COLUMNS = 3
#: Columns of a group of exits: the accepting set, the byte with which the next lexeme begins, and the exits.
GROUP_SET, GROUP_BYTE, GROUP_FIRST, GROUP_PAST = range(4)
#: What a node of the trie takes where a partition is made.
NS_PER_NODE = 3


@dataclass(frozen=True, eq=False)
class Partition:
    """The partition of a lexer state.

    `inside`: int32 words, the tokens that stay inside; `exits`: int32, shape (exits, EXIT_COLUMNS), in order of
    accepting set and next byte; `groups`: int32, shape (groups, 4), the exits of one set and byte.
    """

    inside: Int32
    exits: Int32
    groups: Int32

    @property
    def nbytes(self) -> int:
        """Memory of the arrays in bytes."""
        return self.inside.nbytes + self.exits.nbytes + self.groups.nbytes


#: By depth the lexer state, -1 once a lexeme has ended that cannot go on; and the tag of an exit there: the accepting
#: set that was met last, and the depth after it (DEPTH_BITS); -1 for none. Of `meta` see the indices.
_FIELDS = {"states": ("int32", 1), "tags": ("int64", 1), "meta": ("int64", 1)}
#: Whether the longest match rules; what the machine has to supply before the walk goes on.
_LONGEST, _STATUS = range(2)


class _LexerStack(Struct, fields=tuple(_FIELDS), declared=_FIELDS):
    """The stack of the walk that divides."""


def divide(machine: Machine, trie: TokenTrie, state: int) -> Partition:
    """The partition of a lexer state, by one walk over the lexer."""
    lexer = machine.lexer
    states, tags = np.empty(trie.depth_limit + 1, dtype=np.int32), np.empty(trie.depth_limit + 1, dtype=np.int64)
    accepted = int(lexer.accepting[state])
    states[0], tags[0] = state, accepted << DEPTH_BITS if accepted >= 0 else -1
    meta = np.array([machine.meta[S_LONGEST], OK], dtype=np.int64)
    stack = _LexerStack(states, tags, meta)
    found, position = Division(np.zeros(trie.size // 32 + 1, dtype=np.uint32)), 0
    spend(NS_PER_NODE * trie.node_count // 4)
    while position < trie.node_count:
        position = _walk_lexer(trie.nodes, position, trie.node_count, lexer.arrays, stack, found.arrays, 0)[0]
        if position < trie.node_count and not found.make_room():
            machine.supply(int(meta[_STATUS]))
    found.finish(trie.size)
    inside = found.words[: (trie.size + 31) // 32].view(np.int32)
    count, spelled = len(found.ranges), trie.token_bytes
    exits, keys = np.empty((count, EXIT_COLUMNS), dtype=np.int32), np.empty((2, count), dtype=np.int32)
    _describe_exits_kernel(trie.nodes, found.ranges, spelled.data, spelled.offsets, trie.size, exits, keys)
    order = np.lexsort(keys)
    return Partition(inside, np.ascontiguousarray(exits[order]), _group(keys[:, order]))


def _group(keys: Int32) -> Int32:
    """The groups of exits with these keys, in order: their next byte, their accepting set."""
    count = keys.shape[1]
    fresh = np.ones(count, dtype=np.bool_)
    fresh[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    begins = np.flatnonzero(fresh)
    ends = np.append(begins[1:], count)[: len(begins)]
    return np.ascontiguousarray(np.stack([keys[1, begins], keys[0, begins], begins, ends], axis=1), dtype=np.int32)


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
def _step_lexer(lexer, stack, depth, byte):  # type: ignore[no-untyped-def]
    """The lexer state after a byte, DEAD, what is left with its tag, or STOP: the machine has to supply something."""
    state, tag, after = np.int64(stack.states[depth]), stack.tags[depth], depth + np.uint64(1)
    target = np.int64(-1)
    if state >= 0:
        column = np.int64(lexer.byte_class[byte])
        target = np.int64(lexer.transitions[state * np.int64(len(lexer.representatives)) + column])
        if target == UNKNOWN:
            status, target = find_target(state, column, lexer)
            if status != OK:
                stack.meta[_STATUS] = status
                return np.int64(STOP)
    if target < 0:
        return LEFT - tag if tag >= 0 else np.int64(DEAD)
    accepted = np.int64(lexer.completes[target])
    stack.states[after] = target if accepted < 0 else -1
    if accepted < 0:
        accepted = np.int64(lexer.accepting[target])
    if accepted >= 0:
        stack.tags[after] = accepted << DEPTH_BITS | np.int64(after)
    else:
        stack.tags[after] = tag if stack.meta[_LONGEST] != 0 else -1
    return target


_walk_lexer = specialise(f"{__name__}._walk_lexer", _step_lexer, allow, note_range)


@kernel
def first_token(nodes, node, spare):  # type: ignore[no-untyped-def]
    """The first token that has the bytes of a node, its own or one below it."""
    while nodes[node] >> np.uint64(TOKEN_SHIFT) == np.uint64(spare):
        node += 1
    return np.int64(nodes[node] >> np.uint64(TOKEN_SHIFT))


@kernel
def _describe_exits_kernel(nodes, ranges, data, offsets, spare, exits, keys):  # type: ignore[no-untyped-def]
    """Write the exits of what is left, and by exit the next byte and the accepting set."""
    for k in range(len(ranges)):
        first, tag = ranges[k, division.FIRST], ranges[k, division.TAG]
        depth = tag & ((1 << DEPTH_BITS) - 1)
        exits[k, FIRST], exits[k, PAST], exits[k, DEPTH] = first, ranges[k, division.PAST], depth
        keys[0, k], keys[1, k] = data[offsets[first_token(nodes, first, spare)] + depth], tag >> DEPTH_BITS
