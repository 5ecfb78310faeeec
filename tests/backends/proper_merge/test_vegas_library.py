"""The library: what is read is what was kept; damage and other tokenizers are noticed; it stays within bounds."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.proper.small_tokenizers import merge_list, ranked_pieces
from tokdfa.backends.proper_merge import vegas_library, vegas_usual
from tokdfa.backends.proper_merge.vegas_library import (
    PartLibrary,
    library_folder,
    load_library,
    read_parts,
    write_parts,
)
from tokdfa.backends.proper_merge.vegas_usual import build_library, object_pattern
from tokdfa.constraint import Regex
from tokdfa.core.stored_file import pack_arrays
from tokdfa.errors import TokenizerError
from tokdfa.token_automata.token_rows import TokenRows
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

OWNER = "0123"


def parts(count: int, first: int = 0, size: int = 40) -> dict[str, TokenRows]:
    """Automata that differ, all large enough for a file."""
    made = {}
    for index in range(first, first + count):
        row = dict.fromkeys(range(index, index + size), 2)
        made[f"{index:064x}"] = TokenRows([{900: 1}, row, {901: 3}, {}], [False, False, False, True], 0)
    return made


def contents(library: PartLibrary, keys: dict[str, TokenRows]) -> list[tuple[object, ...] | None]:
    found = [library.find(key) for key in keys]
    return [None if rows is None else (rows.rows, rows.accepting, rows.start) for rows in found]


def plain(made: dict[str, TokenRows]) -> list[tuple[object, ...]]:
    return [(rows.rows, rows.accepting, rows.start) for rows in made.values()]


class TestFiles:
    def test_read_is_what_was_kept(self, tmp_path: Path) -> None:
        made = parts(5)
        library = PartLibrary(OWNER, tmp_path / "library")
        library.add(made)
        assert contents(library, made) == plain(made)
        library.add(made)
        assert len(list((tmp_path / "library").iterdir())) == 1
        other = PartLibrary(OWNER, tmp_path / "library")
        assert contents(other, made) == plain(made)
        assert len(other) == 5
        assert other.find("f" * 64) is None

    def test_a_copy_in_memory(self, tmp_path: Path) -> None:
        library = PartLibrary(OWNER, tmp_path)
        library.add(parts(2))
        copy = library.in_memory()
        copy.add(parts(1, first=7))
        assert contents(copy, parts(2)) == plain(parts(2))
        assert (len(library), len(copy), len(list(tmp_path.iterdir()))) == (2, 3, 1)

    def test_small_parts_stay_in_memory(self, tmp_path: Path) -> None:
        library = PartLibrary(OWNER, tmp_path / "library")
        library.add(parts(2, size=3))
        assert len(library) == 2
        assert not (tmp_path / "library").exists()

    @pytest.mark.parametrize("name", ["keys", "states", "sizes", "accepting", "letters", "targets"])
    def test_numbers_that_lead_nowhere(self, tmp_path: Path, name: str) -> None:
        path = tmp_path / "parts.npz"
        write_parts(path, OWNER, parts(2))
        assert read_parts(path, OWNER) is not None
        with np.load(path) as archive:
            arrays = dict(archive)
        array = arrays[name]
        wrong = [array[:-1], array[:1], array.astype(np.float32), array[:, None]]
        wrong += [array + 4, -array - 1] if name == "targets" else []
        wrong += [-array - 1] if name in ("letters", "sizes", "states") else []
        for bad in wrong:
            path.write_bytes(pack_arrays({**arrays, name: bad}))
            assert read_parts(path, OWNER) is None

    def test_another_tokenizer_is_refused(self, tmp_path: Path) -> None:
        write_parts(tmp_path / "parts.npz", "another", parts(1))
        with pytest.raises(TokenizerError, match=r"parts\.npz holds parts of another tokenizer.*delete"):
            PartLibrary(OWNER, tmp_path).find("0" * 64)

    def test_a_folder_that_cannot_be_written_to(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        library = PartLibrary(OWNER, tmp_path / "file")
        library.add(parts(1))
        assert len(library) == 1


class TestBounds:
    def test_files_and_bytes(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(vegas_library, "MAX_FILES", 3)
        library = PartLibrary(OWNER, tmp_path / "some")
        for index in range(5):
            library.add(parts(1, first=index))
        assert len(list((tmp_path / "some").iterdir())) == 3
        assert len(library) == 5
        monkeypatch.setattr(vegas_library, "MAX_BYTES", 500)
        small = PartLibrary(OWNER, tmp_path / "few")
        small.add(parts(1))
        small.add(parts(1, first=1))
        assert len(list((tmp_path / "few").iterdir())) == 1

    def test_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(vegas_library, "MAX_TRANSITIONS", 100)
        library = PartLibrary(OWNER, None)
        for index in range(3):
            library.add(parts(1, first=index))
        assert contents(library, parts(3)) == [None, None, *plain(parts(1, first=2))]
        library.add(parts(1, first=9, size=200))
        assert library.find(f"{9:064x}") is None


def test_shared_between_threads(tmp_path: Path) -> None:
    library = PartLibrary(OWNER, tmp_path)
    threads = [threading.Thread(target=library.add, args=(parts(2, first=index),)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert contents(PartLibrary(OWNER, tmp_path), parts(9)) == plain(parts(9))


class TestUsualParts:
    @pytest.fixture(autouse=True)
    def _own_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def test_values_are_known_afterwards(self, tmp_path: Path) -> None:
        """In the library of the tokenizer, also for a tokenizer that is loaded anew."""
        from tokdfa.backends.proper_merge.direct_merge import DirectMerge

        texts = ["true", "false", "null", "12", "20", "19", '":', "fa", "nu", "tr"]
        name = ranked_pieces(tmp_path / "ranks", texts)
        tokenizer = load_tokenizer(name)
        assert build_library(tokenizer, kinds=("integer", "boolean", "null")) == {}
        library = load_library(tokenizer)
        assert len(library) > 3
        assert library.folder == library_folder(tokenizer.fingerprint)
        members = [("x", "boolean"), ("y", "integer"), ("z", "null")]
        compiled = DirectMerge(tokenizer.vocabulary, vegas=True).compile(Regex(object_pattern(members, "json_spaced")))
        assert compiled.sizes["parts_known"] >= 2

    def test_what_is_left_out_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(vegas_usual, "MAX_STATES", 40)
        letters = "".join(map(chr, range(33, 127)))
        tokenizer = load_tokenizer(merge_list(tmp_path / "t.json", f"{letters}ĠĊ", [("n", "u"), ("l", "l")]))
        left_out = build_library(tokenizer, PartLibrary(tokenizer.fingerprint, None), ("null", "date-time"))
        assert list(left_out) == ["date-time"]
        assert "more than 40 states" in left_out["date-time"]
