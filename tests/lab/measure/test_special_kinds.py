"""The special kinds of experiments on small settings: their rows, and what must hold between them."""

from __future__ import annotations

from tokdfa.lab.kinds import regex_states
from tokdfa.regex.nodes import LAWS


def test_regex_states_orders_the_variants() -> None:
    rows = regex_states.run_item({"label": "counts", "regex": "(a{0,3}b|a{2,5}b)*", "max_states": 500}, seed=0)
    states = {row["variant"]: row["states"] for row in rows}
    assert set(states) == {
        "all laws", *(f"without {law}" for law in LAWS), "no laws", "subset construction", "minimal",
    }  # fmt: skip
    assert states["minimal"] == 6
    assert states["minimal"] <= states["all laws"] <= states["without union_merge_repeats"]
    assert states["all laws"] <= states["subset construction"]


def test_regex_states_says_what_it_cannot_count() -> None:
    rows = regex_states.run_item({"regex": "(?=.*a)(?=.*b)[ab]{3}", "max_states": 500}, seed=0)
    status = {row["variant"]: row["status"] for row in rows}
    assert status["subset construction"] == "unsupported"
    assert status["minimal"] == "ok"
    rows = regex_states.run_item({"regex": "(a|b)*a(a|b){12}", "max_states": 100}, seed=0)
    assert {row["status"] for row in rows} == {"limit"}
