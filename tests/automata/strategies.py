"""Random automata and expressions. LETTERS are the bytes that they treat differently; OTHER stands for all the rest."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests.naive.automata import PlainDfa
from tokdfa.automata.dfa import Dfa

LETTERS = b"\x00ab\xff"
OTHER = ord("z")
ALPHABET = LETTERS + bytes([OTHER])


def plain(dfa: Dfa) -> PlainDfa:
    return PlainDfa.from_arrays(dfa.transitions, dfa.byte_class, dfa.accepting, dfa.start)


@st.composite
def dfas(draw, most_states: int = 6, least_states: int = 0, others_die: bool = False) -> Dfa:
    """Any automaton over LETTERS and the rest, with dead and unreachable states and its classes in any order."""
    states = draw(st.integers(least_states, most_states))
    class_of = draw(st.lists(st.integers(0, 4), min_size=5, max_size=5))
    if others_die:
        class_of[4] = 5
    used = sorted(set(class_of))
    byte_class = np.full(256, used.index(class_of[4]))
    for letter, number in zip(LETTERS, class_of, strict=False):
        byte_class[letter] = used.index(number)
    if states == 0:
        return Dfa(np.zeros((0, len(used)), np.int32), byte_class, np.zeros(0, bool), -1)
    targets = st.one_of(st.just(-1), st.integers(0, states - 1), st.integers(0, states - 1))
    cells = draw(st.lists(targets, min_size=states * len(used), max_size=states * len(used)))
    transitions = np.array(cells).reshape(states, len(used))
    if others_die:
        transitions[:, byte_class[OTHER]] = -1
    accepting = draw(st.lists(st.booleans(), min_size=states, max_size=states))
    return Dfa(transitions, byte_class, np.array(accepting), draw(st.integers(0, states - 1)))


def byte_set(members: bytes) -> tuple:
    flags = np.zeros(256, dtype=np.bool_)
    flags[list(members)] = True
    return ("bytes", flags)


def trees(leaves: int = 6) -> st.SearchStrategy[tuple]:
    """Any expression over LETTERS."""
    atoms = st.one_of(
        st.sampled_from([("empty",), ("nothing",)]),
        st.sets(st.sampled_from(list(LETTERS)), min_size=1).map(lambda members: byte_set(bytes(members))),
        st.sampled_from(list(LETTERS)).map(lambda member: byte_set(bytes([member]))),
    )

    def extend(parts: st.SearchStrategy[tuple]) -> st.SearchStrategy[tuple]:
        bounds = st.tuples(st.integers(0, 2), st.one_of(st.none(), st.integers(0, 2)))
        return st.one_of(
            st.lists(parts, max_size=3).map(lambda parts: ("concat", parts)),
            st.lists(parts, max_size=3).map(lambda parts: ("union", parts)),
            st.tuples(parts, bounds).map(
                lambda drawn: ("repeat", drawn[0], drawn[1][0], None if drawn[1][1] is None else sum(drawn[1]))
            ),
        )

    return st.recursive(atoms, extend, max_leaves=leaves)
