"""Shared stacks against plain lists."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.backends.cfg_fsm.oracles import corpus
from tokdfa.backends.cfg_fsm.lark_tables import LalrTables, read_tables
from tokdfa.backends.cfg_fsm.stacks import REFUSED, Stacks
from tokdfa.errors import LimitExceeded


def shift_plainly(tables: LalrTables, stack: list[int], column: int) -> list[int] | None:
    """The LALR driver on a list, as every textbook has it; at the end of the text, the stack that accepts."""
    stack = stack.copy()
    while True:
        action = int(tables.actions[stack[-1], column])
        if action == 0:
            return None
        if action > 0:
            return [*stack, action - 1]
        rule = -action - 1
        del stack[len(stack) - int(tables.rule_lengths[rule]) :]
        stack.append(int(tables.gotos[stack[-1], tables.rule_lefts[rule]]))
        if column == tables.actions.shape[1] - 1 and stack[-1] == tables.end:
            return stack


def new_stacks(tables: LalrTables, limit: int = 100_000) -> Stacks:
    return Stacks(tables, np.zeros(len(tables.actions), dtype=np.int32), limit)


@pytest.mark.parametrize("name", ["json", "arithmetic", "python_like", "c_like"])
def test_stacks_are_those_of_a_plain_driver(name: str) -> None:
    tables, rng = read_tables(corpus(name)[0]), random.Random(name)
    stacks, columns = new_stacks(tables), tables.actions.shape[1] - 1
    numbers: dict[tuple[int, ...], int] = {}
    for _ in range(40):
        stack, plain = 0, [tables.start]
        for _ in range(25):
            assert stacks.states(stack) == plain
            assert stacks.depths[stack] == len(plain)
            assert numbers.setdefault(tuple(plain), stack) == stack, "equal stacks have equal numbers"
            followers = [(column, shift_plainly(tables, plain, column)) for column in range(columns)]
            for column, following in followers:
                assert stacks.takes(stack, column) == (following is not None)
            assert stacks.takes(stack, columns) == (shift_plainly(tables, plain, columns) is not None)
            possible = [(column, following) for column, following in followers if following is not None]
            if not possible:
                break
            column, plain = rng.choice(possible)
            stack = stacks.shift(stack, column)
    assert len(numbers) > 5


def shift_often(stacks: Stacks, stack: int, column: int) -> None:
    for _ in range(10_000):
        stack = stacks.shift(stack, column)


def test_deep_stacks_and_their_limit() -> None:
    tables = read_tables('start: "(" start ")" | "a"')
    column = [terminal.value for terminal in tables.terminals].index("(")
    stacks, stack = new_stacks(tables, limit=5_000), 0
    for depth in range(3_000):
        assert stacks.count == depth + 1
        stack = stacks.shift(stack, column)
    assert len(stacks.states(stack)) == 3_001
    with pytest.raises(LimitExceeded, match="max_stacks"):
        shift_often(stacks, stack, column)
    assert stacks.count == 5_000
    assert stacks.shift(0, column) == 1, "what was made stays usable"
    assert stacks.shift(0, stacks.terminal_count - 1) in (REFUSED, *range(stacks.count))
