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

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libcpp.algorithm cimport sort, unique
from libcpp.vector cimport vector

from tokdfa.regex.nodes cimport (
    F_ASSERTS, F_BOOLEAN, INFINITE, K_BYTES, K_COMPLEMENT, K_CONCAT, K_INTERSECTION, K_LOOK_AHEAD, K_REPEAT, K_UNION,
    Nodes, count_of, node_of, spend_work,
)

import os

import numpy as np

from tokdfa.core.budget import spend

cdef enum:
    # stretches of bytes that are paid for at once, 1 ns each
    PAID_STRETCHES = 1 << 16
    # a name of more states than this is paid for, 1 ns for a run of bytes
    PAID_STATES = 1 << 10
    # states that are named with the one that is asked for, as a walk mostly comes to them next
    NAMED_AT_ONCE = 12
    # what it takes to name an expression, and what its names hold
    NS_PER_NAME = 100
    BYTES_PER_NAME = 32

cdef uint64_t[4] SECRET
#: By which expressions are hashed: two numbers to begin with and two odd factors. Nobody who writes a pattern knows
#: them, so nobody can write two that have one name.
for _place, _word in enumerate(np.frombuffer(os.urandom(32), dtype=np.uint64).tolist()):
    SECRET[_place] = _word | 1


cdef inline uint64_t mix(uint64_t value, uint64_t factor) noexcept nogil:
    """A hash of a word."""
    value = (value ^ value >> 32) * factor
    return value ^ value >> 29


# Expressions.


