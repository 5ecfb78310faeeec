"""Brzozowski derivatives: what is left of a language after one byte.

Theory. The derivative of a language L by a byte b is ``{s : b s in L}``. For expressions without assertions:

- by b, a byte set gives empty if it has b, else nothing; unions, intersections and complements map over their parts;
- a concatenation h t gives ``d(h) t``, and, if h is nullable, also ``d(t)``;
- a repeat e{m,n} gives ``d(e) e{m-1,n-1}``. If e is nullable its constructor has set m to 0, so empty rounds that would
  use up the minimum need no case of their own. (Where that law is off, ``d(e) e{0,n-1}`` is used.)

Bytes that no byte set of the expression tells apart have equal derivatives, now and for ever: they form one *class*,
and derivatives are taken once a class. `partition_bytes` computes the classes.

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

Sources: Brzozowski 1964; Owens, Reppy, Turon 2009 (classes); 000. Conditions for zero-width nodes: ours, in the spirit
of location-based derivatives (Moseley et al., PLDI 2023).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.jit import kernel
from tokdfa.regex.laws import (
    _make_complement_kernel,
    _make_concat_kernel,
    _make_intersection_kernel,
    _make_repeat_kernel,
    _make_union_kernel,
)
from tokdfa.regex.nodes import (
    ANY_BYTES,
    ASSERTIONS,
    EMPTY,
    F_NULLABLE,
    FULL_MEMO,
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
    _mix,
    _push,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.regex.expression import ExpressionStore

#: Contexts: what came before.
AT_START, AFTER_NEWLINE, AFTER_WORD, AFTER_OTHER = range(4)
#: The ASCII word bytes, as \w and \b mean them.
WORD_BYTES: npt.NDArray[np.bool_] = np.array([chr(byte).isalnum() or chr(byte) == "_" for byte in range(256)])
WORD_BYTES[128:] = False
NEWLINE = 0x0A


class BytePartition(NamedTuple):
    """What the bytes are to an expression.

    ``byte_class``: uint8, shape (256,), classes in order of their first byte; ``representatives``: uint8, shape
    (classes,), one byte of each; ``bytes_read``: bool, shape (256,), the bytes that some text of it may contain (an
    over-approximation: all, if there is a complement).
    """

    byte_class: npt.NDArray[np.uint8]
    representatives: npt.NDArray[np.uint8]
    bytes_read: npt.NDArray[np.bool_]


def partition_bytes(store: ExpressionStore, root: int) -> BytePartition:
    """The byte classes of `root` and everything derived from it. O(256 x byte sets below root)."""
    byte_class = np.zeros(256, dtype=np.uint8)
    reached = np.zeros(root + 1, dtype=np.bool_)
    bytes_read = np.zeros(256, dtype=np.bool_)
    _refine_classes_kernel(store.nodes, store.arguments, root, reached, byte_class, bytes_read)
    if store.has_assertions(root):
        asked = byte_class.astype(np.int64) * 4 + WORD_BYTES * 2 + (np.arange(256) == NEWLINE)
        byte_class = np.unique(asked, return_inverse=True)[1].astype(np.uint8)
    _, first, inverse = np.unique(byte_class, return_index=True, return_inverse=True)
    by_first_byte = np.argsort(np.argsort(first))
    return BytePartition(by_first_byte[inverse].astype(np.uint8), np.sort(first).astype(np.uint8), bytes_read)


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

    `byte` None stands for the end of the text; then only `accepts` is meaningful.
    """

    def __init__(self, store: ExpressionStore, context: int, byte: int | None) -> None:
        self.store, self.context, self.byte = store, context, byte
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
        return derive(self.store, expression, self.byte)

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


class DerivativeMemo:
    """Derivatives already taken: a hash table that forgets everything when it grows.

    ``keys`` (int64: expression << 8 | byte, -1 if free; one more entry at the end counts those taken) and ``values``.
    """

    def __init__(self, slots: int = 1 << 9) -> None:
        self.keys: npt.NDArray[np.int64] = np.full(slots + 1, -1, dtype=np.int64)
        self.keys[-1] = 0
        self.values: npt.NDArray[np.int32] = np.zeros(slots, dtype=np.int32)

    def grow(self) -> None:
        """Twice the room, and empty."""
        self.__init__(2 * len(self.values))  # type: ignore[misc]


def derive(store: ExpressionStore, expression: int, byte: int) -> int:
    """The derivative of an expression without assertions by one byte. For many, `tokdfa.regex.lazy_dfa` is faster."""
    memo = DerivativeMemo()
    while True:
        result = _derive_kernel(*store.arrays, memo.keys, memo.values, expression, byte)
        full = store.meta[M_STATUS] == FULL_MEMO
        if store.check_status():
            return int(result)
        if full:
            memo.grow()


