"""How long a cycle of the processor takes, without hardware counters: by a chain of operations in which each waits.

``x = (x + a) ^ b``: an addition and an exclusive or take one cycle each on every x86-64 and ARM64 core of the last
decades, each needs the result of the one before, and no compiler knows a shorter way to the end of the chain. So a turn
of the loop takes two cycles, and what else the loop does fits beside it. Clocks change with load and heat: measure
cycles where and when the time was measured that is to be divided by them.
"""

from libc.stdint cimport int64_t, uint64_t

import statistics
import time

#: Cycles of a turn, and turns of a measurement: some 50 us.
CYCLES_PER_TURN, TURNS = 2, 100_000


def cycle_ns(int runs=21):
    """Nanoseconds a cycle: the median of `runs` measurements, one or two milliseconds together."""
    samples = []
    for _ in range(runs):
        started = time.perf_counter_ns()
        run_chain(TURNS, 0x9E3779B9, 0x7F4A7C15)
        samples.append(time.perf_counter_ns() - started)
    return statistics.median(samples) / (CYCLES_PER_TURN * TURNS)


def run_chain(int64_t turns, uint64_t a, uint64_t b):
    """What the chain comes to after so many turns, so that it is not left out."""
    cdef uint64_t x = 0
    cdef int64_t _
    for _ in range(turns):
        x = (x + a) ^ b
    return x
