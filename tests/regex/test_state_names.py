"""Names of states against the trees of strings that they stand for."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tokdfa.automata.algebra import minimize
from tokdfa.automata.dfa import Dfa
from tokdfa.regex.state_names import name_soon, name_states

#: The classes of the bytes below 0x80, in runs, and of those above.
RUNS = ([0, 1, 0, 2], [1, 2, 2, 0], [0, 0, 1, 2])


@st.composite
def automata(draw: st.DrawFn) -> Dfa:
    """Minimal automata of three classes of bytes."""
    count = draw(st.integers(1, 7))
    targets = st.integers(-1, count - 1)
    rows = draw(st.lists(st.lists(targets, min_size=3, max_size=3), min_size=count, max_size=count))
    accepting = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    byte_class = np.repeat(np.array(draw(st.sampled_from(RUNS)), dtype=np.uint8), 64)
    return minimize(Dfa(np.array(rows, dtype=np.int32), byte_class, np.array(accepting), 0))


def tree(dfa: Dfa, state: int, depth: int) -> object:
    """Which strings of up to `depth` bytes are alive from a state, and which of fewer bytes match."""
    if depth == 0:
        return True
    targets = dfa.transitions[state][dfa.byte_class[32::64]].tolist()
    below = tuple(tree(dfa, target, depth - 1) if target >= 0 else None for target in targets)
    return bool(dfa.accepting[state]), below


@given(st.lists(automata(), min_size=1, max_size=3), st.integers(0, 4), st.integers(0, 50))
def test_equal_names_stand_for_equal_trees(many: list[Dfa], depth: int, first: int) -> None:
    found: dict[bytes, object] = {}
    for dfa in many:
        moved = np.where(dfa.transitions >= 0, dfa.transitions + first, -1).astype(np.int32)
        names = name_states(moved, dfa.accepting, dfa.byte_class, depth, first)
        assert names.shape == (dfa.state_count, 2)
        for state, name in enumerate(names):
            assert found.setdefault(name.tobytes(), tree(dfa, state, depth)) == tree(dfa, state, depth)
    assert len(set(map(repr, found.values()))) == len(found)


@given(st.lists(automata(), min_size=1, max_size=3), st.integers(0, 4))
def test_names_of_few_states_tell_trees_apart(many: list[Dfa], depth: int) -> None:
    found: dict[bytes, object] = {}
    for dfa in many:
        named: dict[int, bytes] = {}
        for start in range(dfa.state_count):
            states, names = name_soon(dfa.transitions, dfa.accepting, dfa.byte_class, depth, start)
            assert states[0] == start
            for state, name in zip(states.tolist(), names, strict=True):
                assert named.setdefault(state, name.tobytes()) == name.tobytes()
                assert found.setdefault(name.tobytes(), tree(dfa, state, depth)) == tree(dfa, state, depth)
