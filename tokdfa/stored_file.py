"""Files that are written and read again: whole or not at all, with a digest over every byte; and the folders for them.

A *sealed* content holds a digest of itself: ``tokdfa-sha256:`` and 64 hexadecimal digits, the SHA-256 of all its bytes
with zeros for those digits. Its format says where: the footer of a Parquet file, the comment of a numpy archive, a
comment or key of a text. So other programs read the file as before, and a changed bit anywhere is noticed.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import uuid
from contextlib import suppress
from pathlib import Path

from tokdfa.errors import StoreError

_MARK = b"tokdfa-sha256:"
#: What a content must hold once, after everything else that could look like it, for `seal` to fill in.
BLANK = _MARK + b"0" * 64


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


def cache_folder(name: str) -> Path:
    """Where files of this kind are kept for the user: below ``$XDG_CACHE_HOME/tokdfa``, or ``~/.cache/tokdfa``."""
    cache_home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if cache_home.startswith("~"):  # a user without a home: nothing can be written below this
        cache_home = os.devnull
    return Path(cache_home) / "tokdfa" / name


def private_folder() -> Path:
    """A folder of this user's own in the temporary folder, made if it is not there.

    Raises StoreError if somebody else owns it or may write into it: what it holds could then be anything.
    """
    path = Path(tempfile.gettempdir()) / f"tokdfa-{os.getuid()}"
    remedy = "delete it, or set TMPDIR to a folder of your own"
    try:
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        found = path.lstat()
    except OSError as error:
        raise StoreError(f"{path} cannot be made ({error.strerror}); set TMPDIR to a folder of your own") from None
    if not stat.S_ISDIR(found.st_mode):
        raise StoreError(f"{path} is no folder (links are not followed); {remedy}")
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise StoreError(
            f"{path} is open to other users (owner {found.st_uid}, {stat.filemode(found.st_mode)}); {remedy}"
        )
    return path


def open_private(path: Path) -> int:
    """A descriptor of a file of this user's own, made empty if it is not there and never followed through a link.

    Raises StoreError for what is no plain file of this user, as for one that has a second name elsewhere.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except OSError as error:
        raise StoreError(f"{path} cannot be opened ({error.strerror}); delete it") from None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid() or found.st_nlink != 1 or found.st_mode & 0o022:
        os.close(descriptor)
        raise StoreError(f"{path} is no plain file of this user alone ({stat.filemode(found.st_mode)}); delete it")
    return descriptor
