"""A compiled tokens DFA in a file: the reduced table, the constraint, and which vocabulary it is for.

The file is a numpy archive (.npz) without pickled objects: the table's arrays, and a header in JSON with the format's
name and version, the constraint, the options, the sizes, the vocabulary's fingerprint and a SHA-256 of all the arrays.
Reading checks the digest, then the fingerprint, then that the table is one: shapes, ascending offsets, numbers in
range. So no file, however it came about, makes a kernel read outside its arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.archive import describe_constraint, read_archive, rebuild_constraint, write_archive
from tokdfa.errors import SavedIndexError
from tokdfa.token_automata.reduced_table import ReducedTable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt

    from tokdfa.constraint import Constraint
    from tokdfa.vocabulary.vocabulary import Vocabulary

FORMAT = "tokdfa tokens_dfa"
VERSION = 2
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
    """Write a table and what it was made of. The file appears whole or not at all."""
    header = {
        "constraint": describe_constraint(constraint),
        "vocabulary": vocab.name,
        "fingerprint": vocab.fingerprint,
        "settings": dict(settings),
        "sizes": dict(sizes),
    }
    write_archive(path, FORMAT, VERSION, header, table._asdict())


def read_table(path: str | Path, vocab: Vocabulary) -> tuple[ReducedTable, Constraint, dict[str, Any], dict[str, int]]:
    """(table, constraint, options, sizes) from a file of `write_table`. Raises SavedIndexError."""
    header, arrays = read_archive(path, FORMAT, VERSION)
    try:
        table = ReducedTable(*(arrays[name] for name in ReducedTable._fields))
    except KeyError as error:
        raise SavedIndexError(f"{path} is no saved index, or damaged ({error}); compile and save it again") from None
    if header.get("fingerprint") != vocab.fingerprint:
        raise SavedIndexError(
            f"{path} was compiled for the vocabulary {header.get('vocabulary')!r} with fingerprint "
            f"{header.get('fingerprint')}, not for {vocab.name!r} with {vocab.fingerprint}; compile it for this one"
        )
    problem = _find_problem(table, vocab)
    if problem:
        raise SavedIndexError(f"{path} holds no valid table: {problem}; compile and save it again")
    try:
        constraint = rebuild_constraint(header["constraint"])
        return table, constraint, dict(header["settings"]), {k: int(v) for k, v in header["sizes"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SavedIndexError(f"{path} has an incomplete header ({error}); compile and save it again") from None


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
