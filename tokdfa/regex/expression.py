"""Expressions over bytes, hash-consed: equal expressions are one number.

Theory. An expression denotes a set of byte strings: nothing (the empty set), empty (the empty string), a byte set,
concatenation, union, intersection, complement, bounded or unbounded repetition; and, for patterns whose assertions
cannot be resolved beforehand, zero-width nodes: look-ahead and the assertions of `ASSERTIONS`. Every constructor first
simplifies by algebraic laws and then interns: an equal node is found in a table and its number returned. So
equality of expressions is equality of numbers, and the derivatives of one expression, taken by all bytes for ever, are
finitely many numbers (Brzozowski 1964: already under associativity, commutativity and idempotence of union). The more
laws, the fewer numbers, hence the fewer DFA states; `LAWS` names the laws, and each can be switched off to see what it
buys (``python -m tests.regex.count_states``).

Storage. Node n is row n of ``nodes`` (int32: kind and flags, a, b, c). Unions, intersections and byte sets keep their
members or 256 bits in ``arguments``. Children have smaller numbers than parents. Flags are computed when a node is
made: *nullable* (contains the empty string, whatever the context), *surely inhabited* (an under-approximation of
non-emptiness, exact where there is no intersection, complement or assertion), *asserts* and *boolean* (some node below
is zero-width, or an intersection or complement).

Growth. Kernels never write past an array: they set a status, and the Python side grows the arrays and calls again
(interning twice is harmless). Work and memory count towards the budget (`tokdfa.core.budget`).

Source: Owens, Reppy, Turon, "Regular-expression derivatives re-examined" (2009); 000 for the use of derivatives in
token masks. The merge laws for byte sets and repeats are ours.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokdfa.core.budget import spend
from tokdfa.core.interning import COUNT, Column, InterningTable, Limit
from tokdfa.errors import UnknownNameError
from tokdfa.regex.nodes import (
    ALL_LAWS,
    ANY_BYTE,
    ANY_BYTES,
    ASSERTIONS,
    EMPTY,
    F_ASSERTS,
    F_BOOLEAN,
    F_CONTEXT,
    F_INHABITED,
    F_NULLABLE,
    F_PARTS,
    FULL_NODES,
    FULL_SCRATCH,
    INFINITE,
    K_ASSERTION,
    K_BYTES,
    K_COMPLEMENT,
    K_CONCAT,
    K_EMPTY,
    K_INTERSECTION,
    K_LOOK_AHEAD,
    K_NOTHING,
    K_REPEAT,
    K_UNION,
    KIND_NAMES,
    LAWS,
    M_LAWS,
    M_SCRATCH,
    M_STATUS,
    NOTHING,
    NS_PER_UNIT,
    OK,
    intern_node_kernel,
)
from tokdfa.regex.program import (
    BOTH,
    BYTES,
    CONCAT,
    LITERAL,
    NOT,
    REPEAT,
    UNION,
    Program,
    repeat_bounds,
    run_program_kernel,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["ANY_BYTE", "ANY_BYTES", "ASSERTIONS", "EMPTY", "LAWS", "NOTHING", "ExpressionStore"]

#: What a call of a constructor takes, without its work.
NS_PER_CALL = 4_000
#: Writes the expressions that every store begins with.
_FIRST = Program()
_FIRST.repeat(_FIRST.byte_set(range(256)), 0, None)


class ExpressionStore:
    """A growing set of interned expressions; see the module's docstring. Not thread-safe.

    `without_laws`: names from `LAWS` to switch off. `max_expressions`: limit on distinct expressions (about 40 bytes
    each). Past it, or past the budget, constructors raise LimitExceeded; what was made stays usable.
    """

    def __init__(self, without_laws: Iterable[str] = (), max_expressions: int = 4_000_000) -> None:
        laws = ALL_LAWS
        for name in without_laws:
            if name not in LAWS:
                raise UnknownNameError("simplification law", name, LAWS)
            laws &= ~LAWS[name]
        limit = Limit(
            max_expressions,
            "max_expressions",
            f"the expression has more than {max_expressions} derivatives and parts; "
            "lower its repeat bounds or split it",
        )
        self.table = InterningTable({"nodes": Column(np.int32, 4)}, entries=1024, words=8192, limit=limit)
        #: int32, shape (room, 4), and int64: the nodes and their arguments, as of the table now.
        self.nodes: npt.NDArray[np.int32] = self.table.columns["nodes"]
        self.arguments: npt.NDArray[np.int64] = self.table.words
        self.scratch: npt.NDArray[np.int32] = np.zeros(2048, dtype=np.int32)
        self.meta: npt.NDArray[np.int64] = np.zeros(8, dtype=np.int64)
        self.meta[M_LAWS] = laws
        for node, word in ((NOTHING, K_NOTHING), (EMPTY, K_EMPTY | F_NULLABLE | F_INHABITED)):
            self.nodes[node, 0] = word
        self.table.meta[COUNT] = 2  # without contents, as no constructor looks for them
        self._byte_sets: dict[bytes, int] = {}
        first = Program()
        first.include(_FIRST)
        self.run(first)
        assert first.made.tolist() == [ANY_BYTE, ANY_BYTES]

    def __len__(self) -> int:
        return len(self.table)

    # Constructors. Each returns the number of an expression.

    def byte_set(self, members: Iterable[int] | npt.NDArray[np.bool_]) -> int:
        """One byte out of `members`: byte values, or booleans of shape (256,)."""
        if isinstance(members, np.ndarray) and members.dtype == np.bool_:
            flags = members
        else:
            flags = np.zeros(256, dtype=np.bool_)
            flags[list(members)] = True
        packed = np.packbits(flags, bitorder="little")
        key = packed.tobytes()
        if key not in self._byte_sets:
            self._byte_sets[key] = self._construct(BYTES, packed.view(np.dtype("<i4")))
        return self._byte_sets[key]

    def literal(self, text: bytes) -> int:
        """Exactly `text`."""
        return self._construct(LITERAL, np.frombuffer(text, dtype=np.uint8)) if text else EMPTY

    def concat(self, *parts: int) -> int:
        """The parts one after another."""
        return self._combine(CONCAT, parts)

    def union(self, parts: Iterable[int]) -> int:
        """Any of the parts; nothing if there is none."""
        return self._combine(UNION, tuple(parts))

    def intersection(self, parts: Iterable[int]) -> int:
        """What all of the parts contain; any bytes if there is no part."""
        return self._combine(BOTH, tuple(parts))

    def complement(self, expression: int) -> int:
        """All byte strings that `expression` does not contain (valid UTF-8 or not)."""
        return self._construct(NOT, _known([expression]))

    def repeat(self, expression: int, low: int, high: int | None) -> int:
        """`expression` from `low` to `high` times (None: without end)."""
        return self._construct(REPEAT, [*_known([expression]), *repeat_bounds(low, high)])

    def look_ahead(self, expression: int, negative: bool = False) -> int:
        """Zero-width: the rest of the text begins (does not begin) with a match of `expression`."""
        flags = F_ASSERTS | F_BOOLEAN | (int(self.nodes[expression, 0]) & F_CONTEXT)
        return self._intern_node(K_LOOK_AHEAD | flags, expression, int(negative), 0)

    def assertion(self, name: str) -> int:
        """Zero-width: one of `ASSERTIONS`."""
        if name not in ASSERTIONS:
            raise UnknownNameError("assertion", name, ASSERTIONS)
        return self._intern_node(K_ASSERTION | F_PARTS, ASSERTIONS.index(name), 0, 0)

    def run(self, program: Program) -> None:
        """Carry out what `program` has written and not run yet; its ``made`` then has the expressions.

        One kernel call, and one more each time an array has to grow; it then goes on where it stopped. A program
        belongs to the store that runs it. Raises LimitExceeded; the program is then of no more use.
        """
        progress = np.array([0, len(program.made)], dtype=np.int64)
        program.made.frombytes(bytes(4 * (program.count - len(program.made))))
        made, code = np.frombuffer(program.made, dtype=np.int32), np.array(program.code, dtype=np.int32)
        self._run_code(code, made, progress)
        program.code = array("i")

    # Questions.

    def kind(self, expression: int) -> int:
        """One of the ``K_`` constants."""
        return int(self.nodes[expression, 0]) & 0xFF

    def nullable(self, expression: int) -> bool:
        """Contains the empty string in every context (of an expression without assertions: contains it)."""
        return bool(self.nodes[expression, 0] & F_NULLABLE)

    def has_assertions(self, expression: int) -> bool:
        """Some node below is a look-ahead or an assertion."""
        return bool(self.nodes[expression, 0] & F_ASSERTS)

    def reads_context(self, expression: int) -> bool:
        """Some node below is an assertion, which may ask what came before."""
        return bool(self.nodes[expression, 0] & F_CONTEXT)

    def is_boolean(self, expression: int) -> bool:
        """Some node below is an intersection, a complement, a look-ahead or an assertion: emptiness needs a proof."""
        return bool(self.nodes[expression, 0] & F_BOOLEAN)

    def members(self, expression: int) -> list[int]:
        """The parts of a union or intersection, sorted by number."""
        _, start, count, _ = self.nodes[expression].tolist()
        return self.arguments[start : start + count].tolist()

    def bytes_of(self, expression: int) -> npt.NDArray[np.bool_]:
        """The members of a byte set: bool, shape (256,)."""
        return np.unpackbits(np.frombuffer(self.bits_of(expression), np.uint8), bitorder="little").astype(np.bool_)

    def bits_of(self, expression: int) -> bytes:
        """The members of a byte set as 256 bits, the lowest first."""
        start = int(self.nodes[expression, 1])
        return self.arguments[start : start + 8].astype("<i4").tobytes()

    def view(self, expression: int) -> tuple[Any, ...]:
        """A readable view of one node: its kind's name and its parts.

        ("bytes", bool[256]), ("concat", head, tail), ("union", [parts]), ("intersection", [parts]), ("complement", e),
        ("repeat", e, low, high or None), ("look_ahead", e, negative), ("assertion", name), ("nothing",), ("empty",).
        """
        kind, (_, a, b, c) = self.kind(expression), self.nodes[expression].tolist()
        name = KIND_NAMES[kind]
        if kind == K_BYTES:
            return name, self.bytes_of(expression)
        if kind in (K_UNION, K_INTERSECTION):
            return name, self.members(expression)
        if kind == K_CONCAT:
            return name, a, b
        if kind == K_REPEAT:
            return name, a, b, None if c == INFINITE else c
        if kind == K_COMPLEMENT:
            return name, a
        if kind == K_LOOK_AHEAD:
            return name, a, bool(b)
        if kind == K_ASSERTION:
            return name, ASSERTIONS[a]
        return (name,)

    # Growth.

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What every kernel takes first."""
        return self.nodes, self.arguments, self.table.struct, self.scratch, self.meta

    def check_status(self) -> bool:
        """After a kernel: True if all went well, False if it must run again (arrays have grown); or LimitExceeded."""
        status = int(self.meta[M_STATUS])
        self.meta[M_SCRATCH] = 0
        self.meta[M_STATUS] = OK
        if status != OK:
            self._grow(status)
        return status == OK

    def _grow(self, status: int) -> None:
        """Twice as much of what ran out. (A full memo is its owner's business.)"""
        if status == FULL_SCRATCH:
            self.scratch = np.zeros(2 * len(self.scratch), dtype=np.int32)
        elif status == FULL_NODES:
            self.table.grow()
            self.nodes, self.arguments = self.table.columns["nodes"], self.table.words

    def _combine(self, operation: int, parts: Sequence[int]) -> int:
        """Run a program of one instruction, which leaves one part as it is."""
        return int(parts[0]) if len(parts) == 1 else self._construct(operation, _known(parts))

    def _construct(self, operation: int, operands: Sequence[int] | npt.NDArray[Any]) -> int:
        """Run a program of one instruction."""
        spend(NS_PER_CALL + NS_PER_UNIT * len(operands))
        code = np.array([operation, len(operands), *operands], dtype=np.int32)
        self._run_code(code, made := np.zeros(1, dtype=np.int32), np.zeros(2, dtype=np.int64))
        return int(made[0])

    def _run_code(
        self, code: npt.NDArray[np.int32], made: npt.NDArray[np.int32], progress: npt.NDArray[np.int64]
    ) -> None:
        while True:
            run_program_kernel(*self.arrays, code, made, progress)
            if self.check_status():
                return

    def _intern_node(self, *content: int) -> int:
        spend(NS_PER_CALL)
        while True:
            result = intern_node_kernel(*self.arrays, *content)
            if self.check_status():
                return int(result)


def _known(expressions: Iterable[int]) -> list[int]:
    """Expressions of the store as operands of an instruction."""
    return [-int(expression) for expression in expressions]
