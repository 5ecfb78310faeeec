from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tests.json_schema.spellings import spellings
from tests.strategies import code_point_ranges
from tokdfa.json_schema.sets.string_body import spelling_program
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
