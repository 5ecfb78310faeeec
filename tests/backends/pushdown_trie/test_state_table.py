from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tokdfa.backends.pushdown_trie.rows import ACCEPTS, ENDS, LOOPS, SHORTEST, WIDE
from tokdfa.backends.pushdown_trie.state_table import (
    LEAST_INTO_LOOPS,
    MOST_BYTES,
    WIDE_BYTES,
    StateTable,
)


def flags_twin(table: np.ndarray, byte_class: np.ndarray, accepting: np.ndarray) -> np.ndarray:
    """What the flags of states mean, over whole arrays."""
    live = table >= 0
    sizes = np.bincount(byte_class, minlength=table.shape[1])
    counts = live @ sizes
    few = counts < WIDE_BYTES
    loops = (table == np.arange(len(table))[:, None]).any(axis=1) & few
    into = (live & loops[np.maximum(table, 0)]) @ sizes >= LEAST_INTO_LOOPS
    flags = np.where(accepting, ACCEPTS, 0) | np.where(counts == 0, ENDS, 0) | np.where(few, 0, WIDE)
    return (flags | np.where((loops | into) & few | ~few & (counts < MOST_BYTES), LOOPS, 0)).astype(np.uint8)


@given(st.integers(0, 1 << 30), st.integers(1, 6), st.integers(1, 12), st.booleans())
def test_states_are_entered_as_their_arrays_say(seed: int, states: int, classes: int, is_shortest: bool) -> None:
    draw = np.random.default_rng(seed)
    table = draw.integers(-2, states, (states, classes)).clip(-1).astype(np.int32)
    byte_class = np.sort(draw.integers(0, classes, 256)).astype(np.uint8)
    accepting = draw.integers(0, 2, states).astype(np.bool_)
    entering = StateTable()
    entering.enter(np.full((2, 1), -1, dtype=np.int32), np.zeros(256, dtype=np.uint8), np.ones(2, dtype=bool), False)
    first = entering.enter(table, byte_class, accepting, is_shortest)
    assert (first, entering.state_count) == (3, 3 + states)
    columns, entered = table[:, byte_class], slice(first, first + states)
    transitions = entering.transitions.reshape(-1, 256)
    np.testing.assert_array_equal(transitions[entered], np.where(columns >= 0, columns + first, -1))
    reads = np.unpackbits(entering.reads[entered].view(np.uint8), axis=1, bitorder="little")
    np.testing.assert_array_equal(reads, columns >= 0)
    expected = flags_twin(table, byte_class, accepting) | (SHORTEST if is_shortest else 0)
    np.testing.assert_array_equal(entering.flags[entered], expected)
    assert (entering.flags[1:first] == ACCEPTS | ENDS).all()
    assert not entering.flags[first + states :].any()
