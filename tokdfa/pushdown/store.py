"""Compiled constraints and the tables of a vocabulary in files.

*A form* (`write_form`, `read_form`): its instructions and automata, with the constraint it came from. Loading spares
reading the grammar and building automata; rows are made anew as they are needed. A form knows no vocabulary, so one
file serves all. Automata that are lazy, because they have more than 2,000 states, cannot be saved.

*A pool* (`write_pool`, `read_pool`): all explicit automata that constraints of a vocabulary had, and the partitions of
their states. Loading takes milliseconds, making it half a second. It is known by the vocabulary's fingerprint and by
the code that made it (`pool_path`).

Reading trusts nothing that could lead a kernel outside its arrays: digest, shapes and ranges are checked. An automaton
out of a form's file is known in the pool by its content, so a file cannot pass it off as another one.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.archive import describe_constraint, read_archive, rebuild_constraint, write_archive
from tokdfa.automata.dfa import Dfa
from tokdfa.automata.minimize import minimize
from tokdfa.errors import AutomatonError, SavedIndexError, UnsupportedConstraint
from tokdfa.folders import cache_folder
from tokdfa.grammar.cfg import SpecialTokens
from tokdfa.pushdown.form import (
    ANY,
    CALL,
    COUNT_LIMIT,
    COUNTED,
    COUNTED_BEYOND,
    FIRST,
    NAMES,
    NAMES_TARGETS,
    OPERATION,
    SECOND,
    TEXT,
    TOKEN,
    UNBOUNDED,
    Form,
    FrameNames,
    NameTable,
    Text,
)
from tokdfa.pushdown.json_text import escapes_of, string_text
from tokdfa.pushdown.partition import KEY_SHIFT, MAX_DENSE, STATE_PART, most_rest_nodes
from tokdfa.pushdown.pool import NAME_BYTES
from tokdfa.vocabulary.trie import MAX_NODES, NEXT_SHIFT
from tokdfa.vocabulary.walk import DEAD

if TYPE_CHECKING:
    import io

    import numpy.typing as npt

    from tokdfa.constraint import Constraint
    from tokdfa.pushdown.partition import Partitions
    from tokdfa.pushdown.pool import Pool
    from tokdfa.vocabulary.vocabulary import Vocabulary

FORM_FORMAT, POOL_FORMAT, VERSION = "tokdfa pushdown form", "tokdfa pushdown pool", 3


def write_form(path: str | Path | io.BytesIO, form: Form, constraint: Constraint, settings: dict[str, Any]) -> None:
    """Write a form, the constraint it was made of and the backend's options. Raises UnsupportedConstraint.

    Code that is to be written later is written first.
    """
    if form.source is not None:
        with form.source.lock:
            form.source.write_all()
            form = form.newest()
    arrays: dict[str, npt.NDArray[Any]] = {
        "code": form.code,
        "alternatives": form.alternatives,
        "entries": form.entries,
        "arguments": form.arguments,
    }
    for number, text in enumerate(form.texts):
        if escapes_of(text):  # it is known by its key, and its states have known numbers
            continue
        automaton = text.make()
        if not isinstance(automaton, Dfa):
            raise UnsupportedConstraint(f"{text.label} has too many states to be saved; lower its repeat bounds")
        arrays[f"{number}.transitions"] = automaton.transitions
        arrays[f"{number}.byte_class"] = automaton.byte_class
        arrays[f"{number}.accepting"] = automaton.accepting
        arrays[f"{number}.start"] = np.array([automaton.start], dtype=np.int32)
    header = {
        "constraint": describe_constraint(constraint),
        "settings": settings,
        "frame_names": list(form.frame_names),
        "texts": [[text.label, text.lazy, escapes_of(text) or ""] for text in form.texts],
        "name_tables": [[table.names, table.escapes] for table in form.name_tables],
        "pairs": form.pairs,
        "token_sets": [[s.names, s.ranges, s.negated, s.name] for s in form.token_sets],
        "start": form.start,
        "skip": form.skip,
        "longest": form.longest,
    }
    write_archive(path, FORM_FORMAT, VERSION, header, arrays)


def read_form(path: str | Path | io.BytesIO) -> tuple[Form, Constraint, dict[str, Any]]:
    """(form, constraint, options) from a file of `write_form`. Raises SavedIndexError."""
    header, arrays = read_archive(path, FORM_FORMAT, VERSION)
    try:
        texts = tuple(
            string_text(escapes) if escapes else _read_text(str(label), bool(lazy), arrays, number)
            for number, (label, lazy, escapes) in enumerate(header["texts"])
        )
        token_sets = tuple(
            SpecialTokens(tuple(names), tuple((int(a), int(b)) for a, b in ranges), bool(negated), str(name))
            for names, ranges, negated, name in header["token_sets"]
        )
        form = Form(
            arrays["code"],
            arrays["alternatives"],
            arrays["entries"],
            FrameNames(map(str, header["frame_names"])),
            texts,
            token_sets,
            int(header["start"]),
            int(header["skip"]),
            bool(header["longest"]),
            arrays["arguments"],
            tuple(NameTable.of(tuple(map(str, names)), escapes) for names, escapes in header["name_tables"]),
            tuple((int(table), int(text)) for table, text in header["pairs"]),
        )
        problem = _find_problem(form)
        if problem:
            raise SavedIndexError(f"{path} holds no valid form: {problem}; compile and save it again")
        return form, rebuild_constraint(header["constraint"]), dict(header["settings"])
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        AutomatonError,
        IndexError,
        UnsupportedConstraint,
    ) as error:
        raise SavedIndexError(f"{path} has incomplete content ({error}); compile and save it again") from None


def _read_text(label: str, lazy: bool, arrays: dict[str, npt.NDArray[Any]], number: int) -> Text:
    transitions, byte_class, accepting = (
        arrays[f"{number}.{name}"] for name in ("transitions", "byte_class", "accepting")
    )
    # minimising also drops what leads nowhere
    automaton = minimize(Dfa(transitions, byte_class, accepting, int(arrays[f"{number}.start"][0])))
    if not automaton.state_count:
        raise ValueError(f"no text matches {label}")
    key = hashlib.blake2b(digest_size=16)
    for array in (automaton.transitions, automaton.byte_class, automaton.accepting):
        key.update(array.tobytes())
    return Text(label, b"content" + key.digest(), lambda: automaton, lazy)


def _find_problem(form: Form) -> str:
    """What is wrong with a form, or nothing."""
    code, count = form.code, len(form.code)
    if code.dtype != np.int32 or code.ndim != 2 or code.shape[1] != 3 or not count or code[0].any():
        return "the code is no list of instructions"
    if form.alternatives.dtype != np.int32 or form.entries.dtype != np.int32 or form.entries.ndim != 1:
        return "places are not int32"
    if form.arguments.dtype != np.int32 or form.arguments.ndim != 1:
        return "arguments are not int32"
    if not all(0 <= table < len(form.name_tables) and 0 <= text < len(form.texts) for table, text in form.pairs):
        return "names and texts are put together that are not there"
    if form.alternatives.ndim != 1 or len(form.entries) != len(form.frame_names):
        return "frames and names disagree"
    places = [*form.alternatives.tolist(), *form.entries.tolist(), form.start, max(form.skip, 0)]
    bounds = {CALL: len(form.entries), TEXT: len(form.texts), TOKEN: len(form.token_sets)}
    for operation, first, second in code.tolist():
        if operation in (NAMES, COUNTED):
            problem = _find_names_problem(first, form) if operation == NAMES else _find_count_problem(first, form)
            if problem or form.longest:
                return problem or "the longest match reads no names"
            places.append(second)
        elif operation == ANY:
            if not 0 <= first < second <= len(form.alternatives):
                return "alternatives lead out of range"
        elif operation in bounds:
            if not 0 <= first < bounds[operation]:
                return "an instruction names what is not there"
            places.append(second)
        elif operation != 0:
            return f"there is no operation {operation}"
    if not all(0 <= place < count for place in places):
        return "a place leads out of range"
    if form.skip >= 0 and (code[form.skip, OPERATION] != TEXT or code[form.skip, SECOND] != 0):
        return "what is skipped is no text"
    return ""


def _find_names_problem(at: int, form: Form) -> str:
    """What is wrong with the arguments of a NAMES, or nothing."""
    arguments, code = form.arguments, form.code
    if not 0 <= at < len(arguments) - NAMES_TARGETS:
        return "arguments lead out of range"
    table, low, high, other, pair, begin = arguments[at : at + NAMES_TARGETS + 1].tolist()
    if not 0 <= table < len(form.name_tables):
        return "there is no such table of names"
    size = len(form.name_tables[table].names)
    if not (0 <= low <= high < size or (low, high) == (size, -1)):
        return "a window of names is out of range"
    targets = arguments[max(begin, 0) :][: max(high - low + 1, 0)]
    if begin < 0 or len(targets) < high - low + 1 or not ((targets >= 0) & (targets < len(code))).all():
        return "a name leads out of range"
    if other == pair == -1:
        return ""
    if not 0 <= other < len(code) or code[other, OPERATION] != TEXT or not 0 <= code[other, FIRST] < len(form.texts):
        return "other strings are read by no text"
    if not 0 <= pair < len(form.pairs) or form.pairs[pair] != (table, int(code[other, FIRST])):
        return "other strings are read by another text"
    return ""


def _find_count_problem(at: int, form: Form) -> str:
    """What is wrong with the arguments of a COUNTED, or nothing."""
    arguments, code = form.arguments, form.code
    if not 0 <= at < len(arguments) - COUNTED_BEYOND:
        return "arguments lead out of range"
    text, minimum, cap, on, beyond = arguments[at : at + COUNTED_BEYOND + 1].tolist()
    if not 0 <= text < len(code) or code[text, OPERATION] != TEXT:
        return "a counted string has no text"
    number = int(code[text, FIRST])
    if not 0 <= number < len(form.texts) or not escapes_of(form.texts[number]):
        return "a counted string is no JSON string"
    if not (minimum >= 0 and 0 <= cap <= COUNT_LIMIT and 0 <= beyond <= UNBOUNDED):
        return "a count is out of range"
    for _ in range(2):  # it goes on at a COUNTED, or at where that was to be written
        if on < 0:
            break
        operation, first, second = code[on].tolist() if on < len(code) else (-1, 0, 0)
        if operation == COUNTED:
            on = -1
        elif operation == ANY and second == first + 1 and 0 <= first < len(form.alternatives):
            on = int(form.alternatives[first])
        else:
            break
    return "a count goes on nowhere" if on >= 0 else ""


#: The modules on which the content of a pool's file depends, below the package.
_SOURCES = (
    *(f"pushdown/{name}.py" for name in ("exits", "json_text", "lower", "partition", "pool", "slices", "store")),
    *("grammar/partition.py", "regex/derivative.py", "regex/laws.py", "automata/minimize.py", "vocabulary/trie.py"),
)


def pool_path(vocab: Vocabulary, folder: Path | None = None) -> Path:
    """Where the pool of a vocabulary is kept: ``pools`` in the user's cache folder, unless one is named."""
    return (folder or cache_folder("pools")) / f"{vocab.fingerprint}-{_code_stamp()}.npz"


