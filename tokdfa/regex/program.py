"""Programs of constructor calls for expressions, written down first and run by one kernel call afterwards.

Calling a kernel from Python costs 2 to 4 us, far more than most constructors do, and a pattern needs hundreds of them.
So whoever builds a large expression (`tokdfa.regex.lower`, `literals`, `utf8`) writes a `Program`, and
`tokdfa.regex.expression.ExpressionStore.run` carries it out. Writing an instruction costs about 1 us, running it 0.2.

Words. Each *instruction* is one constructor call and makes one *value*. Values are numbered from 0 in the order in
which they are written; an operand is the number of an earlier value, or an expression that the store already has
(`known`). When the program has run, ``made[value]`` is the expression. More can be written behind and run later.

Code. An instruction is ``operation, count, count operands`` (int32). An operand that is a value is written as its
distance back, which is positive, and an expression e as -e. So code means the same wherever it stands, and a program
that was written once can be included in many others (`Program.include`): the UTF-8 form of a character class, say.

=========  ================================  =====================================================
operation  operands                          value
=========  ================================  =====================================================
LITERAL    bytes                             these bytes one after another
BYTES      8 words                           one byte out of a set of 256 bits
CHOICE     head, tail, head, tail, ...       any head with its tail; heads are disjoint byte sets
CONCAT     parts                             the parts one after another
UNION      parts                             any of the parts
REPEAT     body, low, high                   the body from low to high times (-1: without end)
BOTH       parts                             what all of the parts contain
NOT        body                              what the body does not contain
=========  ================================  =====================================================

The constructors of `ExpressionStore` are programs of one instruction, so that the laws are compiled into one kernel.
"""

from __future__ import annotations

