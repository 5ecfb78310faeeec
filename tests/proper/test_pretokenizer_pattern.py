from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.proper.pretokenizers import (
    extend,
    library_split,
    pieces_by_tiktoken,
    pieces_by_tokenizers,
    split_steps,
    tiktoken_steps,
)
from tests.strategies import short_texts
from tokdfa.errors import LimitExceeded, RegexSyntaxError, RegexUnsupported, TokenizerError
from tokdfa.proper.pretokenizer import build_marked_dfa
from tokdfa.regex.parse import parse

TEXTS = short_texts(5, "aB\né")

_ATOMS = ("a", "B", "é", "\\n", "[aB]", "[^a]", ".", "\\s", "\\S", "\\p{Lu}", "(?i:a)", "(?i:b)", "(?i:aB)", "(?i:a|b)")
_QUANTIFIERS = ("*", "+", "?", "*?", "+?", "??", "*+", "++", "?+", "{2}", "{1,2}", "{2,}", "{1,3}?", "{,2}", "{1,}?")
_TIKTOKEN_QUANTIFIERS = ("{1,2}+", "{2,}+", "{1,3}+", "{2}?", "{2}+")
_ZERO_WIDTH = ("$", "\\z")


def patterns(dialect: str) -> st.SearchStrategy[str]:
    """Patterns of the dialect, some of which can be empty or repeat what can be."""
    quantifiers = _QUANTIFIERS + (_TIKTOKEN_QUANTIFIERS if dialect == "tiktoken" else ())

    def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        sequence = st.lists(inner, min_size=1, max_size=3).map("".join)
        options = st.lists(sequence, min_size=1, max_size=3).map("|".join)
        groups = st.tuples(st.sampled_from(["(?:", "(", "(?>", "(?i:", "(?=", "(?!"]), options)
        repeats = st.tuples(options, st.sampled_from(quantifiers)).map(lambda pair: f"(?:{pair[0]}){pair[1]}")
        possessive_parts = st.tuples(inner, st.sampled_from(_ATOMS)).map(lambda pair: f"(?>{pair[0]}){pair[1]}")
        return st.one_of(groups.map(lambda pair: f"{pair[0]}{pair[1]})"), repeats, possessive_parts)

    atoms = st.sampled_from(_ATOMS)
    quantified = st.tuples(atoms, st.sampled_from(quantifiers)).map("".join)
    leaves = st.one_of(atoms, quantified, quantified, st.sampled_from(_ZERO_WIDTH))
    part = st.lists(st.recursive(leaves, extend, max_leaves=5), max_size=2).map("".join)
    option = st.tuples(part, atoms, part).map("".join)
    return st.lists(option, min_size=1, max_size=3).map("|".join)


def check_pieces(pattern: str, dialect: str) -> None:
    steps = tiktoken_steps(pattern) if dialect == "tiktoken" else split_steps(pattern)
    try:
        dfa = build_marked_dfa(steps, cache=False)
    except (RegexUnsupported, TokenizerError):  # outside the construction, or no pattern for the library
        assume(False)
    if dialect == "tiktoken":
        reference = pieces_by_tiktoken(pattern, TEXTS)
    else:
        reference = pieces_by_tokenizers(library_split(pattern))
    for text in TEXTS:
        pieces = [piece.encode() for piece in reference(text)]
        alive = extend(dfa, [(dfa.start, b"")], text)
        accepted = [marked for state, marked in alive if dfa.accepting[state]]
        assert accepted == ([b"\xff".join(pieces)] if b"".join(pieces) == text.encode() else []), text


@settings(max_examples=40)
@given(patterns("tiktoken"))
def test_random_patterns_cut_as_tiktoken_does(pattern: str) -> None:
    check_pieces(pattern, "tiktoken")


@settings(max_examples=40)
@given(patterns("oniguruma"))
def test_random_patterns_cut_as_tokenizers_does(pattern: str) -> None:
    check_pieces(pattern, "oniguruma")


@pytest.mark.parametrize("dialect", ["tiktoken", "oniguruma"])
@pytest.mark.parametrize(
    "pattern",
    [
        "a++a|B",
        "a?+a|B",
        "a*+(?:aB|é)|a",
        "(?:a|aB)++B|B",
        "(?>a|aB)(?:B|é)|B",
        "(?>aB|a)B|a",
        "(?>a(?>B|Bé)|aB)(?:é|a)|.",
        "(?>(?>a+)a|a)B|a",
        "(?:(?>a+?)B)+|a",
        "a+?B|a",
        "a??B|a",
        "(?:a|B)+?(?=é)|B",
        "(?:a(?!Ba))+|a|B",
        "a(?=(?>a|aB)é)|B",
        "a(?!.*B)|a+B",
        "(?:B|B\\n)(?:$|é)|a",
        "a+$|a(?=a)",
        "a+\\z|a|(?=Bé)B",
        ".+(?=B)|a",
    ],
)
def test_choices_that_matter(pattern: str, dialect: str) -> None:
    """Atomic and possessive, lazy, look-ahead and end: with another choice the pieces would differ."""
    check_pieces(pattern, dialect)


