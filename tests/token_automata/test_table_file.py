from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.tokens_dfa.test_strategy import LETTERS, WORDS, compiled, mask_of, tables_are_equal
from tests.vocabulary.vocabularies import ODD
from tokdfa.backends.tokens_dfa.strategy import CompiledTokensDfa
from tokdfa.backends.tokens_dfa.table_file import write_table
from tokdfa.constraint import Choice, Constraint, Regex
from tokdfa.core.stored_file import pack_arrays
from tokdfa.errors import SavedIndexError
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

ASCII_LETTERS = Vocabulary([*(bytes([letter]) for letter in range(65, 123)), b""], [58])


@pytest.mark.parametrize(
    ("constraint", "vocab", "options"),
    [
        (Regex("(ab|b-)*é?", label="one", ascii_classes=True), LETTERS, {}),
        (Regex("HTTP", flags="i"), ASCII_LETTERS, {"ready_masks": False}),
        (Regex("(https?://)?[a-z]+"), WORDS, {"mute_literals": True}),
        (Choice([b"a\x00", "ab", b"\xff"], label="bytes"), ODD, {"token_classes": "strings", "reduce": False}),
        (Choice([""]), ODD, {}),
    ],
)
def test_what_is_saved_is_loaded(constraint: Constraint, vocab: Vocabulary, options: dict, tmp_path: Path) -> None:
    made = compiled(constraint, vocab, **options)
    made.save(tmp_path / "index")
    loaded = CompiledTokensDfa.load(tmp_path / "index", vocab)
    assert loaded.constraint == constraint
    assert loaded.constraint.label == constraint.label
    assert loaded.settings == made.settings
    assert loaded.sizes == made.sizes
    assert tables_are_equal(made, loaded)
    assert [array.dtype for array in made.table] == [array.dtype for array in loaded.table]
    for state in range(made.sizes["states"]):
        assert mask_of(made, state) == mask_of(loaded, state)
        assert made.transitions(state) == loaded.transitions(state)
    assert list(loaded.phases) == ["load", "masks"]
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_a_real_vocabulary(tmp_path: Path) -> None:
    vocab = load_tokenizer("mistral-v1").vocabulary
    made = compiled(Regex(r"[a-z]{1,5}@[^ ]+\.(com|org)"), vocab)
    made.save(tmp_path / "index.npz")
    assert tables_are_equal(made, CompiledTokensDfa.load(tmp_path / "index.npz", vocab))


def test_other_vocabularies_are_refused(tmp_path: Path) -> None:
    compiled(Regex("ab*"), LETTERS).save(tmp_path / "index")
    with pytest.raises(SavedIndexError, match=r"compiled for the vocabulary 'letters' .* not for 'words'"):
        CompiledTokensDfa.load(tmp_path / "index", WORDS)


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SavedIndexError, match="there is no file"):
        CompiledTokensDfa.load(tmp_path / "nothing", LETTERS)
    for content in (b"", b"PK\x03\x04", b"not a zip", b"\x93NUMPY\x01\x00"):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(SavedIndexError, match="no saved index, or damaged"):
            CompiledTokensDfa.load(tmp_path / "file", LETTERS)
    other = pack_arrays({"header": np.frombuffer(b'{"format": "x"}', np.uint8)})
    (tmp_path / "other.npz").write_bytes(other)
    with pytest.raises(SavedIndexError, match="not in version"):
        CompiledTokensDfa.load(tmp_path / "other.npz", LETTERS)
    np.save(tmp_path / "array.npy", np.arange(3))
    with pytest.raises(SavedIndexError):
        CompiledTokensDfa.load(tmp_path / "array.npy", LETTERS)
    np.savez(tmp_path / "pickled.npz", header=np.array([{}], dtype=object))
    with pytest.raises(SavedIndexError, match="no saved index"):
        CompiledTokensDfa.load(tmp_path / "pickled.npz", LETTERS)


def saved() -> bytes:
    made = compiled(Regex("(ab|b-)*é?"), LETTERS)
    arrays = made.table._asdict()
    header = {
        "format": "tokdfa tokens_dfa", "version": 1, "constraint": {"kind": "regex", "pattern": "(ab|b-)*é?"},
        "vocabulary": "letters", "fingerprint": LETTERS.fingerprint, "settings": {}, "sizes": {},
    }  # fmt: skip
    return pack_arrays({"header": np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays})


GOOD = saved()


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.integers(0, len(GOOD) - 1), st.integers(1, 255))
def test_a_changed_byte_is_noticed(tmp_path_factory: pytest.TempPathFactory, at: int, change: int) -> None:
    damaged = bytearray(GOOD)
    damaged[at] ^= change
    path = tmp_path_factory.mktemp("damaged") / "index"
    path.write_bytes(damaged)
    with pytest.raises(SavedIndexError):
        CompiledTokensDfa.load(path, LETTERS)


@pytest.mark.parametrize("length", range(0, len(GOOD), 97))
def test_truncated_files_are_refused(length: int, tmp_path: Path) -> None:
    (tmp_path / "index").write_bytes(GOOD[:length])
    with pytest.raises(SavedIndexError):
        CompiledTokensDfa.load(tmp_path / "index", LETTERS)


CHANGES = {
    "row_of": [("wrong row", lambda a: a + 9)],
    "offsets": [("falling", lambda a: a[::-1]), ("too long", lambda a: a + 1), ("none", lambda a: a[:0])],
    "classes": [
        ("too large", lambda a: a + 99),
        ("unsorted", lambda a: a[::-1]),
        ("wide", lambda a: a.astype(np.int64)),
    ],
    "targets": [("too large", lambda a: a + 99), ("short", lambda a: a[:-1])],
    "accepting": [("short", lambda a: a[:-1]), ("numbers", lambda a: a.astype(np.int32))],
    "member_offsets": [("falling", lambda a: a[::-1])],
    "members": [("too large", lambda a: a + 999), ("swapped", lambda a: a[::-1]), ("negative", lambda a: a - 99)],
    "ranks": [("some", lambda a: np.arange(3, dtype=np.int32))],
    "class_of": [("too large", lambda a: a + 99), ("short", lambda a: a[:-1]), ("matrix", lambda a: a.reshape(1, -1))],
}


@pytest.mark.parametrize(
    ("name", "change"), [(name, change) for name, changes in CHANGES.items() for _, change in changes]
)
def test_tables_with_a_right_digest_are_still_checked(name: str, change, tmp_path: Path) -> None:
    made = compiled(Regex("(ab|b-)*é?"), LETTERS)
    table = made.table._replace(**{name: change(getattr(made.table, name))})
    write_table(tmp_path / "index", table, made.constraint, LETTERS, {}, {})
    with zipfile.ZipFile(tmp_path / "index") as archive:
        assert f"{name}.npy" in archive.namelist()
    with pytest.raises(SavedIndexError, match="holds no valid table"):
        CompiledTokensDfa.load(tmp_path / "index", LETTERS)
