"""How long a cycle of the processor takes, without hardware counters: by a chain of operations in which each waits.

``x = (x + a) ^ b``: an addition and an exclusive or take one cycle each on every x86-64 and ARM64 core of the last
decades, each needs the result of the one before, and no compiler knows a shorter way to the end of the chain. So a turn
of the loop takes two cycles, and what else the loop does fits beside it. Clocks change with load and heat: measure
cycles where and when the time was measured that is to be divided by them.
"""

from __future__ import annotations

import time

import numpy as np

from tokdfa.core.jit import kernel

#: Cycles of a turn, and turns of a measurement: some 50 us.
CYCLES_PER_TURN, TURNS = 2, 100_000


def cycle_ns(runs: int = 21) -> float:
    """Nanoseconds a cycle: the median of `runs` measurements, one or two milliseconds together."""
    one, other = np.int64(0x9E3779B9), np.int64(0x7F4A7C15)
    _run_chain_kernel(1, one, other)
    samples = []
    for _ in range(runs):
        started = time.perf_counter_ns()
        _run_chain_kernel(TURNS, one, other)
        samples.append(time.perf_counter_ns() - started)
    return float(np.median(samples)) / (CYCLES_PER_TURN * TURNS)


@kernel
def _run_chain_kernel(turns, a, b):  # type: ignore[no-untyped-def]
    """What the chain comes to, so that it is not left out."""
    x = np.int64(0)
    for _ in range(turns):
        x = (x + a) ^ b
    return x


def _warm_up() -> None:
    """Compile the kernel."""
    cycle_ns(1)
