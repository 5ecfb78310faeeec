"""The automaton of one JSON string, from its opening to its closing quote (RFC 8259, section 7).

Between the quotes stand *characters*, code points of Unicode without surrogates: raw as UTF-8, or as an escape. The
quote, the backslash and the controls below U+0020 stand only as escapes. A character beyond U+FFFF is escaped as a
pair of surrogates; a surrogate alone spells no character and is refused.

The automaton begins in START, and is in BODY wherever a character may begin. In automata of other sets of strings
`read_characters` finds where that is, so that `tokdfa.backends.pushdown_trie.items` can count their characters.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from tokdfa.program.characters import count_least, find_begins
from tokdfa.program.program import Escapes, Terminal

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tokdfa.automata.dfa import Dfa

#: Before the opening quote; where a character may begin; after the closing quote.
START, BODY, END = range(3)

#: Bytes that suffice to end every JSON string, and to end a number or a constant. If any character may be escaped, they
#: suffice for strings of which something is demanded, too: what is left of a character that was begun are tails of
#: UTF-8 or digits, and those after it are escaped.
SPELLED_BY = bytes([*range(0x20, 0x7F), *range(0x80, 0xC0)])
_HEX, _LOW_SURROGATE = "[0-9A-Fa-f]", r"\\u[Dd][C-Fc-f][0-9A-Fa-f]{2}"
#: What may stand behind a backslash: short escapes, and hexadecimal digits.
_ESCAPES: dict[Escapes, str] = {
    "all": rf'["\\/bfnrt]|u(?:[0-9A-CEFa-cef]{_HEX}{{3}}|[Dd][0-7]{_HEX}{{2}}|[Dd][89ABab]{_HEX}{{2}}{_LOW_SURROGATE})',
    "needed": rf'["\\bfnrt]|u00(?:[01]{_HEX}|22|5[Cc])',
}


@cache
def string_dfa(escapes: Escapes = "all") -> Dfa:
    """The minimal automaton of a JSON string; its first states are START, BODY and END."""
    from tokdfa.constraint import Regex
    from tokdfa.regex.compile import compile_dfa

    found = compile_dfa(Regex(rf'"(?:[^"\\\x00-\x1F]|\\(?:{_ESCAPES[escapes]}))*"'))
    assert (found.start, found.run(b'"'), found.run(b'""')) == (START, BODY, END)
    return found


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


_ESCAPES_OF: dict[bytes, Escapes] = {string_terminal(escapes).key: escapes for escapes in _ESCAPES}


def escapes_of(terminal: Terminal) -> Escapes | None:
    """How characters are written in the terminal of any JSON string; None for other terminals."""
    return _ESCAPES_OF.get(terminal.key)
