"""Patterns that say no more than a list of texts does: ``^name$``, ``^(?:a|b)$``, ``^v[12]$``.

Schemas use them as names of members and as enumerations. As values they need no automaton: they are compared one by
one, and read by a trie of names. What is forbidden is listed, too, and there a text counts that either reading of the
pattern finds (`tokdfa.json_schema.sets.patterns`): to one of them ``$`` also matches before an end of line.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tokdfa.json_schema.sets.patterns import parse_pattern
from tokdfa.json_schema.sets.string_lengths import anchored_body
from tokdfa.regex.syntax_tree import Alternation, CharSet, Concat, Empty, Repeat

if TYPE_CHECKING:
    from tokdfa.regex.syntax_tree import Node

#: Texts of one pattern at most, and repeats of one part.
MOST_TEXTS, MOST_REPEATS = 64, 8


@lru_cache(maxsize=4096)
def listed_texts(pattern: str) -> tuple[frozenset[str], frozenset[str]] | None:
    """(texts in which both readings find a pattern, texts in which either does); None unless they are few.

    Raises what `parse_pattern` raises.
    """
    if not (pattern.startswith("^") and pattern.endswith("$")):
        return None
    body = anchored_body(parse_pattern(pattern))
    found = None if body is None else _texts(body)
    if found is None:
        return None
    inner = parse_pattern(pattern[1:-1], wide=True)
    may_be = None if inner.assertions else _texts(inner)
    if may_be is None:
        return None
    return frozenset(found), frozenset([*may_be, *(text + "\n" for text in may_be)])


def _texts(node: Node) -> set[str] | None:
    """All texts that match a node without assertions; None if they are many."""
    match node:
        case Empty():
            return {""}
        case CharSet(ranges=ranges):
            if sum(last - first + 1 for first, last in ranges) > MOST_TEXTS:
                return None
            points = {point for first, last in ranges for point in range(first, last + 1)}
            return None if any(0xD800 <= point < 0xE000 for point in points) else set(map(chr, points))
        case Concat(parts=parts):
            return _joined(parts)
        case Alternation(options=options):
            found: set[str] = set()
            for option in options:
                texts = _texts(option)
                if texts is None or len(found) + len(texts) > MOST_TEXTS:
                    return None
                found |= texts
            return found
        case Repeat(body=body, low=low, high=high):
            if high is None or high > MOST_REPEATS:
                return None
            found = set()
            for times in range(low, high + 1):
                texts = _joined((body,) * times)
                if texts is None or len(found) + len(texts) > MOST_TEXTS:
                    return None
                found |= texts
            return found
    return None


def _joined(parts: tuple[Node, ...]) -> set[str] | None:
    """All texts of some nodes one after another; None if they are many."""
    found = {""}
    for part in parts:
        texts = _texts(part)
        if texts is None or len(found) * len(texts) > MOST_TEXTS:
            return None
        found = {text + more for text in found for more in texts}
    return found
