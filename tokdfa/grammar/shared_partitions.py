"""Partitions that grammars share: equal lexer states of different grammars divide the vocabulary alike.

Most grammars have strings, numbers and names, and their lexer states differ in nothing but the numbers of their
lexemes. So a state is known by what it is: for each of its components the lexeme's minimal automaton (a hash of its
tables) and the state of it, whether the lexeme is lazy, and the lexing rule. A partition's accepting sets are kept as
places in that list, and become sets of the grammar's own lexemes when it is taken out again.

Kept by vocabulary, up to LIMIT bytes, oldest out first. Lexemes whose automata stay lazy are not shared: a hash of them
would have to make all of their states.

Source: 000 keeps no such thing; the measurement behind it is that fresh schemas mostly bring masks seen before.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from tokdfa.grammar.machine import S_LONGEST
from tokdfa.grammar.partition import GROUP_SET, SET

if TYPE_CHECKING:
    from tokdfa.grammar.machine import Machine
    from tokdfa.grammar.partition import Partition
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: Bytes of partitions kept for a vocabulary.
LIMIT = 64 << 20

_kept: WeakKeyDictionary[Vocabulary, SharedPartitions] = WeakKeyDictionary()
_lock = threading.Lock()


def shared_partitions(vocab: Vocabulary) -> SharedPartitions:
    """The partitions kept for a vocabulary."""
    with _lock:
        if vocab not in _kept:
            _kept[vocab] = SharedPartitions()
        return _kept[vocab]


class SharedPartitions:
    """Content of a lexer state -> its partition, with accepting sets as places. Safe to share between threads."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit, self.nbytes = limit, 0
        self.hits = self.misses = 0
        self._found: OrderedDict[str, tuple[Partition, list[tuple[int, ...]]]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, machine: Machine, state: int) -> Partition | None:
        """The partition of an equal state, with the accepting sets of `machine`; None if there is none."""
        key = content_key(machine, state)
        with self._lock:
            kept = self._found.get(key) if key else None
            if kept is None:
                self.misses += 1
                return None
            self.hits += 1
            self._found.move_to_end(key)
        partition, sets = kept
        lexemes = machine.lexer.lexemes_in(state)
        numbers = np.array([machine.lexer.set_of([lexemes[place] for place in places]) for places in sets], np.int32)
        return _renumbered(partition, numbers)

    def keep(self, machine: Machine, state: int, partition: Partition) -> None:
        """Remember a partition that `machine` has made."""
        key = content_key(machine, state)
        if not key:
            return
        place_of = {lexeme: place for place, lexeme in enumerate(machine.lexer.lexemes_in(state))}
        numbers = np.unique(partition.groups[:, GROUP_SET])
        sets = [tuple(place_of[lexeme] for lexeme in machine.lexer.lexemes_of(number)) for number in numbers.tolist()]
        dense = np.zeros(int(numbers.max()) + 1 if len(numbers) else 0, dtype=np.int32)
        dense[numbers] = np.arange(len(numbers), dtype=np.int32)
        with self._lock:
            if key not in self._found:
                self._found[key] = (_renumbered(partition, dense), sets)
                self.nbytes += partition.nbytes
            while self.nbytes > self.limit:
                _, (dropped, _) = self._found.popitem(last=False)
                self.nbytes -= dropped.nbytes


def content_key(machine: Machine, state: int) -> str:
    """What the partition of a lexer state depends on, besides the vocabulary; "" if that has no finite form."""
    lexer = machine.lexer
    parts = [f"longest={int(machine.meta[S_LONGEST])} start={lexer.is_start(state)}"]
    for component in lexer.components(state):
        name = lexer.content_of(component)
        if not name:
            return ""
        parts.append(name)
    return hashlib.sha256("|".join(parts).encode()).hexdigest()


def _renumbered(partition: Partition, numbers: npt.NDArray[np.int32]) -> Partition:
    """`partition` with accepting set s replaced by numbers[s]; what does not change is shared."""
    exits, groups = partition.exits.copy(), partition.groups.copy()
    if len(groups):
        exits[:, SET], groups[:, GROUP_SET] = numbers[exits[:, SET]], numbers[groups[:, GROUP_SET]]
    return replace(partition, exits=exits, groups=groups)
