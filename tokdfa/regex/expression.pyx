"""Expressions over bytes: sets of byte strings, equal ones with equal numbers.

Theory. An expression denotes a set of byte strings: nothing (the empty set), empty (the empty string), a byte set,
concatenation, union, intersection, complement, bounded or unbounded repetition; and, for patterns whose assertions
cannot be resolved beforehand, zero-width nodes: look-ahead and assertions. Every constructor first simplifies by laws
(`tokdfa.regex.laws`) and then interns (`tokdfa.regex.nodes`). So equality of expressions is equality of numbers, and
the derivatives of one expression, taken by all bytes for ever, are finitely many numbers (Brzozowski 1964: already
under associativity, commutativity and idempotence of union). The more laws, the fewer numbers, hence the fewer DFA
states; each law can be switched off to see what it buys (``python -m tests.regex.count_states``).

Source: Owens, Reppy, Turon, "Regular-expression derivatives re-examined" (2009); llguidance for the use of derivatives
in token masks. Cost: 0.3 us a call from Python; many constructors at once: `ExpressionStore.run`.
"""

from libc.stdint cimport uint8_t
from libcpp.vector cimport vector

from tokdfa.regex.nodes cimport (
    ANY_BYTE, ANY_BYTES, EMPTY, F_ASSERTS, F_BOOLEAN, F_CONTEXT, F_PARTS, INFINITE, K_ASSERTION, K_LOOK_AHEAD,
    NOTHING, node_of,
)
from tokdfa.regex.program cimport BOTH, BYTES, CHOICE, CONCAT, LITERAL, NOT, UNION

import numpy as np

from tokdfa.core.budget import spend
from tokdfa.errors import UnknownNameError
from tokdfa.regex.laws import LAWS
from tokdfa.regex.nodes import ASSERTIONS
from tokdfa.regex.program import repeat_bounds


cdef enum:
    # what the budget allows a call of a constructor, and each of its operands
    NS_PER_CALL = 4_000
    NS_PER_OPERAND = 150

# the names of the C constants, for Python
globals().update(NOTHING=NOTHING, EMPTY=EMPTY, ANY_BYTE=ANY_BYTE, ANY_BYTES=ANY_BYTES)


