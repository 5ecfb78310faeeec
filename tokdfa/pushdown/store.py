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
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.archive import describe_constraint, read_archive, rebuild_constraint, write_archive
from tokdfa.automata.dfa import Dfa
from tokdfa.automata.minimize import minimize
from tokdfa.errors import AutomatonError, SavedIndexError, UnsupportedConstraint
from tokdfa.grammar.cfg import SpecialTokens
from tokdfa.pushdown.form import ANY, CALL, OPERATION, SECOND, TEXT, TOKEN, Form, Text
from tokdfa.pushdown.partition import MAX_DENSE, MAX_REST_NODES
from tokdfa.pushdown.pool import NAME_BYTES
from tokdfa.vocabulary.trie import MAX_NODES, NEXT_SHIFT
from tokdfa.vocabulary.walk import DEAD

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.constraint import Constraint
    from tokdfa.pushdown.pool import Pool
    from tokdfa.vocabulary.vocabulary import Vocabulary

FORM_FORMAT, POOL_FORMAT, VERSION = "tokdfa pushdown form", "tokdfa pushdown pool", 1


def write_form(path: str | Path, form: Form, constraint: Constraint, settings: dict[str, Any]) -> None:
    """Write a form, the constraint it was made of and the backend's options. Raises UnsupportedConstraint."""
    arrays: dict[str, npt.NDArray[Any]] = {
        "code": form.code,
        "alternatives": form.alternatives,
        "entries": form.entries,
    }
    for number, text in enumerate(form.texts):
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
        "frame_names": form.frame_names,
        "texts": [[text.label, text.lazy] for text in form.texts],
        "token_sets": [[s.names, s.ranges, s.negated, s.name] for s in form.token_sets],
        "start": form.start,
        "skip": form.skip,
        "longest": form.longest,
    }
    write_archive(path, FORM_FORMAT, VERSION, header, arrays)


def read_form(path: str | Path) -> tuple[Form, Constraint, dict[str, Any]]:
    """(form, constraint, options) from a file of `write_form`. Raises SavedIndexError."""
    header, arrays = read_archive(path, FORM_FORMAT, VERSION)
    try:
        texts = tuple(
            _read_text(str(label), bool(lazy), arrays, number) for number, (label, lazy) in enumerate(header["texts"])
        )
        token_sets = tuple(
            SpecialTokens(tuple(names), tuple((int(a), int(b)) for a, b in ranges), bool(negated), str(name))
            for names, ranges, negated, name in header["token_sets"]
        )
        form = Form(
            arrays["code"],
            arrays["alternatives"],
            arrays["entries"],
            tuple(map(str, header["frame_names"])),
            texts,
            token_sets,
            int(header["start"]),
            int(header["skip"]),
            bool(header["longest"]),
        )
        problem = _find_problem(form)
        if problem:
            raise SavedIndexError(f"{path} holds no valid form: {problem}; compile and save it again")
        return form, rebuild_constraint(header["constraint"]), dict(header["settings"])
    except (KeyError, TypeError, ValueError, AttributeError, AutomatonError, IndexError) as error:
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
    if form.alternatives.ndim != 1 or len(form.entries) != len(form.frame_names):
        return "frames and names disagree"
    places = [*form.alternatives.tolist(), *form.entries.tolist(), form.start, max(form.skip, 0)]
    bounds = {CALL: len(form.entries), TEXT: len(form.texts), TOKEN: len(form.token_sets)}
    for operation, first, second in code.tolist():
        if operation == ANY:
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


def pool_path(vocab: Vocabulary, folder: Path | None = None) -> Path:
    """Where the pool of a vocabulary is kept: ``tokdfa/pools`` in the user's cache folder, unless one is named."""
    cache_home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return (folder or Path(cache_home) / "tokdfa" / "pools") / f"{vocab.fingerprint}-{_code_stamp()}.npz"


