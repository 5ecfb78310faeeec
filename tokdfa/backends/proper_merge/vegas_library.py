"""The library of merged parts: what a part (`tokdfa.backends.proper_merge.vegas`) has become, for all constraints to
come.

A merged part depends on the tokenizer and on the part alone, so it can be kept: in memory, and in files. 002 proposes
this for the usual parts of JSON and YAML; `tokdfa.backends.proper_merge.vegas_usual` makes those.

*Files.* One folder a tokenizer, named by its fingerprint and by the content of the modules that make the parts. Each
time that new parts are added, those of some size (`WORTH_A_FILE`) go into one new stored file
(`tokdfa.core.stored_file`). All files are read when the library is first asked. A damaged file is deleted, and what it
held is merged again when it is needed; so is one with numbers that lead nowhere. A file of another tokenizer is an
error, since only a hand can have put it there.

*Bounds.* `MAX_FILES` files of at most `MAX_BYTES` together; when they are full, nothing is added to them. In memory
parts of `MAX_TRANSITIONS` transitions together; past that, all are dropped.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.core.folders import cache_folder
from tokdfa.core.locks import new_lock
from tokdfa.core.stored_file import Format, code_stamp
from tokdfa.errors import StoreError, TokenizerError
from tokdfa.token_automata.token_rows import TokenRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import numpy.typing as npt

    from tokdfa.core.stored_file import Arrays, Header
    from tokdfa.vocabulary.tokenizers import Tokenizer

FORMAT = Format("tokdfa merged parts", 1)
#: Parts with fewer transitions are merged in less time than reading them takes.
WORTH_A_FILE = 32
#: Bounds of one tokenizer's folder.
MAX_FILES, MAX_BYTES = 256, 64 << 20
#: Bound of the parts in memory: about 100 bytes a transition.
MAX_TRANSITIONS = 2_000_000

#: The modules whose content names the folders: what is kept is what they make.
_SOURCES = (
    *(f"backends/proper_merge/{name}.py" for name in ("merging", "merging_stages", "merging_state")),
    *(f"backends/proper_merge/{name}.py" for name in ("vegas", "vegas_library", "vegas_splice")),
    "token_automata/token_rows.py",
)
#: name -> (type, dimensions) of the arrays of a file.
_ARRAYS: dict[str, tuple[type[np.generic], int]] = {
    "keys": (np.uint8, 2),
    "states": (np.int64, 1),
    "sizes": (np.int64, 1),
    "accepting": (np.bool_, 1),
    "letters": (np.int32, 1),
    "targets": (np.int32, 1),
}


class PartLibrary:
    """The merged parts of one tokenizer. Safe to share between threads.

    `fingerprint`: of the tokenizer; `folder`: where files are kept, None for a library in memory only.
    """

    def __init__(self, fingerprint: str, folder: Path | None) -> None:
        self.fingerprint, self.folder = fingerprint, folder
        self._parts: dict[str, TokenRows] | None = None
        self._transitions = 0
        self._on_disk: set[str] = set()
        self._lock = new_lock()

    def __len__(self) -> int:
        """How many parts it holds now; the files are read if that has not been done."""
        with self._lock:
            return len(self._loaded())

    def find(self, key: str) -> TokenRows | None:
        """The merged part for the part of this key. Raises TokenizerError for a file of another tokenizer."""
        with self._lock:
            return self._loaded().get(key)

    def add(self, parts: Mapping[str, TokenRows]) -> None:
        """Keep merged parts by the keys of what they were made from. A folder that cannot be written to is no error."""
        with self._lock:
            new = {key: rows for key, rows in parts.items() if key not in self._loaded()}
            self._remember(new)
            lasting = {
                key: rows
                for key, rows in new.items()
                if rows.transition_count >= WORTH_A_FILE and key not in self._on_disk
            }
            if lasting and self.folder is not None:
                with suppress(OSError, StoreError):
                    self._write(self.folder, lasting)

    def in_memory(self) -> PartLibrary:
        """A library with the same parts that keeps no files, and whose additions do not reach this one."""
        copy = PartLibrary(self.fingerprint, None)
        with self._lock:
            copy._parts, copy._transitions = dict(self._loaded()), self._transitions
        return copy

    def _remember(self, parts: Mapping[str, TokenRows]) -> None:
        kept = {} if self._parts is None else self._parts
        added = sum(rows.transition_count for rows in parts.values())
        if kept and self._transitions + added > MAX_TRANSITIONS:
            kept, self._transitions = {}, 0
        if added <= MAX_TRANSITIONS:
            kept = {**kept, **parts}
            self._transitions += added
        self._parts = kept

    def _loaded(self) -> dict[str, TokenRows]:
        if self._parts is None:
            self._parts = {}
            for path in self._files():
                parts = read_parts(path, self.fingerprint)
                if parts is None:
                    with suppress(OSError):
                        path.unlink()
                else:
                    self._on_disk |= parts.keys()
                    self._remember(parts)
        return self._parts

    def _files(self) -> list[Path]:
        return [] if self.folder is None else sorted(self.folder.glob("*.npz"))

    def _write(self, folder: Path, parts: Mapping[str, TokenRows]) -> None:
        files = self._files()
        # A transition takes eight bytes.
        size = sum(path.stat().st_size for path in files) + 8 * sum(rows.transition_count for rows in parts.values())
        if len(files) < MAX_FILES and size <= MAX_BYTES:
            name = hashlib.sha256("".join(sorted(parts)).encode()).hexdigest()[:32]
            write_parts(folder / f"{name}.npz", self.fingerprint, parts)
            self._on_disk |= parts.keys()


def library_folder(fingerprint: str) -> Path:
    """The folder of the tokenizer with this fingerprint: ``tokdfa/vegas`` below the user's cache folder."""
    return cache_folder("vegas") / f"{fingerprint}-{code_stamp(*_SOURCES)}"


