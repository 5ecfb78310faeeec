"""Derivatives by classes of bytes against Brzozowski's rules byte by byte."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.regex.terms import build, terms
from tokdfa.regex.derivative import DerivativeTable, partition_bytes
from tokdfa.regex.expression import EMPTY, NOTHING, ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa

SETS = [b"a", b"ab", b"bc", b"cd", b"abcdef", b"\x80\x81", b"\x81\x82\x83", bytes(range(0x80, 0xC0)), bytes(range(256))]
SETS += [bytes(set(range(256)) - set(b'"\\')), b"\x00", b"\xff"]
BYTES = sorted({byte for members in SETS for byte in (members[0], members[-1])} | {*b"abcdefg", 0x82, 0xC1})


@st.composite
def wide_terms(draw: st.DrawFn) -> tuple:
    """Terms over SETS, which overlap."""

    def widened(term: tuple) -> tuple:
        if term[0] == "bytes":
            return "bytes", frozenset(draw(st.sampled_from(SETS)))
        return tuple(
            widened(part)
            if isinstance(part, tuple)
            else [widened(member) for member in part]
            if isinstance(part, list)
            else part
            for part in term
        )

    return widened(draw(terms()))


def parts_of(store: ExpressionStore, expression: int) -> list[int]:
    name, *rest = store.view(expression)
    if name in ("union", "intersection"):
        return rest[0]
    return rest[:2] if name == "concat" else rest[:1] if name in ("complement", "repeat") else []


def plain_derive(store: ExpressionStore, expression: int, byte: int) -> int:
    """Brzozowski's rules, with the constructors of `store`."""
    name, *rest = store.view(expression)
    if name == "bytes":
        return EMPTY if rest[0][byte] else NOTHING
    if name == "concat":
        alternatives = []
        while store.view(expression)[0] == "concat":
            _, head, expression = store.view(expression)
            alternatives.append(store.concat(plain_derive(store, head, byte), expression))
            if not store.nullable(head):
                return store.union(alternatives)
        return store.union([*alternatives, plain_derive(store, expression, byte)])
    derived = [plain_derive(store, part, byte) for part in parts_of(store, expression)]
    if name == "union":
        return store.union(derived)
    if name == "intersection":
        return store.intersection(derived)
    if name == "complement":
        return store.complement(derived[0])
    if name == "repeat":
        body, low, high = rest
        low = 0 if store.nullable(body) else max(low - 1, 0)
        return store.concat(derived[0], store.repeat(body, low, None if high is None else high - 1))
    return NOTHING


@given(wide_terms())
def test_rows_equal_those_by_deriving_by_every_byte(term: tuple) -> None:
    store = ExpressionStore()
    dfa = LazyDfa(store, build(store, term))
    table = DerivativeTable(store, partition_bytes(store, dfa.root))
    state = 0
    while state < min(dfa.state_count, 12):
        expression = dfa.expression(state)
        dfa.fill_row(state * dfa.class_count)
        row = dfa.raw[state * dfa.class_count : (state + 1) * dfa.class_count]
        for byte in BYTES:
            target = int(row[dfa.byte_class[byte]])
            expected = plain_derive(store, expression, byte)
            assert (dfa.expression(target // dfa.class_count) if target >= 0 else NOTHING) == expected
            assert table.derivative(expression, byte) == expected
        state += 1


@given(wide_terms(), st.integers(2, 5))
def test_derivatives_are_the_same_with_too_few_partitions(term: tuple, most_partitions: int) -> None:
    store = ExpressionStore()
    root = build(store, term)
    table = DerivativeTable(store, partition_bytes(store, root), most_partitions)
    for expression in (root, *(plain_derive(store, root, byte) for byte in BYTES[:4])):
        for byte in BYTES:
            assert table.derivative(expression, byte) == plain_derive(store, expression, byte)
    assert table.partition_count <= most_partitions
