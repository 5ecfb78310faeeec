"""Branches against their definition, on random tries and a real one."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from tests.vocabulary.vocabularies import vocabularies
from tokdfa.backends.pushdown_trie import branches
from tokdfa.backends.pushdown_trie.branches import find_branch, take_child
from tokdfa.backends.pushdown_trie.pool import Pool
from tokdfa.vocabulary.tokenizers import load_tokenizer


def children_of(trie, node):
    """[(byte, first child with it, where they end)] of a node, -1 for the root."""
    here = node + 1
    end = trie.node_count if node < 0 else trie.next(node)
    found = []
    while here < end:
        if found and found[-1][0] == trie.byte(here):
            found[-1][2] = trie.next(here)
        else:
            found.append([trie.byte(here), here, trie.next(here)])
        here = trie.next(here)
    return found


def below(trie, node):
    return (trie.node_count if node < 0 else trie.next(node)) - node - 1


def check_branches(pool, trie, least_below, least_bytes, nodes):
    for node in nodes:
        children = children_of(trie, node)
        branch = find_branch(node + 1, pool.arrays)
        has = below(trie, node) >= least_below and len(children) >= least_bytes
        assert (branch >= 0) == has
        if not has:
            continue
        bits = pool.partitions.branches.branch_bytes[branch]
        assert [byte for byte in range(256) if int(bits[byte >> 6]) >> (byte & 63) & 1] == [c[0] for c in children]
        for step in (1, 2, 3):  # all children, every second, every third
            chosen = children[::step]
            left = np.zeros(4, dtype=np.uint64)
            for byte, _, _ in chosen:
                left[byte >> 6] |= np.uint64(1 << (byte & 63))
            for _, begin, end in chosen:
                assert take_child(branch, left, pool.arrays) == (begin, end)
            assert take_child(branch, left, pool.arrays) == (-1, -1)


def test_random_tries(monkeypatch):
    monkeypatch.setattr(branches, "LEAST_BELOW", 3)
    monkeypatch.setattr(branches, "LEAST_BYTES", 2)
    made = []

    @settings(max_examples=60)
    @given(vocabularies(b"abcd\x00\x3f\x40\x7f\x80\xff", 40))
    def check(vocab):
        pool = Pool(vocab)
        check_branches(pool, vocab.trie, 3, 2, range(-1, vocab.trie.node_count))
        made.append(pool.partitions.branches.count)

    check()
    assert max(made) > 3


def test_a_real_vocabulary():
    vocab = load_tokenizer("mistral-v1").vocabulary
    pool, trie = Pool(vocab), vocab.trie
    check_branches(pool, trie, branches.LEAST_BELOW, branches.LEAST_BYTES, range(-1, trie.node_count))
    assert pool.partitions.branches.count > 100
