r"""The notation of grammars: text -> definitions. The Lark package reads it, with a grammar written in Lark's notation.

The dialect is Lark's own plus what llguidance adds to it. In short:

- ``name: alternatives`` defines a rule, ``NAME: alternatives`` a terminal. Leading ``! ?``, rule priorities
  ``name.2:`` and aliases ``-> x`` mean nothing here (they shape Lark's trees). A line that begins with ``|`` goes on
  with the definition above it; comments ``//`` and ``#`` may stand between.
- Items: ``"text"``, ``"text"i`` (ignore case), ``/regex/imsxu``, ``"a".."z"``, names, ``(group)``, ``[optional]``,
  ``template{x, y}``; behind one of them ``? * +``, ``~n``, ``~m..n``, ``{n} {m,} {,n} {m,n}``.
- In terminals ``x & y`` (both; binds tighter than ``|``) and ``~x`` (not; binds tightest). llguidance.
- In rules special tokens: ``<name>``, ``<[12]>``, ``<[1-5,9]>``, ``<[^1-5]>``, ``<[*]>``. llguidance.
- In rules ``%json {..}``: the texts of a JSON schema; anywhere ``%regex {"substring_words": ".."}``: the texts that are
  a run of words of a text, the empty run too (`substring_chars`: of characters, `substring_chunks`: of a list of
  texts). llguidance.
- ``name[lazy]: ..`` and ``name[suffix="text"]: ..`` define a terminal that ends as soon as it can. llguidance.
- ``template{x, y}: ..``, ``%ignore``, ``%import common.X [-> Y]``, ``%import common (A, B)``, ``%llguidance {}``.
- ``%import name.rule``, ``%import name (a, B)``: rules, templates and terminals of a grammar of one's own
  (`tokdfa.Grammar.sources`), with a ``.`` before the name, as in Lark, or without. What that ignores is not imported.

What the dialect lacks is refused by name (`_REFUSED`). The tree is made bottom-up while Lark parses, so that nesting
costs no Python stack; it is bounded by `MAX_NESTING`, so that later passes may recurse.

Cost: Lark's tables once a process (about 100 ms), then about 10 us a word of the grammar.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NoReturn

from tokdfa.constraint import DECODER
from tokdfa.core.budget import hold, spend
from tokdfa.errors import GrammarSyntaxError, GrammarUnsupported, LimitExceeded
from tokdfa.grammar.lark_tree import (
    Attribute,
    Complement,
    Definition,
    Group,
    Ignore,
    Import,
    Option,
    Part,
    Pattern,
    Range,
    Repetition,
    Sequence,
    Special,
    Statement,
    Structured,
    Text,
    Use,
    Word,
    is_terminal_name,
)

#: Levels of groups, complements and template arguments inside each other.
MAX_NESTING = 100
#: Characters of a grammar.
MAX_TEXT = 10_000_000
#: What it takes Lark and `_Actions` to read a definition, a word and a character, and what a word holds.
NS_PER_DEFINITION, NS_PER_WORD, NS_PER_CHARACTER, BYTES_PER_WORD = 30_000, 15_000, 10, 300
#: Times that something may be repeated by a count.
MAX_COUNT = 100_000

META_GRAMMAR = r"""
start: _NL? (_item _NL)*
_item: definition | ignore | import_one | import_many | _MARKER

definition: MODIFIERS? NAME parameters attributes PRIORITY? ":" options
parameters: ["{" NAME ("," NAME)* "}"]
attributes: ["[" attribute ("," attribute)* "]"]
attribute: NAME ["=" (STRING | NUMBER | REGEX)]

ignore: IGNORE options
import_one: IMPORT path ["->" NAME]
import_many: IMPORT path "(" NAME ("," NAME)* ")"
path: "."? NAME ("." NAME)*

options: option (_OR option)*
option: conjunction [ARROW NAME]
conjunction: sequence (AND sequence)*
sequence: (_atom | repetition)*
repetition: _atom (OPERATOR | BRACES | TILDE_COUNT)
_atom: group | optional | complement | _value
group: LEFT options ")"
optional: LEFT_BRACKET options "]"
complement: TILDE _atom
_value: text | regex | range | word | use | special | structured
text: STRING
regex: REGEX
range: STRING ".." STRING
word: NAME
use: NAME "{" _value ("," _value)* "}"
special: SPECIAL
structured: STRUCTURED