def write_pool(path: Path, pool: Pool, vocab: Vocabulary) -> None:
    """Write the pool's explicit automata and the partitions of their states."""
    with pool.lock:
        names, named = pool.name_all()
        parts, states = pool.partitions, pool.state_count
        lazy = pool.lazy_rows.owner[:states] >= 0
        small = np.int16 if states <= 1 << 15 else np.int32  # what is half as long is read and checked in half the time
        transitions = pool.transitions[: states * 256].astype(small)
        transitions.reshape(-1, 256)[lazy] = DEAD
        # slices are made again faster than they are read
        used = (parts.part_keys >= 0) & ~np.isin(parts.part_slots, [made.part for made in pool.slices.made])
        keys, numbers = parts.part_keys[used], parts.part_slots[used]
        kept = ~lazy[keys & STATE_PART]
        starts = {key: start for key, start in pool.starts.items() if not lazy[start]}
        arrays: dict[str, npt.NDArray[Any]] = {
            "transitions": transitions,
            "flags": pool.flags[:states],
            "alike": pool.alike[:states],
            "names": names,
            "named": named,
            **_pack_partitions(parts, keys[kept], numbers[kept]),
        }
        header = {
            "fingerprint": vocab.fingerprint,
            "starts": [[key.hex(), lazy_text, start] for (key, lazy_text), start in starts.items()],
            "spelled": [[start, pool.spelled[start]] for start in starts.values()],
            "prepared": sorted(map(list, pool.prepared)),
        }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_archive(path, POOL_FORMAT, VERSION, header, arrays)


