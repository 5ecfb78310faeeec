from __future__ import annotations

import itertools
import random
import re

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.json_schema.spellings import plain, respell
from tests.strategies import TEXT_ALPHABET, as_python, regex_patterns, short_texts
from tokdfa.errors import EmptyLanguageError, LimitExceeded, RegexSyntaxError, UnsupportedConstraint
from tokdfa.json_schema.sets.patterns import finds_everywhere, parse_pattern
from tokdfa.json_schema.sets.string_set import StringSet, string_automaton

#: Without letters beyond ASCII, which are words to Python only.
SHORT = short_texts(3, TEXT_ALPHABET.replace("é", "§A"))


def as_ecma(pattern: str) -> str:
    return pattern.replace("{,1}", "{0,1}").replace("é", "§")


def is_read_widely(pattern: str) -> bool:
    """Whether less may be found than by either reading, at the end of a line."""
    return "(?!" in pattern and "$" in pattern


def finds(pattern: str, text: str) -> bool:
    return StringSet(patterns=(pattern,)).holds(text)


@given(regex_patterns(), st.sampled_from(["", "", "i", "s", "m", "x"]))
@example("(?:^|a)*b$|(?:a|$)+", "")
@example("(?:(?!ab).)*\\b", "")
@example("(?:a(?:$|-))*^b?", "")
@example("\\A[^a]\\Z", "i")
@example("^ a # b", "x")
def test_random_patterns_find_what_re_finds(pattern: str, flag: str) -> None:
    ecma, oracle = as_ecma(f"(?{flag}){pattern}" if flag else pattern), as_python(pattern.replace("é", "§"), flag)
    everywhere = finds_everywhere(parse_pattern(ecma))
    json_text = None
    try:
        json_text = string_automaton(StringSet(patterns=(ecma,), max_length=3), "needed")
    except UnsupportedConstraint:
        assert re.search(r"\\[bB]|\^", ecma)
        if re.search(r"\\[bB]", ecma):
            return
    except EmptyLanguageError:
        assert not any(map(oracle.search, SHORT)) or is_read_widely(ecma)
    for text in SHORT:
        if text or r"\B" not in pattern:  # Python before 3.14 has neither \b nor \B in an empty text
            expected = bool(oracle.search(text))
            if is_read_widely(ecma) and "\n" in text and expected:
                expected = finds(ecma, text)
            assert finds(ecma, text) == expected, text
            assert expected or not everywhere
            if json_text is not None:
                assert json_text.accepts(plain(text)) == expected, text


@settings(max_examples=40)
@given(regex_patterns(boundaries=False))
def test_every_spelling_of_a_text_is_treated_alike(pattern: str) -> None:
    ecma, oracle, rng = as_ecma(pattern), as_python(pattern.replace("é", "§")), random.Random(pattern)
    assume(not is_read_widely(ecma))
    try:
        dfa = string_automaton(StringSet(patterns=(ecma,)))
    except UnsupportedConstraint:
        return
    except EmptyLanguageError:
        assert not any(map(oracle.search, SHORT))
        return
    for text in SHORT[::3]:
        assert dfa.accepts(respell(text, rng)) == bool(oracle.search(text)), text


