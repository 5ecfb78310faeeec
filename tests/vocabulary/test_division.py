"""The trie that joins ranges of another, against the same from strings."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from tests.vocabulary.vocabularies import vocabularies
from tokdfa.vocabulary.division import join_ranges_kernel
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT


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
    path = np.empty((2, trie.depth_limit + 1), dtype=np.int64)
    count = join_ranges_kernel(
        trie.nodes, np.array(ranges, dtype=np.int64).reshape(-1, 3), trie.size, joined, path
    )  # fmt: skip
    found = _texts(joined[:count].tolist(), trie.size)
    texts = {token: vocab.token_bytes(token).partition(b"a")[2] for token in range(vocab.size)}
    assert sorted(found) == sorted((text, token) for token, text in texts.items() if text)
    assert [text for text, _ in found] == sorted(text for text, _ in found)
