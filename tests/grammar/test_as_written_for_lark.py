r"""Grammars as people write them for Lark: changed definitions, priorities, look-ahead, lazy comments.

The judge is Lark itself, its Earley parser with both of its lexers, on all short texts over an alphabet and on random
longer ones. (Lark skips what is ignored before the first and behind the last lexeme, too; such texts are left out. In
these grammars the longest match, which is what our engines take, is the only way to cut a text.)
"""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any

import lark
import pytest

import tokdfa
from tokdfa.errors import GrammarSyntaxError, GrammarUnsupported
from tokdfa.grammar.lark_reader import read_lark

if TYPE_CHECKING:
    from pathlib import Path

BASE = 'start: value other\nvalue: "1" | A\nother: A\nA: "a"\nT: A A\npair{x}: x x\n'
COMMENT = r"/\/\*.*?\*\//s"
#: Name -> grammar, the alphabet of texts, their length, and characters that no text begins or ends with.
GRAMMARS: dict[str, tuple[str, str, int, str]] = {
    "override": ('start: A\nA: "a"\n%override A: "b"', "ab", 3, ""),
    "extend": ('start: A b+\nA: "a"\nb: "b"\n%extend A: "c"\n%extend b: A', "abc", 4, ""),
    "override and extend": ('?start.2: "a"\n%override start: "b"\n%extend ?start: "c" start', "abc", 4, ""),
    "template": ('start: t{"a"}\nt{y}: y\n%override t{y}: y y\n%extend t{y}: "b" y', "ab", 4, ""),
    "common override": ("start: INT\n%import common.INT\n%override INT: /[0-9]{2}/", "01", 4, ""),
    "common extend": ('start: INT "x"?\n%import common.INT\n%extend INT: "y"', "0xy", 4, ""),
    "common kept": ("start: INT FLOAT?\n%import common (INT, FLOAT)\n%override INT: /a{2}/", "a1.", 5, ""),
    "imported override": ('%import base (start, value)\n%override value: "2"', "12a", 4, ""),
    "imported extend": ('%import base (start, value)\n%extend value: "2" | value "3"', "123a", 4, ""),
    "imported terminal": ('%import base (start, A)\n%override A: "b"', "1ab", 4, ""),
    "terminal of a changed one": ('start: T A\n%import base (T, A)\n%override A: "b"', "ab", 4, ""),
    "imported alias": ('%import base.start\n%import base.value -> val\n%override val: "2"', "12a", 4, ""),
    "extended alias": ('start: X X\n%import base.A -> X\n%extend X.2: "2"', "2a", 4, ""),
    "priority": ('start: A | B "!"\nA.2: "a"\nB.-1: /[ab]+/', "ab!", 4, ""),
    "priorities meet": ('start: (A | B | "b")+\nA.3: "ab"\nB.2: /a+/', "ab", 5, ""),
    "keyword or name": ('start: ID "!" | "if" ID "!"\nID: /(?!if\\b)[a-z]+/', "ifx!", 5, ""),
    "names of some kind": ('start: ID "-" | N "-"\nID: /(?=[ab]*x)[a-x]+/\nN: /(?!0[0-9])[0-9]+/', "axb01-", 4, ""),
    "boundary inside": ('start: A "!"\nA: /[a-]+\\b[a-]\\B-/', "a-!", 5, ""),
    "boundary of Unicode": ('start: A "!"\nA: /\\xe9?[a-]\\B[a\\xe9]/', "a-\xe9!", 4, ""),
    "comments": (f'start: "x"+\n%ignore {COMMENT}', "x/*", 7, "/"),
    "named comments": (f'start: "x"+\n%ignore COMMENT\nCOMMENT: {COMMENT}', "x/*", 7, "/"),
    "comments and blanks": (f'start: "x"+\n%ignore {COMMENT} | " "', "x/* ", 6, "/ "),
    "lazy text": ('start: A "x"*\nA: /<[a<]*?>/', "<a>x", 5, ""),
    "lazy count": ("start: A+\nA: /(?:ab){1,3}?b/", "ab", 7, ""),
    "lazy in a rule": ('start: /"(?:a|b)+?"/ /a??b/', 'ab"', 6, ""),
}  # fmt: skip


def larks(grammar: str, folder: Path) -> list[lark.Lark]:
    (folder / "base.lark").write_text(BASE)
    return [lark.Lark(grammar, lexer=lexer, import_paths=[str(folder)]) for lexer in ("dynamic", "dynamic_complete")]


