from __future__ import annotations

import pytest

from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Grammar
from tokdfa.errors import OptionError
from tokdfa.lab.kinds.trie_walk import EARLEY_OPTIONS, measure
from tokdfa.mask import allocate_mask
from tokdfa.vocabulary.tokenizers import load_tokenizer


def test_engines_make_the_same_mask() -> None:
    rows = measure({"tokenizer": "mistral-v1", "label": "digits", "regex": "[0-9]+", "repeats": 3}, seed=0)
    assert [row["engine"] for row in rows] == [
        *("tokdfa", "tokdfa, walk alone", "earley_trie", "toktrie's loop", "toktrie's loop, all bytes"),
        "llguidance slices off",
    ]
    walks = {row["engine"]: (row["reads"], row["writes"]) for row in rows if row["reads"]}
    ours, source, by_byte = (
        walks[name] for name in ("tokdfa, walk alone", "toktrie's loop", "toktrie's loop, all bytes")
    )
    survived = source[0] - 4
    assert 0 < survived < 1
    # node, stack, alphabet and table, and the mask's word of a node that is allowed; all bytes: no alphabet
    assert by_byte == pytest.approx((3 + survived, 2 * survived))
    assert source == pytest.approx((4 + survived, 2 * survived))
    # ours pushes the state before it looks whether it is dead
    assert ours == pytest.approx((4 + survived, 1 + survived))
    assert {row["differs"] for row in rows} == {0}
    assert {row["allowed"] for row in rows} == {20}  # ten pieces and ten byte tokens
    for row in rows:
        assert row["ns_per_node"] == pytest.approx(row["ns_median"] / row["nodes_visited"])
        assert row["cycles"] * row["ns_per_cycle"] == pytest.approx(row["ns_per_node"])
        assert row["ns_min"] <= row["ns_median"]
    with pytest.raises(OptionError, match=r"peers\.0"):
        measure({"tokenizer": "bytes", "regex": "a", "peers": ["glrmask"]}, seed=0)


def test_a_grammar_stands_in_the_same_table() -> None:
    """All masks of its texts: the nodes are those that the engine has counted, and both engines agree."""
    settings = {"tokenizer": "mistral-v1", "label": "sum", "grammar": 'start: /[0-9]+/ ("+" /[0-9]+/)*', "repeats": 2}
    rows = measure({**settings, "texts": ["12+3", "7"]}, seed=0)
    assert [row["engine"] for row in rows] == ["earley_trie", "llguidance slices off"]
    assert [row["differs"] for row in rows] == [0, 0]
    tokenizer = load_tokenizer("mistral-v1")
    backend = create_backend("earley_trie", tokenizer.vocabulary, **EARLEY_OPTIONS)
    nodes = 0
    for text in ("12+3", "7"):
        matcher = backend.compile(Grammar(settings["grammar"])).start()
        for token in tokenizer.encode(text):
            matcher.fill_mask(allocate_mask(tokenizer.vocabulary.size))
            matcher.advance(token)
        nodes += matcher.counters["nodes_visited"]
    assert {row["nodes_visited"] for row in rows} == {nodes}
    assert all(row["ns_per_node"] == pytest.approx(row["ns_median"] / nodes) for row in rows)
    with pytest.raises(OptionError, match="grammars with texts"):
        measure(settings, seed=0)
