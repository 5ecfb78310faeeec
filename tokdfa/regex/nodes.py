"""Nodes of hash-consed expressions: how they lie in memory, and how an equal one is found.

Node n is row n of ``nodes`` (int32, four columns): kind and flags, a, b, c. What a, b and c mean:

=============  ==========================  ======================
kind           a, b, c                     elsewhere
=============  ==========================  ======================
bytes          first argument, 8           256 bits, 8 arguments
concat         head, tail
union          first argument, count       parts, sorted
intersection   first argument, count       parts, sorted
complement     body
repeat         body, low, high or -1
look_ahead     body, negative
assertion      index into ``ASSERTIONS``
=============  ==========================  ======================

Kernels here never write past an array: they set ``meta[M_STATUS]`` and return 0. The caller grows the arrays
and calls again; nodes interned before the failure are found again. `tokdfa.regex.laws` builds on this file.
"""

from __future__ import annotations

import numpy as np

from tokdfa.core.jit import kernel
from tokdfa.core.kernel_budget import pay

#: Numbers of the expressions that every store begins with.
NOTHING, EMPTY, ANY_BYTE, ANY_BYTES = 0, 1, 2, 3

K_NOTHING, K_EMPTY, K_BYTES, K_CONCAT, K_UNION, K_INTERSECTION, K_COMPLEMENT, K_REPEAT, K_LOOK_AHEAD, K_ASSERTION = (
    range(10)
)
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

F_NULLABLE, F_INHABITED, F_ASSERTS, F_BOOLEAN, F_CONTEXT = 1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12
#: Flags that a node has if one of its parts has them.
F_PARTS = F_ASSERTS | F_BOOLEAN | F_CONTEXT

#: Zero-width assertions; words are ASCII: letters, digits and the underscore.
ASSERTIONS = ("text_start", "text_end", "line_start", "line_end", "word_boundary", "not_word_boundary")

#: Simplification laws by name; the identities of nothing and empty always hold.
LAWS: dict[str, int] = {
    "union_aci": 1 << 0,  # (a|b)|c = a|(b|c), a|b = b|a, a|a = a
    "union_absorb": 1 << 1,  # a|any* = any*; a|empty = a if a is nullable
    "union_merge_sets": 1 << 2,  # [a]|[b] = [ab]; [a]x|[b]x = [ab]x
    "union_merge_repeats": 1 << 3,  # a{0,3}x|a{2,5}x = a{0,5}x
    "intersection": 1 << 4,  # associative, commutative, idempotent; any* is neutral; sets intersect; a&~a = nothing
    "concat_associative": 1 << 5,  # (ab)c = a(bc)
    "concat_merge_repeats": 1 << 6,  # a{1,2}a{3,4} = a{4,6}
    "repeat_nested": 1 << 7,  # (a*)* = a*; (a{0,3}){0,2} = a{0,6}; a nullable: a{2,5} = a{0,5}
    "complement": 1 << 8,  # ~~a = a; ~nothing = any*; ~any* = nothing
}
L_ACI, L_ABSORB, L_SETS, L_UNION_REPEATS, L_INTERSECTION, L_ASSOCIATIVE, L_CONCAT_REPEATS, L_NESTED, L_COMPLEMENT = (
    LAWS.values()
)
ALL_LAWS = sum(LAWS.values())

INFINITE = -1  # the upper bound of an unbounded repeat
MAX_REPEAT = 1 << 30

#: Status values: what a kernel ran out of.
OK, FULL_NODES, FULL_ARGUMENTS, FULL_SCRATCH, FULL_MEMO = range(5)
#: Indices into `meta` (int64): nodes used, arguments used, top of the scratch stack, status, laws, units of work done,
#: and how many of them are paid for.
M_NODES, M_ARGUMENTS, M_SCRATCH, M_STATUS, M_LAWS, M_WORK, M_PAID = range(7)
#: What a unit of work takes, and how many are paid for at once.
NS_PER_UNIT, PAID_UNITS = 150, 1 << 13
#: Unions longer than this are not searched for pairs to merge (the search is quadratic).
MERGE_LIMIT = 64


# Kernels. Most take (nodes, arguments, table, scratch, meta) first. "Parts" lie on the scratch stack from `base` to its
# top; the kernel that consumes them sets the top back to `base`.


@kernel
def mix(value):  # type: ignore[no-untyped-def]
    """A 64-bit mixer (the finalizer of splitmix64)."""
    value = np.uint64(value)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@kernel
def _has_arguments(kind):  # type: ignore[no-untyped-def]
    return kind in (K_UNION, K_INTERSECTION, K_BYTES)


