import itertools
import re
import unicodedata

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import code_point_ranges
from tokdfa.regex import char_sets, unicode_tables
from tokdfa.regex.char_sets import POSIX_CLASSES, Ranges

ASSIGNED = [point for point in range(0x110000) if unicodedata.category(chr(point)) not in ("Cn", "Cs")]


def members(ranges: Ranges) -> set[int]:
    return {point for first, last in ranges for point in range(first, last + 1)}


def is_normal(ranges: Ranges) -> bool:
    bounds = [bound for pair in ranges for bound in pair]
    gaps = all(after[0] > before[1] + 1 for before, after in itertools.pairwise(ranges))
    return bounds == sorted(bounds) and gaps and all(0 <= bound <= 0x10FFFF for bound in bounds)


@settings(max_examples=300)
@given(code_point_ranges(), code_point_ranges())
def test_set_operations_are_boolean_operations_at_every_edge(one: Ranges, other: Ranges) -> None:
    left, right = char_sets.union(one), char_sets.union(other)
    results = {
        "or": char_sets.union(left, right),
        "and": char_sets.intersection(left, right),
        "minus": char_sets.difference(left, right),
        "not": char_sets.complement(left),
    }
    assert all(map(is_normal, results.values()))
    edges = {bound + step for pair in (*one, *other) for bound in pair for step in (-1, 0, 1)} | {0, 0x10FFFF}
    for point in edges - {-1, 0x110000}:
        in_left = any(first <= point <= last for first, last in one)
        in_right = any(first <= point <= last for first, last in other)
        assert char_sets.contains(left, point) == in_left
        wanted = {
            "or": in_left or in_right,
            "and": in_left and in_right,
            "minus": in_left and not in_right,
            "not": not in_left,
        }
        assert {name: char_sets.contains(ranges, point) for name, ranges in results.items()} == wanted


@settings(max_examples=300)
@given(code_point_ranges(), st.lists(st.integers(0, 0x3000), max_size=200))
def test_union_of_a_few_and_many(few: list[tuple[int, int]], points: list[int]) -> None:
    many = char_sets.union((point, point) for point in points)
    one = char_sets.union(few)
    assert char_sets.union_of_two(one, many) == char_sets.union_of_two(many, one) == char_sets.union(one, many)


@pytest.mark.parametrize(("letter", "named"), [("d", char_sets.digits), ("w", char_sets.word_characters)])
def test_ascii_classes_are_those_of_re(letter, named) -> None:
    every = "".join(map(chr, range(0x110000)))
    assert sorted(members(named(True))) == list(map(ord, re.findall(rf"\{letter}", every, re.ASCII)))


def test_ascii_spaces_are_those_of_re() -> None:
    assert members(char_sets.spaces(True)) == {ord(character) for character in " \t\n\v\f\r"}


@pytest.mark.parametrize(
    ("letter", "named"), [("d", char_sets.digits), ("w", char_sets.word_characters), ("s", char_sets.spaces)]
)
def test_unicode_classes_are_those_of_the_regex_package(letter, named) -> None:
    assert named(False) == unicode_tables.scan(rf"\{letter}")


def test_unicode_classes_against_the_standard_library() -> None:
    digits, words, spaces = (
        members(named(False)) for named in (char_sets.digits, char_sets.word_characters, char_sets.spaces)
    )
    for point in ASSIGNED:
        category = unicodedata.category(chr(point))
        assert (point in digits) == (category == "Nd")
        if category[0] in "LM" or category in ("Nd", "Nl", "Pc"):
            assert point in words, hex(point)
        elif category != "So" and point not in (0x200C, 0x200D):  # symbols such as U+24B6 may be alphabetic
            assert point not in words, hex(point)
        if category[0] == "Z":
            assert point in spaces, hex(point)
    assert {point for point in spaces if unicodedata.category(chr(point))[0] != "Z"} == {9, 10, 11, 12, 13, 0x85}


def test_shipped_tables_are_what_the_regex_package_gives() -> None:
    shipped, made = unicode_tables._load(), unicode_tables.generate()
    if shipped["made_with"] == made["made_with"]:
        assert shipped == made
        return
    assigned = set(ASSIGNED)  # another version of Unicode: characters older than both must not have moved
    for name in unicode_tables.DEFINITIONS:
        now = members(unicode_tables.scan(unicode_tables.DEFINITIONS[name]))
        assert (members(unicode_tables.load_ranges(name)) ^ now) & assigned == set()


def test_case_orbits_are_those_of_simple_case_folding() -> None:
    orbit_of = {point: orbit for orbit in unicode_tables.load_case_orbits() for point in orbit}
    assert len(orbit_of) == sum(map(len, unicode_tables.load_case_orbits()))
    for point in ASSIGNED:
        folded = chr(point).casefold()
        if len(folded) == 1 and folded != chr(point):
            assert orbit_of[point] == orbit_of[ord(folded)], hex(point)
    for orbit in orbit_of.values():
        assigned = [chr(point) for point in orbit if unicodedata.category(chr(point)) != "Cn"]
        assert len({character.casefold() for character in assigned}) <= 1, orbit


@settings(max_examples=50)
@given(code_point_ranges())
def test_fold_closure_adds_whole_orbits_and_nothing_else(ranges: Ranges) -> None:
    before = char_sets.union(ranges)
    after = char_sets.fold_closure(before)
    assert is_normal(after)
    assert char_sets.difference(before, after) == ()
    assert char_sets.fold_closure(after) == after
    for point in members(char_sets.difference(after, before)):
        orbit = next(orbit for orbit in unicode_tables.load_case_orbits() if point in orbit)
        assert any(char_sets.contains(before, other) for other in orbit)


def test_wide_folding_is_that_of_re() -> None:
    """All characters with case that the standard library knows, each beside all of them."""
    cased = "".join(c for p in ASSIGNED if (c := chr(p)).lower() != c or c.upper() != c)
    for one in cased:
        folded = char_sets.fold_closure(((ord(one), ord(one)),), "any")
        assert [c for c in cased if char_sets.contains(folded, ord(c))] == re.findall(one, cased, re.IGNORECASE), one


@pytest.mark.parametrize("name", POSIX_CLASSES)
def test_posix_classes_are_those_of_the_regex_package_on_ascii(name: str) -> None:
    if name in ("ascii", "word"):
        wanted = {point for point in range(128) if name == "ascii" or regex.match(r"\w", chr(point))}
    else:
        wanted = {point for point in range(128) if regex.match(f"[[:{name}:]]", chr(point))}
    assert members(POSIX_CLASSES[name]) == wanted


@pytest.mark.parametrize(
    ("name", "category"), [("Lu", "Lu"), ("gc=Nd", "Nd"), ("General_Category=Zs", "Zs"), ("Punctuation", "P")]
)
def test_unicode_property_against_the_standard_library(name: str, category: str) -> None:
    found = members(char_sets.unicode_property(name))
    assert {p for p in ASSIGNED if unicodedata.category(chr(p)).startswith(category)} == found & set(ASSIGNED)


@pytest.mark.parametrize("name", ["", "Foo", "Lu}|[a", "L\\u", "Lu&&L", "Script=Nowhere"])
def test_unknown_properties_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        char_sets.unicode_property(name)
