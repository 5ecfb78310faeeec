"""Grammars that grow by terminals, from a template in an experiment file, each with a text.

``<alternatives>`` in a template stands for n terminals with bars between, one of 64 characters and lower-case letters
each (``/A[a-z]*/``, ``/B[a-z]*/``, ...): a token such as "StringBuilder" runs through two of them, and any may follow.
``<sequence>`` stands for n terminals in a row, a lower-case letter each: a token of k letters runs through k of them.
"""

from __future__ import annotations

import re
import string

ALTERNATIVES, SEQUENCE = "<alternatives>", "<sequence>"
#: What the terminals of `ALTERNATIVES` begin with. A slash or a backslash would have to be written in other ways.
_BEGINNINGS = string.ascii_uppercase + string.digits + re.sub(r"[/\\]", "", string.punctuation)
#: The most terminals of a grammar.
MOST = 64


def is_template(grammar: str) -> bool:
    """Whether a grammar has a place for terminals."""
    return ALTERNATIVES in grammar or SEQUENCE in grammar


def fill_template(template: str, count: int) -> tuple[str, str]:
    """The grammar with `count` terminals (2 to `MOST`), in Lark's notation, and a text of it with every terminal.

    The text is that of the terminals in order, so the template should be a repetition of what it stands for at most.
    """
    names = [f"T{number}" for number in range(count)]
    if ALTERNATIVES in template:
        filled = template.replace(ALTERNATIVES, " | ".join(names))
        patterns = [f"{re.escape(first)}[a-z]*" for first in _BEGINNINGS[:count]]
        text = "".join(f"{first}ab" for first in _BEGINNINGS[:count])
    else:
        filled = template.replace(SEQUENCE, " ".join(names))
        patterns = ["[a-z]"] * count
        text = (string.ascii_lowercase * 3)[:count]
    lines = [f"{name}: /{pattern}/" for name, pattern in zip(names, patterns, strict=True)]
    return "\n".join([filled.rstrip("\n"), *lines, ""]), text
