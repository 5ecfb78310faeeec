"""Brzozowski derivatives, taken once for bytes that cannot differ, and remembered.

Theory. The derivative of a language L by a byte b is ``{s : b s in L}``. For expressions without assertions:

- by b, a byte set gives empty if it has b, else nothing; unions, intersections and complements map over their parts;
- a concatenation h t gives ``d(h) t``, and, if h is nullable, also ``d(t)``;
- a repeat e{m,n} gives ``d(e) e{m-1,n-1}``. If e is nullable its constructor has set m to 0, so empty rounds that would
  use up the minimum need no case of their own. (Where that law is off, ``d(e) e{0,n-1}`` is used.)

Expressions with assertions: `tokdfa.regex.assertions`.

*Classes.* Bytes that no byte set below an expression tells apart have equal derivatives, now and for ever: they form
one class, and every table of the automaton has a column a class. `partition_bytes` computes them.

*Local classes.* The next derivative alone depends on fewer byte sets, those that can read the first byte:

- of a byte set: itself;
- of a union, intersection, complement or repeat: those of its parts;
- of a concatenation h t: those of h, and, if h is nullable or has an assertion, those of t too;
- of a look-ahead: those of what it looks for; of an assertion: the word bytes, and the newline.

By induction over these cases, two classes that belong to the same ones of these sets have the same derivative. They
form a local class of the expression: ``[0-9]{3}x`` has two, the digits and the rest, however many classes the automaton
has. A union with 12 first sets has up to 13 where the automaton has 74, and a derivative is taken once for each. The
local class of what is in none of the sets, the *outside*, has the derivative nothing, unless there is a complement.

Local classes of a compound expression are the common refinement (*join*) of those of its parts. An automaton of a
thousand states has about a hundred different partitions, so partitions are numbered and joins remembered: the local
classes of a new expression cost a look-up a part. If there are too many, the finest partition, a local class a class,
serves for all others: any refinement of the local classes is right, only slower.

Sources: Brzozowski 1964; llguidance; Owens, Reppy, Turon 2009, section 4.2, whose function C approximates the local
classes by the same recursion on sets of characters. Numbering and remembering partitions is ours.
"""

from libc.string cimport memset

from tokdfa.core.interning cimport pair_key
from tokdfa.regex.nodes cimport (
    EMPTY, F_ASSERTS, F_BOOLEAN, F_NULLABLE, INFINITE, K_ASSERTION, K_BYTES, K_COMPLEMENT, K_CONCAT, K_EMPTY,
    K_INTERSECTION, K_LOOK_AHEAD, K_REPEAT, K_UNION, NOTHING, count_of, has_byte, hold_bytes, kind_of, node_of,
)

from collections import namedtuple

import numpy as np


cdef enum:
    # partitions that every table begins with: all classes together and outside; each class alone
    TOGETHER = 0
    FINEST = 1

#: What the bytes are to an expression.
#:
#: ``byte_class``: uint8, shape (256,), classes in order of their first byte; ``representatives``: uint8, shape
#: (classes,), the first byte of each; ``bytes_read``: bool, shape (256,), the bytes that some text of it may contain
#: (an over-approximation: all, if there is a complement).
BytePartition = namedtuple("BytePartition", ("byte_class", "representatives", "bytes_read"), module=__name__)


cdef inline int context_of(int byte) noexcept nogil:
    """What a byte is to an assertion: 2 a newline, 1 an ASCII word byte, as \\w and \\b mean them, 0 another one."""
    if byte == NEWLINE:
        return 2
    return 48 <= byte < 58 or 65 <= byte < 91 or byte == 95 or 97 <= byte < 123


def is_word_byte(int byte):
    """Whether a byte is an ASCII word byte, as \\w and \\b mean them."""
    return context_of(byte) == 1


