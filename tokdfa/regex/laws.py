"""Constructors of expressions, each with the algebraic laws that simplify what it makes.

Which laws are on is in ``meta[M_LAWS]`` (bits of `tokdfa.regex.nodes.LAWS`). Every law replaces an expression by an
equal one; a test checks each against the set of strings it denotes. Parts of unions and intersections come on the
scratch stack from `base` to its top, and are taken off it.
"""

from __future__ import annotations

import numpy as np

from tokdfa.core.jit import kernel
from tokdfa.core.sorting import sort_range
from tokdfa.regex.nodes import (
    ANY_BYTES,
    EMPTY,
    F_ASSERTS,
    F_BOOLEAN,
    F_INHABITED,
    F_NULLABLE,
    F_PARTS,
    INFINITE,
    K_BYTES,
    K_COMPLEMENT,
    K_CONCAT,
    K_INTERSECTION,
    K_REPEAT,
    K_UNION,
    L_ABSORB,
    L_ACI,
    L_ASSOCIATIVE,
    L_COMPLEMENT,
    L_CONCAT_REPEATS,
    L_INTERSECTION,
    L_NESTED,
    L_SETS,
    L_UNION_REPEATS,
    M_LAWS,
    M_SCRATCH,
    M_STATUS,
    MAX_REPEAT,
    MERGE_LIMIT,
    NOTHING,
    OK,
    count_work,
    intern_node_kernel,
    intern_parts,
    push,
)


@kernel
def make_bytes_kernel(nodes, arguments, table, scratch, meta, code, first):  # type: ignore[no-untyped-def]
    """The byte set whose 256 bits are eight words of `code` (int32) from `first` on."""
    base = meta[M_SCRATCH]
    some = False
    for k in range(first, first + 8):
        some |= code[k] != 0
        push(scratch, meta, code[k])
    if meta[M_STATUS] != OK or not some:
        meta[M_SCRATCH] = base
        return np.int64(NOTHING)
    return intern_parts(nodes, arguments, table, scratch, meta, K_BYTES | F_INHABITED, base)


@kernel
def _combine_sets(nodes, arguments, table, scratch, meta, one, other, intersect):  # type: ignore[no-untyped-def]
    """The union (or intersection) of two byte sets."""
    base = meta[M_SCRATCH]
    first, second = nodes[one, 1], nodes[other, 1]
    some = False
    for k in range(8):
        if intersect:
            word = arguments[first + k] & arguments[second + k]
        else:
            word = arguments[first + k] | arguments[second + k]
        some |= word != 0
        push(scratch, meta, word)
    if meta[M_STATUS] != OK or not some:
        meta[M_SCRATCH] = base
        return np.int64(NOTHING)
    return intern_parts(nodes, arguments, table, scratch, meta, K_BYTES | F_INHABITED, base)


@kernel
def _add_bounds(one, other):  # type: ignore[no-untyped-def]
    return INFINITE if one == INFINITE or other == INFINITE else one + other


@kernel
def make_repeat_kernel(nodes, arguments, table, scratch, meta, body, low, high):  # type: ignore[no-untyped-def]
    """`body` from `low` to `high` times (INFINITE: without end)."""
    word = nodes[body, 0]
    if meta[M_LAWS] & L_NESTED:
        if word & F_NULLABLE:
            low = 0
        if word & 0xFF == K_REPEAT:
            # the counts k*inner_low .. k*inner_high for k in low..high leave no gap iff the first two touch
            inner_low, inner_high = np.int64(nodes[body, 2]), np.int64(nodes[body, 3])
            if low == 0:
                touch = inner_low <= 1
            else:
                touch = inner_high == INFINITE or (low + 1) * inner_low <= low * inner_high + 1
            product = np.int64(INFINITE) if INFINITE in (high, inner_high) else high * inner_high
            if (touch or low == high) and product <= MAX_REPEAT and low * inner_low <= MAX_REPEAT and high != 0:
                body, low, high = np.int64(nodes[body, 1]), low * inner_low, product
                word = nodes[body, 0]
    if high == 0:
        return np.int64(EMPTY)
    if body == NOTHING:
        return np.int64(EMPTY) if low == 0 else np.int64(NOTHING)
    if body == EMPTY:
        return np.int64(EMPTY)
    if low == 1 and high == 1:
        return np.int64(body)
    flags = word & F_PARTS
    if low == 0 or word & F_NULLABLE:
        flags |= F_NULLABLE | F_INHABITED
    flags |= word & F_INHABITED
    return intern_node_kernel(nodes, arguments, table, scratch, meta, K_REPEAT | flags, body, low, high)


