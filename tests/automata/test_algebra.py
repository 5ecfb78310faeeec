from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from tests.automata.strategies import ALPHABET, dfas, plain
from tests.naive.automata import all_words
from tokdfa.automata.algebra import (
    complement,
    difference,
    distinguishing_word,
    intersection,
    live_states,
    minimize,
    same_language,
    trim,
    union,
)
from tokdfa.automata.dfa import Dfa
from tokdfa.constraint import Regex
from tokdfa.errors import LimitExceeded
from tokdfa.regex.compile import compile_dfa

pairs = given(dfas(most_states=4), dfas(most_states=4))


def cycle(length: int, letter: bytes = b"a") -> Dfa:
    """The words of `letter` whose length is a multiple of `length`."""
    return minimize(compile_dfa(Regex(f"({letter.decode()}{{{length}}})*")))


@pairs
def test_boolean_operations_are_those_of_sets(a, b):
    of_a, of_b = (plain(dfa).language(ALPHABET, 4) for dfa in (a, b))
    assert plain(intersection(a, b)).language(ALPHABET, 4) == of_a & of_b
    assert plain(union(a, b)).language(ALPHABET, 4) == of_a | of_b
    assert plain(difference(a, b)).language(ALPHABET, 4) == of_a - of_b
    assert plain(complement(a)).language(ALPHABET, 4) == set(all_words(ALPHABET, 4)) - of_a


@pairs
def test_results_are_trim_and_start_in_0(a, b):
    for result in (intersection(a, b), union(a, b), difference(a, b), complement(a)):
        assert live_states(result).all()
        assert result.start == (0 if result.state_count else -1)
        assert trim(result).transitions.tolist() == result.transitions.tolist()


@given(dfas(most_states=3), dfas(most_states=3))
def test_distinguishing_words_are_shortest(a, b):
    found, twins = distinguishing_word(a, b), (plain(a), plain(b))
    # The two have at most 7 states, the dead one included; words of 5 bytes tell apart what can be told apart.
    different = (word for word in all_words(ALPHABET, 6) if twins[0].accepts(word) != twins[1].accepts(word))
    shortest = next(different, None)
    assert (found is None) == (shortest is None) == same_language(a, b), (found, shortest)
    if found is not None:
        assert len(found) == len(shortest)
        assert a.accepts(found) != b.accepts(found)


@given(dfas(most_states=6, least_states=2))
def test_distinguishing_words_of_automata_that_differ_in_one_state(a):
    for state in range(a.state_count):
        accepting = a.accepting.copy()
        accepting[state] = ~accepting[state]
        b = Dfa(a.transitions, a.byte_class, accepting, a.start)
        found, twin = distinguishing_word(a, b), plain(a)
        # They differ in the words that lead to `state`; the nearest of these is a path of the plain automaton.
        backwards = type(twin)(twin.table, {state}, twin.start).distance_to_accept()
        assert (len(found) if found is not None else None) == backwards.get(a.start)
        assert found is None or a.run(found) == state


def test_far_differences():
    # (a^7)* and (a^11)* agree on the empty word and differ first at a^7; multiples of both at a^(7*11) from those of 7
    assert distinguishing_word(cycle(7), cycle(11)) == b"a" * 7
    assert distinguishing_word(intersection(cycle(7), cycle(11)), cycle(77)) is None
    assert distinguishing_word(difference(cycle(7), cycle(77)), cycle(7)) == b""
    long_way = 5000
    chain = compile_dfa(Regex(f"a{{{long_way}}}"))
    assert distinguishing_word(chain, Dfa.empty()) == b"a" * long_way
    assert distinguishing_word(Dfa.empty(), chain) == b"a" * long_way
    assert distinguishing_word(chain, chain) is None
    assert distinguishing_word(Dfa.empty(), Dfa.empty()) is None


def test_large_products_grow_and_number_correctly():
    # coprime cycles: 61 * 67 = 4087 pairs, more than the first allocation
    both = intersection(cycle(61), cycle(67))
    assert both.state_count == 61 * 67
    assert np.flatnonzero(both.accepting).tolist() == [0]
    assert distinguishing_word(both, cycle(61 * 67)) is None


@pytest.mark.parametrize("operation", [intersection, union, difference])
def test_products_stop_at_their_limit(operation):
    # union and difference go on with one side alone, so let both sides live for ever
    a, b = cycle(30), cycle(31)
    assert operation(a, b, limit=930).state_count == 930
    with pytest.raises(LimitExceeded, match="more than 929 states") as error:
        operation(a, b, limit=929)
    assert (error.value.limit, error.value.value) == ("states", 929)


def test_a_product_visits_no_pair_that_cannot_matter():
    two_words, many_states = compile_dfa(Regex("a{1,2}")), cycle(500)
    assert difference(two_words, many_states, limit=3).state_count == 3
    assert intersection(two_words, many_states, limit=3).state_count == 0
    with pytest.raises(LimitExceeded):
        difference(many_states, two_words, limit=3)
