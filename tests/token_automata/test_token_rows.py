from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import examples
from tokdfa.token_automata.token_rows import TokenRows

WORDS = [word for size in range(7) for word in itertools.product(range(2), repeat=size)]


@st.composite
def automata(draw: st.DrawFn) -> TokenRows:
    """Up to seven states over the tokens 0 and 1, some dead or out of reach."""
    count = draw(st.integers(1, 7))
    states = st.integers(0, count - 1)
    rows = [draw(st.dictionaries(st.integers(0, 1), states)) for _ in range(count)]
    return TokenRows(rows, [draw(st.booleans()) for _ in range(count)], draw(states))


def language(automaton: TokenRows) -> list[tuple[int, ...]]:
    return [word for word in WORDS if automaton.accepts(word)]


@examples(300)
@given(automata())
def test_trimmed_and_minimal_keep_the_language(automaton: TokenRows) -> None:
    trimmed = automaton.trimmed()
    minimal = trimmed.minimal()
    # A word of at most as many tokens as there are states reaches every state, and tells any two apart.
    assert language(trimmed) == language(automaton) == language(minimal)
    reached = {0} if trimmed.rows else set()
    for state, row in enumerate(trimmed.rows):
        assert list(row) == sorted(row)
        assert not set(row.values()) - reached - {max(reached) + 1, max(reached) + 2}  # breadth-first
        reached |= set(row.values())
        alone = TokenRows(trimmed.rows, trimmed.accepting, state)
        assert language(alone)
    assert reached == set(range(trimmed.state_count))
    assert trimmed.start == (0 if trimmed.rows else -1)
    ways_on = {tuple(language(TokenRows(trimmed.rows, trimmed.accepting, state))) for state in range(len(trimmed.rows))}
    assert minimal.state_count == len(ways_on)


@examples(300)
@given(automata())
def test_equal_languages_have_equal_minimal_automata(automaton: TokenRows) -> None:
    twice = TokenRows(
        [*automaton.rows, *({t: target + len(automaton.rows) for t, target in row.items()} for row in automaton.rows)],
        automaton.accepting * 2,
        automaton.start + len(automaton.rows),
    )
    for token in twice.rows[twice.start]:  # leave the second copy for the first
        twice.rows[twice.start][token] %= len(automaton.rows)
    one, other = automaton.trimmed().minimal(), twice.trimmed().minimal()
    assert (one.rows, one.accepting, one.start) == (other.rows, other.accepting, other.start)


def test_a_long_chain_is_minimised_in_little_time() -> None:
    """Each round looks at the states before the one that was told apart, not at all of them."""
    length = 20_000
    chain = [{0: state + 1, 1: state + 1} for state in range(length)]
    both = [*chain, {}, *({0: length + 1 + state + 1, 1: length + 1 + state + 1} for state in range(length)), {}]
    both.append({0: 0, 1: length + 1})
    ends = [False] * length + [True]
    automaton = TokenRows(both, [*ends, *ends, False], len(both) - 1).trimmed()
    assert automaton.state_count == 2 * length + 3
    assert automaton.minimal().state_count == length + 2
