"""Classes of bytes against plain twins: membership in sets found by recursion, and Brzozowski's rules byte by byte."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.regex.terms import ALPHABET, build, terms
from tokdfa.regex.derivative import derive
from tokdfa.regex.derivative_classes import (
    FINEST,
    NEWLINE,
    P_PARTITION,
    U_PARTITIONS,
    WORD_BYTES,
    DerivativeTable,
    partition_bytes,
)
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


def sets_below(store: ExpressionStore, expression: int, first_only: bool) -> set[int]:
    """The byte sets below an expression, or only those that can read its first byte."""
    if store.view(expression)[0] == "bytes":
        return {expression}
    parts = parts_of(store, expression)
    if first_only and store.view(expression)[0] == "concat" and not store.nullable(parts[0]):
        parts = parts[:1]
    return set().union(*(sets_below(store, part, first_only) for part in parts))


def memberships(store: ExpressionStore, sets: set[int]) -> list[tuple[bool, ...]]:
    """For each byte, which of the sets have it."""
    if not sets:
        return [()] * 256
    return list(zip(*(store.bytes_of(byte_set).tolist() for byte_set in sorted(sets)), strict=True))


def numbered(keys: list) -> list[int]:
    """Equal keys become equal numbers, in order of first occurrence."""
    numbers: dict = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def local_classes(table: DerivativeTable, expression: int) -> tuple[list[int], int]:
    """(the local class of each byte, the outside) of an expression that has been derived by `table`."""
    row = table.partitions[table.places[expression, P_PARTITION]]
    local = row[: len(table.classes.representatives)]
    assert row[-1] == local.max() + 1
    return local[table.classes.byte_class].tolist(), int(row[-2])


@settings(deadline=None, derandomize=True, max_examples=100)
@given(wide_terms())
def test_classes_are_the_bytes_in_the_same_sets(term: tuple) -> None:
    store = ExpressionStore()
    root = build(store, term)
    classes = partition_bytes(store, root)
    expected = memberships(store, sets_below(store, root, first_only=False))
    assert classes.byte_class.tolist() == numbered(expected)
    assert classes.representatives.tolist() == np.unique(classes.byte_class, return_index=True)[1].tolist()
    for byte in BYTES:
        if not classes.bytes_read[byte]:
            assert not any(expected[byte])
            assert plain_derive(store, root, byte) == NOTHING


def test_assertions_tell_words_and_newlines_apart() -> None:
    store = ExpressionStore()
    root = store.repeat(store.union([store.assertion("word_boundary"), store.byte_set(b"ax-\n")]), 0, None)
    flags = store.bytes_of(store.byte_set(b"ax-\n")).tolist()
    keys = [(bool(WORD_BYTES[byte]), byte == NEWLINE, flags[byte]) for byte in range(256)]
    classes = partition_bytes(store, root)
    assert classes.byte_class.tolist() == numbered(keys)
    assert np.flatnonzero(classes.bytes_read).tolist() == sorted(b"ax-\n")


@settings(deadline=None, derandomize=True, max_examples=150)
@given(wide_terms())
def test_rows_equal_those_by_deriving_by_every_byte(term: tuple) -> None:
    """Also: local classes are the bytes in the same first sets, and the outside is in none."""
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
            assert derive(store, table, expression, byte) == expected
        local, outside = local_classes(table, expression)
        expected_sets = memberships(store, sets_below(store, expression, first_only=True))
        assert local == numbered(expected_sets)
        assert {expected_sets[byte] for byte in range(256) if local[byte] == outside} <= {
            (False,) * len(expected_sets[0])
        }
        assert (outside >= 0) == any(not any(sets) for sets in expected_sets)
        state += 1


@settings(deadline=None, derandomize=True, max_examples=100)
@given(wide_terms(), st.integers(2, 5))
def test_derivatives_are_the_same_with_too_few_partitions(term: tuple, most_partitions: int) -> None:
    store = ExpressionStore()
    root = build(store, term)
    table = DerivativeTable(store, partition_bytes(store, root), most_partitions)
    for expression in (root, *(plain_derive(store, root, byte) for byte in BYTES[:4])):
        for byte in BYTES:
            assert derive(store, table, expression, byte) == plain_derive(store, expression, byte)
    assert int(table.used[U_PARTITIONS]) <= most_partitions


def test_arrays_grow() -> None:
    """Unions of two out of 25 random sets: each has its own partition into four."""
    store = ExpressionStore()
    rng = np.random.default_rng(7)
    sets = [store.byte_set(rng.random(256) < 0.5) for _ in range(25)]
    x, y = store.literal(b"x"), store.literal(b"y")
    pairs = [store.union([store.concat(a, x), store.concat(b, y)]) for a, b in itertools.combinations(sets, 2)]
    table = DerivativeTable(store, partition_bytes(store, store.concat(*pairs)))
    rooms = (len(table.partitions), len(table.keys), len(table.known))
    for pair in pairs:
        for byte in (0, 97, 255):
            assert derive(store, table, pair, byte) == plain_derive(store, pair, byte)
        assert len(set(local_classes(table, pair)[0])) == 4
    for now, room in zip((len(table.partitions), len(table.keys), len(table.known)), rooms, strict=True):
        assert now > room
    assert len({int(table.places[pair, P_PARTITION]) for pair in pairs}) == len(pairs)

    made = int(table.used[U_PARTITIONS])
    for a, b in itertools.combinations(sets, 2):  # other expressions, the same partitions: found again after growth
        derive(store, table, store.union([store.concat(b, x), store.concat(a, y)]), 0)
    assert int(table.used[U_PARTITIONS]) == made

    left, room = 5000, len(table.places)
    counter = store.repeat(sets[0], left, left)
    byte = int(np.flatnonzero(store.bytes_of(sets[0]))[0])
    while len(table.places) == room:
        counter, left = derive(store, table, counter, byte), left - 1
        assert counter == store.repeat(sets[0], left, left)


def test_a_partition_is_made_once() -> None:
    """In whatever order its sets come: six orders of three sets, one partition."""
    store = ExpressionStore()
    ends = [store.literal(letter) for letter in (b"x", b"yy", b"zzz")]
    heads = [
        store.concat(store.byte_set(members), end) for members, end in zip((b"a", b"ab", b"bc"), ends, strict=True)
    ]
    optional = [store.union([EMPTY, head]) for head in heads]
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    chains = [store.concat(*(optional[k] for k in order), store.literal(b"a")) for order in orders]
    table = DerivativeTable(store, partition_bytes(store, store.concat(*chains)))
    for chain in chains:
        derive(store, table, chain, ALPHABET[0])
    numbers = {int(table.places[chain, P_PARTITION]) for chain in chains}
    assert len(numbers) == 1
    assert FINEST not in numbers
