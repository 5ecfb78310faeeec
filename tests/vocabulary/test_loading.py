"""Reading files and libraries: each fault is named with its place."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tokdfa.core.packages import import_library
from tokdfa.errors import MissingDependency, TokenizerError
from tokdfa.vocabulary import loading


def test_faults_of_paths_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    present = tmp_path / "present"
    present.write_bytes(b"12345")
    assert loading.read_file(present) == b"12345"
    os.mkfifo(tmp_path / "pipe")
    for name, message in [
        ("absent", "there is no such file"),
        ("", "this is a folder"),
        ("pipe", "not a regular file"),
        ("present/below", "Not a directory|no such file"),
        ("x" * 5000, "File name too long|no such file"),
    ]:
        with pytest.raises(TokenizerError, match=message) as caught:
            loading.read_file(tmp_path / name)
        assert str(tmp_path) in str(caught.value)
    with pytest.raises(TokenizerError, match=r"null|no such file"):
        loading.read_file(Path("a\0b"))
    monkeypatch.setattr(loading, "MAX_FILE_BYTES", 4)
    with pytest.raises(TokenizerError, match="5 bytes is too large"):
        loading.read_file(present)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a": 1,\n "b" 2}', "line 2, column 6"),
        (b"", "line 1, column 1"),
        (b"[1]", "JSON list, not an object"),
        (b'{"a": "\xff"}', r"byte 7 \(0xff\) is not UTF-8"),
        (b"[" * 200_000, "nested too deep"),
        (b'{"a": ' + b"9" * 10_000 + b"}", "cannot be read"),
    ],
)
def test_faults_of_json_are_named(data: bytes, message: str) -> None:
    with pytest.raises(TokenizerError, match=message) as caught:
        loading.parse_json(Path("some.json"), data)
    assert str(caught.value).startswith("some.json: ")


def test_a_missing_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(MissingDependency, match="the model needs the package sentencepiece"):
        import_library("sentencepiece", "the model")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=r"pip install 'tokdfa\[llama3\]'") as caught:
        loading.package_file("llama_models", "x", "the tokenizer llama3")
    assert caught.value.package == "llama-models"


def test_end_tokens_by_id_and_by_name() -> None:
    def choose(*wanted: str, size: int | None = None) -> tuple[list[int], list[bytes], dict[int, str]]:
        tokens, special = [b"a", b"\n", b"", b"<|x|>", b"", b"b", b"b"], {2: "</s>", 4: "5"}
        return loading.choose_end_tokens(Path("f"), wanted, tokens, special, {3: "<|x|>"}, size), tokens, special

    chosen, tokens, special = choose("</s>", "4", "5", "<|x|>", "\n", "8", size=9)
    assert chosen == [2, 4, 4, 3, 1, 8], "a name goes before an id"
    assert tokens == [b"a", b"", b"", b"", b"", b"b", b"b"], "what ends a text spells nothing"
    assert special == {2: "</s>", 4: "5", 3: "<|x|>", 1: "\n", 8: "<added 8>"}
    for wrong in ("7", "<s>", "", "9" * 5000, "-1", "b"):
        with pytest.raises(TokenizerError, match=r"f: end token .* is not among the tokens; .* '</s>' \(2\)"):
            choose(wrong)
