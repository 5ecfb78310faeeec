r"""ECMA-262 patterns, as the keyword ``pattern`` has them: the dialect "ecma" of `tokdfa.regex.dialects`.

JSON Schema (2020-12 core, section 6.4; validation, 6.3.3) asks for ECMA-262 with the flag u. Published schemas are
written for engines without it, too, so what only Annex B allows is read as Annex B says, if Python's `re` (which most
validators use) agrees or knows no meaning at all; where readings are left that one language does not cover, the pattern
is refused.

A pattern is searched for, and a text is taken if all who judge find it: ECMA-262 with and without the flag u, Python's
`re`, and Rust's validator (`tokdfa.regex.dialects`). All read characters as code points. What only some have in a class
(é in ``\w``, U+FEFF and U+0085 in ``\s``) is neither in the class nor in its negation ``\D \W \S``, and where only some
find a word boundary, there is neither ``\b`` nor ``\B``. What must *not* be found, such as the content of ``(?!..)``,
is read *widely*: as found if any of them finds it, by what any has in a class, in ``.``, at a boundary, or in front of
a last newline ``$``.

=========  ==================================  ====================================================================
construct  all have                            any has
=========  ==================================  ====================================================================
``\d``     ASCII                               Nd (Python; Rust beside look-around)
``\w``     ASCII                               letters and numbers of all kinds (Python); beside look-around also
                                               marks, Pc, Join_Control and other Alphabetic characters (Rust)
``\s``     Zs, U+2028/9, ASCII white space     U+001C..F (Python), U+0085 (Python, Rust), U+FEFF (ECMA)
``.``      all but ``\n \r`` and U+2028/9      all but ``\n`` (Python; Rust beside look-around)
``$``      the end                             before a last ``\n``, too (Python)
``\b``     between ASCII word characters and   where ECMA's, Python's or Rust's word characters begin or end
           what is none to anybody
i          one upper case, and one simple      simple case folding (flag u, Rust), and U+0130 and U+0131 as an i
           case folding (without and with u)   (Python)
=========  ==================================  ====================================================================

Python's ``\A \Z``, which are errors with flag u, and flags for the whole pattern, ``(?i)`` at its beginning, are read:
whoever writes them has Python in mind.

Refused (UnsupportedConstraint): back-references, which are not regular; look-behind; flags for all of a pattern that
stand inside of it; ``{,n}``, a count to Python and text to Annex B; ``\a``, a bell to Python and a letter to Annex B;
``\<`` and ``\>``, edges of words to Rust; ``[]`` and ``[^]`` where a ``]`` behind could close the class. Broken:
RegexSyntaxError.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tokdfa.errors import RegexUnsupported, UnsupportedConstraint
from tokdfa.regex.char_sets import ALL, Ranges, intersection, union
from tokdfa.regex.syntax_tree import Alternation, Assertion, Concat, Node, first_of

if TYPE_CHECKING:
    from collections.abc import Iterable


@lru_cache(maxsize=4096)
def parse_pattern(pattern: str, wide: bool = False) -> Node:
    """The syntax tree of `pattern`; the module's docstring says what is read, and how. Linear, about 1 us a character.

    It is found where all readings find the pattern; if `wide`, where any does.
    Raises RegexSyntaxError, UnsupportedConstraint, or LimitExceeded (`tokdfa.regex.parse` has the limits).
    """
    from tokdfa.regex.parse import parse

    # what only looks like look-around, such as `[(?=]`, is read as if it were: then fewer texts are taken
    dialect = "ecma with look-around" if "(?=" in pattern or "(?!" in pattern else "ecma"
    try:
        return parse(pattern, ascii_classes=True, dialect=dialect, wide=wide, is_counted=False)
    except RegexUnsupported as error:
        what, _, why = error.reason.partition("; ")
        raise UnsupportedConstraint(f"{what} at position {error.position} of the pattern {pattern!r}: {why}") from None


@lru_cache(maxsize=4096)
def has_readings(pattern: str) -> bool:
    """Whether readings of `pattern` differ."""
    return parse_pattern(pattern) != parse_pattern(pattern, wide=True)


def begin_apart(patterns: Iterable[str]) -> bool:
    """Whether it is plain to see that no text has all of some patterns, as it would begin with different characters."""
    common = ALL
    for pattern in patterns:
        common = intersection(common, _beginnings(pattern))
    return not common


@lru_cache(maxsize=4096)
def _beginnings(pattern: str) -> Ranges:
    """Characters with which all texts begin in which a pattern is found; all, if that may be an empty text."""
    node, found = parse_pattern(pattern), []
    for option in node.options if isinstance(node, Alternation) else (node,):
        start, *parts = option.parts if isinstance(option, Concat) else (option,)
        if parts and parts[-1] == Assertion("text_end"):
            del parts[-1]
        if start != Assertion("text_start") or any(part.assertions for part in parts):
            return ALL
        first = first_of(parts)
        if first is None or first[1]:
            return ALL
        found.append(first[0])
    return union(*found)


def finds_everywhere(node: Node) -> bool:
    """Whether a search finds `node` in every text; False if that is not plain to see. So ``.*`` demands nothing."""
    options = node.options if isinstance(node, Alternation) else (node,)
    return any(_is_everywhere(option) for option in options)


def _is_everywhere(node: Node) -> bool:
    parts = node.parts if isinstance(node, Concat) else (node,)
    if parts[0] == Assertion("text_start"):
        parts = parts[1:]
    elif parts[-1] == Assertion("text_end"):
        parts = parts[:-1]
    return all(part.nullable and not part.assertions for part in parts)
