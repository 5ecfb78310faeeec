"""Minimal automata against Brzozowski's double reversal (plain) and against interegular's minimal FSM."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.automata.strategies import ALPHABET, dfas, plain
from tests.strategies import examples
from tokdfa.automata.dfa import Dfa
from tokdfa.automata.minimize import minimize


def same_arrays(a: Dfa, b: Dfa) -> bool:
    return a.start == b.start and all(
        np.array_equal(getattr(a, name), getattr(b, name)) for name in ("transitions", "byte_class", "accepting")
    )


@examples(120)
@given(dfas(most_states=8))
def test_size_and_language_equal_the_plain_ones(dfa):
    minimal = minimize(dfa)
    assert minimal.state_count == plain(dfa).minimal_state_count()
    assert plain(minimal).language(ALPHABET, 4) == plain(dfa).language(ALPHABET, 4)


@given(dfas(least_states=1), st.integers(0, 2**32 - 1))
def test_equal_languages_have_equal_arrays(dfa, seed):
    """Split each state into copies, shuffle states and classes, add unreachable states: nothing changes."""
    rng = np.random.default_rng(seed)
    copies, states = 3, dfa.state_count
    names = rng.permutation(copies * states)  # copy c of state s is names[c * states + s]
    table = np.empty((copies * states, 256), dtype=int)
    accepting = np.empty(copies * states, dtype=bool)
    for copy in range(copies):
        targets = dfa.byte_table()
        some_copy = names[targets + states * rng.integers(0, copies, targets.shape)]
        table[names[copy * states : (copy + 1) * states]] = np.where(targets < 0, -1, some_copy)
        accepting[names[copy * states : (copy + 1) * states]] = dfa.accepting
    byte_class = rng.permutation(256)  # finer classes than needed, in any order
    shuffled = Dfa(table[:, np.argsort(byte_class)], byte_class, accepting, int(names[dfa.start]))
    assert plain(shuffled).language(ALPHABET, 3) == plain(dfa).language(ALPHABET, 3)
    assert same_arrays(minimize(shuffled), minimize(dfa))


@given(dfas(most_states=3), dfas(most_states=3))
def test_different_languages_have_different_arrays(a, b):
    # Words up to |a| + |b| bytes tell apart any two automata of |a| and |b| states.
    languages = [plain(dfa).language(ALPHABET, 5) for dfa in (a, b)]
    assert same_arrays(minimize(a), minimize(b)) == (languages[0] == languages[1])


# fmt: on
