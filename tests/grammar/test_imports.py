"""Grammars from several texts, and what may stand inside JSON in a grammar."""

from __future__ import annotations

import pytest

from tests.grammar.test_lark_reader import language
from tests.naive.cfg_recogniser import CfgRecogniser
from tokdfa.constraint import MAX_SOURCES, Grammar
from tokdfa.errors import ArgumentError, GrammarSyntaxError, GrammarUnsupported, LimitExceeded, OptionError
from tokdfa.grammar.cfg import SchemaTexts
from tokdfa.grammar.lark_reader import read_grammar

WORDS = """
pair{x}: x SEP x | inner
inner: "b" inner? A
A: "a"
SEP: "," | A
%ignore " "
"""


def accepted(grammar, texts):
    recogniser = CfgRecogniser(read_grammar(grammar))
    return [text for text in texts if recogniser.accepts(text.encode())]


@pytest.mark.parametrize(
    "text",
    [
        '%import words.pair\nstart: pair{"c"}\ninner: "x"\nA: "y"\n',
        '%import .words.pair -> two\n%import words (SEP)\nstart: two{"c"} | two{SEP} SEP SEP\n',
    ],
)
def test_what_is_imported_brings_what_it_needs_under_its_own_names(text):
    found = accepted(Grammar(text, sources={"words": WORDS}), ["c,c", "cac", "ba", "bbaa", "xc", "c ,c", "bx", "b a"])
    assert found == ["c,c", "cac", "ba", "bbaa"]


def test_an_import_is_as_if_it_were_written_here():
    grammar = Grammar("%import more.letters.b -> c\nstart: c c?", sources={"more.letters": "b: A b?\nA: /[ab]/"})
    texts = ["", "a", "ab", "abab", "c"]
    assert accepted(grammar, texts) == [text for text in texts if text in language("start: b b?\nb: A b?\nA: /[ab]/")]


def test_files_are_read_from_a_folder_with_all_that_they_import(tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "one.lark").write_text("%import more.two (b)\na: b b\n")
    (tmp_path / "more" / "two.lark").write_text('b: "b"\n')
    (tmp_path / "unused.lark").write_text("broken")
    grammar = Grammar("%import one.a\nstart: a", path=tmp_path)
    assert [name for name, _ in grammar.sources] == ["more.two", "one"]
    assert accepted(grammar, ["b", "bb"]) == ["bb"]
    assert grammar == Grammar("%import one.a\nstart: a", sources=dict(grammar.sources))
    (tmp_path / "one.lark").write_bytes(b"\xff")
    with pytest.raises(OptionError, match=r"one\.lark cannot be read"):
        Grammar("%import one.a\nstart: a", path=tmp_path)


def test_imports_are_bounded(tmp_path):
    for number in range(MAX_SOURCES + 1):
        (tmp_path / f"n{number}.lark").write_text(f"%import n{number + 1}.a\na: a")
    with pytest.raises(LimitExceeded, match=str(MAX_SOURCES)):
        Grammar("%import n0.a\nstart: a", path=tmp_path)
    with pytest.raises(OptionError, match=str(MAX_SOURCES)):
        Grammar("start: a", sources={f"n{number}": "" for number in range(MAX_SOURCES + 1)})


