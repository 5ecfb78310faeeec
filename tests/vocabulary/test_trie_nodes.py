"""Tries of ranges of another, cut out and joined, against the same from strings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vocabulary.vocabularies import vocabularies
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT
from tokdfa.vocabulary.trie_nodes import cut_ranges, join_ranges


def _depth(node: int) -> int:
    return node >> DEPTH_SHIFT & (1 << DEPTH_BITS) - 1


def _next(node: int) -> int:
    return node >> NEXT_SHIFT & MAX_NODES


def _texts(nodes: list[int], spare: int) -> list[tuple[bytes, int]]:
    """What the tokens of a trie spell, in the order of its nodes, by their depths; checks where subtrees end."""
    found, path = [], b""
    for place, node in enumerate(nodes):
        assert _depth(node) <= len(path)
        path = path[: _depth(node)] + bytes([node & 0xFF])
        others = (place + 1 + k for k, other in enumerate(nodes[place + 1 :]) if _depth(other) <= _depth(node))
        assert _next(node) == next(others, len(nodes))
        if node >> TOKEN_SHIFT != spare:
            found.append((path, node >> TOKEN_SHIFT))
    return found


@given(vocabularies())
def test_what_stands_behind_the_first_a_of_all_tokens(vocab):
    trie = vocab.trie
    ranges, here = [], 0
    while here < len(trie.nodes):
        node = int(trie.nodes[here])
        if node & 0xFF == ord("a"):
            child = here + 1
            while child < _next(node):
                following = _next(int(trie.nodes[child]))
                ranges.append((child, following, 0))
                child = following
            here = _next(node)
        else:
            here += 1
    joined = np.zeros(len(trie.nodes), dtype=np.uint64)
    count = join_ranges(trie.nodes, np.array(ranges, dtype=np.int64).reshape(-1, 3), trie.size, joined)
    found = _texts(joined[:count].tolist(), trie.size)
    texts = {token: vocab.token_bytes(token).partition(b"a")[2] for token in range(vocab.size)}
    assert sorted(found) == sorted((text, token) for token, text in texts.items() if text)
    assert [text for text, _ in found] == sorted(text for text, _ in found)


@given(vocabularies(), st.data())
def test_what_is_cut_out_keeps_its_texts_and_the_nodes_above(vocab, data):
    """Of all nodes, and of those below one, whose depth is then 0."""
    trie = vocab.trie
    top = data.draw(st.sampled_from([-1, *(node for node in range(len(trie.nodes)) if trie.next(node) > node + 1)]))
    begin, end = (0, len(trie.nodes)) if top < 0 else (top + 1, trie.next(top))
    ranges, here = [], begin
    while here < end:
        if data.draw(st.booleans()):
            ranges.append((here, trie.next(here), 0))
            here = trie.next(here)
        else:
            here += 1
    ranges = np.array(ranges, dtype=np.int64).reshape(-1, 3)
    rest = np.zeros(2 * len(trie.nodes), dtype=np.uint64)
    count = cut_ranges(trie.nodes, begin, ranges, trie.size, rest)
    above = trie.depth(top) + 1 if top >= 0 else 0
    inside = [node for first, past, _ in ranges.tolist() for node in range(first, past) if trie.token(node) >= 0]
    expected = [(vocab.token_bytes(trie.token(node))[above:], trie.token(node)) for node in inside]
    assert _texts(rest[:count].tolist(), trie.size) == expected
    if count:
        with pytest.raises(ValueError, match="room"):
            cut_ranges(trie.nodes, begin, ranges, trie.size, rest[: count - 1])
