r"""From decoded text to JSON text: every code point in all its spellings.

Words. The *decoded text* of a JSON string is what a parser returns; its *body* is what stands between the quotes. A
code point is *spelled* in one of these ways (RFC 8259, section 7):

- raw, as UTF-8, unless it is ``"``, ``\`` or a control (00..1F);
- by a short escape, ``\" \\ \/ \b \f \n \r \t``;
- by ``\uXXXX`` in hexadecimal digits of either case; beyond FFFF as two of them, a surrogate pair.

A regex over decoded texts becomes one over bodies when each code point set in it becomes the set of all spellings of
its members: no spelling is the beginning of another, so a body has one decoded text. Spellings are small automata,
written down once a set and kept (`spelling_program`): raw bytes as in `tokdfa.regex.utf8`, and behind the backslash a
tree of hexadecimal digits, equal subtrees being one expression. Surrogates have no spelling: a lone one is refused.

With ``escapes="needed"`` only what must be escaped is, and without the solidus: ``\"``, ``\\`` and the controls, these
in short and ``\u00XX`` form. Automata are smaller, by a factor of two to five, but ``"\u0061"`` is no spelling of a.

A closing quote ends a body, and nothing inside one is that byte; so ``$`` means that the quote comes next. `BODY`
leaves it out and is what most patterns take; `CLOSED_BODY` has it behind each text, for patterns whose assertions are
left to the derivatives (see `tokdfa.regex.lower`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tokdfa.errors import UnsupportedConstraint
from tokdfa.regex.char_sets import SURROGATES, Ranges, complement, contains, difference, intersection, union
from tokdfa.regex.literals import write_literal_tree
from tokdfa.regex.program import Program
from tokdfa.regex.tree_writer import BESIDE_REPEAT, Encoding
from tokdfa.regex.utf8 import END, AutomatonBuilder, Span, by_lead, split_large

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokdfa.program.program import Escapes
    from tokdfa.regex.expression import ExpressionStore

QUOTE, BACKSLASH = 0x22, 0x5C
CONTROLS: Ranges = ((0x00, 0x1F),)
#: What cannot stand for itself.
MUST_ESCAPE: Ranges = union(CONTROLS, ((QUOTE, QUOTE), (BACKSLASH, BACKSLASH)))
_RAW = complement(MUST_ESCAPE)
#: Code point -> the letter behind the backslash.
SHORT_ESCAPES = {0x22: '"', 0x5C: "\\", 0x2F: "/", 0x08: "b", 0x0C: "f", 0x0A: "n", 0x0D: "r", 0x09: "t"}
_BMP: Ranges = ((0x0000, 0xFFFF),)
_ASTRAL: Ranges = ((0x10000, 0x10FFFF),)
#: What is added to the ten bits of a high and a low surrogate.
_HIGH, _LOW = 0xD800, 0xDC00
#: By digit: the hexadecimal digits below it, in both cases, as bits.
_BELOW = [sum({1 << ord(one) for digit in range(end) for one in f"{digit:x}{digit:X}"}) for end in range(17)]


class Body(Encoding):
    """Texts as bodies of JSON strings; `closed`: each with the closing quote."""

    closing = b'"'

    def __init__(self, escapes: Escapes, closed: bool) -> None:
        self.escapes: Escapes = escapes
        self.end = self.closing if closed else b""

    def char_set(self, ranges: Ranges, program: Program) -> int:
        """The value of one code point out of `ranges`, in any spelling."""
        return program.embed(spelling_program(ranges, self.escapes))

    def literal(self, text: bytes, program: Program) -> int:
        """The value of exactly `text` (UTF-8), in any spelling."""
        return self.text(text.decode(), program)

    def literals(self, texts: Iterable[bytes], program: Program) -> int:
        """The value of any of `texts` (UTF-8), in any spelling."""
        decoded = sorted(text.decode() for text in texts)
        return write_literal_tree(decoded, _TextWriter(self, program))  # type: ignore[arg-type]

    def assertion(self, kind: str, store: ExpressionStore) -> int:
        """``$`` as a look-ahead for the closing quote. The others ask what came before, which spellings hide."""
        if kind == "text_end":
            return store.look_ahead(store.literal(self.closing))
        raise UnsupportedConstraint(BESIDE_REPEAT)

    def text(self, text: str, program: Program) -> int:
        """The value of exactly `text`, in any spelling."""
        return program.concat([self.char_set(((ord(c), ord(c)),), program) for c in text])


class _TextWriter:
    """What `write_literal_tree` needs of a program, for texts of code points where it is written for bytes."""

    def __init__(self, body: Body, program: Program) -> None:
        self.body, self.program = body, program
        self.concat, self.union = program.concat, program.union

    def literal(self, text: str) -> int:
        """Exactly `text`."""
        return self.body.text(text, self.program)


#: By what is escaped: without and with the closing quote.
BODY: dict[Escapes, Body] = {"all": Body("all", False), "needed": Body("needed", False)}
CLOSED_BODY: dict[Escapes, Body] = {"all": Body("all", True), "needed": Body("needed", True)}


@lru_cache(maxsize=4096)
def spelling_program(code_points: Ranges, escapes: Escapes) -> Program:
    """What writes all spellings of one code point out of `code_points`; nothing if there are none.

    O(ranges), in Python: 0.1 ms for a few, 15 ms for the word characters of Unicode. Kept, so it is to be included and
    not to be run. Of large sets that differ in ASCII only the rest is written once.
    """
    if parts := split_large(code_points):
        program = Program()
        program.union([program.embed(spelling_program(part, escapes)) for part in parts])
        return program
    valid = difference(code_points, SURROGATES)
    escaped = valid if escapes == "all" else intersection(valid, MUST_ESCAPE)
    builder = AutomatonBuilder()
    edges = builder.first_edges(intersection(valid, _RAW))
    behind_backslash = [
        (1 << ord(letter), END) for code_point, letter in SHORT_ESCAPES.items() if contains(escaped, code_point)
    ]
    behind_u = _UnitTree(builder).first_units(escaped)
    if behind_u:
        behind_backslash.append((1 << ord("u"), builder.node(behind_u)))
    if behind_backslash:
        edges.append((1 << BACKSLASH, builder.node(behind_backslash)))
    if edges:
        builder.node(edges)
    return builder.program


class _UnitTree:
    """Writes UTF-16 code units as four hexadecimal digits each.

    A *span* (first, last, target) says that the units from first to last lead to a node. Spans are cut by their leading
    digit, and again, down to single digits; equal lists of spans are one node.
    """

    def __init__(self, builder: AutomatonBuilder) -> None:
        self.builder = builder
        self._nodes: dict[tuple[int, tuple[Span, ...]], int] = {}

    def first_units(self, code_points: Ranges) -> list[tuple[int, int]]:
        """The edges behind ``\\u`` for `code_points`, which are no surrogates."""
        spans = [(first, last, END) for first, last in intersection(code_points, _BMP)]
        whole, lows = _split_pairs(intersection(code_points, _ASTRAL))
        spans += [(_HIGH + first, _HIGH + last, self.second_unit([(0, 0x3FF)])) for first, last in whole]
        spans += [(_HIGH + high, _HIGH + high, self.second_unit(ranges)) for high, ranges in lows.items()]
        return self.edges(spans, 3)

    def second_unit(self, lows: list[tuple[int, int]]) -> int:
        """The node of ``\\u`` and a low surrogate that holds ten bits out of `lows`."""
        unit = self.node(tuple((_LOW + first, _LOW + last, END) for first, last in lows), 3)
        return self.builder.node([(1 << BACKSLASH, self.builder.node([(1 << ord("u"), unit)]))])

    def node(self, spans: tuple[Span, ...], tail: int) -> int:
        """The node of `spans`, of one digit and `tail` more."""
        key = tail, spans
        if key not in self._nodes:
            self._nodes[key] = self.builder.node(self.edges(list(spans), tail))
        return self._nodes[key]

    def edges(self, spans: list[Span], tail: int) -> list[tuple[int, int]]:
        """`spans` by their leading digit, in both cases, `tail` digits following."""
        whole, parts = by_lead(spans, 16**tail)
        found = []
        for first, last, target in whole:
            following = self.node(((0, 16**tail - 1, target),), tail - 1) if tail else target
            found.append((_BELOW[last + 1] ^ _BELOW[first], following))
        for digit, inside in parts.items():
            found.append((_BELOW[digit + 1] ^ _BELOW[digit], self.node(tuple(inside), tail - 1)))
        return found


def _split_pairs(astral: Ranges) -> tuple[list[tuple[int, int]], dict[int, list[tuple[int, int]]]]:
    """Code points beyond FFFF as surrogate pairs, each surrogate as its ten bits.

    (ranges of high ones that take every low one, other high ones -> their low ones).
    """
    whole: list[tuple[int, int]] = []
    lows: dict[int, list[tuple[int, int]]] = {}
    for first, last in astral:
        (start, low), (end, top) = divmod(first - 0x10000, 0x400), divmod(last - 0x10000, 0x400)
        if low:
            lows.setdefault(start, []).append((low, top if start == end else 0x3FF))
            start += 1
        if start <= end and top < 0x3FF:
            lows.setdefault(end, []).append((0, top))
            end -= 1
        if start <= end:
            whole.append((start, end))
    return whole, lows
