"""How much Lark makes of a grammar, counted beforehand, against what it makes; and that it is bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lark
import pytest

from tokdfa.backends.cfg_fsm import lark_size
from tokdfa.backends.cfg_fsm.lark_tables import read_tables
from tokdfa.core.budget import Budget, spending
from tokdfa.errors import GrammarUnsupported, LimitExceeded

if TYPE_CHECKING:
    from pathlib import Path

SHORT = Budget(1.0, 512.0)


def counted(text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """The symbols that are counted."""
    found: list[int] = []
    monkeypatch.setattr(lark_size, "spend", found.append)
    lark_size.count_expansion(text)
    return sum(found) // lark_size.NS_PER_SYMBOL


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ('start: "a"? "b"? ["c"] "d"?', 1.1),
        ('start: ("a"|"b") ("c" | "d" "e"?)', 1.1),
        ('start: ("a"|"b")~2..5 "c"', 1.1),
        ('start: (("a"~2..3)~2 "b")~3', 3),
        ('start: "a"* ("b" "c"?)+', 2),
        ('start: "a"~0..60 "b"', 5),
        ('start: ("a"|"b"|"c")~0..100', 20),
        ("start: a a?\na: b | b b\nb: B\nB: C C | C\nC: /c/", 3),
        ('start: pair{"a"} | pair{"b"}\npair{x}: x x?', 3),
    ],
)
def test_no_less_is_counted_than_lark_makes(text: str, most: float, monkeypatch: pytest.MonkeyPatch) -> None:
    made = sum(len(rule.expansion) for rule in lark.Lark(text, parser="earley").rules)
    assert made <= counted(text, monkeypatch) <= most * made + 10


@pytest.mark.parametrize(
    "text",
    [
        "start: " + " ".join(f'"{letter}"?' for letter in "abcdefghijklmnopqrstuvwxyz") + ' "!"',
        "start: " + " ".join(f'("{letter}"|"{letter.upper()}")' for letter in "abcdefghijklmnopqrst"),
        'start: (((("a"~30)~30)~30)~30)~30',
        "start: T0\n" + "\n".join(f"T{number}: T{number + 1} T{number + 1}" for number in range(40)) + '\nT40: "a"',
        "start: T0\n" + "\n".join(f'T{number}: "a" T{number + 1}' for number in range(400)) + '\nT400: "a"',
        "start: " + "(" * 5_000 + '"a"' + ")" * 5_000,
    ],
    ids=["optional", "choices", "counts", "terminals", "chain", "groups"],
)
def test_what_lark_would_multiply_out_is_refused(text: str) -> None:
    with spending(SHORT, "a grammar"), pytest.raises(LimitExceeded):
        read_tables(text)


@pytest.mark.parametrize("name", ["secret", ".secret"])
def test_no_file_is_imported(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret.lark").write_text('X: "x"')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GrammarUnsupported, match="nothing to import from 'secret'"):
        read_tables(f"%import {name}.X\nstart: X")
    assert len(read_tables("%import common.INT\nstart: INT").terminals) == 1
