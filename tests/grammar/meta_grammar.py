"""The notation of grammars as a grammar of Lark's, but for ``%json`` and ``%regex``: what
`tokdfa.grammar.lark_syntax` is compared with.
"""

from __future__ import annotations

from functools import cache

import lark

META_GRAMMAR = r"""
start: _NL? (_item _NL)*
_item: definition | ignore | import_one | import_many | _MARKER

definition: CHANGE? MODIFIERS? NAME parameters attributes PRIORITY? ":" options
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
_value: text | regex | range | word | use | special
text: STRING
regex: REGEX
range: STRING ".." STRING
word: NAME
use: NAME "{" _value ("," _value)* "}"
special: SPECIAL

IGNORE: "%ignore"
CHANGE: "%override" | "%extend"
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
_OR.2: /(?:(?:(?:\/\/|#)[^\n]*)?\r?\n(?:\s|(?:\/\/|#)[^\n]*\n)*)?\|/
_NL: /(?:(?:\/\/|#)[^\n]*)?\r?\n(?:\s|(?:\/\/|#)[^\n]*\n)*/
BLANK: /(?:[ \t\f\r]|\\[ \t]*\r?\n)+/
%ignore BLANK
"""


@cache
def _parser() -> lark.Lark:
    return lark.Lark(META_GRAMMAR, parser="lalr")


def first_fault(text: str) -> int | None:
    """Where in a grammar's text the first word begins that cannot stand there; None if there is none."""
    try:
        _parser().parse(text + "\n")
    except lark.exceptions.UnexpectedInput as error:
        is_end = (
            getattr(getattr(error, "token", None), "type", "") == "$END"
        )  # which has the place of the word before it
        return len(text) if is_end or error.pos_in_stream is None else min(error.pos_in_stream, len(text))
    return None
