"""The language of an automaton over tokens, listed; and languages to try."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.strategies import short_texts
from tests.walks import walk_along

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.token_automata.token_rows import TokenRows
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: All texts over three letters of at most seven.
TEXTS = short_texts(7, "abc")


def sequences(rows: TokenRows, vocabulary: Vocabulary, longest: int = 1_000) -> set[tuple[int, ...]]:
    """The accepted sequences of at most `longest` bytes."""

    def walk(state: int, tokens: tuple[int, ...], size: int) -> Iterator[tuple[int, ...]]:
        if rows.accepting[state]:
            yield tokens
        for token, target in rows.rows[state].items():
            longer = size + len(vocabulary.token_bytes(token))
            if longer <= longest:
                yield from walk(target, (*tokens, token), longer)

    return set(walk(rows.start, (), 0)) if rows.state_count else set()


def regexes() -> st.SearchStrategy[str]:
    """Regexes over a, b, c with alternatives, repeats and options; many of infinite languages."""
    leaf = st.text("abc", min_size=1, max_size=3) | st.sampled_from(["a", "aa", "[ab]", "[abc]"])
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map("".join),
            st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
            st.tuples(inner, st.sampled_from("*+?")).map(lambda pair: f"({pair[0]}){pair[1]}"),
        ),
        max_leaves=5,
    )


def finite_languages() -> st.SearchStrategy[list[str]]:
    """Short texts over a, b, c, among them runs of one letter."""
    run = st.tuples(st.sampled_from("ab"), st.integers(0, 9)).map(lambda pair: pair[0] * pair[1])
    text = st.text("ab", max_size=9) | st.text("abc", max_size=6) | st.tuples(run, run).map("".join)
    return st.lists(text, min_size=1, max_size=8, unique=True)


def compare_walks(made: Sequence[CompiledConstraint], walks: int, steps: int, context: Sequence[int] = ()) -> int:
    """Equal masks at every step of random walks; returns how many were compared."""
    vocab = made[0].vocab
    rng = random.Random(f"{vocab.name} {made[0].constraint.name}")
    return sum(walk_along([one.start(context) for one in made], vocab, (), steps, rng) for _ in range(walks))