@pytest.mark.parametrize(
    ("text", "sources", "kind", "place", "message"),
    [
        ("%import other.a\nstart: a", {}, GrammarUnsupported, (1, 1, ""), "nothing to import from 'other'"),
        ("start: a\n%import words.inne", {}, GrammarSyntaxError, (2, 15, ""), "did you mean 'inner'"),
        ("start: inner\n%import words.inner\ninner: A", {}, GrammarSyntaxError, (3, 1, ""), "defined in line 2"),
        ("%import words.pair\nstart: pair", {}, GrammarSyntaxError, (2, 8, ""), "takes 1 argument"),
        ("%import m.a\nstart: a", {"m": "a: b\n"}, GrammarSyntaxError, (1, 4, "m"), "no rule 'b'"),
        ("%import m.a\nstart: a", {"m": "a: A\nA: B\n"}, GrammarSyntaxError, (2, 4, "m"), "no terminal 'B'"),
        ("%import m.a\nstart: a", {"m": "a: /(/"}, GrammarSyntaxError, (1, 5, "m"), "missing )"),
        ("%import m.a\nstart: a", {"m": "\na: ("}, GrammarSyntaxError, (2, 5, "m"), "ends too early"),
        ("%import m.a\nstart: a", {"m": "%import m.a\n"}, GrammarSyntaxError, (1, 1, "m"), "'m' imports itself"),
        ("%import m.a\nstart: a", {"m": "%import n.a", "n": "%import m.a"}, GrammarSyntaxError, (1, 1, "n"), "itself"),
    ],
)
def test_errors_name_the_text_and_the_place(text, sources, kind, place, message):
    with pytest.raises(kind) as caught:
        read_grammar(Grammar(text, sources={"words": WORDS, **sources}))
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column, caught.value.source) == place


def test_options_of_schemas():
    text = 'start: %json {"type": "null"} %json {"type": "null", "x-tokdfa": {"profile": "generation", "order": "any"}}'
    first, second = read_grammar(Grammar(text, json_options={"order": "any", "escapes": "needed"})).lexemes
    assert isinstance(first, SchemaTexts)
    assert isinstance(second, SchemaTexts)
    assert (first.constraint.text, second.constraint.text) == ('{"type": "null"}',) * 2
    assert (first.constraint.escapes, first.constraint.numbers, first.constraint.order) == ("needed", "all", "any")
    assert (second.constraint.numbers, second.constraint.order) == ("natural", "any")
    with pytest.raises(OptionError, match="did you mean 'escapes'"):
        Grammar("start: ", json_options={"escape": "all"})
    with pytest.raises(OptionError, match="order is 'none'"):
        Grammar("start: ", json_options={"order": "none"})
    with pytest.raises(ArgumentError, match="sources"):
        Grammar("start: ", sources={"a": 1})  # type: ignore[dict-item]


def test_a_percent_sign_inside_other_things_is_no_directive():
    text = 'start: "%json" | /%json\\/%regex/'
    text += ' | "a" // %json {\n # %regex\n | %json\n\n {"a": "}\\n\\"%json"}\n | "\\"%json"\n'
    assert [lexeme.name for lexeme in read_grammar(Grammar(text)).lexemes if isinstance(lexeme, SchemaTexts)] == [
        "%json"
    ]
    assert accepted(Grammar('start: "%json" | "a" // %json {\n'), ["a", "%json"]) == ["a", "%json"]


@pytest.mark.parametrize(
    ("way", "texts"),
    [
        ('{"substring_chars": "aba"}', ["", "a", "b", "ab", "ba", "aba"]),
        ('{"substring_words": "a b, ab"}', ["", "a", "b", "ab", "a b", "b,", "b, ab", " ", ","]),
        ('{"substring_chunks": ["ab", "", "a"]}', ["", "ab", "a", "aba"]),
    ],
)
def test_runs_of_chunks(way, texts):
    every = ["", "a", "b", "ab", "ba", "aba", "bab", "a b", "b,", "b, ab", "b, a", " ", ",", ", ", "b ab"]
    for text in (f"start: %regex {way}", f"start: W\nW: %regex {way}"):
        found = accepted(Grammar(text), every)
        assert [one for one in texts if one not in found] == []
        assert [one for one in found if one not in texts] == ([", "] if "words" in way else [])


def test_json_nested_too_deep_is_refused():
    with pytest.raises(LimitExceeded, match=r"line 2, column 5 of the grammar is nested too deep: .* more than 1000"):
        read_grammar(Grammar('start: "a"\n  | %json ' + "[" * 100_000))
