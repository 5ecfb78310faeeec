"""The grammars of experiments/inputs/grammars and their texts: two parsers of Lark and llguidance say who takes what.

Three readers that nobody here wrote, each with its own idea of a lexer:

- ``dynamic``, Lark's Earley parser: matches each terminal that may come next, the longest text of each, at every
  place. Words are not kept whole: ``returnx`` may be read as ``return x``.
- ``contextual``, Lark's LALR(1) parser: one terminal at each place, from those that the parser's state allows.
- ``llguidance``: longest match among the allowed terminals with one byte of look-ahead, and all readings of that match;
  it does not go back to a shorter match. Ignored text may stand between two terminals and, where the grammar could go
  on, at the end, but never at the beginning.

All must agree on the texts of the YAML files. `DIFFERENCES` are texts on which they do not.
"""

from functools import cache
from typing import NamedTuple

import lark
import pytest
import yaml

from tests.backends.grammar_walks import FOLDER, compile_with, grammar_of, texts_of, tokenizer_of
from tests.walks import accepts

LALR = ("arithmetic", "c_like", "csv", "json", "sexpr", "tool_call")
EARLEY = ("key_value", "sql")
#: Uses an attribute that plain Lark does not know.
OWN_DIALECT = ("tool_call_lazy",)
ALL = (*LALR, *EARLEY, *OWN_DIALECT)

_IN_BODY = "void f() {{ {} }}"
_LEADING = "llguidance ignores nothing before the first terminal"
_TRAILING = "llguidance ignores nothing after a text that cannot go on"
_NO_WAY_BACK = "llguidance reads on after a shorter match and does not go back to it"
_PREFERRED = "Lark's lexer takes a keyword for nothing else where the keyword may stand"
_SPLIT = "Lark's dynamic lexer takes the words apart again, the others read one name"


TAG = "<tool>"
HALF_TAGS = tuple(TAG[:end] for end in range(1, len(TAG)))


class Difference(NamedTuple):
    """A text that not all readers take, with the readers that do."""

    grammar: str
    text: str
    taken_by: str
    why: str


DIFFERENCES = (
    Difference("json", " 1", "dynamic contextual", _LEADING),
    Difference("json", "\n[]", "dynamic contextual", _LEADING),
    Difference("json", "1\n", "dynamic contextual", _TRAILING),
    Difference("json", "{} ", "dynamic contextual", _TRAILING),
    Difference("arithmetic", " 1", "dynamic contextual", _LEADING),
    Difference("sexpr", "; comment\n(a)", "dynamic contextual", _LEADING),
    Difference("c_like", "/* comment */ int x;", "dynamic contextual", _LEADING),
    Difference("sql", "-- comment\nSELECT a FROM t", "dynamic", _LEADING),
    Difference("sexpr", "(1. a)", "dynamic contextual", _NO_WAY_BACK + ": a number, a point, a symbol"),
    Difference(
        "key_value", "a: b # comment\n", "dynamic contextual", _NO_WAY_BACK + ": a blank may continue the words"
    ),
    Difference("key_value", "a:\n  b: c d  # e\n", "dynamic contextual", _NO_WAY_BACK),
    Difference("key_value", "a: # comment\n  - b\n", "dynamic", "the longest match is the colon with its blank"),
    Difference("key_value", "a:\n  - b: c\n", "dynamic llguidance", "contextual settles for a plain value too early"),
    Difference("sql", "SELECT a --1 FROM t", "dynamic", "two signs as well as the beginning of a comment"),
    Difference("c_like", _IN_BODY.format("x = a--b;"), "dynamic llguidance", "LALR(1) merges states: -- may seem next"),
    Difference("c_like", _IN_BODY.format("for = 1;"), "dynamic llguidance", _PREFERRED),
    Difference("c_like", _IN_BODY.format("x = true();"), "dynamic llguidance", _PREFERRED),
    Difference("c_like", _IN_BODY.format("returnx;"), "dynamic", _SPLIT),
    Difference("c_like", _IN_BODY.format("return1;"), "dynamic", _SPLIT),
    Difference("c_like", _IN_BODY.format("intx;"), "dynamic", _SPLIT),
)


