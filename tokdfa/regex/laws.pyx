"""Constructors of expressions, each with the algebraic laws that simplify what it makes.

Every law replaces an expression by an equal one; `LAWS` names them. The identities of nothing and empty always hold.

Parts of unions and intersections come on the stack of `tokdfa.regex.nodes.Nodes`, from `base` to its top; what makes a
node of them takes them off.

Source: Owens, Reppy, Turon, "Regular-expression derivatives re-examined" (2009). The merge laws for byte sets and
repeats are ours. Cost: 0.1 us a constructor.
"""

from libc.stdint cimport uint32_t
from libcpp.algorithm cimport sort, unique

from tokdfa.regex.nodes cimport (
    ANY_BYTES, EMPTY, F_ASSERTS, F_BOOLEAN, F_INHABITED, F_NULLABLE, F_PARTS, INFINITE, K_BYTES, K_COMPLEMENT, K_CONCAT,
    K_INTERSECTION, K_REPEAT, K_UNION, MAX_REPEAT, NOTHING, count_of, kind_of, node_of,
)


cdef enum:
    L_ACI = 1 << 0
    L_ABSORB = 1 << 1
    L_SETS = 1 << 2
    L_UNION_REPEATS = 1 << 3
    L_INTERSECTION = 1 << 4
    L_ASSOCIATIVE = 1 << 5
    L_CONCAT_REPEATS = 1 << 6
    L_NESTED = 1 << 7
    L_COMPLEMENT = 1 << 8

    # unions longer than this are not searched for pairs to merge (the search is quadratic)
    MERGE_LIMIT = 64
    # expressions of more nodes are not asked which bytes they are written in
    MOST_NODES = 64

#: Simplification laws by name.
LAWS = {
    "union_aci": L_ACI,  # (a|b)|c = a|(b|c), a|b = b|a, a|a = a
    "union_absorb": L_ABSORB,  # a|empty = a if a is nullable; a|[x]* = [x]* if a is written in [x]; so a|any* = any*
    "union_merge_sets": L_SETS,  # [a]|[b] = [ab]; [a]x|[b]x = [ab]x
    "union_merge_repeats": L_UNION_REPEATS,  # a{0,3}x|a{2,5}x = a{0,5}x
    # associative, commutative, idempotent; any* is neutral; sets intersect; a&~a = nothing; a&~[x]* = nothing if a is
    # written in [x]
    "intersection": L_INTERSECTION,
    "concat_associative": L_ASSOCIATIVE,  # (ab)c = a(bc)
    "concat_merge_repeats": L_CONCAT_REPEATS,  # a{1,2}a{3,4} = a{4,6}
    "repeat_nested": L_NESTED,  # (a*)* = a*; (a{0,3}){0,2} = a{0,6}; a nullable: a{2,5} = a{0,5}
    "complement": L_COMPLEMENT,  # ~~a = a; ~nothing = any*; ~any* = nothing
}


