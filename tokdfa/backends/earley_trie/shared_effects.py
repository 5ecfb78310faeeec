"""Effects that grammars share: equal lexer states of different grammars do the same to whole tokens.

Most grammars have strings and names, and their lexer states differ in nothing but the numbers of their lexemes, and in
how long a string may still become. So the effect of whole tokens (`tokdfa.backends.earley_trie.effects`) is kept by the
*name* of its lexer state (`tokdfa.backends.earley_trie.lexer_names`), with accepting sets as *indices* into the list of
lexemes that comes with the name; they become sets of the grammar's own lexemes when it is taken out again. Kept by
vocabulary, up to LIMIT bytes, oldest out first. Of a name that was looked for in vain it is known how often, so that a
table which one grammar after another has done without is made at last.

Source: 000 (llguidance) keeps no such thing; the measurement behind it is that fresh schemas mostly bring masks seen
before. Cost: a hit 20 us.
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
    from tokdfa.backends.earley_trie.lexer import Lexer
    from tokdfa.vocabulary.vocabulary import Vocabulary

Int32 = npt.NDArray[np.int32]

#: Bytes of effects kept for a vocabulary.
LIMIT = 64 << 20
#: Names of effects that were looked for in vain, which are counted.
MISSED = 100_000
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


#: An effect with accepting sets numbered from 0, and the indices of the lexemes in each of these sets.
Entry = tuple[StoredEffect, list[tuple[int, ...]]]

_kept: WeakKeyDictionary[Vocabulary, SharedEffects] = WeakKeyDictionary()
_lock = new_lock()


def shared_effects(vocab: Vocabulary) -> SharedEffects:
    """The effects kept for a vocabulary."""
    with _lock:
        if vocab not in _kept:
            _kept[vocab] = SharedEffects()
        return _kept[vocab]


class SharedEffects:
    """Name of a lexer state -> its effect. Safe to share between threads.

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

    def find(self, name: str, lexemes: tuple[int, ...], lexer: Lexer) -> tuple[StoredEffect | None, int]:
        """(the effect of that name with the accepting sets of `lexer`, None if there is none; how often it was looked
        for in vain before).
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
        effect, sets = kept
        numbers = [lexer.set_of(sorted(lexemes[index] for index in indices)) for indices in sets]
        return _renumbered(effect, np.array(numbers, dtype=np.int32)), 0

    def keep(self, name: str, lexemes: tuple[int, ...], lexer: Lexer, effect: StoredEffect) -> None:
        """Remember an effect that was made for a state of `lexer`."""
        index_of = {lexeme: index for index, lexeme in enumerate(lexemes)}
        numbers = np.unique(effect.ends[:, END_SET])
        sets = [tuple(index_of[lexeme] for lexeme in lexer.lexemes_of(number)) for number in numbers.tolist()]
        dense = np.zeros(int(numbers.max()) + 1 if len(numbers) else 0, dtype=np.int32)
        dense[numbers] = np.arange(len(numbers), dtype=np.int32)
        with self._lock:
            if name not in self._found:
                self._found[name] = _renumbered(effect, dense), sets
                self._missed.pop(name, None)
                self.nbytes += effect.nbytes
            self._shrink()

    def _shrink(self) -> None:
        while self.nbytes > self.limit:
            _, (dropped, _) = self._found.popitem(last=False)
            self.nbytes -= dropped.nbytes


def _renumbered(effect: StoredEffect, numbers: npt.NDArray[np.int32]) -> StoredEffect:
    """`effect` with accepting set s replaced by numbers[s]; what does not change is shared."""
    ends = effect.ends.copy()
    ends[:, END_SET] = numbers[ends[:, END_SET]]
    return replace(effect, ends=ends)
