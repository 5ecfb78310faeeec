"""``grammar``: grammars in Lark's notation and llguidance's additions, compiled and walked along.

The head is ``BACKEND VOCABULARY``.
"""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

import tokdfa
from tests.fuzz.case import Case
from tests.fuzz.mutations import mutated_texts
from tests.fuzz.walk import VOCABULARIES, vocabulary, walk

BACKENDS = ("pushdown_trie", "pushdown_trie+any", "earley_trie", "cfg_fsm")

FOLDER = Path(__file__).parents[2] / "experiments" / "inputs" / "grammars"
SHORT = (
    'start: "[" [item ("," item)*] "]"\nitem: start | /[a-z]/\n',
    'start: e\ne: e "+" e | "(" e ")" | N\nN: /[0-9]+/\n%ignore /[ \\t]+/\n',
    'start: _sep{word, ","}\n_sep{x, y}: x (y x)*\nword: /[a-z]+/i\n',
    '%import common (INT, CNAME -> NAME, WS)\nstart: NAME "=" INT\n%ignore WS\n',
    'start: A~2..3 B?\nA: "a".."c" | "x"i\nB: (A "-")+ & ~/.*b.*/\n',
    "start: <tool> text <|end|>\ntext[lazy]: /(.|\\n)*stop/\n",
    '?start: a | "b"? -> alias\n!a.2: "a" start "a" // a comment\n',
    'start: a b\na: "x" | \nb: a{3} | a{1,} | a{,2}\n%declare NOTHING\n',
)
_PLAIN_WORDS = r"""
( ) [ ] { } | * + ? : ; , . ~ & ! - < > / \ ' # % -> .. // start start: a A _b B: ?x: !y: "abc"i /a/ /[/ /a*/ /(?=a)b/
/a/imsx /.*/ /\b/ ~3 ~0..2 ~5..1 ~100000 {2} {2,1} {0,} {99999} {a} [lazy] [capture] [max_tokens=3] %ignore <x>
<[1-3]> <[^5]> é ~A ((( ))) $END __x a.1 a.-2: 1
"""
#: What is put in, renamed to, and made into texts.
WORDS = (
    *_PLAIN_WORDS.split(),
    *("\"", "\n", "\n\n", "\"a\"", "\"\"", "\"\\n\"", "\"\\x\"", "\"\\u00e9\"", "{x, y}", "%ignore A"),
    *("%import common.INT", "%import common", "%import x.Y -> Z", "%declare D", "%override a: b", "%extend a: b"),
    *("%json {}", "%json {\"type\": \"integer\"}", "%llguidance {}", "%regex {}", "a: a", "a: a a |", "start: start"),
    *("A: B\nB: A", "a{x}: x a{x}", "_x{y}: y _x{_x{y}}", "| | |", "\u0000", "\ud800", "\"a\"..\"z\"", "\"z\"..\"a\""),
    *("\"a\"..\"bc\"", "A & B", "\r", "\t"),
)  # fmt: skip


class GrammarEntry:
    """See the module's docstring."""

    name = "grammar"

    def __init__(self) -> None:
        self.seeds: tuple[str, ...] = SHORT

    def prepare(self) -> None:
        files = [path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.lark"))]
        self.seeds = (*SHORT * 2, *files)
        for backend in BACKENDS:
            for text in SHORT[:2]:
                self.run(Case(f"{backend} words", text))

    def cases(self) -> st.SearchStrategy[Case]:
        soup = st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)
        texts = st.one_of(
            *[mutated_texts(self.seeds, WORDS)] * 3, soup.map("start: {}".format), soup, st.text(max_size=20)
        )
        head = st.tuples(st.sampled_from(BACKENDS), st.sampled_from(VOCABULARIES)).map(" ".join)
        return st.builds(Case, head, texts)

    def run(self, case: Case) -> str:
        backend, words = case.head.split(" ")
        name, _, lexer = backend.partition("+")
        options = {"lexer": lexer} if lexer else {"conflicts": "shift"} if name == "cfg_fsm" else {}
        walk(tokdfa.compile(tokdfa.Grammar(str(case.body)), vocabulary(words), backend=name, **options))
        return "accepted"


ENTRY = GrammarEntry()
