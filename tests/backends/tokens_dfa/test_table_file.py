from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.backends.tokens_dfa.test_strategy import LETTERS, WORDS, compiled, mask_of, tables_are_equal
from tests.vocabulary.vocabularies import ODD
from tokdfa.backends.tokens_dfa.strategy import CompiledTokensDfa
from tokdfa.backends.tokens_dfa.table_file import write_table
from tokdfa.constraint import Choice, Constraint, Regex
from tokdfa.errors import SavedIndexError
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


def test_other_vocabularies_are_refused(tmp_path: Path) -> None:
    compiled(Regex("ab*"), LETTERS).save(tmp_path / "index")
    with pytest.raises(SavedIndexError, match=r"compiled for the vocabulary 'letters' .* not for 'words'"):
        CompiledTokensDfa.load(tmp_path / "index", WORDS)


CHANGES = {
    "row_of": [lambda a: a + 9],
    "offsets": [lambda a: a[::-1], lambda a: a + 1, lambda a: a[:0]],
    "classes": [lambda a: a + 99, lambda a: a[::-1], lambda a: a.astype(np.int64)],
    "targets": [lambda a: a + 99, lambda a: a[:-1]],
    "accepting": [lambda a: a[:-1], lambda a: a.astype(np.int32)],
    "member_offsets": [lambda a: a[::-1]],
    "members": [lambda a: a + 999, lambda a: a[::-1], lambda a: a - 99],
    "ranks": [lambda a: np.arange(3, dtype=np.int32)],
    "class_of": [lambda a: a + 99, lambda a: a[:-1], lambda a: a.reshape(1, -1)],
}


@pytest.mark.parametrize(("name", "change"), [(name, change) for name in CHANGES for change in CHANGES[name]])
def test_tables_with_a_right_digest_are_still_checked(name: str, change, tmp_path: Path) -> None:
    made = compiled(Regex("(ab|b-)*é?"), LETTERS)
    table = made.table._replace(**{name: change(getattr(made.table, name))})
    write_table(tmp_path / "index", table, made.constraint, LETTERS, {}, {})
    with zipfile.ZipFile(tmp_path / "index") as archive:
        assert f"{name}.npy" in archive.namelist()
    with pytest.raises(SavedIndexError, match="holds no valid table"):
        CompiledTokensDfa.load(tmp_path / "index", LETTERS)
