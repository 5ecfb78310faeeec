from libc.stdint cimport int32_t


# Where an int32 array begins, which the caller keeps. ValueError unless it has `size` entries; -1: any number.
cdef const int32_t* int32_data(object array, Py_ssize_t size) except? NULL


# The rule with this right part among the rules begin .. end - 1, a row of `MergeRules`, or -1. Bisection without
# branches.
cdef inline int32_t find_rule(const int32_t* rule_right, int32_t begin, int32_t end, int32_t right) noexcept nogil:
    cdef int32_t place = begin, count = end - begin, half
    while count > 1:
        half = count >> 1
        place += half * (rule_right[place + half - 1] < right)
        count -= half
    return place if count and rule_right[place] == right else -1
