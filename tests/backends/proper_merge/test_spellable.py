"""Spellable texts against the reference encoders: a text is one iff its encoding spells it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.proper.small_tokenizers import merge_list, scored_pieces
from tokdfa.automata.algebra import is_empty
from tokdfa.backends.proper_merge.spellable import spellable_part, spellable_texts
from tokdfa.constraint import Regex
from tokdfa.proper.rules_cache import load_canonicity
from tokdfa.regex.compile import compile_dfa
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path


def model(folder: Path, letters: str, byte_tokens: range) -> str:
    pieces = {f"<0x{byte:02X}>": 0.0 for byte in byte_tokens}
    scores = dict.fromkeys("\u2581" + letters, -1.0) | pieces
    return scored_pieces(folder / "m.model", scores, dict.fromkeys(pieces, 6))


@pytest.mark.parametrize(("letters", "byte_tokens"), [("aé€", range(0)), ("aé", range(256))])
def test_sentencepiece(tmp_path: Path, letters: str, byte_tokens: range) -> None:
    tokenizer = load_tokenizer(model(tmp_path, letters, byte_tokens))
    texts = spellable_texts(load_canonicity(tokenizer))
    assert texts is not None
    rng = random.Random(0)
    outcomes = set()
    for _ in range(600):
        text = "".join(rng.choices("aé€è日b \u2581🦜", k=rng.randrange(5)))
        spelled = tokenizer.spell(tokenizer.encode(text)) == text.encode()
        assert texts.accepts(text.encode()) == spelled, text
        outcomes.add(spelled)
    assert outcomes == {True, False}


def test_bytes_that_are_no_tokens(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(merge_list(tmp_path / "tokenizer.json", "ab", [("a", "b")]))
    dfa = compile_dfa(Regex("[a-c]{1,3}"))
    part = spellable_part(dfa, tokenizer, load_canonicity(tokenizer), 1000)
    assert part.accepts(b"aba")
    assert not part.accepts(b"abc")
    assert is_empty(spellable_part(compile_dfa(Regex("c+")), tokenizer, load_canonicity(tokenizer), 1000))