def write_pool(path: Path, pool: Pool, vocab: Vocabulary) -> None:
    """Write the pool's explicit automata and the partitions of their states."""
    with pool.lock:
        names, named = pool.name_all()
        parts, states = pool.partitions, pool.state_count
        lazy = np.zeros(states, dtype=np.bool_)
        lazy[list(pool.lazy_states)] = True
        transitions = pool.transitions[: states * 256].copy()
        transitions.reshape(-1, 256)[lazy] = DEAD
        used = parts.part_keys >= 0
        keys, numbers = parts.part_keys[used], parts.part_slots[used]
        kept = ~lazy[keys & ((1 << 21) - 1)]
        starts = {key: start for key, start in pool.starts.items() if not lazy[start]}
        arrays = {
            "transitions": transitions,
            "flags": pool.flags[:states],
            "alike": pool.alike[:states],
            "names": names,
            "named": named,
            "keys": keys[kept],
            "numbers": numbers[kept],
            "part_dense": parts.part_dense[: parts.count],
            "part_ids": parts.part_ids[: parts.count],
            "part_nodes": parts.part_nodes[: parts.count],
            "dense": parts.dense[: parts.dense_count],
            "ids": parts.ids[: parts.id_count],
            "rests": parts.nodes[len(vocab.trie.nodes) : parts.node_count],
        }
        header = {
            "fingerprint": vocab.fingerprint,
            "starts": [[key.hex(), lazy_text, start] for (key, lazy_text), start in starts.items()],
            "spelled": [[start, pool.spelled[start]] for start in starts.values()],
        }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_archive(path, POOL_FORMAT, VERSION, header, arrays)


def read_pool(path: Path, pool: Pool, vocab: Vocabulary) -> None:
    """Fill a new pool from a file of `write_pool`. Raises SavedIndexError and leaves the pool as it was."""
    header, arrays = read_archive(path, POOL_FORMAT, VERSION)
    if header.get("fingerprint") != vocab.fingerprint:
        raise SavedIndexError(f"{path} was made for another vocabulary; make it again")
    try:
        problem = _find_pool_problem(arrays, vocab)
        starts = {(bytes.fromhex(key), bool(lazy)): int(start) for key, lazy, start in header["starts"]}
        spelled = {int(start): bool(value) for start, value in header["spelled"]}
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise SavedIndexError(f"{path} has incomplete content ({error}); make it again") from None
    states = len(arrays["flags"])
    if problem or any(not 0 < start < states or start not in spelled for start in starts.values()):
        raise SavedIndexError(f"{path} holds no valid tables: {problem or 'a start is missing'}; make it again")
    with pool.lock:
        pool.adopt(arrays, starts, spelled)


def _find_pool_problem(arrays: dict[str, npt.NDArray[Any]], vocab: Vocabulary) -> str:
    """What is wrong with the arrays of a pool, or nothing."""
    dtypes = {
        "transitions": np.int32, "flags": np.uint8, "alike": np.int32, "names": np.uint8,
        "named": np.int32, "keys": np.int64, "numbers": np.int32, "part_dense": np.int32,
        "part_ids": np.int32, "part_nodes": np.int32, "dense": np.uint32, "ids": np.int32, "rests": np.uint64,
    }  # fmt: skip
    for name, dtype in dtypes.items():
        if arrays[name].dtype != dtype or arrays[name].ndim != 1 + (
            name in ("part_ids", "part_nodes", "dense", "names")
        ):
            return f"{name} is {arrays[name].dtype} of {arrays[name].ndim} dimensions"
    if len(arrays["rests"]) > MAX_REST_NODES or len(arrays["dense"]) > MAX_DENSE:
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
    if arrays["part_ids"].shape != (count, 2) or arrays["part_nodes"].shape != (count, 2):
        return "partitions do not fit"
    fits = (
        _within(arrays["numbers"], 0, count)
        and len(arrays["keys"]) == len(arrays["numbers"])
        and _within(arrays["keys"], 0, nodes + 1 << 21)
        and _within(arrays["keys"] & ((1 << 21) - 1), 0, states)
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
    from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, TOKEN_SHIFT

    sizes = extents[:, 1] - extents[:, 0]
    if int(sizes.sum()) != len(rests):
        return "rests overlap"
    within = np.arange(len(rests)) - np.repeat(extents[:, 0], sizes)
    following = (rests >> np.uint64(NEXT_SHIFT)).astype(np.int64) & MAX_NODES
    depth = (rests >> np.uint64(DEPTH_SHIFT)).astype(np.int64) & ((1 << DEPTH_BITS) - 1)
    if (following <= within).any() or (following > np.repeat(sizes, sizes)).any():
        return "a node leads out of range"
    allowed = np.zeros(len(rests), dtype=np.int64)
    allowed[1:] = np.where(within[1:] > 0, depth[:-1] + 1, 0)
    if (depth > allowed).any() or ((rests >> np.uint64(TOKEN_SHIFT)) > np.uint64(vocab.size)).any():
        return "a node has no parent"
    return ""


def _within(array: npt.NDArray[Any], low: int, past: int) -> bool:
    return not array.size or (int(array.min()) >= low and int(array.max()) < past)


@cache
def _code_stamp() -> str:
    """A hash of the modules that make what is kept."""
    sources = (Path(__file__).with_name(f"{name}.py") for name in ("lower", "partition", "pool", "store"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
