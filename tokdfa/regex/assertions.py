"""Derivatives of expressions with zero-width nodes.

Theory. A *context* is what an assertion can ask of the past: at the start of the text, after a newline, after a word
byte, after another byte. What it can ask of the future is the next byte, which is the byte we derive by, or the end of
the text. Look-ahead speaks about the whole rest of the text. So we derive ``e K``, K being the rest of the expression
up to the end of the text, as

    D(e K) = C(e, K)  |  (Z(e) & D(K))

where C(e, K) are the derivatives in which the byte is read by e, and Z(e) is the condition, a language of what follows
the byte, under which e matches nothing and stays where it is (any bytes: always; nothing: never):

    Z(look-ahead X) = D(X any*),  ~D(X any*) if negative;    Z(assertion) = any* or nothing, by context and byte
    Z(h t) = Z(h) & Z(t);   Z(a|b) = Z(a) | Z(b);   Z(e{m,n}) = any* if m = 0, else Z(e)
    C(h t, K) = C(h, t K)  |  (Z(h) & C(t, K));     C(a|b, K) = C(a, K) | C(b, K);   C(zero-width, K) = nothing
    C(e{m,n}, K) = C(e, e{m-1,n-1} K)  |  (Z(e) & C(e, e{0,n-1} K))

(the last, because rounds that match nothing here can use up the minimum, under the same condition for all of them).
Intersections and complements made by look-ahead stand for whole rests of the text: D maps over them. This is exact for
assertions anywhere, loops included. It is done once for each local class and state that still has an assertion.

Source: conditions for zero-width nodes are ours, in the spirit of location-based derivatives (Moseley et al., PLDI
2023).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.regex.derivative import NEWLINE, is_word_byte
from tokdfa.regex.expression import ANY_BYTES, EMPTY, NOTHING
from tokdfa.regex.nodes import (
    ASSERTIONS,
    INFINITE,
    K_ASSERTION,
    K_COMPLEMENT,
    K_CONCAT,
    K_INTERSECTION,
    K_LOOK_AHEAD,
    K_REPEAT,
    K_UNION,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.regex.derivative import DerivativeTable
    from tokdfa.regex.expression import ExpressionStore

#: Contexts: what came before.
AT_START, AFTER_NEWLINE, AFTER_WORD, AFTER_OTHER = range(4)


def context_after(byte: int) -> int:
    """The context that `byte` leaves behind."""
    if byte == NEWLINE:
        return AFTER_NEWLINE
    return AFTER_WORD if is_word_byte(byte) else AFTER_OTHER


def _assertion_holds(name: str, context: int, byte: int | None) -> bool:
    """Whether an assertion holds between `context` and the next byte (None: the end of the text)."""
    match name:
        case "text_start":
            return context == AT_START
        case "text_end":
            return byte is None
        case "line_start":
            return context in (AT_START, AFTER_NEWLINE)
        case "line_end":
            return byte is None or byte == NEWLINE
    at_boundary = (context == AFTER_WORD) != (byte is not None and is_word_byte(byte))
    return at_boundary if name == "word_boundary" else not at_boundary


class AssertionDeriver:
    """Derivatives of one expression by one byte in one context, zero-width nodes included. See the module's docstring.

    `byte` None stands for the end of the text; then only `accepts` is meaningful. `known` remembers the derivatives of
    what has no assertion.
    """

    def __init__(self, store: ExpressionStore, known: DerivativeTable, context: int, byte: int | None) -> None:
        self.store, self.known, self.context, self.byte = store, known, context, byte
        self._derived: dict[int, int] = {}
        self._consumed: dict[tuple[int, int], int] = {}
        self._conditions: dict[int, int] = {}

    def derive(self, expression: int) -> int:
        """D: the derivative of an expression that runs to the end of the text."""
        store = self.store
        if not store.has_assertions(expression):
            return self._plain(expression)
        if expression not in self._derived:
            kind = store.kind(expression)
            if kind == K_UNION:
                result = store.union([self.derive(part) for part in store.members(expression)])
            elif kind == K_INTERSECTION:
                result = store.intersection([self.derive(part) for part in store.members(expression)])
            elif kind == K_COMPLEMENT:
                result = store.complement(self.derive(store.fields(expression)[0]))
            else:
                result = self._consume(expression, EMPTY)
            self._derived[expression] = result
        return self._derived[expression]

    def _plain(self, expression: int) -> int:
        assert self.byte is not None
        return self.known.derivative(expression, self.byte)

    def _consume(self, expression: int, rest: int) -> int:
        """C: the derivatives of ``expression rest`` in which `expression` reads the byte."""
        store = self.store
        if not store.has_assertions(expression):
            return store.concat(self._plain(expression), rest)
        key = expression, rest
        if key not in self._consumed:
            kind, (a, b, c), result = store.kind(expression), store.fields(expression), NOTHING
            if kind == K_CONCAT:
                inside = self._consume(a, store.concat(b, rest))
                result = store.union([inside, self._under(a, lambda: self._consume(b, rest))])
            elif kind == K_UNION:
                result = store.union([self._consume(part, rest) for part in store.members(expression)])
            elif kind == K_REPEAT:
                high = None if c == INFINITE else c - 1
                following = store.concat(store.repeat(a, max(b - 1, 0), high), rest)
                result = self._consume(a, following)
                if b > 1:
                    loose = store.concat(store.repeat(a, 0, high), rest)
                    result = store.union([result, self._under(a, lambda: self._consume(a, loose))])
            elif kind in (K_INTERSECTION, K_COMPLEMENT):
                # only look-ahead makes these, and then they run to the end of the text
                assert rest == EMPTY, "an intersection with assertions must run to the end of the text"
                result = self.derive(expression)
            self._consumed[key] = result
        return self._consumed[key]

    def _under(self, expression: int, consequence: Callable[[], int]) -> int:
        """Z(expression) & consequence(), which is computed only if the condition can hold."""
        condition = self._condition(expression)
        return NOTHING if condition == NOTHING else self.store.intersection([condition, consequence()])

    def _condition(self, expression: int) -> int:
        """Z: under which continuations `expression` matches nothing here."""
        store = self.store
        if not store.has_assertions(expression):
            return ANY_BYTES if store.nullable(expression) else NOTHING
        if expression not in self._conditions:
            kind, (a, b, _) = store.kind(expression), store.fields(expression)
            if kind == K_ASSERTION:
                result = ANY_BYTES if _assertion_holds(ASSERTIONS[a], self.context, self.byte) else NOTHING
            elif kind == K_LOOK_AHEAD:
                ahead = self._rest(a)
                result = store.complement(ahead) if b else ahead
            elif kind == K_CONCAT:
                result = store.intersection([self._condition(a), self._condition(b)])
            elif kind == K_UNION:
                result = store.union([self._condition(part) for part in store.members(expression)])
            elif kind == K_REPEAT:
                result = ANY_BYTES if b == 0 else self._condition(a)
            elif kind == K_INTERSECTION:
                result = store.intersection([self._condition(part) for part in store.members(expression)])
            else:
                result = store.complement(self._condition(a))
            self._conditions[expression] = result
        return self._conditions[expression]

    def _rest(self, expression: int) -> int:
        """D(expression any*), or at the end of the text: any bytes if `expression` matches nothing there."""
        if self.byte is None:
            return self._condition(expression)
        return self._derive_then_anything(expression)

    def _derive_then_anything(self, expression: int) -> int:
        consumed = self._consume(expression, ANY_BYTES)
        return self.store.union([consumed, self._condition(expression)])

    def accepts(self, expression: int) -> bool:
        """Whether `expression` matches nothing at the end of the text (`byte` is None)."""
        assert self.byte is None
        return self._condition(expression) == ANY_BYTES
