import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.grammar.grammars import LarkJudge, lark_grammars
from tests.grammar.meta_grammar import first_fault
from tests.naive.cfg_recogniser import CfgRecogniser
from tests.strategies import short_texts
from tokdfa.core.budget import Budget, spending
from tokdfa.errors import (
    EmptyLanguageError,
    GrammarSyntaxError,
    GrammarUnsupported,
    LimitExceeded,
    UnknownNameError,
)
from tokdfa.grammar.cfg import Lexeme
from tokdfa.grammar.lark_reader import read_lark
from tokdfa.grammar.lark_syntax import parse_statements


def language(grammar: str, letters: str = "ab", longest: int = 4) -> set[str]:
    recogniser = CfgRecogniser(read_lark(grammar))
    return {text for text in short_texts(longest, letters) if recogniser.accepts(text.encode())}


def agree_with_lark(grammar: str, letters: str, longest: int) -> None:
    judge = LarkJudge(grammar)
    recogniser = CfgRecogniser(read_lark(grammar), outer_skip=True)
    for text in short_texts(longest, letters):
        assert recogniser.accepts(text.encode()) == judge.accepts(text), text


@settings(max_examples=30)
@given(lark_grammars())
def test_random_grammars_accept_what_lark_accepts(grammar: str) -> None:
    agree_with_lark(grammar, "ab", 4)


@settings(max_examples=15)
@given(lark_grammars(max_rules=3, ignore=True))
def test_random_grammars_skip_what_lark_skips(grammar: str) -> None:
    agree_with_lark(grammar, "abc", 3)


CONSTRUCTS = {
    "strings": 'start: "a" "\\"" | "\\\\" | "\\x61\\u0062" | "B"i',
    "regexes": 'start: /a[^b]?/ | /B/i | /a b/x "b"',
    "ranges": 'start: "a".."b" "a".."a"',
    "groups": 'start: ("a" | "b" "b") ["a" | "b"]',
    "counts": 'start: "a"~2 | "b"~1..3 | ("a" "b")~0..1',
    "operators": 'start: "a"? "b"+ ("a" "b")*',
    "terminals": 'start: A B*\nA: "a" _C?\nB: (_C | "\\\\")\n_C: "b" | "b" "a"',
    "aliases and marks": '?start: "a" -> one\n | other -> two\n!other.2: "b"\n',
    "comments": 'start: "a" // one\n  // two\n # three\n\n  | "b"\n// four',
    "continued lines": 'start: "a" \\\n "b"\n',
    "an empty alternative": 'start: | "a" start "b"',
    "templates": 'start: _list{"a", B}\n_list{x, y}: x (y x)*\nB: "b"\n',
    "templates of templates": 'start: one{two{"a"}}\none{x}: x "b" x\ntwo{y}: y | y y\n',
    "imports": "start: LETTER QUOTE?\n%import common.LCASE_LETTER -> LETTER\nQUOTE: \"\\\"\"\n",
    "several imports": "start: INT | LETTER\n%import common (INT, LETTER)",
    "nested brackets": 'start: "a" start "b" start |',
    "a cycle": 'start: other | "a"\nother: start | "b" start?',
}  # fmt: skip


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_each_construct_means_what_it_means_to_lark(name: str) -> None:
    grammar = CONSTRUCTS[name]
    judge, recogniser = LarkJudge(grammar), CfgRecogniser(read_lark(grammar))
    accepted = [text for text in short_texts(4, 'abB"\\') if judge.accepts(text)]
    assert accepted == [text for text in short_texts(4, 'abB"\\') if recogniser.accepts(text.encode())]
    assert accepted


@pytest.mark.parametrize(
    ("grammar", "same"),
    [
        ('start: "a"{2} "b"', 'start: "a"~2 "b"'),
        ('start: "a"{1,3}', 'start: "a"~1..3'),
        ('start: ("a" | "b"){,2}', 'start: ("a" | "b")~0..2'),
        ('start: "a"{2,}', 'start: "a" "a"+'),
        ('start: "a"{ 0 , }', 'start: "a"*'),
        ('start: ("a" "b"?){0}', "start:"),
        ('start: "" "a" ""', 'start: "a"'),
        ("start: A\nA: /[ab]+/ & ~/.*bb.*/", "start: A\nA: /(b?a)*b?/ & /..*/"),
        ('start: A\nA: ~~"a"', 'start: "a"'),
        ('start: A\nA: "a" ~"a" & /.{1,3}/ | "b"', 'start: "a" A? | "b"\nA: /../ | /b/'),
        ("start: /^ab$/ | /^a|b$/", "start: /ab|a|b/"),
        ('%llguidance {}\nstart: "a"', 'start: "a"'),
        ('start: a-b "b"\na-b: "a"->name', 'start: "a" "b"'),
        ("start: /a # x\n  b/x", 'start: "ab"'),
    ],
)
def test_what_lark_lacks_means_what_it_says(grammar: str, same: str) -> None:
    assert language(grammar) == language(same) != set()


