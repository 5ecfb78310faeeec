"""``tokdfa cache``: what tokdfa keeps on disk for the user, by kind, and clearing it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from tokdfa.cli.text import print_plain, print_table
from tokdfa.core import folders
from tokdfa.errors import StoreError, UnknownNameError

if TYPE_CHECKING:
    from pathlib import Path

#: Kind, which is the folder's name -> what it holds.
KINDS = {
    "dequantized": "unpacked models",
    "vocabularies": "vocabularies of tokenizers, with their tries",
    "merge-rules": "merge rules of tokenizers",
    "pretokenizers": "pre-tokenizers as automata",
}


def cache(
    clear: Annotated[
        list[str] | None, typer.Option(help="Delete what is kept of this kind, or of all; may be repeated.")
    ] = None,
) -> None:
    """List what tokdfa keeps on disk, or delete it. All of it is made again when it is needed."""
    kept = kept_folders()
    for kind in clear or ():
        if kind not in {*kept, "all"}:
            raise UnknownNameError("kind of kept files", kind, {*kept, "all"})
    rows = []
    for kind, folder in kept.items():
        size = f"{_bytes_in(folder) / 1e6:,.1f}"
        cleared = bool({kind, "all"}.intersection(clear or ()))
        if cleared:
            _clear(folder)
        what = "deleted" if cleared else KINDS.get(kind, "of another version of tokdfa")
        rows.append((kind, size, what, str(folder)))
    if rows:
        print_table(Console(soft_wrap=True), ("kind", "MB", "what it is", "where"), rows, numbers=("MB",))
    else:
        print_plain(Console(), f"nothing is kept in {folders.cache_folder()}")


def kept_folders() -> dict[str, Path]:
    """Kind -> its folder, of all that are there."""
    root = folders.cache_folder()
    return {path.name: path for path in sorted(root.iterdir()) if path.is_dir()} if root.is_dir() else {}


def _bytes_in(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def _clear(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise StoreError(f"{folder} cannot be deleted: {error.strerror}") from None
