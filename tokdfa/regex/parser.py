"""The parser of all dialects: groups, quantifiers, anchors, flags. The upper half; `tokdfa.regex.atoms` is the lower.

It keeps its open groups on a list of its own, so nesting costs no Python stack; it is still bounded. What is written
twice is one object (`Parser.read_again`, `tokdfa.regex.syntax_tree.NodePool`): patterns made from JSON schemas repeat
their strings and numbers dozens of times.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from tokdfa.errors import LimitExceeded
from tokdfa.regex.atoms import CLASS_LETTERS, PROPERTY_LETTERS, AtomReader, Flags, class_ranges
from tokdfa.regex.char_sets import ALL, Ranges, complement, intersection
from tokdfa.regex.syntax_tree import (
    LOOK_AHEAD,
    LOOK_BEHIND,
    Alternation,
    Assertion,
    Atomic,
    CharSet,
    Concat,
    LookAhead,
    LookBehind,
    Node,
    NodePool,
    Repeat,
    first_of,
    width_of,
)

if TYPE_CHECKING:
    from tokdfa.regex.dialects import Dialect

_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_INLINE_FLAGS = re.compile(r"\(\?([A-Za-z]*)(?:(-)([A-Za-z]*))?([:)])")
_BOUNDARY_SIDE = re.compile(r"\{[a-z-]+\}")
#: Characters that mean themselves (without the flag x).
_PLAIN = re.compile(r"[^|()\[.^$\\*+?{]+")
#: What reads what begins with a character; `read_literal` reads any other.
_READERS = {
    "|": "read_bar",
    "(": "read_group_start",
    ")": "read_group_end",
    "[": "read_bracket",
    ".": "read_dot",
    "^": "read_start_anchor",
    "$": "read_end_anchor",
    "\\": "read_escape",
    "{": "read_brace",
    **dict.fromkeys("*+?", "read_quantifier"),
}
_SPACE = " \t\n\r\v\f"
LOOK_AHEADS = ("=", "!")
LOOK_BEHINDS = ("<=", "<!")
#: What is repeated is found by its text up to its first closing bracket, which must be within so many characters.
MAX_KEY = 500
#: Classes that are kept under the same flags.
MAX_CLASSES = 512
NOTHING_TO_REPEAT = "nothing to repeat"
MULTIPLE_REPEAT = "multiple repeat; group the first one to repeat it"


@dataclass
class Group:
    """An open group: where it began, its kind (`tokdfa.regex.dialects`), and what has been read of it."""

    position: int
    kind: str
    outer_flags: Flags
    options: list[Node] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)
    #: Where the last item begins, if it is no plain character, and why it cannot be repeated; "" if it can.
    begin: int = 0
    no_repeat: str = NOTHING_TO_REPEAT
    #: Levels of groups inside.
    depth: int = 0
    #: Whether every option has something in it, all of which is look-around (`LibraryParser` keeps it).
    looks: bool = True

    def add(self, item: Node, begin: int, no_repeat: str = "") -> None:
        self.items.append(item)
        self.begin, self.no_repeat = begin, no_repeat


class _Known(NamedTuple):
    """A group that has been read: where, under which flags, and with how many levels of groups."""

    start: int
    end: int
    flags: Flags
    node: Node
    depth: int


class Parser(AtomReader):
    """The main loop and what it calls: each ``read_`` method reads one construct that begins at `position`."""

    def __init__(self, pattern: str, dialect: Dialect, flags: Flags, ascii_classes: bool) -> None:
        super().__init__(pattern, dialect, flags, ascii_classes)
        self.root = Group(0, "group", flags)
        self.groups = [self.root]
        #: Atomic nodes that have been read, by identity, and where.
        self.atomic_at: dict[int, int] = {}
        self.pool = NodePool()
        #: Groups that have been read, by their `key`; of several with one key the last.
        self.known: dict[str, _Known] = {}
        #: Where the first lazy quantifier has its question mark, if there is one.
        self.first_lazy = -1

    def parse(self) -> Node:
        """The tree of the whole pattern."""
        pattern = self.pattern
        while self.position < len(pattern):
            character = pattern[self.position]
            if self.flags.verbose and (character in _SPACE or character == "#"):
                self.skip_blank(character)
            else:
                getattr(self, _READERS.get(character, "read_literal"))()
        group = self.groups.pop()
        if self.groups:
            self.fail("missing ), this group is not closed", group.position)
        if self.first_lazy >= 0 and self.dialect.refused_lazy:
            self.refuse(self.dialect.refused_lazy, self.first_lazy)
        node = self.close(group)
        if LOOK_BEHIND in node.assertions:
            self.check_look_behinds(node)
        return node

    def skip_blank(self, character: str) -> None:
        end = self.position + 1
        if character == "#":
            end = self.pattern.find("\n", self.position) + 1 or len(self.pattern)
        self.position = end

    def read_literal(self) -> None:
        """Read one character, and those behind it that mean themselves."""
        run = None if self.flags.verbose else _PLAIN.match(self.pattern, self.position + 1)
        text = self.pattern[self.position : run.end() if run else self.position + 1]
        group, literals = self.groups[-1], self.literals
        group.items.extend([literals[character] for character in text])
        group.no_repeat = ""
        self.position += len(text)

    def read_dot(self) -> None:
        every = ALL if self.flags.dot_all else complement(self.dialect.line_ends[self.flags.wide])
        self.groups[-1].add(self.char_set(every), self.position)
        self.position += 1

    def read_start_anchor(self) -> None:
        self.add_assertion("line_start" if self.flags.multi_line else "text_start", 1)

    def read_end_anchor(self) -> None:
        self.add_assertion("line_end" if self.flags.multi_line else "text_end", 1)
        if self.flags.wide:
            self.allow_newlines(1)

    def allow_newlines(self, most: int | None) -> None:
        """Let the assertion of an end, just read, hold before so many last newlines, too."""
        end = self.groups[-1].items.pop()
        newlines = self.pool.repeat(self.literals["\n"], 1, most)
        ahead = LookAhead(self.pool.concat([newlines, end]), negative=False)
        self.groups[-1].items.append(self.pool.alternation([end, ahead]))

    def add_assertion(self, kind: str, length: int) -> None:
        """Add an assertion that is `length` characters long."""
        self.groups[-1].add(Assertion(kind), self.position, NOTHING_TO_REPEAT)
        self.position += length

    def read_bar(self) -> None:
        self.close_option(self.groups[-1])
        self.position += 1

    def close_option(self, group: Group) -> None:
        if self.atomic_at and self.dialect.refused_atomic:
            self.drop_atomic(group)
        group.options.append(self.pool.concat(group.items))
        group.items = []
        group.no_repeat = NOTHING_TO_REPEAT

    def drop_atomic(self, group: Group) -> None:
        """Take what is atomic for what is not, where nothing is lost by that; refuse it elsewhere.

        What has one width is matched in one way from each place. A repeat of one character takes all it can get; had it
        taken fewer, what follows would begin with such a character.
        """
        for k in reversed(range(len(group.items))):  # so that what follows is known
            item = group.items[k]
            if isinstance(item, Atomic):
                is_end = group is self.root
                if not _is_one_way(item.body) and not _takes_all(item.body, first_of(group.items[k + 1 :]), is_end):
                    self.refuse_atomic(item)
                group.items[k] = item.body

    def refuse_atomic(self, item: Node) -> None:
        position = self.atomic_at[id(item)]
        kind = "an atomic group" if self.pattern[position] == "(" else "a possessive quantifier"
        self.refuse(f"{kind}; {self.dialect.refused_atomic}", position)

    def check_look_behinds(self, node: Node) -> None:
        """Refuse what `tokdfa.regex.lower` cannot say about the text before a look-behind, and behind it."""
        for option in node.options if isinstance(node, Alternation) else (node,):
            parts = option.parts if isinstance(option, Concat) else (option,)
            behind = [k for k, part in enumerate(parts) if isinstance(part, LookBehind)]
            for k, part in enumerate(parts if behind else ()):
                if isinstance(part, LookBehind) or (k == 0 and part == Assertion("text_start")):
                    continue
                if part.assertions - ({LOOK_AHEAD, "text_end", "line_end"} if k > behind[-1] else set()):
                    first = parts[behind[0]]
                    assert isinstance(first, LookBehind)
                    self.refuse(
                        "a look-behind beside other assertions (but ^ at the beginning, and look-ahead and $ after it)",
                        first.position,
                    )

    def close(self, group: Group) -> Node:
        self.close_option(group)
        return self.pool.alternation(group.options)

    # Groups.

    def read_group_start(self) -> None:
        if self.read_again():
            return
        start, dialect, outer_flags = self.position, self.dialect, self.flags
        opening = dialect.opening_at(self.pattern, start)
        if opening in dialect.refused_groups:
            self.refuse(dialect.refused_groups[opening])
        kind = dialect.groups[opening]
        if kind == "flags":
            if self.read_inline_flags():
                return
        elif kind == "comment":
            self.skip_comment()
            return
        elif kind == "named group":
            name = dialect.group_name.match(self.pattern, start)
            if not name:
                self.fail("a group name is letters, digits and _ between < and >, and begins with no digit")
            self.position = name.end()
        else:
            self.position += len(opening)
        if len(self.groups) > dialect.max_nesting:
            raise LimitExceeded(
                f"groups are nested too deep, deeper than {dialect.max_nesting}, at position {start} of the pattern",
                limit="group nesting",
                value=len(self.groups),
            )
        if kind == "!" and dialect.two_readings:
            self.flags = replace(self.flags, wide=not self.flags.wide)
        self.groups.append(Group(start, kind, outer_flags))

    def skip_comment(self) -> None:
        end = self.pattern.find(")", self.position)
        if end < 0:
            self.fail("missing ), this comment is not closed")
        self.position = end + 1

    def read_inline_flags(self) -> bool:
        """Read ``(?flags)`` (returns True) or the start of ``(?:`` and ``(?flags:``."""
        dialect, root = self.dialect, self.root
        match = _INLINE_FLAGS.match(self.pattern, self.position)
        if not match or (match[4] == ")" and not match[1] and not match[3]) or (match[2] and not match[3]):
            self.fail("unknown kind of group; known: (..), (?:..), (?P<n>..), (?<n>..), (?=..), (?!..), (?i), (?i:..)")
        is_leading = match[4] == ")" and dialect.leading_flags != ""
        if is_leading and (match[2] or len(self.groups) > 1 or root.items or root.options):
            self.refuse(f"flags for all of the pattern but at its beginning; write {match[0][:-1]}:..)")
        known_flags = dialect.leading_flags if is_leading else dialect.flags
        for index, letter in [*enumerate(match[1], match.start(1)), *enumerate(match[3] or "", match.start(3))]:
            if letter not in known_flags:
                self.refuse(f"the inline flag {letter}{dialect.refused_flags.get(letter, '')}", index)
            if letter == "u" and index >= match.start(3) >= 0:
                self.refuse("switching off the flag u", index)
        self.flags = self.flags.switched(match[1], True).switched(match[3] or "", False)
        self.position = match.end()
        self.groups[-1].no_repeat = NOTHING_TO_REPEAT
        return match[4] == ")"

    def read_group_end(self) -> None:
        if len(self.groups) == 1:
            self.fail("unbalanced )")
        group = self.groups.pop()
        node = self.close(group)
        if group.kind in LOOK_AHEADS:
            node = LookAhead(node, group.kind == "!")
        elif group.kind == ">":
            node = Atomic(node)
            self.atomic_at[id(node)] = group.position
        self.flags = group.outer_flags
        self.position += 1
        if group.kind in LOOK_BEHINDS:
            if len(self.groups) > 1 or node.assertions:
                self.refuse("a look-behind inside a group, or with an assertion or look-around inside", group.position)
            behind = LookBehind(node, group.kind == "<!", group.position)
            self.groups[-1].add(behind, group.position, NOTHING_TO_REPEAT)
            return
        known = _Known(group.position, self.position, self.flags, node, group.depth + 1)
        self.known[self.key(group.position, ")")] = known
        self.add_known(known, group.position)

    # Quantifiers.

    def read_brace(self) -> None:
        if self.dialect.counts.match(self.pattern, self.position):
            self.read_quantifier()
            return
        refused = self.dialect.refused_braces
        if refused and refused[0].match(self.pattern, self.position):
            self.refuse(refused[1])
        self.read_literal()

    def read_quantifier(self) -> None:
        group, dialect = self.groups[-1], self.dialect
        if group.no_repeat:
            self.fail(group.no_repeat)
        start = self.position
        low, high = self.read_counts()
        if high is not None and high < low:
            self.fail(f"a repeat needs low <= high, not {low} and {high}", start)
        following = self.pattern[self.position : self.position + 1]
        if isinstance(group.items[-1], Atomic):
            atomic = group.items[-1]
            if not _is_one_way(atomic.body):
                self.refuse_atomic(atomic)
            group.items[-1] = atomic.body
        if following == "+" and dialect.refused_atomic:
            node = Atomic(self.pool.repeat(group.items.pop(), low, high))
            self.atomic_at[id(node)] = self.position
            self.position += 1
            group.add(node, group.begin, MULTIPLE_REPEAT)
            return
        is_lazy = following == "?"
        if is_lazy:
            self.first_lazy = self.position if self.first_lazy < 0 else self.first_lazy
            self.position += 1
        repeated = self.pool.repeat(group.items.pop(), low, high, is_lazy and dialect.keeps_lazy)
        group.add(repeated, group.begin, MULTIPLE_REPEAT)

    def read_counts(self) -> tuple[int, int | None]:
        """Read a quantifier without what makes it lazy or possessive."""
        known = _QUANTIFIERS.get(self.pattern[self.position])
        if known:
            self.position += 1
            return known
        match = self.dialect.counts.match(self.pattern, self.position)
        assert match is not None
        low = self.read_count(match[1], match.start(1)) or 0
        high = self.read_count(match[3], match.start(3)) if match[2] else low
        self.position = match.end()
        return low, high

    def read_count(self, number: str, position: int) -> int | None:
        if not number:
            return None
        number, most = number.lstrip("0") or "0", self.dialect.max_count
        if len(number) > len(str(most)) or int(number) > most:  # int() refuses thousands of digits
            raise LimitExceeded(
                f"a count above {most} at position {position} of the pattern", limit="count", value=most
            )
        return int(number)

    # Escapes and classes.

    def read_escape(self) -> None:
        start = self.position
        letter = self.pattern[start + 1 : start + 2]
        if letter in self.dialect.assertions:
            self.read_assertion_escape(letter)
            return
        if letter in self.dialect.refused_assertions:
            self.refuse(self.dialect.refused_assertions[letter])
        node: Node
        if letter in CLASS_LETTERS:
            node = self.char_set(class_ranges(self.dialect, frozenset(letter), self.ascii_classes, self.flags.wide))
            self.position += 2
        elif letter in PROPERTY_LETTERS:
            ranges, folds = self.read_property(letter)
            node = self.char_set(self.fold(ranges) if folds else ranges)
        else:
            node = self.literals[chr(self.read_escaped_code_point())]
        self.groups[-1].add(node, start)

    def read_assertion_escape(self, letter: str) -> None:
        dialect = self.dialect
        by_zones = dialect.two_readings or dialect.python_boundary
        if letter in "bB" and (dialect.unicode_boundary or by_zones):
            if dialect.unicode_boundary and not self.ascii_classes:
                self.refuse(dialect.unicode_boundary)
            if _BOUNDARY_SIDE.match(self.pattern, self.position + 2):
                self.refuse(rf"the word boundary \{letter}{{..}}; it is Rust's; write \{letter}\{{ for a brace")
        kind = dialect.assertions[letter]
        if letter in "bB" and by_zones:
            kind += "_to_python" if dialect.python_boundary else "_to_any" if self.flags.wide else "_to_all"
        self.add_assertion(kind, 2)
        if letter == "Z" and self.flags.wide:
            self.allow_newlines(None)  # as Rust's look-around has it

    def read_bracket(self) -> None:
        start, text = self.position, self.pattern
        if self.dialect.empty_class:
            self.check_first_bracket()
        known, key = _known_classes(self.dialect, self.flags, self.ascii_classes), self.key(start, "]")
        found = known.get(key)
        if found is not None and text.startswith(found[0], start):
            self.position += len(found[0])
            node = found[1]
        else:  # where a class ends depends on its own text only, so what is known by it needs no other reading
            node = self.char_set(self.read_class())
            if self.position - start <= MAX_KEY:
                if len(known) >= MAX_CLASSES:
                    known.clear()
                known[key] = text[start : self.position], node
        self.groups[-1].add(node, start)

    # What is repeated.

    def read_again(self) -> bool:
        """Read a group whose text has been read before, under the same flags: it is the same node.

        Where it ends depends on its own text only, so no other reading is possible.
        """
        start, text = self.position, self.pattern
        known = self.known.get(self.key(start, ")"))
        if known is None or known.flags is not self.flags:
            return False
        if len(self.groups) + known.depth > self.dialect.max_nesting + 1:
            return False
        if not text.startswith(text[known.start : known.end], start):
            return False
        self.position += known.end - known.start
        self.add_known(known, start)
        return True

    def add_known(self, known: _Known, begin: int) -> None:
        group = self.groups[-1]
        group.add(known.node, begin)
        group.depth = max(group.depth, known.depth)

    def key(self, start: int, closing: str) -> str:
        return self.pattern[start : self.pattern.find(closing, start, start + MAX_KEY) + 1]


def _is_one_way(body: Node) -> bool:
    """Whether a node has one match from each place: all of its matches have one width."""
    return not body.assertions and width_of(body) is not None


def _takes_all(body: Node, after: tuple[Ranges, bool] | None, is_end: bool) -> bool:
    """Whether a repeat of one character cannot give any back to what comes `after` it (see `first_of`).

    `is_end`: whether the pattern ends behind what comes after it.
    """
    if after is None or not isinstance(body, Repeat) or not isinstance(body.body, CharSet):
        return False
    return not intersection(body.body.ranges, after[0]) and (is_end or not after[1])


@cache
def _known_classes(dialect: Dialect, flags: Flags, ascii_classes: bool) -> dict[str, tuple[str, CharSet]]:
    """What has been read of classes: by their key all that is written, and the node."""
    return {}
