"""The figures of a tokenizer's merge rules, and what a token forbids, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest

from tokdfa.proper.rules_cache import load_canonicity
from tokdfa.proper.statistics import collect_statistics, forbidden_by_rule
from tokdfa.vocabulary.tokenizers import load_tokenizer


def test_forbidden_by_rule() -> None:
    canonicity = load_canonicity(load_tokenizer("mistral-v1"))
    token = load_tokenizer("mistral-v1").encode(" The")[0]
    by_rule = forbidden_by_rule(canonicity, token)
    counts = [len(followers) for followers in by_rule.values()]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == canonicity.forbidden_counts[canonicity.state_of(token)] == 675
    for rule, followers in by_rule.items():
        assert followers == sorted(followers)
        for follower in followers[:20]:
            assert canonicity.pairs.first_merge(token, follower) == rule
            spelled = canonicity.vocabulary.spell([token, follower])
            assert canonicity.source.encode_piece(spelled) != [token, follower]


@pytest.mark.parametrize("name", ["mistral-v1", "llama3"])
def test_figures(name: str) -> None:
    figures = collect_statistics(load_tokenizer(name))
    canonicity = load_canonicity(load_tokenizer(name))
    expected: dict[str, Any] = {
        "mistral-v1": {"rules": 58_980, "improper_tokens": 0, "byte_tokens": 116, "largest_count": 12_260},
        "llama3": {"rules": 280_147, "improper_tokens": 588, "byte_tokens": 0, "whole_pieces": 588},
    }[name]
    assert {key: getattr(figures, key) for key in expected} == expected
    assert (figures.marked_states is None) == (name == "mistral-v1")
    for token in figures.largest_after:
        starts, ends = canonicity.forbidden(token)
        assert int((ends - starts).sum()) == figures.largest_count
    assert 0 < figures.memory_bytes < 40e6
    assert min(figures.build_seconds, figures.load_seconds) > 0