cdef class ExpressionStore(Constructors):
    """A growing set of interned expressions; see the module's docstring. Not thread-safe.

    `without_laws`: names from `LAWS` to switch off. `max_expressions`: limit on distinct expressions (about 40 bytes
    each). Past it, or past the budget, constructors raise LimitExceeded; what was made stays usable. An expression that
    the store does not have is an IndexError.
    """

    def __init__(self, without_laws=(), max_expressions=4_000_000):
        cdef int32_t[8] all_bytes
        cdef int k
        for name in without_laws:
            if name not in LAWS:
                raise UnknownNameError("simplification law", name, LAWS)
            self.laws &= ~<int>LAWS[name]
        self.max_expressions = max_expressions
        self.room = min(self.room, self.max_expressions)
        self.byte_sets = {}
        for k in range(8):
            all_bytes[k] = -1
        self.make_repeat(self.make_bytes(all_bytes), 0, INFINITE)

    # Constructors. Each returns the number of an expression.

    def byte_set(self, members):
        """One byte out of `members`: byte values, or booleans of shape (256,)."""
        if isinstance(members, np.ndarray) and members.dtype == np.bool_:
            flags = members
        else:
            flags = np.zeros(256, dtype=np.bool_)
            flags[list(members)] = True
        cdef bytes key = np.packbits(flags, bitorder="little").tobytes()
        if key not in self.byte_sets:
            self.begin(8)
            self.byte_sets[key] = self.make_bytes(<const int32_t*><const char*>key)
        return self.byte_sets[key]

    def literal(self, bytes text not None):
        """Exactly `text`."""
        cdef vector[int32_t] codes
        if not text:
            return EMPTY
        self.begin(len(text))
        codes.assign(<const uint8_t*>text, <const uint8_t*>text + len(text))
        return self.make_literal(codes.data(), codes.size())

    def concat(self, *parts):
        """The parts one after another."""
        cdef int32_t result = EMPTY
        if len(parts) == 1:
            return self.checked(parts[0])
        self.begin(len(parts))
        for part in reversed(parts):
            result = self.make_concat(self.checked(part), result)
        return result

    def union(self, parts):
        """Any of the parts; nothing if there is none."""
        given = tuple(parts)
        if len(given) == 1:
            return self.checked(given[0])
        self.begin(len(given))
        self.push_all(given)
        return self.make_union(0)

    def intersection(self, parts):
        """What all of the parts contain; any bytes if there is no part."""
        given = tuple(parts)
        if len(given) == 1:
            return self.checked(given[0])
        self.begin(len(given))
        self.push_all(given)
        return self.make_intersection(0)

    def complement(self, expression):
        """All byte strings that `expression` does not contain (valid UTF-8 or not)."""
        self.begin(1)
        return self.make_complement(self.checked(expression))

    def repeat(self, expression, low, high):
        """`expression` from `low` to `high` times (None: without end). Raises OptionError, too."""
        low, high = repeat_bounds(low, high)
        self.begin(3)
        return self.make_repeat(self.checked(expression), low, high)

    def look_ahead(self, expression, negative=False):
        """Zero-width: the rest of the text begins (does not begin) with a match of `expression`."""
        cdef int32_t body = self.checked(expression)
        cdef int flags = F_ASSERTS | F_BOOLEAN | node_of(self, body)[0] & F_CONTEXT
        self.begin(0)
        return self.intern_node(K_LOOK_AHEAD | flags, body, bool(negative), 0)

    def assertion(self, name):
        """Zero-width: one of `ASSERTIONS`."""
        if name not in ASSERTIONS:
            raise UnknownNameError("assertion", name, ASSERTIONS)
        self.begin(0)
        return self.intern_node(K_ASSERTION | F_PARTS, ASSERTIONS.index(name), 0, 0)

    cdef int begin(self, int64_t operands) except -1:
        self.stack.clear()  # of what an error has left
        spend(NS_PER_CALL + NS_PER_OPERAND * operands)
        return 0

    cdef int push_all(self, expressions) except -1:
        for expression in expressions:
            self.stack.push_back(self.checked(expression))
        return 0

    # Programs.

    def run(self, Program program not None):
        """Carry out what `program` has written and not run yet; its ``made`` then has the expressions.

        A program belongs to the store that runs it. Raises LimitExceeded; the program is then of no more use: what was
        not reached is NOTHING.
        """
        cdef int64_t value = program.ran.size()
        cdef size_t position = 0, end
        self.stack.clear()
        program.ran.resize(program.count, NOTHING)
        while position < program.code.size():
            end = position + 2 + program.code[position + 1]
            program.ran[value] = self.construct(program, position + 2, end, value)
            position, value = end, value + 1
        program.code.clear()

    cdef int32_t operand(self, Program program, size_t position, int64_t value) except -1:
        """The expression that the operand at `position` means in the instruction for `value`."""
        cdef int64_t back = program.code[position]
        if back > value or -back >= <int64_t>self.contents.size():
            raise IndexError("a program belongs to one store")
        return program.ran[value - back] if back > 0 else <int32_t>-back

    cdef int32_t construct(self, Program program, size_t first, size_t end, int64_t value) except -1:
        """The expression that the instruction with operands from `first` to before `end` makes."""
        cdef int operation = program.code[first - 2]
        cdef int32_t result = EMPTY
        cdef size_t k
        if operation == LITERAL:
            return self.make_literal(program.code.data() + first, end - first)
        if operation == BYTES:
            return self.make_bytes(program.code.data() + first)
        if operation == CONCAT:
            for k in range(end, first, -1):
                result = self.make_concat(self.operand(program, k - 1, value), result)
            return result
        if operation == UNION or operation == BOTH:
            for k in range(first, end):
                self.stack.push_back(self.operand(program, k, value))
            return self.make_union(0) if operation == UNION else self.make_intersection(0)
        if operation == CHOICE:
            for k in range(first, end, 2):
                result = self.join(self.operand(program, k, value), self.operand(program, k + 1, value))
                self.stack.push_back(result)
            return self.make_choice(0)
        result = self.operand(program, first, value)
        if operation == NOT:
            return self.make_complement(result)
        return self.make_repeat(result, program.code[first + 1], program.code[first + 2])
