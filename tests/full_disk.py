"""A disk without room, for `tokdfa.core.stored_file.write_atomically`."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

#: The calls of the system that may find no room.
CALLS = ("write", "flush", "fsync", "replace")


def fill_disk(patch: pytest.MonkeyPatch, call: str) -> None:
    """From now on, `call` finds no room."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if call in ("write", "flush"):
        opened = Path.open

        def open_full(path: Path, mode: str = "r", *rest: object, **keys: object) -> object:
            file = opened(path, mode, *rest, **keys)  # type: ignore[call-overload]
            return _Refusing(file, call, refuse) if "x" in mode else file

        patch.setattr(Path, "open", open_full)
    else:
        patch.setattr(*((os, "fsync", refuse) if call == "fsync" else (Path, "replace", refuse)))


class _Refusing:
    """A file one of whose methods fails."""

    def __init__(self, file: object, call: str, refuse: object) -> None:
        self._file = file
        setattr(self, call, refuse)

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)

    def __enter__(self) -> _Refusing:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()  # type: ignore[attr-defined]
