"""Sets of code points as expressions over bytes: their UTF-8 encodings.

UTF-8 writes a code point as a lead byte and 0 to 3 continuation bytes (80..BF), each of which holds six bits. Cut off
the lead byte: what may follow it is again a set of numbers, of 6, 12 or 18 bits, and so on down. Lead bytes with the
same set of followers become one byte set. Since expressions are interned, equal sets of followers are one expression,
wherever they occur: the result is the minimal deterministic acyclic automaton of the set, prefixes and suffixes shared.

Only the shortest encoding of each code point occurs and no surrogate (D800..DFFF) does, as the standard demands
(Unicode, section 3.9, table 3-7): the full set has exactly the lead bytes 00..7F, C2..DF, E0..EF and F0..F4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.regex.char_sets import Ranges, difference, intersection
from tokdfa.regex.expression import EMPTY

if TYPE_CHECKING:
    from tokdfa.regex.expression import ExpressionStore

SURROGATES: Ranges = ((0xD800, 0xDFFF),)
#: By number of continuation bytes: first and last code point, and the bits that mark the lead byte.
_LENGTHS = ((0x0, 0x7F, 0x00), (0x80, 0x7FF, 0xC0), (0x800, 0xFFFF, 0xE0), (0x10000, 0x10FFFF, 0xF0))
_CONTINUATION = 0x80


def utf8_expression(code_points: Ranges, store: ExpressionStore) -> int:
    """The expression for the UTF-8 encodings of `code_points`; surrogates are left out. O(ranges) constructor calls."""
    valid = difference(code_points, SURROGATES)
    options = []
    for tail, (first, last, mark) in enumerate(_LENGTHS):
        options.append(_sequences(intersection(valid, ((first, last),)), tail, mark, store))
    return store.union(options)


def _sequences(numbers: Ranges, tail: int, mark: int, store: ExpressionStore) -> int:
    """The encodings of `numbers` as one byte, marked `mark`, with the leading bits, and `tail` continuation bytes."""
    block = 64**tail
    followers: dict[int, list[tuple[int, int]]] = {}  # leading bits -> the numbers that may follow
    whole_blocks: list[int] = []
    for first, last in numbers:
        for lead in range(first // block, last // block + 1):
            start, end = max(first - lead * block, 0), min(last - lead * block, block - 1)
            if (start, end) == (0, block - 1):
                whole_blocks.append(lead)
            else:
                followers.setdefault(lead, []).append((start, end))
    leads: dict[int, list[int]] = {}  # expression of what follows -> lead bytes
    if whole_blocks:
        leads[_whole(tail, store)] = [mark | lead for lead in whole_blocks]
    for lead, numbers_after in followers.items():
        leads.setdefault(_sequences(tuple(numbers_after), tail - 1, _CONTINUATION, store), []).append(mark | lead)
    return store.union([store.concat(store.byte_set(sorted(group)), rest) for rest, group in leads.items()])


def _whole(tail: int, store: ExpressionStore) -> int:
    """Any `tail` continuation bytes."""
    return store.repeat(store.byte_set(range(_CONTINUATION, 0xC0)), tail, tail) if tail else EMPTY
