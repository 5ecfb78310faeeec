from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.backends.proper_merge.token_languages import sequences
from tests.proper.small_tokenizers import merge_list, real, scored_pieces, trained_metaspace
from tokdfa.backends.proper_merge.letter_automaton import letter_automaton, marker_letter
from tokdfa.backends.proper_merge.marked_product import marked_product
from tokdfa.constraint import Choice
from tokdfa.proper.piece_borders import load_marked_dfa
from tokdfa.proper.rules_cache import build_canonicity
from tokdfa.regex.compile import compile_dfa
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.proper.canonical import Canonicity

TEXTS = ["", "a", "é à", "日本 🎉", "x\u200dẟ", "\x00\x7f", "Ωω", "㐀𐍈a"]


def letters_of(canonicity: Canonicity, text: str) -> tuple[int, ...]:
    """By hand: a character that is a letter is one token, any other its bytes."""
    found: list[int] = []
    known = canonicity.letter_tokens
    for character in text:
        spelled = character.encode()
        if canonicity.source.unit == "character" and spelled in known:
            found.append(known[spelled])
        elif canonicity.source.byte_tokens is not None:
            found += [int(canonicity.source.byte_tokens[byte]) for byte in spelled]
        else:
            found += [known[bytes([byte])] for byte in spelled]
    return tuple(found)


@pytest.mark.parametrize("name", ["mistral-v1", "tekken"])
def test_letters_of_texts(name: str) -> None:
    canonicity = real(name)
    letters = letter_automaton(marked_product(compile_dfa(Choice(TEXTS)), None), canonicity)
    assert sequences(letters, canonicity.vocabulary) == {letters_of(canonicity, text) for text in TEXTS}


def test_a_character_that_byte_tokens_have_begun() -> None:
    """Only bytes that complete a character which is no token; then letters as usual."""
    canonicity = real("mistral-v1")
    fallback = canonicity.fallback
    assert fallback is not None
    inside = int(fallback.table[0, 0xC4])
    dfa = compile_dfa(Choice([bytes([byte]) + b"a" for byte in range(256)]))
    found = sequences(letter_automaton(marked_product(dfa, None), canonicity, inside), canonicity.vocabulary)
    unknown = [code for code in range(0x100, 0x140) if chr(code).encode() not in canonicity.letter_tokens]
    assert unknown
    letter = canonicity.letter_tokens[b"a"]
    assert found == {(int(fallback.tokens[0x80 + code - 0x100]), letter) for code in unknown}


def test_what_is_no_text_drops_out() -> None:
    canonicity = real("mistral-v1")
    dfa = compile_dfa(Choice([b"ok", b"\xff", b"\xc3", b"\xed\xa0\x80", b"a\x80"]))
    letters = letter_automaton(marked_product(dfa, None), canonicity)
    assert sequences(letters, canonicity.vocabulary) == {letters_of(canonicity, "ok")}
    nothing = letter_automaton(marked_product(compile_dfa(Choice([b"\xff"])), None), canonicity)
    assert (nothing.rows, nothing.start) == ([], -1)


def test_what_cannot_be_spelled_drops_out(tmp_path: Path) -> None:
    bytewise = build_canonicity(load_tokenizer(merge_list(tmp_path / "merges.json", "ab", [("a", "b")])))
    without = build_canonicity(load_tokenizer(scored_pieces(tmp_path / "plain", {"a": -1.0, "b": -1.0})))
    for canonicity in (bytewise, without):
        letters = letter_automaton(marked_product(compile_dfa(Choice(["ab", "ac", "é"])), None), canonicity)
        assert sequences(letters, canonicity.vocabulary) == {letters_of(canonicity, "ab")}


@pytest.mark.parametrize("name", ["llama3", "metaspace"])
def test_markers_stand_between_pieces(tmp_path: Path, name: str) -> None:
    """With bytes and with characters as letters: what the marked automaton says, letter by letter."""
    tokenizer = load_tokenizer(name if name == "llama3" else _split_metaspace(tmp_path / "metaspace.json"))
    canonicity, marked = build_canonicity(tokenizer), load_marked_dfa(tokenizer)
    assert marked is not None
    marker = marker_letter(canonicity)
    texts = ["a b  c", "one, two", "é 1234 日"]
    letters = letter_automaton(marked_product(compile_dfa(Choice(texts)), marked), canonicity)
    for text in texts:
        expected: list[int] = []
        for piece in marked.pieces(text):
            expected += [marker] * bool(expected) + [*letters_of(canonicity, piece.decode())]
        assert marker in expected
        assert letters.accepts(expected)
        assert not letters.accepts([letter for letter in expected if letter != marker])


def _split_metaspace(path: Path) -> str:
    """A Metaspace tokenizer with byte fallback in which a piece begins at each space."""
    name = trained_metaspace(path)
    path.write_text(path.read_text().replace('"split": false', '"split": true'))
    return name
