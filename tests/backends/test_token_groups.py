"""Groups of tokens and their followers, against lists and dicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.proper.test_bpe import refuses, rule_sets
from tokdfa.backends.token_groups import Followers, group_tokens
from tokdfa.mask import allocate_mask, mask_to_ids
from tokdfa.proper.adjacent_pairs import AdjacentPairs
from tokdfa.proper.derivations import derive_tokens

if TYPE_CHECKING:
    from tokdfa.proper.merge_rules import MergeRules


def int32(values: Any) -> Any:
    return np.array(values, dtype=np.int32)


@given(
    st.lists(st.integers(-2, 3) | st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=20),
    st.lists(st.tuples(st.integers(0, 19), st.integers(0, 3) | st.integers(0, 2**31 - 1)), max_size=40),
)
def test_groups_are_those_of_a_dict(targets: list[int], entries: list[tuple[int, int]]) -> None:
    entries = [(token % len(targets), key) for token, key in entries]
    groups: dict[int, list[int]] = {}
    for token, key in entries:
        if targets[token] >= 0:
            groups.setdefault(targets[token] << 32 | key, []).append(token)
    tokens, keys = int32(entries).reshape(-1, 2).T.copy()
    members, starts, pairs = group_tokens(tokens, keys, int32(targets))
    assert pairs.tolist() == [*groups]
    assert [part.tolist() for part in np.split(members, starts[1:-1])] == ([*groups.values()] or [[]])
    assert starts.tolist() == np.cumsum([0, *map(len, groups.values())]).tolist()
    for token in (-1, len(targets)):
        refuses(IndexError, group_tokens, int32([token]), int32([0]), int32(targets))
    refuses(ValueError, group_tokens, tokens, np.append(keys, int32([0])), int32(targets))


@given(rule_sets(), st.data())
def test_followers_are_those_of_two_lists(rules: MergeRules, data: st.DataObject) -> None:
    derivations = derive_tokens(rules)
    pairs = AdjacentPairs(rules, derivations)
    some = st.lists(st.sampled_from(np.flatnonzero(derivations.is_proper).tolist()), max_size=6)
    live, untried = data.draw(some), data.draw(some)
    found = Followers(pairs, int32(live), int32(untried))
    assert found.nbytes == 4 * len(live + untried)
    for last in data.draw(some):
        assert found.may_follow(last) == any(pairs.first_merge(last, token) < 0 for token in live)
        first = data.draw(st.integers(0, len(untried) + 1))
        place = next((k for k in range(first, len(untried)) if pairs.first_merge(last, untried[k]) < 0), None)
        assert found.next_untried(last, first) == (None if place is None else (place, untried[place]))
        if place is not None:
            goes_on = data.draw(st.booleans())
            found.settle(place, goes_on)
            live += untried[place : place + 1] * goes_on
            del untried[place]
        assert found.has_untried == bool(untried)
        members, mask = data.draw(some), allocate_mask(rules.size)
        served = [member for member in members if any(pairs.first_merge(member, token) < 0 for token in live)]
        assert found.judge(int32(members), mask).tolist() == [token for token in members if token not in served]
        assert mask_to_ids(mask).tolist() == sorted(set(served))
    for token in (-1, rules.size):
        refuses(IndexError, found.may_follow, token)
        refuses(IndexError, found.judge, int32([token]), allocate_mask(rules.size))
        refuses(IndexError, Followers, pairs, int32([token]), int32([]))
    refuses(IndexError, found.settle, len(untried), True)
    refuses(ValueError, found.judge, int32([0]), int32([]))
