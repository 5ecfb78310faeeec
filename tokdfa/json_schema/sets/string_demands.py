"""What is demanded of the texts of a set of strings, as syntax trees; and what of it is plain to see.

Most sets have texts, and their own lengths show it: then nothing has to be searched.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from tokdfa.core.budget import spend
from tokdfa.json_schema.sets.formats import find_format, outside_of
from tokdfa.json_schema.sets.patterns import finds_everywhere, parse_pattern
from tokdfa.json_schema.sets.string_lengths import KnownLengths, anchored_body, lengths_of, narrow, without_ends
from tokdfa.regex.char_sets import NEWLINE, SURROGATES, complement, union
from tokdfa.regex.syntax_tree import CharSet, Node, repeat, walk

#: Work (`tokdfa.core.budget`) of reading a demand.
NS_PER_DEMAND = 15_000


@dataclass
class Demands:
    """What is demanded of a text: trees that it matches as a whole, trees found in it, trees not found; its length."""

    whole: list[Node] = field(default_factory=list)
    found: list[Node] = field(default_factory=list)
    absent: list[Node] = field(default_factory=list)
    #: What is absent, of which `absent` may have a wider reading, of as many characters and a newline at the end.
    given: list[Node] = field(default_factory=list)
    low: int = 0
    high: int | None = None
    impossible: bool = False
    _lengths: KnownLengths = field(default_factory=dict)

    def add(self, pattern: str, known: KnownLengths | None = None) -> None:
        """Demand that a pattern is found. `known`: lengths of its parts, if they are."""
        self._lengths.update(known or {})
        node = parse_pattern(pattern)
        body = anchored_body(node)
        if body is not None:
            self.whole.append(body)
        elif not finds_everywhere(node):
            self.found.append(node)

    def forbid(self, pattern: str, wide: bool) -> None:
        node = parse_pattern(pattern, wide)
        if isinstance(node, CharSet):  # all characters are others; no complement has to be built
            self.whole.append(repeat(CharSet(complement(union(node.ranges, SURROGATES))), 0, None))
            return
        self.absent.append(node)
        self.given.append(parse_pattern(pattern))
        self.impossible |= finds_everywhere(node)

    def drop_implied_lengths(self) -> None:
        """Drop the lengths that are implied."""
        if not self.low and self.high is None:
            return
        known = self._lengths
        whole = [lengths_of(body, known) for body in self.whole]
        for least, most, *_ in whole:
            self.impossible |= self.high is not None and self.high < least
            self.impossible |= most is not None and most < self.low
        found = [lengths_of(node, known) for node in self.found]
        if any(lengths.least >= self.low for lengths in (*whole, *found)):
            self.low = 0
        if self.high is not None and any(most is not None and most <= self.high for _, most, *_ in whole):
            self.high = None

    def settle_lengths(self) -> None:
        """Drop the lengths that are implied, and let a pattern take them over where it can."""
        self.drop_implied_lengths()
        for index, body in enumerate(self.whole):
            if self.low or self.high is not None:
                narrowed = narrow(body, self.low, self.high, self._lengths)
                if narrowed is not None:
                    self.whole[index], self.low, self.high = narrowed, 0, None

    def have_more_texts(self, hidden: int) -> bool:
        """Whether it is plain to see that more texts than so many meet the demands, which are not `impossible`."""
        positive = [*self.whole, *self.found]
        if len(positive) > 1:
            return False
        bodies = without_ends(self.found[0]) if self.found else [(body, True) for body in self.whole]
        options = [(lengths_of(body, self._lengths), is_whole) for body, is_whole in bodies]
        # text around what is found makes it as long as need be
        endless = self.high is None and (
            not positive or any(one.size is not None and (one.most is None or not whole) for one, whole in options)
        )
        meets = not positive or any(one.meet(self.low if is_whole else 0, self.high) for one, is_whole in options)
        if not meets or (hidden and not endless):
            return False
        return not self.absent or (endless and all(map(_is_bounded, self.given))) or self._leave_a_character()

    def _leave_a_character(self) -> bool:
        """Whether nothing is demanded but lengths, and some character is in no text of what is absent."""
        if self.whole or self.found or self.high == 0:
            return False
        sets = {node.ranges for absent in self.absent for node in walk(absent) if isinstance(node, CharSet)}
        is_left = bool(complement(union(SURROGATES, NEWLINE, *sets)))
        bodies = [option for given in self.given for option in without_ends(given)]
        return is_left and all(is_whole or lengths_of(body).least > 0 for body, is_whole in bodies)

    @property
    def size(self) -> int | None:
        """Sets of characters of all patterns; None if that is not plain to see."""
        bodies = self.whole + [body for node in (*self.found, *self.given) for body, _ in without_ends(node)]
        sizes = [size for body in bodies if (size := lengths_of(body, self._lengths).size) is not None]
        return sum(sizes) if len(sizes) == len(bodies) else None


def _is_bounded(node: Node) -> bool:
    """Whether a pattern is found in texts up to some length only."""
    body = anchored_body(node)
    return body is not None and lengths_of(body).most is not None


@lru_cache(maxsize=512)
def read_demands(
    patterns: tuple[str, ...],
    not_patterns: tuple[str, ...],
    formats: tuple[str, ...],
    not_formats: tuple[str, ...],
    min_length: int,
    max_length: int | None,
) -> Demands:
    """The demands of a set of strings (`tokdfa.json_schema.sets.string_set`). They are kept, and not to be changed."""
    spend(NS_PER_DEMAND * (len(patterns) + len(not_patterns) + len(formats) + len(not_formats)))
    demands = Demands(low=min_length, high=max_length)
    for pattern in dict.fromkeys(patterns):
        demands.add(pattern)
    for name in dict.fromkeys(formats):
        program = find_format(name)
        demands.add(program.pattern, _format_lengths(name))
        if program.max_length is not None:
            demands.high = program.max_length if demands.high is None else min(demands.high, program.max_length)
    for pattern in dict.fromkeys(not_patterns):
        demands.forbid(pattern, wide=True)
    for name in dict.fromkeys(not_formats):
        demands.forbid(outside_of(name), wide=False)
    demands.impossible |= demands.high is not None and demands.high < demands.low
    demands.impossible |= bool({*patterns} & {*not_patterns} or {*formats} & {*not_formats})
    demands.settle_lengths()
    return demands


@lru_cache(maxsize=64)
def _format_lengths(name: str) -> KnownLengths:
    """The lengths of all parts of a format's pattern."""
    known: KnownLengths = {}
    lengths_of(parse_pattern(find_format(name).pattern), known)
    return known
