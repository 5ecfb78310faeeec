"""What Lark says of a grammar that it refuses, as tokdfa's errors: with a place in the text and a remedy."""

from __future__ import annotations

import re

from tokdfa.errors import GrammarSyntaxError, TokdfaError, UnknownNameError, UnsupportedConstraint

_PLACE = re.compile(r"(.*?),? at line (\d+),? column (\d+)", re.DOTALL)
_DEFINITION = re.compile(r"^[ \t]*[?!]*([a-z_][a-z_0-9]*)[^\n:]*:", re.MULTILINE)


def refusal(message: str, text: str, start: str) -> TokdfaError:
    """The error for Lark's `message` about the grammar `text`."""
    if "collision" in message:
        return not_lalr(message)
    rules = _DEFINITION.findall(text)
    if message.startswith("Using an undefined rule") and start not in rules:
        return UnknownNameError("rule", start, rules)
    placed = _PLACE.match(message)
    if placed:
        return GrammarSyntaxError(f"Lark cannot read the grammar: {placed[1]}", text, int(placed[2]), int(placed[3]))
    places = [place for name in re.findall(r"\w+", message) if (place := place_of(name, text)) is not None]
    return GrammarSyntaxError(f"Lark refuses the grammar: {message}", text, *(places or [(1, 1)])[0])


def not_lalr(report: str, advice: str = "") -> UnsupportedConstraint:
    """The error for a grammar with conflicts; `report` is Lark's, `advice` what else helps."""
    return UnsupportedConstraint(
        f"the grammar is not LALR(1), says Lark:\n{report}\n"
        "rewrite these rules, or use the backend pushdown_trie or earley_trie, which take every context-free grammar"
        + advice
    )


def place_of(name: str, text: str) -> tuple[int, int] | None:
    """Line and column of the definition of `name`, or else of its first use; None if it does not occur."""
    escaped = re.escape(name)
    definition = rf"^[ \t]*[?!]*(?P<name>{escaped})(?:\.-?\d+)?[ \t]*(?:\{{[^\n]*\}})?:"
    found = re.search(definition, text, re.MULTILINE) or re.search(rf"\b(?P<name>{escaped})\b", text)
    if found is None:
        return None
    begin = found.start("name")
    return text.count("\n", 0, begin) + 1, begin - text.rfind("\n", 0, begin)
