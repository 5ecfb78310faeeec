"""What is wrong with a grammar in GBNF or EBNF is said of the text that its writer knows, whenever it is found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tokdfa
from tokdfa.errors import EmptyLanguageError, GrammarSyntaxError, LimitExceeded, TokdfaError, VocabularyError
from tokdfa.grammar.ebnf import read_ebnf
from tokdfa.grammar.gbnf import read_gbnf

if TYPE_CHECKING:
    from collections.abc import Callable

#: notation, grammar, error, what its message has
FAULTS: list[tuple[Callable[[str], tokdfa.Grammar], str, type[TokdfaError], list[str]]] = [
    (read_gbnf, '# one\nroot ::= "a"\n  my-rule\nmy-rule ::= "b" my-rule', EmptyLanguageError, ["'root'", "my-rule"]),
    (read_gbnf, 'root ::= "a" |\n  x\nx ::= "b"\n  <nope>', VocabularyError, ["'<nope>'", "line 4, column 3"]),
    (read_gbnf, 'root ::=\n "b" <[99]> # x', VocabularyError, ["line 2, column 6"]),
    (read_gbnf, '# a\nroot ::= ("a"\n "c" "b"{3,2})', GrammarSyntaxError, ["3 and 2 at line 3", '\n   "c" "b"{3,2})']),
    (read_gbnf, 'root ::= "x"\n  "a"{200000}', LimitExceeded, ["line 2, column 6"]),
    (read_gbnf, "root ::=\n" + "(" * 120 + '"a"' + ")" * 120, LimitExceeded, ["line 2, column 101"]),
    (read_ebnf, 'root ::= ("a" (= "c")\n | "b")', GrammarSyntaxError, ["line 1, column 15", 'root ::= ("a" (= "c")\n']),
    (read_ebnf, 'root ::= thing\nthing ::= "a" thing\n', EmptyLanguageError, ["'root'", "thing"]),
    (read_ebnf, 'root ::= "a"\nother ::= ( "b"{3,2} )', GrammarSyntaxError, ["line 2", '\n  other ::= ( "b"{3,2} )']),
]  # fmt: skip


@pytest.mark.parametrize(("read", "grammar", "error", "parts"), FAULTS)
def test_faults_have_the_places_of_the_writer(
    read: Callable[[str], tokdfa.Grammar], grammar: str, error: type[TokdfaError], parts: list[str]
) -> None:
    with pytest.raises(error) as caught:
        tokdfa.compile(read(grammar), tokdfa.load_tokenizer("bytes"))
    message = str(caught.value)
    for part in parts:
        assert part in message, message
    assert "r1" not in message
    if isinstance(caught.value, GrammarSyntaxError):
        assert caught.value.text == grammar


def test_what_was_read_is_the_same_grammar_as_its_text() -> None:
    given = read_gbnf('root ::= "a" x*\nx ::= [b-d]')
    same = tokdfa.Grammar(given.text, given.start)
    assert given == same
    assert hash(given) == hash(same)
