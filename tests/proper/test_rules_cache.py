"""The disk cache: what is read is what was made; damage and strange content are built anew, never used."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.proper.small_tokenizers import merge_list, ranked_pieces, trained_metaspace
from tokdfa.core.stored_file import pack_arrays
from tokdfa.proper import rules_cache
from tokdfa.proper.rules_cache import load_canonicity, read_or_build, rules_folder
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.proper.canonical import Canonicity

PARTS = ("rules", "derivations", "merge_tree", "lists", "fallback")


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the tokenizers that were built rather than read."""
    names: list[str] = []
    build = rules_cache.build_canonicity

    def noting(tokenizer: Any) -> Canonicity:
        names.append(tokenizer.name)
        return build(tokenizer)

    monkeypatch.setattr(rules_cache, "build_canonicity", noting)
    return names


def assert_equal(one: Canonicity, other: Canonicity) -> None:
    for part in PARTS:
        ours, theirs = getattr(one, part), getattr(other, part)
        assert (ours is None) == (theirs is None)
        for field in ours.__match_args__ if ours is not None else ():
            assert np.array_equal(getattr(ours, field), getattr(theirs, field))
            assert getattr(ours, field).dtype == getattr(theirs, field).dtype


def test_read_is_what_was_built(built: list[str], tmp_path: Path) -> None:
    names = [
        trained_metaspace(tmp_path / "t.json"),
        ranked_pieces(tmp_path / "ranks", ["ab", "abc"]),
        merge_list(tmp_path / "m.json", "ab", []),
    ]
    for name in names:
        tokenizer = load_tokenizer(name)
        made = read_or_build(tokenizer, tmp_path / "cache")
        assert_equal(made, read_or_build(tokenizer, tmp_path / "cache"))
    assert built == names
    assert len(list((tmp_path / "cache").iterdir())) == 3


def changes() -> list[tuple[str, Any]]:
    """Arrays that would lead compiled code astray, and arrays of another type or length."""
    return [
        ("rules.left", lambda array: array + 10_000),
        ("rules.right", lambda array: -array - 2),
        ("rules.result", lambda array: array[:-1]),
        ("rules.row_starts", lambda array: array[::-1].copy()),
        ("rules.spelling_starts", lambda array: array + 1),
        ("rules.rank", lambda array: array.astype(np.int64)),
        ("derivations.left", lambda array: np.where(array >= 0, 10_000, array).astype(np.int32)),
        ("derivations.right", lambda array: np.full_like(array, -1)),
        ("derivations.level", lambda array: np.maximum(array, 0)),
        ("derivations.is_proper", lambda array: array.astype(np.int32)),
        ("merge_tree.order", lambda array: array + 10_000),
        ("merge_tree.end", lambda array: array + 10_000),
        ("merge_tree.number", lambda array: np.full_like(array, -1)),
        ("merge_tree.irregular_starts", lambda array: array + 10_000),
        ("merge_tree.child_starts", lambda array: array[:-1]),
        ("lists.ends", lambda array: array + 10_000),
        ("lists.starts", lambda array: -array - 5),
        ("lists.list_starts", lambda array: array[::-1].copy()),
        ("lists.list_starts", lambda array: array[0]),
        ("lists.ends", lambda array: array[:-1]),
        ("lists.state_of", lambda array: array + 10_000),
        ("fallback.table", lambda array: array + 10_000),
        ("fallback.table", lambda array: array[:, :10]),
        ("fallback.byte_of", lambda array: array + 300),
    ]


@pytest.mark.parametrize("case", range(len(changes())))
def test_strange_content_is_built_anew(built: list[str], tmp_path: Path, case: int) -> None:
    key, change = changes()[case]
    tokenizer = load_tokenizer(trained_metaspace(tmp_path / "t.json"))
    made = read_or_build(tokenizer, tmp_path / "cache")
    (file,) = (tmp_path / "cache").iterdir()
    with np.load(file) as archive:
        arrays = dict(archive)
    arrays[key] = change(arrays[key])
    file.write_bytes(pack_arrays(arrays))
    built.clear()
    assert_equal(read_or_build(tokenizer, tmp_path / "cache"), made)
    assert built == [tokenizer.name]


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    tokenizer = load_tokenizer(ranked_pieces(tmp_path / "ranks", ["ab"]))
    assert len(read_or_build(tokenizer, tmp_path / "file" / "below").rules) == 1


def test_the_front_door(built: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same object for the same tokenizer, from any thread; the folder is the user's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert rules_folder() == tmp_path / "home" / "tokdfa" / "merge-rules"
    tokenizer = load_tokenizer(ranked_pieces(tmp_path / "ranks", ["ab", "ba"]))
    together = threading.Barrier(4)

    def load(_: int) -> Canonicity:
        together.wait()
        return load_canonicity(tokenizer)

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(load, range(4)))) == 1
    assert built == [tokenizer.name]
    assert len(list(rules_folder().iterdir())) == 1
