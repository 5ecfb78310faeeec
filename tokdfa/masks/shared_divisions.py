"""Divisions that constraints share: equal states of different constraints do the same to whole tokens.

Most grammars have strings and names, and their lexer states differ in nothing but the numbers of their lexemes, and in
how long a string may still become. So a division of whole tokens (`tokdfa.masks`) is kept by the *name* of its state,
with tags as *indices* into the list of letters that comes with the name; they become tags of the constraint's own
letters when it is taken out again. Kept by vocabulary, up to LIMIT bytes, oldest out first. Of a name that was looked
for in vain it is known how often, so that a table which one grammar after another has done without is made at last.

Source: llguidance keeps no such thing; the measurement behind it is that fresh schemas mostly bring masks seen before.
Cost: a hit 20 us.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from tokdfa.core.locks import new_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tokdfa.vocabulary.vocabulary import Vocabulary

Int32 = npt.NDArray[np.int32]

#: Bytes of divisions kept for a vocabulary.
LIMIT = 64 << 20
#: Names of divisions that were looked for in vain, which are counted.
MISSED = 100_000
#: Columns of an end: the tag, and where its ranges begin and end.
END_TAG, END_FIRST, END_PAST = range(3)


@dataclass(frozen=True, eq=False)
class StoredDivision:
    """What tokens do to a state. `inside`: int32 words, the tokens that stay inside; `ranges`: int64, the rests, one
    after another; `ends`: int32, shape (ends, 3).
    """

    inside: Int32
    ranges: npt.NDArray[np.int64]
    ends: Int32

    @property
    def nbytes(self) -> int:
        """Memory of the arrays in bytes."""
        return self.inside.nbytes + self.ranges.nbytes + self.ends.nbytes


#: A division with tags numbered from 0, and the indices of the letters of each.
Entry = tuple[StoredDivision, list[tuple[int, ...]]]

_kept: WeakKeyDictionary[Vocabulary, SharedDivisions] = WeakKeyDictionary()
_lock = new_lock()


def shared_divisions(vocab: Vocabulary) -> SharedDivisions:
    """The divisions kept for a vocabulary."""
    with _lock:
        if vocab not in _kept:
            _kept[vocab] = SharedDivisions()
        return _kept[vocab]


class SharedDivisions:
    """Name of a state -> its division. Safe to share between threads.

    `hits` and `misses` count what was looked for; `limit` is in bytes.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit, self.nbytes = limit, 0
        self.hits = self.misses = 0
        self._found: OrderedDict[str, Entry] = OrderedDict()
        self._missed: dict[str, int] = {}
        self._lock = new_lock()

    def __len__(self) -> int:
        return len(self._found)

    def find(
        self, name: str, letters: tuple[int, ...], tag_of: Callable[[Sequence[int]], int]
    ) -> tuple[StoredDivision | None, int]:
        """(the division of that name with the tags that `tag_of` makes of letters, None if there is none; how often it
        was looked for in vain before).
        """
        with self._lock:
            kept = self._found.get(name)
            if kept is None:
                self.misses += 1
                if len(self._missed) > MISSED:
                    self._missed.clear()
                before = self._missed.get(name, 0)
                self._missed[name] = before + 1
                return None, before
            self.hits += 1
            self._found.move_to_end(name)
        division, sets = kept
        tags = [tag_of(sorted(letters[index] for index in indices)) for indices in sets]
        return _renumbered(division, np.array(tags, dtype=np.int32)), 0

    def keep(
        self, name: str, letters: tuple[int, ...], letters_of: Callable[[int], list[int]], division: StoredDivision
    ) -> None:
        """Remember a division that was made; `letters_of`: those of a tag."""
        index_of = {letter: index for index, letter in enumerate(letters)}
        tags = np.unique(division.ends[:, END_TAG])
        sets = [tuple(index_of[letter] for letter in letters_of(tag)) for tag in tags.tolist()]
        dense = np.zeros(int(tags.max()) + 1 if len(tags) else 0, dtype=np.int32)
        dense[tags] = np.arange(len(tags), dtype=np.int32)
        with self._lock:
            if name not in self._found:
                self._found[name] = _renumbered(division, dense), sets
                self._missed.pop(name, None)
                self.nbytes += division.nbytes
            self._shrink()

    def _shrink(self) -> None:
        while self.nbytes > self.limit:
            _, (dropped, _) = self._found.popitem(last=False)
            self.nbytes -= dropped.nbytes


def _renumbered(division: StoredDivision, tags: npt.NDArray[np.int32]) -> StoredDivision:
    """`division` with tag t replaced by tags[t]; what does not change is shared."""
    ends = division.ends.copy()
    ends[:, END_TAG] = tags[ends[:, END_TAG]]
    return replace(division, ends=ends)
