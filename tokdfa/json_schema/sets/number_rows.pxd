# The states of the automaton of a number set: see number_states.pyx.

from libc.stdint cimport int32_t


cdef enum:  # kinds of states, by an example
    START            # nothing yet
    SIGN             # -
    ZERO_POINT       # 0.
    ZERO             # 0
    ZEROS            # 0.00
    POINT            # 12.
    WHOLE            # 12
    FRACTION_DIGITS  # 12.3
    EXPONENT         # 12e
    SIGNED           # 12e+0
    COUNTED          # 12e+4, and only the number of digits to come matters


cdef enum:
    LESS = -1, EQUAL, MORE             # comparisons
    OFF_GRID = -3, BAD, GOOD           # what a residue becomes once all digits that divisors depend on are read
    LOWER = 0, UPPER                   # bounds
    PLUS = 1, MINUS, DOT, DIGIT_0      # columns, by their smallest bytes: others, + - . and the ten digits, e and E
    COLUMN_COUNT = 15


cdef struct Row:  # a field that a kind does not need is 0; all are small, as numbers have few digits
    int32_t kind
    int32_t side             # 1 for negative numbers
    int32_t read             # how many significant digits
    int32_t versus[2]        # the comparison with each bound
    int32_t settled          # 1: only the interval is left of the comparisons
    int32_t k                # if settled: whether the mantissa is in the set as it is; behind e: what has been read of
    #                          the exponent, -1 before any digit
    int32_t from_x, to_x     # the interval of exponents; where digits are counted, of how many follow
    int32_t last             # l, or 1 for any l above 0 that from_x has taken account of; -1 if there is no exponent
    int32_t place            # how many fraction digits
    int32_t residue          # the trackers' state, or what has become of it
