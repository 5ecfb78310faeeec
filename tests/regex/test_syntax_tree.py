from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tokdfa.regex.char_sets import contains
from tokdfa.regex.syntax_tree import (
    EMPTY_NODE,
    NEVER,
    Assertion,
    CharSet,
    LookAhead,
    Node,
    NodePool,
    Repeat,
    alternation,
    concat,
    repeat,
)

A, B, SURROGATE = CharSet(((97, 97),)), CharSet(((98, 98),)), CharSet(((0xD800, 0xD800),))
E_ACUTE, SEVERAL = CharSet(((0xE9, 0xE9),)), CharSet(((97, 98),))


LEAVES = st.sampled_from([A, B, SEVERAL, NEVER, EMPTY_NODE, Assertion("text_end"), LookAhead(A, negative=True)])
STEPS = st.lists(
    st.tuples(st.sampled_from(["concat", "alternation", "repeat"]), st.lists(st.integers(0, 30), max_size=4)),
    max_size=12,
)


@given(st.lists(LEAVES, min_size=1, max_size=5), STEPS)
def test_a_pool_makes_what_the_functions_make_and_each_once(leaves: list[Node], steps: list) -> None:
    pool = NodePool()
    nodes = list(leaves)
    for kind, places in steps:
        parts = [nodes[place % len(nodes)] for place in places]
        if kind == "repeat":
            low, high = len(parts), None if len(parts) == 4 else len(parts) + 1
            made, again = (pool.repeat(nodes[-1], low, high) for _ in range(2))
            expected = repeat(nodes[-1], low, high)
        else:
            made, again = (getattr(pool, kind)(list(parts)) for _ in range(2))
            expected = (concat if kind == "concat" else alternation)(parts)
        assert made == expected
        assert made is again
        nodes.append(made)


def test_a_pool_keeps_what_it_was_given() -> None:
    """Otherwise the identity of a dropped part could be that of a later one, and its result be found for it."""
    for number in range(100):
        pool, only = NodePool(), CharSet(((number, number),))
        for negative in (True, False) * 5:  # neither part is left in the result
            narrowed = pool.concat([LookAhead(only, negative), CharSet(((0, number),))])
            assert contains(narrowed.ranges, number) != negative
        for ranges in ((), only.ranges) * 5:
            assert pool.repeat(CharSet(ranges), 1, 2) == (Repeat(only, 1, 2) if ranges else NEVER)
