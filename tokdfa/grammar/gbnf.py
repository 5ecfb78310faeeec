r"""llama.cpp's GBNF: text -> `tokdfa.Grammar`, its Lark text. `tokdfa.grammar.ebnf` reads xgrammar's EBNF.

``name ::= alternatives``, ``"text"``, ``[a-z]``, ``[^a-z]``, ``.``, ``( )``, ``* + ? {m,n}``, ``# comment``, special
tokens ``<name>`` and ``<[12]>``; a rule goes on until the next ``name ::=``. The notation is about characters,
without a lexer. So each character becomes a lexeme: none is the beginning of another, and the longest match is the only
one. What is refused by name: look-ahead ``(= ...)``, negated tokens ``!<name>``, and functions such as
``TagDispatch(...)``.
"""

from __future__ import annotations

import re
from typing import NoReturn

from tokdfa.constraint import Grammar, Written
from tokdfa.core.arguments import as_text
from tokdfa.errors import GrammarSyntaxError, GrammarUnsupported, UnknownNameError, nearest
from tokdfa.grammar.parts import text as lark_string

_TOKEN = re.compile(
    r"(?P<blank>(?:[ \t\r\n]|#[^\n]*)+)|(?P<define>[A-Za-z_][\w.-]*(?=[ \t\r\n]*::=))|(?P<becomes>::=)"
    r'|(?P<string>"(?:\\[^\n]|[^"\\\n])*")|(?P<charset>\[(?:\\[^\n]|[^\]\\\n])*\])|(?P<special><\[[^\]\n]*\]>|<[^<>\s]+>)'
    r"|(?P<refused>\(=|!<|[A-Za-z_][\w.-]*\()|(?P<name>[A-Za-z_][\w.-]*)|(?P<any>\.)|(?P<left>\()|(?P<right>\))"
    r"|(?P<or>\|)|(?P<repeat>[*+?]|\{[ \t]*\d+[ \t]*(?:,[ \t]*\d*[ \t]*)?\})"
)
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))|(.)")
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", **{sign: sign for sign in '\\"[]-^'}}
#: What may be repeated.
ATOMS = ("string", "charset", "special", "name", "any", "right", "macro")


def read_gbnf(text: str, root: str = "root") -> Grammar:
    """The grammar of a text in GBNF, which begins with the rule `root`. O(size).

    Raises GrammarSyntaxError or GrammarUnsupported with line and column in `text`, and UnknownNameError for `root`.
    What is found when the grammar is compiled names the same places. Blanks and comments of the notation are no text:
    nothing is ignored between characters, nor before the first and behind the last one.
    """
    return CharacterGrammar(as_text(text, "text")).grammar(as_text(root, "root"))


