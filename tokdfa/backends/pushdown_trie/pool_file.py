"""Pools in files: all explicit automata that constraints of a vocabulary had, and the partitions of their states.

Loading takes milliseconds, making it half a second. A file is known by the vocabulary's fingerprint and by the code
that made it (`pool_path`).

Reading trusts nothing that could lead a kernel outside its arrays: digest, shapes and ranges are checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.backends.pushdown_trie.arrays import KEY_SHIFT, STATE_PART
from tokdfa.backends.pushdown_trie.automaton_table import NAME_BYTES
from tokdfa.backends.pushdown_trie.partition import MAX_DENSE, most_rest_nodes
from tokdfa.core.folders import cache_folder
from tokdfa.core.stored_file import Format, code_stamp
from tokdfa.errors import SavedIndexError
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT
from tokdfa.vocabulary.walk import DEAD

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from tokdfa.backends.pushdown_trie.partition import Partitions
    from tokdfa.backends.pushdown_trie.pool import Pool
    from tokdfa.core.stored_file import Arrays, Header
    from tokdfa.vocabulary.vocabulary import Vocabulary

POOL_FORMAT = Format("tokdfa pushdown pool", 4, SavedIndexError, "stored pool", "make it again")

#: The modules on which the content of a pool's file depends, below the package.
_SOURCES = (
    *(f"backends/pushdown_trie/{name}.py" for name in ("automaton_table", "divide", "partition")),
    *(f"backends/pushdown_trie/{name}.py" for name in ("pool", "pool_file", "slices", "state_table")),
    *("program/json_text.py", "program/lower.py"),
    *("regex/state_names.py", "regex/derivative.py", "regex/laws.py", "automata/minimize.py", "vocabulary/trie.py"),
    *("vocabulary/division.py", "vocabulary/walker.py"),
)


def pool_path(vocab: Vocabulary, folder: Path | None = None) -> Path:
    """Where the pool of a vocabulary is kept: ``pools`` in the user's cache folder, unless one is named."""
    return (folder or cache_folder("pools")) / f"{vocab.fingerprint}-{code_stamp(*_SOURCES)}.npz"


def write_pool(path: Path, pool: Pool, vocab: Vocabulary) -> None:
    """Write the pool's explicit automata and the partitions of their states."""
    with pool.lock:
        automata, parts = pool.automata, pool.partitions
        names, named = automata.name_all()
        states = automata.state_count
        lazy = automata.owner[:states] >= 0
        small = np.int16 if states <= 1 << 15 else np.int32  # what is half as long is read and checked in half the time
        transitions = automata.transitions[: states * 256].astype(small)
        transitions.reshape(-1, 256)[lazy] = DEAD
        # slices are made again faster than they are read
        used = (parts.part_keys >= 0) & ~np.isin(parts.part_slots, [made.part for made in pool.slices.made])
        keys, numbers = parts.part_keys[used], parts.part_slots[used]
        kept = ~lazy[keys & STATE_PART]
        starts = {key: start for key, start in automata.starts.items() if not lazy[start]}
        arrays: dict[str, npt.NDArray[Any]] = {
            "transitions": transitions,
            "flags": automata.flags[:states],
            "partition_class": automata.partition_class[:states],
            "names": names,
            "named": named,
            **_pack_partitions(parts, keys[kept], numbers[kept]),
        }
        header = {
            "fingerprint": vocab.fingerprint,
            "starts": [[key.hex(), lazy_text, start] for (key, lazy_text), start in starts.items()],
            "spelled": [[start, automata.spelled[start]] for start in starts.values()],
            "prepared": sorted(map(list, pool.prepared)),
        }
    POOL_FORMAT.write(path, header, arrays, make_folder=True)


def _pack_partitions(
    parts: Partitions, keys: npt.NDArray[np.int64], numbers: npt.NDArray[np.int32]
) -> dict[str, npt.NDArray[Any]]:
    """The arrays of these partitions without gaps, and their keys but for places in rests that are left out."""
    wanted, first = np.unique(numbers), len(parts.trie.nodes)
    begin, end = parts.part_nodes[wanted].T
    shift = begin - first - _begins(end - begin)[:-1]
    places = keys >> KEY_SHIFT
    owner = np.maximum(np.searchsorted(begin, places - 1, side="right") - 1, 0)
    is_rest = places > first
    kept = ~is_rest | ((places - 1 < end[owner]) & (places - 1 >= begin[owner]))
    moved = keys - (np.where(is_rest, shift[owner], 0).astype(np.int64) << KEY_SHIFT)
    dense = parts.part_dense[wanted]
    ids = np.where(dense[:, None] >= 0, 0, parts.part_ids[wanted])
    id_begins = _begins(ids[:, 1] - ids[:, 0])
    return {
        "keys": moved[kept],
        "numbers": np.searchsorted(wanted, numbers[kept]).astype(np.int32),
        "part_dense": np.where(dense >= 0, np.cumsum(dense >= 0) - 1, -1).astype(np.int32),
        "part_ids": np.stack([id_begins[:-1], id_begins[1:]], axis=1),
        "part_nodes": (parts.part_nodes[wanted] - shift[:, None]).astype(np.int32),
        "dense": parts.dense[dense[dense >= 0]],
        "ids": _joined([parts.ids[low:past] for low, past in ids.tolist()]),
        "rests": _joined([parts.nodes[low:past] for low, past in np.stack([begin, end], axis=1).tolist()], np.uint64),
    }


