from tokdfa.json_schema.sets.number_rows cimport Row


# Write the state after one behind e or E and a byte of a column, in place; False if surely no text goes on this way.
cdef bint follow_exponent(Row* row, int column) noexcept nogil
