"""The backend as a whole: against llguidance and the definitions, on odd and hostile input."""

from __future__ import annotations

import random

import pytest

from tests.backends import grammar_walks
from tests.backends.grammar_walks import NAMES, compile_with, grammar_of, texts_of, tokenizer_of, walk_all
from tests.walks import accepts, mask_of
from tokdfa.errors import EmptyLanguageError

#: llguidance's rules.
PEER_RULES = {"lexer": "one_byte", "ignore": "between"}


def earley(constraint, vocab, **options):
    return compile_with(constraint, vocab, "earley_trie", **options)


def bytes_start(constraint, backend="earley_trie", **options):
    return grammar_walks.bytes_start(constraint, backend, **options)


# Against llguidance, by its own rules.


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("tokenizer", "steps", "walks"), [("bytes", 50, 12), ("mistral-v1", 12, 5)])
def test_masks_are_llguidances(name, tokenizer, steps, walks):
    """No difference is known on these grammars."""
    found, rng = tokenizer_of(tokenizer), random.Random(1)
    ours = earley(grammar_of(name), found.vocabulary, **PEER_RULES)
    theirs = compile_with(grammar_of(name), found.vocabulary, "llguidance")
    texts = texts_of(name)["accepted"]
    masks = 0
    for number in range(walks):
        text = texts[number % len(texts)] if number % 2 else ""
        masks += walk_all([ours.start(), theirs.start()], found, text, steps, rng)
    assert masks > 2 * walks


#: (grammar, texts that both take, texts that llguidance and the rules `one_byte` and `between` refuse, of which the
#: rules `longest` and `anywhere` take these).
VECTORS = [
    ('start: STEM SUFFIX\nSTEM: "list" | "listen"\nSUFFIX: "ed"', ["listened"], ["listed", "listenned"], ["listed"]),
    ('start: "if" "(" | ID "="\nID: /[a-z]+/', ["if(", "if=", "iff="], ["iff(", "=", "if"], []),
    ('start: /aaa/ | /a+b/ "x"', ["aaa", "aaabx", "abx"], ["aaaa", "aaab", "aa"], []),
    ("start: ID ID\nID: /[a-z]+/\n%ignore / +/", ["ab  cd"], ["abcd", " ab cd", "ab cd "], [" ab cd", "ab cd "]),
    ('start: "a" W "b"\nW: / +/\n%ignore / +/', [], ["a b", "ab", "a  b"], ["a b", "a  b"]),
    ('start: "a" "b"\n%ignore / {1,2}/', ["a   b", "ab", "a     b"], ["a", "a  "], []),
    ('start: "a" "b"\n%ignore / +/\n%ignore /#[^\\n]*\\n/', ["a # c\nb", "a#\n#\n b"], ["a # c b"], []),
    ('start: x "b"\nx[lazy]: /a*/', ["b", "ab"], ["aab"], []),
    ("start: x\nx[lazy]: /.*END/", ["fooEND", "END"], ["fooENDx", "fooENDEND", "foo"], []),
    ('start: x\nx[suffix="END"]: /.*/', ["fooEND", "END"], ["fooENDEND", "foo"], []),
    ('start: "é"i', ["É", "é"], ["e"], []),
    ('start: "a"{,2}', ["", "a", "aa"], ["aaa"], []),
    ('start: "a".."f"', ["a", "c", "f"], ["g", ""], []),
    ("start: /a*/", ["", "aaa"], ["b"], []),
    ('start: "(" start ")" start |', ["", "(())()", "()"], ["(", "())", ")("], []),
    (
        'start: NUMBER DOT NAME\nNUMBER: /[0-9]+(\\.[0-9]+)?/\nDOT: "."\nNAME: /[a-z]+/',
        ["1.5.x"],
        ["1.x", "1.5x"],
        ["1.x"],
    ),
]


@pytest.mark.parametrize(("grammar", "taken", "refused", "by_longest"), VECTORS, ids=lambda value: str(value)[:30])
def test_conformance(grammar, taken, refused, by_longest):
    for text in taken + refused:
        expected = text in taken
        assert accepts(bytes_start(grammar, "llguidance"), text) == expected, text
        if taken:
            assert accepts(bytes_start(grammar, **PEER_RULES), text) == expected, text
        else:  # the masks of llguidance lead to no end
            with pytest.raises(EmptyLanguageError):
                bytes_start(grammar, **PEER_RULES)
        for engine in ("earley_trie", "pushdown_trie"):
            taken_by_longest = accepts(bytes_start(grammar, engine, lexer="longest"), text)
            assert taken_by_longest == (expected or text in by_longest), (engine, text)


def test_a_lexeme_may_swallow_the_next_one_for_ever():
    """The lexing rules' own kind of dead end: llguidance's masks are never empty, and no text is ever complete. Ours
    are not made (tests/backends/test_longest_match.py)."""
    grammar = 'start: A "a"\nA: /a+/\n'
    matcher = bytes_start(grammar, "llguidance")
    for _ in range(5):
        assert mask_of(matcher) == [ord("a")]
        matcher.advance(ord("a"))
    for options in ({}, PEER_RULES):
        with pytest.raises(EmptyLanguageError, match='A may swallow "a"'):
            bytes_start(grammar, "earley_trie", **options)
