r"""The oracle may say None at any time, but never the wrong thing: checked against hand-made answers."""

from __future__ import annotations

import pytest

from tokdfa.constraint import Choice, Grammar, Regex
from tokdfa.lab.measure.oracle import in_language


@pytest.mark.parametrize(
    ("constraint", "inside", "outside"),
    [
        (Regex("[0-9]{2,3}"), ["12", "123"], ["1", "1234", "12a", ""]),
        (Regex(r"\d+"), ["7"], ["x"]),
        (Regex("ab", search=True), ["ab", "xxabyy"], ["ba", ""]),
        (Regex("AB", flags="i"), ["aB"], ["a"]),
        (Regex("a.b", flags="s"), ["a\nb"], ["a\n\nb"]),
        (Regex("a.b"), ["axb", "aéb"], ["a\nb"]),
        (Regex("a b # c", flags="x"), ["ab"], ["a b"]),
        (Regex("(?:é|ü)+"), ["éü"], ["e"]),
        (Choice(["yes", "no"]), ["yes", "no"], ["y", "yesno", ""]),
        (Choice(["ä", b"\xff"]), ["ä"], ["a"]),
    ],
)
def test_known_answers(constraint, inside, outside):
    for text in inside:
        assert in_language(constraint, text.encode()) is True
    for text in outside:
        assert in_language(constraint, text.encode()) is False


def test_bytes_that_are_no_text():
    assert in_language(Choice([b"\xff"]), b"\xff") is True
    assert in_language(Regex(".*"), b"\xff") is False


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        (Regex(r"\d+"), "٣"),  # Unicode tables
        (Regex(r"\s"), "\x1c"),  # white space for Python only
        (Regex("straße", flags="i"), "STRASSE ẞ"),
        (Regex("a(?i)b"), "aB"),  # where the flag begins
        (Regex("a.b"), "a\rb"),  # a line end in ECMA only
        (Regex("a$", search=True), "a\n"),  # Python's $
        (Regex(r"\u{61}"), "a"),  # does not compile in Python
        (Regex("[[a]b]"), "ab]"),  # a set within a set in Rust only
        (Regex("[a-z&&[^b]]"), "a"),
        (Regex("((x|xx)+)+[yz]"), "x" * 60 + "v"),  # backtracks for ever
        (Grammar("start: A"), "A"),
    ],
)
def test_none_where_dialects_may_differ(constraint, text):
    assert in_language(constraint, text.encode()) is None