IGNORE: "%ignore"
IMPORT: "%import"
_MARKER: /%llguidance[ \t]*\{[ \t]*\}/
MODIFIERS: /[!?]+/
PRIORITY: /\.[ \t]*[+-]?\d+/
ARROW: "->"
AND: "&"
LEFT: "("
LEFT_BRACKET: "["
TILDE: "~"
OPERATOR: /[?*+]/
BRACES.2: /\{[ \t]*(?:\d+[ \t]*(?:,[ \t]*(?:\d+[ \t]*)?)?|,[ \t]*\d+[ \t]*)\}/
TILDE_COUNT.2: /~[ \t]*\d+(?:[ \t]*\.\.[ \t]*\d+)?/
NAME: /[A-Za-z_](?:[A-Za-z0-9_]|-(?!>))*/
STRING: /"(?:\\.|[^"\\\n])*"i?/
REGEX: /\/(?!\/)(?:(?:\\.|[^\/\\\n])+\/[imslux]*|(?:\\[\s\S]|[^\/\\])+\/[imslu]*x[imslux]*)/
NUMBER: /[+-]?\d+(?:\.\d+)?/
SPECIAL: /<\[[^\]\n]*\]>|<[^<>\s]+>/
STRUCTURED: /%(?:json|regex)[ \t\r\n\x00]*\x00/
_OR.2: /(?:(?:(?:\/\/|#)[^\n]*)?\r?\n(?:\s|(?:\/\/|#)[^\n]*\n)*)?\|/
_NL: /(?:(?:\/\/|#)[^\n]*)?\r?\n(?:\s|(?:\/\/|#)[^\n]*\n)*/
BLANK: /(?:[ \t\f\r]|\\[ \t]*\r?\n)+/
%ignore BLANK
"""

_NOT_LINE_END = re.compile(r"[^\n]")
_RULE_NAME = re.compile(r"_?[a-z][a-z0-9_-]*")
_TERMINAL_NAME = re.compile(r"_?[A-Z][A-Z0-9_-]*")

#: What stands where nothing like it can stand: (how it begins, whether it is a refusal, the reason and the remedy).
_REFUSED: tuple[tuple[re.Pattern[str], bool, str], ...] = tuple(
    (re.compile(pattern), refused, reason)
    for pattern, refused, reason in (
        (
            r"%lark",
            True,
            "%lark (a nested grammar) is not supported; give it to Grammar as a source, and %import its rules",
        ),
        (r"@", True, "a reference to another grammar is not supported; give it as a source, and %import its rules"),
        (r"%llguidance", True, "options inside a grammar are not supported; pass them to the backend instead"),
        (r"%declare", True, "%declare is not supported: a declared terminal has no text; define it, or use <token>"),
        (r"%override", True, "%override is not supported; import another name and define this one yourself"),
        (r"%extend", True, "%extend is not supported; write the alternatives into one definition"),
        (r"%if|::", True, "parametric rules are not supported; write one rule for each case"),
        (r"%", False, "unknown directive; known: %ignore, %import; in rules %json, %regex"),
        (r"'", False, "a string stands in double quotes"),
        (r'"', False, "this string is not closed on its line"),
        (r"//", False, 'this group is not closed on its line; a regex for nothing is written ""'),
        (r"/", False, r"this regex is not closed on its line; write \/ for a slash in it (several lines need flag x)"),
        (r"<", False, "this is no special token; those are <name>, <[12]>, <[1-5,9]>, <[^1-5]> or <[*]>"),
        (r"#|\n", False, "the line ends too early; only a line that begins with | goes on with a definition"),
        (r"[?*+{]", False, "nothing to repeat, or repeated twice; group what is to be repeated"),
        (
            r":",
            False,
            "no definition begins here; each begins on a line of its own (parameters as in r::x are refused)",
        ),
    )
)


def parse_statements(text: str) -> list[Statement]:
    """The statements of a grammar, in order.

    Raises GrammarSyntaxError or GrammarUnsupported with line and column, LimitExceeded past `MAX_TEXT`, `MAX_NESTING`
    or `MAX_COUNT`.
    """
    from lark.exceptions import UnexpectedInput

    if len(text) > MAX_TEXT:
        raise LimitExceeded(
            f"the grammar has {len(text)} characters; at most {MAX_TEXT} are read",
            limit="grammar length",
            value=len(text),
        )
    spend(NS_PER_CHARACTER * len(text))
    try:
        statements: list[Statement] = _meta_parser().parse(_hide_json(text) + "\n")
    except UnexpectedInput as error:
        _explain(text, error)
    except _Fault as fault:
        raise fault.kind(fault.reason, text, fault.line, fault.column) from None
    return statements


#: What may hold a ``%`` that is no directive, a directive with JSON, and what begins neither (Lark refuses it).
_PIECES = re.compile(
    r'"(?:\\.|[^"\\\n])*"|<\[[^\]\n]*\]>|<[^<>\s]+>|(?://|#)[^\n]*|'
    r"/(?!/)(?:(?:\\.|[^/\\\n])+/[imslux]*|(?:\\[\s\S]|[^/\\])+/[imslu]*x[imslux]*)|"
    r'(?P<json>%(?:json|regex)\b[ \t\r\n]*)|(?P<broken>["/])'
)


def _hide_json(text: str) -> str:
    """`text` with zeros for the JSON of ``%json`` and ``%regex``, which no regular terminal reads; lines stay lines."""
    if "%json" not in text and "%regex" not in text:
        return text
    parts, begin = [], 0
    while match := _PIECES.search(text, begin):
        parts.append(text[begin : match.end()])
        begin = match.end()
        if match["broken"]:
            break
        if match["json"]:
            try:
                _, past = DECODER.raw_decode(text, begin)
            except (ValueError, RecursionError) as error:
                position = getattr(error, "pos", begin)
                line, column = text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)
                directive = match["json"].strip()
                reason = f"{directive} is followed by JSON; {getattr(error, 'msg', error)}"
                raise GrammarSyntaxError(reason, text, line, column) from None
            parts.append(_NOT_LINE_END.sub("\0", text[begin:past]))
            begin = past
    return "".join([*parts, text[begin:]])


@cache
def _meta_parser() -> Any:
    """Lark's parser of the notation: LALR, so linear; it calls `_Actions` as it goes."""
    import lark

    return lark.Lark(META_GRAMMAR, parser="lalr", transformer=_Actions(), maybe_placeholders=False)


def _explain(text: str, error: Any) -> NoReturn:
    """Raise our own error for one of Lark's."""
    position = len(text) if error.pos_in_stream is None else min(error.pos_in_stream, len(text))
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    for pattern, refused, reason in _REFUSED:
        if pattern.match(text + "\n", position):
            raise (GrammarUnsupported if refused else GrammarSyntaxError)(reason, text, line, column) from None
    raise GrammarSyntaxError(f"{text[position]!r} cannot stand here", text, line, column) from None


class _Fault(Exception):
    """A fault that only an action sees; `parse_statements` knows the text and makes an error of `kind` of it."""

    def __init__(self, reason: str, place: Any, kind: type[GrammarSyntaxError] = GrammarSyntaxError) -> None:
        self.reason, self.line, self.column, self.kind = reason, place.line, place.column, kind
        super().__init__(reason)


class _Actions:
    """One method for each rule of the meta-grammar: what Lark calls with the children, and puts in the tree."""

    def start(self, children: list[Statement]) -> list[Statement]:
        return children

    def definition(self, children: list[Any]) -> Definition:
        spend(NS_PER_DEFINITION)
        words = [child for child in children if _kind(child) == "NAME"]
        priorities = [child for child in children if _kind(child) == "PRIORITY"]
        (parameters, attributes), body = [child for child in children if isinstance(child, tuple)], children[-1]
        name = words[0]
        _check_name(name)
        if is_terminal_name(name):
            if priorities:
                raise _Fault(
                    "a terminal's priority is not supported: it chooses between readings, and all of them are kept",
                    priorities[0],
                    GrammarUnsupported,
                )
            for extra in (*parameters, *attributes):
                raise _Fault("only rules have parameters and attributes; give it a lower-case name", extra)
        return Definition(name.line, name.column, str(name), parameters, attributes, body)

    def parameters(self, children: list[Any]) -> tuple[Word, ...]:
        words = tuple(map(_word, children))
        for word in words:
            if is_terminal_name(word.name):
                raise _Fault("a parameter's name is in lower case", word)
        return words

    def attributes(self, children: list[Attribute]) -> tuple[Attribute, ...]:
        return tuple(children)

    def attribute(self, children: list[Any]) -> Attribute:
        name, *value = children
        return Attribute(name.line, name.column, str(name), str(value[0]) if value else None)

    def ignore(self, children: list[Any]) -> Ignore:
        directive, body = children
        return Ignore(directive.line, directive.column, body)

    def path(self, children: list[Any]) -> list[Word]:
        return [Word(token.line, token.column, str(token)) for token in children]

    def import_one(self, children: list[Any]) -> Import:
        directive, path, *alias = children
        called = _word(alias[0]) if alias else path[-1]
        if is_terminal_name(called.name) != is_terminal_name(path[-1].name):
            raise _Fault("an imported terminal keeps an upper-case name", called)
        return Import(directive.line, directive.column, tuple(part.name for part in path[:-1]), ((path[-1], called),))

    def import_many(self, children: list[Any]) -> Import:
        directive, path, *names = children
        words = [_word(name) for name in names]
        pairs = tuple(zip(words, words, strict=True))
        return Import(directive.line, directive.column, tuple(part.name for part in path), pairs)

    def options(self, children: list[Option]) -> Group:
        parts = [part for option in children for sequence in option.sequences for part in sequence]
        first = parts[0] if parts else Part(0, 0)
        return Group(first.line, first.column, tuple(children), _depth(parts))

    def option(self, children: list[Any]) -> Option:
        spend(NS_PER_WORD)
        (sequences, joined), *alias = children
        return Option(sequences, joined, _place(alias[0]) if alias else None)

    def conjunction(self, children: list[Any]) -> tuple[tuple[Sequence, ...], Part | None]:
        return tuple(children[::2]), _place(children[1]) if len(children) > 1 else None

    def sequence(self, children: list[Part]) -> Sequence:
        spend(NS_PER_WORD * (1 + len(children)))
        hold(BYTES_PER_WORD * len(children))
        return tuple(children)

    def repetition(self, children: list[Any]) -> Repetition:
        body, count = children
        low, high = _bounds(count)
        if high is not None and high < low:
            raise _Fault(f"a repeat needs low <= high, not {low} and {high}", count)
        return Repetition(body.line, body.column, body, low, high)

    def group(self, children: list[Any]) -> Group:
        bracket, body = children
        return Group(bracket.line, bracket.column, body.options, _deeper(body.depth, bracket))

    def optional(self, children: list[Any]) -> Repetition:
        return Repetition(children[0].line, children[0].column, self.group(children), 0, 1)

    def complement(self, children: list[Any]) -> Complement:
        tilde, body = children
        return Complement(tilde.line, tilde.column, body, _deeper(_depth([body]), tilde))

    def text(self, children: list[Any]) -> Text:
        return Text(children[0].line, children[0].column, str(children[0]))

    def regex(self, children: list[Any]) -> Pattern:
        return Pattern(children[0].line, children[0].column, str(children[0]))

    def range(self, children: list[Any]) -> Range:
        low, high = self.text(children[:1]), self.text(children[1:])
        return Range(low.line, low.column, low, high)

    def word(self, children: list[Any]) -> Word:
        return _word(children[0])

    def use(self, children: list[Any]) -> Use:
        name, *arguments = children
        _check_name(name)
        return Use(name.line, name.column, str(name), tuple(arguments), _deeper(_depth(arguments), name))

    def special(self, children: list[Any]) -> Special:
        return Special(children[0].line, children[0].column, str(children[0]))

    def structured(self, children: list[Any]) -> Structured:
        token = children[0]
        directive = "%json" if token.startswith("%json") else "%regex"
        begin = token.end_pos - len(token[len(directive) :].lstrip(" \t\r\n"))
        return Structured(token.line, token.column, directive, begin, token.end_pos)


def _kind(child: Any) -> str:
    """The name of a child's terminal; "" if it is none."""
    return getattr(child, "type", "")


def _place(token: Any) -> Part:
    return Part(token.line, token.column)


def _word(token: Any) -> Word:
    _check_name(token)
    return Word(token.line, token.column, str(token))


def _check_name(token: Any) -> None:
    if not _RULE_NAME.fullmatch(token) and not _TERMINAL_NAME.fullmatch(token):
        raise _Fault(
            f"{str(token)!r} is no name; a rule's is in lower case, a terminal's in upper case, at most one _ first",
            token,
        )


def _depth(parts: list[Any]) -> int:
    """Levels of nesting inside the deepest of `parts`."""
    bodies = (part.body if isinstance(part, Repetition) else part for part in parts)
    return max((getattr(body, "depth", 0) for body in bodies), default=0)


def _deeper(depth: int, place: Any) -> int:
    if depth >= MAX_NESTING:
        raise LimitExceeded(
            f"groups are nested deeper than {MAX_NESTING} at line {place.line}, column {place.column} of the grammar; "
            "give the inner ones names of their own",
            limit="group nesting",
            value=depth + 1,
        )
    return depth + 1


def _bounds(count: Any) -> tuple[int, int | None]:
    """The bounds of ``? * +``, ``{m,n}`` and its kin, ``~n`` and ``~m..n``."""
    known = {"?": (0, 1), "*": (0, None), "+": (1, None)}
    if count in known:
        return known[count]
    numbers = re.findall(r"\d+", count)
    for number in numbers:
        if len(number.lstrip("0")) > len(str(MAX_COUNT)) or int(number) > MAX_COUNT:  # int() refuses very long ones
            raise LimitExceeded(
                f"a count above {MAX_COUNT} at line {count.line}, column {count.column} of the grammar; "
                "write what is repeated as a regex in a terminal",
                limit="count",
                value=MAX_COUNT,
            )
    low = 0 if re.match(r"\{\s*,", count) else int(numbers[0])
    if count.startswith("{") and count.rstrip("} \t").endswith(","):
        return low, None
    return low, int(numbers[-1])
