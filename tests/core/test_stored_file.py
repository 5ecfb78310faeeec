"""Every kind of stored file with one bit changed anywhere, disks that are full, folders that others can write to."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.full_disk import CALLS, fill_disk
from tests.fuzz.case import Case
from tests.fuzz.stored_files import StoredEntry
from tokdfa.core.folders import cache_folder, private_folder
from tokdfa.core.stored_file import BLANK, check_seal, seal, write_atomically
from tokdfa.errors import StoreError, TokdfaError
from tokdfa.proper import rules_cache

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: All kinds of files that StoredEntry knows; a test below sees to it that none is missing here.
KINDS = (
    *("grammar form", "schema form", "marked", "rules"),
    *("run part", "run config", "run provenance"),
)


@pytest.fixture(scope="module")
def stored() -> Iterator[StoredEntry]:
    entry = StoredEntry()
    entry.prepare()
    yield entry
    assert entry._directory is not None
    entry._directory.cleanup()


def test_no_kind_is_missing(stored: StoredEntry) -> None:
    assert {kind for kind in stored.seeds if not kind.startswith("unsealed")} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_a_changed_bit_never_gives_another_result(stored: StoredEntry, kind: str, data: st.DataObject) -> None:
    """An error that names the file, or a cache that is set aside: only what ends at the digest may go unnoticed."""
    content = stored.seeds[kind]
    place, bit = data.draw(st.integers(0, len(content) - 1)), data.draw(st.integers(0, 7))
    mark = content.rindex(BLANK[:14])
    with pytest.MonkeyPatch.context() as patch:
        built: list[str] = []
        build = rules_cache.build_canonicity
        patch.setattr(rules_cache, "build_canonicity", lambda given: built.append("") or build(given))
        try:
            outcome = stored.run(Case(kind, (("flip", place, bit),)))
        except TokdfaError:
            return
    if kind.startswith("run "):  # without its mark it is taken for a file of a version that kept no digest
        assert mark <= place < mark + 14
    else:
        assert outcome == "set aside" or (kind == "rules" and built)


@given(st.binary(), st.binary().filter(lambda after: BLANK[:14] not in after), st.data())
def test_a_seal_holds_as_long_as_no_bit_changes(before: bytes, after: bytes, data: st.DataObject) -> None:
    content = seal(before + BLANK + after)
    check_seal(content)
    place, bit = data.draw(st.integers(0, len(content) - 1)), data.draw(st.integers(0, 7))
    changed = bytearray(content)
    changed[place] ^= 1 << bit
    with pytest.raises(ValueError, match="digest"):
        check_seal(bytes(changed))


def test_what_is_not_sealed_passes_where_that_is_allowed() -> None:
    check_seal(b"as it was", required=False)
    with pytest.raises(ValueError, match="no digest"):
        check_seal(b"as it was")


@pytest.mark.parametrize("call", CALLS)
def test_a_full_disk_leaves_the_file_as_it_was(call: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")
    with pytest.MonkeyPatch.context() as patch:
        fill_disk(patch, call)
        with pytest.raises(OSError, match="No space"):
            write_atomically(path, b"new and longer")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty temporary folder, and where our own folder in it will be."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"tokdfa-{os.getuid()}"


def test_a_private_folder_is_ours_alone(temporary: Path) -> None:
    assert private_folder() == private_folder() == temporary
    assert temporary.stat().st_mode & 0o777 == 0o700
    for mode in (0o755, 0o770, 0o707, 0o1777):
        temporary.chmod(mode)
        with pytest.raises(StoreError, match="TMPDIR"):
            private_folder()


def test_a_private_folder_is_no_link(temporary: Path) -> None:
    elsewhere = temporary.with_name("elsewhere")
    elsewhere.mkdir(mode=0o700)
    temporary.symlink_to(elsewhere)
    with pytest.raises(StoreError, match="TMPDIR"):
        private_folder()
    temporary.unlink()
    temporary.write_text("a file")
    with pytest.raises(StoreError, match="TMPDIR"):
        private_folder()


def test_a_private_folder_of_another_user(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: foreign)
    with pytest.raises(StoreError, match="TMPDIR"):
        private_folder()


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(OSError, match="Not a directory"):
        (cache_folder("vocabularies") / "file").write_bytes(b"")
