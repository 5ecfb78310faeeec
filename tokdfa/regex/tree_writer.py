"""Writing what a syntax tree says as a program (`tokdfa.regex.program`), assertions as zero-width nodes.

A tree is written as a whole and then built. An `Encoding` says how code points become bytes. What
assertions mean where they stand is the business of `tokdfa.regex.lower`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.core.budget import spend
from tokdfa.errors import UnsupportedConstraint
from tokdfa.regex.boundaries import is_agreed
from tokdfa.regex.char_sets import Ranges, union
from tokdfa.regex.expression import EMPTY
from tokdfa.regex.literals import write_literal_tree
from tokdfa.regex.program import Program, known
from tokdfa.regex.syntax_tree import (
    Alternation,
    Assertion,
    CharSet,
    Concat,
    Empty,
    LookAhead,
    Node,
    Repeat,
    Symbol,
)
from tokdfa.regex.utf8 import utf8_program

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokdfa.regex.expression import ExpressionStore

#: Code (int32) that is written before it is run: enough to make calls rare, little enough for a store's limits to hold.
LONG_PROGRAM = 1 << 18
#: What it takes to write a node, without its characters.
NS_PER_NODE = 5_000
BESIDE_REPEAT = (
    r"a repeat around ^, \b or \B, or around look-ahead before one of them, is not supported; move it out of the repeat"
)


class Encoding:
    """How a text is written as bytes: UTF-8 here, and in subclasses otherwise."""

    #: What stands behind each text and nowhere inside.
    end = b""

    def char_set(self, ranges: Ranges, program: Program) -> int:
        """The value of one code point out of `ranges`."""
        return program.embed(utf8_program(ranges))

    def literal(self, text: bytes, program: Program) -> int:
        """The value of exactly `text`, given as UTF-8."""
        return program.literal(text)

    def literals(self, texts: Iterable[bytes], program: Program) -> int:
        """The value of any of `texts`, which are distinct and given as UTF-8."""
        return write_literal_tree(sorted(texts), program)

    def assertion(self, kind: str, store: ExpressionStore) -> int:
        """The expression of an assertion that only the derivatives can decide."""
        if is_agreed(kind):  # they know the last byte, not the last character
            raise UnsupportedConstraint(BESIDE_REPEAT)
        return store.assertion(kind)


UTF8 = Encoding()


class Writer:
    """Writes trees as values of one program, each node once, and runs it where an expression is asked for."""

    def __init__(self, store: ExpressionStore, encoding: Encoding) -> None:
        self.store, self.encoding = store, encoding
        self.program = Program()
        # values by the node's identity (hashing a tree would walk it); the node is kept, so that its id stays its own
        self._written: dict[int, tuple[Node, int]] = {}

    def expression(self, value: int) -> int:
        """The expression that `value` of the program stands for."""
        if value >= self.program.made_count:
            self.store.run(self.program)
        return self.program.expression(value)

    def char_set(self, ranges: Ranges) -> int:
        """The expression of one code point out of `ranges`."""
        return self.expression(self.encoding.char_set(ranges, self.program))

    def plain(self, node: Node) -> int:
        """The expression of `node` alone, with zero-width nodes for its assertions."""
        return self.expression(self.write(node))

    def write(self, node: Node) -> int:
        """The value of `node` alone. What it is made of is written first, from a list: parents first, then reversed."""
        written, nodes, pending = self._written, [], [node]
        while pending:
            current = pending.pop()
            if id(current) in written:
                continue
            nodes.append(current)
            if isinstance(current, Concat):
                pending += [part for part in current.parts if part.text is None]
            elif isinstance(current, Alternation):
                pending += [one for one in current.options if one.text is None and not isinstance(one, CharSet)]
            elif isinstance(current, Repeat | LookAhead):
                pending.append(current.body)
        spend(NS_PER_NODE * len(nodes))
        for current in reversed(nodes):
            if id(current) not in written:
                written[id(current)] = current, self.write_one(current)
                if self.program.code_size > LONG_PROGRAM:
                    self.store.run(self.program)
        return written[id(node)][1]

    def write_one(self, node: Node) -> int:
        """The value of a node, those of its parts being known."""
        program, encoding, written = self.program, self.encoding, self._written
        match node:
            case CharSet(ranges=ranges):
                return encoding.char_set(ranges, program)
            case Repeat(body=body, low=low, high=high):
                return program.repeat(written[id(body)][1], low, high)
            case Concat(parts=parts):
                pieces = []
                text = bytearray()  # the literal parts before the next other one
                for part in parts:
                    if part.text is not None:
                        text += part.text
                        continue
                    if text:
                        pieces.append(encoding.literal(bytes(text), program))
                        text.clear()
                    pieces.append(written[id(part)][1])
                if text:
                    pieces.append(encoding.literal(bytes(text), program))
                return program.concat(pieces)
            case Alternation(options=options):
                sets, texts, pieces = [], set(), []
                for option in options:
                    if isinstance(option, CharSet):
                        sets.append(option.ranges)
                    elif option.text is not None:
                        texts.add(option.text)
                    else:
                        pieces.append(written[id(option)][1])
                if sets:
                    pieces.append(encoding.char_set(union(*sets), program))
                if texts:
                    pieces.append(encoding.literals(texts, program))
                return program.union(pieces)
            case Empty():
                return known(EMPTY)
            case Symbol(code=code):
                return program.literal(code)
            case Assertion(kind=kind):
                return known(encoding.assertion(kind, self.store))
            case LookAhead(body=body, negative=negative):
                return known(self.store.look_ahead(self.expression(written[id(body)][1]), negative))
        raise AssertionError(node)
