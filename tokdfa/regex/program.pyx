"""Programs of constructor calls for expressions, written first and run afterwards.

What builds a large expression (`tokdfa.regex.lower`, `literals`, `utf8`) writes a `Program`, and
`tokdfa.regex.expression.ExpressionStore.run` carries it out. So what does not depend on a store, the UTF-8 form of a
character class, say, is written once and embedded in many programs.

Words. Each *instruction* is one constructor call and makes one *value*. Values are numbered from 0 in the order in
which they are written; an operand is the number of an earlier value, or an expression that the store already has
(`known`). When the program has run, ``expression(value)`` is the expression. More can be written behind and run later.

Code. An instruction is ``operation, count, count operands`` (int32). An operand that is a value is written as its
distance back, which is positive, and an expression e as -e. So code means the same wherever it stands.

=========  ================================  =====================================================
operation  operands                          value
=========  ================================  =====================================================
LITERAL    bytes                             these bytes one after another
BYTES      8 words                           one byte out of a set of 256 bits
CHOICE     head, tail, head, tail, ...       any head with its tail; heads are disjoint byte sets
CONCAT     parts                             the parts one after another
UNION      parts                             any of the parts
REPEAT     body, low, high                   the body from low to high times (-1: without end)
BOTH       parts                             what all of the parts contain
NOT        body                              what the body does not contain
=========  ================================  =====================================================
"""

from libc.stdint cimport uint8_t

from tokdfa.regex.nodes cimport INFINITE, MAX_REPEAT, NOTHING

from tokdfa.errors import LimitExceeded, OptionError


def known(expression):
    """An expression of the store, as an operand."""
    return ~expression


def repeat_bounds(low, high):
    """The bounds of a repeat, INFINITE for None. Raises OptionError or LimitExceeded."""
    bounded = INFINITE if high is None else high
    if low < 0 or (high is not None and high < low):
        raise OptionError(f"a repeat from {low} to {high} is not a range")
    if max(low, bounded) > MAX_REPEAT:
        raise LimitExceeded(f"a repeat of {max(low, bounded)} is too large", limit="repeat", value=MAX_REPEAT)
    return low, bounded


cdef class Program:
    """Instructions for one store; see the module's docstring. Each method writes one and returns its value's number.

    ``count``: values written so far.
    """

    def __cinit__(self):
        self.embedded = {}

    @property
    def code_size(self):
        """Words of the code that has not been run yet."""
        return self.code.size()

    @property
    def made_count(self):
        """Values that have been run."""
        return self.ran.size()

    @property
    def made(self):
        """The expressions of the values that have been run."""
        return list(self.ran)

    def literal(self, text):
        """Exactly `text`."""
        cdef bytes data = bytes(text)
        cdef Py_ssize_t k
        self.begin(LITERAL, len(data))
        for k in range(len(data)):
            self.code.push_back(<uint8_t>data[k])
        return self.count - 1

    def byte_set(self, members):
        """One byte out of `members`, which are distinct."""
        return self.byte_bits(sum([1 << byte for byte in members]))

    def byte_bits(self, bits):
        """One byte out of those whose bits are set."""
        cdef bytes data = bits.to_bytes(32, "little")
        cdef const int32_t* words = <const int32_t*><const char*>data
        self.begin(BYTES, 8)
        self.code.insert(self.code.end(), words, words + 8)
        return self.count - 1

    def choice(self, edges):
        """Any head with its tail. The heads are disjoint byte sets and the tails differ, so that no law applies."""
        return self.write(CHOICE, tuple([operand for edge in edges for operand in edge]))

    def concat(self, parts):
        """The parts one after another."""
        return self.write(CONCAT, tuple(parts))

    def union(self, parts):
        """Any of the parts; nothing if there is none."""
        return self.write(UNION, tuple(parts))

    def repeat(self, body, low, high):
        """The body from `low` to `high` times (None: without end). Raises OptionError or LimitExceeded."""
        low, high = repeat_bounds(low, high)
        self.write(REPEAT, (body,))
        self.code[self.code.size() - 2] = 3
        self.code.push_back(low)
        self.code.push_back(high)
        return self.count - 1

    def embed(self, Program other not None):
        """The last value of `other`, which has not been run; nothing if it is empty. Its code is copied once only."""
        if not other.count:
            return known(NOTHING)
        if other not in self.embedded:
            if not other.ran.empty():
                raise ValueError("a program that has been run cannot be embedded")
            self.code.insert(self.code.end(), other.code.begin(), other.code.end())
            self.count += other.count
            self.embedded[other] = self.count - 1
        return self.embedded[other]

    def expression(self, int64_t value):
        """The expression that `value` stands for, once it has been run."""
        if value >= <int64_t>self.ran.size():
            raise IndexError(f"value {value} has not been run")
        return self.ran[value] if value >= 0 else ~value

    cdef int begin(self, int operation, int64_t operands) except -1:
        """Begin the instruction of a new value."""
        self.code.push_back(operation)
        self.code.push_back(<int32_t>operands)
        self.count += 1
        return 0

    cdef int64_t write(self, int operation, tuple operands) except -1:
        """The number of a new value. Operands come in a tuple, as what gives them one by one may write, too."""
        cdef int64_t here = self.count, value
        for value in operands:
            if value >= here:
                raise IndexError(f"value {value} is not written yet")
        self.begin(operation, len(operands))
        for value in operands:
            self.code.push_back(<int32_t>(here - value if value >= 0 else value + 1))
        return here
