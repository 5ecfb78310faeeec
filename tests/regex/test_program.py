from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.regex.terms import build, terms
from tokdfa.regex.expression import EMPTY, NOTHING, ExpressionStore
from tokdfa.regex.program import Program, known


def write(program: Program, term: tuple) -> int:
    kind = term[0]
    if kind == "nothing":
        return known(NOTHING)
    if kind == "empty":
        return known(EMPTY)
    if kind == "bytes":
        return program.byte_set(term[1])
    if kind == "repeat":
        return program.repeat(write(program, term[1]), term[2], term[3])
    if kind == "concat":
        return program.concat([write(program, part) for part in term[1:]])
    return program.union([write(program, part) for part in term[1]])


@given(st.lists(terms(boolean=False), min_size=1, max_size=5), st.integers(0, 5))
def test_programs_make_what_constructors_make(many: list[tuple], first: int) -> None:
    """Numbers are the same, too, whether a program is run in one part or in two."""
    store, other, program = ExpressionStore(), ExpressionStore(), Program()
    values = [write(program, term) for term in many[:first]]
    store.run(program)
    assert program.code_size == 0
    values += [write(program, term) for term in many[first:]]
    store.run(program)
    assert program.made_count == program.count == len(program.made)
    assert [program.expression(value) for value in values] == [build(other, term) for term in many]
    assert len(store) == len(other)


@given(terms(boolean=False), terms(boolean=False))
def test_code_means_the_same_wherever_it_stands(one: tuple, other: tuple) -> None:
    part, whole, store = Program(), Program(), ExpressionStore()
    part.concat([write(part, one)])
    write(whole, other)
    before = whole.count
    value = whole.embed(part)
    assert whole.embed(part) == value
    assert whole.count == before + part.count
    store.run(whole)
    assert whole.expression(value) == build(store, one)


def test_a_program_without_code_makes_nothing() -> None:
    assert Program().embed(Program()) == known(NOTHING)
    program, store = Program(), ExpressionStore()
    value = program.byte_bits(0)
    store.run(program)
    assert program.expression(value) == NOTHING


def test_operands_must_be_there() -> None:
    program, store = Program(), ExpressionStore()
    with pytest.raises(IndexError, match="not written yet"):
        program.concat([0])
    value = program.literal(b"ab")
    with pytest.raises(IndexError, match="has not been run"):
        program.expression(value)
    program.union([value, known(1_000)])
    with pytest.raises(IndexError, match="one store"):
        store.run(program)
    assert program.expression(value) == store.literal(b"ab")
    with pytest.raises(ValueError, match="has been run"):
        Program().embed(program)


def test_expressions_must_be_there() -> None:
    store = ExpressionStore()
    for wrong in (len(store), -1, 1 << 31):
        for use in (store.view, store.members, store.complement, store.look_ahead, lambda e: store.union([EMPTY, e])):
            with pytest.raises(IndexError, match="not in a store"):
                use(wrong)


def test_programs_of_no_bytes_and_no_choices() -> None:
    program, store = Program(), ExpressionStore()
    values = [program.choice([]), program.union([]), program.concat([]), program.literal(b"")]
    store.run(program)
    assert list(map(program.expression, values)) == [NOTHING, NOTHING, EMPTY, EMPTY]