def _pack_partitions(
    parts: Partitions, keys: npt.NDArray[np.int64], numbers: npt.NDArray[np.int32]
) -> dict[str, npt.NDArray[Any]]:
    """The arrays of these partitions without gaps, and their keys but for places in rests that are left out."""
    wanted, first = np.unique(numbers), len(parts.trie.nodes)
    begin, _, end = parts.part_nodes[wanted].T
    shift = begin - first - _begins(end - begin)[:-1]
    places = keys >> KEY_SHIFT
    owner = np.maximum(np.searchsorted(begin, places - 1, side="right") - 1, 0)
    is_rest = places > first
    kept = ~is_rest | ((places - 1 < end[owner]) & (places - 1 >= begin[owner]))
    moved = keys - (np.where(is_rest, shift[owner], 0).astype(np.int64) << KEY_SHIFT)
    dense = parts.part_dense[wanted]
    ids = np.where(dense[:, None] >= 0, 0, parts.part_ids[wanted])
    id_begins = _begins(ids[:, 1] - ids[:, 0])
    groups = parts.part_groups[wanted]
    group_begins = _begins(groups[:, 1] - groups[:, 0])
    group_sizes = np.diff(parts.exit_begin)
    exits = [group_sizes[low:past] for low, past in groups.tolist()]
    tokens = [parts.exit_tokens[parts.exit_begin[low] : parts.exit_begin[past]] for low, past in groups.tolist()]
    return {
        "keys": moved[kept],
        "numbers": np.searchsorted(wanted, numbers[kept]).astype(np.int32),
        "part_dense": np.where(dense >= 0, np.cumsum(dense >= 0) - 1, -1).astype(np.int32),
        "part_ids": np.stack([id_begins[:-1], id_begins[1:]], axis=1),
        "part_nodes": (parts.part_nodes[wanted] - shift[:, None]).astype(np.int32),
        "part_groups": np.stack([group_begins[:-1], group_begins[1:]], axis=1),
        "exit_begin": _begins(np.concatenate([*exits, np.zeros(0, dtype=np.int32)])),
        "exit_tokens": np.concatenate([*tokens, np.zeros(0, dtype=np.int32)]),
        "dense": parts.dense[dense[dense >= 0]],
        "ids": np.concatenate([*(parts.ids[low:past] for low, past in ids.tolist()), np.zeros(0, dtype=np.int32)]),
        "rests": np.concatenate(
            [
                *(parts.nodes[low:past] for low, past in zip(begin.tolist(), end.tolist(), strict=True)),
                np.zeros(0, dtype=np.uint64),
            ]
        ),
    }


