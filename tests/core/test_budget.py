"""Budgets: counted work and memory, from Python and from kernels, by thread; and what Ctrl-C does to a kernel."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

from tokdfa.core.budget import Budget, hold, spend, spending
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_budget import pay
from tokdfa.errors import LimitExceeded


@kernel
def _count_inner_kernel(steps, done):  # type: ignore[no-untyped-def]
    for k in range(steps):
        done[0] += 1
        if k & 0xFFFF == 0xFFFF:
            pay(np.int64(65_536))


@kernel
def _count_kernel(steps, done):  # type: ignore[no-untyped-def]
    _count_inner_kernel(steps, done)
    return done[0]


def test_work_adds_up_until_the_limit() -> None:
    with spending(Budget(1e-6, 1), "a test") as account:
        for _ in range(10):
            spend(100)
        with pytest.raises(LimitExceeded, match="compile_seconds") as raised:
            spend(1)
    assert (raised.value.limit, raised.value.value) == ("compile_seconds", 1e-6)
    assert account.work_done == 1_001


def test_memory_adds_up_until_the_limit_and_can_be_given_back() -> None:
    with spending(Budget(1, 1, "step"), "a test"):
        hold(1 << 20)
        hold(-(1 << 19))
        hold(1 << 19)
        with pytest.raises(LimitExceeded, match="step_mb"):
            hold(1)


def test_without_a_budget_nothing_is_refused() -> None:
    spend(10**18)
    hold(10**18)


def test_the_outermost_budget_rules_and_ends_with_its_block() -> None:
    with spending(Budget(1e-6, 1), "outside"):
        with spending(Budget(1, 1), "inside"), pytest.raises(LimitExceeded, match="outside"):
            spend(1_001)
        with pytest.raises(LimitExceeded, match="outside"):
            spend(0)
    spend(10**18)


def test_a_budget_belongs_to_its_thread() -> None:
    with spending(Budget(1e-6, 1), "a test"):
        other = threading.Thread(target=spend, args=(10**18,))
        other.start()
        other.join()
        spend(1_000)


def test_a_kernel_stops_where_its_budget_ends() -> None:
    done = np.zeros(1, dtype=np.int64)
    with spending(Budget(1e-3, 1), "a test"), pytest.raises(LimitExceeded, match="a test"):
        _count_kernel(10**9, done)
    assert done[0] == -(-1_000_000 // 65_536) * 65_536
    assert _count_kernel(100_000, done) == done[0]  # without a budget it goes on to its end


def test_control_c_ends_a_kernel() -> None:
    done = np.zeros(1, dtype=np.int64)
    _count_kernel(1, done)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it
    alarm = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    try:
        alarm.start()
        with pytest.raises(KeyboardInterrupt):
            _count_kernel(10**11, done)
    finally:
        alarm.join()
        signal.signal(signal.SIGINT, before)
