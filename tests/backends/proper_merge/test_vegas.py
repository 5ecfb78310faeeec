"""Where tokens cannot run across: against a search through all paths, and against what the reference encodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.backends.proper_merge.test_merging import merge_lists, pieces
from tests.backends.proper_merge.token_languages import TEXTS, regexes
from tests.proper.small_tokenizers import merge_list, ranked_pieces, real
from tokdfa.automata.algebra import minimize
from tokdfa.backends.proper_merge.letter_automaton import letter_automaton
from tokdfa.backends.proper_merge.marked_product import marked_product
from tokdfa.backends.proper_merge.vegas import divide, find_cuts, spelling_trie
from tokdfa.constraint import Regex
from tokdfa.proper.piece_borders import load_marked_dfa
from tokdfa.proper.rules_cache import build_canonicity
from tokdfa.proper.verify import encode_piece
from tokdfa.regex.compile import compile_dfa
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tokdfa.backends.proper_merge.vegas import Division
    from tokdfa.proper.canonical import Canonicity
    from tokdfa.token_automata.token_rows import TokenRows


def letters_of(canonicity: Canonicity, pattern: str, tokenizer: str | None = None) -> TokenRows:
    marked = None if tokenizer is None else load_marked_dfa(load_tokenizer(tokenizer))
    return letter_automaton(marked_product(minimize(compile_dfa(Regex(pattern))), marked), canonicity)


def divided(canonicity: Canonicity, pattern: str, tokenizer: str | None = None) -> Division:
    return divide(letters_of(canonicity, pattern, tokenizer), spelling_trie(canonicity))


def crossed_by_search(letters: TokenRows, canonicity: Canonicity) -> set[int]:
    """By following every token that the reference can make, from every state."""
    crossed = set()
    for token in range(canonicity.size):
        spelled = canonicity.vocabulary.token_bytes(token)
        if len(spelled) < 2 or canonicity.source.encode_piece(spelled) != [token]:
            continue
        for start in range(letters.state_count):
            path = [start]
            for byte in spelled:
                target = letters.rows[path[-1]].get(canonicity.letter_tokens[bytes([byte])])
                if target is None:
                    break
                path.append(target)
            else:
                crossed.update(path[1:-1])
    return crossed


def stretches(division: Division, canonicity: Canonicity, text: bytes) -> list[bytes]:
    """`text` (letters are bytes, no markers) cut wherever its path comes past a cut."""
    state, found = division.letters.start, [b""]
    for byte in text:
        if division.is_cut[state] and found[-1]:
            found.append(b"")
        found[-1] += bytes([byte])
        state = division.letters.rows[state][canonicity.letter_tokens[bytes([byte])]]
    return found


def check(canonicity: Canonicity, pattern: str) -> None:
    division = divided(canonicity, pattern)
    crossed = crossed_by_search(division.letters, canonicity)
    assert set(np.flatnonzero(~division.is_cut).tolist()) == crossed
    dfa = compile_dfa(Regex(pattern))
    for text in map(str.encode, TEXTS):
        if dfa.accepts(text):
            found = stretches(division, canonicity, text)
            # A stretch that is not all of a piece is never looked up as a whole piece: it merges.
            encode = merged if len(found) > 1 else encoded
            assert [token for part in found for token in encode(canonicity, part)] == encoded(canonicity, text)


def encoded(canonicity: Canonicity, text: bytes) -> list[int]:
    """What the reference makes of `text`."""
    return canonicity.source.encode_piece(text) if text else []


def merged(canonicity: Canonicity, text: bytes) -> list[int]:
    """What merging alone makes of `text`."""
    return encode_piece(canonicity, text)


@settings(max_examples=60)
@given(merges=merge_lists(), pattern=regexes())
@example(merges=[("a", "b")], pattern="(ab|ca)*")
@example(merges=[("b", "c"), ("a", "b")], pattern="a(bc)*")  # ab is a token that never stands there
def test_merge_lists(tmp_path_factory: pytest.TempPathFactory, merges: list[tuple[str, str]], pattern: str) -> None:
    path = tmp_path_factory.mktemp("merges") / "tokenizer.json"
    check(build_canonicity(load_tokenizer(merge_list(path, "abc", merges))), pattern)


@settings(max_examples=40)
@given(texts=pieces(), pattern=regexes())
@example(texts=["ba", "ab", "abab"], pattern="(ab)*c?")  # abab is a token as a whole piece only
@example(texts=["aaa"], pattern="b(a)+")  # aaa is one, but not where it follows a cut inside a piece
def test_pieces(tmp_path_factory: pytest.TempPathFactory, texts: list[str], pattern: str) -> None:
    path = tmp_path_factory.mktemp("pieces") / "ranks"
    check(build_canonicity(load_tokenizer(ranked_pieces(path, texts))), pattern)


@settings(max_examples=60)
@given(merges=merge_lists(), parts=st.lists(regexes(), min_size=2, max_size=3), spans=st.booleans())
def test_delimiters(
    tmp_path_factory: pytest.TempPathFactory, merges: list[tuple[str, str]], parts: list[str], spans: bool
) -> None:
    """Between ``zx`` and ``yz``, which merge with nothing, is a Vegas configuration; until some token spans them."""
    path = tmp_path_factory.mktemp("merges") / "tokenizer.json"
    merges = [*merges, *([("z", "x"), ("y", "z")] if spans else [])]
    canonicity = build_canonicity(load_tokenizer(merge_list(path, "abcxyz", merges)))
    letters = letters_of(canonicity, "".join(f"zx({part})yz" for part in parts))
    cuts = find_cuts(letters, spelling_trie(canonicity))
    x, y, z = (canonicity.letter_tokens[letter] for letter in (b"x", b"y", b"z"))
    assert all(cuts[state] == (not spans) for state, row in enumerate(letters.rows) if x in row)
    assert all(cuts[row[y]] == (not spans) for row in letters.rows if y in row)
    assert all(cuts[row[z]] for row in letters.rows if z in row and x not in letters.rows[row[z]])


class TestParts:
    def test_equal_parts_are_found(self, tmp_path: Path) -> None:
        """In loops, alternatives and options alike; each under one key, wherever it stands."""
        canonicity = build_canonicity(
            load_tokenizer(merge_list(tmp_path / "t.json", "abcxy", [("a", "b"), ("a", "a")]))
        )
        division = divided(canonicity, "x(aa|ab)y(cx(aa|ab)yb)*(c|bx(aa|ab)yy)?")
        assert (len(division.places), len(division.parts)) == (3, 1)
        alone = divided(canonicity, "x(aa|ab)y")
        assert [part.key for part in alone.parts] == [part.key for part in division.parts]
        other = divided(canonicity, "x(aa|ab|ac)y")
        assert [part.key for part in other.parts] != [part.key for part in division.parts]

    def test_no_text_no_parts(self) -> None:
        canonicity = real("mistral-v1")
        division = divided(canonicity, "")
        assert (division.parts, division.places, division.letters.state_count) == ([], [], 1)


class TestTheExampleOf002:
    """With Mistral's tokenizer, a string that starts with a blank, between a colon and a line break."""

    def test_no_token_runs_across(self) -> None:
        vocabulary = real("mistral-v1").vocabulary
        spelled = [vocabulary.token_bytes(token) for token in range(vocabulary.size)]
        assert [text for text in spelled if b": " in text] == []
        assert [text for text in spelled if b"\n" in text] == [b"\n"]
        assert [text for text in spelled if b":/" in text]  # without the blank it would not be one

    def test_detected(self) -> None:
        canonicity = real("mistral-v1")
        for value in ("[a-z ]+", "[^\n]*", "(true|false)"):
            division = divided(canonicity, f"(name: {value}\n)+")
            (colon,) = canonicity.source.encode_piece(b":")
            (state,) = {row[colon] for row in division.letters.rows if len(row) == 1 and colon in row}
            assert division.is_cut[state]
            assert division.is_cut[division.letters.start]  # that is also after the line break
        without = divided(canonicity, "name:[^\n]*\n")
        (state,) = {row[colon] for row in without.letters.rows if len(row) == 1 and colon in row}
        assert not without.is_cut[state]

    @given(
        before=st.text("abcdefghij _:-", max_size=8),
        value=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=12),
        after=st.text("abc :\n", max_size=8),
    )
    def test_encoded_apart(self, before: str, value: str, after: str) -> None:
        encode_piece = real("mistral-v1").source.encode_piece
        texts = [f"{before}:".encode(), f" {value}".encode(), f"\n{after}".encode()]
        assert encode_piece(b"".join(texts)) == [token for text in texts for token in encode_piece(text)]


def test_borders_of_pieces_are_cuts() -> None:
    """After `` "`` Llama 3 begins a new piece if a letter follows, and none if a bracket does."""
    canonicity = real("llama3")
    quote = canonicity.letter_tokens[b'"']
    for pattern, certain in ((r'x: "[a-z]{2}', True), (r'x: "\]', False)):
        division = divided(canonicity, pattern, "llama3")
        (state,) = {row[quote] for row in division.letters.rows if quote in row}
        assert division.is_cut[state] == certain
