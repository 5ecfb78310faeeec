"""Nodes of hash-consed expressions: what they hold, and how an equal one is found.

An expression is the number of a node, and equal nodes have one number (hash-consing, Ershov 1958). Parts have smaller
numbers than what is made of them, so a pass over the numbers in order meets the parts of a node before the node.

Node n is entry n of an interning table (``tokdfa/core/interning.hpp``). Its content is int32: *kind and flags* in one
word, then

=============  ====================================
kind           what follows
=============  ====================================
bytes          256 bits in eight words
concat         head, tail, 0
union          parts, sorted
intersection   parts, sorted
complement     body, 0, 0
repeat         body, low, high or -1
look_ahead     body, negative, 0
assertion      index into `ASSERTIONS`, 0, 0
=============  ====================================

Flags: *nullable* (contains the empty string, whatever the context), *inhabited* (surely not empty: exact where there is
no intersection, complement or assertion), *asserts* and *boolean* (some node below is zero-width; or that, an
intersection or a complement), *context* (some node below is an assertion).

`Nodes` knows no laws: `tokdfa.regex.expression` builds on it. Work and memory count towards the budget
(`tokdfa.core.budget`): a unit of work a node and a part, and 32 bytes a node and 8 a part in tables that double. Where
they are counted, signals are handled, and other threads get the interpreter's lock if they wait for it.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_CheckSignals

import numpy as np

from tokdfa.core.budget import hold, spend
from tokdfa.errors import LimitExceeded

KIND_NAMES = (
    "nothing",
    "empty",
    "bytes",
    "concat",
    "union",
    "intersection",
    "complement",
    "repeat",
    "look_ahead",
    "assertion",
)
#: Zero-width assertions; words are ASCII: letters, digits and the underscore.
ASSERTIONS = ("text_start", "text_end", "line_start", "line_end", "word_boundary", "not_word_boundary")


cdef enum:
    NS_PER_UNIT = 150
    PAID_UNITS = 1 << 13


cdef int spend_work(int64_t nanoseconds) except -1 nogil:
    with gil:
        spend(nanoseconds)
    return 0


cdef int hold_bytes(int64_t nbytes) except -1 nogil:
    with gil:
        hold(nbytes)
    return 0


cdef class Nodes:
    """A growing set of nodes. Not thread-safe. What raises LimitExceeded leaves it usable."""

    def __cinit__(self, *args, **options):
        self.room, self.room_for_words = 1024, 8192
        self.max_expressions = (1 << 31) - 1
        self.intern_node(K_NOTHING, 0, 0, 0)
        self.intern_node(K_EMPTY | F_NULLABLE | F_INHABITED, 0, 0, 0)

    def __len__(self):
        return self.contents.size()

    # Questions.

    def kind(self, expression):
        """One of the ``K_`` constants."""
        return kind_of(self, self.checked(expression))

    def nullable(self, expression):
        """Contains the empty string in every context (of an expression without assertions: contains it)."""
        return node_of(self, self.checked(expression))[0] & F_NULLABLE != 0

    def inhabited(self, expression):
        """Surely not empty. Without intersection, complement and assertions, False means that it is empty."""
        return node_of(self, self.checked(expression))[0] & F_INHABITED != 0

    def has_assertions(self, expression):
        """Some node below is a look-ahead or an assertion."""
        return node_of(self, self.checked(expression))[0] & F_ASSERTS != 0

    def reads_context(self, expression):
        """Some node below is an assertion, which may ask what came before."""
        return node_of(self, self.checked(expression))[0] & F_CONTEXT != 0

    def is_boolean(self, expression):
        """Some node below is an intersection, a complement, a look-ahead or an assertion: emptiness needs a proof."""
        return node_of(self, self.checked(expression))[0] & F_BOOLEAN != 0

    def fields(self, expression):
        """What follows kind and flags, see the module; zeros for byte sets, unions and intersections."""
        cdef const int32_t* node = node_of(self, self.checked(expression))
        if node[0] & 0xFF in (K_BYTES, K_UNION, K_INTERSECTION):
            return 0, 0, 0
        return node[1], node[2], node[3]

    def members(self, expression):
        """The parts of a union or intersection, sorted by number."""
        cdef int32_t number = self.checked(expression)
        cdef const int32_t* node = node_of(self, number)
        assert node[0] & 0xFF in (K_UNION, K_INTERSECTION)
        return [node[1 + k] for k in range(count_of(self, number))]

    def bits_of(self, expression):
        """The members of a byte set as 256 bits, the lowest first."""
        cdef const int32_t* node = node_of(self, self.checked(expression))
        assert node[0] & 0xFF == K_BYTES
        return PyBytes_FromStringAndSize(<const char*>&node[1], 32)

    def bytes_of(self, expression):
        """The members of a byte set: bool, shape (256,)."""
        return np.unpackbits(np.frombuffer(self.bits_of(expression), np.uint8), bitorder="little").astype(np.bool_)

    def chain(self, expression, int64_t longest):
        """The byte sets that an expression is a sequence of; None if it is none, or has more than `longest`."""
        cdef int32_t here = self.checked(expression), head
        cdef const int32_t* node
        sets = []
        for _ in range(longest):
            node = node_of(self, here)
            head = node[1] if node[0] & 0xFF == K_CONCAT else here
            if kind_of(self, head) != K_BYTES:
                break
            sets.append(head)
            if head == here:
                return sets
            here = node[2]
        return None

    def view(self, expression):
        """A readable view of one node: its kind's name and its parts.

        ("bytes", bool[256]), ("concat", head, tail), ("union", [parts]), ("intersection", [parts]), ("complement", e),
        ("repeat", e, low, high or None), ("look_ahead", e, negative), ("assertion", name), ("nothing",), ("empty",).
        """
        kind = self.kind(expression)
        name = KIND_NAMES[kind]
        if kind == K_BYTES:
            return name, self.bytes_of(expression)
        if kind in (K_UNION, K_INTERSECTION):
            return name, self.members(expression)
        a, b, c = self.fields(expression)
        if kind == K_CONCAT:
            return name, a, b
        if kind == K_REPEAT:
            return name, a, b, None if c == INFINITE else c
        if kind == K_COMPLEMENT:
            return name, a
        if kind == K_LOOK_AHEAD:
            return name, a, bool(b)
        if kind == K_ASSERTION:
            return name, ASSERTIONS[a]
        return (name,)

    cdef int32_t checked(self, object expression) except -1:
        """The number of an expression that Python code gives."""
        cdef int64_t number = expression
        if not 0 <= number < <int64_t>self.contents.size():
            raise IndexError(f"expression {number} is not in a store of {self.contents.size()}")
        return <int32_t>number

    # Interning.

    cdef int count_work(self, int64_t units) except -1 nogil:
        self.unpaid += units
        return self.pay() if self.unpaid >= PAID_UNITS else 0

    cdef int pay(self) except -1 nogil:
        cdef int64_t units = self.unpaid
        self.unpaid = 0
        with gil:
            spend(NS_PER_UNIT * units)
            PyErr_CheckSignals()
            with nogil:  # a turn for threads that wait
                pass
        return 0

    cdef int make_room(self, int64_t words) except -1 nogil:
        """Count the memory of tables that are half full at most with one more node, of so many words."""
        cdef int64_t count = self.contents.size(), room = self.room, room_for_words = self.room_for_words
        if count >= self.max_expressions:
            with gil:
                raise LimitExceeded(
                    f"the expression has more than {self.max_expressions} derivatives and parts; "
                    "lower its repeat bounds or split it",
                    limit="max_expressions",
                    value=self.max_expressions,
                )
        while room < 2 * (count + 1):
            room *= 2
        while room_for_words < 2 * (self.words + words):
            room_for_words *= 2
        room = min(room, self.max_expressions)
        hold_bytes(32 * (room - self.room) + 8 * (room_for_words - self.room_for_words))
        self.room, self.room_for_words = room, room_for_words
        return 0

    cdef int32_t intern(self, const int32_t* content, size_t size, int64_t words) except -1 nogil:
        """The number of the node with this content, which takes so many words, of 8 bytes."""
        cdef int64_t count = self.contents.size()
        cdef int32_t found
        if count >= self.room or self.words + words > self.room_for_words:
            found = self.contents.find(content, size)
            if found >= 0:
                return found
            self.make_room(words)
        found = self.contents.intern(content, size)
        if found == count:
            self.words += words
        return found

    cdef int32_t intern_node(self, int32_t word, int32_t a, int32_t b, int32_t c) except -1 nogil:
        cdef int32_t[4] content
        content[0], content[1], content[2], content[3] = word, a, b, c
        self.count_work(1)
        return self.intern(content, 4, 2)

    cdef int32_t intern_parts(self, int32_t word, size_t base) except -1 nogil:
        """The number of the node whose parts, or bits, lie on the stack from `base` up; takes them off."""
        cdef int64_t size = self.stack.size() - base + 1
        self.count_work(size - 1)
        self.content.clear()
        self.content.push_back(word)
        self.content.insert(self.content.end(), self.stack.begin() + base, self.stack.end())
        self.stack.resize(base)
        return self.intern(self.content.data(), size, size)
