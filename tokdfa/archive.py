"""Arrays in a file with a header and a digest: what compiled constraints and tables are kept in.

The file is a numpy archive (.npz) without pickled objects. The header is JSON and holds the format's name and version,
whatever the writer adds, and a SHA-256 of all arrays. Who reads still has to check that the arrays mean something.

`load_arrays` reads the arrays of any numpy archive, whoever wrote it and whatever has happened to it since.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.constraint import Choice, Constraint, Grammar, JsonSchema, Regex
from tokdfa.errors import SavedIndexError, UnsupportedConstraint

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import IO

    import numpy.typing as npt

    Arrays = Mapping[str, npt.NDArray[Any]]


def write_archive(path: str | Path, kind: str, version: int, header: Mapping[str, Any], arrays: Arrays) -> None:
    """Write a file; it appears whole or not at all. `kind`: the format's name."""
    path = Path(path)
    full = {"format": kind, "version": version, **header, "sha256": digest_arrays(arrays)}
    encoded = np.frombuffer(json.dumps(full).encode(), dtype=np.uint8)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, header=encoded, **dict(arrays))  # type: ignore[arg-type]
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_archive(path: str | Path, kind: str, version: int) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """(header, arrays) of a file of `write_archive`. Raises SavedIndexError for any other."""
    try:
        with open(path, "rb") as file:
            arrays = load_arrays(file)
        header = json.loads(arrays.pop("header").tobytes())
    except FileNotFoundError:
        raise SavedIndexError(f"there is no file {path}") from None
    except (OSError, ValueError, KeyError, RecursionError) as error:
        raise SavedIndexError(f"{path} is no saved index, or damaged ({error}); compile and save it again") from None
    if not isinstance(header, dict) or (header.get("format"), header.get("version")) != (kind, version):
        raise SavedIndexError(f"{path} is not in version {version} of the format; compile and save it again")
    if header.get("sha256") != digest_arrays(arrays):
        raise SavedIndexError(f"{path} is damaged: its content does not match its digest; compile and save it again")
    return header, arrays


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


def digest_arrays(arrays: Arrays) -> str:
    """SHA-256 of names, types, shapes and contents, whatever their order."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


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