import struct
from array import array
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.core.jit import kernel
from tokdfa.errors import LimitExceeded, OptionError
from tokdfa.regex.laws import (
    flatten_and_sort,
    join,
    make_bytes_kernel,
    make_complement_kernel,
    make_concat_kernel,
    make_intersection_kernel,
    make_literal_kernel,
    make_repeat_kernel,
    make_union_kernel,
)
from tokdfa.regex.nodes import (
    EMPTY,
    F_INHABITED,
    INFINITE,
    K_UNION,
    L_ACI,
    M_LAWS,
    M_SCRATCH,
    M_STATUS,
    MAX_REPEAT,
    NOTHING,
    OK,
    intern_parts,
    push,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

LITERAL, BYTES, CHOICE, CONCAT, UNION, REPEAT, BOTH, NOT = range(8)


def known(expression: int) -> int:
    """An expression of the store, as an operand."""
    return ~expression


def repeat_bounds(low: int, high: int | None) -> tuple[int, int]:
    """The bounds of a repeat as kernels take them. Raises OptionError or LimitExceeded."""
    bounded = INFINITE if high is None else high
    if low < 0 or (high is not None and high < low):
        raise OptionError(f"a repeat from {low} to {high} is not a range")
    if max(low, bounded) > MAX_REPEAT:
        raise LimitExceeded(f"a repeat of {max(low, bounded)} is too large", limit="repeat", value=MAX_REPEAT)
    return low, bounded


class Program:
    """Instructions for one store; see the module's docstring. Each method writes one and returns its value's number.

    ``code``: what has not been run yet; ``count``: values written so far; ``made``: the expressions of those that have
    been run. Both are arrays of int32.
    """

    def __init__(self) -> None:
        self.code = array("i")
        self.count = 0
        self.made = array("i")
        self._included: dict[Program, int] = {}

    def literal(self, text: bytes | bytearray) -> int:
        """Exactly `text`."""
        return self._write(LITERAL, list(text))

    def byte_set(self, members: Iterable[int]) -> int:
        """One byte out of `members`, which are distinct."""
        return self.byte_bits(sum(1 << byte for byte in members))

    def byte_bits(self, bits: int) -> int:
        """One byte out of those whose bits are set."""
        return self._write(BYTES, list(struct.unpack("<8i", bits.to_bytes(32, "little"))))

    def choice(self, edges: Iterable[tuple[int, int]]) -> int:
        """Any head with its tail. The heads are disjoint byte sets and the tails differ, so that no law applies."""
        return self._write(CHOICE, self._operands(operand for edge in edges for operand in edge))

    def concat(self, parts: Iterable[int]) -> int:
        """The parts one after another."""
        return self._write(CONCAT, self._operands(parts))

    def union(self, parts: Iterable[int]) -> int:
        """Any of the parts; nothing if there is none."""
        return self._write(UNION, self._operands(parts))

    def repeat(self, body: int, low: int, high: int | None) -> int:
        """The body from `low` to `high` times (None: without end). Raises OptionError or LimitExceeded."""
        return self._write(REPEAT, [*self._operands((body,)), *repeat_bounds(low, high)])

    def include(self, other: Program) -> int:
        """The last value of `other`, which has not been run; nothing if it is empty. Its code is copied once only."""
        if not other.count:
            return known(NOTHING)
        if other not in self._included:
            self.code.extend(other.code)
            self.count += other.count
            self._included[other] = self.count - 1
        return self._included[other]

    def expression(self, value: int) -> int:
        """The expression that `value` stands for, once it has been run."""
        return self.made[value] if value >= 0 else ~value

    def _operands(self, values: Iterable[int]) -> list[int]:
        given = tuple(values)  # first, since an iterator may write
        here = self.count
        return [here - value if value >= 0 else value + 1 for value in given]

    def _write(self, operation: int, operands: list[int]) -> int:
        self.code.fromlist([operation, len(operands), *operands])
        self.count += 1
        return self.count - 1


@kernel
def _operand(code, position, made, value):  # type: ignore[no-untyped-def]
    """The expression that the operand at `position` means in the instruction for `value`."""
    back = np.int64(code[position])
    return np.int64(made[value - back]) if back > 0 else -back


@kernel
def _push_operands(scratch, meta, code, first, end, made, value):  # type: ignore[no-untyped-def]
    for position in range(first, end):
        push(scratch, meta, _operand(code, position, made, value))


@kernel
def _make_choice_kernel(nodes, arguments, table, scratch, meta, code, first, end, made, value):  # type: ignore[no-untyped-def]
    """The union of heads with their tails, which no law can simplify; so it is only sorted and interned."""
    base = meta[M_SCRATCH]
    for position in range(first, end, 2):
        head, tail = _operand(code, position, made, value), _operand(code, position + 1, made, value)
        push(scratch, meta, join(nodes, arguments, table, scratch, meta, head, tail))
    if meta[M_STATUS] != OK:
        return np.int64(NOTHING)
    if meta[M_SCRATCH] == base + 1:
        meta[M_SCRATCH] = base
        return np.int64(scratch[base])
    if meta[M_LAWS] & L_ACI:
        flatten_and_sort(nodes, arguments, scratch, meta, base, K_UNION)
    return intern_parts(nodes, arguments, table, scratch, meta, K_UNION | F_INHABITED, base)


@kernel
def run_program_kernel(nodes, arguments, table, scratch, meta, code, made, progress):  # type: ignore[no-untyped-def]
    """Run `code` from ``progress`` (next position, next value) on; stop there when an array of the store is full."""
    position, value = progress
    while position < len(code):
        operation, first = code[position], position + 2
        end = first + code[position + 1]
        base = meta[M_SCRATCH]
        result = np.int64(NOTHING)
        if operation == LITERAL:
            result = make_literal_kernel(nodes, arguments, table, scratch, meta, code, first, end)
        elif operation == BYTES:
            result = make_bytes_kernel(nodes, arguments, table, scratch, meta, code, first)
        elif operation == CHOICE:
            result = _make_choice_kernel(nodes, arguments, table, scratch, meta, code, first, end, made, value)
        elif operation == CONCAT:
            result = np.int64(EMPTY)
            for k in range(end - 1, first - 1, -1):
                head = _operand(code, k, made, value)
                result = make_concat_kernel(nodes, arguments, table, scratch, meta, head, result)
                if meta[M_STATUS] != OK:
                    break
        elif operation in (UNION, BOTH):
            _push_operands(scratch, meta, code, first, end, made, value)
            if meta[M_STATUS] == OK:
                if operation == UNION:
                    result = make_union_kernel(nodes, arguments, table, scratch, meta, base)
                else:
                    result = make_intersection_kernel(nodes, arguments, table, scratch, meta, base)
        elif operation == NOT:
            body = _operand(code, first, made, value)
            result = make_complement_kernel(nodes, arguments, table, scratch, meta, body)
        else:
            body = _operand(code, first, made, value)
            low, high = np.int64(code[first + 1]), np.int64(code[first + 2])
            result = make_repeat_kernel(nodes, arguments, table, scratch, meta, body, low, high)
        if meta[M_STATUS] != OK:
            return
        made[value] = result
        position, value = end, value + 1
        progress[0], progress[1] = position, value
