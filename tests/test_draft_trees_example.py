"""The example of draft trees: one call, node by node, and a peer's own call write the same masks."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

import tokdfa
from tokdfa.mask import mask_to_bool

EXAMPLE = Path(__file__).parent.parent / "docs" / "examples" / "draft_trees.py"


def test_all_ways_write_the_same_masks() -> None:
    pytest.importorskip("torch")
    page = runpy.run_path(str(EXAMPLE))
    tokenizer = tokdfa.load_tokenizer("bytes")
    vocab, constraint = tokenizer.vocabulary, tokdfa.JsonSchema(page["SCHEMA"], whitespace="compact")
    start = tokdfa.compile(constraint, vocab).start()
    drafted, parents = page["draft"](start, list(b'{"city":"Bern","days":[1]}'), 12)
    assert len(drafted) > 20
    one, other = (tokdfa.allocate_mask(vocab.size, len(drafted)) for _ in range(2))
    tokdfa.fill_tree(start, drafted, parents, one)
    page["node_by_node"](start, drafted, parents, other)
    assert (one == other).all()

    pytest.importorskip("xgrammar")
    peer = tokdfa.compile(constraint, vocab, "xgrammar").start()
    tokdfa.fill_tree(peer, drafted, parents, one)
    page["traverse"](peer.peer, drafted, parents, other)  # type: ignore[attr-defined]
    for ours, theirs in zip(one, other, strict=True):  # bits past the vocabulary mean nothing
        assert (mask_to_bool(ours, vocab.size) == mask_to_bool(theirs, vocab.size)).all()
