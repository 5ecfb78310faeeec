r"""ECMA-262 patterns, as the keyword ``pattern`` has them: the dialect "ecma" of `tokdfa.regex.dialects`.

JSON Schema (2020-12 core, section 6.4; validation, 6.3.3) asks for ECMA-262 with the flag u. Published schemas are
written for engines without it, too, so what only Annex B allows is read as Annex B says, if Python's `re` (which most
validators use) agrees or knows no meaning at all; where two readings are left, the pattern is refused.

A pattern is searched for. What only one of the two readings has in a class (é in ``\w``, U+FEFF and U+0085 in ``\s``)
is neither in the class nor in its negation ``\D \W \S``, so that what is accepted is right under both. What must *not*
be found, such as the content of ``(?!..)``, is read *widely*: what either reading has in a class, ``.``, or in front of
a last newline ``$``.

Python's ``\A \Z``, which are errors with flag u, and flags for the whole pattern, ``(?i)`` at its beginning, are read:
whoever writes them has Python in mind. Without regard to case, characters are equal that simple case folding makes
equal, to both; U+0130 and U+0131 are an i to Python only.

Refused (UnsupportedConstraint): back-references, which are not regular; look-behind; flags for all of a pattern that
stand inside of it; ``{,n}``, a count to Python and text to Annex B; ``\a``, a bell to Python and a letter to Annex B.
Broken: RegexSyntaxError.
"""

from __future__ import annotations

from functools import lru_cache

from tokdfa.errors import RegexUnsupported, UnsupportedConstraint
from tokdfa.regex.parse import parse
from tokdfa.regex.syntax_tree import Alternation, Assertion, Concat, Node


@lru_cache(maxsize=4096)
def parse_pattern(pattern: str, wide: bool = False) -> Node:
    """The syntax tree of `pattern`; the module's docstring says what is read, and how. Linear, about 1 us a character.

    It is found where both readings find the pattern; if `wide`, where either does (but for ``\\b \\B``, read as ASCII).
    Raises RegexSyntaxError, UnsupportedConstraint, or LimitExceeded (`tokdfa.regex.parse` has the limits).
    """
    try:
        return parse(pattern, ascii_classes=True, dialect="ecma", wide=wide, is_counted=False)
    except RegexUnsupported as error:
        what, _, why = error.reason.partition("; ")
        raise UnsupportedConstraint(f"{what} at position {error.position} of the pattern {pattern!r}: {why}") from None


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
