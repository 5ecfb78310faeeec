"""Arrays in a file with a digest, and perhaps a header: what compiled constraints and tables are kept in.

The file is a numpy archive (.npz) without pickled objects, sealed in its comment (`tokdfa.stored_file`): any other
program reads it, and we notice each changed bit. The header is JSON and holds the format's name and version and
whatever the writer adds. Who reads still has to check that the arrays mean something.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.arguments import as_path
from tokdfa.constraint import Choice, Constraint, Grammar, JsonSchema, Regex
from tokdfa.errors import SavedIndexError, UnsupportedConstraint
from tokdfa.stored_file import BLANK, check_seal, seal, write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import IO

    import numpy.typing as npt

    Arrays = Mapping[str, npt.NDArray[Any]]


def write_archive(
    path: str | Path | io.BytesIO, kind: str, version: int, header: Mapping[str, Any], arrays: Arrays
) -> None:
    """Write a file; it appears whole or not at all. `kind`: the format's name. Or into memory.

    Raises SavedIndexError if the file cannot be written.
    """
    full = {"format": kind, "version": version, **header}
    content = pack_arrays({"header": np.frombuffer(json.dumps(full).encode(), dtype=np.uint8), **arrays})
    if isinstance(path, io.BytesIO):
        path.write(content)
        return
    path = as_path(path, "path")
    try:
        write_atomically(path, content)
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        raise SavedIndexError(
            f"path: {path} cannot be written: {error}; save into a folder that is there and has room"
        ) from None


def read_archive(
    path: str | Path | io.BytesIO, kind: str, version: int
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """(header, arrays) of a file of `write_archive`. Raises SavedIndexError for any other."""
    if not isinstance(path, io.BytesIO):
        path = as_path(path, "path")
    try:
        arrays = unpack_arrays(path.getvalue() if isinstance(path, io.BytesIO) else path.read_bytes())
        header = json.loads(arrays.pop("header").tobytes())
    except FileNotFoundError:
        raise SavedIndexError(f"there is no file {path}") from None
    except (OSError, ValueError, KeyError, RecursionError) as error:
        raise SavedIndexError(f"{path} is no saved index, or damaged ({error}); compile and save it again") from None
    if not isinstance(header, dict) or (header.get("format"), header.get("version")) != (kind, version):
        raise SavedIndexError(f"{path} is not in version {version} of the format; compile and save it again")
    return header, arrays


def pack_arrays(arrays: Arrays) -> bytes:
    """A sealed numpy archive of these arrays, for `unpack_arrays`."""
    buffer = io.BytesIO()
    np.savez(buffer, **dict(arrays))  # type: ignore[arg-type]
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.comment = BLANK
    return seal(buffer.getvalue())


def unpack_arrays(content: bytes) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an archive of `pack_arrays`. ValueError if a bit of it has changed, and for anything else."""
    check_seal(content)
    return load_arrays(io.BytesIO(content))


def load_arrays(file: IO[bytes]) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a numpy archive (.npz) without compression and pickled objects, as `numpy.savez` writes it.

    Raises ValueError for everything else, and OSError. Takes no more memory than twice the file's size: an array that
    claims to be larger than what is written of it is refused before there is room made for it.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            return {entry.filename.removesuffix(".npy"): _load_array(archive, entry) for entry in archive.infolist()}
    except OSError:
        raise
    except Exception as error:  # zipfile and numpy let out whatever a damaged file makes them stumble over
        raise ValueError(f"no archive of arrays: {error or type(error).__name__}") from None


def _load_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> npt.NDArray[Any]:
    if entry.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{entry.filename} is compressed")
    content = archive.read(entry)
    file = io.BytesIO(content)
    layout: Any = np.lib.format  # numpy gives its functions no types
    versions = {(1, 0): layout.read_array_header_1_0, (2, 0): layout.read_array_header_2_0}
    shape, is_fortran, dtype = versions[layout.read_magic(file)](file)
    begin = file.tell()
    claimed, written = math.prod(shape) * dtype.itemsize, len(content) - begin
    if claimed != written or min(shape, default=0) < 0:
        raise ValueError(f"{entry.filename} claims {claimed} bytes and has {written}")
    if dtype.hasobject:
        raise ValueError(f"{entry.filename} holds Python objects")
    # not `read_array`, which takes as long again to read the header; copied once, to be aligned and writable
    array: npt.NDArray[Any] = np.empty(claimed // max(dtype.itemsize, 1), dtype=dtype)
    array.view(np.uint8)[:] = np.frombuffer(content, dtype=np.uint8, offset=begin) if written else 0
    return array.reshape(shape[::-1]).T if is_fortran else array.reshape(shape)


def describe_constraint(constraint: Constraint) -> dict[str, Any]:
    """A constraint as JSON can hold it. Raises UnsupportedConstraint for a kind that is none of ours."""
    if isinstance(constraint, Grammar):
        return {"kind": "grammar", "text": constraint.text, "start": constraint.start, "label": constraint.label}
    if isinstance(constraint, Regex):
        return {"kind": "regex", **{name: getattr(constraint, name) for name in constraint.__dataclass_fields__}}
    if isinstance(constraint, Choice):
        texts = [text if isinstance(text, str) else {"hex": text.hex()} for text in constraint.choices]
        return {"kind": "choice", "choices": texts, "label": constraint.label}
    if isinstance(constraint, JsonSchema):
        return {"kind": "json_schema", **{name: getattr(constraint, name) for name in constraint.__dataclass_fields__}}
    raise UnsupportedConstraint(f"a {constraint.kind} cannot be saved")


def rebuild_constraint(described: dict[str, Any]) -> Constraint:
    """What `describe_constraint` described. Raises KeyError, TypeError or ValueError for anything else."""
    given = dict(described)
    kind = given.pop("kind")
    if kind == "grammar":
        return Grammar(**given)
    if kind == "regex":
        return Regex(**given)
    if kind == "json_schema":
        return JsonSchema(given.pop("text"), **given)
    texts = [text if isinstance(text, str) else bytes.fromhex(text["hex"]) for text in given["choices"]]
    return Choice(texts, label=given["label"])
