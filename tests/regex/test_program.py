from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.regex.terms import build, terms
from tokdfa.errors import LimitExceeded, OptionError
from tokdfa.regex.expression import EMPTY, LAWS, NOTHING, ExpressionStore
from tokdfa.regex.program import Program, known


def write(program: Program, term: tuple) -> int:
    kind = term[0]
    if kind in ("nothing", "empty"):
        return known(NOTHING if kind == "nothing" else EMPTY)
    if kind == "bytes":
        return program.literal(bytes(term[1])) if len(term[1]) == 1 else program.byte_set(term[1])
    if kind == "concat":
        return program.concat(write(program, part) for part in term[1:])
    if kind == "repeat":
        return program.repeat(write(program, term[1]), term[2], term[3])
    return program.union([write(program, part) for part in term[1]])


@settings(max_examples=300)
@given(st.lists(terms(boolean=False), min_size=1, max_size=4), st.sampled_from(["", *LAWS]), st.booleans())
def test_a_program_makes_what_the_constructors_make(written: list[tuple], law: str, often: bool) -> None:
    """Run at once or after each term; the values of earlier runs stay operands."""
    store, program = ExpressionStore(filter(None, [law])), Program()
    values = []
    for term in written:
        values.append(write(program, term))
        if often:
            store.run(program)
    together = program.concat(values)
    store.run(program)
    expected = [build(store, term) for term in written]
    assert [program.expression(value) for value in values] == expected
    assert program.expression(together) == store.concat(*expected)
    assert len(program.made) == program.count


@given(st.lists(terms(boolean=False), max_size=3), terms(boolean=False))
def test_an_included_program_means_the_same_anywhere(before: list[tuple], term: tuple) -> None:
    store, program, part = ExpressionStore(), Program(), Program()
    part.concat([write(part, term)])
    for other in before:
        write(program, other)
    value = program.include(part)
    size = len(program.code)
    assert program.include(part) == value
    assert len(program.code) == size  # not copied again
    store.run(program)
    assert program.include(part) == value
    assert program.expression(value) == build(store, term)
    assert program.expression(program.include(Program())) == NOTHING


def test_a_run_that_outgrows_the_store_goes_on_where_it_stopped() -> None:
    words = [b"word%d" % number for number in range(3000)]
    program, store, roomy = Program(), ExpressionStore(), ExpressionStore()
    roomy.union(roomy.literal(word) for word in words)
    everything = program.union([program.literal(word) for word in words])
    rows = len(store.nodes)
    store.run(program)
    assert len(store) == len(roomy) > rows
    assert program.expression(everything) == store.union(store.literal(word) for word in words)


def test_limits_are_errors() -> None:
    with pytest.raises(OptionError, match="range"):
        Program().repeat(known(EMPTY), 3, 2)
    with pytest.raises(LimitExceeded, match="too large"):
        Program().repeat(known(EMPTY), 0, 1 << 40)
    program = Program()
    program.literal(bytes(range(256)) * 20)
    with pytest.raises(LimitExceeded):
        ExpressionStore(max_expressions=500).run(program)
