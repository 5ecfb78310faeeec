"""Explanations: that the verdict is right is tested elsewhere; here what they say, and that the rule is the first."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.packages import needs_smollm2
from tests.proper.small_tokenizers import USER_DEFINED, ranked_pieces, real, scored_pieces
from tokdfa.errors import VocabularyError
from tokdfa.proper.explain import Fault, explain
from tokdfa.proper.rules_cache import build_canonicity
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

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
    rules, order = canonicity.rules, canonicity.forest.order
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


def test_a_pair_in_words() -> None:
    canonicity = real("mistral-v1")
    ids = {canonicity.vocabulary.token_bytes(token): token for token in range(259, canonicity.size)}
    tokens = [ids[b" The"], ids[b"od"], ids[b"ore"]]
    fault = explain(canonicity, tokens)
    assert fault is not None
    assert (fault.position, fault.kind) == (1, "pair")
    assert f"{ids[b'od']} b'od' cannot follow {ids[b' The']} b' The'" in fault.reason
    assert "merge into" in fault.reason
    assert explain(canonicity, canonicity.source.encode_piece(b" Theodore")) is None
    assert explain(canonicity, []) is None


def test_tokens_that_are_never_produced() -> None:
    canonicity = real("llama3")
    word = int(canonicity.improper_tokens[0])
    assert explain(canonicity, [word]) is None  # as a whole piece it is
    fault = explain(canonicity, [word, 0])
    assert fault is not None
    assert (fault.kind, fault.position) == ("token", 0)
    assert "its text is encoded as" in fault.reason
    fault = explain(canonicity, list(canonicity.whole_piece_encodings[word]))
    assert fault is not None
    assert (fault.kind, fault.position) == ("piece", 0)
    end = canonicity.vocabulary.end_tokens[0]
    assert explain(canonicity, [0, end]) == Fault(1, "token", f"the encoder produces token {end} b'' for no text here")
    with pytest.raises(VocabularyError, match="outside"):
        explain(canonicity, [0, canonicity.size])


def test_byte_tokens() -> None:
    canonicity = real("mistral-v1")
    assert canonicity.fallback is not None
    byte = canonicity.fallback.tokens.tolist()
    letter = canonicity.letter_tokens[b"a"]
    for tokens, position, words in [
        ([byte[0x61]], 0, "begins no character that is no token"),
        ([letter, *(byte[part] for part in "世".encode())], 3, "does not go on with a character that is no token"),
        ([byte[0xE4], letter], 1, "stands inside a character"),
        ([letter, byte[0xE4], byte[0xB8]], 2, "leave a character unfinished"),
    ]:
        fault = explain(canonicity, tokens)
        assert fault is not None
        assert (fault.kind, fault.position) == ("bytes", position)
        assert words in fault.reason
    assert explain(canonicity, [letter, byte[0x0A], letter]) is None


def test_isolated_tokens(tmp_path: Path) -> None:
    """User-defined pieces cut the text: ab|[x]|ab; what spells one otherwise is not proper."""
    scores = dict.fromkeys("ab[]x", -9.0) | {"ab": -1.0, "x]": -2.0, "[x]": 0.0, "[x]b": 0.0}
    name = scored_pieces(tmp_path / "m", scores, {"[x]": USER_DEFINED, "[x]b": USER_DEFINED})
    tokenizer = load_tokenizer(name)
    canonicity = build_canonicity(tokenizer)
    for text in ("ab[x]ab", "[x]", "[x][x]a", "a[x]b", "[x]bb", "x]ab[", "[[x]]"):
        tokens = tokenizer.encode(text)
        assert explain(canonicity, tokens) is None, text
        for place in range(len(tokens)):
            letters = [
                canonicity.letter_tokens[bytes([byte])] for byte in canonicity.vocabulary.token_bytes(tokens[place])
            ]
            changed = [*tokens[:place], *letters, *tokens[place + 1 :]]
            assert (explain(canonicity, changed) is None) == (tokenizer.encode(text) == changed), (text, changed)
    ids = canonicity.letter_tokens
    fault = explain(canonicity, [ids[b"a"], ids[b"["], ids[b"x"], ids[b"]"]])
    assert fault is not None
    assert (fault.kind, fault.position) == ("isolated", 1)
    one = tokenizer.encode("[x]")
    assert tokenizer.encode("[x]b") != [*one, ids[b"b"]]
    fault = explain(canonicity, [*one, ids[b"b"]])
    assert fault is not None
    assert (fault.kind, fault.position) == ("isolated", 0)


def test_pieces_that_are_tokens(tmp_path: Path) -> None:
    """tiktoken gives xyb at once, though its letters never merge to it."""
    canonicity = build_canonicity(load_tokenizer(ranked_pieces(tmp_path / "ranks", ["ab", "bc", "xbc"])))
    assert not len(canonicity.improper_tokens)
    canonicity = build_canonicity(
        load_tokenizer(ranked_pieces(tmp_path / "more", ["xb", "bc", "xyb", "abc", "ab", "abcd"]))
    )
    improper = {canonicity.vocabulary.token_bytes(int(token)) for token in canonicity.improper_tokens}
    assert improper == {b"xyb"}
    token = int(canonicity.improper_tokens[0])
    assert canonicity.whole_piece_encodings == {token: (ord("x"), ord("y"), ord("b"))}
    assert canonicity.whole_piece_of == {(ord("x"), ord("y"), ord("b")): token}
