from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import examples
from tests.vocabulary.vocabularies import ODD, vocabularies
from tokdfa.vocabulary.trie import MAX_NODES, build_trie, sort_tokens
from tokdfa.vocabulary.vocabulary import Vocabulary


def spelled(vocab: Vocabulary) -> dict[int, bytes]:
    return {token: vocab.token_bytes(token) for token in range(vocab.size) if vocab.token_bytes(token)}


@examples(300)
@given(vocabularies())
def test_sorted_as_python_sorts_bytes(vocab: Vocabulary) -> None:
    expected = sorted(spelled(vocab), key=lambda token: (vocab.token_bytes(token), token))
    assert sort_tokens(vocab.joined_bytes).tolist() == expected


def test_long_equal_prefixes_sort() -> None:
    texts = [b"x" * length + end for length in range(0, 70, 3) for end in (b"", b"\x00", b"\x00\x00", b"a", b"\xff")]
    vocab = Vocabulary([*texts[::-1], b""], end_tokens=[len(texts)])
    expected = sorted(spelled(vocab), key=lambda token: (vocab.token_bytes(token), token))
    assert sort_tokens(vocab.joined_bytes).tolist() == expected


@examples(300)
@given(vocabularies())
def test_nodes_are_the_prefixes_in_depth_first_order(vocab: Vocabulary) -> None:
    trie = build_trie(vocab.joined_bytes)
    tokens = spelled(vocab)
    pairs = trie.excerpt(limit=trie.node_count + 1)
    assert len(pairs) == trie.node_count
    assert sorted(token for _, token in pairs if token >= 0) == sorted(tokens)
    assert all(tokens[token] == prefix for prefix, token in pairs if token >= 0)
    prefixes = {text[:size] for text in tokens.values() for size in range(1, len(text) + 1)}
    duplicates = len(tokens) - len(set(tokens.values()))
    assert {prefix for prefix, _ in pairs} == prefixes
    assert trie.node_count == len(prefixes) + duplicates
    assert [prefix for prefix, _ in pairs] == sorted(prefix for prefix, _ in pairs)
    for node in range(trie.node_count):
        inside = [prefix for prefix, _ in pairs[node : trie.next(node)]]
        assert all(prefix.startswith(pairs[node][0]) for prefix in inside)
        assert trie.depth(node) == len(pairs[node][0]) - 1
        for child in trie.children(node):
            assert pairs[child][0][:-1] == pairs[node][0]


@given(vocabularies(), st.lists(st.sampled_from(list(b"ab\x00\xff")), min_size=1, max_size=8).map(bytes))
def test_find_and_prefixes(vocab: Vocabulary, text: bytes) -> None:
    trie, tokens = vocab.trie, spelled(vocab)
    node = trie.find(text)
    assert (node >= 0) == any(other.startswith(text) for other in tokens.values())
    if node >= 0:
        assert trie.span(text).stop == trie.next(node)
    below = {token for _, token in trie.excerpt(text, trie.node_count) if token >= 0}
    assert below == {token for token, other in tokens.items() if other.startswith(text)}
    assert len(trie.span(text)) == len(trie.excerpt(text, trie.node_count))
    assert sorted(trie.prefixes_of(text)) == sorted(token for token, other in tokens.items() if text.startswith(other))


@given(vocabularies())
def test_branches_hold_all_tokens_that_begin_alike(vocab: Vocabulary) -> None:
    """Those with equal bytes among them, of which each has a node."""
    trie, tokens = vocab.trie, spelled(vocab)
    agenda = [(b"", -1)]
    for prefix, node in agenda:
        longer = {text[len(prefix)] for text in tokens.values() if text.startswith(prefix) and text != prefix}
        branches = list(trie.branches(node))
        assert [byte for byte, _, _ in branches] == sorted(longer)
        for byte, first, last in branches:
            begin = prefix + bytes([byte])
            inside = {trie.token(here) for here in range(first, trie.next(last))} - {-1}
            assert inside == {token for token, text in tokens.items() if text.startswith(begin)}
            agenda.append((begin, last))


@given(vocabularies(), st.randoms(use_true_random=False))
def test_filter_is_the_trie_of_the_rest(vocab: Vocabulary, random: object) -> None:
    keep = np.array([random.random() < 0.5 for _ in range(vocab.size)])  # type: ignore[attr-defined]
    kept = [vocab.token_bytes(token) if keep[token] else b"" for token in range(vocab.size)]
    fresh = Vocabulary(kept, end_tokens=vocab.end_tokens).trie
    assert np.array_equal(vocab.trie.filter(keep).nodes, fresh.nodes)


def test_ranks() -> None:
    trie = ODD.trie
    assert trie.order[trie.rank_of[trie.order]].tolist() == trie.order.tolist()
    assert (trie.rank_of[[3, 12, 20]] == -1).all()
    ranks = (trie.ranked_nodes >> np.uint64(43)).astype(int)
    with_token = [trie.token(node) for node in range(trie.node_count)]
    assert [trie.order[rank] if rank < len(trie.order) else -1 for rank in ranks.tolist()] == with_token


def test_an_empty_trie() -> None:
    trie = Vocabulary([b""], end_tokens=[0]).trie
    assert trie.node_count == 0
    assert list(trie.children()) == []
    assert trie.find(b"a") == -1
    assert trie.excerpt(b"a") == []


def test_packing_holds_the_promised_sizes() -> None:
    assert MAX_NODES == 2**23 - 1
    long_token = b"\x00" * 4095
    vocab = Vocabulary([b""] * ((1 << 21) - 3) + [long_token], end_tokens=[0])
    trie = vocab.trie
    assert trie.node_count == 4095
    assert trie.depth(4094) == 4094
    assert trie.token(4094) == (1 << 21) - 3
    assert trie.token(0) == -1