@kernel
def join(nodes, arguments, table, scratch, meta, head, tail):  # type: ignore[no-untyped-def]
    """Concatenation of a head that is no concatenation (or may stay nested) and a tail."""
    if head == NOTHING or tail == NOTHING:
        return np.int64(NOTHING)
    if head == EMPTY:
        return np.int64(tail)
    if tail == EMPTY:
        return np.int64(head)
    if meta[M_LAWS] & L_CONCAT_REPEATS and nodes[head, 0] & 0xFF == K_REPEAT:
        following, rest = tail, np.int64(EMPTY)
        if nodes[tail, 0] & 0xFF == K_CONCAT:
            following, rest = np.int64(nodes[tail, 1]), np.int64(nodes[tail, 2])
        if nodes[following, 0] & 0xFF == K_REPEAT and nodes[following, 1] == nodes[head, 1]:
            low = np.int64(nodes[head, 2]) + nodes[following, 2]
            high = _add_bounds(np.int64(nodes[head, 3]), np.int64(nodes[following, 3]))
            if low <= MAX_REPEAT and high <= MAX_REPEAT:
                head = make_repeat_kernel(
                    nodes, arguments, table, scratch, meta, np.int64(nodes[head, 1]), low, np.int64(high)
                )
                tail = rest
                if tail == EMPTY:
                    return head
    one, other = nodes[head, 0], nodes[tail, 0]
    flags = (one & other & (F_NULLABLE | F_INHABITED)) | ((one | other) & F_PARTS)
    return intern_node_kernel(nodes, arguments, table, scratch, meta, K_CONCAT | flags, head, tail, 0)


@kernel
def make_concat_kernel(nodes, arguments, table, scratch, meta, head, tail):  # type: ignore[no-untyped-def]
    """`head` and then `tail`, nested to the right: the heads along `head` are put before `tail` one by one."""
    if tail == EMPTY:
        return np.int64(head)
    if not (meta[M_LAWS] & L_ASSOCIATIVE) or head == NOTHING or tail == NOTHING:
        return join(nodes, arguments, table, scratch, meta, head, tail)
    base = meta[M_SCRATCH]
    last = np.int64(head)
    while nodes[last, 0] & 0xFF == K_CONCAT:
        push(scratch, meta, nodes[last, 1])
        last = np.int64(nodes[last, 2])
    result = join(nodes, arguments, table, scratch, meta, last, tail)
    for k in range(meta[M_SCRATCH] - 1, base - 1, -1):
        result = join(nodes, arguments, table, scratch, meta, np.int64(scratch[k]), result)
    meta[M_SCRATCH] = base
    return result


@kernel
def flatten_and_sort(nodes, arguments, scratch, meta, base, kind):  # type: ignore[no-untyped-def]
    """Replace parts of the given kind by their members; sort; drop repeats."""
    end = meta[M_SCRATCH]
    count_work(meta, end - base)
    for k in range(base, end):
        part = scratch[k]
        if nodes[part, 0] & 0xFF == kind:
            start, count = nodes[part, 1], nodes[part, 2]
            scratch[k] = arguments[start]
            for j in range(start + 1, start + count):
                push(scratch, meta, arguments[j])
    end = meta[M_SCRATCH]
    sort_range(scratch, base, end)
    kept = base
    for k in range(base, end):
        if k == base or scratch[k] != scratch[kept - 1]:
            scratch[kept] = scratch[k]
            kept += 1
    meta[M_SCRATCH] = kept


@kernel
def _split(nodes, part):  # type: ignore[no-untyped-def]
    """A part as (head, tail): of a concatenation its own, of anything else (itself, empty)."""
    if nodes[part, 0] & 0xFF == K_CONCAT:
        return np.int64(nodes[part, 1]), np.int64(nodes[part, 2])
    return np.int64(part), np.int64(EMPTY)