@pytest.mark.parametrize(
    ("pattern", "found", "absent"),
    [
        ("^abc$", ["abc"], ["abcd", "xabc", "abc\n"]),
        ("b", ["b", "abc", "\nb"], ["", "ac"]),
        ("", ["", "x"], []),
        ("^.$", ["a", "é", "😀", "\x85"], ["\n", "\r", "\u2028", "\u2029", "ab", ""]),
        (r"^\d$", ["7"], ["٣", "x"]),
        (r"^\w$", ["_", "Z"], ["é", "-"]),
        (r"^\s$", ["\t", "\x0b", "\xa0", "\u2003", "\u2028", "\u3000"], ["\x1c", "\x85", "\u200b", "a"]),
        (r"^\S$", ["é", "\x7f"], ["\u00a0", "\ufeff", "\x1c"]),
        (r"^[^]$", ["a", "\n", "😀"], ["", "ab"]),
        ("[]", [], ["", "a", "]"]),
        ("^a[]?b$", ["ab"], ["a]b"]),
        (r"^\cJ\cm$", ["\n\r"], ["J"]),
        (r"^\x41\u00e9\u{1F600}\0$", ["Aé😀\0"], ["x41"]),
        (r"^\uD83D\uDE00$", ["😀"], ["\ufffd"]),
        (r"^[\uD83D\uDE00-\uD83D\uDE02]$", ["😁"], ["😃"]),
        (r"^\/\-\.\$\@$", ["/-.$@"], ["/-x$@"]),
        (r"^[\w-.]$", ["-", ".", "a"], ["/"]),
        (r"^[a-c-e]$", ["b", "-", "e"], ["d"]),
        (r"^[+-]-[a\-z]$", ["--a", "+--"], ["--b"]),
        (r"^[[:alpha:]]$", [":]", "[]", "p]"], ["b]", "b"]),
        (r"^[a&&+--c]$", ["&", "-", "a", ",", "c"], ["d", "'"]),
        (r"^[\b]$", ["\x08"], ["b"]),
        (r"^[^\d\s]+$", ["ab"], ["a b", "a1"]),
        ("^{a}{$", ["{a}{"], ["a"]),
        ("^a{2}b{1,}c{0,1}}$", ["aab}", "aabbc}"], ["ab}", "aabcc}"]),
        ("^(?:a|b)+?(?<n>c)(?P<m>d)??$", ["abc", "bcd"], ["c", "abcdd"]),
        ("^(?=.*a)(?!.*b)[a-c]{2}$", ["ac", "aa"], ["cc", "ab"]),
        ("^(?!(?:foo|bar)$)", ["food", "x", ""], ["foo", "bar"]),
        ("^(?!foo$).*$", ["foo\u0020"], ["foo"]),
        (r"\bfoo\b", ["foo", "a foo.", "§foo"], ["food", "_foo", "éfoo"]),
        (r"^a\Bb$", ["ab"], []),
        ("^(?=a)*b$", ["b"], ["ab"]),
        (r"^\p{Lu}\P{L}$", ["É1"], ["é1", "AA"]),
        ("^$|(^(?:\\S+\\s+){0,2}\\S+$)", ["", "a", "a b  c"], ["a b c d", " a"]),
        ("^😀?é$", ["😀é", "é"], ["😀"]),
        ("(?i)^straßE$", ["STRAße"], ["strasse", "STRAẞe", "ſtraße"]),
        ("(?i)^[i-k]$", ["I", "J"], ["İ", "ı", "\u212a"]),
        ("(?i)^[^i][^k]$", ["ab"], ["İb", "ıb", "ik", "a\u212a"]),
        (r"(?i)^\p{Lu}\P{Lu}$", ["a1", "A1"], ["aa", "1a"]),
        ("^(?i:a)(?-i:b)(?is-i:.)$", ["ab\n", "Abc"], ["aBc"]),
        ("(?is)^(?!.*x)a.$", ["A\n"], ["ax", "aX"]),
        ("(?m)^a$", ["a", "b\na\nc"], ["ab", "b a"]),
        ("(?x) ^ a [ ] b $ # c", ["a b"], ["ab", "a b # c"]),
        (r"\Aa\Z|\Ab\z", ["a", "b"], ["ab", "a\n"]),
    ],
)
def test_ecma_readings(pattern: str, found: list[str], absent: list[str]) -> None:
    dfa, rng = string_automaton_or_none(pattern), random.Random(pattern)
    for text in found + absent:
        assert finds(pattern, text) == (text in found), text
        if dfa is not None:
            assert dfa.accepts(plain(text)) == (text in found), text
            assert dfa.accepts(respell(text, rng)) == (text in found), text


