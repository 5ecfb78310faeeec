from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tests.json_schema.test_patterns import as_ecma
from tests.naive import regex_matcher
from tests.strategies import regex_patterns, short_texts
from tokdfa.json_schema.sets.patterns import parse_pattern
from tokdfa.json_schema.sets.string_lengths import lengths_of, narrow

SHORT = short_texts(4, "ab-")


@given(regex_patterns(anchors=False, look_ahead=False, boundaries=False), st.integers(0, 4), st.integers(0, 4))
@example("a[ab]{2,}b", 0, 3)
@example("[ab]*", 3, 3)
@example("a(?:b|-a)c{2}", 1, 4)
def test_narrowed_matches_are_the_matches_of_these_lengths(pattern: str, low: int, more: int) -> None:
    body = parse_pattern(as_ecma(pattern))
    least, most, *_ = lengths_of(body)
    matches = [text for text in SHORT if regex_matcher.full_match(body, text)]
    assert all(least <= len(text) and (most is None or len(text) <= most) for text in matches)
    for high in (low + more, None):
        narrowed = narrow(body, low, high)
        if narrowed is not None:
            expected = [text for text in matches if low <= len(text) and (high is None or len(text) <= high)]
            assert [text for text in SHORT if regex_matcher.full_match(narrowed, text)] == expected


@given(regex_patterns(anchors=False, look_ahead=False, boundaries=False), st.integers(0, 3), st.integers(0, 3))
@example("(?:aa)*", 1, 0)
@example("(?:aa|a{3})*", 1, 0)
@example("(?:a{3}|b{2,})", 0, 2)
@example("(?:a{3}|b)?", 2, 0)
@example("(?:ab)*a*", 3, 0)
def test_lengths_that_are_plain_to_see_occur(pattern: str, low: int, more: int) -> None:
    body = parse_pattern(as_ecma(pattern))
    lengths = lengths_of(body)
    found = {len(text) for text in short_texts(3, "ab-\n§") if regex_matcher.full_match(body, text)}
    if lengths.size is not None:
        assert lengths.least > 3 or lengths.least in found
        assert lengths.most is None or lengths.most > 3 or lengths.most in found
        assert not lengths.each or all(
            n in found for n in range(lengths.least, 4) if lengths.most is None or n <= lengths.most
        )
    if lengths.meet(low, low + more) and low + more <= 3:
        assert found & set(range(low, low + more + 1))
