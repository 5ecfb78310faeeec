"""Rules: their number, their arrays against a plain extraction, their order, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.proper.small_tokenizers import (
    BYTE,
    merge_list,
    real,
    scored_pieces,
)
from tokdfa.errors import TokenizerError
from tokdfa.proper.merge_rules import MergeRules, extract_rules
from tokdfa.vocabulary.tokenizers import load_tokenizer


def as_dict(rules: MergeRules) -> dict[tuple[int, int], tuple[int, int]]:
    rows = zip(*(part.tolist() for part in (rules.left, rules.right, rules.result, rules.rank)), strict=True)
    return {(left, right): (result, rank) for left, right, result, rank in rows}


@pytest.mark.parametrize(("name", "count"), [("mistral-v1", 58_980), ("tekken", 269_443), ("llama3", 280_147)])
def test_rules_of_real_tokenizers(name: str, count: int) -> None:
    """Every cut of every token, found with a dict of texts; the counts of Mistral v1 and Llama 3 are published."""
    rules, vocabulary, source = real(name).rules, real(name).vocabulary, real(name).source
    by_text = {vocabulary.token_bytes(int(token)): int(token) for token in np.flatnonzero(source.ranks >= 0)}
    expected = {}
    for text, token in by_text.items():
        for cut in range(1, len(text)):
            left, right = by_text.get(text[:cut]), by_text.get(text[cut:])
            if left is not None and right is not None:
                expected[left, right] = (token, int(source.ranks[token]))
    assert as_dict(rules) == expected
    assert len(rules) == len(expected) == count
    assert np.array_equal(np.diff(rules.row_starts), np.bincount(rules.left, minlength=vocabulary.size))
    assert np.all(np.diff(rules.left.astype(np.int64) * vocabulary.size + rules.right) > 0)
    ranks = rules.rank[rules.in_rank_order()]
    assert np.all(ranks[:-1] <= ranks[1:])
    assert {array.dtype for array in vars(rules).values()} == {np.dtype(np.int32)}


def test_user_defined_pieces_do_not_merge() -> None:
    """Mistral's third model has pieces such as [REFERENCE_DOC_1] that are user-defined: markers, which are no text."""
    import mistral_common

    path = Path(mistral_common.__path__[0]) / "data" / "mistral_instruct_tokenizer_240323.model.v3"
    tokenizer = load_tokenizer(f"sentencepiece:{path}")
    markers = {name: token for token, name in tokenizer.markers.items()}
    wanted = [markers[f"[REFERENCE_DOC_{number}]"] for number in range(20)]
    assert not any(map(tokenizer.vocabulary.token_bytes, wanted))
    rules = extract_rules(tokenizer)
    assert not set(wanted) & set(np.concatenate([rules.left, rules.right, rules.result]).tolist())
    assert len(rules) == 58_980


def test_equal_texts_are_refused(tmp_path: Path) -> None:
    """U+2581 is a space here; a piece with a space in it is never met by the encoder, so it does not merge."""
    tokenizer = load_tokenizer(scored_pieces(tmp_path / "m", {"a": -9.0, "\u2581": -9.0, " a": -1.0, "\u2581a": -2.0}))
    rules = extract_rules(tokenizer)
    assert [tokenizer.vocabulary.token_bytes(int(token)) for token in rules.result] == [b" a"]
    assert tokenizer.encode(" a") == rules.result.tolist()


def test_byte_tokens_that_merge_are_refused(tmp_path: Path) -> None:
    name = merge_list(tmp_path / "t.json", "ab", [("a", "b")])
    path = tmp_path / "t.json"
    content = json.loads(path.read_text())
    content["model"]["vocab"] |= {"<0x41>": 10, "<0x42>": 11, "<0x41><0x42>": 12}
    content["model"] |= {"byte_fallback": True, "merges": [["<0x41>", "<0x42>"]]}
    content["decoder"] = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]}
    content["pre_tokenizer"] = None
    path.write_text(json.dumps(content))
    with pytest.raises(TokenizerError, match="names a byte token"):
        extract_rules(load_tokenizer(name))


def test_a_byte_piece_is_not_what_it_looks_like(tmp_path: Path) -> None:
    """The letters < 0 x 4 1 > next to a byte piece <0x41>: the text is not the piece, and never merges into it."""
    letters = dict.fromkeys("<0x41>", -9.0)
    byte_pieces = {f"<0x{byte:02X}>": 0.0 for byte in range(256)}
    scores = byte_pieces | letters | {"0x": -1.0, "0x4": -2.0, "<0x4": -3.0}
    name = scored_pieces(tmp_path / "m", scores, dict.fromkeys(byte_pieces, BYTE))
    tokenizer = load_tokenizer(name)
    rules = extract_rules(tokenizer)
    assert {tokenizer.vocabulary.token_bytes(int(token)) for token in rules.result} == {b"0x", b"0x4", b"<0x4"}
    assert tokenizer.spell(tokenizer.encode("<0x41>")) == b"<0x41>"
