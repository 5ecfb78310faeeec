"""Interpolated Kneser-Ney as the textbook writes it: dictionaries of tuples, a sum for every probability."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

START = -1


class NaiveKneserNey:
    """p(token | prefix) over `possible` tokens, from documents that end with `end`; nothing is precomputed."""

    def __init__(self, documents: Sequence[Sequence[int]], end: int, possible: Collection[int], order: int) -> None:
        self.order, self.possible = order, possible
        occurrences: Counter[tuple[int, ...]] = Counter()
        before: dict[tuple[int, ...], set[int]] = defaultdict(set)
        for document in documents:
            symbols = (START, *document, end)
            for begin in range(len(symbols)):
                for stop in range(begin + 1, min(begin + order, len(symbols)) + 1):
                    occurrences[symbols[begin:stop]] += 1
                    if begin > 0:
                        before[symbols[begin:stop]].add(symbols[begin - 1])
        self.count = {
            gram: number if len(gram) == order or gram[0] == START else len(before[gram])
            for gram, number in occurrences.items()
            if gram != (START,)
        }
        self.discount = {}
        for length in range(1, order + 1):
            values = [number for gram, number in self.count.items() if len(gram) == length]
            once, twice = values.count(1), values.count(2)
            self.discount[length] = once / (once + 2 * twice) if once and twice else 0.5

    def probability(self, token: int, prefix: Sequence[int]) -> float:
        symbols = (START, *prefix)
        return self._after(symbols[len(symbols) - min(len(symbols), self.order - 1) :], token)

    def _after(self, context: tuple[int, ...], token: int) -> float:
        seen = {
            gram[-1]: number
            for gram, number in self.count.items()
            if len(gram) == len(context) + 1 and gram[:-1] == context
        }
        if context:
            shorter = self._after(context[1:], token)
        else:
            shorter = 1 / len(self.possible) if token in self.possible else 0.0
        if not seen:
            return shorter
        discount, total = self.discount[len(context) + 1], sum(seen.values())
        return max(seen.get(token, 0) - discount, 0) / total + discount * len(seen) / total * shorter