cdef class Constructors(Nodes):
    """Nodes, and how they are made. ``laws``: those that are on, bits of `LAWS`."""

    def __cinit__(self, *args, **options):
        self.laws = sum(LAWS.values())

    # Byte sets, concatenations and repeats.

    cdef int32_t make_bytes(self, const int32_t* words) except -1 nogil:
        """The byte set with these 256 bits."""
        cdef size_t base = self.stack.size()
        cdef int32_t some = 0
        cdef int k
        for k in range(8):
            some |= words[k]
        if some == 0:
            return NOTHING
        self.stack.insert(self.stack.end(), words, words + 8)
        return self.intern_parts(K_BYTES | F_INHABITED, base)

    cdef int32_t combine_sets(self, int32_t one, int32_t other, bint intersect) except -1 nogil:
        """The union (or intersection) of two byte sets."""
        cdef const int32_t* first = node_of(self, one)
        cdef const int32_t* second = node_of(self, other)
        cdef int32_t[8] words
        cdef int k
        for k in range(8):
            words[k] = first[k + 1] & second[k + 1] if intersect else first[k + 1] | second[k + 1]
        return self.make_bytes(words)

    cdef int32_t make_literal(self, const int32_t* text, size_t size) except -1 nogil:
        """These bytes one after another."""
        cdef int32_t[8] words
        cdef int32_t result = EMPTY
        cdef size_t k
        cdef int place
        for k in range(size, 0, -1):
            for place in range(8):
                words[place] = 0
            words[text[k - 1] >> 5] = <int32_t>(<uint32_t>1 << (text[k - 1] & 31))
            result = self.join(self.make_bytes(words), result)
        return result

    cdef int32_t make_repeat(self, int32_t body, int64_t low, int64_t high) except -1 nogil:
        """`body` from `low` to `high` times (INFINITE: without end)."""
        cdef const int32_t* node = node_of(self, body)
        cdef int word = node[0], flags
        cdef int64_t inner_low, inner_high, product
        cdef bint touch
        if self.laws & L_NESTED:
            if word & F_NULLABLE:
                low = 0
            if word & 0xFF == K_REPEAT:
                # the counts k*inner_low .. k*inner_high for k in low..high leave no gap iff the first two touch
                inner_low, inner_high = node[2], node[3]
                if low == 0:
                    touch = inner_low <= 1
                else:
                    touch = inner_high == INFINITE or (low + 1) * inner_low <= low * inner_high + 1
                product = INFINITE if high == INFINITE or inner_high == INFINITE else high * inner_high
                if (touch or low == high) and product <= MAX_REPEAT and low * inner_low <= MAX_REPEAT and high != 0:
                    body, low, high = node[1], low * inner_low, product
                    word = node_of(self, body)[0]
        if high == 0 or body == EMPTY or (body == NOTHING and low == 0):
            return EMPTY
        if body == NOTHING:
            return NOTHING
        if low == 1 and high == 1:
            return body
        flags = word & (F_PARTS | F_INHABITED)
        if low == 0 or word & F_NULLABLE:
            flags |= F_NULLABLE | F_INHABITED
        return self.intern_node(K_REPEAT | flags, body, <int32_t>low, <int32_t>high)

    cdef int32_t join(self, int32_t head, int32_t tail) except -1 nogil:
        """Concatenation of a head that is no concatenation (or may stay nested) and a tail."""
        cdef const int32_t* first
        cdef const int32_t* second
        cdef int32_t rest = EMPTY
        cdef int64_t low, high
        cdef int one, other
        if head == NOTHING or tail == NOTHING:
            return NOTHING
        if head == EMPTY:
            return tail
        if tail == EMPTY:
            return head
        first, second = node_of(self, head), node_of(self, tail)
        if self.laws & L_CONCAT_REPEATS and first[0] & 0xFF == K_REPEAT:
            if second[0] & 0xFF == K_CONCAT:
                rest = second[2]
                second = node_of(self, second[1])
            if second[0] & 0xFF == K_REPEAT and first[1] == second[1]:
                low = <int64_t>first[2] + second[2]
                high = INFINITE if first[3] == INFINITE or second[3] == INFINITE else <int64_t>first[3] + second[3]
                if low <= MAX_REPEAT and high <= MAX_REPEAT:
                    head, tail = self.make_repeat(first[1], low, high), rest
                    if tail == EMPTY:
                        return head
        one, other = node_of(self, head)[0], node_of(self, tail)[0]
        return self.intern_node(
            K_CONCAT | (one & other & (F_NULLABLE | F_INHABITED)) | ((one | other) & F_PARTS), head, tail, 0
        )

    cdef int32_t make_concat(self, int32_t head, int32_t tail) except -1 nogil:
        """`head` and then `tail`, nested to the right: the heads along `head` are put before `tail` one by one."""
        cdef size_t base = self.stack.size(), k
        cdef int32_t result
        if tail == EMPTY:
            return head
        if not self.laws & L_ASSOCIATIVE or head == NOTHING or tail == NOTHING:
            return self.join(head, tail)
        while kind_of(self, head) == K_CONCAT:
            self.stack.push_back(node_of(self, head)[1])
            head = node_of(self, head)[2]
        result = self.join(head, tail)
        for k in range(self.stack.size(), base, -1):
            result = self.join(self.stack[k - 1], result)
        self.stack.resize(base)
        return result

    # Unions, intersections and complements.

    cdef int32_t loop_of(self, int32_t expression) noexcept nogil:
        """The byte set that an expression repeats any number of times, or -1."""
        cdef const int32_t* node = node_of(self, expression)
        if node[0] & 0xFF != K_REPEAT or node[2] != 0 or node[3] != INFINITE:
            return -1
        return node[1] if kind_of(self, node[1]) == K_BYTES else -1

    cdef bint is_written_in(self, int32_t expression, int32_t letters, int* most) noexcept nogil:
        """Whether all texts of an expression have bytes of a byte set only; False if it takes a look at more than
        `most` nodes to see it.
        """
        cdef const int32_t* node
        cdef int32_t k
        cdef bint is_within
        while most[0] > 0:
            most[0] -= 1
            node = node_of(self, expression)
            if node[0] & F_ASSERTS:
                return False
            if node[0] & 0xFF == K_CONCAT:
                if not self.is_written_in(node[1], letters, most):
                    return False
                expression = node[2]
            elif node[0] & 0xFF == K_REPEAT:
                expression = node[1]
            elif node[0] & 0xFF == K_BYTES:
                is_within = True
                for k in range(1, 9):
                    is_within &= not node[k] & ~node_of(self, letters)[k]
                return is_within
            elif node[0] & 0xFF == K_UNION or node[0] & 0xFF == K_INTERSECTION:
                for k in range(count_of(self, expression)):
                    is_within = self.is_written_in(node[1 + k], letters, most)
                    if is_within != (node[0] & 0xFF == K_UNION):
                        return is_within
                return node[0] & 0xFF == K_UNION
            else:
                return node[0] & 0xFF != K_COMPLEMENT
        return False

    cdef int sort_parts(self, size_t base, int kind) except -1 nogil:
        """Replace parts of the given kind by their members; sort; drop repeats."""
        cdef size_t end = self.stack.size(), k
        cdef int32_t part
        cdef const int32_t* members
        self.count_work(end - base)
        for k in range(base, end):
            part = self.stack[k]
            if kind_of(self, part) == kind:
                members = node_of(self, part) + 1
                self.stack[k] = members[0]
                self.stack.insert(self.stack.end(), members + 1, members + count_of(self, part))
        sort(self.stack.begin() + base, self.stack.end())
        self.stack.erase(unique(self.stack.begin() + base, self.stack.end()), self.stack.end())
        return 0

    cdef int32_t merge_pair(self, int32_t one, int32_t other) except -1 nogil:
        """One expression for ``one | other`` by a merge law, NOTHING if none applies: neither is empty.

        [a]x | [b]x = [ab]x, and r{a,b}x | r{c,d}x = r{min,max}x if the ranges overlap or touch (r alone is r{1,1}).
        """
        cdef const int32_t* first = node_of(self, one)
        cdef const int32_t* second = node_of(self, other)
        cdef int32_t tail = EMPTY, other_tail = EMPTY
        cdef int64_t low = 1, high = 1, other_low = 1, other_high = 1
        if first[0] & 0xFF == K_CONCAT:
            one, tail = first[1], first[2]
        if second[0] & 0xFF == K_CONCAT:
            other, other_tail = second[1], second[2]
        if tail != other_tail:
            return NOTHING
        first, second = node_of(self, one), node_of(self, other)
        if first[0] & 0xFF == K_BYTES and second[0] & 0xFF == K_BYTES:
            return self.join(self.combine_sets(one, other, False), tail) if self.laws & L_SETS else NOTHING
        if not self.laws & L_UNION_REPEATS or (first[0] & 0xFF != K_REPEAT and second[0] & 0xFF != K_REPEAT):
            return NOTHING
        if first[0] & 0xFF == K_REPEAT:
            one, low, high = first[1], first[2], first[3]
        if second[0] & 0xFF == K_REPEAT:
            other, other_low, other_high = second[1], second[2], second[3]
        if one != other or (high != INFINITE and other_low > high + 1) or (
            other_high != INFINITE and low > other_high + 1
        ):
            return NOTHING
        high = INFINITE if high == INFINITE or other_high == INFINITE else max(high, other_high)
        return self.make_concat(self.make_repeat(one, min(low, other_low), high), tail)

    cdef int merge_parts(self, size_t base) except -1 nogil:
        """Merge pairs of parts until none can be; sorts again if anything changed."""
        cdef size_t k = base, j
        cdef int32_t merged
        cdef bint changed = False
        while k < self.stack.size():
            j = k + 1
            while j < self.stack.size():
                merged = self.merge_pair(self.stack[k], self.stack[j])
                if merged == NOTHING:
                    j += 1
                else:
                    changed = True
                    self.stack[k], self.stack[j] = merged, self.stack.back()
                    self.stack.pop_back()
                    j = k + 1
            k += 1
        return self.sort_parts(base, K_UNION) if changed else 0

    cdef int absorb(self, size_t base) except -1 nogil:
        """Leave out the parts of a union that are written in a byte set of which another part is a loop."""
        cdef size_t k, j, kept
        cdef int32_t letters
        cdef int most
        for k in range(base, self.stack.size()):
            if self.stack[k] == ANY_BYTES:
                self.stack[base] = ANY_BYTES
                self.stack.resize(base + 1)
                return 0
        for k in range(base, self.stack.size()):
            letters = self.loop_of(self.stack[k])
            if letters < 0:
                continue
            kept = base
            for j in range(base, self.stack.size()):
                most = MOST_NODES
                if j == k or not self.is_written_in(self.stack[j], letters, &most):
                    self.stack[kept] = self.stack[j]
                    kept += 1
                self.count_work((MOST_NODES - most) >> 3)
            self.stack.resize(kept)
            break
        return 0

    cdef int32_t make_union(self, size_t base) except -1 nogil:
        """The union of the parts from `base` up."""
        cdef size_t k, kept = base
        cdef int flags = 0
        cdef bint has_empty = False
        cdef int32_t result
        for k in range(base, self.stack.size()):
            if self.stack[k] != NOTHING:
                self.stack[kept] = self.stack[k]
                kept += 1
        self.stack.resize(kept)
        if self.laws & L_ACI and kept - base > 1:
            self.sort_parts(base, K_UNION)
            if self.stack.size() - base <= MERGE_LIMIT and self.laws & (L_SETS | L_UNION_REPEATS):
                self.merge_parts(base)
        if self.laws & L_ABSORB:
            self.absorb(base)
        for k in range(base, self.stack.size()):
            if self.stack[k] == EMPTY:
                has_empty = True
            else:
                flags |= node_of(self, self.stack[k])[0]
        if has_empty and self.laws & L_ABSORB and flags & F_NULLABLE:
            kept = base
            for k in range(base, self.stack.size()):
                if self.stack[k] != EMPTY:
                    self.stack[kept] = self.stack[k]
                    kept += 1
            self.stack.resize(kept)
        elif has_empty:
            flags |= F_NULLABLE | F_INHABITED
        if self.stack.size() - base <= 1:
            result = self.stack[base] if self.stack.size() > base else NOTHING
            self.stack.resize(base)
            return result
        return self.intern_parts(K_UNION | flags & (F_NULLABLE | F_INHABITED | F_PARTS), base)

    cdef int32_t make_choice(self, size_t base) except -1 nogil:
        """The union of the parts from `base` up, which no law can simplify."""
        cdef int32_t result
        if self.stack.size() <= base + 1:
            result = self.stack[base] if self.stack.size() > base else NOTHING
            self.stack.resize(base)
            return result
        if self.laws & L_ACI:
            self.sort_parts(base, K_UNION)
        return self.intern_parts(K_UNION | F_INHABITED, base)

    cdef int intersect_sets(self, size_t base) except -1 nogil:
        """Flatten and sort the parts of an intersection; leave out any bytes, and make one of all byte sets."""
        cdef size_t k, kept = base
        cdef int32_t byte_set = -1, part
        self.sort_parts(base, K_INTERSECTION)
        for k in range(base, self.stack.size()):
            part = self.stack[k]
            if part == ANY_BYTES:
                continue
            if kind_of(self, part) != K_BYTES:
                self.stack[kept] = part
                kept += 1
                continue
            byte_set = part if byte_set < 0 else self.combine_sets(byte_set, part, True)
            if byte_set == NOTHING:
                break
        self.stack.resize(kept)
        if byte_set >= 0:
            self.stack.push_back(byte_set)
            self.sort_parts(base, K_INTERSECTION)
        return 0

    cdef int32_t make_intersection(self, size_t base) except -1 nogil:
        """The intersection of the parts from `base` up."""
        cdef int flags = F_BOOLEAN, most
        cdef bint nothing = False, nullable = True, has_empty = False
        cdef const int32_t* node
        cdef int32_t result, letters
        cdef size_t count, k, j
        if self.laws & L_INTERSECTION:
            self.intersect_sets(base)
        count = self.stack.size() - base
        for k in range(base, base + count):
            node = node_of(self, self.stack[k])
            nothing |= self.stack[k] == NOTHING
            has_empty |= self.stack[k] == EMPTY
            nullable &= node[0] & F_NULLABLE != 0
            flags |= node[0] & F_PARTS
            if self.laws & L_INTERSECTION and node[0] & 0xFF == K_COMPLEMENT:
                self.count_work(count >> 6)
                letters = self.loop_of(node[1])
                for j in range(base, base + count):
                    most = MOST_NODES
                    nothing |= self.stack[j] == node[1] or (
                        letters >= 0 and self.is_written_in(self.stack[j], letters, &most)
                    )
        if nothing or (has_empty and not flags & F_ASSERTS):
            self.stack.resize(base)
            return EMPTY if not nothing and nullable else NOTHING
        if count <= 1:
            result = self.stack[base] if count else ANY_BYTES
            self.stack.resize(base)
            return result
        if nullable:
            flags |= F_NULLABLE | F_INHABITED
        return self.intern_parts(K_INTERSECTION | flags, base)

    cdef int32_t make_complement(self, int32_t body) except -1 nogil:
        """All byte strings outside `body`."""
        cdef const int32_t* node = node_of(self, body)
        cdef int flags = F_BOOLEAN | node[0] & F_PARTS
        if self.laws & L_COMPLEMENT:
            if node[0] & 0xFF == K_COMPLEMENT:
                return node[1]
            if body == NOTHING or body == ANY_BYTES:
                return ANY_BYTES if body == NOTHING else NOTHING
        if not node[0] & (F_NULLABLE | F_ASSERTS):
            flags |= F_NULLABLE | F_INHABITED
        return self.intern_node(K_COMPLEMENT | flags, body, 0, 0)
