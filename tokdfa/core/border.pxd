# Where compiled code meets Python: work that counts towards a budget, and vectors that become numpy arrays.

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

from tokdfa.core.account cimport take


cdef enum:
    # Units of work (nodes, entries, moves) before a loop lets go of the interpreter's lock: beside a thread that runs
    # Python it may take 5 ms to come back.
    HELD_WORK = 4096
    # Units of work between two calls of `pay`.
    PAID_WORK = 1 << 16


cdef inline int pay(int64_t work, int64_t nbytes) except -1 with gil:
    """Count work in nanoseconds, and bytes that are kept (`tokdfa.core.budget.spend`), and handle signals."""
    PyErr_CheckSignals()
    return take(work, nbytes)


cdef inline object int32_array(const vector[int32_t]& values):
    """A copy of the values: int32, shape (n,)."""
    from numpy import empty

    array = empty(values.size(), dtype="int32")
    cdef int32_t[::1] out = array
    if out.shape[0]:
        memcpy(&out[0], &values[0], 4 * values.size())
    return array


cdef inline object int64_array(const vector[int64_t]& values):
    """A copy of the values: int64, shape (n,)."""
    from numpy import empty

    array = empty(values.size(), dtype="int64")
    cdef int64_t[::1] out = array
    if out.shape[0]:
        memcpy(&out[0], &values[0], 8 * values.size())
    return array
