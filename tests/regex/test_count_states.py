"""Each way of building counts what it should, and the rarer laws act on a pattern."""

from __future__ import annotations

import pytest

from tests.regex.count_states import count_states, patterns
from tokdfa.regex.expression import LAWS


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
    ("label", "law"),
    [("never ab", "complement"), ("both in any order", "intersection"), ("counts in a row", "concat_merge_repeats")],
)
def test_patterns_on_which_the_rarer_laws_act(label: str, law: str) -> None:
    found = count_states(patterns()[label], 500)
    assert found["minimal"].states <= found["all laws"].states < found[f"without {law}"].states < 500


def test_what_cannot_be_counted_has_a_status() -> None:
    found = count_states("(?=.*a)(?=.*b)[ab]{3}", 500)
    assert (found["subset construction"].status, found["minimal"].status) == ("unsupported", "ok")
    assert set(count_states("(a|b)*a(a|b){12}", 100).values()) == {(100, "limit")}
