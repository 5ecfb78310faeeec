# The numbers of `tokdfa.program.program` for compiled code: operations, and columns of arguments.


cdef enum:
    RETURN = 0
    ANY = 1
    CALL = 2
    TERMINAL = 3
    TOKEN = 4
    NAMES = 5
    COUNTED = 6
    LAZY = 7
    NAMES_TABLE = 0
    NAMES_LOW = 1
    NAMES_HIGH = 2
    NAMES_OTHER = 3
    NAMES_TARGETS = 4
    COUNTED_TERMINAL = 0
    COUNTED_MINIMUM = 1
    COUNTED_CAP = 2
    COUNTED_NEXT = 3
    COUNTED_BEYOND = 4
    UNBOUNDED = 2147393647  # (1 << 31) - 1 - COUNT_LIMIT
    RETURN_PLACE = 0
