"""Where texts have characters, and how many at least: against texts one by one."""

from __future__ import annotations

from collections import deque

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tokdfa.automata.dfa import Dfa
from tokdfa.json_schema.sets.string_set import StringSet, string_automaton
from tokdfa.program.json_text import BODY, read_characters, string_dfa

patterns = st.lists(
    st.tuples(st.sampled_from(["a", "[ab]", "é", "[^a]", "\\n", "(?:ab|cd)", "\U0001f600"]), st.sampled_from("?*+ ")),
    min_size=1,
    max_size=4,
).map(lambda parts: "^" + "".join(body + repeat.strip() for body, repeat in parts) + "$")


def after(dfa: Dfa, state: int) -> set[tuple[int, int]]:
    """(byte, target) of all moves."""
    return {(byte, target) for byte in range(256) if (target := dfa.step(state, byte)) >= 0}


@given(patterns, st.sampled_from(["all", "needed"]))
@settings(max_examples=40, deadline=None)
def test_characters_of_patterns(pattern: str, escapes) -> None:
    dfa = string_automaton(StringSet(patterns=(pattern,)), escapes, 100_000)
    assert isinstance(dfa, Dfa)
    strings, met, agenda = string_dfa("all"), {(0, 0)}, deque([(0, 0)])
    while agenda:
        state, string = agenda.popleft()
        for byte, target in after(dfa, state):
            pair = target, strings.step(string, byte)
            assert pair[1] >= 0
            if pair not in met:
                met.add(pair)
                agenda.append(pair)
    found, kinds = (
        read_characters(dfa),
        [{string == BODY for at, string in met if at == state} for state in range(dfa.state_count)],
    )
    if any(len(kind) > 1 for kind in kinds):
        assert found is None
        return
    assert found is not None
    assert found.begins.tolist() == [int(kind == {True}) for kind in kinds]
    # characters that are begun on the shortest way: ends have none before them
    ways = [[target for _, target in after(dfa, state)] for state in range(dfa.state_count)]
    least = [0 if ends else dfa.state_count for ends in dfa.accepting.tolist()]
    for _ in range(dfa.state_count):
        for state, targets in enumerate(ways):
            for target in targets:
                begun = 0 if dfa.accepting[target] else int(kinds[state] == {True})
                least[state] = min(least[state], least[target] + begun)
    assert found.least.tolist() == least
    assert found.has_all == all(
        kinds[state] != {True}
        or any(not dfa.accepting[target] and least[target] <= least[state] for target in ways[state])
        for state in range(dfa.state_count)
    )


def test_what_has_no_characters() -> None:
    two = np.full((2, 256), -1, dtype=np.int32)
    two[0, ord("a")] = 1
    accepting = np.array([False, True])
    assert read_characters(Dfa.from_table(two, accepting, 0)) is None  # no string
    assert read_characters(Dfa.from_table(two, accepting, 1)) is None
    loop = np.array([[0] * 256], dtype=np.int32)
    assert read_characters(Dfa.from_table(loop, np.array([True]), 0)) is None