cdef class ExpressionNames:
    """Names of a store's expressions, in whatever store: exact ones, and such by which no string of up to `depth` bytes
    tells expressions apart, as repeat bounds are clipped but for parts under ``&`` and ``~``. They hold in one process.
    """

    cdef Nodes store
    cdef int64_t depth
    cdef vector[uint64_t] names  # four by expression: two words of the exact name and two of the clipped one
    cdef vector[uint64_t] parts

    def __cinit__(self, Nodes store not None, int64_t depth=0):
        self.store, self.depth = store, depth

    def key(self, expression):
        """The exact name, 16 bytes. O(expressions of the store not met before): parts have smaller numbers."""
        return self.name(self.store.checked(expression))[:16]

    def describe(self, expression):
        """The clipped name, "" for an expression that depends on what came before."""
        cdef int32_t number = self.store.checked(expression)
        return "" if node_of(self.store, number)[0] & F_ASSERTS else self.name(number)[16:].hex()

    cdef bytes name(self, int32_t expression):
        cdef int32_t known = <int32_t>(self.names.size() // 4), count, here
        cdef int column
        if expression >= known:
            count = <int32_t>self.store.contents.size()
            spend(NS_PER_NAME * (count - known), BYTES_PER_NAME * (count - known))
            for here in range(known, count):
                for column in range(4):
                    self.names.push_back(self.name_by_parts(here, column))
        return (<const char*>&self.names[4 * <size_t>expression])[:32]

    cdef uint64_t name_by_parts(self, int32_t expression, int column) except? 0:
        """What a union is made of has numbers, and so an order, of one store only: so what is hashed of it is a sum."""
        cdef const int32_t* node = node_of(self.store, expression)
        cdef int kind = node[0] & 0xFF
        cdef uint64_t factor = SECRET[2 + (column & 1)], name = mix(SECRET[column & 1] + <uint64_t>kind, factor)
        cdef uint64_t total = 0, part
        cdef int64_t low, high
        cdef int32_t k
        if column >= 2 and node[0] & F_BOOLEAN:
            return self.names[4 * <size_t>expression + column - 2]
        if kind == K_UNION or kind == K_INTERSECTION:
            self.parts.clear()
            for k in range(count_of(self.store, expression)):
                self.parts.push_back(self.names[4 * <size_t>node[1 + k] + column])
            sort(self.parts.begin(), self.parts.end())
            self.parts.erase(unique(self.parts.begin(), self.parts.end()), self.parts.end())
            for part in self.parts:
                total += mix(part, factor)
            return self.parts[0] if self.parts.size() == 1 else mix(name ^ total, factor)
        if kind == K_BYTES:
            for k in range(8):
                name = mix(name ^ <uint64_t>node[1 + k], factor)
            return name
        if kind == K_CONCAT:
            name = mix(name ^ self.names[4 * <size_t>node[1] + column], factor)
            return mix(name + self.names[4 * <size_t>node[2] + column], factor)
        if kind == K_REPEAT or kind == K_COMPLEMENT or kind == K_LOOK_AHEAD:
            low, high = node[2], node[3]
            if column >= 2 and kind == K_REPEAT:
                low, high = min(low, self.depth), INFINITE if high >= self.depth else high
            name = mix(name ^ self.names[4 * <size_t>node[1] + column], factor)
            return mix(name ^ (<uint64_t>low << 32 | <uint64_t>high & 0xFFFFFFFFu), factor)
        return mix(name ^ <uint64_t>node[1], factor)


# States of explicit automata. A stretch of bytes leads from a state to one target; most states have a few.


cdef struct Stretch:
    int32_t target
    int32_t byte  # the one after it, or its first one


cdef int add_stretches(
    const int32_t* row, const uint8_t[::1] run_class, const int64_t[::1] run_last, bint by_first,
    vector[Stretch]& stretches,
) except -1:
    """Add the stretches of a row, named by the byte after them, or by their first byte."""
    cdef size_t begin = stretches.size()
    cdef Py_ssize_t k
    cdef int32_t target, first = 0
    for k in range(run_class.shape[0]):
        target = row[run_class[k]]
        if stretches.size() == begin or target != stretches.back().target:
            stretches.push_back(Stretch(target, first))
        first = <int32_t>run_last[k] + 1
        if not by_first:
            stretches.back().byte = first
    return 0


def last_of_runs(byte_class):
    """The last byte of each run of bytes of one class."""
    return np.flatnonzero(np.append(np.diff(byte_class) != 0, True))


def name_states(transitions, accepting, byte_class, int64_t depth, int32_t first=0):
    """Hashes of the states of an automaton in which every state is alive: uint64, shape (states, 2).

    `transitions`: shape (states, classes), where state s has the number ``first + s``. Equal for states, of whatever
    automata, that agree on which strings of up to `depth` bytes are alive and which of fewer bytes are accepted; else
    different but for accidents of 128 bits. O(depth x states x runs of byte classes); less if no loop can be reached.
    """
    names = np.ones((len(transitions), 2), dtype=np.uint64)
    cdef uint64_t[:, ::1] name = names
    cdef const int32_t[:, ::1] rows = np.ascontiguousarray(transitions)
    cdef const uint8_t[::1] accepts = np.ascontiguousarray(accepting).view(np.uint8)
    cdef const int64_t[::1] run_last = last_of_runs(byte_class)
    cdef const uint8_t[::1] run_class = byte_class[last_of_runs(byte_class)]
    cdef vector[Stretch] stretches
    cdef vector[size_t] begins
    cdef vector[uint64_t] before
    cdef Py_ssize_t state, count = rows.shape[0]
    cdef int64_t unpaid = 0
    cdef bint changed
    for state in range(count):
        begins.push_back(stretches.size())
        add_stretches(&rows[state, 0], run_class, run_last, False, stretches)
    begins.push_back(stretches.size())
    before.assign(2 * count, 1)
    for _ in range(depth):
        unpaid += 2 * stretches.size() + count
        if unpaid > PAID_STRETCHES:
            spend_work(unpaid)
            unpaid = 0
        changed = False
        for state in range(count):
            name_longer(&stretches[begins[state]], begins[state + 1] - begins[state], before.data(), first,
                        accepts[state], &name[state, 0])
            changed |= name[state, 0] != before[2 * state] or name[state, 1] != before[2 * state + 1]
        if not changed:
            break
        before.assign(&name[0, 0], &name[0, 0] + 2 * count)
    return names


cdef void name_longer(
    const Stretch* stretches, size_t count, const uint64_t* before, int32_t first, bint accepts, uint64_t* name
) noexcept nogil:
    """The name of a state for strings one byte longer; stretches whose targets have one name are one."""
    cdef uint64_t a = 0x9E3779B97F4A7C15u + <uint64_t>accepts, b = 0xD1B54A32D192ED03u - <uint64_t>accepts
    cdef uint64_t led_a = 0, led_b = 0, to_a = 0, to_b = 0, last = 0
    cdef size_t k
    for k in range(count + 1):
        to_a = to_b = 0  # the name of what is dead
        if k < count:
            if stretches[k].target >= 0:
                to_a = before[2 * (stretches[k].target - first)]
                to_b = before[2 * (stretches[k].target - first) + 1]
            if k == 0 or (to_a == led_a and to_b == led_b):
                led_a, led_b, last = to_a, to_b, stretches[k].byte
                continue
        a = (a ^ (led_a + last * 0xA0761D6478BD642Fu)) * 0xE7037ED1A0B428DBu
        b = (b ^ (led_b + last * 0x8EBC6AF09C88C6E3u)) * 0x589965CC75374CC3u
        a, b = a ^ a >> 32, b ^ b >> 29
        led_a, led_b = to_a, to_b
        if k < count:
            last = stretches[k].byte
    a = (a ^ a >> 29) * 0xC2B2AE3D27D4EB4Fu
    b = (b ^ b >> 32) * 0x94D049BB133111EBu
    name[0], name[1] = a ^ a >> 31, b ^ b >> 30


def name_soon(transitions, accepting, byte_class, int64_t depth, int32_t state):
    """(a state and those met soon after it, int32; their names, uint64, shape (states, 2)), in a minimal automaton.

    A name is made of the rows of all states that up to `depth` bytes lead to, numbered as they are met. As with
    `name_states`, equal names mean that states agree so far; but states that agree so far and not for ever may have
    different ones. O(states that are met x runs of byte classes).
    """
    cdef const int32_t[:, ::1] rows = np.ascontiguousarray(transitions)
    cdef const uint8_t[::1] accepts = np.ascontiguousarray(accepting).view(np.uint8)
    cdef const int64_t[::1] run_last = last_of_runs(byte_class)
    cdef const uint8_t[::1] run_class = byte_class[last_of_runs(byte_class)]
    cdef vector[int32_t] number, states, queue  # by state: its place in the queue, or -1; states to name; states met
    cdef vector[Stretch] stretches
    cdef vector[int64_t] begins, ends           # by state: its stretches, once it was met
    cdef vector[uint64_t] names
    cdef uint64_t a, b, word
    cdef int64_t read, k
    cdef size_t here, place, end, named = 0
    cdef int32_t met, target
    if not 0 <= state < rows.shape[0]:
        raise IndexError(f"there is no state {state}")
    number.resize(rows.shape[0], -1)
    begins.resize(rows.shape[0], -1)
    ends.resize(rows.shape[0], -1)
    states.push_back(state)
    while named < states.size():
        for met in queue:
            number[met] = -1
        queue.assign(1, states[named])
        number[queue[0]] = 0
        a, b, here, read = SECRET[0], SECRET[1], 0, 0
        while here < queue.size() and read < depth:
            end, read = queue.size(), read + 1
            for place in range(here, end):
                met = queue[place]
                a, b = mix(a ^ <uint64_t>accepts[met], SECRET[2]), mix(b ^ <uint64_t>accepts[met], SECRET[3])
                if begins[met] < 0:
                    begins[met] = stretches.size()
                    add_stretches(&rows[met, 0], run_class, run_last, True, stretches)
                    ends[met] = stretches.size()
                for k in range(begins[met], ends[met]):
                    target = stretches[k].target
                    if target >= 0:
                        if number[target] < 0:
                            number[target] = <int32_t>queue.size()
                            queue.push_back(target)
                        target = number[target]
                    word = <uint64_t>(target + 2) << 9 | <uint64_t>stretches[k].byte
                    a, b = mix(a ^ word, SECRET[2]), mix(b ^ word, SECRET[3])
            here = end
        names.push_back(a)
        names.push_back(b)
        if named == 0:
            states.assign(queue.begin(), queue.begin() + min(queue.size(), <size_t>NAMED_AT_ONCE))
        named += 1
        if queue.size() > PAID_STATES:
            spend_work(queue.size() * run_class.shape[0])
    return np.array(states, dtype=np.int32), np.array(names, dtype=np.uint64).reshape(-1, 2)
