"""Numpy archives that claim what they do not hold, and whatever else a file can be."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tokdfa.core.stored_file import FileFormat, load_arrays, pack_arrays
from tokdfa.errors import StoreError, TokenizerError
from tokdfa.proper.pretokenizer_dfa import FORMAT as MARKED
from tokdfa.proper.pretokenizer_dfa import MarkedDfa

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = FileFormat("test", 1)
ARRAYS = {
    "numbers": np.arange(12, dtype=np.int32).reshape(3, 4),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "none": np.zeros((0, 5), dtype=np.uint8),
    "one": np.array(True),
}


def both(header: dict[str, Any], arrays: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return header, arrays


def saved(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def claiming(shape: str) -> bytes:
    """An archive whose only array, of four bytes, says that it has this shape."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("header.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(4))
    return buffer.getvalue()


def test_arrays_come_back() -> None:
    assert load_arrays(io.BytesIO(claiming("(2, 2)")))["header"].shape == (2, 2)
    found = load_arrays(io.BytesIO(saved(**ARRAYS)))
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_compressed_and_pickled_arrays_are_refused() -> None:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **ARRAYS)
    with pytest.raises(ValueError, match="is compressed"):
        load_arrays(io.BytesIO(buffer.getvalue()))
    pickled = io.BytesIO()
    np.savez(pickled, numbers=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="no archive of arrays"):
        load_arrays(io.BytesIO(pickled.getvalue()))


@pytest.mark.parametrize("content", [b"", b"PK", b"no archive", claiming("(99999999999,)")])
def test_every_reader_refuses_such_files(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"file\.npz is no stored file, or damaged .*; delete it"):
        FORMAT.read(path, both)
    with pytest.raises(TokenizerError, match=r"file\.npz is no saved automaton, or damaged"):
        MARKED.read(path, partial(MarkedDfa.of_parts, ""))


def test_files_of_other_formats_and_strange_content_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    FORMAT.write(path, {}, ARRAYS)
    for other in (replace(FORMAT, version=2), replace(FORMAT, name="other")):
        with pytest.raises(StoreError, match=r"file\.npz is not in version . of the format; delete it"):
            other.read(path, both)
    with pytest.raises(StoreError, match=r"file\.npz is no stored file that can be used: 'size' is missing; delete it"):
        FORMAT.read(path, lambda header, _: header["size"])
    with pytest.raises(StoreError, match=r"there is no file .*nothing"):
        FORMAT.read(tmp_path / "nothing", both)


def test_what_is_kept_is_made_once_and_again_if_it_is_damaged(tmp_path: Path) -> None:
    path, made = tmp_path / "folder" / "file.npz", []

    def make() -> str:
        made.append(1)
        return "value"

    def load(path: Path = path) -> str:
        return FORMAT.keep(path, lambda header, _: str(header["value"]), make, lambda value: ({"value": value}, {}))

    assert [load(), load(), len(made)] == ["value", "value", 1]
    for wrong in (path.read_bytes()[:-1], pack_arrays(ARRAYS)):
        made.clear()
        path.write_bytes(wrong)
        assert [load(), load(), len(made)] == ["value", "value", 1]
    assert load(path / "below a file") == "value"


def test_a_header_that_is_no_object(tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    FORMAT.write(path, {"key": 3}, {"a": ARRAYS["numbers"]})
    assert FORMAT.read(path, both)[0]["key"] == 3
    for header in (b"[" * 100_000, b"[1]", b"{", b"\xff"):
        path.write_bytes(pack_arrays({"header": np.frombuffer(header, dtype=np.uint8), "a": ARRAYS["numbers"]}))
        with pytest.raises(StoreError):
            FORMAT.read(path, both)


def test_an_archive_without_a_digest_is_refused(tmp_path: Path) -> None:
    """As earlier versions wrote them; other programs read ours."""
    path = tmp_path / "file.npz"
    header = np.frombuffer(b'{"format": "test", "version": 1}', dtype=np.uint8)
    path.write_bytes(saved(header=header, a=ARRAYS["numbers"]))
    with pytest.raises(StoreError, match="no digest"):
        FORMAT.read(path, both)
    FORMAT.write(path, {}, ARRAYS)
    with np.load(path) as archive:
        np.testing.assert_array_equal(archive["numbers"], ARRAYS["numbers"])
