"""Lengths that a pattern implies, and lengths that are demanded of it beside.

A pattern with a length counter is a product: an intersection whose automaton has a state for each pair, and whose
states must be proved to be live. Most often it can be spared. A pattern may imply the lengths (``^\\d{4}-\\d{2}$`` with
at most 10); or all that varies in it is one repeat of single code points, which then takes over the bounds
(``^[a-z][a-z0-9-]*$`` with at most 63 is ``^[a-z][a-z0-9-]{0,62}$``).

Lengths are counted in code points.
"""

from __future__ import annotations

from tokdfa.regex.syntax_tree import (
    NEVER,
    Alternation,
    Assertion,
    CharSet,
    Concat,
    Empty,
    Node,
    Repeat,
    alternation,
    concat,
    repeat,
)

_START, _END = Assertion("text_start"), Assertion("text_end")


def anchored_body(node: Node) -> Node | None:
    """What stands between ``^`` and ``$`` if each option has both at its ends and no other assertion; else None."""
    options = node.options if isinstance(node, Alternation) else (node,)
    bodies = []
    for option in options:
        parts = option.parts if isinstance(option, Concat) else (option,)
        if len(parts) < 2 or parts[0] != _START or parts[-1] != _END or any(part.assertions for part in parts[1:-1]):
            return None
        bodies.append(concat(parts[1:-1]))
    return alternation(bodies)


def without_ends(node: Node) -> list[tuple[Node, bool]]:
    """The options of a pattern without ``^`` before and ``$`` behind them, each with whether it had both."""
    found = []
    for option in node.options if isinstance(node, Alternation) else (node,):
        parts = option.parts if isinstance(option, Concat) else (option,)
        begins, ends = parts[0] == _START, parts[-1] == _END
        found.append((concat(parts[begins : len(parts) - ends]), begins and ends))
    return found


def length_range(node: Node) -> tuple[int, int | None]:
    """The least and the greatest (None: there is none) length of a match of `node`; assertions have no length.

    Bounds, not always exact: an assertion may exclude the extremes.
    """
    match node:
        case CharSet():
            return 1, 1
        case Concat(parts=parts):
            ranges = [length_range(part) for part in parts]
            return sum(low for low, _ in ranges), _sum(high for _, high in ranges)
        case Alternation(options=options):
            ranges = [length_range(option) for option in options]
            highs = [high for _, high in ranges]
            return min(low for low, _ in ranges), None if None in highs else max(
                high for high in highs if high is not None
            )
        case Repeat(body=body, low=low, high=high):
            least, most = length_range(body)
            return least * low, 0 if most == 0 else None if high is None or most is None else most * high
    return 0, 0


def plain_size(node: Node) -> int | None:
    """How many sets of characters a node comes to, repeats written out; None where that is not plain to see.

    What has a size has no assertions, and matches some text: no set of it is empty, or has lone surrogates only.
    """
    match node:
        case Empty():
            return 0
        case CharSet(ranges=ranges):
            return 1 if any(first < 0xD800 or last > 0xDFFF for first, last in ranges) else None
        case Concat(parts=parts) | Alternation(options=parts):
            sizes = [size for part in parts if (size := plain_size(part)) is not None]
            return sum(sizes) if parts and len(sizes) == len(parts) else None
        case Repeat(body=body, low=low, high=high):
            size = plain_size(body)
            return None if size is None else size * max(1, low if high is None else high)
    return None


def _sum(highs) -> int | None:  # type: ignore[no-untyped-def]
    total = 0
    for high in highs:
        if high is None:
            return None
        total += high
    return total


def narrow(body: Node, low: int, high: int | None) -> Node | None:
    """The matches of `body`, which has no assertion, of lengths from `low` to `high`; NEVER if there are none.

    None if that takes a counter: unless one part of `body` at most varies in length, and it is a repeat of one set.
    """
    least, most = length_range(body)
    if low <= least and (high is None or (most is not None and most <= high)):
        return body
    if (high is not None and high < least) or (most is not None and most < low):
        return NEVER
    parts = body.parts if isinstance(body, Concat) else (body,)
    varying = [index for index, part in enumerate(parts) if _varies(part)]
    if len(varying) != 1:
        return None
    part = parts[varying[0]]
    if not isinstance(part, Repeat) or not isinstance(part.body, CharSet):
        return None
    fixed = least - part.low
    highs = [limit for limit in (part.high, None if high is None else high - fixed) if limit is not None]
    narrowed = repeat(part.body, max(part.low, low - fixed), min(highs, default=None))
    return concat([*parts[: varying[0]], narrowed, *parts[varying[0] + 1 :]])


def _varies(node: Node) -> bool:
    low, high = length_range(node)
    return low != high