@kernel
def _merge_pair(nodes, arguments, table, scratch, meta, one, other):  # type: ignore[no-untyped-def]
    """One expression for ``one | other`` by a merge law, or -1.

    [a]x | [b]x = [ab]x, and r{a,b}x | r{c,d}x = r{min,max}x if the ranges overlap or touch (r alone is r{1,1}).
    """
    laws = meta[M_LAWS]
    head_one, tail_one = _split(nodes, one)
    head_other, tail_other = _split(nodes, other)
    if tail_one != tail_other:
        return np.int64(-1)
    kind_one, kind_other = nodes[head_one, 0] & 0xFF, nodes[head_other, 0] & 0xFF
    if kind_one == K_BYTES and kind_other == K_BYTES:
        if not laws & L_SETS:
            return np.int64(-1)
        head = _combine_sets(nodes, arguments, table, scratch, meta, head_one, head_other, False)
        return join(nodes, arguments, table, scratch, meta, head, tail_one)
    if not laws & L_UNION_REPEATS or (kind_one != K_REPEAT and kind_other != K_REPEAT):
        return np.int64(-1)
    body_one, low_one, high_one = head_one, np.int64(1), np.int64(1)
    body_other, low_other, high_other = head_other, np.int64(1), np.int64(1)
    if kind_one == K_REPEAT:
        body_one = np.int64(nodes[head_one, 1])
        low_one, high_one = np.int64(nodes[head_one, 2]), np.int64(nodes[head_one, 3])
    if kind_other == K_REPEAT:
        body_other = np.int64(nodes[head_other, 1])
        low_other, high_other = np.int64(nodes[head_other, 2]), np.int64(nodes[head_other, 3])
    if body_one != body_other:
        return np.int64(-1)
    if high_one != INFINITE and low_other > high_one + 1:
        return np.int64(-1)
    if high_other != INFINITE and low_one > high_other + 1:
        return np.int64(-1)
    low = low_one if low_one < low_other else low_other
    high = high_one if high_other != INFINITE and (high_one == INFINITE or high_one > high_other) else high_other
    head = make_repeat_kernel(nodes, arguments, table, scratch, meta, body_one, low, high)
    return make_concat_kernel(nodes, arguments, table, scratch, meta, head, tail_one)


@kernel
def _merge_parts(nodes, arguments, table, scratch, meta, base):  # type: ignore[no-untyped-def]
    """Merge pairs of parts until none can be; sorts again if anything changed."""
    changed = False
    k = base
    while k < meta[M_SCRATCH]:
        j = k + 1
        while j < meta[M_SCRATCH]:
            merged = _merge_pair(nodes, arguments, table, scratch, meta, np.int64(scratch[k]), np.int64(scratch[j]))
            if meta[M_STATUS] != OK:
                return
            if merged >= 0:
                changed = True
                scratch[k] = merged
                meta[M_SCRATCH] -= 1
                scratch[j] = scratch[meta[M_SCRATCH]]
                j = k + 1
            else:
                j += 1
        k += 1
    if changed:
        flatten_and_sort(nodes, arguments, scratch, meta, base, K_UNION)


@kernel
def make_union_kernel(nodes, arguments, table, scratch, meta, base):  # type: ignore[no-untyped-def]
    """The union of the parts from `base` up."""
    laws = meta[M_LAWS]
    kept = base
    for k in range(base, meta[M_SCRATCH]):
        if scratch[k] != NOTHING:
            scratch[kept] = scratch[k]
            kept += 1
    meta[M_SCRATCH] = kept
    if laws & L_ACI and kept - base > 1:
        flatten_and_sort(nodes, arguments, scratch, meta, base, K_UNION)
        if meta[M_SCRATCH] - base <= MERGE_LIMIT and laws & (L_SETS | L_UNION_REPEATS):
            _merge_parts(nodes, arguments, table, scratch, meta, base)
    if meta[M_STATUS] != OK:
        meta[M_SCRATCH] = base
        return np.int64(NOTHING)
    flags = 0
    for k in range(base, meta[M_SCRATCH]):
        part = scratch[k]
        if laws & L_ABSORB and part == ANY_BYTES:
            meta[M_SCRATCH] = base
            return np.int64(ANY_BYTES)
        if part != EMPTY:
            flags |= nodes[part, 0]
    if laws & L_ABSORB and flags & F_NULLABLE:
        kept = base
        for k in range(base, meta[M_SCRATCH]):
            if scratch[k] != EMPTY:
                scratch[kept] = scratch[k]
                kept += 1
        meta[M_SCRATCH] = kept
    count = meta[M_SCRATCH] - base
    if count <= 1:
        meta[M_SCRATCH] = base
        return np.int64(scratch[base]) if count else np.int64(NOTHING)
    for k in range(base, meta[M_SCRATCH]):
        flags |= nodes[scratch[k], 0]
    flags &= F_NULLABLE | F_INHABITED | F_PARTS
    return intern_parts(nodes, arguments, table, scratch, meta, K_UNION | flags, base)