class CharacterGrammar:
    """One run of `read_gbnf`, and what notations that are read alike share.

    `rules`: name -> what it is called in Lark's text; `tokens`: what the text is made of: (kind, text, position).
    """

    token_pattern = _TOKEN
    escape_pattern = _ESCAPE
    known_escapes = r"\n \r \t \\ \" \[ \] \xHH \uHHHH \UHHHHHHHH"

    def __init__(self, text: str) -> None:
        self.text, self.rules = text, dict[str, str]()
        self.tokens: list[tuple[str, str, int]] = []
        position = 0
        while position < len(text):
            match = self.token_pattern.match(text, position)
            if match is None:
                self.fail(f"{text[position]!r} cannot stand here", position)
            if match["refused"]:
                self.fail(
                    f"{match[0]!r} is not supported: look-ahead, negated tokens, functions", position, refused=True
                )
            assert match.lastgroup is not None
            if match.lastgroup != "blank":
                self.tokens.append((match.lastgroup, match[0], position))
            position = match.end()

    def fail(self, reason: str, position: int, refused: bool = False) -> NoReturn:
        line, column = self.text.count("\n", 0, position) + 1, position - self.text.rfind("\n", 0, position)
        raise (GrammarUnsupported if refused else GrammarSyntaxError)(reason, self.text, line, column)

    def grammar(self, root: str) -> Grammar:
        """The whole grammar."""
        for kind, written, position in self.tokens:
            if kind == "define":
                if written in self.rules:
                    self.fail(f"{written} is defined twice; write all its alternatives in one place", position)
                self.rules[written] = f"r{len(self.rules) + 1}"
        if root not in self.rules:
            raise UnknownNameError("rule", root, self.rules)
        parts, brackets, before = list[str](), list[int](), ""
        made, begin, length = list[int](), list[int](), 0
        tokens = [*self.tokens, ("define", "", len(self.text))]
        k = 0
        while k < len(tokens):
            kind, written, position = tokens[k]
            if kind == "define" and brackets:
                self.fail("this bracket is not closed", brackets[-1])
            if not parts and kind != "define":
                self.fail("a rule begins with name ::=", position)
            if kind == "becomes" and before != "define":
                self.fail("a name stands before ::=", position)
            if kind == "repeat" and before not in ATOMS:
                self.fail("nothing to repeat, or repeated twice; group what is to be repeated", position)
            if kind == "right" and not brackets:
                self.fail("no bracket is open here", position)
            if kind in ("left", "right"):
                brackets = [*brackets, position] if kind == "left" else brackets[:-1]
            taken, part = self.special_form(k, brackets)
            parts.append(part if taken else self.lark(kind, written, position))
            made.append(length + len(parts[-1]) - len(parts[-1].lstrip("\n")))
            begin.append(position)
            length += len(parts[-1])
            k += taken or 1
            before = kind
        found = Grammar("".join(parts) + self.more_rules(), start=self.rules[root])
        names = {made_name: name for name, made_name in self.rules.items()}
        object.__setattr__(found, "written", Written(self.text, tuple(made), tuple(begin), names))
        return found

    def special_form(self, k: int, brackets: list[int]) -> tuple[int, str]:
        """How many tokens from the k-th are a form of the notation's own, and what that is in Lark; (0, "") if none."""
        return 0, ""

    def more_rules(self) -> str:
        """Rules that special forms need."""
        return ""

    def lark(self, kind: str, written: str, position: int) -> str:
        """A token as Lark writes it."""
        match kind:
            case "define":
                return f"\n{self.rules[written]} " if written else "\n"
            case "becomes":
                return ": "
            case "string":
                characters = self.characters(written, position)
                return "(" + " ".join(lark_string(one).written for one, _ in characters) + ")" if characters else '"" '
            case "charset":
                return self.charset(written, position)
            case "any":
                return "/./s "
            case "name":
                if written not in self.rules:
                    self.fail(f"there is no rule {written!r}; {nearest(written, self.rules)}", position)
                return f" {self.rules[written]} "
        return f"{written} " if kind != "left" else "("

    def plain_escapes(self, written: str) -> dict[str, str]:
        """The letter of an escape in a string or a class -> the character that it is."""
        return _PLAIN

    def characters(self, written: str, position: int) -> list[tuple[str, bool]]:
        """The characters between quotes or brackets, and whether each is escaped."""
        found: list[tuple[str, bool]] = []
        plain = self.plain_escapes(written)
        for match in self.escape_pattern.finditer(written, 1, len(written) - 1):
            digits = match[1] or match[2] or match[3]
            code = int(digits, 16) if digits else 0
            if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                self.fail(f"{match[0]} is no character that UTF-8 can encode", position + match.start())
            if match[4] and match[4] not in plain:
                self.fail(f"unknown escape {match[0]}; known: {self.known_escapes}", position + match.start())
            found.append((chr(code) if digits else plain[match[4]] if match[4] else match[5], match[5] is None))
        return found

    def charset(self, written: str, position: int) -> str:
        """A character class as a regex."""
        characters = self.characters(written, position)
        negated = characters[:1] == [("^", False)]
        del characters[: int(negated)]
        ranges, k = list[str](), 0
        while k < len(characters):
            low = high = characters[k][0]
            if k + 2 < len(characters) and characters[k + 1] == ("-", False):
                high, k = characters[k + 2][0], k + 2
            if high < low:
                self.fail(f"the range {low!r} to {high!r} is empty; write the smaller character first", position)
            ranges.append(f"\\U{ord(low):08X}-\\U{ord(high):08X}")
            k += 1
        if not ranges:
            self.fail("this class has no character; a class of all characters is written .", position)
        return f"/[{'^' * negated}{''.join(ranges)}]/ "
