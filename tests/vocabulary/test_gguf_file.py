"""The metadata of GGUF files: against the package gguf, which writes and reads them, and damaged ones."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.packages import needs_smollm2
from tests.vocabulary.tokenizer_files import SMOLLM2_FILE
from tokdfa.errors import TokenizerError
from tokdfa.vocabulary import gguf_file
from tokdfa.vocabulary.gguf_file import read_metadata

if TYPE_CHECKING:
    from pathlib import Path

VALUES: dict[str, Any] = {
    "x.uint8": 200, "x.int8": -3, "x.uint16": 60_000, "x.int16": -300, "x.uint32": 1 << 31, "x.int32": -(1 << 30),
    "x.uint64": 1 << 63, "x.int64": -(1 << 62), "x.float32": 0.5, "x.float64": 0.1, "x.bool": True,
    "x.string": "größe \U0001f389", "x.texts": ["", "a", "日本"], "x.numbers": [1, -2, 3], "x.truths": [True, False],
}  # fmt: skip


def write(path: Path, values: dict[str, Any] | None = None) -> Path:
    """A file of the package gguf with these values, each of the type that its key names, and one tensor."""
    import gguf
    import numpy as np

    writer = gguf.GGUFWriter(path, "toy")
    for key, value in (VALUES if values is None else values).items():
        kind = key.partition(".")[2]
        (writer.add_array if isinstance(value, list) else getattr(writer, f"add_{kind}"))(key, value)
    writer.add_tensor("weights", np.zeros((4, 32), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_every_type_of_value(tmp_path: Path) -> None:
    path = write(tmp_path / "toy.gguf")
    everything = read_metadata(path, {*VALUES, "general.architecture", "absent"})
    assert everything == VALUES | {"general.architecture": "toy"}
    assert {key: type(value) for key, value in everything.items() if key in VALUES} == {
        key: type(value) for key, value in VALUES.items()
    }
    for key, value in VALUES.items():  # the others are passed over
        assert read_metadata(path, {key}) == {key: value}


@needs_smollm2
def test_the_package_gguf_reads_the_same() -> None:
    import gguf

    fields = gguf.GGUFReader(SMOLLM2_FILE).fields
    names = [name for name in fields if not name.startswith("GGUF.")]
    found = read_metadata(SMOLLM2_FILE, names)
    assert list(found) == names
    for name in names:
        assert found[name] == fields[name].contents(), name
    assert len(found["tokenizer.ggml.tokens"]) == 49_152


def test_files_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    header = struct.pack("<4sIQQ", b"GGUF", 3, 0, 0)
    for data, message in [
        (b"", "this is not a GGUF file: it is too short"),
        (b"{" + b" " * 100, "does not begin with GGUF"),
        (struct.pack("<4sIQQ", b"GGUF", 1, 0, 0), r"not covered: version 1 \(covered: little-endian, 2 and 3\)"),
        (struct.pack(">4sIQQ", b"GGUF", 3, 0, 0), "it is big-endian"),
        (header[:16] + struct.pack("<Q", 1), r"goes on past the end of the file \(at byte 24\)"),
        (header[:16] + struct.pack("<QQ", 1, 1 << 63), "past the end of the file"),
        (header[:16] + struct.pack("<QQ1sI", 1, 1, b"k", 99), "the value of k has the unknown type 99"),
        (header[:16] + struct.pack("<QQ1sIIQ", 1, 1, b"k", 9, 9, 1), "the value of k has the unknown type 9"),
        (header[:16] + struct.pack("<QQ1sIIQ", 1, 1, b"k", 9, 0, 1 << 62), "past the end of the file"),
        (header[:16] + struct.pack("<QQ1sIIQ", 1, 1, b"k", 9, 8, 1 << 62), "past the end of the file"),
        (header[:16] + struct.pack("<QQ1s", 1, 1, b"\xff"), "a key before byte 33 holds a text that is no UTF-8"),
        (header[:16] + struct.pack("<QQ1sIQ1s", 1, 1, b"k", 8, 1, b"\xff"), "k before byte 46 holds a text"),
    ]:
        path.write_bytes(data)
        with pytest.raises(TokenizerError, match=message) as caught:
            read_metadata(path, {"k"})
        assert "x.gguf" in str(caught.value)
    path.write_bytes(header)
    assert read_metadata(path, {"k"}) == {}


def test_long_metadata_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "toy.gguf")
    monkeypatch.setattr(gguf_file, "MAX_METADATA_BYTES", 100)
    with pytest.raises(TokenizerError, match="the metadata goes on past 100 bytes"):
        read_metadata(path, VALUES)


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("toy") / "toy.gguf")


@given(data=st.data())
def test_damage_is_found_or_changes_values_only(toy: Path, data: st.DataObject) -> None:
    """One byte of the metadata changed, or the file cut: a result or a TokenizerError, never another error."""
    whole = toy.read_bytes()
    damaged = bytearray(whole)
    place = data.draw(st.integers(0, 500))
    damaged[place] = data.draw(st.integers(0, 255))
    other = toy.with_name("damaged.gguf")
    other.write_bytes(damaged[: data.draw(st.sampled_from([len(whole), place, 2 * place]))])
    with suppress(TokenizerError):
        assert set(read_metadata(other, VALUES)) <= set(VALUES)
