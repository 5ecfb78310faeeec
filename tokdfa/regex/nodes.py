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

Nodes are entries of an interning table (`tokdfa.core.interning`), ``table`` to kernels, of which ``nodes`` is a column
and ``arguments`` are the words. The content of a node with arguments is its kind and flags, and they: so they lie one
behind where its content begins. That of any other is two words with its four numbers.

Kernels here never write past an array: they set ``meta[M_STATUS]`` and return 0. The caller grows the arrays
and calls again; nodes interned before the failure are found again. `tokdfa.regex.laws` builds on this file.
"""

from __future__ import annotations

import numpy as np

from tokdfa.core.interning import COUNT, NEEDS_ROOM, has_room, intern
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_budget import pay
from tokdfa.core.keys import pack_pair

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
OK, FULL_NODES, FULL_SCRATCH, FULL_MEMO = range(4)
#: Indices into `meta` (int64): top of the scratch stack, status, laws, units of work done, and how many are paid for.
M_SCRATCH, M_STATUS, M_LAWS, M_WORK, M_PAID = range(5)
#: What a unit of work takes, and how many are paid for at once.
NS_PER_UNIT, PAID_UNITS = 150, 1 << 13
#: Unions longer than this are not searched for pairs to merge (the search is quadratic).
MERGE_LIMIT = 64


# Kernels. Most take (nodes, arguments, table, scratch, meta) first. "Parts" lie on the scratch stack from `base` to its
# top; the kernel that consumes them sets the top back to `base`.


@kernel
def count_work(meta, units):  # type: ignore[no-untyped-def]
    """Count units of work, one a node and one a part, and pay for them where they are many."""
    meta[M_WORK] += units
    unpaid = meta[M_WORK] - meta[M_PAID]
    if unpaid >= PAID_UNITS:
        meta[M_PAID] = meta[M_WORK]
        pay(NS_PER_UNIT * unpaid)


@kernel
def _intern_content(nodes, table, meta, word, a, b, c, end):  # type: ignore[no-untyped-def]
    """The number of the node whose content is written behind the last one, up to `end`."""
    begin, count = table.begin[table.meta[COUNT]], table.meta[COUNT]
    node = intern(table.words, begin, end, table)
    if node == NEEDS_ROOM:
        meta[M_STATUS] = FULL_NODES
        return np.int64(0)
    if node == count:
        nodes[node, 0], nodes[node, 1], nodes[node, 2], nodes[node, 3] = word, a, b, c
    return node


@kernel
def intern_node_kernel(nodes, arguments, table, scratch, meta, word, a, b, c):  # type: ignore[no-untyped-def]
    """The number of the node (kind and flags, a, b, c)."""
    count_work(meta, 1)
    if not has_room(0, 2, table):
        meta[M_STATUS] = FULL_NODES
        return np.int64(0)
    begin = table.begin[table.meta[COUNT]]
    arguments[begin], arguments[begin + 1] = pack_pair(word, a), pack_pair(b, c)
    return _intern_content(nodes, table, meta, word, a, b, c, begin + 2)


@kernel
def intern_parts(nodes, arguments, table, scratch, meta, word, base):  # type: ignore[no-untyped-def]
    """The number of the node whose arguments are the parts from `base` up; takes them off the stack."""
    count = meta[M_SCRATCH] - base
    count_work(meta, count)
    meta[M_SCRATCH] = base
    if not has_room(0, count + 1, table):
        meta[M_STATUS] = FULL_NODES
        return np.int64(0)
    begin = table.begin[table.meta[COUNT]]
    arguments[begin] = word
    for k in range(count):
        arguments[begin + 1 + k] = scratch[base + k]
    return _intern_content(nodes, table, meta, word, begin + 1, count, 0, begin + 1 + count)


@kernel
def push(scratch, meta, value):  # type: ignore[no-untyped-def]
    """Put a part on the scratch stack."""
    top = meta[M_SCRATCH]
    if top >= len(scratch):
        meta[M_STATUS] = FULL_SCRATCH
    else:
        scratch[top] = value
        meta[M_SCRATCH] = top + 1