def test_a_complement_is_utf_8() -> None:
    recogniser = CfgRecogniser(read_lark('start: X\nX: "a" ~"b" & ~"c" | ~"x"'))
    for text in (b"\xff", b"\xc3", b"a\xc3", b"\xa9"):
        assert not recogniser.accepts(text)
    # two halves of a character make no two texts
    halves = CfgRecogniser(read_lark("start: X\nX: ~/(.|\\n)?/ ~/(.|\\n)?/"))
    assert [halves.accepts(text.encode()) for text in ("é", "éé", "ééé", "éééé")] == [False, False, False, True]


def test_special_tokens_stand_between_lexemes() -> None:
    cfg = read_lark('start: <|tool|> "a" <[3-4]>? | <[*]>\n%ignore " "')
    recogniser = CfgRecogniser(cfg)
    for text, expected in [
        (("<|tool|>", 97), True),
        (("<|tool|>", 32, 97, 32, "<[3-4]>"), True),
        (("<[*]>",), True),
        (("<|tool|>",), False),
        (tuple(b"<|tool|>a"), False),
    ]:
        assert recogniser.accepts(text) == expected, text


def test_no_lexeme_is_empty() -> None:
    cfg = read_lark('start: /a*/ B "c"? ""\nB: ~"b"\n%ignore /x*/')
    assert all(not cfg.store.nullable(lexeme.expression) for lexeme in cfg.lexemes if isinstance(lexeme, Lexeme))


def test_another_start() -> None:
    grammar = 'start: "a" other\nother: "b"'
    assert CfgRecogniser(read_lark(grammar, "other")).accepts(b"b")
    for name in ("othr", "start ", "A"):
        with pytest.raises(UnknownNameError, match="no rule"):
            read_lark(grammar, name)


