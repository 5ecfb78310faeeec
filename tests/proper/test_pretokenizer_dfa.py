from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.proper.pretokenizers import tiktoken_steps
from tokdfa.automata.algebra import distinguishing_word
from tokdfa.automata.dfa import Dfa
from tokdfa.errors import AutomatonError, TokenizerError
from tokdfa.proper.pretokenizer import build_marked_dfa
from tokdfa.proper.pretokenizer_dfa import MarkedDfa

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def words() -> MarkedDfa:
    return build_marked_dfa(tiktoken_steps(r"\S+|\s"), cache=False)


def test_accepts(words: MarkedDfa) -> None:
    assert words.accepts_pieces([])
    assert words.accepts_pieces([b"a", b" ", b" ", "é".encode()])
    assert not words.accepts_pieces([b"a", b"", b" "])
    assert not words.accepts_pieces([b""] * 2)
    assert not words.accepts_pieces([b"a", b"b"])
    assert not words.accepts_pieces([b"a "])


def test_exactly_the_valid_utf8_is_read() -> None:
    """Against Python's decoder: every prefix of a valid character is alive, every other byte string is dead."""
    dfa = build_marked_dfa([], cache=False)
    unfinished = [b""]
    while unfinished:
        data = unfinished.pop()
        for byte in (0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, *range(0xC0, 0x100)):
            longer = data + bytes([byte])
            state = dfa.run(longer)
            try:
                longer.decode()
            except UnicodeDecodeError as error:
                alive = error.reason == "unexpected end of data"
                assert (state >= 0) == alive, longer
                if alive:
                    assert not dfa.accepting[state]
                    unfinished.append(longer)
            else:
                assert state == dfa.start


def test_every_character_ends_in_the_state_of_its_class() -> None:
    r"""All 1,112,064 characters through the bytes: the automaton of ``a|\w`` accepts those that `tiktoken` matches."""
    from tests.proper.test_pretokenizer_classes import members
    from tokdfa.proper.pretokenizer_classes import all_scalars
    from tokdfa.regex.syntax_tree import SourceSet

    dfa = build_marked_dfa(tiktoken_steps(r"a|\w"), cache=False)
    expected = members(SourceSet("tiktoken", r"\w"))
    encoded = np.frombuffer(all_scalars().encode("utf-32-le"), dtype=np.uint32)
    table = np.concatenate([np.take(dfa.transitions, dfa.byte_class, axis=1), np.full((1, 256), -1, np.int32)])
    accepted = set()
    for size, points in (
        (1, encoded[:0x80]),
        (2, encoded[0x80:0x800]),
        (3, encoded[0x800:0xF800]),
        (4, encoded[0xF800:]),
    ):
        text = points.tobytes().decode("utf-32-le")
        columns = np.frombuffer(text.encode(), dtype=np.uint8).reshape(-1, size).T
        states = np.full(len(points), dfa.start, dtype=np.int64)
        for column in columns:
            states = table[states, column]
        accepted |= {character for character, state in zip(text, states, strict=True) if state >= 0}
    assert accepted == expected


def test_the_automaton_is_minimal(words: MarkedDfa) -> None:
    """No two states are equivalent, with the marker as the byte FF, and all are alive."""
    rows = np.take(words.transitions, words.byte_class, axis=1)
    assert (rows[:, 0xFF] == -1).all()
    rows[:, 0xFF] = words.marker
    assert distinguishing_word(Dfa.from_table(rows, words.accepting, 0), Dfa.empty()) == b""
    for one in range(words.state_count):
        for other in range(one):
            first, second = (Dfa.from_table(rows, words.accepting, state) for state in (one, other))
            assert distinguishing_word(first, second) is not None


def test_pieces(words: MarkedDfa) -> None:
    assert words.pieces("añ \n") == ["añ".encode(), b" ", b"\n"]
    assert words.pieces("") == []
    with pytest.raises(TokenizerError, match="no UTF-8 form"):
        words.pieces("\ud800")


def test_arrays_are_frozen_and_checked(words: MarkedDfa) -> None:
    for name in ("transitions", "byte_class", "marker", "accepting"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(words, name)[0] = 0
    for marker in (np.zeros(words.state_count + 1, np.int32), np.full(words.state_count, words.state_count)):
        with pytest.raises(AutomatonError, match="marker holds -1 or one of"):
            MarkedDfa(words.transitions, words.byte_class, words.accepting, words.start, marker)
    with pytest.raises(AutomatonError):
        MarkedDfa(words.transitions, words.byte_class, words.accepting, words.state_count, words.marker)


def test_save_and_load(words: MarkedDfa, tmp_path: Path) -> None:
    path = tmp_path / "words.npz"
    words.save(path, "words")
    loaded = MarkedDfa.load(path, "words")
    assert loaded.start == words.start
    for name in ("transitions", "byte_class", "marker", "accepting"):
        assert getattr(loaded, name).tolist() == getattr(words, name).tolist()
        assert getattr(loaded, name).dtype == getattr(words, name).dtype
    assert [entry.name for entry in tmp_path.iterdir()] == ["words.npz"]
    with pytest.raises(TokenizerError, match="of this description"):
        MarkedDfa.load(path, "other words")
    with pytest.raises(TokenizerError, match="there is no file"):
        MarkedDfa.load(tmp_path / "none")
