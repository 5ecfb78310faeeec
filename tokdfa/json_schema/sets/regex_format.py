r"""The format ``regex``: a regular language of valid regexes.

Valid regexes are no regular language (brackets nest), and a text that is none must never be accepted. So the format is
a language of regexes that ECMA-262 (flag u) and Python both read, with groups up to `DEPTH` deep:

- characters but ``\ ^ $ . * + ? ( ) [ ] { } | /`` stand for themselves, and so does ``/``;
- escapes: ``\d \D \w \W \s \S \n \r \t \f \v``, ``\xHH``, ``\uHHHH`` but for surrogates, and ``\`` before syntax;
- classes with ranges within digits, small or capital letters;
- quantifiers behind what can be repeated: ``* + ?``, ``{m} {m,}`` up to three digits, ``{m,n}`` where m <= n is plain
  to see: m has fewer digits than n, or both have one;
- ``(..) (?:..)``, ``(?=..) (?!..)`` without groups inside, alternatives, ``^ $ \b \B``.
"""

from __future__ import annotations

from string import ascii_lowercase, ascii_uppercase, digits

#: Levels of groups.
DEPTH = 4

_SYNTAX = r"\^$.*+?()[\]{}|/"
_ESCAPE = (
    r"\\(?:[dDwWsSnrtfv" + _SYNTAX + r"]|x[0-9A-Fa-f]{2}|u(?:[0-9A-Ca-cE-Fe-f][0-9A-Fa-f]|[Dd][0-7])[0-9A-Fa-f]{2})"
)
_PLAIN = r"[^\\^$.*+?()[\]{}|]"
_RANGE = "|".join(
    rf"{first}(?:-[{first}-{letters[-1]}])?"
    for letters in (digits, ascii_lowercase, ascii_uppercase)
    for first in letters
)
#: In a class ``& ~ | [`` are left to escapes or left out: doubled, some engines read operators.
_CLASS_CHARACTER = r"[^\\\[\]^&~|A-Za-z0-9-]"
_CLASS_ESCAPE = _ESCAPE.replace("[dDwWsS", r"[\-dDwWsS")
_CLASS = rf"\[\^?-?(?:{_RANGE}|{_CLASS_CHARACTER}|{_CLASS_ESCAPE})+-?\]"
_ORDERED = "|".join(rf"{low},[{low}-9]" for low in range(10))
_COUNT = rf"\{{(?:(?:0|[1-9]\d{{0,2}}),?|{_ORDERED}|\d,[1-9]\d{{1,2}}|[1-9]\d,[1-9]\d{{2}})\}}"
_QUANTIFIER = rf"(?:[*+?]|{_COUNT})\??"


def _nest(depth: int) -> str:
    """Regexes with groups up to `depth` deep."""
    item = rf"{_PLAIN}|\.|{_ESCAPE}|{_CLASS}"
    zero_width = r"[\^$]|\\[bB]"
    if depth:
        item += rf"|\((?:\?:)?{_nest(depth - 1)}\)"
        zero_width += rf"|\(\?[=!]{_nest(0)}\)"
    return rf"(?:(?:{item})(?:{_QUANTIFIER})?|{zero_width}|\|)*"


VALID_REGEX = _nest(DEPTH)
