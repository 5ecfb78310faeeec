"""Budgets: counted work and memory, from Python and from compiled code, by thread; and Ctrl-C in the latter."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

from tokdfa.automata.pairs import explore_pairs
from tokdfa.core.budget import Budget, hold, spend, spending
from tokdfa.errors import LimitExceeded


def explore(size: int) -> int:
    """How many pairs of states two cycles come to, `size` * (`size` + 1): compiled code, 5 ns of counted work each."""
    first, second = (np.roll(np.arange(length, dtype=np.int32), -1)[:, None] for length in (size, size + 1))
    return len(explore_pairs(first, second, (0, 0), (True, True), 1 << 40)[0])


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


def test_compiled_code_stops_where_its_budget_ends() -> None:
    with spending(Budget(1e-3, 1), "a test") as account, pytest.raises(LimitExceeded, match="a test"):
        explore(100_000)
    assert 1_000_000 < account.work_done <= 1_000_000 + 5 * 65_536
    assert explore(1_000) == 1_001_000  # without a budget it goes on to its end


@pytest.mark.usefixtures("interruptible")
def test_control_c_ends_compiled_code() -> None:
    alarm = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    alarm.start()
    with pytest.raises(KeyboardInterrupt):
        explore(100_000)
    alarm.join()
