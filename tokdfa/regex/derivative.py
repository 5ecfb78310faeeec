"""Brzozowski derivatives: what is left of a language after one byte.

Theory. The derivative of a language L by a byte b is ``{s : b s in L}``. For expressions without assertions:

- by b, a byte set gives empty if it has b, else nothing; unions, intersections and complements map over their parts;
- a concatenation h t gives ``d(h) t``, and, if h is nullable, also ``d(t)``;
- a repeat e{m,n} gives ``d(e) e{m-1,n-1}``. If e is nullable its constructor has set m to 0, so empty rounds that would
  use up the minimum need no case of their own. (Where that law is off, ``d(e) e{0,n-1}`` is used.)

Derivatives are taken once for bytes that cannot differ (see `tokdfa.regex.derivative_classes`), and remembered.

Zero-width nodes. A *context* is what an assertion can ask of the past: at the start of the text, after a newline, after
a word byte, after another byte. What it can ask of the future is the next byte, which is the byte we derive by, or the
end of the text. Look-ahead speaks about the whole rest of the text. So we derive ``e K``, K being the rest of the
expression up to the end of the text, as

    D(e K) = C(e, K)  |  (Z(e) & D(K))

where C(e, K) are the derivatives in which the byte is read by e, and Z(e) is the condition, a language of what follows
the byte, under which e matches nothing and stays where it is (any bytes: always; nothing: never):

    Z(look-ahead X) = D(X any*),  ~D(X any*) if negative;    Z(assertion) = any* or nothing, by context and byte
    Z(h t) = Z(h) & Z(t);   Z(a|b) = Z(a) | Z(b);   Z(e{m,n}) = any* if m = 0, else Z(e)
    C(h t, K) = C(h, t K)  |  (Z(h) & C(t, K));     C(a|b, K) = C(a, K) | C(b, K);   C(zero-width, K) = nothing
    C(e{m,n}, K) = C(e, e{m-1,n-1} K)  |  (Z(e) & C(e, e{0,n-1} K))

(the last, because rounds that match nothing here can use up the minimum, under the same condition for all of them).
Intersections and complements made by look-ahead stand for whole rests of the text: D maps over them. This is exact for
assertions anywhere, loops included; it runs in Python, once for each class and state that still has an assertion.

Sources: Brzozowski 1964; 000. Conditions for zero-width nodes: ours, in the spirit of location-based derivatives
(Moseley et al., PLDI 2023).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.core.jit import kernel
from tokdfa.regex.derivative_classes import NEWLINE, P_ENTRY, P_PARTITION, WORD_BYTES, classify_kernel
from tokdfa.regex.laws import (
    make_complement_kernel,
    make_concat_kernel,
    make_intersection_kernel,
    make_repeat_kernel,
    make_union_kernel,
)
from tokdfa.regex.nodes import (
    ANY_BYTES,
    ASSERTIONS,
    EMPTY,
    F_NULLABLE,
    INFINITE,
    K_ASSERTION,
    K_BYTES,
    K_COMPLEMENT,
    K_CONCAT,
    K_EMPTY,
    K_INTERSECTION,
    K_LOOK_AHEAD,
    K_REPEAT,
    K_UNION,
    M_SCRATCH,
    M_STATUS,
    NOTHING,
    OK,
    push,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.regex.derivative_classes import DerivativeTable
    from tokdfa.regex.expression import ExpressionStore

#: Contexts: what came before.
AT_START, AFTER_NEWLINE, AFTER_WORD, AFTER_OTHER = range(4)


def context_after(byte: int) -> int:
    """The context that `byte` leaves behind."""
    if byte == NEWLINE:
        return AFTER_NEWLINE
    return AFTER_WORD if WORD_BYTES[byte] else AFTER_OTHER


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
    at_boundary = (context == AFTER_WORD) != (byte is not None and bool(WORD_BYTES[byte]))
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
                result = store.complement(self.derive(int(store.nodes[expression, 1])))
            else:
                result = self._consume(expression, EMPTY)
            self._derived[expression] = result
        return self._derived[expression]

    def _plain(self, expression: int) -> int:
        assert self.byte is not None
        return derive(self.store, self.known, expression, self.byte)

    def _consume(self, expression: int, rest: int) -> int:
        """C: the derivatives of ``expression rest`` in which `expression` reads the byte."""
        store = self.store
        if not store.has_assertions(expression):
            return store.concat(self._plain(expression), rest)
        key = expression, rest
        if key not in self._consumed:
            kind, (_, a, b, c) = store.kind(expression), store.nodes[expression].tolist()
            result = NOTHING
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
            kind, (_, a, b, _) = store.kind(expression), store.nodes[expression].tolist()
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


def derive(store: ExpressionStore, known: DerivativeTable, expression: int, byte: int) -> int:
    """The derivative of an expression without assertions by one byte. For many, `tokdfa.regex.lazy_dfa` is faster."""
    while True:
        result = _derive_once_kernel(*store.arrays, known.struct, expression, int(known.classes.byte_class[byte]))
        if store.check_status():
            return int(result)
        known.grow()


@kernel
def _nullable(nodes, expression):  # type: ignore[no-untyped-def]
    return nodes[expression, 0] & F_NULLABLE != 0


@kernel
def _derive_once_kernel(nodes, arguments, table, scratch, meta, store, expression, byte_class):  # type: ignore[no-untyped-def]
    """The derivative of an expression without assertions by the bytes of a class; undefined unless the status is OK."""
    classify_kernel(nodes, arguments, meta, store, expression)
    if meta[M_STATUS] != OK:
        return np.int64(NOTHING)
    byte = np.int64(store.representatives[byte_class])
    return derive_kernel(nodes, arguments, table, scratch, meta, store, expression, byte_class, byte)


@kernel
def derive_kernel(nodes, arguments, table, scratch, meta, store, expression, byte_class, byte):  # type: ignore[no-untyped-def]
    """The derivative of a classified expression by `byte`, of class `byte_class`; undefined unless the status is OK.

    `store`: the arrays of `tokdfa.regex.derivative_classes.DerivativeTable`, of which ``known[places[e, P_ENTRY] + l]``
    remembers the derivative of expression e by its local class l. Byte sets, and concatenations that begin with one,
    need no memory. Recursion goes down the nesting of the expression only; along a concatenation it is a loop.
    """
    kind = nodes[expression, 0] & 0xFF
    if kind == K_BYTES:
        start = nodes[expression, 1]
        if (arguments[start + (byte >> 5)] >> (byte & 31)) & 1:
            return np.int64(EMPTY)
        return np.int64(NOTHING)
    if kind <= K_EMPTY or meta[M_STATUS] != OK:
        return np.int64(NOTHING)
    if kind == K_CONCAT:
        head = nodes[expression, 1]
        if nodes[head, 0] & 0xFF == K_BYTES:
            start = nodes[head, 1]
            if (arguments[start + (byte >> 5)] >> (byte & 31)) & 1:
                return np.int64(nodes[expression, 2])
            return np.int64(NOTHING)

    places = store.places
    entry = places[expression, P_ENTRY] + store.partitions[places[expression, P_PARTITION], byte_class]
    if store.known[entry] >= 0:
        return np.int64(store.known[entry])

    base = meta[M_SCRATCH]
    result = np.int64(NOTHING)
    if kind == K_CONCAT:
        rest = np.int64(expression)
        while True:
            if nodes[rest, 0] & 0xFF != K_CONCAT:
                part = derive_kernel(nodes, arguments, table, scratch, meta, store, rest, byte_class, byte)
                push(scratch, meta, part)
                break
            head, tail = np.int64(nodes[rest, 1]), np.int64(nodes[rest, 2])
            part = derive_kernel(nodes, arguments, table, scratch, meta, store, head, byte_class, byte)
            part = make_concat_kernel(nodes, arguments, table, scratch, meta, part, tail)
            push(scratch, meta, part)
            if not _nullable(nodes, head) or meta[M_STATUS] != OK:
                break
            rest = tail
        result = make_union_kernel(nodes, arguments, table, scratch, meta, base)
    elif kind in (K_UNION, K_INTERSECTION):
        for k in range(nodes[expression, 2]):
            member = np.int64(arguments[nodes[expression, 1] + k])
            part = derive_kernel(nodes, arguments, table, scratch, meta, store, member, byte_class, byte)
            push(scratch, meta, part)
            if meta[M_STATUS] != OK:
                break
        if kind == K_UNION:
            result = make_union_kernel(nodes, arguments, table, scratch, meta, base)
        else:
            result = make_intersection_kernel(nodes, arguments, table, scratch, meta, base)
    elif kind in (K_COMPLEMENT, K_REPEAT):
        body = np.int64(nodes[expression, 1])
        part = derive_kernel(nodes, arguments, table, scratch, meta, store, body, byte_class, byte)
        if kind == K_COMPLEMENT:
            result = make_complement_kernel(nodes, arguments, table, scratch, meta, part)
        elif part != NOTHING:
            low, high = np.int64(nodes[expression, 2]), np.int64(nodes[expression, 3])
            low = np.int64(0) if low == 0 or _nullable(nodes, body) else low - 1
            if high != INFINITE:
                high -= 1
            rest = make_repeat_kernel(nodes, arguments, table, scratch, meta, body, low, high)
            result = make_concat_kernel(nodes, arguments, table, scratch, meta, part, rest)
    meta[M_SCRATCH] = base
    if meta[M_STATUS] != OK:
        return np.int64(NOTHING)
    store.known[entry] = result
    return result
