import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import regex_patterns
from tokdfa.errors import RegexSyntaxError, RegexUnsupported
from tokdfa.regex.char_sets import SURROGATES, difference
from tokdfa.regex.dialects import DIALECTS, LIBRARY_DIALECTS
from tokdfa.regex.parse import parse
from tokdfa.regex.syntax_tree import Atomic, CharSet, Concat, Repeat, SourceSet, walk


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_refused_is_refused_by_name(dialect: str) -> None:
    table = DIALECTS[dialect]
    for opening, what in table.refused_groups.items():
        with pytest.raises(RegexUnsupported) as caught:
            parse(f"a{opening}", dialect=dialect)
        assert caught.value.reason.startswith(what.split("; ")[0])
        assert caught.value.position == 1
    for letter, what in table.refused_escapes.items():
        with pytest.raises(RegexUnsupported) as caught:
            parse(f"a\\{letter}", dialect=dialect)
        assert caught.value.reason.startswith(what.split("; ")[0])
        assert caught.value.position == 1


@given(regex_patterns(boundaries=False))
def test_lark_reads_what_tokdfa_reads_but_lazy_quantifiers(pattern: str) -> None:
    ours = parse(pattern)
    try:
        assert parse(pattern, dialect="lark") == ours
    except RegexUnsupported as error:
        refused = error
    else:
        return
    assert "lazy" in refused.reason
    assert pattern[refused.position - 1] in "*+?}"
    assert pattern[refused.position] == "?"


@pytest.mark.parametrize(
    ("pattern", "position"),
    [("a*?", 2), ("a+b??c*?", 4), ("(?:a{2,3}?)+?", 9), (r"[*?]\*?b+?", 9), ("(?x)a # b+?\n c+?", 15), ("ab*?)", None)],
)
def test_the_first_lazy_quantifier_is_named_in_what_is_no_other_error(pattern: str, position: int | None) -> None:
    with pytest.raises(RegexSyntaxError) as caught:
        parse(pattern, dialect="lark")
    assert (caught.value.position if isinstance(caught.value, RegexUnsupported) else None) == position


@pytest.mark.parametrize("pattern", [r"a{}?", r"\x{41}?", r"[*?]\*?", "(?#a+?)b", "(?x)a # b+?"])
def test_what_only_looks_like_a_lazy_quantifier_is_read(pattern: str) -> None:
    assert parse(pattern, dialect="lark") == parse(pattern)


DIFFERENT = (".", "\\s", "\\w", "\\W", "(?!", "{,")


@given(regex_patterns().filter(lambda pattern: not any(part in pattern for part in DIFFERENT)))
def test_ecma_and_tokdfa_have_a_common_core(pattern: str) -> None:
    """The same sets in the same order but for surrogates, where nothing that they differ in is written."""
    ours, ecma = parse(pattern, ascii_classes=True), parse(pattern, dialect="ecma")
    kept = [CharSet(difference(node.ranges, SURROGATES)) for node in walk(ours) if isinstance(node, CharSet)]
    assert [node for node in walk(ecma) if isinstance(node, CharSet)] == kept
    assert {kind.removesuffix("_to_all") for kind in ecma.assertions} == ours.assertions


@pytest.mark.parametrize("dialect", LIBRARY_DIALECTS)
@settings(max_examples=50)
@given(st.sampled_from(["a", "[b-d]", r"\s", "."]), st.sampled_from("*+?"))
def test_libraries_prefer_a_match(dialect: str, source: str, quantifier: str) -> None:
    body = SourceSet("character" if source == "a" else dialect, source, 1)
    low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[quantifier]
    for mode in ("", "?", "+"):
        tree = parse(f"z{source}{quantifier}{mode}", dialect=dialect)
        repeat = Repeat(body, low, high, lazy=mode == "?")
        assert tree == Concat((SourceSet("character", "z", 0), Atomic(repeat) if mode == "+" else repeat))
