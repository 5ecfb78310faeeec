from __future__ import annotations

import json
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.json_schema.spellings import plain, respell, spellings
from tests.strategies import code_point_ranges
from tokdfa.errors import UnsupportedConstraint
from tokdfa.json_schema.sets.string_body import spelling_program
from tokdfa.json_schema.sets.string_set import StringSet, string_automaton
from tokdfa.regex.char_sets import ALL, contains, union
from tokdfa.regex.expression import ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.regex.program import Program

NEEDED = set(map(chr, range(32))) | {'"', "\\"}


def set_dfa(code_points: tuple[tuple[int, int], ...], escapes: str) -> LazyDfa:
    store, program = ExpressionStore(), Program()
    value = program.embed(spelling_program(code_points, escapes))  # type: ignore[arg-type]
    store.run(program)
    return LazyDfa(store, program.expression(value))


@given(code_point_ranges(), st.lists(st.characters(), max_size=10))
@example([(0x10000, 0x103FF)], ["\U00010000", "\U000103ff", "\U00010400"])
@example([(0x10001, 0x10FFFE)], ["\U00010000", "\U0010ffff", "\U00010001", "\U00020400", "\U0010fffe"])
@example([(0xD7FF, 0xE000)], ["\ud7ff", "\ue000"])
def test_a_set_has_all_spellings_of_its_members_and_no_others(ranges: list, characters: list[str]) -> None:
    code_points = union(ranges)
    ends = [chr(min(max(end + by, 0), 0x10FFFF)) for pair in ranges for end in pair for by in (-1, 0, 1)]
    both = set_dfa(code_points, "all"), set_dfa(code_points, "needed")
    for character in [*characters, *ends, *'"\\/\n\x7f']:
        if "\ud800" <= character <= "\udfff":
            assert not any(dfa.accepts(f"\\u{ord(character):04x}".encode()) for dfa in both)
            continue
        is_member = contains(code_points, ord(character))
        for spelled in spellings(character):
            assert both[0].accepts(spelled.encode()) == is_member
            is_short_or_raw = len(spelled) <= 2 or character < " "
            if spelled != "\\/":
                assert both[1].accepts(spelled.encode()) == (is_member and (character in NEEDED or is_short_or_raw))


def test_every_code_unit() -> None:
    dfa = set_dfa(ALL, "all")
    wrong = [unit for unit in range(0x10000) if dfa.accepts(f"\\u{unit:04x}".encode()) == (0xD800 <= unit < 0xE000)]
    assert not wrong
    assert not dfa.accepts(b"\\/\\/")
    assert not dfa.accepts(b"\\ud800\\ud800")
    assert dfa.accepts(b"\\uDbFf\\udFfF")


@settings(max_examples=300)
@given(st.lists(st.sampled_from(['"', "\\", "/", "u", "d83d", "DE00", "00e9", "n", "x", "é", "😀", "\n", "\x7f"])))
def test_a_string_is_what_a_strict_parser_reads(pieces: list[str]) -> None:
    text = '"' + "".join(pieces) + '"'
    try:
        decoded = json.loads(text)
        decoded.encode()
        is_string = isinstance(decoded, str)
    except ValueError:  # also of lone surrogates
        is_string = False
    assert string_automaton(StringSet()).accepts(text.encode()) == is_string


def test_end_of_text_inside_a_repeat_is_the_closing_quote() -> None:
    strings = StringSet(patterns=("^(?:(?!foo$)[a-z])*$",))
    dfa = string_automaton(strings)
    for text in ["", "fo", "foo", "xfoo", "foox", "xfo"]:
        assert strings.holds(text) == (not text.endswith("foo"))
        assert dfa.accepts(plain(text)) == strings.holds(text)
        assert dfa.accepts(respell(text, random.Random(3))) == strings.holds(text)


def test_what_only_the_bytes_before_could_tell_is_refused() -> None:
    strings = StringSet(patterns=(r"^(?:\ba|-)*$",))
    for ask in (lambda: strings.holds("a-a"), lambda: string_automaton(strings)):
        with pytest.raises(UnsupportedConstraint, match="repeat around"):
            ask()
