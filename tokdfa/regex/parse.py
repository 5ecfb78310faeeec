r"""Pattern text -> `tokdfa.regex.syntax_tree`, in any of the dialects of `tokdfa.regex.dialects`.

tokdfa's own dialect is the common core of Python's `re`, ECMA-262 (u mode and Annex B) and Rust's `regex`. Where they
disagree:

- ``.`` is everything but ``\n`` (Python, Rust; ECMA also excludes ``\r``, U+2028, U+2029). Flag ``s``: everything.
- ``$`` is the very end (ECMA, Rust; Python allows a last ``\n`` after it); so are ``\z`` and, as in Python, ``\Z``.
  Flag ``m``: ``^`` after each ``\n``, ``$`` before each ``\n``.
- ``\d \w \s`` follow `ascii_classes`, see `tokdfa.regex.char_sets`. Word boundaries need ``ascii_classes=True``.
- Flag ``i`` is simple case folding over all of Unicode, whatever `ascii_classes` says. It acts on literals, ranges and
  ``\p``, before a class is negated (Rust); ``\d \w \s`` and POSIX classes stay as they are.
- ``{m} {m,} {m,n} {,n}`` are quantifiers and ``{,n}`` counts from 0 (Python); any other ``{`` is literal (Annex B).
- A quantifier needs something to repeat: not a start, ``^ $ \b``, an inline flag or another quantifier (Python).
- In a class, ``]`` directly after the opening is literal (Python, Rust), and so is ``[`` (Python, ECMA) unless it opens
  a POSIX class, ``[[:alpha:]]`` (Rust).
- ``\0``, ``\0d``, ``\0dd`` and three octal digits are octal (Python); ``\1`` .. ``\99`` are back-references.
- A backslash makes any punctuation and any non-ASCII character literal; an unknown ASCII letter is an error (Python).
- ``\uD83D\uDE00`` is one code point (ECMA u mode); a lone surrogate is allowed and matches no UTF-8 text.
- ``(?i)`` holds from where it stands to the end of its group (Rust). Flags: ``i m s x``; ``u`` changes nothing.
- Flag ``x``: white space and ``# comments`` mean nothing outside classes (Python).

Atomic groups and possessive quantifiers are read where they change nothing, look-behind of any width where it stands
outside groups and beside no assertion that looks back; elsewhere they are refused by name.

Greedy and lazy quantifiers denote the same language. Well formed but refused by name (RegexUnsupported):
back-references, conditionals, recursion, ``\X \R \K \G \N{..}``, Rust's ``\b{start}`` kin, and the set operations
``&& -- ~~``.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tokdfa.core.budget import hold, spend
from tokdfa.errors import LimitExceeded, OptionError
from tokdfa.regex.atoms import Flags
from tokdfa.regex.dialects import DIALECTS
from tokdfa.regex.library_parser import LibraryParser
from tokdfa.regex.parser import Parser

if TYPE_CHECKING:
    from tokdfa.regex.syntax_tree import Node

MAX_PATTERN = 1_000_000
#: What it takes to read a character, and what it holds.
NS_PER_CHARACTER, BYTES_PER_CHARACTER = 1_500, 50


def parse(
    pattern: str,
    flags: str = "",
    ascii_classes: bool = False,
    dialect: str = "tokdfa",
    *,
    wide: bool = False,
    is_counted: bool = True,
) -> Node:
    r"""The syntax tree of `pattern`; what is accepted and what it means is in this module's docstring.

    `flags`: any of ``i s m x u``. `ascii_classes`: ``\d \w \s \b`` are ASCII. `dialect`: a key of
    `tokdfa.regex.dialects.DIALECTS`. `wide`: what either reading of a dialect with two has, not what both have.
    `is_counted`: whether the work counts towards the thread's budget; not so for who keeps the trees, since a budget
    must not depend on what was read before. Linear in the pattern's length.
    Raises RegexSyntaxError and RegexUnsupported with the position of the fault, LimitExceeded for a pattern longer than
    `MAX_PATTERN`, and for groups nested deeper or a count above what the dialect allows, OptionError for a flag.
    """
    for letter in flags:
        if letter not in "ismxu":
            raise OptionError(f"unknown regex flag {letter!r}; known: i, s, m, x, u")
    if len(pattern) > MAX_PATTERN:
        raise LimitExceeded(
            f"the pattern has {len(pattern)} characters; at most {MAX_PATTERN} are read",
            limit="pattern length",
            value=len(pattern),
        )
    if is_counted:
        spend(NS_PER_CHARACTER * len(pattern))
        hold(BYTES_PER_CHARACTER * len(pattern))
    read_as = DIALECTS[dialect]
    parser = LibraryParser if read_as.is_for_library else Parser
    return parser(pattern, read_as, _flags(flags, wide), ascii_classes).parse()


@cache
def _flags(letters: str, wide: bool) -> Flags:
    return Flags(wide=wide).switched(letters, True)
