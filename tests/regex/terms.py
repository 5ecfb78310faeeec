"""Hypothesis strategies for expression terms (see tests.naive.languages), and the construction of expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tokdfa.regex.expression import EMPTY, NOTHING, ExpressionStore
from tokdfa.regex.program import Program
from tokdfa.regex.utf8 import utf8_program

if TYPE_CHECKING:
    from tokdfa.regex.char_sets import Ranges

ALPHABET = b"ab"


def terms(boolean: bool = True) -> st.SearchStrategy[tuple]:
    leaves = st.one_of(
        st.just(("empty",)),
        st.just(("nothing",)),
        st.sets(st.sampled_from(list(ALPHABET)), min_size=1).map(lambda letters: ("bytes", frozenset(letters))),
    )

    def grow(parts: st.SearchStrategy[tuple]) -> st.SearchStrategy[tuple]:
        kinds = [
            st.tuples(st.just("concat"), parts, parts),
            st.tuples(st.just("union"), st.lists(parts, min_size=2, max_size=4)),
            st.tuples(st.just("repeat"), parts, st.integers(0, 3), st.none()),
            st.tuples(parts, st.integers(0, 3), st.integers(0, 3)).map(lambda t: ("repeat", t[0], t[1], t[1] + t[2])),
        ]
        if boolean:
            kinds += [
                st.tuples(st.just("intersection"), st.lists(parts, min_size=2, max_size=3)),
                st.tuples(st.just("complement"), parts),
            ]
        return st.one_of(kinds)

    return st.recursive(leaves, grow, max_leaves=8)


def build(store: ExpressionStore, term: tuple) -> int:
    kind = term[0]
    if kind == "nothing":
        return NOTHING
    if kind == "empty":
        return EMPTY
    if kind == "bytes":
        return store.byte_set(term[1])
    if kind == "concat":
        return store.concat(build(store, term[1]), build(store, term[2]))
    if kind == "complement":
        return store.complement(build(store, term[1]))
    if kind == "repeat":
        return store.repeat(build(store, term[1]), term[2], term[3])
    parts = [build(store, part) for part in term[1]]
    return store.union(parts) if kind == "union" else store.intersection(parts)


def utf8_expression(code_points: Ranges, store: ExpressionStore) -> int:
    """The expression for the UTF-8 encodings of `code_points`; surrogates are left out."""
    program = Program()
    value = program.embed(utf8_program(code_points))
    store.run(program)
    return program.expression(value)