def _begins(sizes: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """Where parts of these sizes begin, one after another, and where the last one ends: int32."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)


def read_pool(path: Path, pool: Pool, vocab: Vocabulary) -> None:
    """Fill a new pool from a file of `write_pool`. Raises SavedIndexError and leaves the pool as it was."""
    header, arrays = read_archive(path, POOL_FORMAT, VERSION)
    if header.get("fingerprint") != vocab.fingerprint:
        raise SavedIndexError(f"{path} was made for another vocabulary; make it again")
    try:
        problem = _find_pool_problem(arrays, vocab)
        starts = {(bytes.fromhex(key), bool(lazy)): int(start) for key, lazy, start in header["starts"]}
        spelled = {int(start): bool(value) for start, value in header["spelled"]}
        prepared = {tuple(map(str, key)) for key in header["prepared"]}
        states = len(arrays["flags"])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise SavedIndexError(f"{path} has incomplete content ({error}); make it again") from None
    if problem or any(not 0 < start < states or start not in spelled for start in starts.values()):
        raise SavedIndexError(f"{path} holds no valid tables: {problem or 'a start is missing'}; make it again")
    with pool.lock:
        pool.adopt(arrays, starts, spelled)
        pool.prepared = prepared


def _find_pool_problem(arrays: dict[str, npt.NDArray[Any]], vocab: Vocabulary) -> str:
    """What is wrong with the arrays of a pool, or nothing."""
    dtypes = {
        "flags": np.uint8, "alike": np.int32, "names": np.uint8,
        "named": np.int32, "keys": np.int64, "numbers": np.int32, "part_dense": np.int32,
        "part_ids": np.int32, "part_nodes": np.int32, "part_groups": np.int32, "exit_begin": np.int32,
        "exit_tokens": np.int32, "dense": np.uint32, "ids": np.int32, "rests": np.uint64,
    }  # fmt: skip
    tables = ("part_ids", "part_nodes", "part_groups", "dense", "names")
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
    alike = arrays["alike"]
    if len(alike) != states or not _within(alike, -1, states) or not _within(arrays["named"], 0, states):
        return "states are alike to none"
    if arrays["names"].shape != (len(arrays["named"]), NAME_BYTES):
        return "names do not fit"
    if arrays["dense"].shape[1] != vocab.size // 32 + 1 or not _within(arrays["ids"], 0, vocab.size):
        return "masks do not fit the vocabulary"
    shapes = tuple(arrays[name].shape for name in ("part_ids", "part_nodes", "part_groups"))
    if shapes != ((count, 2), (count, 3), (count, 2)):
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
    tries = (arrays["part_nodes"] - len(vocab.trie.nodes))[:, [0, 1, 1, 2]].reshape(-1, 2)  # rests and exits in turn
    return _find_rest_problem(tries, arrays["rests"], vocab) or _find_exit_problem(arrays, vocab)


def _find_exit_problem(arrays: dict[str, npt.NDArray[Any]], vocab: Vocabulary) -> str:
    """What is wrong with the groups of exits: those that nodes name are there, and have tokens of the vocabulary."""
    from tokdfa.vocabulary.trie import TOKEN_SHIFT

    begin, groups = arrays["exit_begin"], arrays["part_groups"]
    if not len(begin) or begin[0] or begin[-1] != len(arrays["exit_tokens"]) or (np.diff(begin) < 0).any():
        return "groups of exits are no ranges"
    if not _within(arrays["exit_tokens"], 0, vocab.size) or not _within(groups, 0, len(begin)):
        return "groups of exits lead out of range"
    counts = groups[:, 1] - groups[:, 0]
    sizes = np.diff(arrays["part_nodes"], axis=1)  # of a rest and of its exits
    known = np.repeat(np.stack([np.full_like(counts, vocab.size), counts], axis=1).ravel(), sizes.ravel())
    labels = (arrays["rests"] >> np.uint64(TOKEN_SHIFT)).astype(np.int32)
    if (counts < 0).any() or ((labels >= known) & (labels != vocab.size)).any():
        return "a node names a group of exits that is not there"
    return ""


def _find_rest_problem(extents: npt.NDArray[np.int32], rests: npt.NDArray[np.uint64], vocab: Vocabulary) -> str:
    """What is wrong with the tries of rests: a node's next lies after it and in its trie, its depth grows by one."""
    from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, TOKEN_SHIFT

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


@cache
def _code_stamp() -> str:
    """A hash of the modules that make what is kept."""
    package = Path(__file__).parents[1]
    return hashlib.sha256(b"".join((package / source).read_bytes() for source in _SOURCES)).hexdigest()[:16]
