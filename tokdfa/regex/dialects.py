r"""The dialects of regexes, as data for one parser (`tokdfa.regex.parse`).

A `Dialect` says which constructs there are, which are refused and under what name, and what its classes contain. Where
the dialects that are *read into sets* differ:

==================  ================================  ===================================  =========================
construct           tokdfa, lark                      ecma                                 source
==================  ================================  ===================================  =========================
``.``               all but ``\n``                    all but ``\n \r``, U+2028, U+2029    Python, Rust; ECMA-262
``$``               the very end; lines with flag m   the very end                         Rust; ECMA-262
``\d \w \s``        Unicode, or ASCII on demand       ASCII; ``\s`` has Zs, U+2028/9, too  UTS #18; ECMA-262
``\b \B``           with ASCII classes only           where ECMA-262, Python, Rust agree   Python; ECMA-262
``[]a] [^]a]``      ``]`` is a member                 refused; ``[]``, ``[^]``: ECMA's     Python, Rust; ECMA-262
``[\w-.]``          an error                          the hyphen is a member               ECMA-262, Annex B
``[[:alpha:]]``     a POSIX class                     as written                           Rust
``&& -- ~~`` in []  set operations: refused           as written                           Rust
``{,n}``            from 0 to n                       refused                              Python; text to Annex B
``\A \z \Z``        the ends of the text              the same                             Python, Rust
``\< \>``           the character                     refused outside of classes           Python; edges to Rust
``\101``, ``\a``    octal, the bell                   refused                              Python
``\x{41} \U..``     code points                       unknown                              Rust, Python
``(?i) (?i:..)``    flags i, s, m, x, from there on   first of all, i, s, m, x; ``(?i:``   Rust; Python, ECMA-262
without case        simple folding, Unicode           where all agree; widely, where any   Rust, ECMA-262; Python
``x*?``             as ``x*``; lark: refused          as ``x*``
``x*+ (?>x)``       where they change nothing         unknown                              Python, Rust's kin
``(?<=x) (?<!x)``   outside groups; lark: refused     refused                              Python
==================  ================================  ===================================  =========================

*lark* is what stands between slashes in a grammar. A lazy quantifier there changes what a terminal finds: only *lark
with lazy* reads it. Word boundaries are Python's.

*ecma* is read twice, since JSON schemas are judged by ECMA-262, by Python's `re`, and by Rust: as *all readings* have
it, or *widely*, as any has it. So a class has two sets, and in what leaves out or must not be found (``[^\s]``, ``\S``,
``(?!\s)``) the one stands for the other. Surrogates are in none of its sets. Rust's reading is that of its JSON Schema
validator, the crate jsonschema: it gives the crate `regex` ECMA's classes, unless there is look-around, which that does
not have; then classes are Rust's own (*ecma with look-around*). Word boundaries are always Rust's own.

*tiktoken* (Rust's fancy-regex) and *oniguruma* (the package tokenizers) run the patterns of pre-tokenizers. There it
matters which match is preferred, so quantifiers may be lazy or possessive and groups atomic, and options are ordered.
What a set contains is a question to the library itself, so that no table of Unicode stands between us and it. Refused
are look-behind and anchors to the left (``^ \A \b \G \K``), back-references, flags other than i, quantified
look-around, a quantifier after a quantifier, a repeat of what can be empty, a pattern that can match the empty string,
and escapes whose meaning is not a set. Where the two differ:

- ``x{n,m}+`` is possessive in tiktoken and a repeat of a repeat in Oniguruma; ``x{n}?`` is lazy in tiktoken and an
  optional repeat in Oniguruma. Both are refused in Oniguruma.
- ``$`` is the end of the text in tiktoken; in Oniguruma it also holds before each line feed.
- Without regard to case, Oniguruma takes one character for several (the German sharp s for ``ss``). Where this could
  happen the pattern is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tokdfa.core.locks import cached_property
from tokdfa.regex.char_sets import (
    NEWLINE,
    Ranges,
    digits,
    python_word_characters,
    spaces,
    union,
    word_characters,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_NESTING = 200
MAX_COUNT = 1_000_000_000


@dataclass(frozen=True, eq=False, kw_only=True)
class Dialect:
    """What the parser asks of a dialect. What is refused is named, with a remedy behind ``"; "`` if there is one."""

    name: str
    #: What a refusal says of what is refused, before the remedy.
    refusal: str = " is not supported"
    #: What opens a group -> what it is: "group", "named group", "=" and "!" (look-ahead), "<=" and "<!" (look-behind),
    #: ">" (atomic), "comment", "flags" (letters follow, or stand in it).
    groups: Mapping[str, str]
    refused_groups: Mapping[str, str]
    group_name: re.Pattern[str] = re.compile(r"\(\?P?<([^\W\d]\w*)>")
    #: Flags that may be switched inside a pattern, and those that may stand at its beginning only, where ``(?i)`` may
    #: not stand anywhere; letter -> the remedy for one that is refused, behind ``"; "``.
    flags: str = ""
    leading_flags: str = ""
    refused_flags: Mapping[str, str] = field(default_factory=dict)
    #: ``{`` that begins a quantifier: its numbers and the comma; and what another ``{`` is refused as, if it is.
    counts: re.Pattern[str]
    refused_braces: tuple[re.Pattern[str], str] | None = None
    #: Why a possessive quantifier or an atomic group is refused where it may change the language; "" if it is kept.
    refused_atomic: str = ""
    #: A lazy quantifier: what it is refused as; "" if it is read.
    refused_lazy: str = ""
    #: Whether trees say which quantifiers are lazy.
    keeps_lazy: bool = False
    max_nesting: int = MAX_NESTING
    max_count: int = MAX_COUNT
    #: Escape letters: assertions, single characters, what is refused; and how code points are written.
    assertions: Mapping[str, str]
    controls: Mapping[str, int]
    refused_escapes: Mapping[str, str]
    #: The same of what is refused outside of classes only.
    refused_assertions: Mapping[str, str] = field(default_factory=dict)
    octal: re.Pattern[str] = re.compile(r"\\(0[0-7]{0,2})")
    hexadecimal: Mapping[str, re.Pattern[str]]
    #: ``\p{..}``: whether negated, the name, the name if it is one letter without braces.
    property: re.Pattern[str]
    #: What a Unicode word boundary is refused as; "" if it is not. And whether boundaries are Python's, not ASCII.
    unicode_boundary: str = ""
    python_boundary: bool = False
    #: In brackets: whether ``]`` may close an empty class, a hyphen beside a class is a member, and POSIX classes and
    #: set operations are known.
    empty_class: bool = False
    hyphen_beside_class: bool = False
    posix_and_operations: bool = False
    #: (letter of a class, ASCII only) -> what it has in each reading; and what ``.`` leaves out in any, and in all.
    classes: Callable[[str, bool], tuple[Ranges, ...]]
    line_ends: tuple[Ranges, Ranges] = (NEWLINE, NEWLINE)
    #: Whether there are several readings, and a pattern has what all of them have, or what any has; surrogates are
    #: then in no set.
    two_readings: bool = False
    #: Whether a library searches with the pattern, and knows what sets contain.
    is_for_library: bool = False

    @cached_property
    def _openings(self) -> re.Pattern[str]:
        longest_first = sorted({**self.groups, **self.refused_groups}, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first)))

    def opening_at(self, pattern: str, position: int) -> str:
        """The longest text at `position`, a bracket, that opens a group or is refused."""
        match = self._openings.match(pattern, position)
        assert match is not None
        return match[0]


def _one_reading(letter: str, ascii_only: bool) -> tuple[Ranges, ...]:
    return ({"d": digits, "w": word_characters, "s": spaces}[letter](ascii_only),)


_GROUPS = {"(": "group", "(?:": "group", "(?P<": "named group", "(?<": "named group", "(?=": "=", "(?!": "!"}
_BACK_REFERENCES = dict.fromkeys("123456789k", "a back-reference")
_CONTROLS = {"n": 0x0A, "r": 0x0D, "t": 0x09, "f": 0x0C, "v": 0x0B}
_BOUNDARIES = {"b": "word_boundary", "B": "not_word_boundary"}

TOKDFA = Dialect(
    name="tokdfa",
    groups={**_GROUPS, "(?#": "comment", "(?": "flags", "(?>": ">", "(?<=": "<=", "(?<!": "<!"},
    refused_groups={
        "(?(": "a conditional group",
        "(?P=": "a back-reference",
        "(?|": "a branch reset group",
        **dict.fromkeys(("(?P>", "(?&", "(?R", *(f"(?{digit}" for digit in "0123456789")), "recursion"),
    },
    flags="ismxu",
    refused_flags={"a": r"; pass ascii_classes=True for ASCII \d \w \s"},
    counts=re.compile(r"\{(?!\})([0-9]*)(,?)([0-9]*)\}"),
    refused_atomic="it changes the language here; it may be read where it changes nothing: around what has one width, "
    "or a repeat of one character that what follows cannot begin with",
    assertions={"A": "text_start", "z": "text_end", "Z": "text_end", **_BOUNDARIES},
    controls={**_CONTROLS, "a": 0x07},
    refused_escapes={
        "X": r"the grapheme cluster \X",
        "R": r"the line break \R",
        "K": r"the match reset \K",
        "G": r"the search anchor \G",
        "N": r"the named character \N",
        **_BACK_REFERENCES,
    },
    octal=re.compile(r"\\(0[0-7]{0,2}|[1-7][0-7]{2})"),
    hexadecimal={
        letter: re.compile(rf"\\{letter}(?:\{{([0-9A-Fa-f]{{1,8}})\}}|([0-9A-Fa-f]{{{length}}}))")
        for letter, length in (("x", 2), ("u", 4), ("U", 8))
    },
    property=re.compile(r"\\[pP](?:\{(\^?)([^{}]*)\}|([A-Za-z]))"),
    unicode_boundary=r"the Unicode word boundary; use ascii_classes=True (ASCII \w and \b)",
    posix_and_operations=True,
    classes=_one_reading,
)

LARK = replace(
    TOKDFA,
    name="lark",
    groups={opening: kind for opening, kind in TOKDFA.groups.items() if kind not in ("<=", "<!")},
    refused_groups={**TOKDFA.refused_groups, "(?<=": "look-behind", "(?<!": "look-behind"},
    refused_lazy="a lazy quantifier; it says where a search stops, not what matches; exclude what ends the text, as in "
    '/"[^"]*"/, or make it a rule name[lazy]: /.../',
    unicode_boundary="",
    python_boundary=True,
)
LARK_WITH_LAZY = replace(LARK, name="lark with lazy", refused_lazy="", keeps_lazy=True)

#: Zs, and the control characters and line ends (ECMA-262, WhiteSpace and LineTerminator), without U+FEFF.
ECMA_SPACES: Ranges = (
    (0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F),
    (0x205F, 0x205F), (0x3000, 0x3000),
)  # fmt: skip


def _to_ecma_and_python(letter: str, _ascii_only: bool) -> tuple[Ranges, ...]:
    """A class of ECMA-262, and of Python."""
    if letter == "d":
        return digits(ascii_only=True), digits(ascii_only=False)
    if letter == "w":
        return word_characters(ascii_only=True), python_word_characters()
    return union(ECMA_SPACES, ((0xFEFF, 0xFEFF),)), union(spaces(ascii_only=False), ((0x1C, 0x1F),))


def _to_rust_too(letter: str, ascii_only: bool) -> tuple[Ranges, ...]:
    """The same, and of Rust."""
    return *_to_ecma_and_python(letter, ascii_only), *_one_reading(letter, ascii_only=False)


_NOT_REGULAR = "a back-reference; what it matches is no regular language"
ECMA = Dialect(
    name="ecma",
    refusal="",
    groups={**_GROUPS, "(?": "flags"},
    refused_groups={
        **dict.fromkeys(("(?<=", "(?<!"), "a look-behind; say what the text before must be"),
        **dict.fromkeys(("(?P=", "(?("), _NOT_REGULAR),
    },
    group_name=re.compile(r"\(\?P?<[^\W\d][\w$]*>"),
    flags="is",
    leading_flags="ismxu",
    refused_flags={
        "m": "; lines end otherwise to ECMA-262 and Python; it may stand at the beginning, (?m), which is Python's",
        "a": "; classes are ASCII where ECMA-262 and Python differ; leave it out",
    },
    counts=re.compile(r"\{([0-9]+)(,?)([0-9]*)\}"),
    refused_braces=(
        re.compile(r"\{,[0-9]*\}"),
        "{,n}; it is text to ECMA-262 and a count to Python; write {0,n} or \\{",
    ),
    assertions={"A": "text_start", "z": "text_end", "Z": "text_end", **_BOUNDARIES},
    controls=_CONTROLS,
    refused_escapes={
        **dict.fromkeys(_BACK_REFERENCES, _NOT_REGULAR),
        "a": r"\a; it is a letter to ECMA-262 and the bell to Python",
    },
    refused_assertions={
        edge: rf"\{edge}; it is the character to ECMA-262 and Python, and the edge of a word to Rust; write {edge}"
        for edge in "<>"
    },
    hexadecimal={
        "x": re.compile(r"\\x([0-9A-Fa-f]{2})"),
        "u": re.compile(r"\\u(?:\{0*([0-9A-Fa-f]{1,8})\}|([0-9A-Fa-f]{4}))"),
    },
    property=re.compile(r"\\[pP]\{()([^{}^]*)\}()"),
    empty_class=True,
    hyphen_beside_class=True,
    classes=_to_ecma_and_python,
    line_ends=(((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)), NEWLINE),
    two_readings=True,
)

ECMA_WITH_LOOK_AROUND = replace(ECMA, name="ecma with look-around", classes=_to_rust_too)

TIKTOKEN = Dialect(
    name="tiktoken",
    refusal=" is outside what the pre-tokenizer's construction covers",
    groups={
        "(": "group",
        "(?:": "group",
        "(?>": ">",
        "(?=": "=",
        "(?!": "!",
        **dict.fromkeys(("(?i:", "(?-i:", "(?i)"), "flags"),
    },
    refused_groups={
        "(?<=": "look-behind",
        "(?<!": "look-behind",
        "(?<": "a named group",
        "(?P<": "a named group",
        "(?P=": "a back-reference",
        "(?P>": "recursion",
        "(?(": "a conditional group",
        "(?#": "a comment",
        "(?~": "an absent group",
        "(?": "this kind of group",
        "(*": "a backtracking verb",
    },
    flags="i",
    leading_flags="i",
    counts=re.compile(r"\{(?!,?\})([0-9]*)(,?)([0-9]*)\}"),
    refused_braces=(re.compile(r"\{"), "a brace that counts nothing; write \\{"),
    max_nesting=50,
    max_count=1000,
    assertions={"z": "text_end"},
    controls={},
    refused_escapes={
        "A": "an anchor to the start",
        "b": "a word boundary",
        "B": "a word boundary",
        "G": "an anchor to the last match",
        "K": "a reset of the match's start",
        "R": "a line break of any kind",
        "X": "a grapheme cluster",
        "Z": "an anchor before the last line break",
        "y": "a grapheme boundary",
        "Y": "a grapheme boundary",
        "g": "a subexpression call",
        **_BACK_REFERENCES,
        **dict.fromkeys("<>`'", "an escape that is an anchor in some engines"),
    },
    hexadecimal={},
    property=re.compile(r"\\[pP]\{\^?[A-Za-z0-9_ =:-]+\}"),
    classes=_one_reading,
    is_for_library=True,
)

ONIGURUMA = replace(TIKTOKEN, name="oniguruma")

DIALECTS = {
    dialect.name: dialect
    for dialect in (TOKDFA, LARK, LARK_WITH_LAZY, ECMA, ECMA_WITH_LOOK_AROUND, TIKTOKEN, ONIGURUMA)
}
#: Those of the libraries that search with a pattern.
LIBRARY_DIALECTS = tuple(name for name, dialect in DIALECTS.items() if dialect.is_for_library)
