"""The chain is really run, and a cycle is what it takes divided by its operations."""

from __future__ import annotations

import time

import pytest

from tokdfa.vocabulary import cycle_clock


@pytest.mark.parametrize("turns", [0, 1, 7, 1000])
def test_the_chain_is_that_of_plain_numbers(turns: int) -> None:
    a, b, found = 0x9E3779B9, 0x7F4A7C15, 0
    for _ in range(turns):
        found = ((found + a) ^ b) & (1 << 64) - 1
    assert cycle_clock.run_chain(turns, a, b) == found


def test_a_cycle_is_half_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([0, 60_000, 100_000, 150_000, 200_000, 310_000])
    monkeypatch.setattr(time, "perf_counter_ns", lambda: next(ticks))
    assert cycle_clock.cycle_ns(3) == 60_000 / 200_000
