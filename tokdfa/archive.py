"""Stored files (`tokdfa.core.stored_file`) for readers that check by themselves what they have read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokdfa.constraint import describe_constraint, rebuild_constraint
from tokdfa.core.stored_file import Format
from tokdfa.errors import SavedIndexError

if TYPE_CHECKING:
    import io
    from collections.abc import Mapping
    from pathlib import Path

    from tokdfa.core.stored_file import Arrays, ArraysToWrite, Header

__all__ = ["describe_constraint", "read_archive", "rebuild_constraint", "write_archive"]


def write_archive(
    path: str | Path | io.BytesIO, kind: str, version: int, header: Mapping[str, Any], arrays: ArraysToWrite
) -> None:
    """`Format.write`. Raises SavedIndexError."""
    _format(kind, version).write(path, header, arrays)


def read_archive(path: str | Path | io.BytesIO, kind: str, version: int) -> tuple[Header, Arrays]:
    """(header, arrays) of a file of `write_archive`. Raises SavedIndexError for any other."""
    return _format(kind, version).read(path, lambda header, arrays: (header, arrays))


def _format(kind: str, version: int) -> Format:
    return Format(kind, version, SavedIndexError, "saved index", "compile and save it again")
