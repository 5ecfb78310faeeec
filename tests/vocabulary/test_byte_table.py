from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vocabulary.vocabularies import vocabularies
from tokdfa import mask as masks
from tokdfa.vocabulary import walk_forms
from tokdfa.vocabulary.byte_table import RecognizerTable, walk, walk_collect
from tokdfa.vocabulary.vocabulary import Vocabulary
from tokdfa.vocabulary.walk_layout import source_nodes, walk_source

ALPHABET = b"ab\x00\xff"


class TableRecognizer:
    """A random automaton, as a Python recogniser; counts its steps."""

    def __init__(self, moves: dict[tuple[int, int], int]) -> None:
        self.moves, self.steps = moves, 0

    def step(self, state: int, byte: int) -> int | None:
        self.steps += 1
        return self.moves.get((state, byte))


recognizers = st.dictionaries(
    st.tuples(st.integers(0, 3), st.sampled_from(list(ALPHABET))), st.integers(0, 3), max_size=16
).map(TableRecognizer)


def brute_force(vocab: Vocabulary, recognizer: Any, state: int) -> dict[int, int]:
    """Allowed token -> state reached."""
    found = {}
    for token in range(vocab.size):
        here: int | None = state
        for byte in vocab.token_bytes(token):
            here = None if here is None else recognizer.step(here, byte)
        if vocab.token_bytes(token) and here is not None:
            found[token] = here
    return found


def mask_of(vocab: Vocabulary, tokens: set[int]) -> list[int]:
    return masks.mask_from_ids(sorted(tokens), vocab.size).tolist()


@settings(max_examples=300)
@given(vocabularies(ALPHABET), recognizers)
def test_all_forms_allow_what_brute_force_allows(vocab: Vocabulary, recognizer: TableRecognizer) -> None:
    expected = brute_force(vocab, recognizer, 0)
    table = RecognizerTable(recognizer)
    mask = masks.allocate_mask(vocab.size)
    work = walk(vocab.trie, table, table.row(0), mask)
    assert mask.tolist() == mask_of(vocab, set(expected))

    flat = np.array(table.transitions, dtype=np.int32)
    words = np.zeros(vocab.size // 32 + 1, dtype=np.uint32)
    seen = walk_source(vocab.trie, source_nodes(vocab.trie), flat, table.byte_class, table.row(0), words)
    assert seen == (work.nodes_visited, seen[1])
    assert [token for token in range(vocab.size) if words[token >> 5] >> (token & 31) & 1] == sorted(expected)

    plain = masks.allocate_mask(vocab.size)
    plain_work = walk_forms.walk_by_depth(vocab.trie, recognizer, 0, plain)
    assert plain.tolist() == mask.tolist()
    assert (work.nodes_visited, work.nodes_skipped) == (plain_work.nodes_visited, plain_work.nodes_skipped)
    assert work.nodes_visited + work.nodes_skipped == vocab.trie.node_count

    tree = walk_forms.build_tree((token, vocab.token_bytes(token)) for token in range(vocab.size))
    flat = walk_forms.flatten(tree)
    for form, nodes in (
        (walk_forms.walk_recursive, tree),
        (walk_forms.walk_array, flat),
        (walk_forms.walk_flat, flat),
    ):
        stack = walk_forms.StackOfStates(recognizer, 0)
        assert form(nodes, stack) == set(expected)  # type: ignore[operator]
        assert stack.height == 0

    room = np.empty(vocab.size + 1, dtype=np.int32)
    targets = np.empty(vocab.size + 1, dtype=np.int32)
    count, collect_work = walk_collect(vocab.trie, table, table.row(0), room, targets)
    collected = {int(t): table.state(int(row)) for t, row in zip(room[:count], targets[:count], strict=True)}
    assert collected == expected
    assert collect_work.nodes_visited == work.nodes_visited
    assert vocab.trie.rank_of[room[:count]].tolist() == sorted(vocab.trie.rank_of[room[:count]].tolist())


@given(vocabularies(ALPHABET), recognizers, st.randoms(use_true_random=False))
def test_a_filtered_trie_allows_the_filtered_tokens(
    vocab: Vocabulary, recognizer: TableRecognizer, random: Any
) -> None:
    keep = np.array([random.random() < 0.5 for _ in range(vocab.size)])
    table = RecognizerTable(recognizer)
    mask = masks.allocate_mask(vocab.size)
    walk(vocab.trie.filter(keep), table, table.row(0), mask)
    assert mask.tolist() == mask_of(vocab, {token for token in brute_force(vocab, recognizer, 0) if keep[token]})


@pytest.mark.parametrize("size", [31, 32, 33, 63, 64, 65])
def test_the_spare_bit_never_shows(size: int) -> None:
    """Nodes without a token write bit V, which lies in the last word for some V and beyond it for others."""

    class AnyByte:
        def step(self, state: int, byte: int) -> int:
            return state

    vocab = Vocabulary([b"abcdef", b""], end_tokens=[1], size=size)
    table = RecognizerTable(AnyByte())
    mask = masks.allocate_mask(size)
    walk(vocab.trie, table, table.row(0), mask)
    assert masks.mask_to_ids(mask).tolist() == [0]
