"""Hypothesis strategies for regexes over the letters a and b that Python's `re` reads alike."""

from __future__ import annotations

from hypothesis import strategies as st

_LETTERS = st.tuples(st.sampled_from(("a", "b", "[ab]")), st.sampled_from(("", "", "*", "+", "?", "{1,2}", "{0,2}")))


def small_regexes() -> st.SearchStrategy[str]:
    """At most three letters, each repeated or not, in sequence or as alternatives; a part may be repeated at will.

    What follows any beginning of a match has at most three letters; a finite language has words of at most six.
    """
    leaf = _LETTERS.map("".join)
    return st.recursive(leaf, _combined, max_leaves=3)


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(inner, inner)
    joined = st.one_of(pair.map("".join), pair.map(lambda parts: f"({parts[0]}|{parts[1]})"))
    return st.tuples(joined, st.sampled_from(("", "", "*", "+", "?"))).map(lambda parts: f"({parts[0]}){parts[1]}")
