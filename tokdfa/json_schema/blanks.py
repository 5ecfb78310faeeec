r"""Strings without runaway blanks (``blanks="few"``): what stops a model that writes nothing but white space.

A string of `FEW`, as it is decoded, has white space (blanks, tabs, ends of line) only

- behind a character that is none, so never at its beginning;
- between two such characters: up to four blanks or tabs, or one or two ends of line and up to 16 to indent the next;
- at its end: one character of it.

So prose, lists and indented code are there. Where the schema leaves no such string (``"pattern": "^ +$"``), it may be
any that the schema takes. What the schema lists (enum, const, patterns of few texts) and formats stay as they are, and
so do strings that have at least `LONG` characters.

A bound on lengths is then part of the automaton, which has 120 states for each character that is counted; those that
are read are made.
"""

from __future__ import annotations

from dataclasses import replace

from tokdfa.core.budget import is_spent
from tokdfa.errors import LimitExceeded
from tokdfa.json_schema.string_set import StringSet
from tokdfa.regex.nodes import MAX_REPEAT

#: Strings with few blanks, as a pattern.
FEW_BLANKS = r"^(?:[^ \t\n\r](?:(?:[ \t]{0,4}|[\n\r]{1,2}[ \t]{0,16})[^ \t\n\r])*[ \t\n\r]?)?$"
FEW = StringSet(patterns=(FEW_BLANKS,))
#: Strings with at least so many characters are left alone.
LONG = 1_000


def limit_blanks(strings: StringSet) -> StringSet:
    """Those of `strings` that have few blanks; all of them if there are none, and if they are listed or have a format.

    Raises what questions of a `StringSet` raise, but for LimitExceeded of a proof that some are left: then all stay.
    """
    strings = strings.spelled_out
    if strings.values is not None or strings.formats or strings.min_length > LONG:
        return strings
    limited = strings.intersect(FEW)
    if limited.max_length is not None and limited.max_length > MAX_REPEAT:
        limited = replace(limited, max_length=None)  # no text is so long
    if strings.simple:
        return limited
    try:
        return strings if limited.is_empty() else limited
    except LimitExceeded as error:
        if is_spent(error):
            raise
        return strings
