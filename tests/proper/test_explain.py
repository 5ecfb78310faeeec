"""Explanations: that the verdict is right is tested elsewhere; here what they say, and that the rule is the first."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.packages import needs_smollm2
from tests.proper.small_tokenizers import real
from tokdfa.errors import VocabularyError
from tokdfa.proper.explain import explain

if TYPE_CHECKING:
    from tokdfa.proper.canonical import Canonicity


def first_crossing(canonicity: Canonicity, left: int, right: int) -> tuple[int, int]:
    """The first pair that merges across the border when the letters of both tokens merge, step by step."""
    rules = canonicity.rules
    border = len(rules.letters(left))
    letters = [*rules.letters(left).tolist(), *rules.letters(right).tolist()]
    spans = [(token, place, place + 1) for place, token in enumerate(letters)]
    while True:
        found = [(rules.find(a[0], b[0]), k) for k, (a, b) in enumerate(itertools.pairwise(spans))]
        _, k, rule = min((int(rules.rank[rule]), k, rule) for rule, k in found if rule >= 0)
        (a, begin, _), (b, _, end) = spans[k : k + 2]
        if begin < border < end:
            return a, b
        spans[k : k + 2] = [(int(rules.result[rule]), begin, end)]


@pytest.mark.parametrize("name", ["mistral-v1", "tekken", "llama3", pytest.param("smollm2", marks=needs_smollm2)])
def test_the_rule_named_is_the_first_to_merge(name: str) -> None:
    canonicity = real(name)
    rules, order = canonicity.rules, canonicity.merge_tree.order
    random = np.random.default_rng(3)
    for left in random.choice(order, 400).tolist():
        starts, ends = canonicity.forbidden(left)
        if not len(starts):
            continue
        interval = int(random.integers(len(starts)))
        right = int(order[random.integers(starts[interval], ends[interval])])
        fault = explain(canonicity, [left, right])
        assert fault is not None
        assert (fault.kind, fault.position) == ("pair", 1)
        assert fault.rule is not None
        assert (int(rules.left[fault.rule]), int(rules.right[fault.rule])) == first_crossing(canonicity, left, right)


def test_faults_have_a_place() -> None:
    llama, mistral = real("llama3"), real("mistral-v1")
    assert mistral.fallback is not None
    word, byte, letter = int(llama.improper_tokens[0]), mistral.fallback.tokens.tolist(), mistral.letter_tokens[b"a"]
    assert explain(llama, [word]) is None  # as a whole piece it is
    for canonicity, tokens, kind, position in [
        (llama, [word, 0], "token", 0),
        (llama, llama.whole_piece_encodings[word], "piece", 0),
        (llama, [0, llama.vocabulary.end_tokens[0]], "token", 1),
        (mistral, [byte[0x61]], "bytes", 0),
        (mistral, [letter, *(byte[part] for part in "世".encode())], "bytes", 3),
        (mistral, [byte[0xE4], letter], "bytes", 1),
        (mistral, [letter, byte[0xE4], byte[0xB8]], "bytes", 2),
    ]:
        fault = explain(canonicity, tokens)
        assert fault is not None
        assert (fault.kind, fault.position) == (kind, position)
    assert explain(mistral, [letter, byte[0x0A], letter]) is None
    with pytest.raises(VocabularyError, match="outside"):
        explain(llama, [0, llama.size])
