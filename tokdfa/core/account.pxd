from libc.stdint cimport int64_t

# Count work, in nanoseconds, and bytes that are kept towards the thread's budget (`tokdfa.core.budget.spend`).
cdef int take(int64_t work, int64_t nbytes) except -1
