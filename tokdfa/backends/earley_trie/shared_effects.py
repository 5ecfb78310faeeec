"""Effects that grammars share: equal lexer states of different grammars do the same to whole tokens.

Most grammars have strings and names, and their lexer states differ in nothing but the numbers of their lexemes, and in
how long a string may still become. So the effect of whole tokens (`tokdfa.backends.earley_trie.effects`) is kept by the
*name* of its lexer state (`tokdfa.backends.earley_trie.lexer_names`), with accepting sets as *places* in the list of
lexemes that comes with the name; they become sets of the grammar's own lexemes when it is taken out again. Kept by
vocabulary, up to LIMIT bytes, oldest out first. Of a name that was looked for in vain it is known how often, so that a
table which one grammar after another has done without is made at last.

On disk, if asked for (`SharedEffects.use_disk`): one file for a vocabulary in the user's cache folder, read in one go
when the first effect is looked for. Its name has the vocabulary's fingerprint and a stamp of the code that effects and
names depend on, so an edit begins a new file. It is written by `SharedEffects.save`, and by itself when enough effects
are new: at least SAVE_AFTER and a quarter of all, which costs a few percent of making them. Not at the program's end,
when nobody can wait and arrays may be gone: what came after the last writing is made anew next time. A file appears
whole or not at all; what another process has written meanwhile is taken over before.

A file is believed only if its digest and fingerprint are right and every number in it leads into the array that it is
an index of, so that no file makes a kernel read outside. Any other is ignored with a warning, and replaced in time.

Source: 000 keeps no such thing; the measurement behind it is that fresh schemas mostly bring masks seen before.
Cost: a hit 20 us; reading 5 MB (240 wide effects of 131,072 tokens) 18 ms, writing 25 ms.
"""

from __future__ import annotations

import itertools
import warnings
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, proxy

import numpy as np
import numpy.typing as npt

from tokdfa.backends.earley_trie.walk import FIRST_SHIFT, PAST_SHIFT
from tokdfa.core.folders import cache_folder
from tokdfa.core.locks import new_lock
from tokdfa.core.stored_file import Format, code_stamp
from tokdfa.errors import StoreError
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, NEXT_BITS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tokdfa.backends.earley_trie.lexer import Lexer
    from tokdfa.core.stored_file import Arrays, Header
    from tokdfa.vocabulary.trie import TokenTrie
    from tokdfa.vocabulary.vocabulary import Vocabulary

Int32 = npt.NDArray[np.int32]

#: Bytes of effects kept for a vocabulary, in memory and on disk.
LIMIT = 64 << 20
DISK_LIMIT = 16 << 20
#: The file is written when so many effects are new, or a quarter of all if that is more.
SAVE_AFTER = 64
#: Names of effects that were looked for in vain, which are counted.
MISSED = 100_000
#: The modules on which the content of a file depends, below the package.
_SOURCES = (
    *(f"backends/earley_trie/{name}.py" for name in ("lexer", "lexer_components", "lexer_states", "machine")),
    *(
        f"backends/earley_trie/{name}.py"
        for name in ("effect_kernels", "effects", "lexer_names", "shared_effects", "walk")
    ),
    *("vocabulary/division.py", "vocabulary/walker.py"),
    *("grammar/lexeme_automata.py", "regex/state_names.py"),
    *("automata/minimize.py", "regex/nodes.py", "regex/lazy_dfa.py", "vocabulary/trie.py"),
)

_FORMAT = Format("tokdfa effects", 1, what="file of effects", remedy="it is replaced when new ones are saved")

#: Columns of an end: the accepting set, and where its ranges begin and end.
END_SET, END_FIRST, END_PAST = range(3)


@dataclass(frozen=True, eq=False)
class StoredEffect:
    """What tokens do to a lexer state. `inside`: int32 words, the tokens that stay inside; `ranges`: int64, the rests,
    one after another; `ends`: int32, shape (ends, 3).
    """

    inside: Int32
    ranges: npt.NDArray[np.int64]
    ends: Int32

    @property
    def nbytes(self) -> int:
        """Memory of the arrays in bytes."""
        return self.inside.nbytes + self.ranges.nbytes + self.ends.nbytes


