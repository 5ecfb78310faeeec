"""Names of states by content: equal names mean that two states agree on all strings as long as a token.

A string with room for 200 more characters and one with room for 300 are alike to tokens of at most 128 bytes, so what
is known of the one for each token is known of the other. A name says nothing of numbers, so states of different
automata have it too. Let L be the bytes of the longest token.

- In an explicit automaton: a hash of the tree of all strings of up to L bytes, which are alive and which match, made by
  L rounds over the states. In round k+1 a state's hash is made of whether it accepts and of the hashes of round k of
  its targets by runs of bytes, so it depends on nothing but the tree of k+1 bytes. Hashes have 128 bits.
- In a minimal one, of which few states are asked for: a hash of the rows of all states that up to L bytes lead to,
  numbered breadth first (`name_soon`).
- In a lazy one: a hash of its expression with *clipped* counters: in e{m,n}, m becomes min(m, L), and n without end
  if n >= L. Each round reads a byte, or may be left out, so a string of fewer than L bytes matches as before, and one
  of L bytes can be continued to a match as before (no part of an expression is empty). That last does not hold under
  intersection and complement, as of a{300} & a{301}; what has such parts is hashed as it is, and states with
  assertions, which depend on more than the expression, have no name.

Cost: L rounds of 2 ns a state and run of bytes, or one round for each state that is asked for; 50 ns for each new
expression. Source: ours.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.core.budget import spend
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_budget import pay
from tokdfa.core.keys import pack_pair
from tokdfa.core.sorting import sort_distinct
from tokdfa.regex.nodes import (
    F_BOOLEAN,
    INFINITE,
    K_BYTES,
    K_COMPLEMENT,
    K_CONCAT,
    K_INTERSECTION,
    K_LOOK_AHEAD,
    K_REPEAT,
    K_UNION,
)

if TYPE_CHECKING:
    from tokdfa.regex.expression import ExpressionStore

Int32 = npt.NDArray[np.int32]

#: Stretches of bytes that are paid for at once, 1 ns each.
PAID_STRETCHES = 1 << 16
#: States that are named with the one that is asked for, as a walk mostly comes to them next.
NAMED_AT_ONCE = 12
#: A name of more states than this is paid for, 1 ns for a run of bytes.
PAID_STATES = 1 << 10
#: What it takes to name an expression, and what its names hold.
NS_PER_NAME, BYTES_PER_NAME = 100, 32
#: By which expressions are hashed: two numbers to begin with and two odd factors. Nobody who writes a pattern knows
#: them, so nobody can write two that have one name.
_SECRET = np.frombuffer(os.urandom(32), dtype=np.uint64) | np.uint64(1)


class ExpressionNames:
    """Names of a store's expressions, in whatever store: exact ones, and such by which no string of up to `depth` bytes
    tells expressions apart, as repeat bounds are clipped but for parts under ``&`` and ``~``. They hold in one process.
    """

    def __init__(self, store: ExpressionStore, depth: int = 0) -> None:
        self._store, self._depth = store, depth
        #: By expression: the exact name and the clipped one, two words each; of so many expressions, and room for more.
        self._names: npt.NDArray[np.uint64] = np.empty((0, 4), dtype=np.uint64)
        self._known = 0

    def key(self, expression: int) -> bytes:
        """The exact name, 16 bytes. O(expressions of the store not met before): parts have smaller numbers."""
        if expression >= self._known:
            store, known, count = self._store, self._known, len(self._store)
            spend(NS_PER_NAME * (count - known), BYTES_PER_NAME * (count - known))
            if count > len(self._names):
                names = np.empty((len(store.nodes), 4), dtype=np.uint64)
                names[:known] = self._names[:known]
                self._names = names
            _name_expressions_kernel(store.nodes, store.arguments, known, self._depth, _SECRET, self._names[:count])
            self._known = count
        return self._names[expression, :2].tobytes()

    def describe(self, expression: int) -> str:
        """The clipped name, "" for an expression that depends on what came before."""
        if self._store.has_assertions(expression):
            return ""
        self.key(expression)
        return self._names[expression, 2:].tobytes().hex()


@kernel
def _mix(value, factor):  # type: ignore[no-untyped-def]
    """A hash of a word."""
    value = (value ^ (value >> np.uint64(32))) * factor
    return value ^ (value >> np.uint64(29))


@kernel
def _name_expressions_kernel(nodes, arguments, first, depth, secret, names):  # type: ignore[no-untyped-def]
    """Name the expressions from `first` on. What a union is made of has numbers, and so an order, of one store only: so
    what is hashed of it is a sum.
    """
    for expression in range(first, len(names)):
        word, a, b, c = nodes[expression, 0], nodes[expression, 1], nodes[expression, 2], nodes[expression, 3]
        kind = word & 0xFF
        for column in range(4):
            is_clipped, factor = column >= 2, secret[2 + (column & 1)]
            if is_clipped and word & F_BOOLEAN:
                names[expression, column] = names[expression, column - 2]
                continue
            name = _mix(secret[column & 1] + np.uint64(kind), factor)
            if kind in (K_UNION, K_INTERSECTION):
                parts, total = np.empty(b, dtype=np.int64), np.uint64(0)
                for k in range(b):
                    parts[k] = np.int64(names[arguments[a + k], column])
                count = sort_distinct(parts, 0, b)
                for k in range(count):
                    total += _mix(np.uint64(parts[k]), factor)
                name = np.uint64(parts[0]) if count == 1 else _mix(name ^ total, factor)
            elif kind == K_BYTES:
                for k in range(a, a + 8):
                    name = _mix(name ^ np.uint64(arguments[k]), factor)
            elif kind == K_CONCAT:
                name = _mix(_mix(name ^ names[a, column], factor) + names[b, column], factor)
            elif kind in (K_REPEAT, K_COMPLEMENT, K_LOOK_AHEAD):
                low, high = np.int64(b), np.int64(c)
                if is_clipped and kind == K_REPEAT:
                    low, high = min(low, depth), np.int64(INFINITE) if high >= depth else high
                name = _mix(name ^ names[a, column], factor)
                name = _mix(name ^ np.uint64(pack_pair(low, high)), factor)
            else:
                name = _mix(name ^ np.uint64(a), factor)
            names[expression, column] = name


def name_states(
    transitions: Int32,
    accepting: npt.NDArray[np.bool_],
    byte_class: npt.NDArray[np.uint8],
    depth: int,
    first: int = 0,
) -> npt.NDArray[np.uint64]:
    """Hashes of the states of an automaton in which every state is alive: uint64, shape (states, 2).

    `transitions`: shape (states, classes), where state s has the number ``first + s``. Equal for states, of whatever
    automata, that agree on which strings of up to `depth` bytes are alive and which of fewer bytes are accepted; else
    different but for accidents of 128 bits. O(depth x states x runs of byte classes); less if no loop can be reached.
    """
    last = np.flatnonzero(np.append(byte_class[1:] != byte_class[:-1], True))
    names = np.ones((len(transitions), 2), dtype=np.uint64)
    _name_states_kernel(transitions, accepting, byte_class[last], last, depth, first, names)
    return names


@kernel
def _name_states_kernel(transitions, accepting, run_class, run_last, depth, first, names):  # type: ignore[no-untyped-def]
    """Make the names of strings one byte longer, `depth` times or until none changes; `names` come in all alike."""
    # by state: stretches of bytes with one target, as that and the byte after them; most states have a few
    begins = np.empty(len(transitions) + 1, dtype=np.int64)
    stretches = np.empty((len(transitions) * len(run_class), 2), dtype=np.int64)
    count = np.int64(0)
    for state in range(len(transitions)):
        begins[state] = count
        for k in range(len(run_class)):
            target = np.int64(transitions[state, run_class[k]])
            if k == 0 or target != stretches[count - 1, 0]:
                stretches[count, 0] = target
                count += 1
            stretches[count - 1, 1] = run_last[k] + 1
    begins[len(transitions)] = count
    before, unpaid = names.copy(), np.int64(0)
    for _ in range(depth):
        unpaid += 2 * count + len(transitions)
        if unpaid > PAID_STRETCHES:
            pay(unpaid)
            unpaid = np.int64(0)
        changed = False
        for state in range(len(transitions)):
            a = np.uint64(0x9E3779B97F4A7C15) + np.uint64(accepting[state])
            b = np.uint64(0xD1B54A32D192ED03) - np.uint64(accepting[state])
            led_a, led_b, last = np.uint64(0), np.uint64(0), np.int64(0)
            for k in range(begins[state], begins[state + 1] + 1):
                to_a, to_b = np.uint64(0), np.uint64(0)  # the name of what is dead
                if k < begins[state + 1]:
                    target = stretches[k, 0]
                    if target >= 0:
                        to_a, to_b = before[target - first, 0], before[target - first, 1]
                    if k == begins[state] or (to_a == led_a and to_b == led_b):  # one stretch, whatever the targets are
                        led_a, led_b, last = to_a, to_b, stretches[k, 1]
                        continue
                past = np.uint64(last)
                a = (a ^ (led_a + past * np.uint64(0xA0761D6478BD642F))) * np.uint64(0xE7037ED1A0B428DB)
                b = (b ^ (led_b + past * np.uint64(0x8EBC6AF09C88C6E3))) * np.uint64(0x589965CC75374CC3)
                a, b = a ^ (a >> np.uint64(32)), b ^ (b >> np.uint64(29))
                led_a, led_b = to_a, to_b
                if k < begins[state + 1]:
                    last = stretches[k, 1]
            a = (a ^ (a >> np.uint64(29))) * np.uint64(0xC2B2AE3D27D4EB4F)
            b = (b ^ (b >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
            names[state, 0], names[state, 1] = a ^ (a >> np.uint64(31)), b ^ (b >> np.uint64(30))
            changed |= names[state, 0] != before[state, 0] or names[state, 1] != before[state, 1]
        for state in range(len(names)):
            before[state, 0], before[state, 1] = names[state, 0], names[state, 1]
        if not changed:
            break


def name_soon(
    transitions: Int32,
    accepting: npt.NDArray[np.bool_],
    byte_class: npt.NDArray[np.uint8],
    depth: int,
    state: int,
) -> tuple[Int32, npt.NDArray[np.uint64]]:
    """(a state and those met soon after it, their names: uint64, shape (states, 2)), in a minimal automaton.

    As with `name_states`, equal names mean that states agree so far; but states that agree so far and not for ever may
    have different ones. O(states that are met x runs of byte classes).
    """
    last = np.flatnonzero(np.append(byte_class[1:] != byte_class[:-1], True))
    states, names = np.full(NAMED_AT_ONCE, state, dtype=np.int32), np.empty((NAMED_AT_ONCE, 2), dtype=np.uint64)
    table, ends = np.array(transitions), np.array(accepting)  # frozen ones would be compiled for anew
    count = _name_soon_kernel(table, ends, byte_class[last], last, depth, _SECRET, states, names)
    return states[:count], names[:count]


@kernel
def _name_soon_kernel(transitions, accepting, run_class, run_last, depth, secret, states, names):  # type: ignore[no-untyped-def]
    """Name ``states[0]`` and the states met first from there, which are added to `states`; how many are named.

    A name is made of the rows of all states that up to `depth` bytes lead to, numbered as they are met.
    """
    number, queue = np.full(len(transitions), -1, dtype=np.int64), np.empty(len(transitions), dtype=np.int64)
    # by state that is met: stretches of bytes with one target, as that and their first byte; most have a few
    begins, ends = np.full(len(transitions), -1, dtype=np.int64), np.empty(len(transitions), dtype=np.int64)
    stretches = np.empty((len(transitions) * len(run_class), 2), dtype=np.int32)
    named, met, wanted, listed = 0, 0, 1, 0
    while named < wanted:
        for k in range(met):
            number[queue[k]] = -1
        queue[0] = states[named]
        met, here, read = 1, 0, 0
        number[queue[0]] = 0
        a, b = secret[0], secret[1]
        while here < met and read < depth:
            end = met
            while here < end:
                state = queue[here]
                said = np.uint64(accepting[state])
                a, b = _mix(a ^ said, secret[2]), _mix(b ^ said, secret[3])
                if begins[state] < 0:
                    begins[state] = listed
                    for k in range(len(run_class)):
                        target = np.int64(transitions[state, run_class[k]])
                        if k == 0 or target != stretches[listed - 1, 0]:
                            stretches[listed, 0], stretches[listed, 1] = target, run_last[k - 1] + 1 if k else 0
                            listed += 1
                    ends[state] = listed
                for k in range(begins[state], ends[state]):
                    target = np.int64(stretches[k, 0])
                    if target >= 0:
                        if number[target] < 0:
                            number[target], queue[met] = met, target
                            met += 1
                        target = number[target]
                    said = np.uint64(target + 2) << np.uint64(9) | np.uint64(stretches[k, 1])
                    a, b = _mix(a ^ said, secret[2]), _mix(b ^ said, secret[3])
                here += 1
            read += 1
        names[named, 0], names[named, 1] = a, b
        named += 1
        if named == 1:
            wanted = min(met, len(states))
            for k in range(wanted):
                states[k] = queue[k]
        if met > PAID_STATES:
            pay(met * len(run_class))
    return wanted