def load_library(tokenizer: Tokenizer) -> PartLibrary:
    """The library of `tokenizer`: the same object for the same tokenizer. Files are read when it is first asked."""
    fingerprint = tokenizer.fingerprint
    return tokenizer.keep("part_library", lambda: PartLibrary(fingerprint, library_folder(fingerprint)))


def write_parts(path: Path, fingerprint: str, parts: Mapping[str, TokenRows]) -> None:
    """Write merged parts of the tokenizer with this fingerprint. Raises StoreError."""
    rows = [row for part in parts.values() for row in part.rows]
    arrays: dict[str, Any] = {
        "keys": np.frombuffer(b"".join(map(bytes.fromhex, parts)), dtype=np.uint8).reshape(len(parts), -1),
        "states": np.array([part.state_count for part in parts.values()], dtype=np.int64),
        "sizes": np.array([len(row) for row in rows], dtype=np.int64),
        "accepting": np.array([ends for part in parts.values() for ends in part.accepting], dtype=np.bool_),
        "letters": _flatten(rows),
        "targets": _flatten(row.values() for row in rows),
    }
    FORMAT.write(path, {"fingerprint": fingerprint}, arrays, make_folder=True)


def read_parts(path: Path, fingerprint: str) -> dict[str, TokenRows] | None:
    """The merged parts of a file by their keys, None if it is damaged. TokenizerError if another tokenizer's."""

    def build(header: Header, arrays: Arrays) -> tuple[str, dict[str, TokenRows]]:
        chosen = {name: arrays[name] for name in _ARRAYS}
        if not _fits(**chosen):
            raise ValueError("its parts do not fit together")
        return header["fingerprint"], _unpack(**chosen)

    try:
        owner, parts = FORMAT.read(path, build)
    except StoreError:
        return None
    if owner != fingerprint:
        raise TokenizerError(f"{path} holds parts of another tokenizer (fingerprint {owner}): delete the file")
    return parts


def _flatten(rows: Iterable[Iterable[int]]) -> npt.NDArray[np.int32]:
    return np.array([entry for row in rows for entry in row], dtype=np.int32)


def _fits(
    keys: npt.NDArray[Any],
    states: npt.NDArray[Any],
    sizes: npt.NDArray[Any],
    accepting: npt.NDArray[Any],
    letters: npt.NDArray[Any],
    targets: npt.NDArray[Any],
) -> bool:
    """Whether types and lengths fit together, and every target is a state of its part."""
    found = (keys, states, sizes, accepting, letters, targets)
    if any(
        array.dtype != kind or array.ndim != dimensions
        for array, (kind, dimensions) in zip(found, _ARRAYS.values(), strict=True)
    ):
        return False
    if len(keys) != len(states) or keys.shape[1] != 32 or np.any(states < 1) or np.any(sizes < 0):
        return False
    if states.sum() != len(sizes) or len(accepting) != len(sizes):
        return False
    if sizes.sum() != len(letters) or len(letters) != len(targets):
        return False
    bound = np.repeat(np.repeat(states, states), sizes)
    return bool(np.all((targets >= 0) & (targets < bound)) and np.all(letters >= 0))


def _unpack(
    keys: npt.NDArray[np.uint8],
    states: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    accepting: npt.NDArray[np.bool_],
    letters: npt.NDArray[np.int32],
    targets: npt.NDArray[np.int32],
) -> dict[str, TokenRows]:
    ends = [0, *np.cumsum(sizes).tolist()]
    all_letters, all_targets, all_accepting = letters.tolist(), targets.tolist(), accepting.tolist()
    rows = [dict(zip(all_letters[begin:end], all_targets[begin:end], strict=True)) for begin, end in pairwise(ends)]
    borders = [0, *np.cumsum(states).tolist()]
    return {
        key.tobytes().hex(): TokenRows(rows[begin:end], all_accepting[begin:end], 0)
        for key, (begin, end) in zip(keys, pairwise(borders), strict=True)
    }
