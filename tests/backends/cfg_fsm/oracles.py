"""Lark itself as the oracle, and machines to compare it with."""

from __future__ import annotations

import heapq
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import lark
import numpy as np
import yaml

from tokdfa.backends.cfg_fsm.machine import build_machine
from tokdfa.constraint import Grammar

if TYPE_CHECKING:
    import random

FOLDER = Path(__file__).parents[3] / "experiments" / "inputs" / "grammars"
#: The grammars of the corpus that Lark's LALR(1) parser takes. In key_value its lexer refuses texts of the language.
LALR = ("arithmetic", "c_like", "csv", "json", "key_value", "sexpr", "tool_call")
LIMITS = {"max_lexer_states": 20_000, "max_stacks": 100_000, "max_situations": 100_000, "max_search": 2_000}
#: Comment and regex (issue 588), with blanks ignored.
COMMENTS = r"""
start: (COMMENT | REGEXP)*
COMMENT: /[ \t]*\/\/[^\n]*/
REGEXP: "/aaa/"
%ignore /[ \t]+/
"""
#: A language with statements in brackets instead of indentation.
PYTHON_LIKE = r"""
start: statement+
?statement: simple ";"
    | "if" test block ("elif" test block)* ["else" block]
    | "while" test block
    | "def" NAME "(" [NAME ("," NAME)*] ")" block
block: "{" statement* "}"
?simple: "return" [test]
    | "pass"
    | test ["=" test]
?test: negation ("and" negation)*
?negation: "not" negation | comparison
?comparison: sum (("<" | ">" | "==" | "in" | "not" "in") sum)?
?sum: atom (("+" | "-" | "*") atom)*
?atom: NAME | NUMBER | STRING
    | "(" test ")"
    | "[" [test ("," test)*] "]"
    | atom "." NAME
    | atom "(" [test ("," test)*] ")"
NAME: /[^\W\d]\w*/
NUMBER: /\d+(\.\d+)?/
STRING: /"(\\.|[^"\\\n])*"|'(\\.|[^'\\\n])*'/
COMMENT: /#[^\n]*/
%import common.WS
%ignore WS
%ignore COMMENT
"""
#: Queries whose conditions and values are one, so that one token of look-ahead is enough.
SMALL_SQL = r"""
start: query (";" query)* ";"?
query: "select"i columns "from"i NAME ["where"i value] ["limit"i INT]
columns: "*" | value ("," value)*
?value: both ("or"i both)*
?both: test ("and"i test)*
?test: sum (("=" | "<>" | "<" | "<=" | "like"i) sum)?
?sum: atom (("+" | "-" | "||") atom)*
?atom: NAME ["." NAME] | INT | STRING | "(" value ")" | "not"i atom | "null"i
NAME: /[a-z_][a-z0-9_]*/i
INT: /[0-9]+/
STRING: /'([^']|'')*'/
%import common.SQL_COMMENT
%import common.WS
%ignore WS
%ignore SQL_COMMENT
"""
WRITTEN = {
    "comments": (COMMENTS, ["", "//x", "/aaa/", "  /aaa/ // y\n".rstrip("\n"), "/aaa//aaa/"]),
    "python_like": (
        PYTHON_LIKE,
        ["x = 1;", "if a in b { pass; } elif not c { return (1 + d.e(2)); }", 'def f(a, b) { x = ["a\\"b"]; } # c'],
    ),
    "small_sql": (
        SMALL_SQL,
        ["select * from t", "SELECT a.b, 'it''s' From t wHere not (x like 'y') and 1<>2 limit 3;"],
    ),
}
NAMES = (*LALR, *WRITTEN)


@cache
def lark_of(text: str) -> lark.Lark:
    """Lark's LALR(1) parser with its contextual lexer."""
    return lark.Lark(text, parser="lalr", lexer="contextual")


def lark_accepts(grammar: str, text: str) -> bool:
    """Whether Lark parses `text`."""
    try:
        lark_of(grammar).parse(text)
    except lark.exceptions.UnexpectedInput:
        return False
    return True


def make_machine(grammar: str, **limits: int):
    """The machine of a grammar, not kept."""
    return build_machine(Grammar(grammar), {**LIMITS, **limits})


machine_of = cache(make_machine)


def run(machine, text: str, situation: int | None = None) -> int:
    """The situation after `text`, byte by byte; -1 as soon as no text goes on."""
    here = machine.start if situation is None else situation
    data = np.frombuffer(text.encode(), dtype=np.uint8)
    for place in range(len(data)):
        if here < 0:
            break
        here = machine.run(here, data, place, place + 1)
    return here


def accepts(machine, text: str) -> bool:
    """Whether the machine accepts `text`."""
    after = run(machine, text)
    return after >= 0 and machine.hypotheses.can_end(after)


@cache
def corpus(name: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """One of `NAMES`: the grammar, texts that Lark accepts, texts to ask Lark about."""
    if name in WRITTEN:
        grammar, texts = WRITTEN[name]
        others = []
    else:
        listed = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
        grammar, texts, others = (FOLDER / f"{name}.lark").read_text(), listed["accepted"], listed.get("refused", [])
    return grammar, tuple(text for text in texts if lark_accepts(grammar, text)), (*texts, *others)


def letters_of(texts: tuple[str, ...]) -> list[str]:
    """The ASCII characters of some texts, in order."""
    return sorted({*"".join(texts)} & set(map(chr, range(127))))


def far_from_end(machine, situation: int) -> tuple[int, int]:
    """A guess, to be made small: shallow stacks, and lexemes that may have ended."""
    members = machine.hypotheses.members[situation]
    return min(machine.stacks.depths[stack] for _, stack in members), -len(members)


def completion(machine, situation: int, letters: list[str], limit: int = 2_000) -> str | None:
    """A text from a situation to an end; None if a search of `limit` situations finds none."""
    seen, agenda = {situation}, [(0, far_from_end(machine, situation), "", situation)]
    while agenda and len(seen) < limit:
        _, _, text, here = heapq.heappop(agenda)
        if machine.hypotheses.can_end(here):
            return text
        for letter in letters:
            after = run(machine, letter, here)
            if after >= 0 and after not in seen:
                seen.add(after)
                far = far_from_end(machine, after)
                heapq.heappush(agenda, (4 * far[0] + len(text), far, text + letter, after))
    return None


def mutated(text: str, others: str, rng: random.Random) -> str:
    """`text` with one to three characters taken out, doubled, or replaced by characters of `others`."""
    characters = list(text)
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(characters) + 1)
        match rng.randrange(3):
            case 0:
                del characters[place : place + 1]
            case 1:
                characters[place:place] = rng.choice(others)
            case 2:
                characters[place : place + 1] = rng.choice(others)
    return "".join(characters)
