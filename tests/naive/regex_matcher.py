"""Match relations of syntax trees, straight from their definition: sets of end positions over a text of code points.

Uses the node classes only; shares nothing with the lowering to bytes or with the derivative engine.
"""

from __future__ import annotations

from tokdfa.regex.syntax_tree import Alternation, Assertion, CharSet, Concat, Empty, LookAhead, Node, Repeat

WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


def full_match(node: Node, text: str) -> bool:
    """Whether the whole of `text` matches."""
    return len(text) in Matcher(text).ends(node, 0)


def search(node: Node, text: str) -> bool:
    """Whether some part of `text` matches."""
    matcher = Matcher(text)
    return any(matcher.ends(node, start) for start in range(len(text) + 1))


class Matcher:
    """The match relations of nodes on one text, remembered."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._known: dict[tuple[int, int], frozenset[int]] = {}

    def ends(self, node: Node, start: int) -> frozenset[int]:
        """All positions at which a match of `node` that begins at `start` can end."""
        key = id(node), start
        if key not in self._known:
            self._known[key] = frozenset(self._find_ends(node, start))
        return self._known[key]

    def _find_ends(self, node: Node, start: int) -> set[int]:
        match node:
            case Empty():
                return {start}
            case CharSet(ranges=ranges):
                if start == len(self.text):
                    return set()
                point = ord(self.text[start])
                return {start + 1} if any(first <= point <= last for first, last in ranges) else set()
            case Concat(parts=parts):
                positions = {start}
                for part in parts:
                    positions = self._step(part, positions)
                return positions
            case Alternation(options=options):
                return {end for option in options for end in self.ends(option, start)}
            case Repeat(body=body, low=low, high=high):
                return self._find_repeat_ends(body, low, high, start)
            case Assertion(kind=kind):
                return {start} if self._holds(kind, start) else set()
            case LookAhead(body=body, negative=negative):
                return {start} if bool(self.ends(body, start)) != negative else set()
        raise AssertionError(node)

    def _step(self, node: Node, positions: set[int]) -> set[int]:
        return {end for position in positions for end in self.ends(node, position)}

    def _find_repeat_ends(self, body: Node, low: int, high: int | None, start: int) -> set[int]:
        current = {start}
        for _ in range(low):
            current = self._step(body, current)
        found, rounds = set(current), low
        while current and rounds != high:
            current = self._step(body, current) - found
            found |= current
            rounds += 1
        return found

    def _holds(self, kind: str, position: int) -> bool:
        before, after = self.text[:position][-1:], self.text[position:][:1]
        if kind.startswith("line"):
            return (before if kind == "line_start" else after) in ("", "\n")
        if kind.startswith("text"):
            return (before if kind == "text_start" else after) == ""
        at_boundary = (before in WORD) != (after in WORD)
        return at_boundary == (kind == "word_boundary")