def _joined(parts: list[npt.NDArray[Any]], dtype: Any = np.int32) -> npt.NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=dtype)


def _begins(sizes: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """Where parts of these sizes begin, one after another, and where the last one ends: int32."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)


def read_pool(path: Path, pool: Pool, vocab: Vocabulary) -> None:
    """Fill a new pool from a file of `write_pool`. Raises SavedIndexError and leaves the pool as it was."""

    def build(header: Header, arrays: Arrays) -> tuple[Any, ...]:
        if header["fingerprint"] != vocab.fingerprint:
            raise ValueError("it was made for another vocabulary")
        problem = _find_pool_problem(arrays, vocab)
        starts = {(bytes.fromhex(key), bool(lazy)): int(start) for key, lazy, start in header["starts"]}
        spelled = {int(start): bool(value) for start, value in header["spelled"]}
        states = len(arrays["flags"])
        if problem or any(not 0 < start < states or start not in spelled for start in starts.values()):
            raise ValueError(f"it holds no valid tables: {problem or 'a start is missing'}")
        return arrays, starts, spelled, {tuple(map(str, key)) for key in header["prepared"]}

    parts = POOL_FORMAT.read(path, build)
    with pool.lock:
        pool.adopt(*parts)


def _find_pool_problem(arrays: dict[str, npt.NDArray[Any]], vocab: Vocabulary) -> str:
    """What is wrong with the arrays of a pool, or nothing."""
    dtypes = {
        "flags": np.uint8, "partition_class": np.int32, "names": np.uint8,
        "named": np.int32, "keys": np.int64, "numbers": np.int32, "part_dense": np.int32,
        "part_ids": np.int32, "part_nodes": np.int32, "dense": np.uint32, "ids": np.int32, "rests": np.uint64,
    }  # fmt: skip
    tables = ("part_ids", "part_nodes", "dense", "names")
    for name, dtype in dtypes.items():
        if arrays[name].dtype != dtype or arrays[name].ndim != 1 + (name in tables):
            return f"{name} is {arrays[name].dtype} of {arrays[name].ndim} dimensions"
    if arrays["transitions"].dtype not in (np.int16, np.int32) or arrays["transitions"].ndim != 1:
        return f"transitions is {arrays['transitions'].dtype} of {arrays['transitions'].ndim} dimensions"
    if len(arrays["rests"]) > most_rest_nodes(len(vocab.trie.nodes)) or len(arrays["dense"]) > MAX_DENSE:
        return "there are too many partitions"
    states, count, nodes = len(arrays["flags"]), len(arrays["part_dense"]), len(vocab.trie.nodes) + len(arrays["rests"])
    if len(arrays["transitions"]) != states * 256 or not _within(arrays["transitions"], -1, states):
        return "transitions lead out of range"
    classes = arrays["partition_class"]
    if len(classes) != states or not _within(classes, -1, states) or not _within(arrays["named"], 0, states):
        return "states are of no partition class"
    if arrays["names"].shape != (len(arrays["named"]), NAME_BYTES):
        return "names do not fit"
    if arrays["dense"].shape[1] != vocab.size // 32 + 1 or not _within(arrays["ids"], 0, vocab.size):
        return "masks do not fit the vocabulary"
    shapes = tuple(arrays[name].shape for name in ("part_ids", "part_nodes"))
    if shapes != ((count, 2), (count, 2)):
        return "partitions do not fit"
    fits = (
        _within(arrays["numbers"], 0, count)
        and len(arrays["keys"]) == len(arrays["numbers"])
        and _within(arrays["keys"], 0, nodes + 1 << KEY_SHIFT)
        and _within(arrays["keys"] & STATE_PART, 0, states)
        and _within(arrays["part_dense"], -1, len(arrays["dense"]))
        and _within(arrays["part_ids"], 0, len(arrays["ids"]) + 1)
        and _within(arrays["part_nodes"], len(vocab.trie.nodes), nodes + 1)
        and bool((np.diff(arrays["part_nodes"].ravel()) >= 0).all())
    )
    if not fits:
        return "partitions lead out of range"
    return _find_rest_problem(arrays["part_nodes"] - len(vocab.trie.nodes), arrays["rests"], vocab)


def _find_rest_problem(extents: npt.NDArray[np.int32], rests: npt.NDArray[np.uint64], vocab: Vocabulary) -> str:
    """What is wrong with the tries of rests: a node's next lies after it and in its trie, its depth grows by one."""
    sizes = extents[:, 1] - extents[:, 0]
    if int(sizes.sum()) != len(rests):
        return "rests overlap"
    within = np.arange(len(rests), dtype=np.int32) - np.repeat(extents[:, 0], sizes)
    following = (rests >> np.uint64(NEXT_SHIFT)).astype(np.int32) & np.int32(MAX_NODES)
    depth = (rests >> np.uint64(DEPTH_SHIFT)).astype(np.int32) & np.int32((1 << DEPTH_BITS) - 1)
    if (following <= within).any() or (following > np.repeat(sizes, sizes)).any():
        return "a node leads out of range"
    begins_trie = within == 0
    grows = depth[1:] - depth[:-1] > 1
    is_deep = depth[begins_trie].any() or (grows & ~begins_trie[1:]).any()
    if is_deep or (len(rests) and int(rests.max() >> np.uint64(TOKEN_SHIFT)) > vocab.size):
        return "a node has no parent"
    return ""


def _within(array: npt.NDArray[Any], low: int, past: int) -> bool:
    return not array.size or (int(array.min()) >= low and int(array.max()) < past)