def string_automaton_or_none(pattern: str):  # type: ignore[no-untyped-def]
    """None for the pattern that matches nothing."""
    strings = StringSet(patterns=(pattern,))
    return None if strings.is_empty() else string_automaton(strings)


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        (r"(a)\1", "back-reference"), (r"(?<n>a)\k<n>", "back-reference"), ("(?P<n>a)(?P=n)", "back-reference"),
        ("(?<=a)b", "look-behind"), ("(?<!a)b", "look-behind"), ("a(?i)b", "at its beginning"),
        ("(a(?i)b)", "at its beginning"), ("(?m:^a)", "lines end otherwise"), ("(?a)b", "classes are ASCII"),
        ("a{,3}", "{,n}"), (r"\a", "the bell to Python"),
    ],
)  # fmt: skip
def test_what_is_refused_is_named_with_its_place(pattern: str, what: str) -> None:
    with pytest.raises(UnsupportedConstraint, match=re.escape(what)) as caught:
        parse_pattern(pattern)
    assert "at position" in str(caught.value)
    assert repr(pattern) in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "position"),
    [
        ("(a", 0), ("a)", 1), ("[a", 0), ("[^", 0), ("*a", 0), ("a**", 2), ("a++", 2), ("^*", 1), ("|+", 1),
        ("a{2}{3}", 4), ("a{3,2}", 1), ("[z-a]", 1), (r"\q", 0), ("a\\", 1), (r"\x4", 0), (r"\u12", 0), (r"\c1", 0),
        (r"\u{110000}", 0), (r"\p{NoSuchThing}", 0), (r"\p", 0), ("(?a", 0), ("(?P<1>a)", 0), ("{2}", 0), ("(?>a)", 0),
        (r"\b+", 2), (r"[\B]", 1), (r"[\d-\q]", 4),
    ],
)  # fmt: skip
def test_broken_patterns(pattern: str, position: int) -> None:
    with pytest.raises(RegexSyntaxError) as caught:
        parse_pattern(pattern)
    assert caught.value.position == position


def test_limits() -> None:
    for pattern in ("a{99999999999}", "(" * 300 + ")" * 300, "a" * 1_000_001, "a{" + "9" * 10_000 + "}"):
        with pytest.raises(LimitExceeded):
            parse_pattern(pattern)
    assert finds("(?:" * 150 + "a{00002}" + ")" * 150, "aa")


@pytest.mark.parametrize("pattern", ["", ".*", "[a-z]*", "^", "$", "^a*", "x?$", "a|b*", "(?:a|)"])
def test_patterns_that_demand_nothing(pattern: str) -> None:
    assert finds_everywhere(parse_pattern(pattern))
    assert StringSet(patterns=(pattern,), max_length=9).simple


@pytest.mark.parametrize("pattern", ["a", "^a*$", ".+", "(?!a)", r"\b|\B", "^$|^.*$"])
def test_patterns_that_demand_something_or_look_like_it(pattern: str) -> None:
    assert not finds_everywhere(parse_pattern(pattern))
    assert not StringSet(patterns=(pattern,)).simple


def test_surrogates_match_nothing() -> None:
    assert StringSet(patterns=(r"^[\ud800-\udfff]$",)).is_empty()
    assert StringSet(patterns=(r"^\ud800$",)).is_empty()
    assert not finds(r"^[^a]$", "\ud800")


def test_what_must_not_be_found_is_read_widely() -> None:
    characters = ("a", "é", "ム", "٣", "\n", "\r", "\u2028", "\ufeff", " ", "-", "I", "İ")
    differing = 0
    for pattern in (
        *(
            r"^a$",
            r"\w",
            r"^.$",
            r"^\W$",
            r"^[^\w]$",
            r"^(?!\w)",
            r"^(?!.*\s$)",
            r"^(?=\w).$",
            r"\s$",
            r"^\D*$",
            r"(a|-$)",
            r"(?i)^[^i]I\Z",
            r"(?i)A(?!i)",
            r"(?s)(?!a.)\A..",
        ),
    ):
        found, absent = StringSet(patterns=(pattern,)), StringSet(not_patterns=(pattern,))
        for text in map("".join, itertools.product(characters, repeat=2)):
            by_python = re.search(pattern, text) is not None
            assert not found.holds(text) or by_python, (pattern, text)
            assert not absent.holds(text) or not by_python, (pattern, text)
            plain = text.isascii() and text.isprintable()
            assert found.holds(text) + absent.holds(text) == 1 or not plain, (pattern, text)
            differing += not found.holds(text) and not absent.holds(text)
    assert differing > 100
