"""A compiled tokens DFA in a file: the reduced table, the constraint, and which vocabulary it is for.

A stored file (`tokdfa.core.stored_file`) with the table's arrays; its header holds the constraint, the options, the
sizes and the vocabulary's fingerprint. Reading checks the fingerprint, and that the table is one: shapes, ascending
offsets, numbers in range. So no file, however it came about, makes a kernel read outside its arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.backends.tokens_dfa.reduced_table import ReducedTable
from tokdfa.constraint import describe_constraint, rebuild_constraint
from tokdfa.core.stored_file import Format
from tokdfa.errors import SavedIndexError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt

    from tokdfa.constraint import Constraint
    from tokdfa.core.stored_file import Arrays, Header
    from tokdfa.vocabulary.vocabulary import Vocabulary

FORMAT = Format("tokdfa tokens_dfa", 2, SavedIndexError, "saved index", "compile and save it again")
#: dtype of each array that is not as narrow as its values allow.
_FIXED = {
    "offsets": np.int32,
    "accepting": np.bool_,
    "member_offsets": np.int32,
    "members": np.int32,
    "ranks": np.int32,
}


def write_table(
    path: str | Path,
    table: ReducedTable,
    constraint: Constraint,
    vocab: Vocabulary,
    settings: Mapping[str, Any],
    sizes: Mapping[str, int],
) -> None:
    """Write a table and what it was made of. Raises SavedIndexError."""
    header = {
        "constraint": describe_constraint(constraint),
        "vocabulary": vocab.name,
        "fingerprint": vocab.fingerprint,
        "settings": dict(settings),
        "sizes": dict(sizes),
    }
    FORMAT.write(path, header, table._asdict())


def read_table(path: str | Path, vocab: Vocabulary) -> tuple[ReducedTable, Constraint, dict[str, Any], dict[str, int]]:
    """(table, constraint, options, sizes) from a file of `write_table`. Raises SavedIndexError."""

    def build(header: Header, arrays: Arrays) -> tuple[ReducedTable, Constraint, dict[str, Any], dict[str, int]]:
        if header["fingerprint"] != vocab.fingerprint:
            raise ValueError(
                f"it was compiled for the vocabulary {header.get('vocabulary')!r} with fingerprint "
                f"{header['fingerprint']}, not for {vocab.name!r} with {vocab.fingerprint}"
            )
        table = ReducedTable(*(arrays[name] for name in ReducedTable._fields))
        problem = _find_problem(table, vocab)
        if problem:
            raise ValueError(f"it holds no valid table: {problem}")
        sizes = {name: int(size) for name, size in header["sizes"].items()}
        return table, rebuild_constraint(header["constraint"]), dict(header["settings"]), sizes

    return FORMAT.read(path, build)


def _find_problem(table: ReducedTable, vocab: Vocabulary) -> str:
    """What is wrong with a table for `vocab`, or nothing."""
    for name, array in table._asdict().items():
        if array.ndim != 1 or array.dtype not in ([_FIXED[name]] if name in _FIXED else [np.uint16, np.uint32]):
            return f"{name} is {array.dtype} of {array.ndim} dimensions"
    rank_count = len(vocab.trie.order)
    if not table.state_count or len(table.accepting) != table.state_count:
        return "row_of and accepting disagree"
    if not (_are_offsets(table.offsets, len(table.classes)) and _are_offsets(table.member_offsets, len(table.members))):
        return "offsets do not fit"
    if len(table.targets) != len(table.classes) or not _all_below(table.row_of, table.row_count):
        return "rows do not fit"
    if not (_all_below(table.targets, table.state_count) and _all_below(table.classes, table.class_count)):
        return "a transition leads out of range"
    steps = np.diff(table.classes.astype(np.int64))
    steps[table.offsets[1:-1][(table.offsets[1:-1] > 0) & (table.offsets[1:-1] < len(table.classes))] - 1] = 1
    if np.any(steps <= 0):
        return "a row is not sorted"
    if len(table.class_of) != (rank_count if table.is_dense else len(table.ranks)):
        return "class_of does not fit the vocabulary"
    if not _all_below(table.class_of, table.class_count + int(table.is_dense)):
        return "class_of leads out of range"
    ranks = table.ranks.astype(np.int64)
    if np.any(np.diff(ranks) <= 0) or np.any(ranks < 0) or not _all_below(ranks, rank_count):
        return "ranks are out of order"
    listed = np.flatnonzero(table.class_of < table.class_count) if table.is_dense else ranks
    class_of = table.class_of[listed] if table.is_dense else table.class_of
    by_class = vocab.trie.order[listed][np.argsort(class_of, kind="stable")]
    counts = np.bincount(class_of, minlength=table.class_count)
    if not np.array_equal(by_class, table.members) or not np.array_equal(counts, np.diff(table.member_offsets)):
        return "members and classes disagree"
    return ""


def _are_offsets(offsets: npt.NDArray[np.int32], count: int) -> bool:
    return bool(len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == count and np.all(np.diff(offsets) >= 0))


def _all_below(numbers: npt.NDArray[np.integer], bound: int) -> bool:
    return not len(numbers) or int(numbers.max()) < bound
