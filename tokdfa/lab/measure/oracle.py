r"""Is a text in a constraint's language? An answer from code that no contender shares, or None.

A measuring run judges contenders on the way: it must not call a refusal wrong because two dialects of regular
expressions differ. So the oracle says None ("not known") wherever dialects or Unicode versions may differ:

- the pattern does not compile with the `regex` module, whose syntax is close to Python's;
- the text has characters outside printable ASCII, tab and line ends, and the pattern uses a class such as ``\w`` or
  ``\p{L}`` or ignores case: the tables differ by Unicode version, ``\s`` by dialect;
- the pattern uses the dot and the text has one of the line ends that only some dialects exclude from it;
- the pattern uses ``$`` and the text ends with a newline (Python's ``$`` matches before it too, ECMA's and Rust's not);
- a flag is switched on within the pattern, as in ``a(?i)b``, or a class contains ``[``, ``&&`` or ``~~``;
- matching takes more than `MATCH_SECONDS` (backtracking).

Grammars and JSON schemas have no oracle here.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from tokdfa.constraint import Choice, Constraint, Regex

MATCH_SECONDS = 0.5
_PLAIN = re.compile(r"[\t\n\r\x20-\x7e]*")
_OTHER_LINE_ENDS = re.compile("[\r\x0b\x0c\x85\u2028\u2029]")
_CLASS = re.compile(r"\\[wWsSdDbBpP]|\[:|\(\?[a-z]*i")
_DOUBTFUL = re.compile(r"\(\?[a-zA-Z-]+\)|\[\^?\[|&&|~~")


def in_language(constraint: Constraint, text: bytes) -> bool | None:
    """True or False if it is known whether `text` is in the language, None otherwise. At most about 0.5 s."""
    if isinstance(constraint, Choice):
        return text in constraint.as_bytes()
    if isinstance(constraint, Regex):
        return _matches(constraint, text)
    return None


def _matches(constraint: Regex, text: bytes) -> bool | None:
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        return False  # the language consists of UTF-8 texts
    sensitive = "i" in constraint.flags or _CLASS.search(constraint.pattern) is not None
    if sensitive and not _PLAIN.fullmatch(decoded):
        return None
    if _DOUBTFUL.search(constraint.pattern):
        return None
    if "." in constraint.pattern and _OTHER_LINE_ENDS.search(decoded):
        return None
    if "$" in constraint.pattern and decoded.endswith("\n"):
        return None
    compiled = _compiled(constraint)
    if compiled is None:
        return None
    match = compiled.search if constraint.search else compiled.fullmatch
    try:
        return match(decoded, timeout=MATCH_SECONDS) is not None
    except TimeoutError:
        return None


@lru_cache(maxsize=256)
def _compiled(constraint: Regex) -> Any:
    """The pattern for the `regex` module, or None if it does not compile there."""
    import regex

    flags = regex.VERSION0
    for letter, flag in (("i", regex.I), ("s", regex.S), ("m", regex.M), ("x", regex.X)):
        if letter in constraint.flags:
            flags |= flag
    if constraint.ascii_classes:
        flags |= regex.ASCII
    try:
        return regex.compile(constraint.pattern, flags)
    except (regex.error, RecursionError, ValueError):
        return None
