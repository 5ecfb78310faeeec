from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.languages import all_texts, language
from tests.regex.terms import ALPHABET, build, terms
from tests.strategies import examples
from tokdfa.automata.algebra import minimize
from tokdfa.core.budget import Budget, spending
from tokdfa.errors import LimitExceeded, OptionError, UnknownNameError
from tokdfa.regex.expression import ANY_BYTE, ANY_BYTES, LAWS, NOTHING, ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa

LENGTH = 5


def accepted(store: ExpressionStore, expression: int) -> frozenset[bytes]:
    dfa = LazyDfa(store, expression)
    return frozenset(text for text in all_texts(ALPHABET, LENGTH) if dfa.accepts(text))


@examples(400)
@given(terms())
def test_derivatives_accept_the_language(term: tuple) -> None:
    store = ExpressionStore()
    expression = build(store, term)
    expected = language(term, ALPHABET, LENGTH)
    assert accepted(store, expression) == expected
    explicit = minimize(LazyDfa(store, expression).to_dfa())
    assert {text for text in all_texts(ALPHABET, LENGTH) if explicit.accepts(text)} == expected
    assert store.nullable(expression) == (b"" in expected)


@pytest.mark.parametrize("law", LAWS)
@examples(40)
@given(term=terms())
def test_a_law_switched_off_changes_no_language(law: str, term: tuple) -> None:
    plain = ExpressionStore(without_laws=[law])
    try:
        dfa = LazyDfa(plain, build(plain, term), max_states=300)
        found = frozenset(text for text in all_texts(ALPHABET, LENGTH) if dfa.accepts(text))
    except LimitExceeded:
        assert law in ("union_aci", "union_absorb", "intersection", "complement", "concat_associative")
        return
    assert found == language(term, ALPHABET, LENGTH)


def test_each_law_identifies_what_it_says() -> None:
    """With the law two writings are one number; without it they are two."""

    def pairs(store: ExpressionStore) -> dict[str, tuple[int, int]]:
        a, b, ab = store.byte_set(b"a"), store.byte_set(b"b"), store.literal(b"ab")
        a_star = store.repeat(a, 0, None)
        no_b = store.complement(store.literal(b"bb"))
        one_two, three_four = store.repeat(a, 1, 2), store.repeat(a, 3, 4)
        return {
            "union_aci": (store.union([ab, no_b]), store.union([no_b, ab, ab])),
            "union_absorb": (store.union([ANY_BYTES, ab]), ANY_BYTES),
            "union_merge_sets": (store.union([a, b]), store.byte_set(b"ab")),
            "union_merge_repeats": (
                store.union([store.concat(store.repeat(a, 0, 3), b), store.concat(store.repeat(a, 2, 5), b)]),
                store.concat(store.repeat(a, 0, 5), b),
            ),
            "intersection": (store.intersection([ab, no_b]), store.intersection([no_b, ab, ANY_BYTES])),
            "concat_associative": (store.concat(store.concat(a, b), a_star), store.concat(a, store.concat(b, a_star))),
            "concat_merge_repeats": (store.concat(one_two, three_four), store.repeat(a, 4, 6)),
            "repeat_nested": (store.repeat(a_star, 0, None), a_star),
            "complement": (store.complement(store.complement(ab)), ab),
        }

    for law in LAWS:
        one, other = pairs(ExpressionStore())[law]
        assert one == other, law
        one, other = pairs(ExpressionStore(without_laws=[law]))[law]
        assert one != other, law


def test_growth_keeps_numbers() -> None:
    store = ExpressionStore()
    words = [b"word%d" % number for number in range(3000)]
    before = [store.literal(word) for word in words]
    everything = store.union(before)
    assert len(store) > 10_000
    assert [store.literal(word) for word in words] == before
    assert store.members(everything) == sorted(before)
    assert store.union(reversed(before)) == everything


@examples(50)
@given(st.sets(st.integers(0, 255)))
def test_byte_sets_round_trip(members: set[int]) -> None:
    store = ExpressionStore()
    flags = np.zeros(256, dtype=np.bool_)
    flags[list(members)] = True
    expression = store.byte_set(members)
    assert expression == store.byte_set(flags)
    assert expression == NOTHING or np.array_equal(store.bytes_of(expression), flags)


def test_limits_are_errors_not_hangs() -> None:
    with spending(Budget(seconds=1e-4, megabytes=100), "a literal"), pytest.raises(LimitExceeded, match="a literal"):
        ExpressionStore().literal(b"x" * 20_000)
    with spending(Budget(seconds=10, megabytes=0.1), "a literal"), pytest.raises(LimitExceeded, match="compile_mb"):
        ExpressionStore().literal(b"x" * 20_000)
    with pytest.raises(LimitExceeded, match="derivatives and parts"):
        ExpressionStore(max_expressions=500).literal(bytes(range(256)) * 20)
    with pytest.raises(LimitExceeded, match="too large"):
        ExpressionStore().repeat(ANY_BYTE, 0, 1 << 40)
    with pytest.raises(OptionError, match="range"):
        ExpressionStore().repeat(ANY_BYTE, 3, 2)
    with pytest.raises(UnknownNameError, match="union_aci"):
        ExpressionStore(without_laws=["union_ac"])
    with pytest.raises(UnknownNameError, match="text_end"):
        ExpressionStore().assertion("text_ends")
