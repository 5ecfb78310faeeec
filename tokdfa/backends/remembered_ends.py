"""How few tokens lead to an end for a matcher that remembers names (`tokdfa.backends.unique_items`).

`ShortestEnds` knows the strategy's situations, which know nothing of the names that were. So its shortest way may give
an object a name twice: ``{"": 0, "": 0}`` is the shortest where two members are asked for. Its numbers are lower
bounds, exact wherever the memory reads that way to the end, which is nearly everywhere. Where it does not, A* (Hart,
Nilsson and Raphael 1968) searches pairs of a situation and a memory, led by those numbers: the first pair from which
the strategy's way is read to the end has the fewest tokens.

Tokens after which the strategy is in one situation differ in the name that they begin or go on with. Of those that the
memory cannot take for a name that was, `SAMPLES` stand for all: a way gives a name to a few members, and swapping a
token for one that no other of its names has changes nothing. Past that many names a way may be found too long; whatever
is allowed comes to an end in time.

With tokens to spare nothing is searched: where there is always another name, one that was is mended by some letters.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.some_end import FAR
from tokdfa.backends.spelled_ends import fewest_tokens, spell
from tokdfa.core.budget import spend
from tokdfa.errors import EmptyLanguageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from tokdfa.backends.situation_source import SituationSource
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary

    Int32 = npt.NDArray[np.int32]

#: Tokens that stand for all that lead to one situation.
SAMPLES = 8
#: Tokens that mend a name which was: letters enough to tell 10,000 names apart, and those that it is cut into then.
SLACK = 6
#: Work (`tokdfa.core.budget`) of a pair that is searched, and of a way that is read.
NS_PER_PAIR, NS_PER_WAY = 1_000_000, 50_000
#: ... of a token that is told from those that lead to one situation, and of a byte of a way that is mended.
NS_PER_TOKEN, NS_PER_BYTE = 50, 20_000
LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


class Memory(Protocol):
    """What a matcher remembers of a text beside the states of its strategy. Immutable; equal ones go on alike."""

    @property
    def is_endless(self) -> bool:
        """Whether an end is never out of reach, however much was remembered; it may be some tokens further away."""

    def read(self, text: bytes) -> Memory | None:
        """What it comes to; None if it refuses the text."""

    def exceptions(self, allowed: Mask) -> tuple[Int32, Mapping[int, Memory]]:
        """Of the allowed tokens those that it refuses, and those that are not like others: what they come to.

        Other tokens after which the strategy is in one state are alike, but for what they spell.
        """


class Ends(Protocol):
    """What is asked of the distances of situations: see `tokdfa.backends.shortest_ends.ShortestEnds`."""

    @property
    def source(self) -> SituationSource: ...
    @property
    def targets(self) -> Callable[[int], Int32]: ...
    def is_near(self, situation: int, tokens: int) -> bool: ...
    def distance(self, situation: int) -> int: ...
    def path_from(self, situation: int) -> list[int]: ...
    def some_way(self, situation: int) -> tuple[int, bytes] | None: ...


class RememberedEnds:
    """Distances of pairs of a situation and a memory. `ends`: those of situations."""

    def __init__(self, ends: Ends, vocab: Vocabulary) -> None:
        self._ends, self._vocab = ends, vocab
        #: Situation -> the tokens and the quotes of some way to an end.
        self._ways: dict[int, tuple[int, int]] = {}

    def is_within(self, situation: int, memory: Memory, tokens: int) -> bool:
        """Whether so many tokens are enough to come to an end."""
        if not self._ends.is_near(situation, tokens):
            return False
        if self._has_plenty(situation, memory, tokens):
            return True
        mended = self._mended(situation, memory)
        if mended is not None and fewest_tokens(self._vocab, mended)[0] <= tokens:
            return True
        return self._search(situation, memory, tokens) is not None

    def path(self, situation: int, memory: Memory) -> list[int]:
        """The fewest tokens to an end. Raises EmptyLanguageError if there are none."""
        mended = self._mended(situation, memory)
        most = FAR if mended is None else fewest_tokens(self._vocab, mended)[0]
        found = self._search(situation, memory, most - 1)
        if found is None and mended is not None:
            found = spell(self._vocab, mended)
        if found is None:
            raise EmptyLanguageError("no tokens lead from here to an end: every way gives an object a name twice")
        return found

    def restrict(self, situation: int, memory: Memory, tokens: int, mask: Mask) -> None:
        """Take out of a mask, which holds what `ShortestEnds.restrict` left, the tokens after which so many more are
        not enough; no end tokens.
        """
        leads = self._ends.targets(situation)
        allowed = masks.mask_to_ids(mask)
        allowed = allowed[leads[allowed] >= 0]
        plenty = [int(q) for q in np.unique(leads[allowed]).tolist() if not self._has_plenty(q, memory, tokens)]
        if not plenty:
            return
        refused, others = memory.exceptions(mask)
        alone = np.union1d(refused, np.array(sorted(others), dtype=np.int32))
        lost = [token for token, after in others.items() if not self.is_within(int(leads[token]), after, tokens)]
        for target in plenty:
            spend(NS_PER_TOKEN * len(allowed))
            alike = np.setdiff1d(allowed[leads[allowed] == target], alone)
            if len(alike) <= SAMPLES:
                lost += [token for token in alike.tolist() if not self._is_within_after(token, target, memory, tokens)]
            elif not any(self._is_within_after(token, target, memory, tokens) for token in alike[:2].tolist()):
                lost += alike.tolist()
        if lost:
            mask &= ~masks.mask_from_ids(np.array(lost, dtype=np.int64), self._vocab.size)

    def _is_within_after(self, token: int, target: int, memory: Memory, tokens: int) -> bool:
        after = memory.read(self._vocab.token_bytes(token))
        return after is not None and self.is_within(target, after, tokens)

    def _has_plenty(self, situation: int, memory: Memory, tokens: int) -> bool:
        """Whether tokens are left even if every name on some way to an end has to be mended."""
        if not memory.is_endless:
            return False
        way = self._ways.get(situation)
        if way is None:
            found = self._ends.some_way(situation)
            way = (FAR, 0) if found is None else (found[0], found[1].count(b'"'))
            self._ways[situation] = way
        return way[0] + SLACK * way[1] <= tokens

    def _mended(self, situation: int, memory: Memory) -> bytes | None:
        """The bytes of some way to an end, a letter behind each name that was; None if that is none, or none is known.

        A way goes on behind a name with a letter more if both lead to one situation.
        """
        found = self._ends.some_way(situation)
        if found is None:
            return None
        text, here, known, following = bytearray(), situation, memory, self._ends.source.following
        for byte in found[1]:
            spend(NS_PER_BYTE)
            after, leads = known.read(bytes([byte])), following(here)
            assert leads is not None  # as there is a way by bytes
            for letter in LETTERS if after is None else ():
                spend(NS_PER_BYTE)
                there = int(leads[letter])
                beyond = following(there) if there >= 0 else None
                read = known.read(bytes([letter, byte]))
                if read is not None and beyond is not None and beyond[byte] == leads[byte]:
                    text.append(letter)
                    after = read
                    break
            if after is None:
                return None
            text.append(byte)
            known, here = after, int(leads[byte])
        return bytes(text)

    def _search(self, situation: int, memory: Memory, tokens: int) -> list[int] | None:
        """The fewest tokens to an end, None if they are more than `tokens`."""
        ends, vocab = self._ends, self._vocab
        #: (tokens at least, minus those so far, a number), the pair.
        agenda: list[tuple[int, int, int, int, Memory, tuple[int, ...]]]
        agenda = [(ends.distance(situation), 0, 0, situation, memory, ())]
        met, number = {(situation, memory)}, 0
        while agenda:
            least, _, _, here, known, taken = heapq.heappop(agenda)
            if least > tokens:
                return None
            spend(NS_PER_WAY)
            way = ends.path_from(here)
            if known.read(vocab.spell(way)) is not None:
                return [*taken, *way]
            spend(NS_PER_PAIR)
            for token, target, after in self._steps(here, known, tokens - len(taken) - 1):
                if (target, after) not in met:
                    met.add((target, after))
                    number += 1
                    least = len(taken) + 1 + ends.distance(target)
                    heapq.heappush(agenda, (least, -len(taken), number, target, after, (*taken, token)))
        return None

    def _steps(self, situation: int, memory: Memory, tokens: int) -> list[tuple[int, int, Memory]]:
        """Tokens that stand for all after which so many more may be enough, what they lead to and are remembered as."""
        ends, found = self._ends, list[tuple[int, int, "Memory"]]()
        leads = ends.targets(situation)
        allowed = np.flatnonzero(leads >= 0)
        near = [target for target in np.unique(leads[allowed]).tolist() if ends.is_near(target, tokens)]
        allowed = allowed[np.isin(leads[allowed], np.array(near, dtype=np.int32))]
        refused, others = memory.exceptions(masks.mask_from_ids(allowed, self._vocab.size))
        found += [(token, int(leads[token]), after) for token, after in others.items()]
        alone = np.union1d(refused, np.array(sorted(others), dtype=np.int32))
        for target in near:
            spend(NS_PER_TOKEN * len(allowed))
            alike = np.setdiff1d(allowed[leads[allowed] == target], alone)
            for token in alike[:SAMPLES].tolist():
                after = memory.read(self._vocab.token_bytes(token))
                if after is not None:
                    found.append((token, target, after))
        return found
