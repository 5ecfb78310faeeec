from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tokdfa.token_automata.liveness import live_states

graphs = st.integers(1, 12).flatmap(
    lambda states: st.tuples(
        st.lists(st.lists(st.integers(0, states - 1), max_size=4), min_size=states, max_size=states),
        st.lists(st.booleans(), min_size=states, max_size=states),
    )
)


@settings(max_examples=300)
@given(graphs)
def test_live_states_are_those_that_reach_acceptance(graph: tuple[list[list[int]], list[bool]]) -> None:
    rows, accepting = graph
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    targets = np.array([target for row in rows for target in row], dtype=np.int32)
    expected = set()
    for state in range(len(rows)):
        reached, agenda = {state}, [state]
        while agenda:
            for target in rows[agenda.pop()]:
                if target not in reached:
                    reached.add(target)
                    agenda.append(target)
        if any(accepting[other] for other in reached):
            expected.add(state)
    live = live_states(offsets, targets, np.array(accepting))
    assert set(np.flatnonzero(live).tolist()) == expected