#: An effect with accepting sets numbered from 0, and the places of the lexemes in each of these sets.
Entry = tuple[StoredEffect, list[tuple[int, ...]]]

_kept: WeakKeyDictionary[Vocabulary, SharedEffects] = WeakKeyDictionary()
_lock = new_lock()


def shared_effects(vocab: Vocabulary) -> SharedEffects:
    """The effects kept for a vocabulary."""
    with _lock:
        if vocab not in _kept:
            _kept[vocab] = SharedEffects(vocab)
        return _kept[vocab]


def effects_folder() -> Path:
    """Where files are kept unless the caller names a folder: ``effects`` in the user's cache folder."""
    return cache_folder("effects")


class SharedEffects:
    """Name of a lexer state -> its effect. Safe to share between threads.

    `hits` and `misses` count what was looked for; `limit` is in bytes. It does not keep the vocabulary alive.
    """

    def __init__(self, vocab: Vocabulary, limit: int = LIMIT) -> None:
        self.limit, self.nbytes = limit, 0
        self.hits = self.misses = 0
        self._vocab: Vocabulary = proxy(vocab)
        self._found: OrderedDict[str, Entry] = OrderedDict()
        self._missed: dict[str, int] = {}
        self._lock = new_lock()
        self._folder: Path | None = None
        self._unsaved = 0
        self._seen: tuple[Path, int, int] | None = None  # the file that was read or written last: path, time, size

    def __len__(self) -> int:
        return len(self._found)

    def find(self, name: str, lexemes: tuple[int, ...], lexer: Lexer) -> tuple[StoredEffect | None, int]:
        """(the effect of that name with the accepting sets of `lexer`, None if there is none; how often it was looked
        for in vain before).
        """
        with self._lock:
            if self._folder is not None and self._seen is None:
                self._take_over(self._path(self._folder))
            kept = self._found.get(name)
            if kept is not None and any(place >= len(lexemes) for places in kept[1] for place in places):
                # a name is a hash of all that its effect depends on, but a file may hold another one under it
                self.nbytes -= self._found.pop(name)[0].nbytes
                kept = None
            if kept is None:
                self.misses += 1
                if len(self._missed) > MISSED:
                    self._missed.clear()
                before = self._missed.get(name, 0)
                self._missed[name] = before + 1
                return None, before
            self.hits += 1
            self._found.move_to_end(name)
        effect, sets = kept
        numbers = [lexer.set_of(sorted(lexemes[place] for place in places)) for places in sets]
        return _renumbered(effect, np.array(numbers, dtype=np.int32)), 0

    def keep(self, name: str, lexemes: tuple[int, ...], lexer: Lexer, effect: StoredEffect) -> None:
        """Remember an effect that was made for a state of `lexer`."""
        place_of = {lexeme: place for place, lexeme in enumerate(lexemes)}
        numbers = np.unique(effect.ends[:, END_SET])
        sets = [tuple(place_of[lexeme] for lexeme in lexer.lexemes_of(number)) for number in numbers.tolist()]
        dense = np.zeros(int(numbers.max()) + 1 if len(numbers) else 0, dtype=np.int32)
        dense[numbers] = np.arange(len(numbers), dtype=np.int32)
        with self._lock:
            if name not in self._found:
                self._found[name] = _renumbered(effect, dense), sets
                self._missed.pop(name, None)
                self.nbytes += effect.nbytes
                self._unsaved += 1
            self._shrink()
            if self._folder is not None and self._unsaved >= max(SAVE_AFTER, len(self._found) // 4):
                self._save_or_warn(self._folder)

    def use_disk(self, folder: Path | None = None) -> None:
        """From now on, read the file in `folder` before the first search, and write it now and then."""
        with self._lock:
            folder = effects_folder() if folder is None else folder
            if folder != self._folder:
                self._folder, self._seen = folder, None

    def save(self, folder: Path | None = None) -> Path:
        """Write the effects used last, up to DISK_LIMIT bytes, into the file in `folder`. Returns its path.

        What the file holds already stays, as far as there is room. Raises StoreError.
        """
        with self._lock:
            path = self._path(folder or self._folder or effects_folder())
            if self._stamp(path) != self._seen:
                self._take_over(path)
            room, chosen = DISK_LIMIT, []
            for name, entry in reversed(self._found.items()):
                room -= entry[0].nbytes
                if room < 0:
                    break
                chosen.append((name, entry))
            header, arrays = {"fingerprint": self._vocab.fingerprint}, _pack(reversed(chosen), self._vocab)
            _FORMAT.write(path, header, arrays, make_folder=True)
            self._unsaved, self._seen = 0, self._stamp(path)
            return path

    def _path(self, folder: Path) -> Path:
        return folder / f"{self._vocab.fingerprint}-{code_stamp(*_SOURCES)}.effects"

    @staticmethod
    def _stamp(path: Path) -> tuple[Path, int, int] | None:
        """What tells whether a file was written since; None if there is none."""
        try:
            found = path.stat()
        except OSError:
            return None
        return path, found.st_mtime_ns, found.st_size

    def _take_over(self, path: Path) -> None:
        """Add what a file holds, as what was used longest ago. Warns of a file that is not what it should be."""
        stamp = self._stamp(path)
        self._seen = stamp or (path, 0, 0)
        if stamp is None:
            return
        try:
            entries = _FORMAT.read(path, partial(_unpack, self._vocab))
        except StoreError as error:
            warnings.warn(f"kept effects are ignored: {error}", stacklevel=2)
            return
        for name, entry in reversed(entries):
            if name not in self._found:
                self._found[name] = entry
                self._found.move_to_end(name, last=False)
                self.nbytes += entry[0].nbytes
        self._shrink()

    def _shrink(self) -> None:
        while self.nbytes > self.limit:
            _, (dropped, _) = self._found.popitem(last=False)
            self.nbytes -= dropped.nbytes

    def _save_or_warn(self, folder: Path) -> None:
        try:
            self.save(folder)
        except StoreError as error:
            self._folder = None
            warnings.warn(f"effects are not kept on disk: {error}", stacklevel=2)


def _renumbered(effect: StoredEffect, numbers: npt.NDArray[np.int32]) -> StoredEffect:
    """`effect` with accepting set s replaced by numbers[s]; what does not change is shared."""
    ends = effect.ends.copy()
    ends[:, END_SET] = numbers[ends[:, END_SET]]
    return replace(effect, ends=ends)


# The file. Lists of different lengths lie one after another, with their ends beside.


def _pack(entries: Iterable[tuple[str, Entry]], vocab: Vocabulary) -> Arrays:
    """The arrays of these entries."""
    names, kept = zip(*entries, strict=True) if (entries := list(entries)) else ((), ())
    effects: list[StoredEffect] = [effect for effect, _ in kept]
    sets = [places for _, found in kept for places in found]
    words = (vocab.size + 31) // 32
    arrays: dict[str, Any] = {
        "names": np.frombuffer(bytes.fromhex("".join(names)), dtype=np.uint8).reshape(-1, 32),
        "inside": np.array([effect.inside for effect in effects], dtype=np.int32).reshape(-1, words),
        "places": np.array([place for places in sets for place in places], dtype=np.int32),
        "places_end": np.cumsum([len(places) for places in sets], dtype=np.int64),
        "sets_end": np.cumsum([len(found) for _, found in kept], dtype=np.int64),
    }
    for part, empty in _LISTS.items():
        lists = [getattr(effect, part) for effect in effects]
        arrays[part] = np.concatenate([empty, *lists])
        arrays[f"{part}_end"] = np.cumsum([len(one) for one in lists], dtype=np.int64)
    return arrays


#: The lists of an effect, and an empty one of each.
_LISTS: dict[str, npt.NDArray[Any]] = {
    "ranges": np.empty(0, dtype=np.int64),
    "ends": np.empty((0, 3), dtype=np.int32),
}


def _unpack(vocab: Vocabulary, header: Header, arrays: Arrays) -> list[tuple[str, Entry]]:
    """The entries of a file, the one used last last. Raises ValueError or KeyError for a strange one."""
    if header["fingerprint"] != vocab.fingerprint:
        raise ValueError("it belongs to another vocabulary")
    if not _fits(arrays, vocab):
        raise ValueError("its parts do not fit together")
    set_lists = _split(
        [tuple(one.tolist()) for one in _split(arrays["places"], arrays["places_end"])], arrays["sets_end"]
    )
    parts = [_split(arrays[part], arrays[f"{part}_end"]) for part in _LISTS]
    names = [name.tobytes().hex() for name in arrays["names"]]
    columns = zip(names, arrays["inside"], set_lists, *parts, strict=True)
    return [
        (name, (StoredEffect(inside.copy(), ranges.copy(), ends.copy()), sets))
        for name, inside, sets, ranges, ends in columns
    ]


def _split(items: Any, ends: npt.NDArray[np.int64]) -> list[Any]:
    """The parts of a list that stand one after another."""
    bounds = [0, *ends.tolist()]
    return [items[begin:end] for begin, end in itertools.pairwise(bounds)]


def _fits(arrays: dict[str, npt.NDArray[Any]], vocab: Vocabulary) -> bool:
    """Whether arrays have their types and shapes, and every number leads into the array it is an index of."""
    trie, count = vocab.trie, len(arrays["names"])
    shapes: dict[str, tuple[int, ...]] = {"names": (count, 32), "inside": (count, (vocab.size + 31) // 32)}
    shapes |= {f"{part}_end": (count,) for part in (*_LISTS, "sets")}
    kinds = {
        "names": np.uint8,
        "inside": np.int32,
        "places": np.int32,
        **{part: empty.dtype for part, empty in _LISTS.items()},
    }
    if any(arrays[name].shape != shape for name, shape in shapes.items()):
        return False
    if any(array.dtype != kinds.get(name, np.int64) for name, array in arrays.items()):
        return False
    if any(arrays[part].shape[1:] != empty.shape[1:] for part, empty in _LISTS.items()):
        return False
    lists = {part: arrays[part] for part in _LISTS} | {"sets": arrays["places_end"], "places": arrays["places"]}
    for name, items in lists.items():
        bounds = np.append(0, arrays[f"{name}_end"])
        if bounds[-1] != len(items) or (np.diff(bounds) < 0).any():
            return False
    ranges, ends = arrays["ranges"], arrays["ends"].astype(np.int64)
    own = {part: np.diff(arrays[f"{part}_end"], prepend=0) for part in ("ranges", "ends", "sets")}
    there = {part: np.repeat(own[part], own["ends"]) for part in ("ranges", "sets")}
    first, past = ranges >> FIRST_SHIFT, ranges >> PAST_SHIFT & (1 << NEXT_BITS) - 1
    depth_mask = (1 << DEPTH_BITS) - 1
    if not (_within(first, trie.node_count) and _within(past - 1, trie.node_count)):
        return False
    depths = (trie.nodes[first] >> np.uint64(DEPTH_SHIFT)).astype(np.int64) & depth_mask
    return (
        bool((past > first).all())
        and _are_subtrees(np.unique(ranges >> PAST_SHIFT), trie)
        and _within(ranges & depth_mask, depths + 1)
        and _within(ends[:, END_SET], there["sets"])
        and _within(ends[:, END_FIRST], there["ranges"] + 1)
        and _within(ends[:, END_PAST], there["ranges"] + 1)
        and _within(arrays["places"], 1 << 20)
    )


def _are_subtrees(ranges: npt.NDArray[np.int64], trie: TokenTrie) -> bool:
    """Whether no node of a range is above the range's first; `ranges`: without depths. A walk over all of them."""
    if not len(ranges):
        return True
    depths = np.append((trie.nodes >> np.uint64(DEPTH_SHIFT)).astype(np.int64) & (1 << DEPTH_BITS) - 1, 0)
    first, past = ranges >> NEXT_BITS, ranges & (1 << NEXT_BITS) - 1
    lowest = np.minimum.reduceat(depths, np.stack([first, past], axis=1).ravel())[::2]
    return bool((lowest >= depths[first]).all())


def _within(numbers: npt.NDArray[Any], bound: Any) -> bool:
    """Whether 0 <= number < bound for all of them."""
    return bool(((numbers >= 0) & (numbers < bound)).all())