@kernel
def _hash_node(word, a, b, c):  # type: ignore[no-untyped-def]
    head = np.uint64(word & 0xFF) | (np.uint64(np.uint32(a)) << np.uint64(8))
    return mix(mix(head) ^ (np.uint64(np.uint32(b)) | (np.uint64(np.uint32(c)) << np.uint64(32))))


@kernel
def _hash_arguments(kind, arguments, start, count):  # type: ignore[no-untyped-def]
    value = np.uint64(kind)
    for k in range(start, start + count):
        value = mix(value ^ np.uint64(np.uint32(arguments[k])))
    return value


@kernel
def rehash_kernel(nodes, arguments, table, count):  # type: ignore[no-untyped-def]
    """Enter nodes 2..count-1 into the empty `table`."""
    slots = np.uint64(len(table) - 1)
    for node in range(2, count):
        kind = nodes[node, 0] & 0xFF
        if _has_arguments(kind):
            value = _hash_arguments(kind, arguments, nodes[node, 1], nodes[node, 2])
        else:
            value = _hash_node(nodes[node, 0], nodes[node, 1], nodes[node, 2], nodes[node, 3])
        slot = value & slots
        while table[slot] != 0:
            slot = (slot + np.uint64(1)) & slots
        table[slot] = node


@kernel
def _new_node(nodes, table, meta, slot, word, a, b, c):  # type: ignore[no-untyped-def]
    """Append a node, or set the status if there is no room; the table stays at most half full."""
    node = meta[M_NODES]
    if node >= len(nodes) or 2 * node >= len(table):
        meta[M_STATUS] = FULL_NODES
        return 0
    nodes[node, 0], nodes[node, 1], nodes[node, 2], nodes[node, 3] = word, a, b, c
    table[slot] = node
    meta[M_NODES] = node + 1
    return node


@kernel
def count_work(meta, units):  # type: ignore[no-untyped-def]
    """Count units of work, one a node and one a part, and pay for them where they are many."""
    meta[M_WORK] += units
    unpaid = meta[M_WORK] - meta[M_PAID]
    if unpaid >= PAID_UNITS:
        meta[M_PAID] = meta[M_WORK]
        pay(NS_PER_UNIT * unpaid)


@kernel
def intern_node_kernel(nodes, arguments, table, scratch, meta, word, a, b, c):  # type: ignore[no-untyped-def]
    """The number of the node (kind and flags, a, b, c)."""
    count_work(meta, 1)
    slots = np.uint64(len(table) - 1)
    slot = _hash_node(word, a, b, c) & slots
    while table[slot] != 0:
        node = table[slot]
        if nodes[node, 0] == word and nodes[node, 1] == a and nodes[node, 2] == b and nodes[node, 3] == c:
            return np.int64(node)
        slot = (slot + np.uint64(1)) & slots
    return np.int64(_new_node(nodes, table, meta, slot, word, a, b, c))


@kernel
def intern_parts(nodes, arguments, table, scratch, meta, word, base):  # type: ignore[no-untyped-def]
    """The number of the node whose arguments are the parts from `base` up; takes them off the stack."""
    count = meta[M_SCRATCH] - base
    count_work(meta, count)
    meta[M_SCRATCH] = base
    kind = word & 0xFF
    slots = np.uint64(len(table) - 1)
    slot = _hash_arguments(kind, scratch, base, count) & slots
    while table[slot] != 0:
        node = table[slot]
        if nodes[node, 0] == word and nodes[node, 2] == count:
            start = nodes[node, 1]
            same = True
            for k in range(count):
                if arguments[start + k] != scratch[base + k]:
                    same = False
                    break
            if same:
                return np.int64(node)
        slot = (slot + np.uint64(1)) & slots
    start = meta[M_ARGUMENTS]
    if start + count > len(arguments):
        meta[M_STATUS] = FULL_ARGUMENTS
        return np.int64(0)
    node = _new_node(nodes, table, meta, slot, word, start, count, 0)
    if node != 0:
        for k in range(count):  # to copy slices numba compiles what it says if their lengths differ
            arguments[start + k] = scratch[base + k]
        meta[M_ARGUMENTS] = start + count
    return np.int64(node)


@kernel
def push(scratch, meta, value):  # type: ignore[no-untyped-def]
    """Put a part on the scratch stack."""
    top = meta[M_SCRATCH]
    if top >= len(scratch):
        meta[M_STATUS] = FULL_SCRATCH
    else:
        scratch[top] = value
        meta[M_SCRATCH] = top + 1