def partition_bytes(ExpressionStore store not None, root):
    """The classes of `root` and everything derived from it. O(nodes below root + sizes of the byte sets below root)."""
    cdef int32_t top = store.checked(root), here, k
    cdef const int32_t* node
    cdef uint8_t[256] byte_class, representatives, bytes_read
    cdef vector[char] reached
    cdef int byte, kind, classes = 1
    memset(byte_class, 0, 256)
    memset(bytes_read, 0, 256)
    representatives[0] = 0
    if node_of(store, top)[0] & F_ASSERTS:
        classes = 3
        for byte in range(255, -1, -1):
            byte_class[byte] = (3 - context_of(byte)) % 3  # newlines are class 1
            representatives[byte_class[byte]] = byte
    reached.resize(top + 1, 0)
    reached[top] = True
    for here in range(top, -1, -1):
        if not reached[here]:
            continue
        node = node_of(store, here)
        kind = node[0] & 0xFF
        if kind == K_BYTES:
            classes = split_classes(node, classes, byte_class, representatives, bytes_read)
        elif kind == K_CONCAT:
            reached[node[1]] = reached[node[2]] = True
        elif kind == K_UNION or kind == K_INTERSECTION:
            for k in range(count_of(store, here)):
                reached[node[1 + k]] = True
        elif kind == K_COMPLEMENT or kind == K_REPEAT or kind == K_LOOK_AHEAD:
            reached[node[1]] = True
            if kind == K_COMPLEMENT:
                memset(bytes_read, 1, 256)
    return BytePartition(
        array_of(byte_class, 256), array_of(representatives, classes), array_of(bytes_read, 256).view(np.bool_)
    )


cdef object array_of(const uint8_t* values, size_t count):
    return np.frombuffer(bytearray((<const char*>values)[:count]), dtype=np.uint8)


cdef int split_classes(
    const int32_t* byte_set, int classes, uint8_t* byte_class, uint8_t* representatives, uint8_t* bytes_read
) noexcept nogil:
    """Split so many classes by a byte set; how many there are then, in order of their first bytes."""
    cdef int[512] renamed  # by class, and whether a byte of it is in the set
    cdef int byte, inside, place, count = 0
    for place in range(2 * classes):
        renamed[place] = -1
    for byte in range(256):
        inside = has_byte(byte_set, byte)
        bytes_read[byte] |= inside
        place = 2 * byte_class[byte] + inside
        if renamed[place] < 0:
            renamed[place] = count
            representatives[count] = byte
            count += 1
        byte_class[byte] = renamed[place]
    return count