@kernel
def make_intersection_kernel(nodes, arguments, table, scratch, meta, base):  # type: ignore[no-untyped-def]
    """The intersection of the parts from `base` up."""
    laws = meta[M_LAWS]
    if laws & L_INTERSECTION:
        flatten_and_sort(nodes, arguments, scratch, meta, base, K_INTERSECTION)
        kept, byte_set = base, np.int64(-1)
        for k in range(base, meta[M_SCRATCH]):
            part = np.int64(scratch[k])
            if part == ANY_BYTES:
                continue
            if nodes[part, 0] & 0xFF == K_BYTES:
                if byte_set >= 0:
                    part = _combine_sets(nodes, arguments, table, scratch, meta, byte_set, part, True)
                byte_set = part
                if part == NOTHING:
                    break
                continue
            scratch[kept] = part
            kept += 1
        meta[M_SCRATCH] = kept
        if byte_set >= 0:
            push(scratch, meta, byte_set)
            flatten_and_sort(nodes, arguments, scratch, meta, base, K_INTERSECTION)
    count = meta[M_SCRATCH] - base
    nothing = meta[M_STATUS] != OK
    nullable, has_empty, flags = True, False, F_BOOLEAN
    for k in range(base, meta[M_SCRATCH]):
        part = scratch[k]
        nothing |= part == NOTHING
        has_empty |= part == EMPTY
        nullable &= nodes[part, 0] & F_NULLABLE != 0
        flags |= nodes[part, 0] & F_PARTS
        if laws & L_INTERSECTION and nodes[part, 0] & 0xFF == K_COMPLEMENT:
            count_work(meta, count >> 6)
            for j in range(base, meta[M_SCRATCH]):
                nothing |= scratch[j] == nodes[part, 1]
    asserts = flags & F_ASSERTS != 0
    if nothing or (has_empty and not nullable and not asserts):
        meta[M_SCRATCH] = base
        return np.int64(NOTHING)
    if has_empty and not asserts:
        meta[M_SCRATCH] = base
        return np.int64(EMPTY)
    if count <= 1:
        meta[M_SCRATCH] = base
        return np.int64(scratch[base]) if count else np.int64(ANY_BYTES)
    flags |= F_NULLABLE | F_INHABITED if nullable else 0
    return intern_parts(nodes, arguments, table, scratch, meta, K_INTERSECTION | flags, base)


@kernel
def make_complement_kernel(nodes, arguments, table, scratch, meta, body):  # type: ignore[no-untyped-def]
    """All byte strings outside `body`."""
    word = nodes[body, 0]
    if meta[M_LAWS] & L_COMPLEMENT:
        if word & 0xFF == K_COMPLEMENT:
            return np.int64(nodes[body, 1])
        if body == NOTHING:
            return np.int64(ANY_BYTES)
        if body == ANY_BYTES:
            return np.int64(NOTHING)
    flags = F_BOOLEAN | (word & F_PARTS)
    if not word & (F_NULLABLE | F_ASSERTS):
        flags |= F_NULLABLE | F_INHABITED
    return intern_node_kernel(nodes, arguments, table, scratch, meta, K_COMPLEMENT | flags, body, 0, 0)


@kernel
def make_literal_kernel(nodes, arguments, table, scratch, meta, code, first, end):  # type: ignore[no-untyped-def]
    """The bytes in `code` (int32) from `first` to before `end`, one after another."""
    result = np.int64(EMPTY)
    for k in range(end - 1, first - 1, -1):
        base = meta[M_SCRATCH]
        for word in range(8):
            bit = np.int32(np.uint32(1) << np.uint32(code[k] & 31))
            push(scratch, meta, bit if word == code[k] >> 5 else np.int32(0))
        head = intern_parts(nodes, arguments, table, scratch, meta, K_BYTES | F_INHABITED, base)
        result = join(nodes, arguments, table, scratch, meta, head, result)
        if meta[M_STATUS] != OK:
            return np.int64(NOTHING)
    return result
