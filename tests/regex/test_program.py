from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.regex.terms import build, terms, utf8_expression
from tokdfa.errors import LimitExceeded, OptionError
from tokdfa.regex.char_sets import word_characters
from tokdfa.regex.expression import EMPTY, LAWS, NOTHING, ExpressionStore
from tokdfa.regex.nodes import M_WORK
from tokdfa.regex.program import Program, known
from tokdfa.regex.utf8 import utf8_program


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


@settings(deadline=None, derandomize=True, max_examples=300)
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


@settings(deadline=None, derandomize=True, max_examples=100)
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


@pytest.mark.parametrize("law", ["", *LAWS])
def test_a_choice_is_the_union_of_its_edges(law: str) -> None:
    store, program = ExpressionStore(filter(None, [law])), Program()
    ab, c, d = program.byte_set(b"ab"), program.byte_set(b"c"), program.byte_set(b"d")
    tail = program.repeat(c, 0, 3)
    values = [program.choice([(ab, known(EMPTY))]), program.choice([(d, tail), (ab, d), (c, known(EMPTY))])]
    store.run(program)
    one, *edges = [
        store.concat(program.expression(head), expression)
        for head, expression in (
            (ab, EMPTY),
            (d, program.expression(tail)),
            (ab, program.expression(d)),
            (c, EMPTY),
        )
    ]
    assert [program.expression(value) for value in values] == [one, store.union(edges)]


def test_a_run_that_outgrows_the_store_goes_on_where_it_stopped() -> None:
    words = [b"word%d" % number for number in range(3000)]
    program, store, roomy = Program(), ExpressionStore(), ExpressionStore()
    roomy.union(roomy.literal(word) for word in words)
    everything = program.union([program.literal(word) for word in words])
    rows = len(store.nodes)
    store.run(program)
    assert len(store) == len(roomy) > rows
    assert program.expression(everything) == store.union(store.literal(word) for word in words)


def test_growing_costs_no_work_twice() -> None:
    """Beyond the instruction that did not fit: in units of work, against a run that finds everything interned."""
    store, used = ExpressionStore(), []
    rows = len(store.nodes)
    for _ in range(2):
        program = Program()
        for number in range(3000):
            program.literal(b"word%d" % number)
        before = int(store.meta[M_WORK])
        store.run(program)
        used.append(int(store.meta[M_WORK]) - before)
    assert len(store.nodes) > 2 * rows
    assert used[0] < used[1] + 1000


def test_limits_are_errors() -> None:
    with pytest.raises(OptionError, match="range"):
        Program().repeat(known(EMPTY), 3, 2)
    with pytest.raises(LimitExceeded, match="too large"):
        Program().repeat(known(EMPTY), 0, 1 << 40)
    program = Program()
    program.literal(bytes(range(256)) * 20)
    with pytest.raises(LimitExceeded):
        ExpressionStore(max_expressions=500).run(program)


def test_utf8_programs_are_written_once() -> None:
    store, word = ExpressionStore(), word_characters(ascii_only=False)
    first = utf8_expression(word, store)
    assert utf8_program(word) is utf8_program(word)
    size = len(store)
    assert utf8_expression(word, store) == first
    assert len(store) == size