cdef class DerivativeTable:
    """The local classes of expressions, and the derivatives taken so far, an entry for each local class.

    `classes`: the bytes by class, as `partition_bytes` gives them for an expression from which all others are derived.
    `most_partitions`: past it, expressions get the finest partition. Not thread-safe.

    Numbers of local classes ascend by their first class.
    """

    def __cinit__(self, ExpressionStore store not None, classes, size_t most_partitions=1 << 14):
        cdef int32_t k
        self.store, self.classes, self.most_partitions = store, classes, most_partitions
        self.class_count = len(classes.representatives)
        assert 0 < self.class_count <= 256
        for k in range(256):
            self.byte_class[k] = classes.byte_class[k]
        for k in range(self.class_count):
            self.representatives[k] = classes.representatives[k]
        self.local_lists = {}
        self.row.resize(self.class_count + 2, 0)
        self.row[self.class_count + 1] = 1
        self.partitions.intern(self.row.data(), self.row.size())
        for k in range(self.class_count):
            self.row[k] = k
        self.row[self.class_count], self.row[self.class_count + 1] = -1, self.class_count
        self.partitions.intern(self.row.data(), self.row.size())
        self.places.resize(store.room, Place(-1, -1))
        self.known.reserve(1 << 12)

    @property
    def partition_count(self):
        """How many partitions there are."""
        return self.partitions.size()

    def local_classes(self, expression):
        """(the local class of each class, the first class of each local class) of an expression, two lists."""
        cdef int32_t partition = self.classify(self.store.checked(expression)), k
        cdef const int16_t* local = self.partitions.content_of(partition)
        if partition not in self.local_lists:
            classes = [local[k] for k in range(self.class_count)]
            self.local_lists[partition] = classes, [classes.index(k) for k in range(local[self.class_count + 1])]
        return self.local_lists[partition]

    def derivative(self, expression, uint8_t byte):
        """The derivative of an expression without assertions by one byte."""
        cdef int32_t number = self.store.checked(expression)
        assert not node_of(self.store, number)[0] & F_ASSERTS
        self.store.stack.clear()
        self.classify(number)
        return self.derive(number, self.byte_class[byte])

    # Partitions.

    cdef int32_t classify(self, int32_t expression) except -1 nogil:
        """The partition of an expression. Every expression that `derive` will meet on its way gets a place, too."""
        if expression >= <int64_t>self.places.size():
            hold_bytes(8 * (self.store.room - self.places.size()))
            self.places.resize(self.store.room, Place(-1, -1))
        if self.places[expression].partition >= 0:
            return self.places[expression].partition
        return self.classify_anew(expression)

    cdef int32_t classify_anew(self, int32_t expression) except -1 nogil:
        """Recursion goes down the nesting of the expression only; along a concatenation it is a loop."""
        cdef const int32_t* node = node_of(self.store, expression)  # no node is made here
        cdef int kind = node[0] & 0xFF
        cdef int32_t partition = TOGETHER, rest = expression, k
        if kind == K_BYTES:
            partition = self.split_by_set(node)
        elif kind == K_CONCAT:
            while True:
                partition = self.join(partition, self.classify(node[1]))
                if not node_of(self.store, node[1])[0] & (F_NULLABLE | F_ASSERTS):
                    break
                rest = node[2]
                node = node_of(self.store, rest)
                if node[0] & 0xFF != K_CONCAT or self.places[rest].partition >= 0:
                    partition = self.join(partition, self.classify(rest))
                    break
        elif kind == K_UNION or kind == K_INTERSECTION:
            for k in range(count_of(self.store, expression)):
                partition = self.join(partition, self.classify(node[1 + k]))
        elif kind == K_ASSERTION:
            partition = self.split_by_context()
        elif kind == K_REPEAT or kind == K_COMPLEMENT or kind == K_LOOK_AHEAD:
            partition = self.classify(node[1])
        self.enter(expression, partition)
        return partition

    cdef int enter(self, int32_t expression, int32_t partition) except -1 nogil:
        """Give an expression its partition, and room for its derivatives."""
        cdef int word = node_of(self.store, expression)[0]
        cdef int16_t outside = self.partitions.content_of(partition)[self.class_count]
        cdef size_t entry = self.known.size(), end = entry + self.partitions.content_of(partition)[self.class_count + 1]
        if word & 0xFF > K_BYTES:
            while end > self.known.capacity():
                hold_bytes(4 * self.known.capacity())
                self.known.reserve(2 * self.known.capacity())
            self.known.resize(end, -1)
            if outside >= 0 and not word & F_BOOLEAN:
                self.known[entry + outside] = NOTHING
        self.places[expression] = Place(partition, <int32_t>entry)
        return 0

    cdef int32_t split_by_set(self, const int32_t* byte_set) except -1 nogil:
        """The partition by a byte set."""
        cdef int16_t count = 1
        cdef int32_t k
        cdef bint first = has_byte(byte_set, self.representatives[0])
        for k in range(self.class_count):
            self.row[k] = has_byte(byte_set, self.representatives[k]) != first
            if self.row[k]:
                count = 2
        self.row[self.class_count] = first if count > first else -1
        self.row[self.class_count + 1] = count
        return self.intern_row()

    cdef int32_t split_by_context(self) except -1 nogil:
        """The partition by what bytes are to an assertion."""
        cdef int16_t count = 0
        cdef int32_t k
        cdef int group
        self.renamed.assign(3, -1)
        for k in range(self.class_count):
            group = context_of(self.representatives[k])
            if self.renamed[group] < 0:
                self.renamed[group] = count
                count += 1
            self.row[k] = self.renamed[group]
        self.row[self.class_count], self.row[self.class_count + 1] = -1, count
        return self.intern_row()

    cdef int32_t join(self, int32_t one, int32_t other) except -1 nogil:
        """The common refinement of two partitions; what is outside of both is outside."""
        cdef const int16_t* first
        cdef const int16_t* second
        cdef int32_t pair, width, k, end = self.class_count
        cdef int16_t count = 0
        cdef int64_t key
        if one == other or other == TOGETHER:
            return one
        if one == TOGETHER:
            return other
        if one == FINEST or other == FINEST:
            return FINEST
        key = pair_key(max(one, other), min(one, other))
        k = self.joins.find(key)
        if k >= 0:
            return self.joined[k]
        hold_bytes(2 * end + 40)
        first, second = self.partitions.content_of(one), self.partitions.content_of(other)
        width = second[end + 1]
        self.renamed.assign(first[end + 1] * width, -1)
        for k in range(end):
            pair = first[k] * width + second[k]
            if self.renamed[pair] < 0:
                self.renamed[pair] = count
                count += 1
            self.row[k] = self.renamed[pair]
        self.row[end], self.row[end + 1] = -1, count
        if first[end] >= 0 and second[end] >= 0:
            self.row[end] = self.renamed[first[end] * width + second[end]]
        k = self.intern_row()
        self.joined.resize(self.joins.size() + 1, FINEST)
        self.joined[self.joins.intern(key)] = k
        return k

    cdef int32_t intern_row(self) except -1 nogil:
        """The number of the partition in `row`; the finest if it is new and there are too many."""
        if self.partitions.size() < self.most_partitions:
            return self.partitions.intern(self.row.data(), self.row.size())
        cdef int32_t found = self.partitions.find(self.row.data(), self.row.size())
        return found if found >= 0 else FINEST

    # Derivatives.

    cdef int32_t derive(self, int32_t expression, int32_t byte_class) except -1 nogil:
        """The derivative of a classified expression by the bytes of a class.

        Byte sets, and concatenations that begin with one, need no memory.
        """
        cdef const int32_t* node = node_of(self.store, expression)
        cdef int kind = node[0] & 0xFF
        cdef const int32_t* head
        cdef int32_t entry
        if kind <= K_EMPTY:
            return NOTHING
        if kind == K_BYTES:
            return EMPTY if has_byte(node, self.representatives[byte_class]) else NOTHING
        if kind == K_CONCAT:
            head = node_of(self.store, node[1])
            if head[0] & 0xFF == K_BYTES:
                return node[2] if has_byte(head, self.representatives[byte_class]) else NOTHING
        entry = self.places[expression].entry
        entry += self.partitions.content_of(self.places[expression].partition)[byte_class]
        if self.known[entry] < 0:
            self.known[entry] = self.derive_anew(expression, byte_class)
        return self.known[entry]

    cdef int32_t derive_anew(self, int32_t expression, int32_t byte_class) except -1 nogil:
        """Recursion goes down the nesting of the expression only; along a concatenation it is a loop."""
        cdef int kind = kind_of(self.store, expression)
        cdef size_t base = self.store.stack.size()
        cdef int32_t head, tail, part, k
        cdef int64_t low, high
        if kind == K_CONCAT:
            while kind_of(self.store, expression) == K_CONCAT:
                head, tail = node_of(self.store, expression)[1], node_of(self.store, expression)[2]
                part = self.derive(head, byte_class)
                part = self.store.make_concat(part, tail)
                self.store.stack.push_back(part)
                if not node_of(self.store, head)[0] & F_NULLABLE:
                    return self.store.make_union(base)
                expression = tail
            part = self.derive(expression, byte_class)
            self.store.stack.push_back(part)
            return self.store.make_union(base)
        if kind == K_UNION or kind == K_INTERSECTION:
            for k in range(count_of(self.store, expression)):
                part = self.derive(node_of(self.store, expression)[1 + k], byte_class)
                self.store.stack.push_back(part)
            return self.store.make_union(base) if kind == K_UNION else self.store.make_intersection(base)
        head = node_of(self.store, expression)[1]
        part = self.derive(head, byte_class)
        if kind == K_COMPLEMENT:
            return self.store.make_complement(part)
        if part == NOTHING:
            return NOTHING
        low, high = node_of(self.store, expression)[2], node_of(self.store, expression)[3]
        low = 0 if low == 0 or node_of(self.store, head)[0] & F_NULLABLE else low - 1
        tail = self.store.make_repeat(head, low, high if high == INFINITE else high - 1)
        return self.store.make_concat(part, tail)
