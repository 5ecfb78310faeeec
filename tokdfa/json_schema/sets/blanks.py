r"""Strings without runaway blanks (``blanks="few"``): what stops a model that writes nothing but white space.
(And what blanks between signs may be: `check_blanks`.)

A string of `FEW`, as it is decoded, has white space (blanks, tabs, ends of line) only

- behind a character that is none, so never at its beginning;
- between two such characters: up to four blanks or tabs, or one or two ends of line and up to 16 to indent the next;
- at its end: one character of it;

and no characters of the planes of Unicode that are not assigned. Their first bytes, F1 and F2, are tokens of few
vocabularies, and whether tokens can end a text that may have them would have to be searched for.

So prose, lists and indented code are there. Where the schema leaves no such string (``"pattern": "^ +$"``), it may be
any that the schema takes. These stay as they are: what the schema lists (enum, const, patterns of few texts), formats,
strings with a maxLength, which come to an end anyway, and those of more than `LONG` characters at least; the length
would be a part of their automata, which have 150 states for each character that is counted.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tokdfa.constraint import Regex
from tokdfa.core.budget import is_spent
from tokdfa.errors import LimitExceeded, OptionError
from tokdfa.json_schema.sets.string_set import StringSet
from tokdfa.regex.compile import compile_dfa

#: Characters other than white space, but for the planes 4 to 13 of Unicode, which have none.
_OTHER = r"[^ \t\n\r\u{40000}-\u{DFFFF}]"
#: Strings with few blanks, as a pattern.
FEW_BLANKS = rf"^(?:{_OTHER}(?:(?:[ \t]{{0,4}}|[\n\r]{{1,2}}[ \t]{{0,16}}){_OTHER})*[ \t\n\r]?)?$"
FEW = StringSet(patterns=(FEW_BLANKS,))
#: Strings that must be longer are left alone.
LONG = 16
#: An automaton of more states stays lazy (`tokdfa.json_schema.sets.string_set`).
FEW_STATES = 3_000


def limit_blanks(strings: StringSet) -> StringSet:
    """Those of `strings` that have few blanks; all of them if there are none, and where blanks are left alone.

    Raises what questions of a `StringSet` raise, but for LimitExceeded of a proof that some are left: then all stay.
    """
    strings = strings.spelled_out
    if strings.values is not None or strings.formats or strings.max_length is not None or strings.min_length > LONG:
        return strings
    limited = strings.intersect(FEW)
    if strings.simple:
        return limited
    try:
        return strings if limited.is_empty() else limited
    except LimitExceeded as error:
        if is_spent(error):
            raise
        return strings


@lru_cache(maxsize=64)
def check_blanks(pattern: str) -> None:
    """Refuse a ``whitespace_pattern`` that takes a text which JSON does not have between its signs.

    Raises OptionError, and what compiling the pattern raises.
    """
    table = compile_dfa(Regex(pattern)).byte_table()  # of live states only: each byte read is in some text
    others = sorted({*np.nonzero(table >= 0)[1].tolist()} - {*b" \t\n\r"})
    if others:
        raise OptionError(
            f"whitespace_pattern {pattern!r} takes {bytes(others[:1])!r}, which no JSON text has between its signs; it "
            r"may take blanks, tabs and ends of line only, as [ \t\n\r]* does"
        )