@kernel
def _refine_classes_kernel(nodes, arguments, root, reached, byte_class, bytes_read):  # type: ignore[no-untyped-def]
    """Split `byte_class` by every byte set below `root`; `reached` (bool, root + 1) comes all False."""
    reached[root] = True
    classes = 1
    renamed = np.empty(512, dtype=np.int64)
    for node in range(root, -1, -1):
        if not reached[node]:
            continue
        kind = nodes[node, 0] & 0xFF
        if kind == K_CONCAT:
            reached[nodes[node, 1]] = True
            reached[nodes[node, 2]] = True
        elif kind in (K_UNION, K_INTERSECTION):
            for k in range(nodes[node, 1], nodes[node, 1] + nodes[node, 2]):
                reached[arguments[k]] = True
        elif kind in (K_COMPLEMENT, K_REPEAT, K_LOOK_AHEAD):
            reached[nodes[node, 1]] = True
            if kind == K_COMPLEMENT:
                bytes_read[:] = True
        elif kind == K_BYTES:
            start = nodes[node, 1]
            for byte in range(256):
                bytes_read[byte] |= (arguments[start + (byte >> 5)] >> (byte & 31)) & 1 != 0
            if classes == 256:
                continue
            renamed[:] = -1
            classes = 0
            for byte in range(256):
                inside = (arguments[start + (byte >> 5)] >> (byte & 31)) & 1
                old = 2 * np.int64(byte_class[byte]) + inside
                if renamed[old] < 0:
                    renamed[old] = classes
                    classes += 1
                byte_class[byte] = renamed[old]


@kernel
def _nullable(nodes, expression):  # type: ignore[no-untyped-def]
    return nodes[expression, 0] & F_NULLABLE != 0


@kernel
def _derive_kernel(nodes, arguments, table, scratch, meta, memo_keys, memo_values, expression, byte):  # type: ignore[no-untyped-def]
    """The derivative of `expression` by `byte`; undefined (and not remembered) unless the status is OK afterwards.

    `memo_keys` and `memo_values` (see `DerivativeMemo`) remember derivatives of compound expressions.
    Recursion goes down the nesting of the expression only; along a concatenation it is a loop.
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

    slots = np.uint64(len(memo_values) - 1)
    key = np.int64(expression) << 8 | np.int64(byte)
    slot = _mix(key) & slots
    while memo_keys[slot] != -1:
        if memo_keys[slot] == key:
            return np.int64(memo_values[slot])
        slot = (slot + np.uint64(1)) & slots

    base = meta[M_SCRATCH]
    result = np.int64(NOTHING)
    if kind == K_CONCAT:
        rest = np.int64(expression)
        while True:
            if nodes[rest, 0] & 0xFF != K_CONCAT:
                part = _derive_kernel(nodes, arguments, table, scratch, meta, memo_keys, memo_values, rest, byte)
                _push(scratch, meta, part)
                break
            head, tail = np.int64(nodes[rest, 1]), np.int64(nodes[rest, 2])
            part = _derive_kernel(nodes, arguments, table, scratch, meta, memo_keys, memo_values, head, byte)
            part = _make_concat_kernel(nodes, arguments, table, scratch, meta, part, tail)
            _push(scratch, meta, part)
            if not _nullable(nodes, head) or meta[M_STATUS] != OK:
                break
            rest = tail
        result = _make_union_kernel(nodes, arguments, table, scratch, meta, base)
    elif kind in (K_UNION, K_INTERSECTION):
        for k in range(nodes[expression, 2]):
            member = np.int64(arguments[nodes[expression, 1] + k])
            part = _derive_kernel(nodes, arguments, table, scratch, meta, memo_keys, memo_values, member, byte)
            _push(scratch, meta, part)
            if meta[M_STATUS] != OK:
                break
        if kind == K_UNION:
            result = _make_union_kernel(nodes, arguments, table, scratch, meta, base)
        else:
            result = _make_intersection_kernel(nodes, arguments, table, scratch, meta, base)
    elif kind == K_COMPLEMENT:
        part = _derive_kernel(
            nodes, arguments, table, scratch, meta, memo_keys, memo_values, np.int64(nodes[expression, 1]), byte
        )
        result = _make_complement_kernel(nodes, arguments, table, scratch, meta, part)
    elif kind == K_REPEAT:
        body = np.int64(nodes[expression, 1])
        low, high = np.int64(nodes[expression, 2]), np.int64(nodes[expression, 3])
        part = _derive_kernel(nodes, arguments, table, scratch, meta, memo_keys, memo_values, body, byte)
        if part != NOTHING:
            low = np.int64(0) if _nullable(nodes, body) else max(low - 1, np.int64(0))
            if high != INFINITE:
                high -= 1
            rest = _make_repeat_kernel(nodes, arguments, table, scratch, meta, body, low, high)
            result = _make_concat_kernel(nodes, arguments, table, scratch, meta, part, rest)
    meta[M_SCRATCH] = base
    if meta[M_STATUS] != OK:
        return np.int64(NOTHING)
    if 2 * memo_keys[-1] >= len(memo_values):
        meta[M_STATUS] = FULL_MEMO
        return np.int64(NOTHING)
    slot = _mix(key) & slots  # the slot found above may be taken by now
    while memo_keys[slot] != -1 and memo_keys[slot] != key:
        slot = (slot + np.uint64(1)) & slots
    memo_keys[-1] += memo_keys[slot] == -1
    memo_keys[slot] = key
    memo_values[slot] = result
    return result
