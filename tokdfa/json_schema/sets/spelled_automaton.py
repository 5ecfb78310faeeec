r"""From an automaton of decoded texts to one of JSON strings, which reads every spelling of them.

A pattern tells few code points apart: most have a dozen *classes*. So its automaton is derived over classes, one symbol
each (`Classes`), and has as many states as the pattern has places. What JSON adds is the same for all of its states:
how bytes spell a code point (`tokdfa.json_schema.sets.string_body`). That is a decision diagram from bytes to classes,
made once an alphabet. Behind each state of the automaton stands a copy of it, in which a class has become the state
that it leads to, and nodes with equal edges are one: `tokdfa.json_schema.sets.spelling` writes all of that down.

The result has no dead states. It is minimal if the automaton of classes is, but for accidents of ``escapes="needed"``,
where a letter behind a backslash may lead where a raw one does.

Cost: 20 ns for each of a state's nodes and byte classes; of an automaton with 40 states and Unicode's other characters
30 us. Where letters of all scripts lead on, a state has 800 nodes.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.core.budget import spend
from tokdfa.json_schema.sets.spelling import Spellings, spell
from tokdfa.json_schema.sets.string_body import MUST_ESCAPE, Body
from tokdfa.regex.char_sets import SURROGATES, Ranges
from tokdfa.regex.expression import NOTHING
from tokdfa.regex.program import known

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokdfa.automata.dfa import Dfa
    from tokdfa.program.program import Escapes
    from tokdfa.regex.program import Program

#: The symbol that stands for the closing quote; classes are the symbols below it.
CLOSING = 255
#: In the place of a class: there is none.
DEAD = -1
#: Work (`tokdfa.core.budget`) of a range of code points, in nanoseconds.
NS_PER_RANGE = 2_000
#: To spell so many ranges takes a state or more.
RANGES_OF_A_STATE = 2


class Classes(Body):
    """Texts as sequences of classes: code points that none of `sets` tells apart are one symbol.

    `closed`: each text ends with CLOSING. Code points in none of the sets have no symbol; nor have surrogates.
    """

    closing = bytes([CLOSING])

    def __init__(self, sets: Iterable[Ranges], escapes: Escapes, closed: bool) -> None:
        super().__init__(escapes, closed)
        distinct = set(sets)
        # by code point: the sets that begin or end there, as bits; first surrogates, and what must be escaped
        flips = {0: 0, 0x110000: 0}
        for number, ranges in enumerate((SURROGATES, MUST_ESCAPE, *distinct)):
            bit = 1 << number
            for first, last in ranges:
                flips[first] = flips.get(first, 0) ^ bit
                flips[last + 1] = flips.get(last + 1, 0) ^ bit
        spend(NS_PER_RANGE * len(flips))
        numbers: dict[int, int] = {}
        self.firsts, self.raw, self.escaped, inside = sorted(flips), list[int](), list[int](), 0
        for first in self.firsts:
            inside ^= flips[first]
            is_none = inside & 1 or inside < 4
            found = DEAD if is_none else numbers.setdefault(inside >> 2, len(numbers))
            self.raw.append(DEAD if inside & 2 else found)
            self.escaped.append(found if escapes == "all" or inside & 2 else DEAD)
        #: How many classes there are.
        self.count = len(numbers)
        self._bits: dict[Ranges, int] = {}

    def char_set(self, ranges: Ranges, program: Program) -> int:
        """The value of one code point out of `ranges`, which is one of the sets, or a union of such."""
        if ranges not in self._bits:
            bits = 0
            for first, last in ranges:
                place = bisect_right(self.firsts, first) - 1
                while place < len(self.firsts) and self.firsts[place] <= last:
                    number = max(self.raw[place], self.escaped[place])
                    bits |= 1 << number if number >= 0 else 0
                    place += 1
            self._bits[ranges] = bits
        bits = self._bits[ranges]
        return program.byte_bits(bits) if bits else known(NOTHING)

    def text(self, text: str, program: Program) -> int:
        """The value of exactly `text`, each of whose characters is one of the sets."""
        places = [bisect_right(self.firsts, ord(character)) - 1 for character in text]
        return program.literal(bytes(max(self.raw[place], self.escaped[place]) for place in places))

    def spell(self, texts: Dfa, most_states: int) -> Dfa | None:
        """The automaton of the JSON strings, quotes included, whose texts a minimal one over classes accepts; None if
        it has more than about so many states: where classes are ragged, as letters are, a state has a thousand nodes.
        """
        if texts.state_count * len(self.firsts) > RANGES_OF_A_STATE * most_states:
            return None
        ends = texts.transitions[:, texts.byte_class[CLOSING]] >= 0 if self.end else texts.accepting
        closed = texts.accepting if self.end else np.zeros_like(texts.accepting)
        return spell(texts, ends, closed, Spellings(self.firsts, self.raw, self.escaped, self.count), most_states)
