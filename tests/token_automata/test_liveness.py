from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tokdfa.constraint import Regex
from tokdfa.regex.compile import compile_dfa
from tokdfa.token_automata.liveness import cannot_spell, live_states, spells_every_byte
from tokdfa.vocabulary.vocabulary import Vocabulary

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


def test_the_error_names_as_few_bytes_as_possible() -> None:
    vocab = Vocabulary([b"a", b"b", b"bc", b""], end_tokens=[3], name="abc")
    assert cannot_spell(compile_dfa(Regex("axx|ayz|xyzw")), vocab, "x").missing == b"x"
    error = cannot_spell(compile_dfa(Regex("ac")), vocab, "ac")
    assert error.missing == b"c"
    assert "only inside longer tokens" in str(error)
    assert "0x0A" in str(cannot_spell(compile_dfa(Regex(r"\n")), vocab, "newline"))


def test_single_bytes_decide() -> None:
    vocab = Vocabulary([b"a", b"bc", b""], end_tokens=[2])
    read = np.zeros(256, dtype=np.bool_)
    assert spells_every_byte(vocab, read)
    read[ord("a")] = True
    assert spells_every_byte(vocab, read)
    read[ord("b")] = True
    assert not spells_every_byte(vocab, read)
