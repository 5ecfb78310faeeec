r"""xgrammar's EBNF: text -> `tokdfa.Grammar`, its Lark text. What it has in common with GBNF is read as that is.

Beside GBNF: more escapes (``\b \f \v \a \0 \e \/ \' \?``, ``\x`` of any length), ``[^]`` for any character, ``( )``,
look-ahead at the end of a rule, ``TagDispatch(...)`` and ``Token(...)``. A rule's name stands first on its line, no
alternative is empty, and there is no ``.``.

*Look-ahead* ``(= ...)`` is a hint for xgrammar's own tables: it accepts the same texts without it. So it is dropped.

*TagDispatch* is free text until a trigger, then the rule of that trigger, and free text again. It becomes rules over
single characters, as everything here: a rule for each state of the Aho-Corasick automaton of the triggers, the texts
that lead there; of several triggers that end at one place the longest counts. So what comes after it may begin anywhere
in the free text, whatever way an engine has to cut texts into lexemes. As many rules as characters in the triggers.

What is refused by name: ``ExcludeToken``, ``TokenTagDispatch``, and options of rules, ``name[temperature=0.7] ::=``.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING

from tokdfa.core.arguments import as_text
from tokdfa.grammar.gbnf import CharacterGrammar
from tokdfa.grammar.parts import text as lark_string

if TYPE_CHECKING:
    from tokdfa.constraint import Grammar

_TOKEN = re.compile(
    r"(?P<blank>(?:[ \t\r\n]|#[^\n]*)+)|(?P<define>[A-Za-z_][\w.-]*(?=[ \t\r\n]*::=))|(?P<becomes>::=)"
    r'|(?P<string>"(?:\\[^\n]|[^"\\\n])*")|(?P<ahead>\(=)|(?P<macro>(?:TagDispatch|Token)(?=[ \t\r\n]*\())'
    r"|(?P<refused>(?:ExcludeToken|TokenTagDispatch)(?=[ \t\r\n]*\()|[A-Za-z_][\w.-]*\[[^\]\n]*\](?=[ \t]*::=))"
    r"|(?P<charset>\[(?:\\[^\n]|[^\]\\\n])*\])|(?P<name>[A-Za-z_][\w.-]*)|(?P<left>\()|(?P<right>\))"
    r"|(?P<or>\|)|(?P<repeat>[*+?]|\{[ \t]*\d+[ \t]*(?:,[ \t]*\d*[ \t]*)?\})|(?P<number>\d+)|(?P<comma>,)|(?P<equals>=)"
)
_FIRST_RULE = re.compile(r"(?:\s++|#[^\n]*+)*+[A-Za-z_][\w.-]*+(?:\[[^\]\n]*+\])?\s*+::=")
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]+)|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))|(.)")
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "0": "\0", "e": "\x1b"}
_IN_STRINGS = {**_CONTROLS, **{sign: sign for sign in "\"\\/'?"}}
_IN_CLASSES = {**_IN_STRINGS, **{sign: sign for sign in "^$.*+()[]{}|-"}}
#: What only the arguments of a macro hold.
_ARGUMENTS = ("number", "comma", "equals")


def is_ebnf(text: str) -> bool:
    """Whether a grammar is in EBNF or GBNF, not in Lark's notation: its first rule is written ``name ::= ..``.

    What comes first decides, so texts and comments with ``::=`` in them do not. O(blanks and comments before it).
    """
    return _FIRST_RULE.match(text) is not None


def read_ebnf(text: str, root: str = "root") -> Grammar:
    """The grammar of a text in xgrammar's EBNF, which begins with the rule `root`. O(size).

    Raises GrammarSyntaxError or GrammarUnsupported with line and column in `text`, and UnknownNameError for `root`.
    What is found when the grammar is compiled names the same places. Blanks and comments of the notation are no text:
    nothing is ignored between characters, nor before the first and behind the last one.
    """
    return _Ebnf(as_text(text, "text")).grammar(as_text(root, "root"))


class _Ebnf(CharacterGrammar):
    """One run of `read_ebnf`. `_added`: rules of the automata of TagDispatch."""

    token_pattern = _TOKEN
    escape_pattern = _ESCAPE
    known_escapes = r"\n \r \t \b \f \a \v \0 \e \\ \" \' \/ \? \xHH \uHHHH \UHHHHHHHH, in classes also those of \-"

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._added: list[str] = []
        self._dispatches = 0
        for kind, written, position in self.tokens:
            if kind == "define" and self.text[self.text.rfind("\n", 0, position) + 1 : position].strip(" \t\r"):
                self.fail(f"the name of a rule, {written}, stands first on its line", position)

    def plain_escapes(self, written: str) -> dict[str, str]:
        return _IN_CLASSES if written[0] == "[" else _IN_STRINGS

    def more_rules(self) -> str:
        return "".join(self._added)

    def special_form(self, k: int, brackets: list[int]) -> tuple[int, str]:
        kind, written, position = self.tokens[k] if k < len(self.tokens) else ("define", "", len(self.text))
        if kind in ("or", "right", "define"):
            self._check_alternative(k, kind, position)
        if kind in _ARGUMENTS:
            self.fail(f"{written!r} cannot stand here", position)
        if kind == "left" and self._kind(k + 1) == "right":  # ( ) is the empty text
            brackets.pop()
            return 2, '("")'
        if kind == "charset" and written == "[^]":
            return 1, "/./s "
        if kind == "ahead":
            return self._drop_ahead(k, bool(brackets)), ""
        if kind == "macro":
            return self._token(k) if written == "Token" else self._dispatch(k)
        return 0, ""

    def _kind(self, k: int) -> str:
        return self.tokens[k][0] if 0 <= k < len(self.tokens) else "define"

    def _check_alternative(self, k: int, kind: str, position: int) -> None:
        """Nothing between two signs that part alternatives; a rule is not empty."""
        if k and self._kind(k - 1) in ("becomes", "or", "left"):
            self.fail('an alternative is empty; write "" for the empty text', position)

    def _drop_ahead(self, k: int, is_inside: bool) -> int:
        """The tokens of a look-ahead, which stands at the end of a rule."""
        depth, end = 1, k + 1
        while depth and end < len(self.tokens) and self._kind(end) != "define":
            depth += {"left": 1, "ahead": 1, "right": -1}.get(self._kind(end), 0)
            end += 1
        if depth:
            self.fail("this bracket is not closed", self.tokens[k][2])
        if is_inside or self._kind(end) != "define":
            self.fail("a look-ahead stands at the end of a rule", self.tokens[k][2])
        for kind, written, position in self.tokens[k + 1 : end]:
            if kind in ("name", "string", "charset") and written != "[^]":
                self.lark(kind, written, position)  # for its faults
        return end - k

    def _token(self, k: int) -> tuple[int, str]:
        """``Token(1, 2)``: one of these special tokens."""
        end, ids = self._expect(k + 1, "left", "("), list[str]()
        while True:
            ids.append(self.tokens[end][1] if self._kind(end) == "number" else "")
            end = self._expect(end, "number", "a token id")
            if self._kind(end) != "comma":
                break
            end += 1
        return self._expect(end, "right", ")") - k, f"<[{','.join(ids)}]> "

    def _expect(self, k: int, kind: str, shown: str) -> int:
        """The number of the token after the k-th, which is of that kind."""
        if self._kind(k) != kind or k >= len(self.tokens):
            self.fail(f"{shown} belongs here", self.tokens[k][2] if k < len(self.tokens) else len(self.text))
        return k + 1

    def _dispatch(self, k: int) -> tuple[int, str]:
        """``TagDispatch(("trigger", rule), ..., loop_after_dispatch=true, excludes=("text",))``."""
        end, loops = self._expect(k + 1, "left", "("), True
        targets: dict[str, str] = {}
        excluded: set[str] = set()
        while self._kind(end) != "right":
            position = self.tokens[end][2] if end < len(self.tokens) else len(self.text)
            if self._kind(end) == "left":
                trigger, end = self._string(end + 1)
                end = self._expect(self._expect(end, "comma", ","), "name", "the name of a rule")
                _, rule, at = self.tokens[end - 1]
                if trigger in targets or not trigger:
                    self.fail("a trigger is not empty, and has one rule", position)
                targets[trigger] = self.lark("name", rule, at)
                end = self._expect(end, "right", ")")
            else:
                end = self._expect(self._expect(end, "name", "a trigger and its rule, or an option"), "equals", "=")
                option, value = self.tokens[end - 2][1], self.tokens[end][1] if end < len(self.tokens) else ""
                if option == "loop_after_dispatch" and value in ("true", "false"):
                    loops, end = value == "true", end + 1
                elif option == "excludes":
                    end = self._expect(end, "left", "(")
                    while self._kind(end) == "string":
                        text, end = self._string(end)
                        excluded.add(text)
                        end += self._kind(end) == "comma"
                    end = self._expect(end, "right", ")")
                else:
                    self.fail("the options are loop_after_dispatch=true or false, and excludes=(...)", position)
            if self._kind(end) != "right":
                end = self._expect(end, "comma", ",")
        if any(trigger.startswith(text) for trigger in targets for text in excluded):
            self.fail("what excludes lists is empty, or the beginning of a trigger", self.tokens[k][2])
        return end + 1 - k, self._free_text(targets, excluded, loops)

    def _string(self, k: int) -> tuple[str, int]:
        end = self._expect(k, "string", "a string")
        _, written, position = self.tokens[k]
        return "".join(character for character, _ in self.characters(written, position)), end

    def _free_text(self, targets: dict[str, str], excluded: set[str], loops: bool) -> str:
        """Rules for the states of an automaton that looks for triggers, and what stands in place of the macro."""
        self._dispatches += 1
        stops = {*targets, *excluded}
        states = {stop[:length] for stop in stops for length in range(len(stop))} | {""}
        letters = sorted(set("".join(stops)))
        names = {state: f"d{self._dispatches}_{number}" for number, state in enumerate(sorted(states))}
        coming: dict[str, list[str]] = {state: [] for state in states}
        called: list[str] = []
        coming[""].append('""')
        agenda, seen = deque([""]), {""}
        while agenda:
            state = agenda.popleft()
            for letter in letters:
                after = state + letter
                suffixes = [after[begin:] for begin in range(len(after) + 1)]
                stop = next((suffix for suffix in suffixes if suffix in stops), None)
                here = f"{names[state]} {lark_string(letter).written}"
                if stop is not None:
                    if stop in targets:
                        called.append(f"{here}{targets[stop]}")
                    continue
                target = next(suffix for suffix in suffixes if suffix in states)
                coming[target].append(here)
                if target not in seen:
                    seen.add(target)
                    agenda.append(target)
            others = "".join(f"\\U{ord(letter):08X}" for letter in letters)
            coming[""].append(f"{names[state]} " + (f"/[^{others}]/" if others else "/./s"))
        if loops:
            coming[""] += called
        for state in seen:
            self._added.append(f"\n{names[state]}: {' | '.join(coming[state])}")
        self._added.append("\n")
        return "(" + " | ".join([*(names[state] for state in sorted(seen)), *([] if loops else called)]) + ")"
