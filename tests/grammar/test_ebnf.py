"""xgrammar's EBNF read into our grammar, against `re` on all short texts and against xgrammar itself."""

from __future__ import annotations

import itertools
import re

import pytest

from tests.backends.grammar_walks import compile_with, tokenizer_of
from tests.walks import accepts
from tokdfa.constraint import Grammar
from tokdfa.errors import GrammarSyntaxError, GrammarUnsupported, UnknownNameError
from tokdfa.grammar.ebnf import read_ebnf
from tokdfa.vocabulary.vocabulary import Vocabulary

#: Grammar, the same as a regex of Python's.
CASES = [
    (r'root ::= "a" | b' + "\n" + r'b ::= [b-c]{2} (= "a")', "a|[bc]{2}"),
    ('root ::= a("b")\na ::= [^]', "(?s).b"),
    ('root ::= ()\n # nothing\n | "a" ( )', "a?"),
    (r'root ::= "\x41b" | "\x61" "\/\?"', r"\u041b|a/\?"),
    (r"root ::= [\-\^a]{2,3}", r"[\-^a]{2,3}"),
    ('root ::= root "a" | "b"', "ba*"),
]
LETTERS = "abcx"


def judge_of(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.DOTALL)


def texts(longest: int) -> list[str]:
    return ["".join(t) for n in range(longest + 1) for t in itertools.product(LETTERS, repeat=n)]


@pytest.mark.parametrize("engine", ["pushdown_trie", "earley_trie"])
@pytest.mark.parametrize(("grammar", "pattern"), CASES)
def test_texts_are_those_of_a_regex(engine: str, grammar: str, pattern: str) -> None:
    compiled, judge = compile_with(read_ebnf(grammar), tokenizer_of("bytes").vocabulary, engine), judge_of(pattern)
    others = ["Ab", "a/?", "\u041b", "--a", "^", "-^", "aa-", "é" + "b", "\nb"]
    members = {text for text in [*texts(4), *others] if judge.fullmatch(text)}
    assert members
    for text in [*texts(4), *others]:
        assert accepts(compiled.start(), text) == (text in members), text


DISPATCHES = [
    'root ::= TagDispatch(("ab", t), loop_after_dispatch=false)\nt ::= "c"',
    'root ::= b "c"\nb ::= TagDispatch(("a", t), excludes=("c", "bb",))\nt ::= "c"',
    'root ::= TagDispatch() "c"',
    'root ::= TagDispatch(("a", t), excludes=("bb", "cx"))\nt ::= "b"',
    'root ::= "x" TagDispatch(("ab", t), ("ac", t), loop_after_dispatch=true)\nt ::= "" | "x"',
]


def dispatched(text: str, targets: dict[str, str], excluded: tuple[str, ...], loops: bool) -> bool:
    """Whether a text is free text with triggers, each followed by its rule's text: read from the left, by hand."""
    places = {(0, "")}  # how much was read, and the free text since the last rule
    while places:
        here, free = places.pop()
        if here == len(text):
            return True
        free += text[here]
        stop = next((free[k:] for k in range(len(free)) if free[k:] in targets or free[k:] in excluded), None)
        if stop is None:
            places.add((here + 1, free))
        elif stop in targets:
            for after in targets[stop].split("|"):
                end = here + 1 + len(after)
                if text[here + 1 : end] == after and (loops or end == len(text)):
                    places.add((end, ""))
    return False


@pytest.mark.parametrize("engine", ["pushdown_trie", "earley_trie"])
@pytest.mark.parametrize(
    ("grammar", "targets", "excluded", "loops"),
    [
        ('root ::= TagDispatch(("ab", t))\nt ::= "c"', {"ab": "c"}, (), True),
        ('root ::= TagDispatch(("ab", t), loop_after_dispatch=false)\nt ::= "c"', {"ab": "c"}, (), False),
        ('root ::= TagDispatch(("ab", s), ("b", t))\ns ::= "a"\nt ::= "c"', {"ab": "a", "b": "c"}, (), True),
        ('root ::= TagDispatch(("aba", s), ("b", t))\ns ::= "x"\nt ::= "c"', {"aba": "x", "b": "c"}, (), True),
        ('root ::= TagDispatch(("a", t), excludes=("bb", "cx"))\nt ::= "b"|""', {"a": "b|"}, ("bb", "cx"), True),
        ("root ::= TagDispatch()", {}, (), True),
    ],
)
def test_dispatch(engine: str, grammar: str, targets: dict[str, str], excluded: tuple[str, ...], loops: bool) -> None:
    compiled, found = compile_with(read_ebnf(grammar), tokenizer_of("bytes").vocabulary, engine), 0
    for text in texts(5):
        is_member = dispatched(text, targets, excluded, loops)
        assert accepts(compiled.start(), text) == is_member, text
        found += is_member
    assert found > 100


