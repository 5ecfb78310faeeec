"""Stored files: whole or not at all, with a digest over every byte, and read again with an error that says what to do.

A *sealed* content holds a digest of itself: ``tokdfa-sha256:`` and 64 hexadecimal digits, the SHA-256 of all its bytes
with zeros for those digits. Its format says where: the footer of a Parquet file, the comment of a numpy archive, a
comment or key of a text. So other programs read the file as before, and a changed bit anywhere is noticed.

Whatever is arrays is a numpy archive (.npz) without pickled objects, one of whose arrays is a *header*: JSON with the
name and version of its `FileFormat` and whatever the writer adds. What is made on a machine once and kept is named by
all that it depends on, the code that makes it included (`code_stamp`); `FileFormat.keep` reads it, or makes it and
writes it. A rename replaces a file at once, so readers need no lock, and of two writers one is the last.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import uuid
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tokdfa.core.arguments import as_path
from tokdfa.errors import LimitExceeded, StoreError, TokdfaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import IO

    import numpy.typing as npt

    Header = dict[str, Any]
    Arrays = dict[str, npt.NDArray[Any]]
    ArraysToWrite = Mapping[str, npt.NDArray[Any]]

T = TypeVar("T")

_MARK = b"tokdfa-sha256:"
#: What a content must hold once, after everything else that could look like it, for `seal` to fill in.
BLANK = _MARK + b"0" * 64
#: What strange content makes its reader stumble over.
_FAULTS = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError, TokdfaError)


def seal(content: bytes) -> bytes:
    """`content` with its digest in place of the last BLANK."""
    at = content.rindex(BLANK)
    return b"".join([content[:at], _sealed_mark(content, at), content[at + len(BLANK) :]])


def check_seal(content: bytes, *, required: bool = True) -> None:
    """Raises ValueError if a byte has changed since `seal`, or if `content` is not sealed, which may be allowed."""
    at = content.rfind(_MARK)
    if at < 0:
        if required:
            raise ValueError("it holds no digest of its content")
    elif content[at : at + len(BLANK)] != _sealed_mark(content, at):
        raise ValueError("its content does not match its digest")


def _sealed_mark(content: bytes, at: int) -> bytes:
    view, digest = memoryview(content), hashlib.sha256()
    for part in (view[:at], BLANK, view[at + len(BLANK) :]):
        digest.update(part)
    return _MARK + digest.hexdigest().encode()


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all, whatever happens in between. Raises OSError."""
    beside = path.with_name(f"{path.name}.{uuid.uuid4().hex[:12]}.tmp")
    try:
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


@cache
def code_stamp(*sources: str) -> str:
    """16 hexadecimal digits that change with the content of these modules: paths below the package, or patterns."""
    package = Path(__file__).parents[1]
    found = [sorted(package.glob(source)) for source in sources]
    assert all(found), f"a source is not there: {sources}"
    files = [path for paths in found for path in paths]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


@dataclass(frozen=True)
class FileFormat:
    """A format of files: the name and version that headers say.

    `error`: what reading and writing raise; `what` and `remedy`: for its message, what a file should be, and what to do
    if it is not.
    """

    name: str
    version: int
    error: type[TokdfaError] = StoreError
    what: str = "stored file"
    remedy: str = "delete it"

    def write(
        self,
        path: str | Path | io.BytesIO,
        header: Mapping[str, Any],
        arrays: ArraysToWrite,
        *,
        make_folder: bool = False,
    ) -> None:
        """Write a file, or into memory. It appears whole or not at all. Raises `error` if it cannot be written."""
        full = {"format": self.name, "version": self.version, **header}
        content = pack_arrays({"header": np.frombuffer(json.dumps(full).encode(), dtype=np.uint8), **arrays})
        if isinstance(path, io.BytesIO):
            path.write(content)
            return
        path = as_path(path, "path")
        try:
            if make_folder:
                path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content)
        except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
            raise self.error(
                f"path: {path} cannot be written: {error}; save into a folder that is there and has room"
            ) from None

    def read(self, path: str | Path | io.BytesIO, build: Callable[[Header, Arrays], T]) -> T:
        """What `build` makes of the header and the arrays of a file.

        It checks that they mean something, and raises whatever it stumbles over, for the most part ValueError. Raises
        `error` then, and for a file that is missing, damaged, or of another format or version. LimitExceeded passes.
        """
        if not isinstance(path, io.BytesIO):
            path = as_path(path, "path")
        try:
            arrays = unpack_arrays(path.getvalue() if isinstance(path, io.BytesIO) else path.read_bytes())
            header = json.loads(arrays.pop("header").tobytes())
            if not isinstance(header, dict):
                raise ValueError("its header is no object")
        except FileNotFoundError:
            raise self.error(f"there is no file {path}") from None
        except (OSError, *_FAULTS) as error:
            raise self.error(f"{path} is no {self.what}, or damaged ({error}); {self.remedy}") from None
        if (header.get("format"), header.get("version")) != (self.name, self.version):
            raise self.error(f"{path} is not in version {self.version} of the format; {self.remedy}")
        try:
            return build(header, arrays)
        except LimitExceeded:  # no fault of the file
            raise
        except _FAULTS as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else error
            raise self.error(f"{path} is no {self.what} that can be used: {reason}; {self.remedy}") from None

    def keep(
        self,
        path: Path,
        build: Callable[[Header, Arrays], T],
        make: Callable[[], T],
        parts: Callable[[T], tuple[Mapping[str, Any], ArraysToWrite]],
    ) -> T:
        """What the file holds (`read`), or what `make` makes, whose `parts` (header, arrays) are then kept there.

        A damaged file is replaced; a folder that cannot be written to costs the time of making, nothing else.
        """
        with suppress(self.error):
            return self.read(path, build)
        made = make()
        with suppress(self.error):
            self.write(path, *parts(made), make_folder=True)
        return made


def pack_arrays(arrays: ArraysToWrite) -> bytes:
    """A sealed numpy archive of these arrays, for `unpack_arrays`."""
    buffer = io.BytesIO()
    np.savez(buffer, **dict(arrays))  # type: ignore[arg-type]
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.comment = BLANK
    return seal(buffer.getvalue())


def unpack_arrays(content: bytes) -> Arrays:
    """The arrays of an archive of `pack_arrays`. ValueError if a bit of it has changed, and for anything else."""
    check_seal(content)
    return load_arrays(io.BytesIO(content))


def load_arrays(file: IO[bytes]) -> Arrays:
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
