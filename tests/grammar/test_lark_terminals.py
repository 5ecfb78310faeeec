import re
from re._parser import SubPattern, parse

import lark
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.strategies import as_python, regex_patterns, short_texts
from tokdfa.errors import GrammarSyntaxError, GrammarUnsupported
from tokdfa.grammar.lark_syntax import parse_statements
from tokdfa.grammar.lark_terminals import TerminalReader
from tokdfa.grammar.lark_tree import Definition, Word
from tokdfa.regex.expression import ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.regex.parse import parse as parse_regex
from tokdfa.regex.syntax_tree import Repeat, walk

TEXTS = short_texts(3)


def reader(text: str) -> TerminalReader:
    definitions = {
        statement.name: statement for statement in parse_statements(text) if isinstance(statement, Definition)
    }
    return TerminalReader(text, definitions, ExpressionStore())


def automaton(text: str, name: str = "T") -> LazyDfa:
    terminals = reader(text)
    return LazyDfa(terminals.store, terminals.named(Word(0, 0, name)))


def matched(text: str) -> set[str]:
    dfa = automaton(text)
    return {word for word in TEXTS if dfa.accepts(word.encode())}


def is_lazy(tree) -> bool:
    """Whether there is a lazy quantifier in what Python's own parser of regexes returns."""
    if isinstance(tree, SubPattern | list | tuple):
        return any(str(part) == "MIN_REPEAT" or is_lazy(part) for part in tree)
    return False


#: `\w` and `\s` are Unicode here and ASCII in `as_python`; the texts have é, on which they differ.
PATTERNS = regex_patterns(anchors=False, look_ahead=False, boundaries=False).filter(
    lambda pattern: "\\w" not in pattern and "\\W" not in pattern and pattern != ""
)


@given(PATTERNS, st.sampled_from(["", "^", "$", "^$"]))
@example("a[*?]b", "")
@example("a\\*?", "")
@example("[]*?]", "")
@example("[^]+?]\\??", "^")
@example("(?:a{1,}?)b", "$")
def test_regexes_are_pythons_except_lazy_ones(pattern: str, anchors: str) -> None:
    grammar = "T: /" + ("^" if "^" in anchors else "") + f"(?:{pattern})" + ("$" if "$" in anchors else "") + "/"
    repeats = [one for one in walk(parse_regex(pattern, dialect="lark with lazy")) if isinstance(one, Repeat)]
    if any(one.lazy for one in repeats):  # not so of a lazy repeat of nothing
        assert is_lazy(parse(pattern))
        try:
            found = matched(grammar)
        except GrammarUnsupported as error:
            assert "lazy quantifier" in error.reason  # noqa: PT017
        else:  # the first match, from the beginning
            matches = {text: as_python(pattern).match(text) for text in TEXTS}
            assert found == {text for text, match in matches.items() if match and match.end() == len(text)}
            assert "$" not in anchors
        return
    assert matched(grammar) == {text for text in TEXTS if as_python(pattern).fullmatch(text)}


def test_what_looks_lazy_in_a_class_is_not() -> None:
    assert matched("T: /[[:alpha:]*?]{2}/") == {"aa", "ab", "ba", "bb"}


@given(st.text(st.sampled_from('ab-é"\\\n\t'), min_size=1, max_size=3), st.booleans())
def test_strings_are_larks(text: str, ignore_case: bool) -> None:
    escaped = (
        text.replace("\\", "\\\\")
        .replace('"', '\\"')
        .replace("\n", "\\n")
        .replace("\t", "\\x09")
        .replace("é", "\\u00e9")
    )
    grammar = f'T: "{escaped}"' + "i" * ignore_case
    (terminal,) = lark.Lark(f"start: T\n{grammar}").terminals
    pattern = re.compile(terminal.pattern.to_regexp())
    dfa = automaton(grammar)
    for word in {text, text.upper(), text[1:], text + "a", text.swapcase()}:
        assert dfa.accepts(word.encode()) == (pattern.fullmatch(word) is not None)


def terms() -> st.SearchStrategy[tuple[str, frozenset[str]]]:
    """Terminal expressions with the texts that they match; right for those of up to 3 characters."""
    every = frozenset(TEXTS)
    leaves = st.sampled_from(
        [
            ('"a"', frozenset({"a"})),
            ("/.*/", frozenset(text for text in TEXTS if "\n" not in text)),
            ("/[ab]{1,2}/", frozenset({"a", "b", "aa", "ab", "ba", "bb"})),
            ('"é"', frozenset({"é"})),
            ('""', frozenset({""})),
        ]
    )

    def extend(inner):
        pairs = st.tuples(inner, inner)
        return st.one_of(
            inner.map(lambda one: (f"~({one[0]})", every - one[1])),
            leaves.map(lambda one: (f"~{one[0]}", every - one[1])),
            pairs.map(lambda two: (f"({two[0][0]} & {two[1][0]})", two[0][1] & two[1][1])),
            pairs.map(lambda two: (f"({two[0][0]} | {two[1][0]})", two[0][1] | two[1][1])),
            pairs.map(
                lambda two: (f"({two[0][0]} {two[1][0]})", frozenset(a + b for a in two[0][1] for b in two[1][1]))
            ),
        )

    return st.recursive(leaves, extend, max_leaves=5)


@given(terms())
def test_and_or_not_are_those_of_sets_of_texts(term: tuple[str, frozenset[str]]) -> None:
    written, meaning = term
    dfa = automaton(f"T: {written}")
    assert {text for text in TEXTS if dfa.accepts(text.encode())} == meaning & set(TEXTS)
    for broken in (b"\xc3", b"a\xff", b"\xa9\xc3"):
        assert not dfa.accepts(broken)


def test_and_binds_tighter_than_or_and_not_tightest() -> None:
    assert matched('T: "a" | /a|b/ & "b"') == {"a", "b"}
    assert matched('T: /..?/ & ~"a" "b" | "-"') == {"b", "bb", "-b", "éb", "-"}
    assert matched('T: "b" ~"a"? & /../') == {"bb", "b-", "bé"}


def test_terminals_are_made_of_terminals() -> None:
    grammar = 'T: A+ | B~2\nA: "a" B?\nB: "b" | C\nC: "-"'
    assert matched(grammar) == {text for text in TEXTS if re.fullmatch(r"(a[b-]?)+|[b-]{2}", text)}


def test_references_are_followed_with_a_list() -> None:
    chain = "".join(f"T{i}: T{i + 1}\n" for i in range(5000)) + 'T5000: "a"'
    assert automaton(chain, "T0").accepts(b"a")
    with pytest.raises(GrammarSyntaxError, match="T0 is made of itself") as caught:
        reader(chain.replace('"a"', "T0")).named(Word(0, 0, "T0"))
    assert (caught.value.line, caught.value.column) == (5001, 8)
