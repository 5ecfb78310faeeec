"""The words of a language: the shortest, the first few, and how many there are."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.automata.liveness import distance_to_accept, trim

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokdfa.automata.dfa import Dfa


def shortest_word(dfa: Dfa) -> bytes | None:
    """The first of the shortest accepted words in the order of their bytes; None iff there are none."""
    return next(iter(words(dfa, 1)), None)


def words(dfa: Dfa, limit: int, max_bytes: int | None = None) -> list[bytes]:
    """The first `limit` accepted words (all if there are fewer), shorter ones first, then in the order of their bytes.

    With `max_bytes`, none after the word at which all words together have more bytes than that: ``a*`` has few words
    of each length, and its first 20,000 are 200 MB. Each length costs O(states x classes), each byte of a word 1 us;
    the search enters no pair (state, bytes left) twice that has no word.
    """
    live = trim(dfa)
    found: list[bytes] = []
    size = 0
    for word in islice(_words_by_length(live), max(limit, 0)) if live.state_count else ():
        found.append(word)
        size += len(word)
        if max_bytes is not None and size > max_bytes:
            break
    return found


def _words_by_length(live: Dfa) -> Iterator[bytes]:
    """All words of a trim automaton that accepts some."""
    distances = distance_to_accept(live).tolist()
    hopeless: set[tuple[int, int]] = set()
    ahead = np.zeros(
        live.state_count + 1, dtype=np.bool_
    )  # states after exactly `length` bytes; the last entry is dead
    ahead[0] = True
    length = 0
    while ahead[:-1].any():
        if live.accepting[ahead[:-1]].any():
            yield from _words_of_length(live, length, distances, hopeless)
        targets = live.transitions[ahead[:-1]]
        ahead = np.zeros_like(ahead)
        ahead[targets] = True
        length += 1


def _words_of_length(live: Dfa, length: int, distances: list[int], hopeless: set[tuple[int, int]]) -> Iterator[bytes]:
    """All words of one length, depth first. `hopeless` collects (state, bytes left) from which there is no word."""

    known: dict[int, list[tuple[int, int]]] = {}

    def moves(state: int) -> Iterator[tuple[int, int]]:
        if state not in known:
            row = live.transitions[state, live.byte_class]
            leading = np.flatnonzero(row >= 0)
            known[state] = list(zip(leading.tolist(), row[leading].tolist(), strict=True))
        return iter(known[state])

    word = bytearray()
    path = [(0, moves(0))]
    fruitful = [False]  # whether a word was found below each state of the path
    while path:
        state, untried = path[-1]
        left = length - len(word)
        if left == 0:
            yield bytes(word)
            fruitful[-1] = True
        elif entered := next(
            (move for move in untried if distances[move[1]] < left and (move[1], left - 1) not in hopeless), None
        ):
            byte, target = entered
            word.append(byte)
            path.append((target, moves(target)))
            fruitful.append(False)
            continue
        path.pop()
        if fruitful.pop():
            if fruitful:
                fruitful[-1] = True
        else:
            hopeless.add((state, left))
        if word:
            word.pop()
