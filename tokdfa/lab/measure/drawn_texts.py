r"""Random texts of a regex, drawn from its syntax tree.

A walk over the automaton that takes every byte with equal chance hardly ever enters a literal: of the first letters of
``(https?://)?[0-9a-z.-]+`` it takes an ``h`` once in 38. Texts drawn from the tree contain what the author of the
pattern wrote down:

- of the options of an alternation each has the same chance;
- a repeat with bounds takes each count from its lower bound to its upper one (at most `WIDEST` above the lower) with
  the same chance; one without an upper bound goes on after its lower bound with chance 3/4 each time;
- of a class each printable ASCII character in it has the same chance; a class without any takes each of its other
  characters but surrogates.

So texts are valid Unicode, and letters are not those of a language: `xqz` is as likely as `the`. The distribution
depends on how the pattern is written and not only on its language. Sets, not relations, are drawn from: a pattern with
assertions or look-aheads is refused, except for ``^`` at the very start and ``$`` at the very end.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tokdfa.errors import UnsupportedConstraint
from tokdfa.regex.char_sets import difference, intersection
from tokdfa.regex.parse import parse
from tokdfa.regex.syntax_tree import NEVER, Alternation, Assertion, CharSet, Concat, Node, Repeat, concat

if TYPE_CHECKING:
    from tokdfa.constraint import Regex
    from tokdfa.regex.char_sets import Ranges

#: The most by which a bounded repeat exceeds its lower bound.
WIDEST = 16
#: The chance of one more turn of a repeat without an upper bound.
GO_ON = 0.75
#: The most nodes that one draw visits for each byte it may have: nested repeats of nearly nothing have many.
VISITS_A_BYTE = 100
#: So many draws for each text asked for: an empty or too long one is drawn anew.
DRAWS_A_TEXT = 50

_PRINTABLE: Ranges = ((0x20, 0x7E),)
_SURROGATES: Ranges = ((0xD800, 0xDFFF),)


def draw_texts(constraint: Regex, count: int, max_bytes: int, seed: int) -> list[str]:
    """At most `count` texts of 1 to `max_bytes` bytes of UTF-8, drawn with replacement; the same for the same seed.

    A search is drawn from as if it were a whole match. There are fewer than `count` if `DRAWS_A_TEXT` times as many
    draws do not give enough. At most `VISITS_A_BYTE` steps a byte and draw. Raises UnsupportedConstraint for assertions
    inside the pattern.
    """
    tree = parse(constraint.pattern, constraint.flags, constraint.ascii_classes)
    parts = list(tree.parts) if isinstance(tree, Concat) else [tree]
    if parts and parts[0] == Assertion("text_start"):
        del parts[0]
    if parts and parts[-1] == Assertion("text_end"):
        del parts[-1]
    tree = concat(parts)
    if tree.assertions:
        raise UnsupportedConstraint(
            f"texts are drawn from patterns without assertions; {constraint.name!r} has "
            f"{', '.join(sorted(tree.assertions))}"
        )
    choose = random.Random(seed)
    classes: dict[Ranges, Ranges] = {}
    texts: list[str] = []
    for _ in range(DRAWS_A_TEXT * count):
        if len(texts) == count or tree == NEVER:
            break
        text = _draw(tree, choose, classes, max_bytes)
        if text and len(text.encode()) <= max_bytes:
            texts.append(text)
    return texts


def _draw(tree: Node, choose: random.Random, classes: dict[Ranges, Ranges], max_length: int) -> str | None:
    """One text; None if it gets too long, or takes too many steps. `classes`: class -> what is taken of it."""
    characters: list[str] = []
    pending = [tree]
    for _ in range(VISITS_A_BYTE * max_length):
        if not pending:
            return "".join(characters)
        node = pending.pop()
        match node:
            case CharSet(ranges=ranges):
                if ranges not in classes:
                    plain = intersection(ranges, _PRINTABLE)
                    classes[ranges] = plain or difference(ranges, _SURROGATES)
                if len(characters) == max_length or not classes[ranges]:
                    return None
                characters.append(_choose_character(classes[ranges], choose))
            case Concat(parts=parts):
                pending.extend(reversed(parts))
            case Alternation(options=options):
                pending.append(choose.choice(options))
            case Repeat(body=body, low=low, high=high):
                count = low
                if high is not None:
                    count = choose.randint(low, min(high, low + WIDEST))
                else:
                    while count <= max_length and choose.random() < GO_ON:
                        count += 1
                if count > max_length and not body.nullable:
                    return None
                pending.extend([body] * min(count, max_length))
    return None


def _choose_character(ranges: Ranges, choose: random.Random) -> str:
    place = choose.randrange(sum(last - first + 1 for first, last in ranges))
    for first, last in ranges:
        if place <= last - first:
            return chr(first + place)
        place -= last - first + 1
    raise AssertionError("the place lies in one of the ranges")