BAD = [
    # (grammar, line, column, part of the message, whether it is refused rather than wrong)
    ("start: 'a'", 1, 8, "double quotes", False),
    ('start: "abc\nx: "d"', 1, 8, "string is not closed", False),
    ('start: "a" /abc', 1, 12, "regex is not closed", False),
    ('start: "a"\n  | ("b"\n', 2, 9, "line ends too early", False),
    ('start: "a" )', 1, 12, "cannot stand here", False),
    ('start: "a"**', 1, 12, "repeated twice", False),
    ('start: * "a"', 1, 8, "nothing to repeat", False),
    ('start: "a" {2,1}', 1, 12, "low <= high", False),
    ('start: "a"~3..2', 1, 11, "low <= high", False),
    ("start: a : b", 1, 10, "no definition begins here", False),
    ("start: a\n\n\n  b", 4, 4, "line ends too early", False),
    ('start: "a"\nmyRule: "b"', 2, 1, "upper case", False),
    ("start: __a", 1, 8, "at most one _", False),
    ('start: "a\\qb"', 1, 10, "unknown escape", False),
    ('start: "\\ud800"', 1, 9, "UTF-8", False),
    ('start: "\\x4"', 1, 9, "unknown escape", False),
    ('start: "z".."a"', 1, 8, "a range is", False),
    ('start: "ab".."c"', 1, 8, "a range is", False),
    ('start: "a"i.."c"', 1, 8, "a range is", False),
    ('start: "a"\n  | /a(b/', 2, 7, "missing )", False),
    ("start: /a\\1/", 1, 10, "back-reference", True),
    ("start: /a # x\n  \\1/x", 2, 3, "back-reference", True),
    ('start: "a" /a(?=b)/', 1, 12, "look-ahead", True),
    ("start: /(?<=a)b/", 1, 9, "look-behind", True),
    ("start: /a\\bc/", 1, 8, "no text matches", False),
    ("start: /ac\\b/", 1, 8, "word boundary", True),
    ("start: /a^b/", 1, 8, "anchor inside", True),
    ("start: /(^a)b/m", 1, 8, "anchor inside", True),
    ('start: A\nA: "x" /a[*?]b+?c/', 2, 16, "lazy quantifier", True),
    ("start: /a{2,3}?c?/", 1, 8, "lazy quantifier", True),
    ("start: /a/l", 1, 11, "flag l", True),
    ('start: "a" fo\nfoo: "b"', 1, 12, "did you mean 'foo'", False),
    ('start: "a"\nunused: B', 2, 9, "no terminal 'B'", False),
    ('start: A\nA: "a" b\nb: "b"', 2, 8, "b is a rule", False),
    ('start: A\nA: "a" B\nB: "b" A?', 3, 8, "made of itself", False),
    ('start: A\nA: "a" <x>', 2, 8, "special tokens are no text", False),
    ('start: A\nA: "a" -> x', 2, 8, "alias", False),
    ('start: A\nA: t{"a"}\nt{x}: x', 2, 4, "template", False),
    ("start: A\nA: /a/ & /b/", 2, 1, "no text matches A", False),
    ("start: /[\\ud800]/", 1, 8, "no text matches", False),
    ('start: "a"\n%ignore /a/ & /b/', 2, 1, "no text matches", False),
    ('start: "a" & "b"', 1, 12, "& stands in terminals", False),
    ('start: ("a" & "b")', 1, 13, "& stands in terminals", False),
    ('start: ~"b"', 1, 8, "~ stands in terminals", False),
    ('start: "a"\nstart: "b"', 2, 1, "defined in line 1", False),
    ('start: WS\nWS: "b"\n%import common.WS', 3, 16, "defined in line 2", False),
    ('start: A\nA{x}: "a"', 2, 3, "only rules have parameters", False),
    ("start: t\nt{x}: x", 1, 8, "takes 1 argument, not 0", False),
    ('start: t{"a", "b"}\nt{x}: x', 1, 8, "takes 1 argument, not 2", False),
    ('start: t{"a", "b"}\nt{x, x}: x', 2, 1, "one name", False),
    ('start: t{"a"}\nt{X}: X', 2, 3, "in lower case", False),
    ('start: t{"a"}\nt{x}: x{"b"}', 2, 7, "no template", False),
    ('start: A{"a"}\nA: "b"', 1, 8, "no template", False),
    ("start: <[5-1]>", 1, 8, "5-1 is empty", False),
    ('start: "a" <[^*]>', 1, 12, "special tokens by id", False),
    ("start: < x>", 1, 8, "no special token", False),
    ('start: x\nx[stop="a"]: /b/', 2, 3, "attribute stop", True),
    ('start: x\nx[lazy, max_tokens=3]: /b/', 2, 9, "attribute max_tokens", True),
    ("start: x\nx[lazy=1]: /b/", 2, 3, "lazy takes no value", False),
    ("start: x\nx[suffix]: /b/", 2, 3, "suffix takes a string", False),
    ('start: x\nx[lazy]: "a" start', 2, 14, "one lexeme", False),
    ('start: "a" %json {"type": "null"', 1, 33, "%json is followed by JSON", False),
    ("start: %json nothing", 1, 14, "%json is followed by JSON", False),
    ('start: %json {"type":\n "null" x}', 2, 9, "%json is followed by JSON", False),
    ("start: A\nA: %json {}", 2, 4, "in rules only", False),
    ('start: %json {"x-tokdfa": {"order_": "any"}}', 1, 8, "did you mean 'order'", False),
    ('start: %json {"x-tokdfa": []}', 1, 8, "x-tokdfa takes", False),
    ('start: %regex {"substring_words": 1}', 1, 8, "takes a text", False),
    ('start: %regex {"substring_chunks": ["a", 1]}', 1, 8, "takes a list", False),
    ('start: %regex {"words": "a"}', 1, 8, "substring_words", False),
    ("start: @other", 1, 8, "another grammar", True),
    ('%llguidance {"no_forcing": true}\nstart: "a"', 1, 1, "pass them to the backend", True),
    ("%declare A\nstart: A", 1, 1, "%declare", True),
    ('%override start: "a"', 1, 11, "there is no start to override", False),
    ('start: "a"\n%extend other: "b"', 2, 9, "there is no other to extend", False),
    ('%unknown A\nstart: "a"', 1, 1, "unknown directive", False),
    ("start: A\n%import python.A", 2, 1, "only common terminals", True),
    ("start: A\n%import common.NUMBR -> A", 2, 16, "'NUMBER'", False),
    ("start: a\n%import common.WS -> a", 2, 22, "upper-case name", False),
]  # fmt: skip


@pytest.mark.parametrize(("grammar", "line", "column", "message", "refused"), BAD, ids=[repr(row[0]) for row in BAD])
def test_errors_have_a_place(grammar: str, line: int, column: int, message: str, refused: bool) -> None:
    with pytest.raises(GrammarSyntaxError) as caught:
        read_lark(grammar)
    error = caught.value
    assert message in error.reason
    assert (error.line, error.column) == (line, column)
    assert isinstance(error, GrammarUnsupported) == refused
    shown, caret = str(error).splitlines()[-2:]
    assert shown[2:] == grammar.split("\n")[line - 1]
    assert caret.index("^") == column + 1


@pytest.mark.parametrize(
    "grammar", ["start: start", 'start: "a" other\nother: start "b"', "start: (start | start) start"]
)
def test_a_start_that_derives_nothing(grammar: str) -> None:
    with pytest.raises(EmptyLanguageError, match="'start' derives no text"):
        read_lark(grammar)


