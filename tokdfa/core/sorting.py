"""Sorting and bisection in kernels. numba's own sort is six kernels for each type of array, compiled before anything is
sorted.
"""

from __future__ import annotations

from tokdfa.core.jit import kernel

#: Up to so many values are sorted by insertion.
FEW = 24


@kernel
def sort_range(values, begin, end):  # type: ignore[no-untyped-def]
    """Sort values[begin:end], integers, in place: by insertion if they are few, else as a heap (Williams 1964).

    O(n log n), no memory.
    """
    if end - begin <= FEW:
        for k in range(begin + 1, end):
            value = values[k]
            place = k
            while place > begin and values[place - 1] > value:
                values[place] = values[place - 1]
                place -= 1
            values[place] = value
        return
    # First the heap is made, from its last inner node up; then its largest value goes behind it, again and again.
    root, stop = (end - begin) // 2, end - begin
    while stop > 1:
        if root > 0:
            root -= 1
            value = values[begin + root]
        else:
            stop -= 1
            value = values[begin + stop]
            values[begin + stop] = values[begin]
        hole, child = root, 2 * root + 1
        while child < stop:
            if child + 1 < stop and values[begin + child + 1] > values[begin + child]:
                child += 1
            if values[begin + child] <= value:
                break
            values[begin + hole] = values[begin + child]
            hole, child = child, 2 * child + 1
        values[begin + hole] = value


@kernel
def sort_distinct(values, begin, end):  # type: ignore[no-untyped-def]
    """Sort values[begin:end] and drop repetitions; the new end."""
    sort_range(values, begin, end)
    kept = begin
    for k in range(begin, end):
        if kept == begin or values[k] != values[kept - 1]:
            values[kept] = values[k]
            kept += 1
    return kept


@kernel(inline=True)
def find_least(values, low, high, wanted):  # type: ignore[no-untyped-def]
    """The first place in values[low:high], which ascend, whose value is `wanted` or more; `high` if there is none."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low
