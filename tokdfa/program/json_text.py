"""The automaton of one JSON string, from its opening to its closing quote (RFC 8259, section 7).

Between the quotes stand *characters*, code points of Unicode without surrogates: raw as UTF-8, or as an escape. The
quote, the backslash and the controls below U+0020 stand only as escapes. A character beyond U+FFFF is escaped as a
pair of surrogates; a surrogate alone spells no character and is refused.

The automaton is written by hand, so that its states have known numbers: it begins in START, and is in BODY wherever a
character may begin. In automata of other sets of strings `read_characters` finds where that is, so that
`tokdfa.backends.pushdown_trie.items` can count their characters.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.automata.dfa import Dfa
from tokdfa.program.characters import count_least, find_begins
from tokdfa.program.program import Escapes, Terminal

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Before the opening quote; where a character may begin; after the closing quote.
START, BODY, END = range(3)
#: After a backslash, after ``\\u``; one hexadecimal digit is to come.
ESCAPE, UNICODE, ONE = range(3, 6)
#: So many bytes of the form 10xxxxxx are to come; first bytes whose next byte has bounds of its own.
TAIL_ONE, TAIL_TWO, TAIL_THREE, AFTER_E0, AFTER_ED, AFTER_F0, AFTER_F4 = range(6, 13)
#: All escapes: so many digits are to come; after ``\\uD``; the first surrogate lacks two digits, one, is complete; the
#: second after ``\\``, ``\\u``, ``\\uD``.
TWO, THREE, AFTER_D, HIGH_TWO, HIGH_ONE, HIGH, LOW_ESCAPE, LOW_UNICODE, LOW_D = range(13, 22)
#: Needed escapes: after ``\\u0``, ``\\u00``, ``\\u002``, ``\\u005``.
ZERO, ZEROS, QUOTE_DIGIT, BACKSLASH_DIGIT = range(13, 17)

#: Bytes that suffice to end every JSON string, and to end a number or a constant. If any character may be escaped, they
#: suffice for strings of which something is demanded, too: what is left of a character that was begun are tails of
#: UTF-8 or digits, and those after it are escaped.
SPELLED_BY = bytes([*range(0x20, 0x7F), *range(0x80, 0xC0)])
STATE_COUNTS: dict[Escapes, int] = {"all": 22, "needed": 17}
_HEX = b"0123456789abcdefABCDEF"


@cache
def string_dfa(escapes: Escapes = "all") -> Dfa:
    """The minimal automaton of a JSON string; its states have the numbers above, and BODY is where characters begin."""
    table = np.full((STATE_COUNTS[escapes], 256), -1, dtype=np.int32)

    def lead(state: int, read: Iterable[int], target: int) -> None:
        table[state, list(read)] = target

    lead(START, b'"', BODY)
    lead(BODY, range(0x20, 0x80), BODY)
    lead(BODY, b'"', END)
    lead(BODY, b"\\", ESCAPE)
    lead(BODY, range(0xC2, 0xE0), TAIL_ONE)
    lead(BODY, range(0xE0, 0xF0), TAIL_TWO)
    lead(BODY, range(0xF1, 0xF4), TAIL_THREE)
    for first, state, low, high, following in (
        (0xE0, AFTER_E0, 0xA0, 0xBF, TAIL_ONE),
        (0xED, AFTER_ED, 0x80, 0x9F, TAIL_ONE),
        (0xF0, AFTER_F0, 0x90, 0xBF, TAIL_TWO),
        (0xF4, AFTER_F4, 0x80, 0x8F, TAIL_TWO),
    ):
        lead(BODY, [first], state)
        lead(state, range(low, high + 1), following)
    for state, following in ((TAIL_THREE, TAIL_TWO), (TAIL_TWO, TAIL_ONE), (TAIL_ONE, BODY)):
        lead(state, range(0x80, 0xC0), following)
    lead(ESCAPE, b'"\\/bfnrt' if escapes == "all" else b'"\\bfnrt', BODY)
    lead(ESCAPE, b"u", UNICODE)
    lead(ONE, _HEX, BODY)
    if escapes == "all":
        lead(THREE, _HEX, TWO)
        lead(TWO, _HEX, ONE)
        lead(UNICODE, _HEX, THREE)
        lead(UNICODE, b"dD", AFTER_D)
        lead(AFTER_D, b"01234567", TWO)
        lead(AFTER_D, b"89abAB", HIGH_TWO)
        lead(HIGH_TWO, _HEX, HIGH_ONE)
        lead(HIGH_ONE, _HEX, HIGH)
        lead(HIGH, b"\\", LOW_ESCAPE)
        lead(LOW_ESCAPE, b"u", LOW_UNICODE)
        lead(LOW_UNICODE, b"dD", LOW_D)
        lead(LOW_D, b"cdefCDEF", TWO)
    else:
        lead(UNICODE, b"0", ZERO)
        lead(ZERO, b"0", ZEROS)
        lead(ZEROS, b"01", ONE)
        lead(ZEROS, b"2", QUOTE_DIGIT)
        lead(ZEROS, b"5", BACKSLASH_DIGIT)
        lead(QUOTE_DIGIT, b"2", BODY)
        lead(BACKSLASH_DIGIT, b"cC", BODY)
    accepting = np.zeros(len(table), dtype=np.bool_)
    accepting[END] = True
    return Dfa.from_table(table, accepting, START)


@cache
def string_terminal(escapes: Escapes = "all") -> Terminal:
    """The terminal of a JSON string, the same for all programs, so that a vocabulary's pool has it once."""
    label = "JSON string" if escapes == "all" else "JSON string, needed escapes"
    return Terminal(label, b"json string " + escapes.encode(), lambda: string_dfa(escapes))


class Characters(NamedTuple):
    """What is known of the characters that an automaton of JSON strings reads.

    `begins`: int32, shape (states,): 1 where a character may begin; `least`: int32, shape (states,): how many begin at
    least before an end; `has_all`: whether from every state an end comes after any greater number of characters, too.
    """

    begins: npt.NDArray[np.int32]
    least: npt.NDArray[np.int32]
    has_all: bool


def read_characters(dfa: Dfa) -> Characters | None:
    """The characters of an automaton of JSON strings without dead states; None if it does not start in state 0, or if
    in one of its states a character may or may not begin, as texts come to it. O(states² x classes), mostly far less.

    *All numbers.* If the states after one character reach an end with as few more as the state before it does, then so
    many and one lead to an end, and by induction any greater number.
    """
    if dfa.start != 0:
        return None
    strings = string_dfa("all")  # it reads what the one with fewer escapes reads, with the same characters
    begins = find_begins(dfa, strings.byte_table(), BODY)
    return None if begins is None else Characters(begins, *count_least(dfa, begins))


_ESCAPES_OF: dict[bytes, Escapes] = {string_terminal(escapes).key: escapes for escapes in STATE_COUNTS}


def escapes_of(terminal: Terminal) -> Escapes | None:
    """How characters are written in the terminal of any JSON string; None for other terminals."""
    return _ESCAPES_OF.get(terminal.key)
