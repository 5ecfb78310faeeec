r"""The terminals that ``%import common.NAME`` brings, in our own notation and equal to Lark's own as languages.

Two of Lark's use "as little as possible" inside a regex, which speaks about how to search, not about a language. Here
they are the texts that such a search finds: a C comment ends at its first ``*/``, a string at its first quote that no
backslash escapes.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tokdfa.grammar.lark_syntax import parse_statements
from tokdfa.grammar.lark_terminals import TerminalReader
from tokdfa.grammar.lark_tree import Definition, Word
from tokdfa.regex.expression import ExpressionStore

if TYPE_CHECKING:
    from tokdfa.regex.program import Program

COMMON_TEXT = r"""
DIGIT: /[0-9]/
HEXDIGIT: /[0-9A-Fa-f]/
INT: DIGIT+
SIGNED_INT: /[+-]/? INT
DECIMAL: INT "." INT? | "." INT
_EXP: /[eE]/ SIGNED_INT
FLOAT: INT _EXP | DECIMAL _EXP?
SIGNED_FLOAT: /[+-]/? FLOAT
NUMBER: INT | FLOAT
SIGNED_NUMBER: /[+-]/? NUMBER
ESCAPED_STRING: /"(?:[^"\\\n]|\\[^\n])*"/
LCASE_LETTER: /[a-z]/
UCASE_LETTER: /[A-Z]/
LETTER: /[A-Za-z]/
WORD: LETTER+
CNAME: /[A-Za-z_][A-Za-z0-9_]*/
WS_INLINE: /[ \t]+/
WS: /[ \t\f\r\n]+/
CR: "\r"
LF: "\n"
NEWLINE: /(?:\r?\n)+/
SH_COMMENT: /#[^\n]*/
CPP_COMMENT: /\/\/[^\n]*/
C_COMMENT: /\/\*(?:[^*]|\*+[^*\/])*\*+\//
SQL_COMMENT: /--[^\n]*/
"""


@cache
def common_definitions() -> dict[str, Definition]:
    """Name -> definition."""
    statements = parse_statements(COMMON_TEXT)
    return {statement.name: statement for statement in statements if isinstance(statement, Definition)}


@cache
def common_program(name: str) -> Program:
    """What writes the expression of a common terminal, to be included in other programs."""
    return TerminalReader(COMMON_TEXT, common_definitions(), ExpressionStore()).program_of(Word(0, 0, name))
