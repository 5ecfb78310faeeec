"""The parser of the dialects in which a library searches with the pattern (`tokdfa.regex.dialects`).

A set is whatever matches exactly one character: a letter, a class escape, a dot, a bracketed class. Only where it ends
is found here; the leaf is a `SourceSet`. Which choices are made first is kept.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tokdfa.errors import RegexSyntaxError
from tokdfa.regex.char_sets import long_foldings
from tokdfa.regex.dialects import ONIGURUMA
from tokdfa.regex.parser import LOOK_AHEADS, MULTIPLE_REPEAT, NOTHING_TO_REPEAT, Group, Parser
from tokdfa.regex.syntax_tree import Alternation, Atomic, LookAhead, Node, SourceSet, walk

if TYPE_CHECKING:
    from tokdfa.regex.atoms import Flags
    from tokdfa.regex.dialects import Dialect

#: Escapes that match exactly one character.
_ONE_CHARACTER = re.compile(
    r"\\(?:[sSdDwWhHtnrfva]|[pP]\{\^?[A-Za-z0-9_ =:-]+\}|x\{[0-9A-Fa-f]{1,6}\}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}"
    r"|[^A-Za-z0-9\s\x80-\U0010ffff])"
)
_BY_NUMBER = re.compile(r"\\[xu]\{?([0-9A-Fa-f]+)\}?")
_PUNCTUATION_ESCAPE = re.compile(r"\\[^A-Za-z0-9]")
_QUANTIFIER = re.compile(r"[*+?]|\{[0-9]*,?[0-9]*\}")
LOOK_AROUND = "quantified look-around"


def source_sets(node: Node) -> list[SourceSet]:
    """The distinct sets of a tree, in the order of the pattern."""
    found: dict[tuple[str, str], SourceSet] = {}
    for part in walk(node):
        if isinstance(part, SourceSet):
            found.setdefault((part.origin, part.source), part)
    return list(found.values())


class LibraryParser(Parser):
    """A parser whose leaves are `SourceSet`; what it does not read it refuses, as the library may know it."""

    def __init__(self, pattern: str, dialect: Dialect, flags: Flags, ascii_classes: bool) -> None:
        super().__init__(pattern, dialect, flags, ascii_classes)
        self.is_oniguruma = dialect is ONIGURUMA
        #: The letters read last without regard to case, in one stretch: what Oniguruma may take for one string; and
        #: what it was where an item begins.
        self.folded_run = ""
        self.run_before: dict[int, str] = {}

    def parse(self) -> Node:
        node = super().parse()
        if node.nullable:
            self.refuse("a pattern that can match the empty string", 0)
        return node

    def read_again(self) -> bool:
        return False  # sets know their places

    def read_bar(self) -> None:
        self.folded_run = ""
        super().read_bar()

    def close_option(self, group: Group) -> None:
        group.looks = group.looks and bool(group.items)
        super().close_option(group)

    def read_group_start(self) -> None:
        self.run_before[self.position] = self.folded_run
        super().read_group_start()

    def read_group_end(self) -> None:
        closed = self.groups[-1]
        super().read_group_end()
        self.note_item(closed.looks or closed.kind in LOOK_AHEADS)

    def note_item(self, looks: bool) -> None:
        """Take down whether the last item of the open group looks around, which must not be repeated."""
        group = self.groups[-1]
        group.looks = group.looks and looks
        group.no_repeat = LOOK_AROUND if looks else ""

    # Anchors and sets.

    def read_start_anchor(self) -> None:
        self.refuse("an anchor to the start")

    def read_end_anchor(self) -> None:
        start = self.position
        self.add_assertion("text_end", 1)
        if self.is_oniguruma:
            before_newline = LookAhead(SourceSet("character", "\n", start), negative=False)
            self.groups[-1].items.append(Alternation((before_newline, self.groups[-1].items.pop())))
        self.note_item(looks=True)

    def read_escape(self) -> None:
        letter = self.pattern[self.position + 1 : self.position + 2]
        if letter in self.dialect.assertions:
            self.add_assertion(self.dialect.assertions[letter], 2)
            self.note_item(looks=True)
            return
        if letter in self.dialect.refused_escapes:
            self.refuse(self.dialect.refused_escapes[letter])
        found = _ONE_CHARACTER.match(self.pattern, self.position)
        if found is None:
            self.refuse(f"the escape \\{letter}" if letter else "a backslash at the end")
        self.read_set(found.end())

    def read_literal(self) -> None:
        self.read_set(self.position + 1)

    read_dot = read_literal

    def read_bracket(self) -> None:
        self.read_set(self.class_end(self.position))

    def class_end(self, begin: int) -> int:
        """The offset after the bracketed class that begins at `begin`; classes may hold classes."""
        depth, place = 0, begin
        while place < len(self.pattern):
            if self.pattern[place] == "\\":
                place += 2
                continue
            if self.pattern[place] == "[":
                depth += 1
                place += self.pattern.startswith("^", place + 1)
                if self.pattern.startswith("]", place + 1):
                    self.refuse("a bracket directly after the opening of a class; write \\]", place + 1)
            elif self.pattern[place] == "]":
                depth -= 1
                if depth == 0:
                    return place + 1
            place += 1
        raise RegexSyntaxError("this class is not closed", self.pattern, begin)

    def read_set(self, end: int) -> None:
        """Add the set written from here to `end`."""
        begin, self.position = self.position, end
        self.run_before[begin] = self.folded_run
        source, origin = self.pattern[begin:end], self.dialect.name
        if self.flags.ignore_case:
            if self.is_oniguruma:
                self.check_folding(source, begin)
            source = f"(?i:{source})"
        elif len(source) == 1 and source != ".":
            origin = "character"
        elif _PUNCTUATION_ESCAPE.fullmatch(source):
            origin, source = "character", source[1]
        self.groups[-1].add(SourceSet(origin, source, begin), begin)
        self.note_item(looks=False)

    def check_folding(self, source: str, begin: int) -> None:
        """Refuse letters of which one character may stand for several. (Classes are tried in the library.)"""
        by_number = _BY_NUMBER.fullmatch(source)
        if (len(source) == 1 and source != ".") or by_number:
            letter = chr(min(int(by_number[1], 16), 0x10FFFF)) if by_number else source
            self.extend_folded_run(letter.casefold(), begin)
        else:
            self.folded_run = ""

    def extend_folded_run(self, letters: str, begin: int) -> None:
        self.folded_run += letters
        if any(folded in self.folded_run for folded in long_foldings()):
            self.refuse("letters without regard to case that Oniguruma may take for one", begin)

    # Quantifiers.

    def read_quantifier(self) -> None:
        start, group = self.position, self.groups[-1]
        if group.no_repeat == NOTHING_TO_REPEAT:
            self.refuse("a quantifier without anything to repeat")
        low, high = self.read_counts()
        written = self.pattern[start : self.position]
        if high == 0 or (high is not None and low > high):
            self.refuse(f"the count {written}", start)
        mode = self.pattern[self.position : self.position + 1]
        mode = mode if mode in ("?", "+") else ""
        if self.is_oniguruma and written[0] == "{" and mode and (mode == "+" or "," not in written):
            self.refuse(f"{written}{mode}, which Oniguruma reads unlike other engines,", start)
        self.position += len(mode)
        if _QUANTIFIER.match(self.pattern, self.position):
            self.refuse("a quantifier after a quantifier")
        if group.no_repeat:
            self.refuse(LOOK_AROUND, group.begin)
        body = group.items.pop()
        if body.nullable and (high is None or high > 1):
            self.refuse("a repeat of what can be empty", group.begin)
        if self.flags.ignore_case and self.is_oniguruma and high != 1:
            repeated = self.folded_run.removeprefix(self.run_before[group.begin])
            self.extend_folded_run(2 * repeated, group.begin)  # it writes out short repeats
        node = self.pool.repeat(body, low, high, lazy=mode == "?")
        group.add(Atomic(node) if mode == "+" else node, group.begin, MULTIPLE_REPEAT)
