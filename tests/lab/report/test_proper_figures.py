"""The automata behind the figures of 002, counted as 002 counts them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.backends.proper_merge.token_languages import sequences
from tokdfa.lab.report.proper_figures import (
    BOOLEAN,
    BOOLEAN_TEXTS,
    byte_tokens,
    plain_rows,
    proper_boolean_rows,
    token_graph,
)
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from tokdfa.vocabulary.tokenizers import Tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return load_tokenizer("mistral-v1")


def test_figure_2_has_17_states_and_48_transitions(tokenizer: Tokenizer) -> None:
    rows, vocab = plain_rows(BOOLEAN, tokenizer.vocabulary), tokenizer.vocabulary
    assert (rows.state_count, rows.transition_count) == (17, 65)
    leave_out = byte_tokens(tokenizer)
    assert sorted(vocab.token_bytes(token) for token in leave_out) == [bytes([byte]) for byte in range(256)]
    graph = token_graph(rows, vocab, leave_out)
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (17, 48)
    first = {data["label"] for _, _, data in graph.out_edges(0, data=True)}
    assert first == {"boolean", "bool", "bo", "b"}  # as 002 lists them


def test_figure_3_has_5_states_and_4_transitions(tokenizer: Tokenizer) -> None:
    rows = proper_boolean_rows(tokenizer)
    assert (rows.state_count, rows.transition_count) == (5, 4)
    assert sequences(rows, tokenizer.vocabulary) == {tuple(tokenizer.encode(text)) for text in BOOLEAN_TEXTS}
    graph = token_graph(rows, tokenizer.vocabulary)
    assert [data["label"] for _, _, data in graph.edges(data=True)] == ["boolean", ":", "␣true", "␣false"]
    assert sum(data["accepting"] for _, data in graph.nodes(data=True)) == 2
