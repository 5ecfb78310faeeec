"""Tries cut out of a trie, against the tokens that they should spell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vocabulary.vocabularies import ODD, vocabularies
from tokdfa.core.jit import kernel
from tokdfa.vocabulary import division
from tokdfa.vocabulary.division import FIRST, LEFT, PAST, STOP, TAG, Division, allow, cut_ranges_kernel, note_range
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT
from tokdfa.vocabulary.walker import DEAD, specialise


@kernel
def _step(table, stack, depth, byte):
    """By byte: less than 256 goes on, else the negative of what is returned; the depth is the state."""
    what = table[byte]
    return np.int64(depth) if what < 256 else 256 - what


_walk = specialise(f"{__name__}._walk", _step, allow, note_range)


def divide(vocab, what, room=None):
    """(tokens inside, ranges, where the walk stopped) by what each byte means: 0 goes on, else the step's result."""
    trie = vocab.trie
    table = np.array([256 - what.get(byte, -(1 << 20)) if byte in what else 0 for byte in range(256)], dtype=np.int64)
    found, position = Division(np.zeros(trie.size // 32 + 1, dtype=np.uint32)), 0
    while True:
        position = _walk(trie.nodes, position, trie.node_count, table, table, found.arrays, 0)[0]
        if position >= trie.node_count or not found.make_room():
            break
    found.finish(trie.size)
    bits = np.unpackbits(found.words.view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).tolist(), found.ranges.copy(), position


def spelled(nodes, size):
    """[(token, bytes)] of a trie, whose shape is checked."""
    path, found = [], []
    for here, node in enumerate(nodes.tolist()):
        depth = node >> DEPTH_SHIFT & (1 << DEPTH_BITS) - 1
        following = node >> NEXT_SHIFT & MAX_NODES
        assert depth <= len(path)
        assert here < following <= len(nodes)
        if following < len(nodes):
            assert int(nodes[following]) >> DEPTH_SHIFT & (1 << DEPTH_BITS) - 1 <= depth
        path[depth:] = [node & 0xFF]
        if node >> TOKEN_SHIFT != size:
            found.append((node >> TOKEN_SHIFT, bytes(path)))
    return found


def left_by_bytes(data, what):
    """What the first byte that does not go on says of a token; 0 if all do."""
    return next((what[byte] for byte in data if byte in what), 0)


@pytest.mark.parametrize("room", [1, 1_024])
def test_tokens_are_inside_refused_or_left(room, monkeypatch):
    monkeypatch.setattr(division, "_ROOM", room)
    seen = set()

    @settings(max_examples=60)
    @given(vocabularies(b"abc", 40), st.dictionaries(st.sampled_from(b"abc"), st.sampled_from([DEAD, LEFT, LEFT - 7])))
    def check(vocab, what):
        inside, ranges, end = divide(vocab, what)
        assert end >= vocab.trie.node_count
        tokens = {token: vocab.token_bytes(token) for token in vocab.trie.order.tolist()}
        says = {token: left_by_bytes(data, what) for token, data in tokens.items()}
        assert inside == sorted(token for token, said in says.items() if said == 0)
        rest = np.empty(2 * vocab.trie.node_count + 1, dtype=np.uint64)
        path = np.empty((2, vocab.trie.depth_limit + 1), dtype=np.int64)
        for tag in (0, 7):
            chosen = np.ascontiguousarray(ranges[ranges[:, TAG] == tag])
            count = cut_ranges_kernel(vocab.trie.nodes, 0, chosen, vocab.size, rest, path)
            expected = [(token, data) for token, data in tokens.items() if says[token] == LEFT - tag]
            assert spelled(rest[:count], vocab.size) == expected
            assert count <= len({data[:end] for _, data in expected for end in range(1, len(data) + 1)}) + len(tokens)
            seen.add((tag, len(chosen) > 1, count > 3))

    check()
    assert {(0, True, True), (7, True, True), (0, False, False)} <= seen


def test_below_a_node():
    """What is cut out below a node counts its depth from there."""
    trie = ODD.trie
    top = max(range(trie.node_count), key=lambda node: trie.next(node) - node)
    begin, end = top + 1, trie.next(top)
    ranges = np.array([(node, trie.next(node), 0) for node in trie.children(top)], dtype=np.int64)
    rest, path = np.empty(end - begin, dtype=np.uint64), np.empty((2, trie.depth_limit + 1), dtype=np.int64)
    assert cut_ranges_kernel(trie.nodes, begin, ranges, ODD.size, rest, path) == end - begin
    above = trie.depth(top) + 1
    below = [trie.token(node) for node in range(begin, end) if trie.token(node) >= 0]
    assert spelled(rest, ODD.size) == [(token, ODD.token_bytes(token)[above:]) for token in below]


def test_a_step_can_stop_the_walk():
    inside, ranges, end = divide(ODD, {ord("b"): STOP})
    assert 0 < end < ODD.trie.node_count
    assert ODD.trie.byte(end) == ord("b")
    assert not len(ranges)
    assert all(b"b" not in ODD.token_bytes(token) for token in inside)
    assert (FIRST, PAST) == (0, 1)
