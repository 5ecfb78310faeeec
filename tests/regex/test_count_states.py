"""Each way of building counts what it should, and the rarer laws act on a pattern."""

from __future__ import annotations

import string

import pytest

from tests.regex.count_states import count_states, patterns
from tokdfa.regex.expression import LAWS, ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa


def test_the_variants_are_in_order() -> None:
    found = count_states("(a{0,3}b|a{2,5}b)*", 500)
    states = {variant: count.states for variant, count in found.items()}
    assert list(states) == [
        *("all laws", *(f"without {law}" for law in LAWS)),
        *("no laws", "subset construction", "minimal"),
    ]
    assert states["minimal"] == 6
    assert states["minimal"] <= states["all laws"] <= states["without union_merge_repeats"]
    assert states["all laws"] <= states["subset construction"]


@pytest.mark.parametrize(
    ("pattern", "law"),
    [
        ("(?!(?!ab)).*", "complement"),
        (patterns()["both in any order"], "intersection"),
        (patterns()["counts in a row"], "concat_merge_repeats"),
    ],
)
def test_patterns_on_which_the_rarer_laws_act(pattern: str, law: str) -> None:
    found = count_states(pattern, 500)
    assert found["minimal"].states <= found["all laws"].states < found[f"without {law}"].states < 500


def test_a_loop_takes_up_what_is_written_in_its_letters() -> None:
    """So a search that has found its word is one state, and what must not be found leaves none."""
    store = ExpressionStore()
    any_text = store.repeat(store.byte_set(string.ascii_lowercase.encode()), 0, None)
    maker, admin = (store.concat(any_text, store.literal(word), any_text) for word in (b"maker", b"admin"))
    neither = store.intersection([any_text, store.complement(maker), store.complement(admin)])
    assert [count_of(store, root) for root in (maker, neither)] == [6, 9]
    store = ExpressionStore(without_laws=("union_absorb",))
    any_text = store.repeat(store.byte_set(string.ascii_lowercase.encode()), 0, None)
    assert count_of(store, store.concat(any_text, store.literal(b"maker"), any_text)) == 10


def count_of(store: ExpressionStore, root: int) -> int:
    """The states of an automaton."""
    automaton = LazyDfa(store, root)
    automaton.explore()
    return automaton.state_count


def test_what_cannot_be_counted_has_a_status() -> None:
    found = count_states("(?=.*a)(?=.*b)[ab]{3}", 500)
    assert (found["subset construction"].status, found["minimal"].status) == ("unsupported", "ok")
    assert set(count_states("(a|b)*a(a|b){12}", 100).values()) == {(100, "limit")}
