"""Merging and what follows from it for pairs, against merging replayed step by step, over rules drawn at random."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.proper.small_tokenizers import merge_lists
from tokdfa.errors import TokenizerError
from tokdfa.mask import allocate_mask, mask_to_ids
from tokdfa.proper.adjacent_pairs import AdjacentPairs
from tokdfa.proper.bpe import cut_tokens, merge_letters, number_tree
from tokdfa.proper.derivations import Derivations, derive_tokens
from tokdfa.proper.intervals import BorderSide, IntervalLists, build_lists
from tokdfa.proper.merge_rules import MergeRules
from tokdfa.proper.merge_tree import build_merge_tree
from tokdfa.proper.replay import replay_merges

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LETTERS = "abc"
NOTHING = np.zeros(0, dtype=np.int32)


def int32(values: Any) -> Any:
    return np.array(values, dtype=np.int32)


@st.composite
def rule_sets(draw: st.DrawFn) -> MergeRules:
    """Rules over three letters, with ranks in any order, some of them equal. The last token has no letters."""
    merges = draw(merge_lists())
    ranks = draw(st.lists(st.integers(0, 4), min_size=len(merges), max_size=len(merges)) | st.just(range(len(merges))))
    texts = [*dict.fromkeys([*LETTERS, *(left + right for left, right in merges)]), "?"]
    number = {text: token for token, text in enumerate(texts)}
    rows = sorted(
        (number[left], number[right], number[left + right], rank)
        for (left, right), rank in zip(merges, ranks, strict=True)
    )
    left, right, result, rank = int32(rows).reshape(-1, 4).T.copy()
    spelled = [[number[letter] for letter in text if letter != "?"] for text in texts]
    starts = int32([0, *itertools.accumulate(map(len, spelled))])
    row_starts = int32(np.append(0, np.cumsum(np.bincount(left, minlength=len(texts)))))
    return MergeRules(left, right, result, rank, row_starts, int32([*itertools.chain(*spelled)]), starts)


def refuses(error: type[Exception], call: Callable[..., Any], *given: Any) -> None:
    """AssertionError unless the call raises that."""
    with pytest.raises(error):
        call(*given)


def rows_of(rules: MergeRules) -> list[tuple[int, int, int, int]]:
    columns = (rules.left, rules.right, rules.result, rules.rank)
    return [*zip(*(column.tolist() for column in columns), strict=True)]


def first_crossing(rules: MergeRules, left: Sequence[int], right: Sequence[int]) -> int:
    """The first rule that merges across the border of two stretches of letters, or -1: replayed."""
    rows = rows_of(rules)
    by_pair = {row[:2]: k for k, row in enumerate(rows)}
    tokens, border = [*left, *right], len(left)
    while True:
        found = [(rows[by_pair[p]][3], k) for k, p in enumerate(itertools.pairwise(tokens)) if p in by_pair]
        if not found:
            return -1
        _, place = min(found)
        rule = by_pair[tokens[place], tokens[place + 1]]
        if place + 1 == border:
            return rule
        tokens[place : place + 2] = [rows[rule][2]]
        border -= place + 1 < border


@given(rule_sets(), st.lists(st.integers(0, len(LETTERS) - 1), max_size=12))
def test_letters_merge_as_replayed(rules: MergeRules, letters: list[int]) -> None:
    assert merge_letters(rules, letters).tolist() == replay_merges(letters, rows_of(rules))
    for left, right in itertools.product(range(rules.size), repeat=2):
        assert rules.find(left, right) == next(
            (k for k, row in enumerate(rows_of(rules)) if row[:2] == (left, right)), -1
        )


@given(rule_sets())
def test_last_merges_are_the_replays(rules: MergeRules) -> None:
    found, rows = derive_tokens(rules), rows_of(rules)
    for token in range(rules.size):
        letters = rules.letters(token).tolist()
        assert found.is_proper[token] == (replay_merges(letters, rows) == [token])
        if not found.is_proper[token] or len(letters) == 1:
            assert [column[token] for column in (found.left, found.right, found.rank, found.level)] == [-1] * 4
            continue
        left, right = int(found.left[token]), int(found.right[token])
        assert (left, right, token, found.rank[token]) in rows
        assert [*rules.letters(left), *rules.letters(right)] == letters
        assert found.level[token] == max(found.rank[token], found.level[left], found.level[right])


def judge_pairs(rules: MergeRules, derivations: Derivations) -> dict[tuple[int, int], int]:
    proper = np.flatnonzero(derivations.is_proper).tolist()
    letters = {token: rules.letters(token).tolist() for token in proper}
    return {
        pair: first_crossing(rules, *(letters[token] for token in pair)) for pair in itertools.product(proper, proper)
    }


@given(rule_sets())
def test_pairs_and_lists_are_what_replays_say(rules: MergeRules) -> None:
    derivations = derive_tokens(rules)
    expected = judge_pairs(rules, derivations)
    pairs = AdjacentPairs(rules, derivations)
    assert {pair: pairs.first_merge(*pair) for pair in expected} == expected
    trees = build_merge_tree(derivations, NOTHING), build_merge_tree(derivations, NOTHING, side="right")
    sides = (
        BorderSide(rules, derivations, trees[0], is_left=True),
        BorderSide(rules, derivations, trees[1], is_left=False),
    )
    lists = build_lists(rules, derivations, trees[0])
    for token in np.flatnonzero(derivations.is_proper).tolist():
        after = [pair[1] for pair, rule in expected.items() if pair[0] == token and rule >= 0]
        before = [pair[0] for pair, rule in expected.items() if pair[1] == token and rule >= 0]
        for side, tree, wanted in zip(sides, trees, (after, before), strict=True):
            found = side.forbidden(token)
            assert sorted(found.tolist()) == wanted
            assert np.all(np.diff(tree.number[found]) > 0)
        mask, state = allocate_mask(rules.size), lists.state_of[token]
        lists.add_listed(state, trees[0].order, mask)
        assert mask_to_ids(mask).tolist() == after
        starts, ends = (part[slice(*lists.list_starts[state : state + 2])] for part in (lists.starts, lists.ends))
        assert np.all(starts < ends)
        assert np.all(ends[:-1] < starts[1:])
    contents = [
        (*lists.starts[begin:end].tolist(), -1, *lists.ends[begin:end].tolist())
        for begin, end in itertools.pairwise(lists.list_starts.tolist())
    ]
    assert len(set(contents)) == len(contents) == lists.state_count


@given(rule_sets(), st.sampled_from(["left", "right"]))
def test_subtrees_are_intervals(rules: MergeRules, side: Any) -> None:
    derivations = derive_tokens(rules)
    tree, part = build_merge_tree(derivations, NOTHING, side=side), getattr(derivations, side)
    assert sorted(tree.order.tolist()) == np.flatnonzero(derivations.is_proper).tolist()
    for place, token in enumerate(tree.order.tolist()):
        assert tree.number[token] == place
        subtree = [other for other in tree.order.tolist() if token in spine(other, part)]
        assert sorted(subtree) == sorted(tree.order[place : tree.end[token]].tolist())
    assert set(np.flatnonzero(tree.number < 0)) == set(np.flatnonzero(~derivations.is_proper))


def spine(token: int, part: Any) -> list[int]:
    return [token, *spine(int(part[token]), part)] if part[token] >= 0 else [token]


@given(st.lists(st.binary(max_size=5), max_size=12, unique=True), st.randoms(use_true_random=False))
def test_rules_by_concatenation(texts: list[bytes], random: Any) -> None:
    tokens = sorted(random.sample(range(len(texts)), random.randint(0, len(texts))))
    data, offsets = np.frombuffer(b"".join(texts), dtype=np.uint8), np.cumsum([0, *map(len, texts)])
    found = zip(*(column.tolist() for column in cut_tokens("t", data, offsets, int32(tokens))), strict=True)
    by_text = {texts[token]: token for token in tokens}
    cuts = [(text[:k], text[k:], token) for text, token in by_text.items() for k in range(1, len(text))]
    wanted = [(by_text[one], by_text[other], token) for one, other, token in cuts if {one, other} <= by_text.keys()]
    assert [*found] == wanted
    if tokens:
        with pytest.raises(TokenizerError, match="t: two mergeable tokens spell"):
            cut_tokens("t", data, offsets, int32([*tokens, tokens[0]]))


@given(rule_sets())
def test_what_does_not_fit_is_refused(rules: MergeRules) -> None:
    derivations, tree = derive_tokens(rules), build_merge_tree(derive_tokens(rules), NOTHING)
    pairs, side = AdjacentPairs(rules, derivations), BorderSide(rules, derivations, tree, is_left=True)
    lists = build_lists(rules, derivations, tree)
    for token in (-1, rules.size):
        refuses(IndexError, pairs.first_merge, token, 0)
        refuses(IndexError, pairs.first_merge, 0, token)
        refuses(IndexError, side.forbidden, token)
        refuses(IndexError, merge_letters, rules, [token])
    refuses(IndexError, lists.add_listed, lists.state_count, tree.order, allocate_mask(rules.size))
    wide = max(range(lists.state_count), key=lambda state: lists.list_starts[state + 1] - lists.list_starts[state])
    lists.add_listed(wide, tree.order, NOTHING.copy())  # nothing fits
    if len(lists.starts):
        refuses(ValueError, lists.add_listed, wide, NOTHING, allocate_mask(rules.size))
    of_lists = lists.state_of, lists.list_starts, lists.starts
    refuses(ValueError, IntervalLists, *of_lists, np.append(lists.ends, int32(0)))
    refuses(ValueError, IntervalLists, *of_lists, lists.ends.astype(np.int64))
    short = MergeRules(rules.left[1:], *(getattr(rules, name) for name in MergeRules.__match_args__[1:]))
    if len(rules):
        refuses(ValueError, derive_tokens, short)
        refuses(ValueError, AdjacentPairs, short, derivations)
    # 1 and 2 are each other's parent
    refuses(ValueError, number_tree, int32([0]), int32([-1, 2, 1]), int32([2, 1]), int32([0, 0, 1, 2]))
