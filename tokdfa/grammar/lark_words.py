r"""The words of the notation of grammars, each a regular expression; what can come next says which are looked for.

`tests/grammar/meta_grammar.py` has the same words, as terminals of Lark's.
"""

from __future__ import annotations

import re

_LINE_END = r"(?:(?://|#)[^\n]*)?\r?\n(?:\s|(?://|#)[^\n]*\n)*"
_WORDS = {
    "name": r"[A-Za-z_](?:[A-Za-z0-9_]|-(?!>))*",
    "string": r'"(?:\\.|[^"\\\n])*"i?',
    "regex": r"/(?!/)(?:(?:\\.|[^/\\\n])+/[imslux]*|(?:\\[\s\S]|[^/\\])+/[imslu]*x[imslux]*)",
    "number": r"[+-]?\d+(?:\.\d+)?",
    "special": r"<\[[^\]\n]*\]>|<[^<>\s]+>",
    "structured": r"%(?:json|regex)\b",
    "bar": rf"(?:{_LINE_END})?\|",
    "line_end": _LINE_END,
    "marker": r"%llguidance[ \t]*\{[ \t]*\}",
    "ignore": "%ignore",
    "override": "%override",
    "extend": "%extend",
    "import": "%import",
    "modifiers": "[!?]+",
    "priority": r"\.[ \t]*[+-]?\d+",
    "arrow": "->",
    "range": r"\.\.",
    "operator": "[?*+]",
    "braces": r"\{[ \t]*(?:\d+[ \t]*(?:,[ \t]*(?:\d+[ \t]*)?)?|,[ \t]*\d+[ \t]*)\}",
    "times": r"~[ \t]*\d+(?:[ \t]*\.\.[ \t]*\d+)?",
    "left": r"\(",
    "right": r"\)",
    "left_bracket": r"\[",
    "right_bracket": r"\]",
    "left_brace": r"\{",
    "right_brace": r"\}",
    "tilde": "~",
    "and": "&",
    "colon": ":",
    "equals": "=",
    "comma": ",",
    "dot": r"\.",
}

BLANK = re.compile(r"(?:[ \t\f\r]|\\[ \t]*\r?\n)*")


def one_of(*words: str) -> re.Pattern[str]:
    """Blanks, then the first of `words` that fits, as a group of its name."""
    return re.compile(BLANK.pattern + "(?:" + "|".join(f"(?P<{word}>{_WORDS[word]})" for word in words) + ")")


# What is frequent comes first: alternatives are tried in order.
_VALUES = ("name", "string", "regex", "special", "structured")

STATEMENT = one_of("marker", "ignore", "import", "override", "extend", "modifiers", "name")
DEFINITION = one_of("modifiers", "name")
VALUE = one_of(*_VALUES)
_ITEMS = *_VALUES, "bar", "left", "right", "left_bracket", "right_bracket", "line_end", "tilde", "and", "arrow"
COUNTS = "operator", "braces", "times"
ITEM = one_of(*_ITEMS)
#: What can come behind an item or a part of it, the next item included.
BEHIND_ITEM = one_of("operator", "times", *_ITEMS, "braces", "range", "left_brace")
BEHIND_ALIAS = one_of("bar", "line_end", "right", "right_bracket")
#: What can come behind the name of a definition.
BEHIND_NAME = one_of("colon", "left_brace", "left_bracket", "priority")
ATTRIBUTE = one_of("string", "number", "regex")
NAME, STRING, LINE_END = one_of("name"), one_of("string"), one_of("line_end")
ARROW, RANGE, EQUALS, COMMA, DOT = map(one_of, ("arrow", "range", "equals", "comma", "dot"))
LEFT, RIGHT, RIGHT_BRACKET = map(one_of, ("left", "right", "right_bracket"))
LEFT_BRACE, RIGHT_BRACE = map(one_of, ("left_brace", "right_brace"))

#: What stands where nothing like it can stand: (how it begins, whether it is a refusal, the reason and the remedy).
REFUSED: tuple[tuple[re.Pattern[str], bool, str], ...] = tuple(
    (re.compile(pattern), refused, reason)
    for pattern, refused, reason in (
        (
            r"%lark",
            True,
            "%lark (a nested grammar) is not supported; give it to Grammar as a source, and %import its rules",
        ),
        (r"@", True, "a reference to another grammar is not supported; give it as a source, and %import its rules"),
        (r"%llguidance", True, "options inside a grammar are not supported; pass them to the backend instead"),
        (
            r"%declare",
            True,
            "%declare is not supported: code outside of the grammar makes what it declares; define it, or use <token>",
        ),
        (r"%if|::", True, "parametric rules are not supported; write one rule for each case"),
        (r"%", False, "unknown directive; known: %ignore, %import, %override, %extend; in rules %json, %regex"),
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
