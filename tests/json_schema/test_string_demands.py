"""What is plain to see of a set of strings is what a search finds."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tests.json_schema.test_patterns import as_ecma
from tests.strategies import regex_patterns
from tokdfa.errors import UnsupportedConstraint
from tokdfa.json_schema.sets.string_set import StringSet, string_expression
from tokdfa.regex.expression import ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa

PATTERNS = st.lists(
    st.tuples(st.sampled_from(["", "^"]), regex_patterns(boundaries=False), st.sampled_from(["", "$"])).map(
        lambda parts: as_ecma(f"{parts[0]}(?:{parts[1]}){parts[2]}")
    ),
    max_size=2,
).map(tuple)


@given(
    PATTERNS,
    PATTERNS,
    st.integers(0, 3),
    st.none() | st.integers(0, 3),
    st.frozensets(st.sampled_from(["", "a", "aa"])),
)
@example((), ("^[^]{2}$",), 2, 2, frozenset())
@example((), ("^a*$", "[^a]"), 0, None, frozenset())
@example((), ("^a+$", "^[^a]*$"), 0, 1, frozenset())
@example((), ("\\w", "\\W"), 0, None, frozenset([""]))
@example((), ("^.*$", "\n"), 0, None, frozenset())
@example(("^a?$",), ("b",), 0, None, frozenset(["", "a"]))
@example(("^(?:aa)*$",), ("^a{2}$",), 1, 3, frozenset())
@example(("^(?:aa)*$",), ("^a{2}$",), 1, None, frozenset(["aa"]))
@example(("a",), (), 0, 1, frozenset(["a"]))
@example(("^a",), (), 0, 1, frozenset(["a"]))
def test_a_set_is_empty_if_a_search_finds_no_text(
    patterns: tuple[str, ...], not_patterns: tuple[str, ...], low: int, high: int | None, hidden: frozenset[str]
) -> None:
    strings = StringSet(
        patterns=patterns, not_patterns=not_patterns, min_length=low, max_length=high, not_values=hidden
    )
    store = ExpressionStore()
    try:
        searched = LazyDfa(store, string_expression(strings, store)).is_empty
    except UnsupportedConstraint:
        assert not strings.is_easy
        return
    assert strings.is_empty() == searched
    assert not (strings.is_easy and searched)
