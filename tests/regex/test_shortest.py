"""Bounds of lengths against the shortest way through the explicit automaton."""

from __future__ import annotations

from hypothesis import given, settings

from tests.regex.terms import build, terms
from tokdfa.automata.algebra import minimize
from tokdfa.regex.expression import NOTHING, ExpressionStore
from tokdfa.regex.lazy_dfa import IS_LIVE, LazyDfa
from tokdfa.regex.shortest import NEVER, ShortestTexts


def shortest_way(dfa):
    """The length of the shortest text of an explicit automaton; None if it has none."""
    if not dfa.state_count:
        return None
    layer, reached, length = {dfa.start}, {dfa.start}, 0
    while layer:
        if any(dfa.accepting[state] for state in layer):
            return length
        layer = {int(target) for state in layer for target in dfa.transitions[state] if target >= 0} - reached
        reached |= layer
        length += 1
    return None


def test_bounds() -> None:
    seen = set()

    @settings(max_examples=300)
    @given(terms())
    def check(term: tuple) -> None:
        store = ExpressionStore()
        shortest = ShortestTexts(store)
        shortest.bound(NOTHING)  # what is known is gone on from
        expression = build(store, term)
        bound = shortest.bound(expression)
        length = shortest_way(minimize(LazyDfa(store, expression).to_dfa()))
        boolean = store.is_boolean(expression)
        if length is None:
            assert boolean or bound == NEVER
        else:
            assert bound <= length
            assert boolean or bound == length
        seen.add((boolean, length is None, bound == length))

    check()
    assert {(False, False, True), (True, False, True), (True, False, False)} <= seen


def test_parts_that_are_larger_than_any_text() -> None:
    store = ExpressionStore()
    part = store.literal(b"ab")
    for _ in range(5):
        part = store.repeat(store.concat(part, store.byte_set(b"c")), 1_000, 1_000)
    shortest = ShortestTexts(store)
    assert shortest.bound(part) == NEVER
    assert shortest.bound(NOTHING) == NEVER


def test_a_search_goes_straight_to_the_shortest_text() -> None:
    """A pattern and a length, whose product has a million states."""
    store = ExpressionStore()
    letter = store.byte_set(range(97, 123))
    label = store.concat(letter, store.repeat(letter, 0, 61), store.byte_set(b"."))
    names = store.concat(store.repeat(label, 1, None), store.repeat(letter, 2, 60))
    short = store.repeat(store.byte_set(range(256)), 0, 20_000)
    dfa = LazyDfa(store, store.intersection([names, short]), max_states=2_000)
    state = dfa.run(b"some.where.in.a.long.na")
    assert state >= 0
    assert dfa.live[state] == IS_LIVE
    assert dfa.state_count < 200
