"""Masks of trees of drafted tokens: the same as node by node, and the matcher stays where it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokdfa
from tests.backends.test_max_tokens import CASES, VOCAB, ids
from tests.walks import mask_of as allowed_by
from tokdfa import mask as masks
from tokdfa.errors import ArgumentError


@pytest.mark.parametrize("case", CASES, ids=map(ids, CASES))
@settings(max_examples=15)
@given(data=st.data())
def test_a_tree_is_filled_like_its_nodes(case: tuple[str, dict[str, Any], Any], data: st.DataObject) -> None:
    backend, options, constraint = case
    matcher = tokdfa.compile(constraint, VOCAB, backend, **options).start()
    tokens: list[int] = []
    parents: list[int] = []
    nodes = []
    for node in range(data.draw(st.integers(0, 12))):
        parent = data.draw(st.integers(-1, node - 1))
        before = matcher if parent < 0 else nodes[parent]
        likely = allowed_by(before) if before is not None else []
        token = data.draw(st.sampled_from(likely) if likely and data.draw(st.booleans()) else st.integers(0, 260))
        after = None if before is None or not before.allows(token) else before.fork()
        if after is not None:
            after.advance(token)
        tokens.append(token)
        parents.append(parent)
        nodes.append(after)
    out = masks.allocate_mask(VOCAB.size, len(tokens))
    out[:] = -1
    before = allowed_by(matcher)
    allowed = tokdfa.fill_tree(matcher, tokens, np.array(parents, dtype=np.int64), out)
    assert allowed.tolist() == [node is not None for node in nodes]
    for node, mask in zip(nodes, out, strict=True):
        assert masks.mask_to_ids(mask).tolist() == ([] if node is None else allowed_by(node))
    assert matcher.tokens == ()
    assert allowed_by(matcher) == before


def test_what_is_no_tree_is_refused() -> None:
    matcher = tokdfa.compile(tokdfa.Regex("ab*"), VOCAB, "token_index").start()
    out = masks.allocate_mask(VOCAB.size, 2)
    for tokens, parents, message in (
        ([97, 98], [-1], "each token has one"),
        ([97, 98], [-1, 1], r"parents\[1\]"),
        ([97, 98], [1, -1], r"parents\[0\]"),
        ([97, 98], [-1, -2], r"parents\[1\]"),
        ([97], [-1], "out"),
    ):
        with pytest.raises(ArgumentError, match=message):
            tokdfa.fill_tree(matcher, tokens, parents, out)
