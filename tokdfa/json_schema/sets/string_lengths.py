"""Lengths that a pattern implies, and lengths that are demanded of it beside.

A pattern with a length counter is a product: an intersection whose automaton has a state for each pair, and whose
states must be proved to be live. Most often it can be spared. A pattern may imply the lengths (``^\\d{4}-\\d{2}$`` with
at most 10); or all that varies in it is one repeat of single code points, which then takes over the bounds
(``^[a-z][a-z0-9-]*$`` with at most 63 is ``^[a-z][a-z0-9-]{0,62}$``).

Where none of that is so, the lengths of matches mostly show that the product has texts: all lengths between two bounds
occur (`Lengths.each`), or the least of them is long enough. Then nothing has to be proved before a text gets there.

Lengths are counted in code points.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

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

if TYPE_CHECKING:
    from collections.abc import Iterable

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


class Lengths(NamedTuple):
    """The lengths of the matches of a node; assertions have no length.

    `least`, `most` (None: there is none): bounds, not always exact, as an assertion may exclude the extremes. `size`:
    how many sets of characters the node comes to, repeats written out; None where that is not plain to see. What has a
    size has no assertions and matches some text (no set of it is empty, or has lone surrogates only), so that its
    bounds are lengths of matches. `each`: so is every length between them.
    """

    least: int
    most: int | None
    size: int | None
    each: bool

    def meet(self, low: int, high: int | None) -> bool:
        """Whether it is plain to see that some match has a length from `low` to `high`."""
        if self.size is None or (high is not None and high < self.least):
            return False
        if self.most is None or self.most >= low:
            return self.least >= low or self.each or (self.most is not None and (high is None or self.most <= high))
        return False


#: Lengths by the identity of a node, and the node, so that its id stays its own.
KnownLengths: TypeAlias = dict[int, tuple[Lengths, Node]]


def lengths_of(node: Node, known: KnownLengths | None = None) -> Lengths:
    """The lengths of the matches of `node`. `known`: of nodes by identity, which are kept; those below are added."""
    known = {} if known is None else known
    nodes, pending = [], [node]
    while pending:
        current = pending.pop()
        if id(current) in known:
            continue
        nodes.append(current)
        if isinstance(current, Concat):
            pending += current.parts
        elif isinstance(current, Alternation):
            pending += current.options
        elif isinstance(current, Repeat):
            pending.append(current.body)
    for current in reversed(nodes):
        if id(current) not in known:
            known[id(current)] = _lengths(current, known), current
    return known[id(node)][0]


def _lengths(node: Node, known: KnownLengths) -> Lengths:
    """The same, those of its parts being known."""
    match node:
        case Empty():
            return Lengths(0, 0, 0, True)
        case CharSet(ranges=ranges):
            is_plain = any(first < 0xD800 or last > 0xDFFF for first, last in ranges)
            return Lengths(1, 1, 1 if is_plain else None, is_plain)
        case Concat(parts=parts):
            inside = [known[id(part)][0] for part in parts]
            size = _sum(part.size for part in inside)
            # what any number of characters can be added to has every length
            each = any(part.each and part.most is None for part in inside) or all(part.each for part in inside)
            most = _sum(part.most for part in inside)
            return Lengths(sum(part.least for part in inside), most, size, each and size is not None)
        case Alternation(options=options):
            inside = sorted((known[id(option)][0] for option in options), key=itemgetter(0))
            size = _sum(option.size for option in inside)
            end: int | None = inside[0].least - 1  # of the lengths that are known to occur
            for option in inside:
                if option.each and end is not None and option.least <= end + 1:
                    end = None if option.most is None else max(end, option.most)
            highs = [option.most for option in inside]
            most = None if None in highs else max(high for high in highs if high is not None)
            return Lengths(inside[0].least, most, size, end == most and size is not None)
        case Repeat(body=body, low=low, high=high):
            least, most, size, each = known[id(body)][0]
            rounds = max(low, 1)  # if these and one more leave no gap, all do
            each &= low > 0 or least <= 1
            each &= high == rounds or most is None or least * (rounds + 1) <= most * rounds + 1
            total = 0 if most == 0 else None if high is None or most is None else most * high
            size = None if size is None else size * max(1, low if high is None else high)
            return Lengths(least * low, total, size, each)
    return Lengths(0, 0, None, False)


def _sum(values: Iterable[int | None]) -> int | None:
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def narrow(body: Node, low: int, high: int | None, known: KnownLengths | None = None) -> Node | None:
    """The matches of `body`, which has no assertion, of lengths from `low` to `high`; NEVER if there are none.

    None if that takes a counter: unless one part of `body` at most varies in length, and it is a repeat of one set.
    """
    known = {} if known is None else known
    least, most, *_ = lengths_of(body, known)
    if low <= least and (high is None or (most is not None and most <= high)):
        return body
    if (high is not None and high < least) or (most is not None and most < low):
        return NEVER
    parts = body.parts if isinstance(body, Concat) else (body,)
    inside = [lengths_of(part, known) for part in parts]
    varying = [index for index, part in enumerate(inside) if part.least != part.most]
    if len(varying) != 1:
        return None
    part = parts[varying[0]]
    if not isinstance(part, Repeat) or not isinstance(part.body, CharSet):
        return None
    fixed = least - part.low
    highs = [limit for limit in (part.high, None if high is None else high - fixed) if limit is not None]
    narrowed = repeat(part.body, max(part.low, low - fixed), min(highs, default=None))
    return concat([*parts[: varying[0]], narrowed, *parts[varying[0] + 1 :]])
