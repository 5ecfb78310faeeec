"""The search over pairs against a plain search over sets, and its masks against those of the fixpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml
from hypothesis import given

from tests.backends.proper_merge.token_languages import compare_walks
from tests.backends.proper_oracle import merge_pairs
from tests.proper.small_tokenizers import merge_list
from tests.strategies import examples
from tokdfa.backends.proper_merge.cartesian_merge import CartesianMerge
from tokdfa.backends.proper_merge.relevant_pairs import RelevantPairs
from tokdfa.constraint import Regex
from tokdfa.errors import LimitExceeded
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from tokdfa.constraint import Constraint
    from tokdfa.vocabulary.tokenizers import Tokenizer

INPUTS = Path(__file__).parents[3] / "experiments" / "inputs"
REGEXES = {entry["label"]: entry["regex"] for entry in yaml.safe_load((INPUTS / "regexes.yaml").read_text())}


def both(tokenizer: Tokenizer, constraint: Constraint, **options: Any) -> tuple[Any, Any]:
    """The constraint compiled with the fixpoint and with the search."""
    vocabulary = tokenizer.vocabulary
    return (
        CartesianMerge(vocabulary).compile(constraint),
        CartesianMerge(vocabulary, relevance="pairs", **options).compile(constraint),
    )


@pytest.mark.parametrize("skip_visited", [False, True])
@pytest.mark.parametrize("pattern", ["(a|b)*", "(ab)*a?", "a(a|b){2,}b", "(a{3})*"])
@examples(40)
@given(pairs=merge_pairs())
def test_the_search_finds_what_a_plain_search_finds(
    tmp_path_factory: pytest.TempPathFactory, pattern: str, skip_visited: bool, pairs: list[tuple[str, str]]
) -> None:
    """Pairs visited and relevant, counted with sets of (state, set of allowed successors)."""
    tokenizer = load_tokenizer(merge_list(tmp_path_factory.mktemp("t") / "tokenizer.json", "ab", pairs))
    fixpoint, searched = both(tokenizer, Regex(pattern), skip_visited=skip_visited)
    table, canonicity = fixpoint.table, fixpoint._canonicity
    tokens = [token for token in range(canonicity.size) if canonicity.usable[token]]
    after = {
        token: frozenset(other for other in tokens if canonicity.pair_is_canonical(token, other)) for token in tokens
    }
    begin = (table.automaton.starts[0], None)
    rows = [
        dict(zip(*map(np.ndarray.tolist, table.row(key)[:2]), strict=True))
        for key in range(table.automaton.state_count)
    ]
    seen, edges = {begin}, set()
    agenda = [begin]
    for state, may_follow in agenda:
        for token in tokens if may_follow is None else may_follow:
            if token in rows[state]:
                pair = (rows[state][token], after[token])
                edges.add(((state, may_follow), pair))
                if pair not in seen:
                    seen.add(pair)
                    agenda.append(pair)
    relevant = {pair for pair in seen if table.automaton.can_stop[pair[0]] & 1}
    while more := {source for source, target in edges if target in relevant} - relevant:
        relevant |= more
    assert isinstance(searched.table, RelevantPairs)
    assert (searched.table.visited_pairs, searched.table.relevant_pairs) == (len(seen), len(relevant))
    looked_at = sum(len(rows[state]) for state, _ in seen)  # the whole row of each pair
    assert searched.table.edges == looked_at or (skip_visited and searched.table.edges <= looked_at)


@pytest.mark.parametrize("skip_visited", [False, True])
@pytest.mark.parametrize("pattern", [REGEXES["email"], r'\{"name": "[^"]*", "ok": (true|false)\}', "(é|€|a|日| )+"])
def test_masks_equal_those_of_the_fixpoint_where_texts_are_free(pattern: str, skip_visited: bool) -> None:
    tokenizer = load_tokenizer("mistral-v1")
    assert compare_walks(both(tokenizer, Regex(pattern), skip_visited=skip_visited), walks=4, steps=30) > 50


def test_the_search_that_skips_looks_at_fewer_edges() -> None:
    """The search as 002 prints it; and as its notebook runs it, which finds the same pairs."""
    vocabulary = load_tokenizer("mistral-v1").vocabulary
    compiled, skipping = (
        CartesianMerge(vocabulary, relevance="pairs", skip_visited=skip).compile(Regex("[a-z]{1,6}"))
        for skip in (False, True)
    )
    assert compiled.sizes["edges"] > 5 * skipping.sizes["edges"] >= compiled.sizes["transitions"]
    assert compiled.sizes["pairs"] == skipping.sizes["pairs"] > 100
    assert compiled.table.relevant_pairs == skipping.table.relevant_pairs
    for key in range(compiled.table.automaton.state_count):
        for found, expected in zip(compiled.table.row(key), skipping.table.row(key), strict=True):
            assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    ("options", "limit"),
    [({"max_pairs": 50}, "max_pairs"), ({"max_transitions": 100}, "max_transitions"), ({"max_seconds": 0}, "seconds")],
)
def test_limits_name_the_remedy(options: dict[str, int], limit: str) -> None:
    tokenizer = load_tokenizer("mistral-v1")
    backend = CartesianMerge(tokenizer.vocabulary, relevance="pairs", **options)
    with pytest.raises(LimitExceeded, match='relevance="fixpoint"') as caught:
        backend.compile(Regex("[a-z]{1,6}"))
    assert caught.value.limit == limit
