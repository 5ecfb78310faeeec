from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.proper.pretokenizers import tiktoken_steps
from tokdfa.errors import TokenizerError
from tokdfa.proper.pretokenizer import build_marked_dfa

if TYPE_CHECKING:
    from tokdfa.proper.pretokenizer_dfa import MarkedDfa

    pass


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


def test_pieces(words: MarkedDfa) -> None:
    assert words.pieces("añ \n") == ["añ".encode(), b" ", b"\n"]
    assert words.pieces("") == []
    with pytest.raises(TokenizerError, match="no UTF-8 form"):
        words.pieces("\ud800")