@cache
def parser_of(name, reader):
    if reader == "dynamic":
        return lark.Lark(grammar_of(name).source, parser="earley", lexer="dynamic")
    return lark.Lark(grammar_of(name).source, parser="lalr", lexer="contextual")


@cache
def compiled_by(name, backend):
    return compile_with(grammar_of(name), tokenizer_of("bytes").vocabulary, backend)


def takes(name, reader, text):
    """Whether `reader`, with the grammar `name`, accepts all of `text`."""
    if reader in ("llguidance", "earley_trie"):
        return accepts(compiled_by(name, reader).start(), text)
    try:
        parser_of(name, reader).parse(text)
    except lark.exceptions.UnexpectedInput:
        return False
    return True


def wrong(name, reader, texts):
    """The texts about which `reader` is of another opinion than `texts`."""
    return [
        text for said, listed in texts.items() for text in listed if takes(name, reader, text) != (said == "accepted")
    ]


@pytest.mark.parametrize("name", LALR + EARLEY)
def test_earley_parser_agrees(name):
    assert wrong(name, "dynamic", texts_of(name)) == []


@pytest.mark.parametrize("name", LALR)
def test_lalr_parser_agrees(name):
    assert wrong(name, "contextual", texts_of(name)) == []


@pytest.mark.parametrize("name", ALL)
def test_llguidance_agrees(name):
    assert wrong(name, "llguidance", texts_of(name)) == []


def test_lazy_variant_takes_the_texts_of_the_other():
    assert wrong("tool_call_lazy", "llguidance", texts_of("tool_call")) == []


@pytest.mark.parametrize("reader", ["dynamic", "contextual", "llguidance"])
def test_lazy_variant_adds_half_tags_only(reader):
    accepted = texts_of("tool_call_lazy")["accepted"]
    beyond = [text for text in accepted if not takes("tool_call", reader, text)]
    assert beyond == [text for text in accepted if text.endswith(HALF_TAGS)]
    assert len(beyond) >= 4
    assert [text for text in texts_of("tool_call_lazy")["refused"] if takes("tool_call", reader, text)] == []


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda d: f"{d.grammar}-{d.text!r}")
def test_differences_are_as_declared(difference):
    readers = ("dynamic", "llguidance") if difference.grammar == "sql" else ("dynamic", "contextual", "llguidance")
    found = [reader for reader in readers if takes(difference.grammar, reader, difference.text)]
    assert found == difference.taken_by.split()


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda d: f"{d.grammar}-{d.text!r}")
def test_longest_match_takes_what_another_takes_that_keeps_words_whole(difference):
    """Our engine with its defaults: a text that Lark's dynamic lexer alone takes needs a shorter match."""
    assert takes(difference.grammar, "earley_trie", difference.text) == (
        difference.taken_by != "dynamic" or difference.why == _LEADING
    )


@pytest.mark.parametrize(("language", "letters"), [("table", 'ab1",\r\n é'), ("JSON", '[]{},:"\\na10.-tre')])
def test_lexemes_and_characters_spell_the_same_languages(language: str, letters: str) -> None:
    """Of experiments/scannerless.yaml, which compares them; each text, and each with one character changed."""
    experiment = yaml.safe_load((FOLDER.parents[1] / "scannerless.yaml").read_text())
    entries = {entry["label"]: entry for entry in experiment["constraints"]}
    compiled = [
        compile_with(entries[f"{language}, {form}"]["grammar"], tokenizer_of("bytes").vocabulary, "earley_trie")
        for form in ("lexemes", "characters")
    ]
    outcomes = set()
    for text in entries[f"{language}, lexemes"]["texts"]:
        changed = [text[:k] + letters[k % len(letters)] + text[k + 1 :] for k in range(len(text))]
        for written in (text, *changed):
            answers = {accepts(each.start(), written) for each in compiled}
            assert len(answers) == 1, written
            outcomes |= answers
    assert outcomes == {True, False}