@pytest.mark.parametrize(
    ("grammar", "limit", "place"),
    [
        ("start: " + "(" * 200 + '"a"' + ")" * 200, "group nesting", "line 1"),
        ("start: A\nA: " + "~" * 5000 + '"a"', "group nesting", "line 2"),
        ('start: "a"~100001', "count", "line 1, column 11"),
        ('start: "a"{9' + "9" * 10_000 + "}", "count", "line 1, column 11"),
        ('start: t{"a"}\nt{x}: x t{u{x}}?\nu{x}: x x', "template instances", "line 2, column 9"),
        ('start: t{"a", "b"}\nt{x, y}: x t{u{x, y}, u{y, x}}?\nu{x, y}: x y', "template instances", "line 2"),
    ],
)
def test_limits(grammar: str, limit: str, place: str) -> None:
    with pytest.raises(LimitExceeded, match=place) as caught:
        read_lark(grammar)
    assert caught.value.limit == limit


def test_limits_of_expressions_get_a_place() -> None:
    doubling = "start: A0\n" + "".join(f"A{i}: A{i + 1} A{i + 1}\n" for i in range(30)) + "A30: /a|bc/"
    several = "|".join(f"w{k * 7919 % 100003}[a-{chr(98 + k % 20)}]{{2,{k % 9 + 3}}}z{k}" for k in range(400))
    for grammar, seconds, place in [
        (doubling, 0.02, r"\(line \d+, column 1 of the grammar\)$"),
        ('start: "b" /(' + "a?" * 9000 + ")/", 0.002, r"\(line 1, column 12 of the grammar\)$"),
        (f"start: A\nA: /{several}/ /(?<=a)/", 0.021, r"\(line 2, column 1 of the grammar\)$"),  # and a fault behind
    ]:
        budget = spending(Budget(seconds, megabytes=100), "a grammar")
        with budget, pytest.raises(LimitExceeded, match=place) as caught:
            read_lark(grammar)
        assert caught.value.limit == "compile_seconds"


PIECES = (
    *re.split(
        " ", 'start : "a" A | ( ) [ ] { } 2 , ~ & -> /b/ <x> %ignore %import common. WS . .. * ? ! = lazy \\ " / é'
    ),
    *("\n", " ", "\r", "// c"),
)


#: Faults that are not of the notation.
_MEANT = re.compile(r"no name|lower case|only rules have|priority is not|upper-case name|a repeat needs")


@settings(max_examples=500)
@given(st.lists(st.sampled_from(PIECES)).map("".join))
@example("a:b~2~3")
@example('a:b{2}{c}|d{e{2}}|(f\n|g)\n//\n|"h"..i')
@example("%import .a.b (c,d)\n%llguidance {}\n!?r.2{x,y}[lazy,s=/a/]: ~~x->y|&\\\n<[1]>")
def test_texts_are_read_as_far_as_lark_reads_them(text: str) -> None:
    for grammar in (text, 'start: "a" ' + text):
        fault = first_fault(grammar)
        place = fault if fault is None else (grammar.count("\n", 0, fault) + 1, fault - grammar.rfind("\n", 0, fault))
        error = _syntax_error(grammar)
        found = error and (error.line, error.column)
        if error and _MEANT.search(error.reason):
            assert place is None or found <= place
        else:
            assert found == place


def _syntax_error(grammar: str) -> GrammarSyntaxError | None:
    try:
        parse_statements(grammar)
    except GrammarSyntaxError as error:
        return error
    return None


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_lines_may_end_as_on_windows(name: str) -> None:
    assert str(read_lark(CONSTRUCTS[name].replace("\n", "\r\n"))) == str(read_lark(CONSTRUCTS[name]))


def test_a_grammar_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokdfa.grammar.lark_syntax.MAX_TEXT", 10)
    with pytest.raises(LimitExceeded, match="11 characters"):
        read_lark('start: "ab"')


def test_long_chains_and_lists_cost_no_stack() -> None:
    rules = "start: r0\n" + "".join(f"r{i}: r{i + 1}\n" for i in range(3000)) + 'r3000: "a"\n'
    assert len(read_lark(rules).rules) == 3002
    terminals = "start: A0\n" + "".join(f"A{i}: A{i + 1}\n" for i in range(3000)) + 'A3000: "a"\n'
    assert [lexeme.name for lexeme in read_lark(terminals).lexemes] == ["A0"]
    choices = "start: " + " | ".join(f'"w{i}"' for i in range(3000))
    assert len(read_lark(choices).lexemes) == 3000
    deep = "start: " + "(" * 99 + '"a"' + ' | "b")' * 99
    assert CfgRecogniser(read_lark(deep)).accepts(b"b")
