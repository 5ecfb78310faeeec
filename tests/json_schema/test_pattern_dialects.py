r"""What all who judge a schema's patterns agree on, over all of Unicode: ECMA-262, Python's `re`, Rust.

Python judges itself. Of ECMA-262 the sets are derived from the standard (section 22.2.2.9, WordCharacters and
CharacterClassEscape; 12.2 and 12.3, white space and line terminators). Rust's own classes are asked of the crate
`regex` (through outlines-core); its JSON Schema validator gives that crate ECMA's classes unless there is look-around.

Python knows one version of Unicode, the tables another. To characters that Python has not assigned, libraries may
differ by version, so of these only is asked that nothing is taken which a judge leaves out.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cache, reduce
from typing import Any

import numpy as np
import pytest
from outlines_core import Index
from outlines_core import Vocabulary as RustVocabulary

import tokdfa
from tests.json_schema.spellings import plain
from tests.walks import accepts
from tokdfa.errors import UnsupportedConstraint
from tokdfa.json_schema.sets.patterns import parse_pattern
from tokdfa.json_schema.sets.string_set import StringSet, string_automaton
from tokdfa.regex.char_sets import Ranges, complement, contains, fold_closure
from tokdfa.regex.expression import ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.regex.lower import lower
from tokdfa.regex.syntax_tree import Assertion, CharSet, Concat
from tokdfa.regex.unicode_tables import every_character

#: Whether each code point is in a set.
Set = Any
TEXT = every_character()
SCALAR: Set = np.ones(0x110000, dtype=bool)
SCALAR[0xD800:0xE000] = False
ASSIGNED: Set = np.array([unicodedata.category(one) not in ("Cn", "Cs") for one in TEXT])


def members(characters: str) -> Set:
    found = np.zeros(0x110000, dtype=bool)
    found[[ord(one) for one in characters]] = True
    return found


# The judges: what a class in their notation has.


@cache
def to_python(character_class: str) -> Set:
    found = np.zeros(0x110000, dtype=bool)
    for match in re.finditer(f"(?:{character_class})+", TEXT):
        found[match.start() : match.end()] = True
    return found & SCALAR


@cache
def to_rust_alone(character_class: str) -> Set:
    index = Index(character_class, rust_vocabulary())
    found = np.zeros(0x110000, dtype=bool)
    found[index.get_allowed_tokens(index.get_initial_state())] = True
    return found


@cache
def rust_vocabulary() -> RustVocabulary:
    """A token for each character, which is its code point."""
    return RustVocabulary(0x110000, {one.encode(): [k] for k, one in enumerate(TEXT) if SCALAR[k]})


LINE_ENDS = members("\n\r\u2028\u2029")
WORD = members("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
SPACES = LINE_ENDS | members("\t\v\f\ufeff") | np.array([unicodedata.category(one) == "Zs" for one in TEXT])
ECMA: dict[str, Set] = {"d": members("0123456789"), "w": WORD, "s": SPACES, ".": SCALAR & ~LINE_ENDS}


def of_letters(letter: str, sets: dict[str, Set]) -> Set:
    return SCALAR & ~sets[letter.lower()] if letter.isupper() else sets[letter]


def listed(character_class: str, sets: dict[str, Set]) -> Set:
    """A class by what its letters have: one letter, a dot, or some of these and a hyphen in brackets."""
    brackets = re.fullmatch(r"\[(\^?)((?:\\\w|-)+)\]", character_class)
    if brackets is None:
        return of_letters(character_class[-1], sets)
    each = [of_letters(letter, sets) for letter in re.findall(r"\\(.)", brackets[2])]
    if brackets[2].endswith("-"):
        each.append(members("-"))
    found = reduce(np.logical_or, each)
    return SCALAR & ~found if brackets[1] else found


def to_ecma(character_class: str) -> Set:
    return listed(character_class, ECMA)


def to_rust(character_class: str) -> Set:
    return listed(
        character_class, {letter: to_rust_alone(rf"\{letter}" if letter != "." else ".") for letter in "dws."}
    )


# Classes.

CLASSES = [
    *(rf"\{letter}" for letter in "dDwWsS"), ".",
    *(rf"[\{letter}]" for letter in "dDwWsS"), *(rf"[^\{letter}]" for letter in "dDwWsS"),
    r"[^\w-]", r"[\w-]", r"[^\W-]", r"[^\d\s]", r"[\s\S]", r"[\D\d-]", r"[\w\S]", r"[\W\d]", r"[^\W\d]", r"[^\D\w]",
]  # fmt: skip


def character_set(pattern: str) -> Ranges:
    """The characters that are found by ``^..$`` around one character, or nothing."""
    node = parse_pattern(pattern)
    parts = [part for part in (node.parts if isinstance(node, Concat) else (node,)) if not isinstance(part, Assertion)]
    (part,) = parts
    assert isinstance(part, CharSet)
    return part.ranges


def ours(pattern: str) -> Set:
    found = np.zeros(0x110000, dtype=bool)
    for first, last in character_set(pattern):
        found[first : last + 1] = True
    return found


def compare(pattern: str, found: Set, wanted: Set) -> None:
    """Nothing may be taken that some judge leaves out, and of what Python has assigned nothing be missing."""
    assert not (more := np.flatnonzero(found & ~wanted)).size, (pattern, [*map(hex, more[:9])])
    assert not (fewer := np.flatnonzero(wanted & ~found & ASSIGNED)).size, (pattern, [*map(hex, fewer[:9])])


@pytest.mark.parametrize("character_class", CLASSES)
def test_a_class_has_what_all_judges_have(character_class: str) -> None:
    pattern = f"^{character_class}$"
    compare(pattern, ours(pattern), to_python(character_class) & to_ecma(character_class))


@pytest.mark.parametrize("character_class", CLASSES)
def test_beside_look_ahead_rust_has_classes_of_its_own(character_class: str) -> None:
    judges = [judge(character_class) for judge in (to_python, to_ecma, to_rust)]
    everything = r"[\s\S]"
    for pattern in (f"^(?={character_class}){everything}$", f"^(?={everything}){character_class}$"):
        compare(pattern, ours(pattern), reduce(np.logical_and, judges))
    pattern = f"^(?!{character_class}){everything}$"
    compare(pattern, ours(pattern), SCALAR & ~reduce(np.logical_or, judges))


def test_classes_and_their_complements_leave_a_third_zone() -> None:
    for letter, between in (
        ("w", "\xe9"),
        ("w", "\xb2"),
        ("d", "\u0663"),
        ("s", "\x85"),
        ("s", "\ufeff"),
        ("s", "\x1c"),
    ):
        for pattern in (rf"^\{letter}$", rf"^\{letter.upper()}$", rf"^[^\{letter}]$", rf"^[^\{letter.upper()}]$"):
            assert not contains(character_set(pattern), ord(between)), (between, pattern)
        assert contains(character_set(rf"^[\{letter}\{letter.upper()}]$"), ord(between))
    # what Rust alone counts to words is none to the others, and to Rust's validator without look-around
    assert contains(character_set(r"^\W$"), 0x304)
    assert not contains(character_set(r"^(?!\w)[^]$"), 0x304)


# Case.


def upper_case(character: str) -> str:
    """Canonicalize without the flag u (22.2.2.7.3)."""
    upper = character.upper()
    return upper if len(upper) == 1 and (character.isascii() or not upper.isascii()) else character


def test_case_is_disregarded_where_all_judges_do() -> None:
    cased = "".join(one for k, one in enumerate(TEXT) if ASSIGNED[k] and (one.lower() != one or one.upper() != one))
    by_upper: dict[str, set[str]] = {}
    for one in cased:
        by_upper.setdefault(upper_case(one), set()).add(one)
    for one in cased[::3] + "kKs\u017f\u212a\xdf\u1e9eiI\u0131\u0130\u2126\u1fbc":
        simple = {chr(p) for first, last in fold_closure(((ord(one), ord(one)),)) for p in range(first, last + 1)}
        simple &= set(cased)
        python = set(re.findall(one, cased, re.IGNORECASE))
        to_all, to_any = character_set(f"(?i)^{one}$"), complement(character_set(f"(?i)^[^{one}]$"))
        assert {c for c in cased if contains(to_all, ord(c))} == simple & python & by_upper[upper_case(one)], one
        assert {c for c in cased if contains(to_any, ord(c))} == simple | python | by_upper[upper_case(one)], one


@pytest.mark.parametrize("one", "kS\u212a\xdf\u1e9ei\u0131\u0130\u03c3\xb5\u2126\u01c5\u1fbc\uab70\U0001e900")
def test_case_to_rust(one: str) -> None:
    rust = to_rust_alone(f"(?i){one}")
    assert not (ours(f"(?i)^{one}$") & ~rust).any()
    assert not (ours(f"(?i)^[^{one}]$") & rust).any()


# Boundaries.


def found_around(pattern: str, before: bytes, behind: bytes) -> Set:
    """The characters that make a text in which a pattern is found, with some bytes before them and behind."""
    store = ExpressionStore()
    dfa = LazyDfa(store, lower(parse_pattern(pattern), store, search=True)).to_dfa()
    table = np.vstack([dfa.byte_table(), np.full((1, 256), -1, dtype=np.int32)])  # the last row: dead
    found = np.zeros(0x110000, dtype=bool)
    for first, last in ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x10FFFF)):
        encoded = np.frombuffer(TEXT[first : last + 1].encode(), dtype=np.uint8).reshape(last + 1 - first, -1)
        states = np.full(len(encoded), dfa.run(before), dtype=np.int32)
        for column in encoded.T:
            states = table[states, column]
        for byte in behind:
            states = table[states, byte]
        found[first : last + 1] = np.append(dfa.accepting, False)[states]
    return found


def boundaries(before: str | Set, behind: str | Set) -> dict[str, Set]:
    """By judge, where there is a boundary between two characters, "" being none; one of them may be any."""

    def is_word(side: Any, has: Set) -> Any:
        return (has[ord(side)] if side else False) if isinstance(side, str) else has

    words = {"ecma": WORD, "ecma with i and u": WORD | members("\u017f\u212a"), "rust": to_rust_alone(r"\w")}
    words["python"] = to_python(r"\w")
    return {name: SCALAR & (is_word(before, has) != is_word(behind, has)) for name, has in words.items()}


#: Nothing; word characters to all, to none, to Python and Rust, to Python, to Rust.
SIDES = ["", "a", "-", "\n", "\xe9", "\xb2", "\u0304"]


@pytest.mark.parametrize("fixed", SIDES)
@pytest.mark.parametrize("is_before", [True, False])
def test_boundaries_are_where_all_judges_find_one(fixed: str, is_before: bool) -> None:
    sides = (fixed, SCALAR) if is_before else (SCALAR, fixed)
    judged = boundaries(*sides).values()
    kept = re.sub(r"([-\n])", r"\\\1", fixed)
    for letter, wanted in (
        ("b", reduce(np.logical_and, judged)),
        ("B", SCALAR & ~reduce(np.logical_or, judged)),
    ):
        pattern = rf"^{kept}\{letter}[\s\S]$" if is_before else rf"^[\s\S]\{letter}{kept}$"
        around = (fixed.encode(), b"") if is_before else (b"", fixed.encode())
        found = found_around(pattern, *around)
        assert not (more := np.flatnonzero(found & ~wanted)).size, (pattern, [*map(hex, more[:9])])
        # what is not found to any is read widely: it has all that any judge finds
        absent = found_around(rf"^(?!{pattern[1:]})", *around)
        to_any = SCALAR & ~wanted_by_any(letter, judged)
        assert not (more := np.flatnonzero(absent & ~to_any)).size, (pattern, [*map(hex, more[:9])])
        if fixed in ("", "a", "-", "\n"):  # doubtful characters are not told apart further
            compare(pattern, found, wanted)
            compare(pattern, absent, to_any)
            assert found.any()
            assert absent.any()


def wanted_by_any(letter: str, judged: Any) -> Set:
    if letter == "b":
        return reduce(np.logical_or, judged)
    return SCALAR & ~reduce(np.logical_and, judged)


@pytest.mark.parametrize(
    ("pattern", "taken", "refused"),
    [
        (r"\bcat\b", ["cat", "a cat.", "\ncat\n"], ["cat\xe9", "\xe9cat", "cat\xb2", "cat\u0304", "\u200dcat", "cats"]),
        (r"^(?:foo|bar)\b.*$", ["foo", "bar-x"], ["bar\xf6", "food"]),
        (r"\Bcat", ["xcat"], ["\xe9cat", "cat", "-cat"]),
        (r"^\xe9\B\xe9$", ["\xe9\xe9"], ["\xe9-"]),
        (r"\B", ["ab", "-", "\xe9\xe9", "--"], ["", "a", "\xe9", "\xb2"]),
        (r"^(?!.*\bcat)", ["dog", "concat"], ["cat", "a cat", "\xe9cat", "\u0304cat"]),
        (r"^(?!.*\B).", ["a"], ["ab", "-", "\xe9", "\xe9x", ""]),
        (r"^(?!a$)", ["ab", "", "a\n\n"], ["a", "a\n"]),
        (r"^(?!a\Z)", ["ab", ""], ["a", "a\n", "a\n\n"]),
    ],
)
def test_boundaries_and_ends_in_json_texts(pattern: str, taken: list[str], refused: list[str]) -> None:
    dfa = string_automaton(StringSet(patterns=(pattern,)))
    for text in taken + refused:
        assert StringSet(patterns=(pattern,)).holds(text) == (text in taken), text
        assert dfa.accepts(plain(text)) == (text in taken), text


@pytest.mark.parametrize("pattern", [r"\bcat", r"cat\B", r"\W", r"[^\w]$", r"^(?!\w)", r"(?i)k", "a$", r"^.$", r"\S"])
def test_a_text_is_never_found_and_not_found(pattern: str) -> None:
    found, absent = StringSet(patterns=(pattern,)), StringSet(not_patterns=(pattern,))
    between = 0
    for text in ("cat", "\xe9cat", "cat\xe9", "\xb2", "\u0304", "k", "\u212a", "a\n", "\u2028", "\ufeff", "\x85", "-"):
        assert not (found.holds(text) and absent.holds(text)), text
        if text.isascii() and "\n" not in text:
            assert found.holds(text) or absent.holds(text), text
        between += not (found.holds(text) or absent.holds(text))
    assert between > 0


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        (r"[^]a]", "first member"), (r"x[]|[a]", "first member"), (r"\<a", "edge of a word"), (r"a\>", "edge of"),
        (r"\b{start}a", "Rust's"),
    ],
)  # fmt: skip
def test_what_judges_read_as_different_things_is_refused(pattern: str, what: str) -> None:
    with pytest.raises(UnsupportedConstraint, match=re.escape(what)):
        parse_pattern(pattern)


@pytest.mark.parametrize("pattern", [r"(?:\bcat)*$", r"(?:a\B|b){2,3}", r"(?:(?!ab).)*\b"])
def test_boundaries_beside_repeats_that_nobody_can_resolve(pattern: str) -> None:
    for question in (StringSet.is_empty, string_automaton, lambda strings: strings.holds("cat")):
        with pytest.raises(UnsupportedConstraint, match="a repeat around"):
            question(StringSet(patterns=(pattern,)))


def test_what_only_looks_so_is_read() -> None:
    for pattern, text in (
        (r"[\<\>]", "<"),
        (r"^[^]$", "a"),
        (r"^a[]?\]$", "a]"),
        (r"^(?:\bcat)?s$", "s"),
        (r"\b\{a}|b", "b"),
    ):
        assert StringSet(patterns=(pattern,)).holds(text), pattern


@pytest.mark.parametrize(
    ("branches", "taken", "refused"),
    [
        ([{"pattern": r"^\w$"}, {"const": "\xe9"}], ["a"], ["\xe9"]),
        ([{"pattern": r"^\w$"}, {"pattern": "^[\xe9-]$"}], ["a", "-"], ["\xe9"]),
        ([{"pattern": "^a$"}, {"const": "a\n"}], ["a"], ["a\n"]),
        ([{"format": "date"}, {"pattern": "^x"}], ["2020-02-03", "x"], ["y"]),
        ([{"pattern": r"\bcat\b"}, {"pattern": "^cat\xe9$"}], ["cat", "a cat"], ["cat\xe9"]),
    ],
)
@pytest.mark.parametrize("is_member", [False, True])
def test_exactly_one_branch_holds_to_every_judge(
    branches: list[Any], taken: list[str], refused: list[str], is_member: bool
) -> None:
    """What is in one branch to some judges, and in another to all, is valid to some of them only."""
    branches = [{"type": "string", **branch} for branch in branches]
    if is_member:
        branches = [{"type": "object", "properties": {"m": each}, "required": ["m"]} for each in branches]
    compiled = tokdfa.compile(tokdfa.JsonSchema({"oneOf": branches}), tokdfa.load_tokenizer("bytes"))
    for text in taken + refused:
        value = json.dumps({"m": text} if is_member else text, ensure_ascii=False).encode()
        assert accepts(compiled.start(), value) == (text in taken), text