def is_taken(parser: lark.Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except lark.exceptions.UnexpectedInput:
        return False
    return True


def compiled_of(grammar: str, backend: str) -> Any:
    # Lark starts with an imported rule, too; here the start is one of the grammar's own
    constraint = tokdfa.Grammar(grammar + "\nroot: start\n", start="root", sources={"base": BASE})
    return tokdfa.compile(constraint, tokdfa.load_tokenizer("bytes"), backend=backend)


def accepts(compiled: Any, text: bytes) -> bool:
    """Whether a text is taken byte by byte; where it is not, the first byte that is not allowed ends it."""
    matcher = compiled.start()
    for byte in text:
        if not matcher.allows(byte):
            return False
        matcher.advance(byte)
    return bool(matcher.can_end())


def texts(alphabet: str, length: int, edges: str) -> list[str]:
    rng = random.Random(alphabet)
    short = ["".join(word) for n in range(1, length + 1) for word in itertools.product(alphabet, repeat=n)]
    if len(short) > 1_500:
        short = rng.sample(short, 1_500)
    longer = ["".join(rng.choices(alphabet, k=rng.randint(length, 2 * length))) for _ in range(150)]
    return [text for text in short + longer if not (edges and (text[0] in edges or text[-1] in edges))]


@pytest.mark.parametrize("name", GRAMMARS)
def test_texts_are_larks(name: str, tmp_path: Path) -> None:
    grammar, alphabet, length, edges = GRAMMARS[name]
    dynamic, complete = larks(grammar, tmp_path)
    engines = [compiled_of(grammar, backend) for backend in ("earley_trie", "pushdown_trie")]
    taken = 0
    for text in texts(alphabet, length, edges):
        wanted = is_taken(complete, text)
        assert wanted >= is_taken(dynamic, text), text  # the other lexer cuts texts in fewer ways
        for compiled in engines:
            assert accepts(compiled, text.encode()) == wanted, (text, compiled)
        taken += wanted
    assert taken > 0


@pytest.mark.parametrize(
    "name", ["imported extend", "keyword or name", "comments", "lazy count", "boundary of Unicode"]
)
def test_every_mask_is_the_brute_forces(name: str, tmp_path: Path) -> None:
    """A byte is allowed where a text that Lark takes goes on with it, and nothing leads astray."""
    grammar, alphabet, length, edges = GRAMMARS[name]
    complete = larks(grammar, tmp_path)[1]
    every = ["".join(word) for n in range(1, length + 1) for word in itertools.product(alphabet, repeat=n)]
    every = random.Random(name).sample(every, min(len(every), 2_500))
    begun = {text.encode()[:k] for text in every if is_taken(complete, text) for k in range(len(text.encode()) + 1)}
    compiled = compiled_of(grammar, "earley_trie")
    if edges:
        begun = {text for text in begun if text[:1].decode() not in edges}
    for text in begun:
        matcher = compiled.start()
        for byte in text:
            assert matcher.allows(byte), text
            matcher.advance(byte)
        assert matcher.can_end() or any(map(matcher.allows, range(256))), text


@pytest.mark.parametrize(
    ("grammar", "what"),
    [
        ('start: "a"\n%override B: "b"', "there is no B to override up to here"),
        ('start: A\n%override A: "b"\nA: "a"', "there is no A to override up to here"),
        ('start: "a"\n%extend b: "b"', "there is no b to extend up to here"),
        ('start: t{"a"}\nt{x}: x\n%extend t{y}: y', "other parameters in line 2"),
        ('start: "a"\n%ignore ""', "only the empty text is ignored"),
        ('start: "a"\n%ignore', "only the empty text is ignored"),
    ],
)
def test_what_lark_refuses_is_refused(grammar: str, what: str) -> None:
    with pytest.raises(GrammarSyntaxError, match=what):
        read_lark(grammar)
    if "t{" not in grammar:  # it extends a template whose parameters have other names with what they do not name
        with pytest.raises(lark.exceptions.GrammarError):
            lark.Lark(grammar)


@pytest.mark.parametrize(
    ("grammar", "what"),
    [
        ("start: A\n%declare A", "%declare is not supported: code outside"),
        (r'start: /if\b/ "x"', "asks what comes after it"),
        (r'start: /[a-z]+(?=\()/ "("', "asks what comes after it"),
        (r'start: /(?:a|b\b)c?/ "x"', "asks what comes after it"),
        ("start: A\nA: /(?!ab)[ab]+/ /c/", "write one regex of all"),
        ("start: A\nA: B+\nB: /(?!ab)[ab]+/", "nothing else can be made of it"),
        ("start: A\nA: /a.*?b/ | B\nB: /c/", "lazy quantifier"),
        ("start: /a+.*?b/", "nothing else in the regex may vary"),
        ("start: /a.*?b.*?c/", "nothing else in the regex may vary"),
        ("start: /a.*?b$/", "nothing else in the regex may vary"),
        (r"start: /(?:a(?!b))*c/", "look-ahead around a repeat"),
        (r"start: /(?:\ba-?)*c/", "a repeat around"),
    ],
)
def test_what_is_left_is_refused_by_name(grammar: str, what: str) -> None:
    with pytest.raises(GrammarUnsupported, match=what):
        read_lark(grammar)
