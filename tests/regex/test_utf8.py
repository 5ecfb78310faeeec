from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.regex.terms import utf8_expression
from tests.strategies import code_point_ranges
from tokdfa.automata.algebra import minimize, trim
from tokdfa.automata.dfa import Dfa
from tokdfa.regex import char_sets
from tokdfa.regex.char_sets import ALL, SURROGATES, Ranges
from tokdfa.regex.expression import NOTHING, ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa


@cache
def encodings() -> tuple[np.ndarray, np.ndarray]:
    """All code points but surrogates, and their UTF-8 bytes as rows of four, padded with -1, by Python's encoder."""
    points = np.array([point for point in range(0x110000) if not 0xD800 <= point < 0xE000])
    lengths = 1 + (points > 0x7F) + (points > 0x7FF) + (points > 0xFFFF)
    rows = np.full((len(points), 4), -1)
    data = np.frombuffer("".join(map(chr, points)).encode(), dtype=np.uint8)
    rows[np.arange(4) < lengths[:, None]] = data
    return points, rows


@cache
def dfa_of(ranges: Ranges) -> Dfa:
    store = ExpressionStore()
    return trim(LazyDfa(store, utf8_expression(ranges, store)).to_dfa())


def accepted(dfa: Dfa, rows: np.ndarray) -> np.ndarray:
    """Which rows of bytes (-1: none) `dfa` accepts."""
    if dfa.start < 0:
        return np.zeros(len(rows), dtype=bool)
    states = np.full(len(rows), dfa.start)
    for column in rows.T:
        moving = (states >= 0) & (column >= 0)
        states[moving] = dfa.transitions[states[moving], dfa.byte_class[column[moving]]]
    return (states >= 0) & dfa.accepting[states]


def count_words(dfa: Dfa) -> int:
    """How many byte strings an acyclic `dfa` accepts."""
    width = np.bincount(dfa.byte_class, minlength=dfa.transitions.shape[1])
    counts = np.zeros(len(dfa.transitions), dtype=object)
    counts[dfa.start : dfa.start + 1] = 1
    total = 0
    while counts.any():
        total += counts[dfa.accepting].sum()
        following = np.zeros_like(counts)
        for state, targets in enumerate(dfa.transitions):
            for byte_class, target in enumerate(targets):
                if target >= 0:
                    following[target] += counts[state] * int(width[byte_class])
        counts = following
    return int(total)


def check_exactly(ranges: Ranges) -> None:
    """The automaton accepts the encoding of every member, of no other code point, and no other byte string."""
    dfa = dfa_of(ranges)
    points, rows = encodings()
    inside = np.zeros(0x110000, dtype=bool)
    for first, last in ranges:
        inside[first : last + 1] = True
    assert np.array_equal(accepted(dfa, rows), inside[points])
    assert count_words(dfa) == inside[points].sum()


@pytest.mark.parametrize(
    "ranges",
    [
        ALL,
        char_sets.complement(char_sets.NEWLINE),
        char_sets.digits(False),
        char_sets.word_characters(False),
        char_sets.complement(char_sets.word_characters(False)),
        char_sets.spaces(False),
        ((0x7F, 0x80), (0x7FF, 0x800), (0xD7FF, 0xE000), (0xFFFF, 0x10000), (0x10FFFF, 0x10FFFF)),
    ],
    ids=["all", "dot", "digits", "word", "not word", "spaces", "edges"],
)
def test_every_code_point_of_well_known_sets(ranges: Ranges) -> None:
    check_exactly(ranges)


@settings(max_examples=25)
@given(code_point_ranges())
@example([(0x0, 0x10FFFF), (0x5, 0x6)])
def test_every_code_point_of_random_sets(ranges: Ranges) -> None:
    check_exactly(char_sets.union(ranges))


def test_surrogates_have_no_encoding() -> None:
    assert utf8_expression(SURROGATES, ExpressionStore()) == NOTHING
    assert utf8_expression((), ExpressionStore()) == NOTHING


@settings(max_examples=500)
@given(st.lists(st.sampled_from([*range(0x7E, 0x82), 0x8F, 0x90, 0x9F, 0xA0, 0xBF, *range(0xC0, 0x100)]), max_size=4))
def test_the_full_set_is_what_pythons_decoder_accepts(data: list[int]) -> None:
    try:
        valid = len(bytes(data).decode()) == 1
    except UnicodeDecodeError:
        valid = False
    row = np.array([data + [-1] * (4 - len(data))])
    assert accepted(dfa_of(ALL), row)[0] == valid


@pytest.mark.parametrize("ranges", [ALL, char_sets.word_characters(False), char_sets.digits(False), ((0x80, 0xFFFF),)])
def test_prefixes_and_suffixes_are_shared(ranges: Ranges) -> None:
    """No state could be saved: the derivative automaton is already minimal."""
    dfa = dfa_of(ranges)
    assert len(dfa.transitions) == len(minimize(dfa).transitions)
