"""The chain of an object's declared members: see `tokdfa.json_schema.write.lower_object`."""

from libc.stdint cimport int32_t

from tokdfa.program.builder cimport ProgramBuilder, number_at
from tokdfa.program.operations cimport CALL, TERMINAL

from tokdfa.core.budget import spend
from tokdfa.json_schema.solve.clauses import LOOKUP_WORK


def write_members(ProgramBuilder writer, plan, int32_t table, list beside, int32_t other, int32_t after, int32_t more):
    """See members.pyi."""
    cdef int32_t comma = writer.comma, colon = writer.colon, close = writer.close_object, number, value, key
    cdef tuple states = plan.states, required = plan.required
    cdef dict known = writer.readers_of
    cdef int32_t targets = writer.reserve_targets(len(states)), reach = len(states) - 1, k
    cdef bint is_done = True
    writer.check_other(other)
    places = [(more, after)]
    for k in range(reach, -1, -1):
        state = states[k]
        readers = known.get(state)
        if readers is None:
            readers = writer.readers(state)
        if readers is not None and len(readers) == 1:
            number = readers[0]
            value = writer.put(TERMINAL, number, after) if number >= 0 else writer.put(CALL, ~number, after)
        else:
            value = writer.value(state, after)
        value = writer.put(TERMINAL, colon, value)
        number_at(writer.arguments, targets + k)[0] = value
        if required[k]:
            is_done, reach, other = False, k, -1
        key = writer.window(table, k, reach, targets + k, other)
        if is_done and beside:
            spend(LOOKUP_WORK * len(beside))
            key = writer.any_of([*beside, key])
        after = writer.put(TERMINAL, comma, key)
        if is_done:
            after = writer.either(close, after)
        places.append((key, after))
    places.reverse()
    return places