BOTH: tuple[str, ...] = ("tiktoken", "oniguruma")


@pytest.mark.parametrize(
    ("pattern", "position", "message", "dialects"),
    [
        (r"a(?<=b)c", 1, "look-behind", BOTH),
        (r"(a)\1", 3, "a back-reference", BOTH),
        (r"(?<n>a)\k<n>", 0, "a named group", BOTH),
        (r"(?s:a)", 0, "this kind of group", BOTH),
        (r"(?x)a", 0, "this kind of group", BOTH),
        (r"a(?i)b", 1, "flags for all of the pattern but at its beginning", BOTH),
        (r"^a", 0, "an anchor to the start", BOTH),
        (r"\<a", 0, "an escape that is an anchor", BOTH),
        (r"\Qa", 0, r"the escape \\Q", BOTH),
        ("a\\", 1, "a backslash at the end", BOTH),
        (r"", 0, "can match the empty string", BOTH),
        (r"a*", 0, "can match the empty string", BOTH),
        (r"a|b?", 0, "can match the empty string", BOTH),
        (r"(?=a)", 0, "can match the empty string", BOTH),
        (r"a(?=b)*", 1, "quantified look-around", BOTH),
        (r"a(?:(?!b))?", 1, "quantified look-around", BOTH),
        (r"a$+", 1, "quantified look-around", BOTH),
        (r"a(?:b?)*", 1, "a repeat of what can be empty", BOTH),
        (r"a(?:b|)+", 1, "a repeat of what can be empty", BOTH),
        (r"a*{2}", 2, "a quantifier after a quantifier", BOTH),
        (r"a+?*", 3, "a quantifier after a quantifier", BOTH),
        (r"*a", 0, "a quantifier without anything", BOTH),
        (r"a|+", 2, "a quantifier without anything", BOTH),
        (r"a{x}", 1, "a brace that counts nothing", BOTH),
        (r"a{2,1}", 1, r"the count \{2,1\}", BOTH),
        (r"ab{0}", 2, r"the count \{0\}", BOTH),
        (r"[]a]", 1, "a bracket directly after the opening", BOTH),
        (r"[^]a]", 2, "a bracket directly after the opening", BOTH),
        (r"a{1,2}+", 1, r"\{1,2\}\+, which Oniguruma reads unlike", ("oniguruma",)),
        (r"a{2}?", 1, r"\{2\}\?, which Oniguruma reads unlike", ("oniguruma",)),
        (r"(?i:ss)", 5, "letters without regard to case", ("oniguruma",)),
        (r"(?i)as(?:t)", 9, "letters without regard to case", ("oniguruma",)),
        (r"(?i:\x73\u0073)", 8, "letters without regard to case", ("oniguruma",)),
        (r"(?i:as{2})", 5, "letters without regard to case", ("oniguruma",)),
        (r"(?i:ß)", 4, "letters without regard to case", ("oniguruma",)),
    ],
)
def test_refusals_name_the_reason_and_the_offset(
    pattern: str, position: int, message: str, dialects: tuple[str, ...]
) -> None:
    for dialect in BOTH:
        if dialect not in dialects:
            parse(pattern, dialect=dialect)
            continue
        with pytest.raises(RegexUnsupported, match=message) as raised:
            parse(pattern, dialect=dialect)
        assert raised.value.position == position


@pytest.mark.parametrize(("pattern", "position"), [("a)", 1), ("(a", 0), ("b[a", 1), ("b[a[b]", 1), ("(?:a|(b)", 0)])
def test_broken_patterns(pattern: str, position: int) -> None:
    for dialect in BOTH:
        with pytest.raises(RegexSyntaxError) as raised:
            parse(pattern, dialect=dialect)
        assert raised.value.position == position


def test_limits() -> None:
    with pytest.raises(LimitExceeded, match="deeper than 50"):
        parse("(" * 51 + "a" + ")" * 51, dialect="tiktoken")
    with pytest.raises(LimitExceeded, match="a count above 1000"):
        parse("a{5,1001}", dialect="tiktoken")
    with pytest.raises(LimitExceeded, match="instructions"):
        build_marked_dfa(tiktoken_steps("(?:(?:a{1,9}b){1,20}c){1,20}"), cache=False)
    with pytest.raises(LimitExceeded, match="classes of characters"):
        build_marked_dfa(tiktoken_steps("|".join(map(chr, range(0x4E00, 0x4F00)))), cache=False)
    with pytest.raises(LimitExceeded, match="states"):
        build_marked_dfa(tiktoken_steps("(?>(?:a|b)*?a(?:a|b){13}c)|[abc]"), cache=False)
    with pytest.raises(LimitExceeded, match="vectors"):
        build_marked_dfa(tiktoken_steps("[abc](?=[abc]{17}c)|[abc]"), cache=False)
