"""Expressions as sets of strings: a plain meaning for each node, up to a length. Shares no code with the package.

A term is a nested tuple: ("bytes", frozenset of ints), ("empty",), ("nothing",), ("concat", a, b), ("union", [..]),
("intersection", [..]), ("complement", a), ("repeat", a, low, high or None).
"""

from __future__ import annotations

import itertools


def all_texts(alphabet: bytes, length: int) -> frozenset[bytes]:
    return frozenset(
        bytes(letters) for size in range(length + 1) for letters in itertools.product(alphabet, repeat=size)
    )


def language(term: tuple, alphabet: bytes, length: int) -> frozenset[bytes]:
    """The texts of at most `length` letters that the term contains."""
    kind = term[0]
    if kind == "nothing":
        return frozenset()
    if kind == "empty":
        return frozenset([b""])
    if kind == "bytes":
        return frozenset(bytes([letter]) for letter in term[1] if letter in alphabet and length >= 1)
    if kind == "union":
        return frozenset().union(*(language(part, alphabet, length) for part in term[1]))
    if kind == "intersection":
        result = all_texts(alphabet, length)
        for part in term[1]:
            result &= language(part, alphabet, length)
        return result
    if kind == "complement":
        return all_texts(alphabet, length) - language(term[1], alphabet, length)
    if kind == "concat":
        return _product(language(term[1], alphabet, length), language(term[2], alphabet, length), length)
    assert kind == "repeat"
    body = language(term[1], alphabet, length)
    power, result = frozenset([b""]), frozenset()
    seen = set()
    rounds = 0
    while True:
        if rounds >= term[2]:
            result |= power
        if (term[3] is not None and rounds == term[3]) or (rounds >= term[2] and power in seen):
            return result
        seen.add(power)
        power = _product(power, body, length)
        rounds += 1


def _product(left: frozenset[bytes], right: frozenset[bytes], length: int) -> frozenset[bytes]:
    return frozenset(a + b for a in left for b in right if len(a) + len(b) <= length)
