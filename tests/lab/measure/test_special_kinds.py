"""The special kinds of experiments on small settings: their rows, and what must hold between them."""

from __future__ import annotations

import pytest

from tokdfa.errors import OptionError
from tokdfa.lab.kinds import regex_states, seen_masks, trie_walk
from tokdfa.regex.nodes import LAWS


def test_trie_walk_compares_engines_on_one_mask() -> None:
    rows = trie_walk.run_item({"tokenizer": "mistral-v1", "label": "digits", "regex": "[0-9]+", "repeats": 3}, seed=0)
    assert [row["engine"] for row in rows] == ["tokdfa", "tokdfa, walk alone", "llguidance slices off"]
    assert {row["differs"] for row in rows} == {0}
    assert {row["allowed"] for row in rows} == {20}  # ten pieces and ten byte tokens
    for row in rows:
        assert row["ns_per_node"] == pytest.approx(row["ns_median"] / row["nodes_visited"])
        assert row["ns_min"] <= row["ns_median"]
    with pytest.raises(OptionError, match="glrmask"):
        trie_walk.run_item({"tokenizer": "bytes", "regex": "a", "peers": ["glrmask"]}, seed=0)


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


def test_seen_masks_has_a_row_for_each_engine() -> None:
    settings = {"tokenizer": "bytes", "label": "word", "regex": "[a-z]{1,9}", "steps": 4, "rounds": 2}
    rows = seen_masks.run_item(settings, seed=1)
    assert [row["engine"] for row in rows] == list(seen_masks.ENGINES)
    for row in rows:
        assert row["samples"] == 2 * row["positions"]
        assert 0 < row["ns_median"] <= row["ns_p99"]