@pytest.mark.parametrize("grammar", [*(case[0] for case in CASES), *DISPATCHES])
def test_xgrammar_reads_the_same(grammar: str) -> None:
    pytest.importorskip("xgrammar")
    from xgrammar import Grammar as Peer
    from xgrammar.testing import _is_grammar_accept_string as peer_accepts

    peer, ours = Peer.from_ebnf(grammar), compile_with(read_ebnf(grammar), tokenizer_of("bytes").vocabulary)
    for text in texts(4):
        assert accepts(ours.start(), text) == peer_accepts(peer, text), text


def test_tokens() -> None:
    vocab = Vocabulary([b"a", b"b", b"", b"", b""], [4], {2: "<x>", 3: "<y>"})
    matcher = compile_with(read_ebnf('root ::= "a" Token(2, 3)+ "b"'), vocab).start()
    for token in (0, 2, 3, 2, 1):
        matcher.advance(token)
    assert matcher.can_end()


def test_what_follows_free_text_may_begin_anywhere_in_it() -> None:
    grammar = 'root ::= b "</a>"\nb ::= TagDispatch(("<t>", t), excludes=("</a>",))\nt ::= "1</t>"'
    for engine in ("pushdown_trie", "earley_trie"):
        start = compile_with(read_ebnf(grammar), tokenizer_of("bytes").vocabulary, engine).start
        assert all(accepts(start(), text) for text in ("</a>", "x</a</a>", "<t>1</t></a>", "<t<t>1</t>\n</</a>"))
        assert not any(accepts(start(), text) for text in ("</a></a>", "<t></a>", "x"))


@pytest.mark.parametrize(
    ("grammar", "kind", "place", "message"),
    [
        ('root ::= "a" |', GrammarSyntaxError, (1, 15), "alternative is empty"),
        ('root ::= ("a"|)', GrammarSyntaxError, (1, 15), "alternative is empty"),
        ("root ::= ", GrammarSyntaxError, (1, 10), "alternative is empty"),
        ('root ::= "a" x ::= "b"', GrammarSyntaxError, (1, 14), "first on its line"),
        ("root ::= .", GrammarSyntaxError, (1, 10), "cannot stand here"),
        ("root ::= 'a'", GrammarSyntaxError, (1, 10), "cannot stand here"),
        ('root ::= "\\q"', GrammarSyntaxError, (1, 11), "unknown escape"),
        ('root ::= "\\-"', GrammarSyntaxError, (1, 11), "unknown escape"),
        ("root ::= [\\d]", GrammarSyntaxError, (1, 11), "unknown escape"),
        ('root ::= "\\x110000"', GrammarSyntaxError, (1, 11), "UTF-8"),
        ('root ::= "a" (= "c") "d"', GrammarSyntaxError, (1, 14), "end of a rule"),
        ('root ::= ("b" (= "c")) "d"', GrammarSyntaxError, (1, 15), "end of a rule"),
        ('root ::= "b" (= "c"', GrammarSyntaxError, (1, 14), "not closed"),
        ('root ::= "b" (= c)', GrammarSyntaxError, (1, 17), "no rule 'c'"),
        ('root ::= "a", "b"', GrammarSyntaxError, (1, 13), "cannot stand here"),
        ('root ::= TagDispatch(("a", b))', GrammarSyntaxError, (1, 28), "no rule 'b'"),
        ('root ::= TagDispatch(("", root))', GrammarSyntaxError, (1, 22), "not empty"),
        ('root ::= TagDispatch(("a", root)', GrammarSyntaxError, (1, 33), ", belongs here"),
        ('root ::= TagDispatch(("a", root), stop=1)', GrammarSyntaxError, (1, 35), "the options are"),
        ('root ::= TagDispatch(("ab", root), excludes=("a"))', GrammarSyntaxError, (1, 10), "beginning of a trigger"),
        ("root ::= Token(a)", GrammarSyntaxError, (1, 16), "a token id"),
        ("root ::= Token()", GrammarSyntaxError, (1, 16), "a token id"),
        ("root ::= ExcludeToken(1)", GrammarUnsupported, (1, 10), "not supported"),
        ('root[temperature=0.7] ::= "a"', GrammarUnsupported, (1, 1), "not supported"),
    ],
)
def test_errors_have_their_place(grammar: str, kind: type[Exception], place: tuple[int, int], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)) as caught:
        read_ebnf(grammar)
    assert (caught.value.line, caught.value.column) == place  # type: ignore[attr-defined]


def test_there_must_be_a_root() -> None:
    with pytest.raises(UnknownNameError, match="root"):
        read_ebnf('start ::= "a"')
    assert isinstance(read_ebnf('start ::= "a"', root="start"), Grammar)
