"""Where files are kept for the user between runs, and for all processes of the user while they run."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tokdfa.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable


def cache_folder(name: str = "") -> Path:
    """Where files of this kind are kept for the user: below ``$XDG_CACHE_HOME/tokdfa``, or ``~/.cache/tokdfa``.

    Without a name the folder of all kinds.
    """
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


def files_fingerprint(folder: Path, paths: Iterable[Path]) -> str:
    """10 hex digits of a hash of some files below `folder`, names and contents, in any order. O(bytes)."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:10]
