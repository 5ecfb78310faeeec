r"""Word boundaries on which several dialects must agree: what may stand before and behind one.

ECMA-262, Python's `re` and Rust count different characters to words. Characters are in *zones* by who counts them:
*word*, all three; *settled*, Python and Rust, in each version of Unicode; *doubtful*, whether they do differs; *other*,
none. There is a boundary to all of them between word and other, and none to all of them between two of word, of other,
or of settled. Everywhere else they disagree. *To any* of them there is a boundary where it is not so that there is none
to all of them, and the other way round.

*To Python* alone there are two zones, as regexes of grammars are Python's.

An empty text has no boundary; but there Python before 3.14 finds no ``\\B`` either.
"""

from __future__ import annotations

from functools import cache

from tokdfa.regex.assertions import AFTER_NEWLINE, AFTER_OTHER, AFTER_WORD, AT_START
from tokdfa.regex.char_sets import NEWLINE, Ranges, complement, difference, python_word_characters, word_zones

#: What `Assertion.kind` ends with.
TO_ALL, TO_ANY, TO_PYTHON = "_to_all", "_to_any", "_to_python"
#: Contexts beside those of the derivatives: behind a character of one of these zones.
AFTER_SETTLED, AFTER_DOUBTFUL = 4, 5
_NAMES = ("word", "settled", "doubtful", "other")
#: By context: the zones of the next character ("end": nothing comes) before which there is a boundary to all dialects,
#: and before which there is none.
_FITTING: dict[int, tuple[frozenset[str], frozenset[str]]] = {
    AT_START: (frozenset({"word"}), frozenset({"other"})),
    AFTER_NEWLINE: (frozenset({"word"}), frozenset({"other", "end"})),
    AFTER_WORD: (frozenset({"other", "end"}), frozenset({"word"})),
    AFTER_OTHER: (frozenset({"word"}), frozenset({"other", "end"})),
    AFTER_SETTLED: (frozenset(), frozenset({"settled"})),
    AFTER_DOUBTFUL: (frozenset(), frozenset()),
}


def is_agreed(kind: str) -> bool:
    """Whether an assertion is a boundary by zones of characters, which are more than ASCII."""
    return kind.endswith((TO_ALL, TO_ANY, TO_PYTHON))


@cache
def zones() -> dict[str, Ranges]:
    """The characters of each zone."""
    words = python_word_characters()
    return {**dict(zip(_NAMES, word_zones(), strict=True)), "python word": words, "python other": complement(words)}


@cache
def leaving(to_python: bool) -> dict[int, Ranges]:
    """The characters that leave each context behind, but the start."""
    found = zones()
    if to_python:
        others = difference(found["python other"], NEWLINE)
        return {AFTER_NEWLINE: NEWLINE, AFTER_WORD: found["python word"], AFTER_OTHER: others}
    return {
        AFTER_NEWLINE: NEWLINE,
        AFTER_WORD: found["word"],
        AFTER_OTHER: difference(found["other"], NEWLINE),
        AFTER_SETTLED: found["settled"],
        AFTER_DOUBTFUL: found["doubtful"],
    }


def zones_that_fit(kind: str, context: int) -> frozenset[str]:
    """The zones of which the next character must be where an assertion holds; "end": nothing comes."""
    wants_boundary = kind.startswith("word_boundary")
    if kind.endswith(TO_PYTHON):
        is_word = (context == AFTER_WORD) != wants_boundary
        return frozenset({"python word"} if is_word else {"python other", "end"})
    boundary, none = _FITTING[context]
    if kind.endswith(TO_ALL):
        return boundary if wants_boundary else none
    others = frozenset((*_NAMES, "end")) - (none if wants_boundary else boundary)
    return others - {"end"} if wants_boundary and context == AT_START else others
