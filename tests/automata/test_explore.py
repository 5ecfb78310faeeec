from __future__ import annotations

import numpy as np
import pytest

from tokdfa.automata.explore import explore
from tokdfa.errors import AutomatonError, LimitExceeded

#: classes: everything else, a, b
BY_LETTER = np.zeros(256, dtype=np.uint8)
BY_LETTER[ord("a")], BY_LETTER[ord("b")] = 1, 2


def test_states_are_numbered_breadth_first_by_value():
    # a^n b^n for n < 3: states are (how many a, how many b)
    def successors(state):
        a, b = state
        yield None
        yield (a + 1, b) if b == 0 and a < 2 else None
        yield (a, b + 1) if b < a else None

    dfa = explore((0, 0), successors, lambda state: state[0] == state[1], BY_LETTER)
    # in order: (0,0) (1,0) (2,0) (1,1) (2,1) (2,2)
    assert dfa.transitions.tolist() == [[-1, 1, -1], [-1, 2, 3], [-1, -1, 4], [-1, -1, -1], [-1, -1, 5], [-1, -1, -1]]
    assert dfa.accepting.tolist() == [True, False, False, True, False, True]
    assert [dfa.accepts(word) for word in (b"", b"ab", b"aabb", b"abab", b"aab", b"c")] == [True] * 3 + [False] * 3


def test_the_limit_is_the_number_of_states():
    def count_to(last, limit):
        return explore(
            0, lambda state: [None, state + 1 if state < last else None, None], lambda _: True, BY_LETTER, limit
        )

    assert count_to(9, limit=10).state_count == 10
    with pytest.raises(LimitExceeded, match=r"more than 10 states; .* pass a larger limit than limit=10") as error:
        count_to(10, limit=10)
    assert (error.value.limit, error.value.value) == ("states", 10)
    with pytest.raises(LimitExceeded):  # endless
        count_to(float("inf"), limit=1000)


@pytest.mark.parametrize("wrong", [[None, None], [None] * 4, []])
def test_each_class_needs_an_answer(wrong):
    with pytest.raises(AutomatonError, match=f"state 0 has {len(wrong)} successors; there are 3 byte classes"):
        explore(0, lambda state: wrong, lambda state: True, BY_LETTER)
