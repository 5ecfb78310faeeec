"""The usual parts of JSON and YAML: values between the delimiters that stand around them, for the library.

A part ends where no token can run across, which depends on the tokenizer; it may hold a delimiter or two. So the values
are not put into the library as such. Each stands in texts of the usual forms (JSON in one line without and with blanks,
JSON over several lines, YAML), before each delimiter that may follow it there, and what these texts fall into is kept.
Later constraints find what they have in common with them. Parts with the names of keys in them are new every time.

A type of which DirectMerge cannot make a part within the limits (free strings: nearly every token is a state) is left
out, and named in the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.backends.proper_merge.context import refuse_isolated
from tokdfa.backends.proper_merge.letter_automaton import letter_automaton
from tokdfa.backends.proper_merge.marked_product import marked_product
from tokdfa.backends.proper_merge.vegas_library import load_library
from tokdfa.backends.proper_merge.vegas_splice import PartMerger
from tokdfa.errors import LimitExceeded

if TYPE_CHECKING:
    from tokdfa.backends.proper_merge.vegas_library import PartLibrary
    from tokdfa.vocabulary.tokenizers import Tokenizer

_DATE = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
#: Type -> regex of its values; those of `QUOTED` stand between quotes in JSON.
TYPES: dict[str, str] = {
    "string": r'([^"\\\x00-\x1f]|\\(["\\/bfnrt]|u[0-9a-fA-F]{4}))*',
    "integer": "-?(0|[1-9][0-9]*)",
    "number": r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?",
    "boolean": "(true|false)",
    "null": "null",
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}Z",
    "e-mail": r"[a-z0-9]+([._+-][a-z0-9]+)*@[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)+",
    "UUID": "[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}",
}
QUOTED = frozenset({"string", "date", "time", "date-time", "e-mail", "UUID"})
#: Form -> (begin, between key and value, between members, end), as regexes.
FORMS: dict[str, tuple[str, str, str, str]] = {
    "json_compact": (r"\{", ":", ",", r"\}"),
    "json_spaced": (r"\{", ": ", ", ", r"\}"),
    "json_indented": (r"\{\n  ", ": ", r",\n  ", r"\n\}"),
    "yaml": ("", ": ", r"\n", r"\n"),
}
#: Limits for one type in one form: what is larger does not pay as a part.
MAX_STATES, MAX_TRANSITIONS = 20_000, 500_000


def value_pattern(kind: str, form: str) -> str:
    """The regex of a value of this type, as it stands in texts of this form. KeyError for an unknown name."""
    return f'"{TYPES[kind]}"' if kind in QUOTED and form != "yaml" else TYPES[kind]


def object_pattern(members: list[tuple[str, str]], form: str) -> str:
    """The regex of an object with `members`: (key, type). Keys are letters, digits and ``_``."""
    begin, colon, comma, end = FORMS[form]
    quote = "" if form == "yaml" else '"'
    return begin + comma.join(f"{quote}{key}{quote}{colon}{value_pattern(kind, form)}" for key, kind in members) + end


def build_library(
    tokenizer: Tokenizer, library: PartLibrary | None = None, kinds: tuple[str, ...] = tuple(TYPES)
) -> dict[str, str]:
    """Put the usual parts into the library of `tokenizer` (or into `library`).

    Returns type -> why it was left out in some form; empty if nothing was. Raises TokenizerError for a tokenizer that
    does not merge. Seconds to half a minute, mostly for the types that are left out.
    """
    from tokdfa.automata.algebra import minimize
    from tokdfa.constraint import Regex
    from tokdfa.proper.piece_borders import load_marked_dfa
    from tokdfa.proper.rules_cache import load_canonicity
    from tokdfa.regex.compile import compile_dfa

    canonicity, marked = load_canonicity(tokenizer), load_marked_dfa(tokenizer)
    merger = tokenizer.keep("part_merger", lambda: PartMerger(canonicity))
    library = load_library(tokenizer) if library is None else library
    left_out = {}
    for kind in kinds:
        for form in FORMS:
            pattern = object_pattern([("a", kind), ("b", kind)], form)
            product = marked_product(minimize(compile_dfa(Regex(pattern))), marked)
            refuse_isolated(product, canonicity)
            try:
                merger.merge(letter_automaton(product, canonicity), library, MAX_STATES, MAX_TRANSITIONS)
            except LimitExceeded as error:
                left_out[kind] = str(error)
    return left_out
