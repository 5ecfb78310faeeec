"""``tokdfa proper``, run as a user runs it: what it prints, and its exit status."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.command_line import command
from tests.vocabulary.tokenizer_files import byte_level
from tokdfa.cli.proper import cut_tokens, find_token
from tokdfa.cli.text import parse_ids
from tokdfa.errors import VocabularyError
from tokdfa.proper.rules_cache import build_canonicity
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.command_line import Command


@pytest.fixture
def proper(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return command("proper", 60, monkeypatch, capsys)


def test_a_text(proper: Command) -> None:
    status, lines, _ = proper("It's 12345 w\u00f6rld", "-t", "llama3")
    tokens = load_tokenizer("llama3").encode("It's 12345 w\u00f6rld")
    assert status == 0
    assert [line.split()[0] for line in lines[3:8]] == ["'It'", '"\'s"', "'", "'123'", "'45'"]
    assert [token for line in lines[3:] for token in line.split() if token.isdigit()] == list(map(str, tokens))
    assert lines[8].startswith("' w\u00f6rld'")


@pytest.mark.parametrize("arguments", [("--tokens", "415,350,431"), ("--cut", " The|od|ore")])
def test_a_sequence_that_is_not_proper(proper: Command, arguments: tuple[str, ...]) -> None:
    status, lines, _ = proper(*arguments, "-t", "mistral-v1")
    assert status == 1
    assert "at position 1: 350 b'od' cannot follow 415 b' The'" in lines[0]
    assert [line.split()[:2] for line in lines[3:]] == [["0", "415"], ["1", "350"], ["2", "431"]]
    assert lines[3].endswith("<- first difference")


def test_a_sequence_that_is_proper(proper: Command) -> None:
    status, lines, _ = proper("--tokens", "[22704, 431]", "-t", "mistral-v1")
    assert (status, lines[0]) == (0, "proper")
    assert [line.split()[:2] for line in lines[3:]] == [["0", "22704"], ["1", "431"]]
    assert proper("--tokens", "", "-t", "bytes")[:2] == (
        0,
        ["proper", "text      '' (0 characters, 0 bytes, 0 pieces)"],
    )


@pytest.mark.parametrize(("tokens", "said"), [("97, 256", "special token <end>"), ("226, 152", "no text ends here")])
def test_sequences_with_special_tokens_and_without_a_text(proper: Command, tokens: str, said: str) -> None:
    status, lines, _ = proper("--tokens", tokens, "-t", "bytes")
    assert status == 1
    assert said in lines[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a\u2581", "-t", "mistral-v1"), "U+2581"),
        ((), "give one of"),
        (("a", "--tokens", "1"), "give one of"),
        (("--tokens", "1,x"), "not 'x'"),
        (("--tokens", "1,999"), "token 999 is outside 0..256"),
        (("--cut", "a|bc"), "part 1 of --cut: no token of bytes spells 'bc'"),
        (("--cut", "a||b"), "part 1 of --cut is empty"),
        (("a", "-t", "byte"), "did you mean 'bytes'"),
    ],
)
def test_errors_are_one_message_and_status_two(proper: Command, arguments: tuple[str, ...], message: str) -> None:
    status, lines, error = proper("-t", "bytes", *arguments)
    assert (status, lines) == (2, [])
    assert error.startswith("error:")
    assert message in error


@pytest.mark.parametrize("text", ["1,22,3", "1 22 3", "[1, 22, 3]", " [ 1 ,22\n3 ] "])
def test_ids_are_read_as_they_are_written(text: str) -> None:
    assert parse_ids(text) == [1, 22, 3]


def test_the_token_that_encoding_uses_is_taken(tmp_path: Path) -> None:
    """Isolated before usable before others: the byte piece of Mistral v1 comes first in the file, and is never used."""
    tokenizer = load_tokenizer("mistral-v1")
    assert tokenizer.vocabulary.token_bytes(3 + ord("a")) == b"a"
    assert [find_token(tokenizer, "a", "it")] == tokenizer.encode("a")
    assert cut_tokens(tokenizer, "a|b") == tokenizer.encode("a") + tokenizer.encode("b")
    assert cut_tokens(tokenizer, "") == []
    isolated = load_tokenizer(f"hf:{byte_level(tmp_path / 't.json')}?special=")
    isolated.keep("canonicity", lambda: build_canonicity(isolated))
    for text in ("      ", "<tool>", "\u65e5\u672c\u8a9e"):
        assert [find_token(isolated, text, "it")] == isolated.encode(text)
    with pytest.raises(VocabularyError, match="it: no token"):
        find_token(tokenizer, "", "it")
