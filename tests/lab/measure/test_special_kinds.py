"""The special kinds of experiments on small settings: their rows, and what must hold between them."""

from __future__ import annotations

import pytest

from tokdfa.errors import OptionError
from tokdfa.lab.kinds import seen_masks, trie_walk


def test_trie_walk_compares_engines_on_one_mask() -> None:
    rows = trie_walk.measure({"tokenizer": "mistral-v1", "label": "digits", "regex": "[0-9]+", "repeats": 3}, seed=0)
    assert [row["engine"] for row in rows] == ["tokdfa", "tokdfa, walk alone", "llguidance slices off"]
    assert {row["differs"] for row in rows} == {0}
    assert {row["allowed"] for row in rows} == {20}  # ten pieces and ten byte tokens
    for row in rows:
        assert row["ns_per_node"] == pytest.approx(row["ns_median"] / row["nodes_visited"])
        assert row["ns_min"] <= row["ns_median"]
    with pytest.raises(OptionError, match="glrmask"):
        trie_walk.measure({"tokenizer": "bytes", "regex": "a", "peers": ["glrmask"]}, seed=0)


def test_seen_masks_has_a_row_for_each_engine() -> None:
    settings = {"tokenizer": "bytes", "label": "word", "regex": "[a-z]{1,9}", "steps": 4, "rounds": 2}
    rows = seen_masks.run_item(settings, seed=1)
    assert [row["engine"] for row in rows] == list(seen_masks.ENGINES)
    for row in rows:
        assert row["samples"] == 2 * row["positions"]
        assert 0 < row["ns_median"] <= row["ns_p99"]
